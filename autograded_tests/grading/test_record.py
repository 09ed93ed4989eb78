"""The gradebook: nbgrader's own, one state whatever is graded how often, an instructor's marks kept."""

import csv
import sqlite3
import stat
from datetime import datetime

import pytest
from nbgrader.api import Gradebook, MissingEntry

from autograded_tests.grading import damaged
from autograded_tests.notebooks import ROOT
from trainmem.course.editions import course_config
from trainmem.grading.edition import course_stub, read_edition
from trainmem.grading.export import COLUMNS, grade_rows, write_grades
from trainmem.grading.publish import submitted_at
from trainmem.grading.record import Record, gradebook_url
from trainmem.grading.salt import private_salt

NAMES = ("training_memory", "exercises", "trainmem")


@pytest.fixture(scope="module")
def edition():
    return read_edition(ROOT / "source" / "training_memory" / "exercises.ipynb", course_stub(course_config()))


@pytest.fixture(scope="module")
def made(edition, tmp_path_factory):
    """An empty gradebook, made once."""
    path = tmp_path_factory.mktemp("gradebook") / "gradebook.db"
    Record(gradebook_url(path), edition, *NAMES, course_config()).close()
    return path


@pytest.fixture
def database(made, tmp_path):
    path = tmp_path / "gradebook.db"
    path.write_bytes(made.read_bytes())
    return path


@pytest.fixture
def record(database, edition):
    with Record(gradebook_url(database), edition, *NAMES, course_config()) as record:
        yield record


def full(edition):
    return {check.name: check.points for check in edition.assignment.checks}


def contents(database):
    """All rows but their random ids, by table."""
    with sqlite3.connect(database) as connection:
        grades = connection.execute(
            "select student_id, base_cell.name, auto_score, manual_score, needs_manual_grade from grade "
            "join base_cell on cell_id = base_cell.id "
            "join submitted_notebook on grade.notebook_id = submitted_notebook.id "
            "join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id order by 1, 2"
        ).fetchall()
        comments = connection.execute("select auto_comment, manual_comment from comment order by cell_id").fetchall()
        counts = [
            connection.execute(f"select count(*) from {table}").fetchone()
            for table in ("student", "submitted_assignment", "submitted_notebook", "grade", "comment")
        ]
    return grades, comments, counts


def test_the_assignment_is_what_generate_assignment_records(made, tmp_path):
    """Cell by cell, against nbgrader's own command on the same source."""
    import shutil

    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory

    shutil.copytree(ROOT / "source", tmp_path / "source")
    config = course_config()
    config.CourseDirectory.root = str(tmp_path)
    config.CourseDirectory.assignment_id = "training_memory"
    GenerateAssignment(coursedir=CourseDirectory(config=config), config=config).start()

    def recorded(path):
        with sqlite3.connect(path) as connection:
            cells = "select name, cell_type, locked, source, checksum from source_cell order by name"
            marks = (
                "select name, type, max_score, grade_cells.cell_type from base_cell left join grade_cells using (id)"
            )
            versions = "select version_num from alembic_version"
            tables = connection.execute("select sql from sqlite_master where sql is not null").fetchall()
            made = {"".join(sql.split()) for (sql,) in tables}
            return made, [sorted(map(str, connection.execute(query))) for query in (cells, marks, versions)]

    assert recorded(made) == recorded(tmp_path / "gradebook.db")


def test_a_grade_is_what_nbgrader_reads(record, database, edition):
    scores = full(edition) | {"check_best_k": 0.0}
    standing = record.put("ann", scores, ["best_k"], datetime(2026, 3, 1, 12))
    assert standing.total == 46
    assert standing.scores == scores
    with Gradebook(gradebook_url(database), "trainmem") as gradebook:
        submission = gradebook.find_submission("training_memory", "ann")
        assert (submission.score, submission.max_score, submission.code_score) == (46, 50, 46)
        assert submission.timestamp == datetime(2026, 3, 1, 12)
        assert not submission.needs_manual_grade
        (notebook,) = submission.notebooks
        assert notebook.failed_tests
        assert {grade.name: grade.auto_score for grade in notebook.grades} == scores
        assert {c.name: c.auto_comment for c in notebook.comments if c.auto_comment} == {"best_k": "No response."}
        assert gradebook.submission_dicts("training_memory")[0]["score"] == 46
        assert gradebook.notebook_submission_dicts("exercises", "training_memory")[0]["student"] == "ann"


def test_the_same_again_changes_nothing(record, database, edition):
    scores = full(edition)
    record.put("ann", scores, [], None)
    before = contents(database)
    record.put("ann", scores, [], None)
    assert contents(database) == before
    assert before[2] == [(1,), (1,), (1,), (21,), (9,)]


def test_an_instructors_marks_and_words_stay(record, database, edition):
    record.put("ann", full(edition) | {"check_best_k": 0.0}, [], None)
    with Gradebook(gradebook_url(database), "trainmem") as gradebook:
        grade = gradebook.find_grade("check_best_k", "exercises", "training_memory", "ann")
        grade.manual_score, grade.extra_credit = 3.0, 0.5
        gradebook.find_comment("best_k", "exercises", "training_memory", "ann").manual_comment = "Nearly."
        gradebook.db.commit()
    for _ in range(2):
        standing = record.put("ann", full(edition) | {"check_best_k": 0.0}, ["best_k"], None)
        assert standing.total == 49.5
        assert standing.comments["best_k"] == "Nearly."
    with Gradebook(gradebook_url(database), "trainmem") as gradebook:
        assert gradebook.find_grade("check_best_k", "exercises", "training_memory", "ann").needs_manual_grade
        assert gradebook.find_submission("training_memory", "ann").score == 49.5
    record.put_ungraded("ann")
    assert record.standing("ann").scores == {"check_best_k": 3.5}
    (row,) = grade_rows(record.gradebook)
    assert row[7:10] == ("", "", "")


def test_what_could_not_be_graded_has_no_score(record, database, edition):
    record.put("ann", full(edition), [], None)
    record.put_ungraded("ann")
    record.put_ungraded("bob")
    assert [row[3:] for row in grade_rows(record.gradebook)] == [
        ("ann", "", "", "", "", "", "", 50.0),
        ("bob", "", "", "", "", "", "", 50.0),
    ]
    with Gradebook(gradebook_url(database), "trainmem") as gradebook:
        assert gradebook.find_submission("training_memory", "ann").needs_manual_grade
        with pytest.raises(MissingEntry):
            gradebook.find_submission("training_memory", "bob")
    record.put("ann", full(edition), [], None)
    assert next(grade_rows(record.gradebook))[7:10] == (50.0, 0.0, 50.0)


def test_a_failure_in_the_middle_leaves_what_was_there(record, database, edition, monkeypatch):
    record.put("ann", full(edition), [], None)
    before = contents(database)
    monkeypatch.setattr(Record, "_penalty", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        record.put("ann", dict.fromkeys(full(edition), 0.0), [], None)
    with pytest.raises(ZeroDivisionError):
        record.put("bob", full(edition), [], None)
    assert contents(database) == before
    with pytest.raises(KeyError):
        record.put("bob", {}, [], None)
    assert contents(database) == before


def test_late_submissions_lose_what_the_courses_plugin_says(database, edition):
    config = course_config()
    config.LateSubmissionPlugin.penalty_method = "zero"
    with Gradebook(gradebook_url(database), "trainmem") as gradebook:
        gradebook.update_or_create_assignment("training_memory", duedate="2026-03-01 12:00 UTC")
    with Record(gradebook_url(database), edition, *NAMES, config) as record:
        assert record.put("ann", full(edition), [], datetime(2026, 3, 1, 12)).total == 50
        late = record.put("bob", full(edition), [], datetime(2026, 3, 1, 12, 1))
        assert (late.penalty, late.total) == (50, 0)
        assert record.standing("bob") == late
        rows = {row[3]: row for row in grade_rows(record.gradebook)}
        assert rows["bob"][7:10] == (50.0, 50.0, 0.0)
        assert record.put("bob", full(edition), [], datetime(2026, 3, 1, 11)).total == 50


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-03-01 12:30:00.5 UTC", datetime(2026, 3, 1, 12, 30, 0, 500_000)),
        ("2026-03-01 12:30:00 +0200", None),
        ("2026-03-01T12:30:00+02:00\n", datetime(2026, 3, 1, 10, 30)),
        ("", None),
        ("yesterday", None),
        ("\udcff", None),
        ("9" * 300, None),
    ],
)
def test_times_are_nbgraders(tmp_path, text, time):
    (tmp_path / "timestamp.txt").write_bytes(text.encode("utf-8", "surrogateescape"))
    if text == "2026-03-01 12:30:00 +0200":  # nbgrader takes the offset for seconds; so do we, and never fail
        assert submitted_at(tmp_path) is not None
    else:
        assert submitted_at(tmp_path) == time


def test_a_link_is_no_timestamp(tmp_path):
    (tmp_path / "elsewhere").write_text("2026-03-01 12:30:00 UTC")
    (tmp_path / "timestamp.txt").symlink_to(tmp_path / "elsewhere")
    assert submitted_at(tmp_path) is None
    assert submitted_at(tmp_path / "nowhere") is None


def test_another_edition_is_recorded_where_nothing_was_handed_in_and_refused_where_it_was(database, edition, tmp_path):
    import json

    source = json.loads((ROOT / "source" / "training_memory" / "exercises.ipynb").read_text("utf-8"))
    cell = next(cell for cell in source["cells"] if cell["id"] == "check_best_k")
    cell["metadata"]["nbgrader"]["points"] = 5
    (tmp_path / "points.ipynb").write_text(json.dumps(source))
    source["cells"].remove(cell)
    (tmp_path / "fewer.ipynb").write_text(json.dumps(source))
    with Record(gradebook_url(database), read_edition(tmp_path / "fewer.ipynb"), *NAMES, course_config()) as record:
        assert record.gradebook.find_assignment("training_memory").max_score == 46
    with Record(gradebook_url(database), read_edition(tmp_path / "points.ipynb"), *NAMES, course_config()) as record:
        assert record.gradebook.find_assignment("training_memory").max_score == 51
        record.put("ann", full(edition), [], None)
    with Record(gradebook_url(database), edition, *NAMES, course_config()) as record:
        assert record.gradebook.find_assignment("training_memory").max_score == 50
        assert record.standing("ann").total == 50
    with pytest.raises(RuntimeError, match="Cannot add or remove cells"):
        Record(gradebook_url(database), read_edition(tmp_path / "fewer.ipynb"), *NAMES, course_config())


def test_a_gradebook_whose_making_was_interrupted_is_made_anew(edition, tmp_path):
    path = tmp_path / "gradebook.db"
    path.with_name("gradebook.db.partial").write_bytes(b"half a database")
    with Record(gradebook_url(path), edition, *NAMES, course_config()) as record:
        record.put("ann", full(edition), [], None)
    assert [item.name for item in tmp_path.iterdir()] == ["gradebook.db"]


def test_the_salt_is_made_once_for_its_owner_alone(tmp_path):
    database = tmp_path / "gradebook.db"
    salt = private_salt(database)
    assert len(salt) == 32
    assert private_salt(database) == salt != private_salt(tmp_path / "other.db")
    path = tmp_path / "gradebook.db.salt"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for wrong in ("", "salt", "ab"):
        path.write_text(wrong)
        with pytest.raises(ValueError, match="holds no salt"):
            private_salt(database)
    assert {item.name for item in tmp_path.iterdir()} == {"gradebook.db.salt", "other.db.salt"}


def test_the_table_is_csv_whatever_the_ids_are(record, edition, tmp_path):
    ids = ["Doe, Jane", '"', "a\nb", "-x", "007", "Ü", "=1"]
    for student in ids:
        record.put(student, full(edition), [], None)
    write_grades(tmp_path / "grades.csv", record.gradebook)
    with open(tmp_path / "grades.csv", newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert tuple(header) == COLUMNS
    assert sorted(row[3] for row in rows) == sorted(ids)
    assert all(len(row) == len(COLUMNS) for row in rows)
    assert float(rows[0][9]) == damaged.FULL
    write_grades(tmp_path / "some.csv", record.gradebook, students=["Ü"], assignments=["training_memory"])
    assert len((tmp_path / "some.csv").read_text("utf-8").splitlines()) == 2
    write_grades(tmp_path / "some.csv", record.gradebook, assignments=["another"])
    assert len((tmp_path / "some.csv").read_text("utf-8").splitlines()) == 1
