"""Grades as a table: nbgrader's columns, quoted as CSV wants it, and no score where nobody has given one."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nbgrader.api import Assignment, Grade, Gradebook, Student, SubmittedAssignment, SubmittedNotebook
from nbgrader.plugins import ExportPlugin
from sqlalchemy import func, or_, select

COLUMNS = (
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    "last_name",
    "first_name",
    "email",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
)


def grade_rows(
    gradebook: Gradebook, assignments: Sequence[str] = (), students: Sequence[str] = ()
) -> Iterator[tuple[Any, ...]]:
    """Yield a row of COLUMNS for each assignment and student, all of them where none are named.

    A student without a submission, or with one that nobody could grade, has empty scores, not zeros.
    """
    db = gradebook.db
    given = func.coalesce(Grade.manual_score, Grade.auto_score)
    marks = (
        select(
            SubmittedNotebook.assignment_id.label("submission"),
            func.sum(given + func.coalesce(Grade.extra_credit, 0.0)).label("score"),
            func.count().label("cells"),
            func.count(given).label("given"),
        )
        .join(SubmittedNotebook, SubmittedNotebook.id == Grade.notebook_id)
        .group_by(SubmittedNotebook.assignment_id)
        .subquery()
    )
    penalties = (
        select(
            SubmittedNotebook.assignment_id.label("submission"),
            func.coalesce(func.sum(SubmittedNotebook.late_submission_penalty), 0.0).label("penalty"),
        )
        .group_by(SubmittedNotebook.assignment_id)
        .subquery()
    )
    for assignment in db.execute(select(Assignment).order_by(Assignment.name)).scalars().all():
        if assignments and assignment.name not in assignments:
            continue
        query = (
            select(
                Student.id,
                Student.last_name,
                Student.first_name,
                Student.email,
                SubmittedAssignment.timestamp,
                marks.c.score,
                penalties.c.penalty,
                or_(marks.c.cells.is_(None), marks.c.cells > marks.c.given),
            )
            .outerjoin(
                SubmittedAssignment,
                (SubmittedAssignment.student_id == Student.id) & (SubmittedAssignment.assignment_id == assignment.id),
            )
            .outerjoin(marks, marks.c.submission == SubmittedAssignment.id)
            .outerjoin(penalties, penalties.c.submission == SubmittedAssignment.id)
            .order_by(Student.last_name, Student.first_name, Student.id)
        )
        for student, last, first, email, timestamp, score, penalty, open_ in db.execute(query):
            if students and student not in students:
                continue
            scores = ("", "", "") if open_ else (score, penalty, max(0.0, score - penalty))
            row = (assignment.name, assignment.duedate, timestamp, student, last, first, email, *scores)
            yield tuple("" if value is None else value for value in (*row, assignment.max_score))


def write_grades(
    path: Path, gradebook: Gradebook, assignments: Sequence[str] = (), students: Sequence[str] = ()
) -> None:
    """Write the grades to `path`, whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    with open(partial, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        table.writerows(grade_rows(gradebook, assignments, students))
    partial.replace(path)


class QuotedExport(ExportPlugin):
    """What `nbgrader export` runs in this course: nbgrader's own writes ids with commas as two columns, and 0.0 for
    what could not be graded.
    """

    def export(self, gradebook: Gradebook) -> None:
        """Write the grades to the file that `--to` names, `grades.csv` by default."""
        path = Path(self.to or "grades.csv")
        self.log.info("Exporting grades to %s", path)
        write_grades(path, gradebook, [str(item) for item in self.assignment], [str(item) for item in self.student])
