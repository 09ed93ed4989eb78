"""What the arguments of the reference functions may be, said in sentences.

The exercises' own notebooks do without it: `accepts` stands above a function in the module and is left out of the cell.
"""

import functools
import inspect
from collections.abc import Callable
from math import isfinite
from numbers import Integral, Real
from operator import index
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Rule = Callable[[object], str | None]  # the value → what is wrong with it ("must be …"), or None


def accepts(**rules: Rule) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Hold the named arguments against their rules before each call.

    Raises TypeError (another kind of thing) or ValueError (a value that is not allowed); both name the function, the
    argument, what is allowed and what came. Whole numbers of other kinds, like NumPy's, are passed on as int, so that a
    narrow one cannot overflow.
    """

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def checked(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
            given = signature.bind(*args, **options)
            for argument, value in given.arguments.items():
                wrong = rules[argument](value)
                if wrong:
                    kind = TypeError if wrong.startswith("must be of") else ValueError
                    raise kind(f"{function.__name__}: {argument} {wrong}, not {value!r:.60}")
                if isinstance(value, Integral) and not isinstance(value, bool):
                    given.arguments[argument] = index(value)
            try:
                return function(*given.args, **given.kwargs)
            except ValueError as error:
                raise ValueError(f"{function.__name__}: {error}") from None

        return checked

    return decorate


def _number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def whole(least: int, most: int | None = None, floats: bool = False) -> Rule:
    """A whole number from `least` on, up to `most`; with `floats`, also a float without a fraction, like 70e9."""
    bound = f"a whole number, {least} or more" if most is None else f"a whole number from {least} to {most}"

    def rule(value: object) -> str | None:
        if not _number(value):
            return f"must be of a number's type ({bound})"
        if not isinstance(value, Integral) and not (floats and isfinite(value) and value == int(value)):
            return f"must be {bound}"
        return None if value >= least and (most is None or value <= most) else f"must be {bound}"

    return rule


def whole_or_none(least: int) -> Rule:
    """A whole number not below `least`, or None."""
    rule = whole(least)
    return lambda value: None if value is None else rule(value)


def positive() -> Rule:
    """A finite number above zero."""

    def rule(value: object) -> str | None:
        if not _number(value):
            return "must be of a number's type (above 0)"
        return None if isfinite(value) and value > 0 else "must be a finite number above 0"

    return rule


def share(zero: bool = False) -> Rule:
    """A number above 0 and not above 1; with `zero`, one from 0 on and below 1."""
    allowed = "from 0 on and below 1" if zero else "above 0 and not above 1"

    def rule(value: object) -> str | None:
        if not _number(value):
            return f"must be of a number's type ({allowed})"
        good = 0 <= value < 1 if zero else 0 < value <= 1
        return None if good else f"must be a number {allowed}"

    return rule


def name() -> Rule:
    """A string; which names are known is the function's own business."""
    return lambda value: None if isinstance(value, str) else "must be of type str"


def true_or_false() -> Rule:
    """True or False."""
    return lambda value: None if isinstance(value, bool) else "must be of type bool"
