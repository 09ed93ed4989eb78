"""`make grade`: the sample class through the whole pipeline, each student with the marks that the answers deserve."""

import csv
import subprocess
import sys
from collections import defaultdict

import pytest

from autograded_tests.notebooks import ROOT
from autograded_tests.sample_class import CLASS


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """What the two commands behind `make grade` leave."""
    out = tmp_path_factory.mktemp("graded")
    for command in (["autograded_tests.sample_class", out / "submitted"], ["trainmem.grading", out / "submitted", out]):
        run = subprocess.run([sys.executable, "-m", *map(str, command)], cwd=ROOT, capture_output=True, text=True)
        assert run.returncode == 0, run.stdout + run.stderr
    return out, run.stdout


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_marks(graded):
    out, _ = graded
    marks = defaultdict(lambda: defaultdict(float))
    for row in rows(out / "checks.csv"):
        marks[row["student_id"]][row["exercise"]] += float(row["score"])
    assert {name: tuple(by.values()) for name, by in marks.items()} == {n: s.marks for n, s in CLASS.items()}
    assert {row["student_id"]: float(row["score"]) for row in rows(out / "grades.csv")} == {
        name: sum(student.marks) for name, student in CLASS.items()
    }


def test_the_table_and_the_files_are_named(graded):
    out, said = graded
    for name, student in CLASS.items():
        assert [name, *map(str, student.marks), str(sum(student.marks))] in [line.split() for line in said.splitlines()]
        assert (out / "feedback" / name / "training_memory" / "exercises.html").is_file()
    for name in ("grades.csv", "checks.csv", "feedback"):
        assert str(out / name) in said


def test_each_failed_check_says_why_and_a_blank_one_that_it_is_not_written(graded):
    out, _ = graded
    for row in rows(out / "checks.csv"):
        if float(row["score"]) < float(row["max_score"]):
            assert row["message"], row
        if row["student_id"] == "carl":
            assert row["message"].endswith(": not written yet")


def test_a_remark_is_passed_on_with_full_marks(graded):
    out, _ = graded
    [flash] = [
        row
        for row in rows(out / "checks.csv")
        if row["student_id"] == "leonhard" and row["check"] == "check_activation_bytes_flash"
    ]
    assert "log-sum-exp" in flash["message"]
    assert flash["score"] == flash["max_score"]
