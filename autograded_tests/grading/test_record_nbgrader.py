"""nbgrader's ordinary commands and formgrader, in a course as it is cloned: salvaged, sandboxed, the batch's marks."""

import csv
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from autograded_tests.grading.damaged import DAMAGED, STUBS, code, honest, saved
from autograded_tests.notebooks import ROOT

KINDS = ("empty_folder", "in_a_zip", "numbered_copy", "all_metadata_lost", "syntax_error_in_one_answer", "untouched")
COMMANDS = ("generate_assignment", "autograde", "generate_feedback")
PROGRAMS = Path(sys.executable).parent


def environment(folder, **more):
    places = {name: str(folder / "jupyter" / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")}
    return os.environ | {"PYTHONPATH": str(ROOT), "TRAINMEM_GRADING": ""} | places | more


def nbgrader(course, *words, **more):
    command = [sys.executable, "-m", "nbgrader", *words]
    return subprocess.run(
        command, cwd=course, env=environment(course, **more), check=False, capture_output=True, text=True, timeout=200
    )


def cloned(folder, kinds=(), **notebooks):
    """A course folder with what is committed, and submissions."""
    for name in ("source", "release"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    for kind in kinds:
        DAMAGED[kind].write(folder / "submitted" / kind)
    for student, notebook in notebooks.items():
        place = folder / "submitted" / student / "training_memory"
        place.mkdir(parents=True)
        (place / "exercises.ipynb").write_bytes(saved(notebook))
    return folder


def scores(path):
    with open(path, newline="", encoding="utf-8") as file:
        return {row["student_id"]: row["score"] for row in csv.DictReader(file)}


def recorded(folder):
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}", "trainmem") as gradebook:
        return {
            submission.student.id: submission.score
            for submission in gradebook.assignment_submissions("training_memory")
        }


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course in which the four commands have been given, and how each ended."""
    folder = cloned(tmp_path_factory.mktemp("course"), KINDS, **{"Doe, Jane": honest(remark="Jane")})
    (folder / "submitted" / "Doe, Jane" / "training_memory" / "timestamp.txt").write_text("2026-03-01 12:00:00 UTC")
    ended = {command: nbgrader(folder, command, "training_memory") for command in COMMANDS}
    ended["export"] = nbgrader(folder, "export")
    return folder, ended


def test_the_commands_work_in_order_on_a_fresh_clone(course):
    folder, ended = course
    assert [ended[name].returncode for name in (*COMMANDS, "export")] == [0, 1, 0, 0], ended
    assert "empty_folder could not be graded, because its folder holds no file" in ended["autograde"].stderr
    expected = {"Doe, Jane": 50.0} | {kind: DAMAGED[kind].score for kind in KINDS}
    assert scores(folder / "grades.csv") == {
        student: "" if score is None else str(score) for student, score in expected.items()
    }
    release = "release/training_memory/exercises.ipynb"
    assert (folder / release).read_bytes() == (ROOT / release).read_bytes()
    assert not (folder / "autograded" / "empty_folder" / "training_memory" / "exercises.ipynb").exists()


def test_the_batch_gives_the_same_marks(course, tmp_path):
    folder, _ = course
    command = [sys.executable, "-m", "trainmem.grading", str(folder / "submitted"), str(tmp_path / "out")]
    ended = subprocess.run(command, env=environment(tmp_path), check=False, capture_output=True, timeout=200)
    assert ended.returncode == 3
    assert (tmp_path / "out" / "grades.csv").read_text() == (folder / "grades.csv").read_text()


def test_autograde_again_grades_what_was_handed_in_since_and_keeps_what_an_instructor_settled(course):
    from nbgrader.api import Gradebook

    folder, _ = course

    def settled(student, score=None):
        with Gradebook(f"sqlite:///{folder / 'gradebook.db'}", "trainmem") as gradebook:
            grade = gradebook.find_grade("check_best_k", "exercises", "training_memory", student)
            if score is not None:
                grade.manual_score, grade.needs_manual_grade = score, False
                gradebook.db.commit()
            return grade.manual_score == 3 and not grade.needs_manual_grade

    settled("untouched", 3)
    settled("numbered_copy", 3)
    handed_in = folder / "submitted" / "numbered_copy" / "training_memory"
    earlier = {path: path.read_bytes() for path in handed_in.iterdir()}
    (path,) = earlier
    path.write_bytes((folder / "submitted" / "untouched" / "training_memory" / "exercises.ipynb").read_bytes())
    again = nbgrader(folder, "autograde", "training_memory")
    assert again.returncode == 1
    for line in ("empty_folder could not be graded", "numbered_copy: 3\n", "untouched: 3\n", "in_a_zip: 50\n"):
        assert line in again.stderr
    assert settled("untouched")  # the same submission as before
    assert not settled("numbered_copy")  # another one: the instructor's score is to be looked at again
    # What can be graded no longer: its page says so, and no mark is left.
    path.write_text("{")
    assert nbgrader(folder, "autograde", "training_memory", "--student", "numbered_copy").returncode == 1
    page = folder / "feedback" / "numbered_copy" / "training_memory" / "exercises.html"
    assert "could not be graded" in page.read_text("utf-8")
    assert not list((folder / "autograded" / "numbered_copy").rglob("*.ipynb"))
    path.write_bytes(earlier[path])
    back = nbgrader(folder, "autograde", "training_memory", "--force", "--student", "numbered_copy")
    assert back.returncode == 0
    assert "numbered_copy: 49" in back.stderr  # 46 and the instructor's 3
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}", "trainmem") as gradebook:
        for student in ("untouched", "numbered_copy"):
            grade = gradebook.find_grade("check_best_k", "exercises", "training_memory", student)
            grade.manual_score, grade.needs_manual_grade = None, False
        gradebook.db.commit()


def test_feedback_shows_an_instructors_mark_and_no_hidden_check(course):
    from nbgrader.api import Gradebook

    from trainmem.grading.assignment import load

    folder, _ = course
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}", "trainmem") as gradebook:
        names = ("exercises", "training_memory", "untouched")
        gradebook.find_grade("check_best_k", *names).manual_score = 2.5
        gradebook.find_comment("best_k", *names).manual_comment = "A <b>good</b> try"
        gradebook.db.commit()
    assert nbgrader(folder, "generate_feedback", "training_memory").returncode == 0
    pages = {path.parts[-3]: path.read_text("utf-8") for path in folder.glob("feedback/*/*/exercises.html")}
    assert set(pages) == {"Doe, Jane", *KINDS}
    assert "could not be graded, because its folder holds no file" in pages["empty_folder"]
    assert "2.5 of 4" in pages["untouched"]
    assert "A &lt;b&gt;good&lt;/b&gt; try" in pages["untouched"]
    assignment = load(folder / "source" / "training_memory" / "exercises.ipynb")
    release = (folder / "release" / "training_memory" / "exercises.ipynb").read_text("utf-8")
    hidden = {line.strip() for check in assignment.checks for part in check.hidden for line in part.split("\n")}
    secret = [line for line in hidden if len(line) > 15 and line not in release]
    for page in [*pages.values(), *(p.read_text("utf-8") for p in folder.glob("autograded/*/*/*.ipynb"))]:
        assert not [line for line in secret if line in page]


def test_formgrader_opens_grades_and_gives_feedback(course):
    folder, _ = course
    (folder / "jupyter" / "JUPYTER_CONFIG_DIR").mkdir(parents=True, exist_ok=True)
    settings = {
        "ServerApp": {
            "jpserver_extensions": {"nbgrader.server_extensions.formgrader": True},
            "disable_check_xsrf": True,
            "open_browser": False,
            "allow_root": True,
        },
        "IdentityProvider": {"token": "formgrader"},
    }
    (folder / "jupyter" / "JUPYTER_CONFIG_DIR" / "jupyter_server_config.json").write_text(json.dumps(settings))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with open(folder / "server.log", "w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", f"--port={port}"],
            cwd=folder,
            env=environment(folder),
            stdout=log,
            stderr=log,
        )

    def ask(path, method="GET"):
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/formgrader/{path}", method=method, data=b"" if method == "POST" else None
        )
        request.add_header("Authorization", "token formgrader")
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.read().decode()

    try:
        for _ in range(300):
            try:
                ask("api/status")
                break
            except OSError:
                assert server.poll() is None, (folder / "server.log").read_text()
                time.sleep(0.2)
        graded = json.loads(ask("api/submission/training_memory/in_a_zip/autograde", "POST"))
        assert graded["success"]
        refused = json.loads(ask("api/submission/training_memory/empty_folder/autograde", "POST"))
        assert not refused["success"]
        assert "could not be graded, because its folder holds no file" in refused["log"]
        listed = json.loads(ask("api/submitted_notebooks/training_memory/exercises"))
        assert {row["student"]: row["score"] for row in listed}["in_a_zip"] == 50
        for row in listed:
            page = ask(f"submissions/{row['id']}/")
            assert "nbgrader_cell" in page
            assert "BEGIN HIDDEN TESTS" not in page
            if row["student"] == "untouched":
                assert "best_k: not written yet" in page
        assert json.loads(ask("api/assignment/training_memory/in_a_zip/generate_feedback", "POST"))["success"]
        page = folder / "feedback" / "in_a_zip" / "training_memory" / "exercises.html"
        assert "What the checks of this exercise said" in page.read_text("utf-8")
    finally:
        server.terminate()
        server.wait(20)


def test_where_ours_cannot_be_imported_nothing_is_run(tmp_path):
    """The configuration is read, but trainmem is not there: nbgrader's own Autograde must stop before anything runs."""
    folder = cloned(tmp_path, ann=honest())
    assert nbgrader(folder, "generate_assignment", "training_memory").returncode == 0
    witness = tmp_path / "ran"
    notebook = honest()
    notebook["cells"].insert(0, code(f"open({str(witness)!r}, 'w')"))
    (folder / "submitted" / "ann" / "training_memory" / "exercises.ipynb").write_bytes(saved(notebook))
    shadow = tmp_path / "shadow" / "trainmem"
    shadow.mkdir(parents=True)
    (shadow / "__init__.py").write_text("raise ImportError('not installed')")
    ended = nbgrader(folder, "autograde", "training_memory", PYTHONPATH=str(shadow.parent))
    assert ended.returncode == 1
    assert "grading stays switched off: not installed" in ended.stderr
    assert not witness.exists()
    assert not list(folder.glob("autograded/*/*/*.ipynb"))
    # And a stock converter that somebody makes where ours are installed.
    ended = subprocess.run(
        [
            sys.executable,
            "-c",
            "import logging\n"
            "from nbgrader.converters.autograde import Autograde\n"
            "from nbgrader.coursedir import CourseDirectory\n"
            "from traitlets.config import PyFileConfigLoader\n"
            "config = PyFileConfigLoader('nbgrader_config.py', path='.').load_config()\n"
            "config.CourseDirectory.assignment_id = 'training_memory'\n"
            "logging.basicConfig()\n"
            "Autograde(coursedir=CourseDirectory(config=config), config=config).start()\n",
        ],
        cwd=folder,
        env=environment(tmp_path),
        check=False,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert ended.returncode == 1
    assert "graded in a sandbox" in ended.stderr
    assert not witness.exists()


def test_without_a_sandbox_autograde_grades_nothing_and_says_why(tmp_path):
    folder = cloned(tmp_path, ann=honest())
    (tmp_path / "bin").mkdir()
    for program in ("alembic", "python"):
        (tmp_path / "bin" / program).symlink_to(PROGRAMS / program)
    ended = nbgrader(folder, "autograde", "training_memory", PATH=str(tmp_path / "bin"))
    assert ended.returncode == 1
    assert "bubblewrap" in ended.stderr
    assert not list(folder.glob("autograded/*/*/*.ipynb"))
    assert recorded(folder) == {}


def test_the_course_can_be_left_to_nbgrader_alone(tmp_path):
    notebook = honest({**STUBS, "model_state_bytes": honest()["cells"][12]["source"]})
    folder = cloned(tmp_path, ann=notebook)
    for command in ("generate_assignment", "autograde"):
        ended = nbgrader(folder, command, "training_memory", TRAINMEM_GRADING="nbgrader")
        assert ended.returncode == 0, ended.stderr
    assert "Sanitizing" in ended.stderr
    (stock,) = (folder / "autograded").glob("*/*/*.ipynb")
    assert "trainmem" not in json.loads(stock.read_text())["metadata"]
    assert recorded(folder) == {"ann": 4.0}
