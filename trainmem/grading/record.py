"""nbgrader's gradebook: one writer, one transaction a submission, the same result however often it is graded.

What is written are nbgrader's own tables by its own models, so that formgrader, its export and its feedback read them;
`Gradebook`'s methods commit several times a submission and cost more than the grading itself.
"""

import logging
import os
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import nbformat
from alembic.script import ScriptDirectory
from nbgrader.api import (
    Assignment,
    Base,
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    GradeCell,
    MissingEntry,
    Notebook,
    SourceCell,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
    new_uuid,
)
from nbgrader.dbutil import ALEMBIC_DIR
from nbgrader.plugins import LateSubmissionPlugin
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    ClearOutput,
    ClearSolutions,
    ComputeChecksums,
    LockCells,
    SaveCells,
)
from sqlalchemy import Column, MetaData, String, Table, bindparam, create_engine, insert, select, update
from traitlets.config import Config

from trainmem.grading.edition import Edition

_LOG = logging.getLogger(__name__)
NO_ANSWER = "No response."  # nbgrader's own words


@dataclass(frozen=True)
class Standing:
    """A submission as the gradebook has it. `scores`: of each check, an instructor's before ours; `comments`: of each
    answer. `penalty`: points off for lateness.
    """

    scores: Mapping[str, float]
    comments: Mapping[str, str]
    penalty: float

    @property
    def total(self) -> float:
        """The score after the penalty, never below 0."""
        return max(0.0, sum(self.scores.values()) - self.penalty)


def gradebook_url(path: Path) -> str:
    """Return the URL of an SQLite gradebook."""
    return f"sqlite:///{path.resolve()}"


def _make_tables(url: str) -> None:
    """Make nbgrader's tables as it makes them itself, which starts a process of some seconds for their version."""
    engine = create_engine(url)
    with engine.begin() as connection:
        Base.metadata.create_all(connection)
        version = Table("alembic_version", MetaData(), Column("version_num", String(32), nullable=False))
        version.create(connection)
        scripts = ScriptDirectory(ALEMBIC_DIR)
        connection.execute(insert(version), {"version_num": scripts.get_current_head()})
    engine.dispose()


class Record:
    """The gradebook at `url`, with the assignment in it as the edition has it. Open it once, for many submissions.

    Raises RuntimeError where the gradebook's submissions belong to an edition with other cells.
    """

    def __init__(
        self, url: str, edition: Edition, assignment: str, notebook: str, course: str, config: Config | None = None
    ) -> None:
        self._edition, self._assignment, self._notebook, self._course = edition, assignment, notebook, course
        self._config = config or Config()
        path = Path(url.removeprefix("sqlite:///"))
        if url.startswith("sqlite:///") and not path.exists():
            # Whoever finds a gradebook finds a whole one, at whatever moment its making is interrupted.
            partial = path.with_name(path.name + ".partial")
            partial.unlink(missing_ok=True)
            _make_tables(gradebook_url(partial))
            with Gradebook(gradebook_url(partial), course) as made:
                self._ensure_assignment(made, gradebook_url(partial))
            os.replace(partial, path)
        self._gradebook = Gradebook(url, course)
        self._ensure_assignment(self._gradebook, url)
        self._db = self._gradebook.db
        self._read_names()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._gradebook.close()

    @property
    def gradebook(self) -> Gradebook:
        return self._gradebook

    def _ensure_assignment(self, gradebook: Gradebook, url: str) -> None:
        wanted = nbformat.read(self._edition.source, as_version=4)
        for preprocessor in (LockCells, ClearSolutions, ClearOutput, CheckCellMetadata, ComputeChecksums):
            wanted, _ = preprocessor(config=self._config, log=_LOG).preprocess(wanted, {})
        sources = {cell.metadata.nbgrader.grade_id: cell.metadata.nbgrader.checksum for cell in wanted.cells}
        points = {check.name: check.points for check in self._edition.assignment.checks}
        try:
            there = gradebook.find_notebook(self._notebook, self._assignment)
        except MissingEntry:
            gradebook.update_or_create_assignment(self._assignment)
        else:
            columns = ((SourceCell, SourceCell.checksum), (GradeCell, GradeCell.max_score))
            had = [
                dict(gradebook.db.execute(select(table.name, value).where(table.notebook_id == there.id)).all())
                for table, value in columns
            ]
            if had == [sources, points]:
                return
        gradebook.db.rollback()  # SaveCells writes by a connection of its own
        about = {"notebook": self._notebook, "assignment": self._assignment, "db_url": url}
        SaveCells(config=self._config, log=_LOG).preprocess(wanted, {"nbgrader": about})
        gradebook.db.expire_all()

    def _read_names(self) -> None:
        """Read what every submission's rows refer to."""
        row = self._db.execute(
            select(Assignment.id, Assignment.duedate, Notebook.id)
            .join(Notebook, Notebook.assignment_id == Assignment.id)
            .where(Assignment.name == self._assignment, Notebook.name == self._notebook)
        ).one()
        self._assignment_id, self._duedate, self._notebook_id = row
        cells = self._db.execute(
            select(BaseCell.id, BaseCell.name, BaseCell.type).where(BaseCell.notebook_id == self._notebook_id)
        ).all()
        self._grade_cells = {name: key for key, name, kind in cells if kind == "GradeCell"}
        self._comment_cells = {name: key for key, name, kind in cells if kind == "SolutionCell"}
        self._db.rollback()

    def put(
        self,
        student: str,
        scores: Mapping[str, float],
        unwritten: Iterable[str],
        timestamp: datetime | None,
        *,
        unchanged: bool = False,
    ) -> Standing:
        """Record a graded submission, in place of what was recorded for the student before; return how it stands then.

        An instructor's own scores and comments stay; unless the submission is `unchanged` since they were given, they
        are marked as to be looked at again. `timestamp` is in UTC, without a time zone.
        """
        blank = set(unwritten)
        with self._transaction():
            notebook, submission = self._rows(student)
            if timestamp is not None:
                self._update(SubmittedAssignment, submission, timestamp=timestamp)
            self._fill(
                Grade, notebook, {cell: {"auto_score": scores[name]} for name, cell in self._grade_cells.items()}
            )
            comments = {
                cell: {"auto_comment": NO_ANSWER if name in blank else None}
                for name, cell in self._comment_cells.items()
            }
            self._fill(Comment, notebook, comments)
            if not unchanged:
                self._db.execute(
                    update(Grade.__table__)
                    .where(Grade.notebook_id == notebook)
                    .values(needs_manual_grade=Grade.manual_score.is_not(None))
                )
            standing = self._standing(notebook)
            penalty = self._penalty(student, submission, sum(standing.scores.values()))
            self._update(SubmittedNotebook, notebook, late_submission_penalty=penalty)
        return Standing(standing.scores, standing.comments, penalty or 0.0)

    def put_ungraded(self, student: str) -> None:
        """Record that a student's submission could not be graded: no score of ours stays, an instructor's does."""
        with self._transaction():
            found = self._find(student)
            if found is None:
                self._ensure_student(student)
                return
            notebook, _ = found
            self._update(SubmittedNotebook, notebook, late_submission_penalty=None)
            self._db.execute(
                update(Grade.__table__)
                .where(Grade.notebook_id == notebook)
                .values(auto_score=None, needs_manual_grade=True)
            )
            self._db.execute(update(Comment.__table__).where(Comment.notebook_id == notebook).values(auto_comment=None))

    def students(self) -> set[str]:
        """Return the students whom the gradebook knows."""
        with self._transaction():
            return set(self._db.execute(select(Student.id)).scalars())

    def standing(self, student: str) -> Standing | None:
        """Return how a student's submission stands, or None where there is none."""
        with self._transaction():
            found = self._find(student)
            if found is None:
                return None
            standing = self._standing(found[0])
            penalty = self._db.execute(
                select(SubmittedNotebook.late_submission_penalty).where(SubmittedNotebook.id == found[0])
            ).scalar()
            return Standing(standing.scores, standing.comments, penalty or 0.0)

    @contextmanager
    def _transaction(self) -> Any:
        try:
            yield
            self._db.commit()
        except BaseException:
            self._db.rollback()
            raise

    def _find(self, student: str) -> tuple[str, str] | None:
        row = self._db.execute(
            select(SubmittedNotebook.id, SubmittedAssignment.id)
            .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
            .where(
                SubmittedAssignment.assignment_id == self._assignment_id,
                SubmittedAssignment.student_id == student,
                SubmittedNotebook.notebook_id == self._notebook_id,
            )
        ).one_or_none()
        return None if row is None else (row[0], row[1])

    def _rows(self, student: str) -> tuple[str, str]:
        """Return the ids of a student's notebook and submission, which are made where there are none."""
        found = self._find(student)
        if found is not None:
            return found
        self._ensure_student(student)
        submission = self._db.execute(
            select(SubmittedAssignment.id).where(
                SubmittedAssignment.assignment_id == self._assignment_id, SubmittedAssignment.student_id == student
            )
        ).scalar()
        if submission is None:
            submission = new_uuid()
            row = {"id": submission, "assignment_id": self._assignment_id, "student_id": student}
            self._db.execute(insert(SubmittedAssignment.__table__), row)
        notebook = new_uuid()
        row = {"id": notebook, "assignment_id": submission, "notebook_id": self._notebook_id, "flagged": False}
        self._db.execute(insert(SubmittedNotebook.__table__), row)
        return notebook, submission

    def _ensure_student(self, student: str) -> None:
        if self._db.execute(select(Student.id).where(Student.id == student)).scalar() is None:
            self._db.execute(insert(Student.__table__), {"id": student})

    def _fill(self, table: Any, notebook: str, values: Mapping[str, Mapping[str, Any]]) -> None:
        """Give the rows of a notebook, one a cell, new values; make those that are missing."""
        there = set(self._db.execute(select(table.cell_id).where(table.notebook_id == notebook)).scalars())
        new = [
            {"id": new_uuid(), "cell_id": cell, "notebook_id": notebook, **row}
            for cell, row in values.items()
            if cell not in there
        ]
        old = [{"the_cell": cell, **row} for cell, row in values.items() if cell in there]
        if new:
            self._db.execute(insert(table.__table__), new)
        if old:
            where = (table.notebook_id == notebook, table.cell_id == bindparam("the_cell"))
            self._db.connection().execute(update(table.__table__).where(*where), old)

    def _update(self, table: Any, key: str, **values: Any) -> None:
        self._db.execute(update(table.__table__).where(table.id == key).values(**values))

    def _standing(self, notebook: str) -> Standing:
        columns = (BaseCell.name, Grade.auto_score, Grade.manual_score, Grade.extra_credit)
        graded = self._db.execute(
            select(*columns).join(BaseCell, BaseCell.id == Grade.cell_id).where(Grade.notebook_id == notebook)
        )
        scores = {
            name: (auto if manual is None else manual) + (extra or 0.0)
            for name, auto, manual, extra in graded
            if auto is not None or manual is not None
        }
        said = self._db.execute(
            select(BaseCell.name, Comment.auto_comment, Comment.manual_comment)
            .join(BaseCell, BaseCell.id == Comment.cell_id)
            .where(Comment.notebook_id == notebook)
        )
        comments = {name: manual or auto for name, auto, manual in said if manual or auto}
        return Standing(scores, comments, 0.0)

    def _penalty(self, student: str, submission: str, score: float) -> float | None:
        """Return what the course's plugin takes off a late submission, as nbgrader's own preprocessor bounds it."""
        if self._duedate is None:
            return None
        timestamp, extension = self._db.execute(
            select(SubmittedAssignment.timestamp, SubmittedAssignment.extension).where(
                SubmittedAssignment.id == submission
            )
        ).one()
        due = self._duedate + extension if extension is not None else self._duedate
        if timestamp is None or timestamp <= due:
            return None
        plugin_class = AssignLatePenalties(config=self._config).plugin_class
        plugin: LateSubmissionPlugin = plugin_class(config=self._config)
        penalty = plugin.late_submission_penalty(student, score, (timestamp - due).total_seconds())
        return None if penalty is None else min(max(penalty, 0.0), score)
