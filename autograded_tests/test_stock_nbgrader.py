"""The course on stock nbgrader, our grader switched off: the honest sample class gets the same marks."""

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograded_tests.notebooks import ROOT, SOURCE, read
from autograded_tests.sample_class import ASSIGNMENT, CLASS, write_class
from trainmem.course.cells import course_cells
from trainmem_solutions import MODULES

EXERCISE_OF = {cell.name: cell.module for cell in course_cells()}


def nbgrader(folder: Path, *command: str) -> None:
    environment = os.environ | {"TRAINMEM_GRADING": "nbgrader", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-m", "nbgrader", *command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-3000:]


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A course folder in which the four ordinary commands have run on the sample class."""
    folder = tmp_path_factory.mktemp("course")
    for name in ("nbgrader_config.py", "source", "release"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    write_class(folder / "submitted")
    nbgrader(folder, "generate_assignment", ASSIGNMENT)
    nbgrader(folder, "autograde", ASSIGNMENT)
    nbgrader(folder, "export")
    return folder


def marks(folder: Path, student: str) -> tuple[float, ...]:
    with Gradebook(f"sqlite:///{folder}/gradebook.db") as gradebook:
        grades = gradebook.find_submission_notebook("exercises", ASSIGNMENT, student).grades
        return tuple(
            sum(grade.score for grade in grades if EXERCISE_OF[grade.name] == module) for module in MODULES[1:]
        )


def test_the_release_is_what_nbgrader_makes_of_the_source(graded):
    made = graded / "release" / ASSIGNMENT / "exercises.ipynb"
    assert made.read_bytes() == (ROOT / "release" / ASSIGNMENT / "exercises.ipynb").read_bytes()


@pytest.mark.parametrize("student", CLASS)
def test_marks(graded, student):
    assert marks(graded, student) == (CLASS[student].carried or CLASS[student].marks)


def test_the_export_has_a_row_a_student(graded):
    with (graded / "grades.csv").open(newline="") as file:
        rows = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert rows == {name: sum(student.carried or student.marks) for name, student in CLASS.items()}


def test_the_source_is_untouched(graded):
    assert read(graded / "source" / ASSIGNMENT / "exercises.ipynb") == read(SOURCE)
