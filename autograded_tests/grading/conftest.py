"""The course's own assignment, right functions and right answers, as grading takes them."""

from dataclasses import replace

import pytest

import trainmem_solutions
from autograded_tests.notebooks import RELEASE, SOURCE, reference_answers
from trainmem.grading.assignment import load
from trainmem.grading.checks import Grader
from trainmem.grading.limits import Limits
from trainmem.grading.trial import StudentCell


@pytest.fixture(scope="session")
def assignment():
    return load(SOURCE, RELEASE)


@pytest.fixture(scope="session")
def references(assignment):
    return {answer.name: getattr(trainmem_solutions, answer.name) for answer in assignment.answers}


def right_answers(assignment):
    """A submission of the course's own answers: one cell each."""
    sources = reference_answers()
    return [StudentCell(sources[answer.name], answer.exercise, answer.name) for answer in assignment.answers]


@pytest.fixture(scope="session")
def right_cells(assignment):
    return right_answers(assignment)


SALT = b"a salt for tests, long enough"
SHORT = Limits(
    cell_seconds=2.0,
    call_seconds=0.6,
    patience_seconds=5.0,
    least_seconds=0.3,
    total_seconds=20.0,
    resident_bytes=512 << 20,
    memory_bytes=2 << 30,
    scratch_bytes=16 << 20,
)


@pytest.fixture(scope="session")
def grader(assignment, references):
    # Marks are what is asked here, not times: on a busy machine a right answer must not run into a limit.
    with Grader(assignment, references, SALT, limits=replace(SHORT, call_seconds=2.5, patience_seconds=12.0)) as grader:
        yield grader


@pytest.fixture(scope="session")
def marks_without(assignment):
    """What each check gives when the checks about these answers are lost, and no others."""
    return lambda *lost: {check.name: 0 if check.target in lost else check.points for check in assignment.checks}


@pytest.fixture(scope="session")
def changed(right_cells):
    """The right cells with those of some answers replaced, by name; or with a cell before or after an answer's."""

    def change(replaced=None, before=None, after=None):
        cells = []
        for cell in right_cells:
            for source in (before or {}).get(cell.answer, ()):
                cells.append(StudentCell(source, cell.exercise))
            cells.append(replace(cell, source=(replaced or {}).get(cell.answer, cell.source)))
            for source in (after or {}).get(cell.answer, ()):
                cells.append(StudentCell(source, cell.exercise))
        return cells

    return change


def marks(grade):
    return {result.check: result.score for result in grade.results}
