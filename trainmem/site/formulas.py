"""Formulas: TeX between dollar signs becomes MathML, which browsers draw by themselves."""

from functools import lru_cache

from latex2mathml.converter import convert

# A bar is as wide as its letter: some browsers draw a stretched one far too long. A stroke and a full stop have no
# space around them.
_BETTER = {
    '<mo stretchy="true">&#x000AF;</mo>': '<mo stretchy="false">&#x000AF;</mo>',
    "<mo>&#x0002F;</mo>": '<mo lspace="0" rspace="0">&#x0002F;</mo>',
    "<mo>&#x0002E;</mo>": '<mo lspace="0" rspace="0">&#x0002E;</mo>',
}


@lru_cache(maxsize=1024)
def mathml(tex: str, *, block: bool = False) -> str:
    """The formula as a ``<math>`` element. Raises ``ValueError`` with the TeX where it cannot be read."""
    try:
        made = convert(tex.strip(), display="block" if block else "inline")
    except Exception as error:
        raise ValueError(f"the formula ${tex}$ cannot be read: {type(error).__name__} {error}") from error
    made = made.replace("\\_", "_")  # latex2mathml leaves it as it is inside \text
    if "\\" in made:
        raise ValueError(f"the formula ${tex}$ has a command that is not known: it would be shown as {made!r}")
    for plain, better in _BETTER.items():
        made = made.replace(plain, better)
    return made
