"""What a reader's own function gives to a figure, and what is said where it gives nothing."""

from collections.abc import Callable
from math import isfinite
from pathlib import Path
from traceback import extract_tb
from typing import TypeVar

Result = TypeVar("Result")
_HERE = Path(__file__).parent


class YourFunction(ValueError):
    """A reader's function gave nothing that can be drawn; the text says what happened, in a sentence."""


class Unwritten(YourFunction):
    """It, or a function that it calls, is still the exercise's stub; the text says which."""


def asked(call: Callable[[], Result]) -> Result:
    """What ``call`` returns, a lambda that asks a reader's function and reads its result.

    Raises `Unwritten` for a stub's bare ``NotImplementedError``, naming the function that raised it, and `YourFunction`
    for any other exception, and for a result that cannot be read.

    >>> def best_k(L, c, A):
    ...     raise NotImplementedError()
    >>> asked(lambda: best_k(24, 2, 34))
    Traceback (most recent call last):
        ...
    trainmem.figures.yours.Unwritten: best_k: not written yet
    """
    try:
        return call()
    except YourFunction:
        raise
    except Exception as error:
        if isinstance(error, NotImplementedError) and not error.args:
            raise Unwritten(f"{extract_tb(error.__traceback__)[-1].name}: not written yet") from None
        if Path(extract_tb(error.__traceback__)[-1].filename).parent == _HERE:  # in the call itself, or in what it gave
            raise YourFunction(f"Your function does not fit the figure: {error}.") from error
        raise YourFunction(f"Your function raised {type(error).__name__}: {error}") from error


def drawable(value: object) -> float:
    """A number that a reader's function gave, as a float. Raises `YourFunction` where it is none, or not finite."""
    if value is None or isinstance(value, str):
        raise YourFunction(f"Your function gave {value!r}, which is no number.")
    number = float(value)
    if not isfinite(number):
        raise YourFunction(f"Your function gave {number}, which cannot be drawn.")
    return number
