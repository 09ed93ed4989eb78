"""A class graded by one command: every damaged submission among honest ones, and what interrupts it."""

import contextlib
import csv
import hashlib
import html
import io
import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autograded_tests.grading import damaged
from autograded_tests.grading.damaged import ANSWERS, DAMAGED, FULL, STUBS, cell_of, honest, saved
from autograded_tests.notebooks import ROOT
from trainmem.grading.__main__ import main
from trainmem.grading.batch import not_a_formula

ODD_IDS = ["Doe, Jane", 'the "boss"', "o'brien", "a b", "-dash", "007", "Ünï-名", "=1+2", "@at", "[a]", "100%", "a;b"]
HONEST = 20


def command(submitted, out, *more):
    return [sys.executable, "-m", "trainmem.grading", str(submitted), str(out), *more]


def environment(**more):
    return os.environ | {"PYTHONPATH": str(ROOT)} | more


def run(submitted, out, *more, **options):
    options = {"env": environment(), "capture_output": True, "text": True, "timeout": 300} | options
    return subprocess.run(command(submitted, out, *more), check=False, **options)


def run_here(submitted, out, *more):
    """The same within this process, which has nbgrader loaded already."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        status = main([str(submitted), str(out), *more])
    return subprocess.CompletedProcess([], status, stdout.getvalue(), stderr.getvalue())


def hand_in(submitted, student, notebook):
    folder = submitted / student / "training_memory"
    folder.mkdir(parents=True)
    (folder / "exercises.ipynb").write_bytes(saved(notebook))
    return folder


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def state(folder):
    """What a folder holds: names, kinds, sizes and contents."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(status.st_mode) else None
        found[str(path.relative_to(folder))] = (status.st_mode, content)
    return found


class Class:
    """The class, graded once: its folders, how the command ended, and its tables."""

    def __init__(self, folder):
        self.submitted, self.out = folder / "submitted", folder / "out"
        for name, kind in DAMAGED.items():
            kind.write(self.submitted / name)
        for number in range(HONEST):
            hand_in(self.submitted, f"honest-{number}", honest(remark=f"honest {number}"))
        for student in ODD_IDS:
            hand_in(self.submitted, student, honest(remark=student))
        (self.submitted / "stray.ipynb").write_bytes(saved(honest()))
        (self.submitted / ".DS_Store").write_bytes(b"\0")
        self.elsewhere = folder / "elsewhere"
        self.scratch = folder / "scratch"
        self.elsewhere.mkdir()
        self.scratch.mkdir()
        self.before = state(self.submitted)
        self.course = state(ROOT / "source") | state(ROOT / "release")
        self.ended = run(self.submitted, self.out, cwd=self.elsewhere, env=self.environment())
        self.grades = {row["student_id"]: row for row in rows(self.out / "grades.csv")}
        self.checks = rows(self.out / "checks.csv")

    def environment(self):
        return environment(TMPDIR=str(self.scratch), HOME=str(self.scratch))

    @property
    def scores(self):
        expected = {name: kind.score for name, kind in DAMAGED.items()}
        return expected | dict.fromkeys([*ODD_IDS, *(f"honest-{number}" for number in range(HONEST))], FULL)


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    return Class(tmp_path_factory.mktemp("class"))


def test_every_submission_has_the_marks_that_its_answers_deserve(graded):
    given = {student: float(row["score"]) if row["score"] else None for student, row in graded.grades.items()}
    assert given == graded.scores
    assert len(DAMAGED) >= 45


def test_the_exit_status_and_the_list_name_what_could_not_be_graded(graded):
    assert graded.ended.returncode == 3, graded.ended.stderr
    refused = [student for student, score in graded.scores.items() if score is None]
    assert f"{len(refused) + 1} could not be graded:" in graded.ended.stdout
    for student in refused:
        (line,) = [line for line in graded.ended.stdout.split("\n") if line.startswith(f"  {student} could not be")]
        for told in DAMAGED[student].told:
            assert told in line
    assert "stray.ipynb could not be graded, because it lies in no student's folder" in graded.ended.stdout
    assert "Traceback" not in graded.ended.stderr + graded.ended.stdout


def test_the_table_shows_each_exercise_and_the_total(graded):
    lines = graded.ended.stdout.split("\n")
    assert lines[0].split() == ["student", "1", "2", "3", "4", "5", "of", "50"]
    by_student = {line.split()[0]: line.split()[1:] for line in lines[1 : lines.index("")]}
    assert by_student["honest-3"] == ["10", "10", "10", "10", "10", "50"]
    assert by_student["syntax_error_in_one_answer"] == ["4", "10", "10", "10", "10", "44"]
    for path in ("grades.csv", "checks.csv", "remarks.csv", "feedback"):
        assert str(graded.out / path) in graded.ended.stdout
    total = len(graded.scores)
    assert f"graded {total} of {total}" in graded.ended.stderr
    assert "s left" in graded.ended.stderr


def test_every_repair_and_all_trouble_is_in_the_remarks_as_on_the_page(graded):
    remarks = rows(graded.out / "remarks.csv")
    assert {row["kind"] for row in remarks} == {"repaired", "cut", "happened"}
    students = {row["student_id"] for row in remarks}
    assert f"\n{len(students)} of " in graded.ended.stdout
    assert not students & {"honest-3", "untouched"}
    said = {row["student_id"]: row["remark"] for row in remarks}
    assert "raised SyntaxError in line 1: def params_per_layer(h:" in said["syntax_error_in_one_answer"]
    # A page is cut after so many of a kind, the table is not.
    firsts = {(row["student_id"], row["kind"]): row for row in reversed(remarks)}
    for row in firsts.values():
        page = graded.out / "feedback" / row["student_id"] / "training_memory" / "exercises.html"
        assert row["remark"].removeprefix("'")[:500] in html.unescape(page.read_text("utf-8"))


def test_who_was_graded_before_and_handed_in_nothing_now_is_named(tmp_path):
    for folder, students in (("first", ("ann", "bob")), ("second", ("bob", "cleo"))):
        for student in students:
            hand_in(tmp_path / folder, student, honest())
        ended = run_here(tmp_path / folder, tmp_path / "out")
        assert ended.returncode == 0
        others = "\n1 more in grades.csv, who handed in nothing this time: ann.\n"
        assert (others in ended.stdout) == (folder == "second")
    assert len(rows(tmp_path / "out" / "grades.csv")) == 3


def test_grades_have_nbgraders_columns_and_no_score_where_there_is_none(graded):
    first = (graded.out / "grades.csv").read_text("utf-8").split("\n")[0]
    assert first == (
        "assignment,duedate,timestamp,student_id,last_name,first_name,email,"
        "raw_score,late_submission_penalty,score,max_score"
    )
    for student, score in graded.scores.items():
        row = graded.grades[student]
        assert None not in row
        assert row["max_score"] == "50.0"
        assert row["raw_score"] == row["score"] == ("" if score is None else str(score))


def test_checks_have_a_row_for_each_student_and_check(graded):
    with open(graded.out / "checks.csv", newline="", encoding="utf-8") as file:
        assert next(csv.reader(file)) == ["student_id", "exercise", "check", "score", "max_score", "message"]
    by_student = {}
    for row in graded.checks:
        assert None not in row
        by_student.setdefault(row["student_id"], []).append(row)
    assert set(by_student) == {student for student, score in graded.scores.items() if score is not None}
    names = [row["check"] for row in by_student["honest-0"]]
    assert len(names) == len(set(names)) == 21
    for student, own in by_student.items():
        assert [row["check"] for row in own] == names
        assert sum(float(row["score"]) for row in own) == graded.scores[student]
        assert sum(float(row["max_score"]) for row in own) == FULL
        for row in own:
            assert (row["message"] == "") or float(row["score"]) < float(row["max_score"]) or "remark" in row["message"]
    lost = {row["check"]: row["message"] for row in by_student["untouched"]}
    assert lost["check_best_k"] == "best_k: not written yet"


def test_the_gradebook_says_the_same(graded):
    from nbgrader.api import Gradebook, MissingEntry

    with Gradebook(f"sqlite:///{graded.out / 'gradebook.db'}", "trainmem") as gradebook:
        assert gradebook.find_assignment("training_memory").max_score == FULL
        assert {student.id for student in gradebook.students} == set(graded.scores)
        for student, score in graded.scores.items():
            if score is None:
                with pytest.raises(MissingEntry):
                    gradebook.find_submission("training_memory", student)
                continue
            submission = gradebook.find_submission("training_memory", student)
            assert submission.score == score
            assert not submission.needs_manual_grade
            (notebook,) = submission.notebooks
            assert len(notebook.grades) == 21
            assert len(notebook.comments) == len(ANSWERS)
        said = gradebook.find_comment("best_k", "exercises", "training_memory", "untouched").auto_comment
        assert said == "No response."
        assert gradebook.find_comment("best_k", "exercises", "training_memory", "honest-1").auto_comment is None


def test_each_student_has_a_page_and_each_repair_is_on_it(graded):
    from html import unescape

    for student, score in graded.scores.items():
        page = (graded.out / "feedback" / student / "training_memory" / "exercises.html").read_text("utf-8")
        text = unescape(page)
        assert f"<strong>{student}</strong>" in text
        assert len(page) < 60_000
        told = DAMAGED[student].told if student in DAMAGED else ()
        for sentence in told:
            assert sentence in text
        if score is None:
            assert "could not be graded, because" in text
            assert "Marks</h2>" not in text
        else:
            assert f'<td class="marks">{score:g} of 50</td>' in text


def test_the_autograded_notebooks_are_what_nbgrader_can_open(graded):
    import nbformat
    from nbgrader.nbgraderformat import MetadataValidator

    for student, score in graded.scores.items():
        path = graded.out / "autograded" / student / "training_memory" / "exercises.ipynb"
        if score is None:
            assert not path.exists()
            continue
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        MetadataValidator().validate_nb(notebook)


def test_nothing_was_written_outside_of_out(graded):
    assert state(graded.submitted) == graded.before
    assert state(ROOT / "source") | state(ROOT / "release") == graded.course
    assert list(graded.elsewhere.iterdir()) == []
    assert list(graded.scratch.iterdir()) == []
    assert not Path("/tmp/trainmem-escaped.ipynb").exists()
    assert {path.name for path in graded.out.iterdir()} == {
        ".grading.lock",
        "autograded",
        "checks.csv",
        "feedback",
        "gradebook.db",
        "gradebook.db.salt",
        "grades.csv",
        "remarks.csv",
        ".gitignore",
    }
    assert {path.parts[-3] for path in graded.out.rglob("exercises.html")} == set(graded.scores)


def test_the_salt_is_the_owners_alone_and_in_no_output(graded):
    salt = graded.out / "gradebook.db.salt"
    assert stat.S_IMODE(salt.stat().st_mode) == 0o600
    secret = salt.read_text().strip()
    assert len(bytes.fromhex(secret)) == 32
    for path in graded.out.rglob("*"):
        if path.is_file() and path != salt:
            data = path.read_bytes()
            assert secret.encode() not in data
            assert bytes.fromhex(secret) not in data
    assert secret not in graded.ended.stdout + graded.ended.stderr


def test_hidden_checks_are_nowhere_in_what_students_get(graded):
    from html import escape

    from trainmem.grading.assignment import load

    assignment = load(ROOT / "source" / "training_memory" / "exercises.ipynb")
    release = (ROOT / "release" / "training_memory" / "exercises.ipynb").read_text("utf-8")
    hidden = {line.strip() for check in assignment.checks for part in check.hidden for line in part.split("\n")}
    secret = {line for line in hidden if len(line) > 15 and line not in release}
    assert len(secret) > 50
    for path in [*graded.out.rglob("*.html"), *graded.out.rglob("*.csv"), *graded.out.rglob("*.ipynb")]:
        text = path.read_text("utf-8")
        assert not [line for line in secret if line in text or escape(line) in text]


def tables(out):
    return (out / "grades.csv").read_bytes(), (out / "checks.csv").read_bytes()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A few students of every outcome, and the tables of an undisturbed run."""
    folder = tmp_path_factory.mktemp("small")
    for number in range(8):
        hand_in(folder / "submitted", f"s{number}", honest(remark=str(number)))
    for name in ("empty_file", "untouched", "colab", "syntax_error_in_one_answer"):
        DAMAGED[name].write(folder / "submitted" / name)
    began = time.monotonic()
    assert run(folder / "submitted", folder / "out").returncode == 3
    return folder / "submitted", tables(folder / "out"), time.monotonic() - began


def test_grading_again_gives_the_same_and_nothing_twice(small, tmp_path):
    submitted, expected, _ = small
    for _ in range(2):
        assert run_here(submitted, tmp_path / "out").returncode == 3
        assert tables(tmp_path / "out") == expected
    with sqlite3.connect(tmp_path / "out" / "gradebook.db") as database:
        counts = [database.execute(f"select count(*) from {table}").fetchone()[0] for table in ("student", "grade")]
    assert counts == [12, 11 * 21]


def kill_and_run_again(small, out, seconds):
    submitted, expected, _ = small
    process = subprocess.Popen(
        command(submitted, out), env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()
    left = list(out.glob("*.csv")) if out.exists() else []
    assert not left or tables(out) == expected
    again = run_here(submitted, out)
    assert again.returncode == 3, again.stderr
    assert tables(out) == expected
    assert not list(out.rglob("*.partial"))


@pytest.mark.parametrize("moment", [0.45, 0.8])
def test_killed_and_started_again(small, tmp_path, moment):
    kill_and_run_again(small, tmp_path / "out", moment * small[2])


@pytest.mark.long
@pytest.mark.parametrize("number", range(10))
def test_killed_at_a_random_moment_and_started_again(small, tmp_path, number):
    for _ in range(2):  # killed twice, too
        kill_and_run_again(small, tmp_path / "out", random.Random(number).uniform(0, small[2]))


def test_no_worker_outlives_a_kill(small, tmp_path):
    submitted, _, seconds = small
    process = subprocess.Popen(
        command(submitted, tmp_path / "out"), env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(0.6 * seconds)
    workers = children(process.pid)
    assert workers
    process.kill()
    process.wait()
    deadline = time.monotonic() + 120  # a worker that has only just been started notices when it has loaded
    while any(running(worker) for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(running(worker) for worker in workers)


def children(pid):
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            child = int(path.parent.name)
            found += [child, *children(child)]
    return found


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_resubmission_replaces_the_mark_also_by_none(tmp_path):
    submitted, out = tmp_path / "submitted", tmp_path / "out"
    folder = hand_in(submitted, "ann", honest({"best_k": ANSWERS["best_k"]}))
    hand_in(submitted, "bea", honest())
    grades = []
    for notebook in (None, saved(honest()), b"", saved(damaged.blank())):
        if notebook is not None:
            (folder / "exercises.ipynb").write_bytes(notebook)
        status = run_here(submitted, out).returncode
        own = {row["student_id"]: row["score"] for row in rows(out / "grades.csv")}
        assert own["bea"] == "50.0"
        shown = len(list((out / "autograded" / "ann").rglob("*.ipynb")))
        checked = sum(row["student_id"] == "ann" for row in rows(out / "checks.csv"))
        grades.append((status, own["ann"], shown, checked))
    assert grades == [(0, "4.0", 1, 21), (0, "50.0", 1, 21), (3, "", 0, 0), (0, "0.0", 1, 21)]


def test_a_fault_of_our_own_stays_with_its_submission(tmp_path):
    """A worker that dies, and one that fails, on a certain submission: patched in by a site module of the workers."""
    submitted, out = tmp_path / "submitted", tmp_path / "out"
    for name in ("ann", "dies", "fails", "zoe"):
        hand_in(submitted, name, honest(remark=name))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if sys.argv[-1:] and '-m' in getattr(sys, 'orig_argv', []) and 'trainmem.grading.worker' in sys.orig_argv:\n"
        "    import trainmem.grading.salvage as salvage\n"
        "    whole = salvage.salvage\n"
        "    def faulty(place, edition):\n"
        "        if 'dies' in str(place): os._exit(9)\n"
        "        if 'fails' in str(place): raise ZeroDivisionError('ours')\n"
        "        return whole(place, edition)\n"
        "    salvage.salvage = faulty\n"
    )
    both = os.pathsep.join([str(ROOT), str(tmp_path / "site")])
    ended = run(submitted, out, env=environment(PYTHONPATH=both))
    assert ended.returncode == 3
    assert "dies could not be graded, because the grader's own process ended while it was at it" in ended.stdout
    assert "fails could not be graded, because the grader failed on it: ZeroDivisionError: ours" in ended.stdout
    own = {row["student_id"]: row["score"] for row in rows(out / "grades.csv")}
    assert own == {"ann": "50.0", "dies": "", "fails": "", "zoe": "50.0"}


def test_without_a_sandbox_nothing_is_graded_and_one_sentence_says_why(tmp_path):
    hand_in(tmp_path / "submitted", "ann", honest())
    (tmp_path / "bin").mkdir()
    for program in ("alembic", "python"):
        (tmp_path / "bin" / program).symlink_to(Path(sys.executable).parent / program)
    ended = run(tmp_path / "submitted", tmp_path / "out", env=environment(PATH=str(tmp_path / "bin")))
    assert ended.returncode == 1
    assert "bubblewrap" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.strip().split("\n")) == 1
    assert not (tmp_path / "out" / "grades.csv").exists()


@pytest.mark.parametrize(
    ("submitted", "out", "told"),
    [
        ("nowhere", "out", "is no folder"),
        ("empty", "out", "holds no student's folder"),
        ("class", "class/out", "the results need a folder of their own"),
        ("class", "class", "the results need a folder of their own"),
    ],
)
def test_what_is_asked_wrongly_is_said_in_one_line(tmp_path, submitted, out, told):
    (tmp_path / "empty").mkdir()
    hand_in(tmp_path / "class", "ann", honest())
    ended = run_here(tmp_path / submitted, tmp_path / out)
    assert ended.returncode == 1
    assert told in ended.stderr
    assert len(ended.stderr.strip().split("\n")) == 1


def test_two_gradings_never_write_to_one_place(tmp_path):
    import fcntl

    hand_in(tmp_path / "submitted", "ann", honest())
    (tmp_path / "out").mkdir()
    with open(tmp_path / "out" / ".grading.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ended = run_here(tmp_path / "submitted", tmp_path / "out")
    assert ended.returncode == 1
    assert "another grading is writing to" in ended.stderr


@pytest.mark.parametrize("text", ["=1+2", "+1", "-1", "@x", "\t=1"])
def test_no_message_is_a_formula(text):
    assert not_a_formula(text) == "'" + text
    assert not_a_formula("best_k: " + text) == "best_k: " + text
    table = io.StringIO()
    csv.writer(table).writerow([not_a_formula(text)])
    assert next(csv.reader(io.StringIO(table.getvalue())))[0][0] == "'"


def test_a_submission_of_a_student_without_the_assignments_folder(tmp_path):
    """Where nbgrader's own layout was not kept, one notebook alone can still be meant."""
    folder = tmp_path / "submitted" / "ann"
    folder.mkdir(parents=True)
    notebook = honest()
    cell_of(notebook, "best_k")["source"] = STUBS["best_k"]
    (folder / "homework.ipynb").write_bytes(saved(notebook))
    assert run_here(tmp_path / "submitted", tmp_path / "out").returncode == 0
    assert rows(tmp_path / "out" / "grades.csv")[0]["score"] == "46.0"
