"""The course's own assignment, right functions and right answers, as grading takes them."""

import json
import re
from pathlib import Path

import pytest

import trainmem_solutions
from trainmem.grading.assignment import load
from trainmem.grading.trial import StudentCell

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "source" / "training_memory" / "exercises.ipynb"
RELEASE = ROOT / "release" / "training_memory" / "exercises.ipynb"


@pytest.fixture(scope="session")
def assignment():
    return load(SOURCE, RELEASE)


@pytest.fixture(scope="session")
def references(assignment):
    return {answer.name: getattr(trainmem_solutions, answer.name) for answer in assignment.answers}


@pytest.fixture(scope="session")
def right_cells(assignment):
    """A submission of the course's own answers: one cell each."""
    exercise = {answer.name: answer.exercise for answer in assignment.answers}
    cells = []
    for cell in json.loads(SOURCE.read_text())["cells"]:
        grade = cell["metadata"].get("nbgrader", {})
        if grade.get("solution"):
            source = re.sub(r"\n[ \t]*### (BEGIN|END) SOLUTION", "", "".join(cell["source"]))
            cells.append(StudentCell(source, exercise[grade["grade_id"]], grade["grade_id"]))
    return cells
