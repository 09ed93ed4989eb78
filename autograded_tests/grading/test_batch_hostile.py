"""Damaged, hostile, runaway and honest submissions in one batch: nobody gains, and nobody else loses."""

import contextlib
import csv
import ctypes
import json
import os
import subprocess
import sys
import time
from html import unescape
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograded_tests.grading.conftest import right_answers
from autograded_tests.grading.damaged import DAMAGED, FULL, code, honest, index, saved
from autograded_tests.grading.hostile import HOSTILE
from autograded_tests.grading.test_sandbox_hostile import descendants, traces
from autograded_tests.notebooks import ROOT
from trainmem.grading.assignment import load


def as_notebook(cells):
    """A submission of these cells: the answers in their places, the others in front of what they precede."""
    notebook = honest({})
    others = []
    for cell in cells:
        if cell.answer is None:
            others.append(code(cell.source))
            continue
        at = index(notebook, cell.answer)
        notebook["cells"][at]["source"] = cell.source
        notebook["cells"][at:at] = others
        others = []
    notebook["cells"] += others
    return notebook


def marks(assignment, loses):
    """What is left to a submission that loses the checks of these answers; "*" is all of them."""
    return sum(check.points for check in assignment.checks if not loses & {check.target, "*"})


@contextlib.contextmanager
def heir():
    """Processes whose parents have ended become this process's children, where they can be seen."""
    set_child_subreaper = 36
    prctl = ctypes.CDLL(None).prctl
    assert prctl(set_child_subreaper, 1, 0, 0, 0) == 0
    try:
        yield
    finally:
        prctl(set_child_subreaper, 0, 0, 0, 0)


def is_zombie(process):
    """Whether it has ended, and only waits for us, its heir, to be told so."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_all_in_one_batch(tmp_path):
    assignment = load(ROOT / "source" / "training_memory" / "exercises.ipynb")
    expected = {}
    for number, kind in enumerate(HOSTILE):
        name = f"hostile-{number}"
        folder = tmp_path / "submitted" / name / "training_memory"
        folder.mkdir(parents=True)
        (folder / "exercises.ipynb").write_bytes(saved(as_notebook(kind.alter(right_answers(assignment)))))
        expected[name] = marks(assignment, kind.loses)
    for name, kind in DAMAGED.items():
        kind.write(tmp_path / "submitted" / name)
        expected[name] = kind.score
    for number in range(20):
        folder = tmp_path / "submitted" / f"honest-{number}" / "training_memory"
        folder.mkdir(parents=True)
        (folder / "exercises.ipynb").write_bytes(saved(honest(remark=f"PLANTED-{number}")))
        expected[folder.parent.name] = FULL
    before, running = traces(), descendants(os.getpid())
    command = [sys.executable, "-m", "trainmem.grading", str(tmp_path / "submitted"), str(tmp_path / "out")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with heir():
        ended = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=3500)
        # What was killed takes a moment to end.
        until = time.monotonic() + 10
        while left := {process for process in descendants(os.getpid()) - running if not is_zombie(process)}:
            if time.monotonic() > until:
                break
            time.sleep(0.05)
    assert left == set()
    assert ended.returncode == 3, ended.stderr
    with open(tmp_path / "out" / "grades.csv", newline="", encoding="utf-8") as file:
        given = {row["student_id"]: float(row["score"]) if row["score"] else None for row in csv.DictReader(file)}
    assert len(HOSTILE) >= 45
    kinds = {f"hostile-{number}": kind.name for number, kind in enumerate(HOSTILE)}
    assert {
        (kinds.get(name, name), given.get(name), score) for name, score in expected.items() if given.get(name) != score
    } == set()

    recorded = {}
    with Gradebook(f"sqlite:///{tmp_path / 'out' / 'gradebook.db'}") as gradebook:
        for submission in gradebook.assignment_submissions("training_memory"):
            scores = [grade.auto_score for notebook in submission.notebooks for grade in notebook.grades]
            recorded[submission.student_id] = None if None in scores else sum(scores)
    assert {name: score for name, score in recorded.items() if score is not None} == {
        name: score for name, score in given.items() if score is not None
    }

    assert traces() == before
    release = (ROOT / "release" / "training_memory" / "exercises.ipynb").read_text("utf-8")
    regions = [line.strip() for check in assignment.checks for region in check.hidden for line in region.split("\n")]
    hidden = {line for line in regions if len(line) > 15 and json.dumps(line)[1:-1] not in release}
    assert len(hidden) > 100
    salt = (tmp_path / "out" / "gradebook.db.salt").read_text().strip()
    pages = list((tmp_path / "out" / "feedback").rglob("*.html"))
    assert len(pages) == len(expected)
    for page in pages:
        text = unescape(page.read_text("utf-8"))
        student = page.relative_to(tmp_path / "out" / "feedback").parts[0]
        assert not [line for line in hidden if line in text], student
        assert salt not in text
        assert student.startswith("honest-") or "PLANTED-" not in text, student
