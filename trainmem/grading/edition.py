"""The course's own notebook, into which a submission's answers are put."""

import copy
import json
import logging
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from trainmem.grading.assignment import Assignment, load

if TYPE_CHECKING:
    from traitlets.config import Config

_LOG = logging.getLogger(__name__)  # nbgrader's own would tell of each cell


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

    titles: each exercise's heading. recorded: the notebook as JSON, as nbgrader saves it to its gradebook.
    """

    assignment: Assignment
    places: tuple[Place, ...]
    titles: dict[int, str]
    metadata: dict[str, Any]
    recorded: str

    @cached_property
    def answers(self) -> frozenset[str]:
        """The names of the functions that are asked for."""
        return frozenset(answer.name for answer in self.assignment.answers)

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


def read_edition(source: Path, config: "Config | None" = None) -> Edition:
    """Return the edition in the instructor's notebook at `source`, as nbgrader's own preprocessors release it.

    Raises ValueError where the notebook is none of this course.
    """
    import nbformat
    from nbgrader.preprocessors import ClearHiddenTests, ClearOutput, ClearSolutions, ComputeChecksums, LockCells

    assignment = load(source)
    notebook = nbformat.read(source, as_version=4)
    for preprocessor in (LockCells, ClearSolutions, ClearOutput, ComputeChecksums):
        notebook, _ = preprocessor(config=config, log=_LOG).preprocess(notebook, {})
    recorded = nbformat.writes(notebook)
    notebook = copy.deepcopy(notebook)
    for preprocessor in (ClearHiddenTests, ComputeChecksums):
        notebook, _ = preprocessor(config=config, log=_LOG).preprocess(notebook, {})
    exercise = {item.name: item.exercise for item in (*assignment.answers, *assignment.checks)}
    upcoming = assignment.exercises[-1].number
    numbers: list[int] = []
    for cell in reversed(notebook.cells):
        upcoming = exercise.get(cell.metadata.nbgrader.grade_id, upcoming)
        numbers.insert(0, upcoming)
    places: list[Place] = []
    titles: dict[int, str] = {}
    current = assignment.exercises[0].number
    for cell, upcoming in zip(notebook.cells, numbers, strict=True):
        name = cell.metadata.nbgrader.grade_id
        prose = cell.cell_type != "code"
        # Prose leads to the answer after it; other cells belong to what stands before them.
        current = upcoming if prose else exercise.get(name, current)
        if prose and len(places) and current not in titles:
            titles[current] = cell.source.partition("\n")[0].lstrip("# ").strip()
        flags = cell.metadata.nbgrader
        kind = "prose" if prose else "answer" if flags.solution else "check" if flags.grade else "code"
        places.append(Place(name, kind, current, cell.source, json.loads(json.dumps(cell.metadata))))
    return Edition(assignment, tuple(places), titles, json.loads(json.dumps(notebook.metadata)), recorded)
