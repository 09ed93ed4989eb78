"""nbgrader's own commands and formgrader's buttons, graded by this package.

nbgrader makes its converters by their class: `nbgrader autograde` and `generate_feedback` in their apps, formgrader in
its API. `install` puts ours in each of these places; it is called by nbgrader_config.py, which every one of them reads
first. Whoever has read the configuration but not got our classes meets `NeverStock`, which stops stock grading.
"""

import fnmatch
import json
import os
from pathlib import Path
from typing import Any

import nbgrader.apps.api
import nbgrader.apps.autogradeapp
import nbgrader.apps.generatefeedbackapp
import nbgrader.converters
from nbgrader.converters import Autograde, GenerateFeedback, NbGraderException
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Enum, Integer

from trainmem.course.place import NOTEBOOK
from trainmem.grading.edition import Edition, course_stub, read_edition
from trainmem.grading.limits import Limits
from trainmem.grading.outcome import Job, Ungraded
from trainmem.grading.pool import Workers, cores
from trainmem.grading.publish import (
    is_unchanged,
    page,
    refusal,
    remove_autograded,
    submitted_at,
    write_autograded,
    write_whole,
)
from trainmem.grading.record import Record
from trainmem.grading.salt import private_salt
from trainmem.grading.sandbox import SandboxUnavailable
from trainmem.grading.worker import Setup


class NeverStock(NbGraderPreprocessor):
    """Stands first among stock nbgrader's preprocessors, and lets nothing pass."""

    def preprocess(self, nb: Any, resources: Any) -> Any:
        """Refuse."""
        raise NbGraderException(
            "this course's submissions are graded in a sandbox, and nbgrader's own Autograde was asked to run them: "
            "start it where nbgrader_config.py can import trainmem"
        )


class _OfTheCourse:
    """What both converters know of the course that they work in."""

    def _edition(self: Any) -> Edition:
        assignment = self.coursedir.assignment_id
        folder = Path(self.coursedir.format_path(self.coursedir.source_directory, ".", assignment))
        try:
            return read_edition(folder / f"{NOTEBOOK}.ipynb", course_stub(self.config))
        except ValueError as error:
            raise self._failed(f"{assignment} cannot be graded: {error}") from error

    def _record(self: Any, edition: Edition) -> Record:
        directory = self.coursedir
        try:
            course = directory.course_id
            return Record(directory.db_url, edition, directory.assignment_id, NOTEBOOK, course, self.config)
        except RuntimeError as error:
            raise self._failed(str(error)) from error

    def _page(self: Any, student: str) -> Path:
        """Return where a student's page is, or is to be."""
        directory = self.coursedir
        folder = directory.format_path(directory.feedback_directory, student, directory.assignment_id)
        return Path(folder, f"{NOTEBOOK}.html")

    def _failed(self: Any, sentence: str) -> NbGraderException:
        self.log.error(sentence)
        return NbGraderException(sentence)

    def _folders(self: Any) -> dict[str, Path]:
        """Return the folders that the command is about, by student, whatever they hold."""
        directory = self.coursedir
        anybody = Path(directory.format_path(self._input_directory, "x", directory.assignment_id))
        if anybody.parent.name != "x":
            raise self._failed("CourseDirectory.directory_structure must end in {student_id}/{assignment_id}")
        students = anybody.parent.parent
        excluded = directory.student_id_exclude.split(",")
        found: dict[str, Path] = {}
        for entry in sorted(students.iterdir()) if students.is_dir() else []:
            wanted = entry.name == directory.student_id or fnmatch.fnmatchcase(entry.name, directory.student_id)
            folder = entry / directory.assignment_id
            if wanted and entry.name not in excluded and os.path.lexists(folder):
                found[entry.name] = folder
        if not found:
            raise self._failed(f"Nothing was handed in that matches {students}/{directory.student_id}")
        return found


class SandboxedAutograde(_OfTheCourse, Autograde):
    """nbgrader's Autograde, but what is run is what could be salvaged, in the sandbox, and nothing is a silent zero."""

    sandbox = Enum(
        ("bubblewrap", "none"),
        "bubblewrap",
        help='What students\' code runs in. "none" only on a machine that was made for one submission.',
    ).tag(config=True)
    workers = Integer(0, help="How many submissions at once; 0: as many as there are cores.").tag(config=True)

    def start(self) -> None:
        """Grade the submissions that are asked for, those too that were graded before: another may lie in the place of
        one, and the same one gets the same marks. nbgrader itself skips them, and a student keeps a stale mark.

        Raises NbGraderException, after all others have been graded, where one could not be.
        """
        folders = self._folders()
        edition = self._edition()
        with self._record(edition) as record:
            jobs = [Job(student, folder) for student, folder in folders.items()]
            self._grade(jobs, folders, edition, record)

    def _grade(self, jobs: list[Job], folders: dict[str, Path], edition: Edition, record: Record) -> None:
        directory = self.coursedir
        url = directory.db_url.removeprefix("sqlite:///")
        database = Path(url) if url != directory.db_url else Path(directory.root, "gradebook.db")
        hidden = (Path(directory.root), database.parent, *{folder.parent.parent for folder in folders.values()})
        setup = Setup(edition, private_salt(database), self.sandbox, Limits(), hidden)
        count = min(self.workers or len(cores()), len(jobs))
        ungraded: list[Ungraded] = []
        try:
            with Workers(setup, count) as pool:
                for outcome in pool.grade(jobs):
                    folder = Path(self._format_dest(directory.assignment_id, outcome.student))
                    if isinstance(outcome, Ungraded):
                        remove_autograded(folder, NOTEBOOK)
                        record.put_ungraded(outcome.student)
                        # Without an autograded notebook generate_feedback knows nothing of the student.
                        text = refusal(outcome.student, edition, outcome.reason)
                        write_whole(self._page(outcome.student), text)
                        self.log.error("%s could not be graded, because %s", outcome.student, outcome.reason)
                        ungraded.append(outcome)
                        continue
                    place = folders[outcome.student]
                    scores = {result.check: result.score for result in outcome.results}
                    unchanged = is_unchanged(folder, NOTEBOOK, outcome)
                    standing = record.put(
                        outcome.student, scores, outcome.unwritten, submitted_at(place), unchanged=unchanged
                    )
                    write_autograded(folder, NOTEBOOK, outcome, place)
                    self.set_permissions(directory.assignment_id, outcome.student)
                    self.log.info("%s: %g", outcome.student, standing.total)
        except SandboxUnavailable as unavailable:
            raise self._failed(str(unavailable)) from unavailable
        if ungraded:
            listed = "; ".join(f"{outcome.student}, because {outcome.reason}" for outcome in ungraded)
            raise NbGraderException(f"{len(ungraded)} of {len(jobs)} submissions could not be graded: {listed}")


class FeedbackPages(_OfTheCourse, GenerateFeedback):
    """nbgrader's GenerateFeedback, but what it writes are the pages of `trainmem.grading.feedback`.

    A page holds what the checks told the student and the marks as they stand in the gradebook, an instructor's too;
    never a cell's source or its output.
    """

    def start(self) -> None:
        """Write the page of each autograded submission, in place of an earlier one: marks may have changed since."""
        folders = self._folders()
        edition = self._edition()
        with self._record(edition) as record:
            for student, folder in folders.items():
                standing = record.standing(student)
                if standing is None:
                    raise self._failed(f"{student} has no submission in the gradebook: run nbgrader autograde")
                text = page(student, edition, _about(folder / f"{NOTEBOOK}.ipynb", edition), standing)
                write_whole(self._page(student), text)
                self.set_permissions(self.coursedir.assignment_id, student)


def _about(notebook: Path, edition: Edition) -> dict[str, Any]:
    """Return what grading told about a submission; of one that stock nbgrader graded, the checks' names only."""
    told = json.loads(notebook.read_text("utf-8"))["metadata"].get("trainmem")
    if told is not None:
        return told
    checks = [
        {"check": check.name, "exercise": check.exercise, "max_score": check.points, "message": "", "outcome": ""}
        for check in edition.assignment.checks
    ]
    return {"checks": checks}


def install() -> None:
    """Make nbgrader's commands and formgrader grade with this package."""
    nbgrader.converters.Autograde = SandboxedAutograde
    nbgrader.apps.autogradeapp.Autograde = SandboxedAutograde
    nbgrader.apps.api.Autograde = SandboxedAutograde
    nbgrader.converters.GenerateFeedback = FeedbackPages
    nbgrader.apps.generatefeedbackapp.GenerateFeedback = FeedbackPages
    nbgrader.apps.api.GenerateFeedback = FeedbackPages
