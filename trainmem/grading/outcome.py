"""How the grading of one submission ends."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainmem.grading.checks import CheckResult


@dataclass(frozen=True)
class Job:
    """A submission to grade: whose it is, and the folder, file or archive that was handed in."""

    student: str
    place: Path


@dataclass(frozen=True)
class Graded:
    """A submission with its results in the notebook's order.

    unwritten: answers for which nothing was handed in. notes: what went wrong while it ran. repairs, cut: what was
    mended and left out before. notebook: the clean copy with its results, as nbgrader's autograded notebook.
    """

    student: str
    results: tuple[CheckResult, ...]
    unwritten: tuple[str, ...]
    notes: tuple[str, ...]
    repairs: tuple[str, ...]
    cut: tuple[str, ...]
    notebook: str

    @property
    def score(self) -> float:
        return sum(result.score for result in self.results)


@dataclass(frozen=True)
class Ungraded:
    """A submission that could not be graded, because `reason`: one sentence without its end."""

    student: str
    reason: str


Outcome = Graded | Ungraded


def told(results: tuple[CheckResult, ...], **lists: tuple[str, ...]) -> dict[str, Any]:
    """Return what a feedback page tells, as plain data."""
    return {"checks": [asdict(result) for result in results], **{name: list(items) for name, items in lists.items()}}


def readable(text: str) -> str:
    """Return a text without what neither a page nor a table can hold: control characters and halves of characters."""
    text = text.encode("utf-8", "replace").decode()
    return "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")
