"""What grading leaves for people: the autograded notebook that formgrader opens, and the student's page."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from nbgrader.utils import parse_utc

from trainmem.grading.edition import Edition
from trainmem.grading.feedback import graded_page, ungraded_page
from trainmem.grading.finding import read_regular
from trainmem.grading.outcome import Graded, told
from trainmem.grading.record import NO_ANSWER, Standing

TIMESTAMP = "timestamp.txt"


def write_whole(path: Path, text: str) -> None:
    """Write a file so that whoever finds it finds all of it, or what was there before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, "utf-8")
    partial.replace(path)


def submitted_at(place: Path) -> datetime | None:
    """Return the time in a submission's timestamp.txt in UTC, as nbgrader reads it, or None."""
    text = _timestamp_text(place)
    try:
        return parse_utc(text) if text else None
    except (ValueError, OverflowError, AttributeError, TypeError):
        return None


def _timestamp_text(place: Path) -> str:
    try:
        data = read_regular(place / TIMESTAMP, 200)
    except OSError:
        return ""
    return (data or b"").decode("utf-8", "replace").strip()


def write_autograded(folder: Path, notebook: str, graded: Graded, place: Path) -> None:
    """Write a submission's autograded notebook, called `notebook`, and its time into `folder`."""
    if submitted_at(place) is not None:
        write_whole(folder / TIMESTAMP, _timestamp_text(place))
    else:
        (folder / TIMESTAMP).unlink(missing_ok=True)
    write_whole(folder / f"{notebook}.ipynb", graded.notebook)


def is_unchanged(folder: Path, notebook: str, graded: Graded) -> bool:
    """Say whether an earlier grading left the same autograded notebook in `folder`."""
    path = folder / f"{notebook}.ipynb"
    return path.is_file() and path.read_text("utf-8") == graded.notebook


def remove_autograded(folder: Path, notebook: str) -> None:
    """Remove what an earlier grading left, so that nothing shows a mark that no longer stands."""
    for name in (f"{notebook}.ipynb", TIMESTAMP):
        (folder / name).unlink(missing_ok=True)


def page(student: str, edition: Edition, about: Mapping[str, Any], standing: Standing) -> str:
    """Return the page of a graded submission as it stands in the gradebook."""
    said: dict[int, list[tuple[str, str]]] = {}
    for answer in edition.assignment.answers:
        comment = standing.comments.get(answer.name)
        if comment and comment != NO_ANSWER:
            said.setdefault(answer.exercise, []).append((answer.name, comment))
    return graded_page(student, course_title(edition), edition.titles, about, standing.scores, said, standing.penalty)


def page_of(graded: Graded, edition: Edition, standing: Standing) -> str:
    """Return the page of a submission that was graded just now."""
    about = told(graded.results, notes=graded.notes, repairs=graded.repairs, cut=graded.cut)
    return page(graded.student, edition, about, standing)


def refusal(student: str, edition: Edition, reason: str) -> str:
    """Return the page of a submission that could not be graded."""
    return ungraded_page(student, course_title(edition), reason)


def course_title(edition: Edition) -> str:
    """Return the notebook's own heading."""
    return edition.places[0].given.partition("\n")[0].lstrip("# ").strip()
