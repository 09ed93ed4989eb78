"""A whole class at once: `python -m trainmem.grading SUBMITTED OUT`.

Whatever happens, a submission ends as graded or as one that could not be graded, and is listed with the reason. Started
again after an interruption, everything is graded again from the submissions, which gives the same result: there is no
half-done state to go on from.
"""

import csv
import fcntl
import io
import os
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from traitlets.config import PyFileConfigLoader

from trainmem.course.place import ASSIGNMENT, NOTEBOOK
from trainmem.grading.absent import absent
from trainmem.grading.edition import Edition, course_stub, read_edition
from trainmem.grading.finding import shown_name
from trainmem.grading.limits import Limits
from trainmem.grading.outcome import Graded, Job, Outcome, Ungraded
from trainmem.grading.pool import Workers, cores
from trainmem.grading.salt import private_salt
from trainmem.grading.sandbox import Kind, SandboxUnavailable
from trainmem.grading.worker import Setup

if TYPE_CHECKING:  # nbgrader takes seconds to load: it is loaded while the workers start
    from trainmem.grading.record import Record

ROOT = Path(__file__).resolve().parents[2]
CHECK_COLUMNS = ("student_id", "exercise", "check", "score", "max_score", "message")
REMARK_COLUMNS = ("student_id", "kind", "remark")
NOT_ALL_GRADED = 3
MOST_LISTED = 20


def grade_class(
    submitted: Path,
    out: Path,
    *,
    root: Path = ROOT,
    sandbox: Kind | None = None,
    workers: int | None = None,
    limits: Limits | None = None,
    table: TextIO | None = None,
    progress: TextIO | None = None,
) -> int:
    """Grade `submitted/<student>/training_memory/` for every student; leave everything in the folder `out`.

    root: the course folder, with source/ and nbgrader_config.py. sandbox: what the configuration says by default.
    table, progress: where the result and the state are shown, stdout and stderr by default.

    Returns 0, or 3 where a submission could not be graded. Raises SandboxUnavailable where none can be on this machine,
    ValueError where there is nothing to grade or no place for the results.
    """
    jobs, ended = class_jobs(submitted, out)
    out.mkdir(parents=True, exist_ok=True)
    ignored = out / ".gitignore"
    if not ignored.exists():
        ignored.write_text("# Students' work and marks are in no repository.\n*\n")
    config = PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
    sandbox = sandbox or config.Autograde.get("sandbox", "bubblewrap")
    with _alone(out):
        edition = read_edition(root / "source" / ASSIGNMENT / f"{NOTEBOOK}.ipynb", course_stub(config))
        database = out / "gradebook.db"
        hidden = (root, out.resolve(), submitted.resolve())
        setup = Setup(edition, private_salt(database), sandbox, limits or Limits(), hidden)
        count = min(workers or len(cores()), max(1, len(jobs)))
        course = config.CourseDirectory.get("course_id", "")
        with Workers(setup, count) as pool:
            outcomes = _ahead(pool.grade(jobs))
            # jsonschema, on nbgrader's way, takes a second and a half for a grammar of addresses, where it finds one.
            with absent("rfc3987_syntax"):
                from trainmem.grading.record import Record, gradebook_url

            with Record(gradebook_url(database), edition, ASSIGNMENT, NOTEBOOK, course, config) as record:
                results = _Results(out, edition, record, {job.student: job.place for job in jobs})
                meter = _Progress(len(jobs), progress or sys.stderr)
                for outcome in ended:
                    results.add(outcome)
                for outcome in outcomes:
                    results.add(outcome)
                    meter.step()
                meter.end()
                results.write_tables()
                results.print(table or sys.stdout)
    return NOT_ALL_GRADED if results.ungraded else 0


_Item = TypeVar("_Item")


def _ahead(items: Iterator[_Item], most: int = 100) -> Iterator[_Item]:
    """Return an iterator over `items`, which a thread takes at once, so that nobody waits who makes them; `most` of
    them wait here. What they raise is raised where they would have come.
    """
    waiting: queue.Queue[tuple[_Item | None, BaseException | None]] = queue.Queue(most)

    def take() -> None:
        try:
            for item in items:
                waiting.put((item, None))
            waiting.put((None, None))
        except BaseException as error:
            waiting.put((None, error))

    def give() -> Iterator[_Item]:
        while True:
            item, error = waiting.get()
            if error is not None:
                raise error
            if item is None:
                return
            yield item

    threading.Thread(target=take, daemon=True).start()
    return give()


def class_jobs(submitted: Path, out: Path) -> tuple[list[Job], list[Ungraded]]:
    """Return the submissions under `submitted`, and those that cannot be graded for where they stand."""
    if not submitted.is_dir():
        raise ValueError(f"{submitted} is no folder: give the one that holds a folder for each student")
    inner, outer = out.resolve(), submitted.resolve()
    if inner == outer or outer in inner.parents:
        raise ValueError(f"{out} lies within {submitted}: the results need a folder of their own")
    jobs: list[Job] = []
    ended: list[Ungraded] = []
    for entry in sorted(os.scandir(submitted), key=lambda entry: entry.name):
        if entry.name.startswith(".") or entry.name == "__MACOSX":
            continue
        name = shown_name(entry.name)
        if entry.is_symlink():
            ended.append(Ungraded(name, "its folder is a link to another place, and links are not followed"))
        elif not entry.is_dir():
            if entry.name.lower().endswith((".ipynb", ".zip")):
                ended.append(Ungraded(name, "it lies in no student's folder"))
        elif not _is_text(entry.name):
            ended.append(Ungraded(name, "the name of the student's folder is not in UTF-8"))
        else:
            inside = submitted / entry.name / ASSIGNMENT
            place = inside if inside.is_symlink() or inside.exists() else submitted / entry.name
            jobs.append(Job(entry.name, place))
    if not jobs and not ended:
        raise ValueError(f"{submitted} holds no student's folder")
    return jobs, ended


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Hold the folder of results for this process; the system lets go of it, however the process ends."""
    with open(out / ".grading.lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"another grading is writing to {out}: wait for its end") from None
        yield


@dataclass
class _Results:
    """Takes outcomes as they come, in any order; keeps of each only what the table at the end needs."""

    out: Path
    edition: Edition
    record: "Record"
    places: dict[str, Path]
    ungraded: list[Ungraded] = field(default_factory=list)
    totals: dict[str, dict[int, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._checks, self._remarks = _Rows(), _Rows()

    def add(self, outcome: Outcome) -> None:
        """Record a submission, and write its page and its autograded notebook."""
        from trainmem.grading import publish

        student = outcome.student
        autograded = self.out / "autograded" / student / ASSIGNMENT
        page = self.out / "feedback" / student / ASSIGNMENT / f"{NOTEBOOK}.html"
        if isinstance(outcome, Ungraded):
            self.ungraded.append(outcome)
            if student not in self.places:
                return  # no student's folder
            publish.remove_autograded(autograded, NOTEBOOK)
            self.record.put_ungraded(student)
            publish.write_whole(page, publish.refusal(student, self.edition, outcome.reason))
            return
        scores = {result.check: result.score for result in outcome.results}
        timestamp = publish.submitted_at(self.places[student])
        unchanged = publish.is_unchanged(autograded, NOTEBOOK, outcome)
        standing = self.record.put(student, scores, outcome.unwritten, timestamp, unchanged=unchanged)
        publish.write_autograded(autograded, NOTEBOOK, outcome, self.places[student])
        publish.write_whole(page, publish.page_of(outcome, self.edition, standing))
        self._keep(outcome)

    def _keep(self, graded: Graded) -> None:
        student = graded.student
        totals: dict[int, float] = {}
        rows = []
        for result in graded.results:
            totals[result.exercise] = totals.get(result.exercise, 0.0) + result.score
            message = not_a_formula(result.message)
            rows.append((student, result.exercise, result.check, result.score, result.max_score, message))
        self.totals[student] = totals
        self._checks.keep(student, rows)
        kinds = (("repaired", graded.repairs), ("cut", graded.cut), ("happened", graded.notes))
        self._remarks.keep(student, [(student, kind, not_a_formula(said)) for kind, all_ in kinds for said in all_])

    def write_tables(self) -> None:
        """Write checks.csv, remarks.csv and grades.csv, each whole or not at all."""
        from trainmem.grading.export import write_grades

        self._checks.write(self.out / "checks.csv", CHECK_COLUMNS)
        self._remarks.write(self.out / "remarks.csv", REMARK_COLUMNS)
        write_grades(self.out / "grades.csv", self.record.gradebook)

    def print(self, file: TextIO) -> None:
        """Print the class as a table, what could not be graded, who else there is, and where the results are."""
        numbers = [exercise.number for exercise in self.edition.assignment.exercises]
        most = sum(check.points for check in self.edition.assignment.checks)
        rows = [
            [student, *(f"{totals.get(number, 0):g}" for number in numbers), f"{sum(totals.values()):g}"]
            for student, totals in sorted(self.totals.items())
        ]
        for line in _aligned(["student", *map(str, numbers), f"of {most:g}"], rows):
            print(line, file=file)
        if self.ungraded:
            print(f"\n{len(self.ungraded)} could not be graded:", file=file)
            for outcome in sorted(self.ungraded, key=lambda outcome: outcome.student):
                print(f"  {outcome.student} could not be graded, because {outcome.reason}.", file=file)
        remarked = len(self._remarks.students)
        if remarked:
            print(f"\n{remarked} of {len(rows)} needed a repair or had trouble on the way: see the remarks.", file=file)
        others = sorted(self.record.students() - self.places.keys())
        if others:
            shown = ", ".join(others[:MOST_LISTED]) + (", …" if len(others) > MOST_LISTED else "")
            print(f"\n{len(others)} more in grades.csv, who handed in nothing this time: {shown}.", file=file)
        print(f"\nGrades:   {self.out / 'grades.csv'}\nChecks:   {self.out / 'checks.csv'}", file=file)
        print(f"Remarks:  {self.out / 'remarks.csv'}\nFeedback: {self.out / 'feedback'}", file=file)


class _Rows:
    """A table's rows by student, on disk, so that a class takes no more memory than one submission."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the last reference to it
        self._where: dict[str, tuple[int, int]] = {}

    @property
    def students(self) -> Sequence[str]:
        """Those who have rows."""
        return sorted(self._where)

    def keep(self, student: str, rows: Sequence[Sequence[Any]]) -> None:
        """Take a student's rows."""
        if not rows:
            return
        lines = io.StringIO()
        csv.writer(lines, lineterminator="\n").writerows(rows)
        data = lines.getvalue().encode()
        self._where[student] = (self._file.seek(0, io.SEEK_END), len(data))
        self._file.write(data)

    def write(self, path: Path, columns: Sequence[str]) -> None:
        """Write all rows to `path`, by student."""
        partial = path.with_name(path.name + ".partial")
        with open(partial, "wb") as file:
            file.write((",".join(columns) + "\n").encode())
            for student in self.students:
                start, length = self._where[student]
                self._file.seek(start)
                file.write(self._file.read(length))
        partial.replace(path)


def not_a_formula(text: str) -> str:
    """Return a text that a spreadsheet shows as it is: one that begins like a formula gets an apostrophe in front."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    for row in (header, *rows):
        first, *others = (text for text in row)
        cells = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
        yield "  ".join([first.ljust(widths[0]), *cells])


class _Progress:
    """A line that says how far the class is, and the time left; on a terminal it is rewritten in place."""

    def __init__(self, total: int, file: TextIO) -> None:
        self._total, self._file, self._done = total, file, 0
        self._began = time.monotonic()
        self._terminal = file.isatty()
        self._shown = 0.0

    def step(self) -> None:
        self._done += 1
        now = time.monotonic()
        whole = self._done == self._total
        if not whole and now - self._shown < (0.1 if self._terminal else 5.0):
            return
        self._shown = now
        left = (now - self._began) / self._done * (self._total - self._done)
        width = 30 * self._done // self._total
        bar = "#" * width + "." * (30 - width)
        line = f"graded {self._done} of {self._total} [{bar}] {left:.0f} s left"
        self._file.write(f"\r{line}\x1b[K" if self._terminal else f"{line}\n")
        self._file.flush()

    def end(self) -> None:
        if self._terminal and self._done:
            self._file.write("\n")
            self._file.flush()


__all__ = ["NOT_ALL_GRADED", "SandboxUnavailable", "class_jobs", "grade_class", "not_a_formula"]
