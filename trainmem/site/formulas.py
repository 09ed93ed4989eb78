"""Formulas: TeX between dollar signs becomes MathML, which browsers draw by themselves."""

from functools import lru_cache

from latex2mathml.converter import convert


@lru_cache(maxsize=1024)
def mathml(tex: str, *, block: bool = False) -> str:
    """The formula as a ``<math>`` element. Raises ``ValueError`` with the TeX where it cannot be read."""
    try:
        made = convert(tex.strip(), display="block" if block else "inline")
    except Exception as error:
        raise ValueError(f"the formula ${tex}$ cannot be read: {type(error).__name__} {error}") from error
    made = made.replace("\\_", "_")  # latex2mathml leaves it as it is inside \\text
    if "\\" in made:
        raise ValueError(f"the formula ${tex}$ has a command that is not known: it would be shown as {made!r}")
    # A bar is as wide as its letter; a stretched one is drawn far too long by some browsers.
    return made.replace('<mo stretchy="true">&#x000AF;</mo>', '<mo stretchy="false">&#x000AF;</mo>')
