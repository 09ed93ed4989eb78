"""The assignment as its source notebook has it: helpers, exercises, answers, checks."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

from trainmem.course.regions import hidden_regions, without_hidden, without_solution

HELPERS_ID = "checking"
DEFAULT_STUB = "raise NotImplementedError()"

_EXERCISE = re.compile(r"^#{1,6}[ \t]*(?:exercise[ \t]+)?(\d+)\b", re.M | re.I)


@dataclass(frozen=True)
class Answer:
    """A function that the student writes, and the cell that stands there unsolved."""

    name: str
    exercise: int
    stub: str


@dataclass(frozen=True)
class Check:
    """A graded cell: its whole source, the parts of it that no student sees, and the answer that it is about."""

    name: str
    exercise: int
    points: float
    source: str
    hidden: tuple[str, ...]
    target: str


@dataclass(frozen=True)
class Exercise:
    number: int
    answers: tuple[Answer, ...]
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Assignment:
    """Everything of the notebook that grading relies on. Nothing of it comes from a submission."""

    helpers: str
    exercises: tuple[Exercise, ...]
    answers: tuple[Answer, ...] = field(init=False)
    checks: tuple[Check, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "answers", tuple(a for exercise in self.exercises for a in exercise.answers))
        object.__setattr__(self, "checks", tuple(c for exercise in self.exercises for c in exercise.checks))

    @property
    def given_helpers(self) -> str:
        """The helper cell as students have it."""
        return without_hidden(self.helpers)

    def earlier(self, name: str) -> tuple[str, ...]:
        """The answers that come before the one called `name`: it may rest on each of them."""
        names = [answer.name for answer in self.answers]
        return tuple(names[: names.index(name)])


def load(source: Path, release: Path | None = None) -> Assignment:
    """The assignment in the notebook `source`; its stubs as they stand in `release`, where that is given.

    Raises ValueError, naming the notebook and the cell, for one that this course's build does not write.
    """
    stubs: dict[str, str] = {}
    if release is not None:
        for cell, grade in _cells(release):
            if grade.get("solution"):
                stubs[grade["grade_id"]] = _text(cell)
    helpers = ""
    number = 0
    grouped: dict[int, tuple[list[Answer], list[Check]]] = {}
    names: list[str] = []
    for cell, grade in _cells(source):
        text = _text(cell)
        if cell["cell_type"] == "markdown":
            heading = _EXERCISE.search(text)
            number = int(heading.group(1)) if heading else number
            continue
        name = grade.get("grade_id") or cell.get("id", "")
        if name == HELPERS_ID:
            helpers = text
        elif grade.get("solution"):
            if grade.get("grade"):
                raise ValueError(f"{source}: cell {name} is answer and check at once; grade answers by checks")
            stub = stubs.get(name) or without_solution(text, DEFAULT_STUB)
            grouped.setdefault(number, ([], []))[0].append(Answer(name, number, stub))
            names.append(name)
        elif grade.get("grade"):
            target = _target(text, names, f"{source}: cell {name}")
            hidden = hidden_regions(text)
            check = Check(name, number, float(grade["points"]), text, hidden, target)
            grouped.setdefault(number, ([], []))[1].append(check)
    if not helpers or not names:
        raise ValueError(f"{source}: no cell {HELPERS_ID!r} with the helpers, or no answer cell")
    exercises = (Exercise(key, tuple(answers), tuple(checks)) for key, (answers, checks) in grouped.items())
    return Assignment(helpers, tuple(exercises))


def _cells(path: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    try:
        cells = json.loads(path.read_text("utf-8"))["cells"]
        return [(cell, cell["metadata"].get("nbgrader", {})) for cell in cells]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no readable notebook of the course: {error}") from error


def _text(cell: dict[str, Any]) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def _target(source: str, answers: list[str], where: str) -> str:
    """The answer that a check is about: of those that its code names, the last in the notebook's order."""
    used = names_in(compile(source, "<check>", "exec", dont_inherit=True))
    named = [name for name in answers if name in used]
    if not named:
        raise ValueError(f"{where}: the check names no answer that comes before it")
    return named[-1]


def names_in(code: CodeType) -> set[str]:
    """All global names and attributes that compiled code mentions, in nested functions too."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= names_in(constant)
    return names
