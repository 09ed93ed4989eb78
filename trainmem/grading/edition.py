"""The course's own notebook, into which a submission's answers are put."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from trainmem.course.regions import without_hidden, without_solution
from trainmem.grading.assignment import DEFAULT_STUB, Assignment, load
from trainmem.grading.definitions import Contents, contents


@dataclass(frozen=True)
class Place:
    """A cell of the course's notebook as students have it. `metadata` is what nbgrader reads in it."""

    name: str
    kind: Literal["prose", "code", "answer", "check"]
    exercise: int
    given: str
    metadata: dict[str, Any]


@dataclass(frozen=True)
class Edition:
    """The notebook of one assignment.

    titles: each exercise's heading. source: the instructor's notebook.
    """

    assignment: Assignment
    places: tuple[Place, ...]
    titles: dict[int, str]
    metadata: dict[str, Any]
    source: Path

    @cached_property
    def answers(self) -> frozenset[str]:
        """The names of the functions that are asked for."""
        return frozenset(answer.name for answer in self.assignment.answers)

    @cached_property
    def given(self) -> dict[str, Contents]:
        """What the cells of code define as students have them, by their names."""
        return {place.name: contents(place.given) for place in self.places if place.kind != "prose"}

    @cached_property
    def by_text(self) -> dict[str, list[Place]]:
        """The cells that have a text, by `plain` of it."""
        found: dict[str, list[Place]] = {}
        for place in self.places:
            found.setdefault(plain(place.given), []).append(place)
        return found

    @cached_property
    def by_heading(self) -> dict[str, Place]:
        """The cells of prose by their first lines."""
        return {plain(place.given).partition("\n")[0]: place for place in self.places if place.kind == "prose"}

    def index(self, name: str) -> int:
        """The position of the cell called `name`."""
        return self._positions[name]

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {place.name: i for i, place in enumerate(self.places)}


def plain(text: str) -> str:
    """Return a cell's text as it compares: without spaces at the ends of lines, and empty lines around it."""
    return "\n".join(map(str.rstrip, text.strip().splitlines()))


def read_edition(source: Path, stub: str = DEFAULT_STUB) -> Edition:
    """Return the edition in the instructor's notebook at `source`, as nbgrader releases it with `stub` for answers.

    It is read as text, without nbgrader, which takes longer to start than the grading of a small class.
    Raises ValueError where the notebook is none of this course.
    """
    assignment = load(source)
    notebook = json.loads(source.read_text("utf-8"))
    exercise = {item.name: item.exercise for item in (*assignment.answers, *assignment.checks)}
    upcoming = assignment.exercises[-1].number
    numbers: list[int] = []
    for cell in reversed(notebook["cells"]):
        upcoming = exercise.get(cell["metadata"]["nbgrader"]["grade_id"], upcoming)
        numbers.insert(0, upcoming)
    places: list[Place] = []
    titles: dict[int, str] = {}
    current = assignment.exercises[0].number
    for cell, upcoming in zip(notebook["cells"], numbers, strict=True):
        flags = cell["metadata"]["nbgrader"]
        name, prose = flags["grade_id"], cell["cell_type"] != "code"
        # Prose leads to the answer after it; other cells belong to what stands before them.
        current = upcoming if prose else exercise.get(name, current)
        text = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
        if prose and len(places) and current not in titles:
            titles[current] = text.partition("\n")[0].lstrip("# ").strip()
        kind = "prose" if prose else "answer" if flags["solution"] else "check" if flags["grade"] else "code"
        given = without_solution(without_hidden(text), stub)
        places.append(Place(name, kind, current, given, cell["metadata"]))
    return Edition(assignment, tuple(places), titles, notebook["metadata"], source)


def course_stub(config: Any) -> str:
    """Return the text that stands for an unwritten answer in a course with this configuration."""
    return config.ClearSolutions.get("code_stub", {}).get("python", DEFAULT_STUB)
