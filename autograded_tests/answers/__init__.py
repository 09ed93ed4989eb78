"""Answers as data: for each exercise right ones in many styles, and wrong ones named by their mistake.

How it is read. Each module holds one exercise: `PLAIN`, the cells of an ordinary right answer by the function that each
defines; `RIGHT` and `WRONG`, further answers by name. An answer gives only the cells in which it differs from the plain
one. A wrong answer also says which checks must fail, each with a phrase of what the student is told, or None where any
message will do; every other check must pass, once right functions stand where the check relies on earlier ones.

`cells` gives the source of every answer cell of one answer, and `notebook_cells` those of a whole notebook:

>>> sorted(cells("parameters", "the biases forgotten"))
['model_params', 'params_per_layer']
>>> len(notebook_cells(parameters="the biases forgotten", timeline="deque"))
9
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module

NAMES = ("parameters", "model_states", "activations", "timeline", "cheapest_fix")


@dataclass(frozen=True)
class Wrong:
    """A wrong answer: the cells that differ from the plain answer, and what each check that must fail says of it."""

    cells: Mapping[str, str]
    fails: Mapping[str, str | None]


@dataclass(frozen=True)
class Exercise:
    """The answers to one exercise: cells by function, and by the answer's name where there are several."""

    name: str
    plain: Mapping[str, str]
    right: Mapping[str, Mapping[str, str]]
    wrong: Mapping[str, Wrong]


def edited(source: str, *changes: tuple[str, str]) -> str:
    """Return a source with each (old, new) replaced; every old text must occur, so that no edit is lost silently."""
    for old, new in changes:
        if old not in source:
            raise ValueError(f"{old!r} is not in\n{source}")
        source = source.replace(old, new)
    return source


@cache
def exercise(name: str) -> Exercise:
    """Return the answers to one exercise, read from its module."""
    module = import_module(f"{__name__}.{name}")
    return Exercise(name, module.PLAIN, {"plain": {}, **module.RIGHT}, module.WRONG)


def cells(name: str, answer: str = "plain") -> dict[str, str]:
    """Return function → source of its cell, for one answer to one exercise."""
    known = exercise(name)
    given = known.right[answer] if answer in known.right else known.wrong[answer].cells
    return {function: source.strip("\n") for function, source in {**known.plain, **given}.items()}


def notebook_cells(**answers: str) -> dict[str, str]:
    """Return function → source for the whole notebook: the named answers, and plain right ones for the rest."""
    unknown = set(answers) - set(NAMES)
    if unknown:
        raise ValueError(f"no such exercise: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    sources: dict[str, str] = {}
    for name in NAMES:
        sources |= cells(name, answers.get(name, "plain"))
    return sources
