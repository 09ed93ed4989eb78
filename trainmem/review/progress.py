"""A reader's answers, and the JSON file that keeps them.

The file holds what happened, not what follows from it: for each card the moments and grades of all answers. What is due
is computed from them, so that a file outlives editions of the course, other schedules, and cards that come and go::

    {"course": "trainmem", "version": 1, "answers": {"m-of-k": [{"at": "2026-03-01T18:20:05+00:00", "grade": 3}]}}
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

VERSION = 1


class Grade(IntEnum):
    """How well a card was known, in the numbers that Anki and FSRS use."""

    AGAIN = 1
    HARD = 2
    GOOD = 3
    EASY = 4


class Answer(NamedTuple):
    """One answer: when (UTC, whole seconds in the file) and how well."""

    at: datetime
    grade: Grade


@dataclass(frozen=True)
class Progress:
    """Name of a card → its answers, oldest first. ``left_out`` counts answers of a file that could not be read."""

    answers: Mapping[str, tuple[Answer, ...]] = field(default_factory=dict)
    left_out: int = 0

    def of(self, name: str) -> tuple[Answer, ...]:
        """The answers to one card."""
        return self.answers.get(name, ())

    def with_answer(self, name: str, at: datetime, grade: Grade) -> "Progress":
        """The same and one answer more. ``at`` has a time zone."""
        answer = Answer(at.astimezone(UTC).replace(microsecond=0), grade)
        return Progress({**self.answers, name: _in_order(self.of(name), (answer,))})

    def merged(self, other: "Progress") -> "Progress":
        """The answers of both, each once: two sessions on one file, or a file that was downloaded earlier."""
        more = {name: _in_order(self.of(name), rows) for name, rows in other.answers.items() if rows != self.of(name)}
        return Progress({**self.answers, **more})

    def as_json(self) -> str:
        """The text of the file; answers to cards that this edition does not have are in it too."""
        answers = {
            name: [{"at": answer.at.isoformat(), "grade": int(answer.grade)} for answer in row]
            for name, row in self.answers.items()
        }
        return json.dumps({"course": "trainmem", "version": VERSION, "answers": answers}) + "\n"


def from_json(text: str) -> Progress:
    """Read the text of a progress file, of this edition or an older one.

    What an older file lacks counts as empty; an answer without a moment or a grade is left out and counted. Raises
    ``ValueError`` that says what is wrong with a text that is no progress file, or comes from a newer edition.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON ({error})") from error
    if not isinstance(data, dict):
        raise ValueError("it is JSON, but not an object with answers")
    if data.get("course", "trainmem") != "trainmem":
        raise ValueError(f"it belongs to another course ({data['course']!r})")
    version = data.get("version", 0)
    if not isinstance(version, int):
        raise ValueError(f"its version is {version!r}, not a whole number")
    if version > VERSION:
        raise ValueError(f"a newer edition of the course wrote it (version {version}; this one reads up to {VERSION})")
    answers = data.get("answers") or {}
    if not isinstance(answers, dict):
        raise ValueError("its answers are not listed by card")
    read, left_out = {}, 0
    for name, rows in answers.items():
        if not isinstance(rows, list):
            left_out += 1
            continue
        kept = [answer for answer in map(_answer, rows) if answer]
        left_out += len(rows) - len(kept)
        read[name] = _in_order(kept)
    return Progress(read, left_out)


def _in_order(*rows: Iterable[Answer]) -> tuple[Answer, ...]:
    return tuple(sorted(set(chain(*rows))))


def _answer(row: Any) -> Answer | None:
    try:
        at = datetime.fromisoformat(row["at"])
        return Answer((at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC), Grade(row["grade"]))
    except (TypeError, KeyError, ValueError, OverflowError):
        return None


def load(path: Path) -> tuple[Progress, str]:
    """Return the answers in a file (none where there is no file), and what to tell the reader (often nothing).

    A file that cannot be understood is renamed, never overwritten; so is one that can be understood in part.
    """
    try:
        progress, said = _read(path)
        if progress.left_out:
            _write(path, progress)
    except OSError as error:
        return Progress(), f"{path} could not be opened or renamed ({error.strerror}). You start without it."
    return progress, said


def save(path: Path, progress: Progress) -> tuple[Progress, str]:
    """Write the answers, together with what another session has written there meanwhile; return both of it, and what to
    tell the reader (nothing, where all went well).

    The file is replaced in one step: at every moment it is either the old or the new one. A failure is told, not
    raised: the session goes on.
    """
    try:
        there, said = _read(path)
        progress = progress.merged(there)
        _write(path, progress)
    except OSError as error:
        said = f"{path} could not be written ({error.strerror}). Download your progress, so that it is not lost."
    return progress, said


def _read(path: Path) -> tuple[Progress, str]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Progress(), ""
    try:
        progress = from_json(data.decode("utf-8"))
    except ValueError as error:
        return Progress(), f"{path.name} could not be read: {error}. It is kept as {_set_aside(path)}."
    if progress.left_out:
        count = "1 answer" if progress.left_out == 1 else f"{progress.left_out} answers"
        return progress, f"{count} in {path.name} could not be read. The file is kept as {_set_aside(path)}."
    return progress, ""


def _write(path: Path, progress: Progress) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(progress.as_json())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _set_aside(path: Path) -> str:
    """Rename a file to the first free name, and return that."""
    number = 1
    while (aside := path.with_name(f"{path.stem}.unread-{number}{path.suffix}")).exists():
        number += 1
    path.rename(aside)
    return aside.name


def uploaded(value: Any) -> tuple[str, bytes] | None:
    """Name and content of the file in the ``value`` of an `ipywidgets.FileUpload`; None where there is none.

    ipywidgets 7 has a dictionary by file name, ipywidgets 8 a tuple with a memoryview for each content.
    """
    if not value:
        return None
    if isinstance(value, Mapping):
        [(name, file), *_] = value.items()
    else:
        file = value[0]
        name = file["name"]
    return name, bytes(file["content"])
