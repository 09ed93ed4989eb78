"""The files of a submission that may be its notebook, in whatever it was handed in: a file, folders, a zip archive."""

import io
import os
import stat
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from trainmem.grading.reading import MAX_FILE_BYTES, Refused

_MAX_FILES = 2_000
_MAX_DEPTH = 6
_MAX_NOTEBOOKS = 20
_ARCHIVE_BYTES = 200_000_000  # unpacked, over all notebooks in a submission's archives
_NOT_MEANT = frozenset((".ipynb_checkpoints", "__macosx", "__pycache__", ".git", ".venv", "venv", "node_modules"))


@dataclass(frozen=True)
class Candidate:
    """A file that may be the notebook. `file`: its path within the submission, fit for a sentence."""

    file: str
    data: bytes

    @property
    def depth(self) -> int:
        return self.file.count("/")


def candidates(place: Path, notes: list[str]) -> list[Candidate]:
    """Return the notebooks in the file, archive or folder at `place`, in the order of their paths.

    No link is followed and no archive unpacked to disk; what was passed over for such a reason is told in `notes`.
    Raises Refused where there is none.
    """
    files = list(_files(place, notes))
    found: list[Candidate] = []
    seen: list[str] = []
    budget_bytes = _ARCHIVE_BYTES
    for name, path in files:
        shown = shown_name(name)
        seen.append(shown)
        suffixes = [suffix.lower() for suffix in PurePosixPath(name).suffixes]
        is_archive = ".zip" in suffixes[-1:]
        if not (is_archive or ".ipynb" in suffixes or suffixes[-1:] == [".json"]):
            continue
        data = _read(path, shown)
        if data.startswith(b"PK\x03\x04") or is_archive:
            for inside in _archived(data, shown, budget_bytes, notes):
                budget_bytes -= len(inside.data)
                found.append(inside)
        else:
            found.append(Candidate(shown, data))
        if len(found) > _MAX_NOTEBOOKS:
            raise Refused(f"it holds more than {_MAX_NOTEBOOKS} notebooks, and none of them alone can be meant")
    if found:
        return found
    because = f" ({notes[0].rstrip('.')})" if notes else ""
    if not seen:
        raise Refused(f"its folder holds no file{because}")
    listed = ", ".join(seen[:3]) + (f" and {len(seen) - 3} more" if len(seen) > 3 else "")
    raise Refused(f"it holds no notebook, only {listed}{because}")


def shown_name(name: str) -> str:
    """Return a file's name in a form that can stand in a sentence: printable, one line, of bounded length."""
    name = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    name = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name)
    return name if len(name) <= 120 else f"{name[:60]}…{name[-50:]}"


def _files(place: Path, notes: list[str]) -> Iterator[tuple[str, Path]]:
    """Yield the regular files at and under `place` by their relative names, sorted."""
    if place.is_symlink():
        raise Refused(f"{shown_name(place.name)} is a link to another place, and links are not followed")
    if not place.is_dir():
        if place.exists():
            yield place.name, place
        return
    count = 0
    folders = [(place, "", 0)]
    while folders:
        folder, prefix, depth = folders.pop(0)
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            notes.append(f"{shown_name(prefix or place.name)} could not be opened ({error.strerror}).")
            continue
        for entry in entries:
            name = prefix + entry.name
            if entry.name.lower() in _NOT_MEANT or entry.name.startswith("._"):
                continue
            if entry.is_symlink():
                notes.append(f"{shown_name(name)} is a link and was not followed.")
            elif entry.is_dir(follow_symlinks=False):
                if depth < _MAX_DEPTH:
                    folders.append((folder / entry.name, f"{name}/", depth + 1))
            elif entry.is_file(follow_symlinks=False):
                count += 1
                if count > _MAX_FILES:
                    notes.append(f"Only the first {_MAX_FILES:,} files were looked at.")
                    return
                yield name, folder / entry.name
            else:
                notes.append(f"{shown_name(name)} is no regular file and was not opened.")


def read_regular(path: Path, limit_bytes: int) -> bytes | None:
    """Return a regular file's bytes, or None where it is longer. A link, pipe or device raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is no regular file")
        data = file.read(limit_bytes + 1)
    return None if len(data) > limit_bytes else data


def _read(path: Path, shown: str) -> bytes:
    try:
        data = read_regular(path, MAX_FILE_BYTES)
    except OSError as error:
        raise Refused(f"{shown} could not be read ({error.strerror or 'no regular file'})") from None
    if data is None:
        raise Refused(f"{shown} is larger than {MAX_FILE_BYTES // 10**6} MB")
    return data


def _archived(data: bytes, archive: str, budget_bytes: int, notes: list[str]) -> list[Candidate]:
    """Return the notebooks in a zip archive; names in it are names only, nothing is written anywhere."""
    found: list[Candidate] = []
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as opened:
            for member in opened.infolist()[:_MAX_FILES]:
                path = PurePosixPath(member.filename.replace("\\", "/"))
                hidden = any(part.lower() in _NOT_MEANT or part.startswith("._") for part in path.parts)
                if member.is_dir() or hidden or ".ipynb" not in [suffix.lower() for suffix in path.suffixes]:
                    continue
                shown = f"{archive}/{shown_name(path.as_posix())}"
                if stat.S_ISLNK(member.external_attr >> 16):
                    notes.append(f"{shown} is a link and was not followed.")
                    continue
                if len(found) >= _MAX_NOTEBOOKS:
                    break
                # What the archive says of a size may be a lie: what is read is bounded.
                limit = min(budget_bytes, MAX_FILE_BYTES)
                with opened.open(member) as file:
                    text = file.read(limit + 1)
                if len(text) > limit:
                    raise Refused(f"{shown} is larger than {limit // 10**6} MB when it is unpacked")
                budget_bytes -= len(text)
                found.append(Candidate(shown, text))
    except Refused:
        raise
    except Exception as error:  # what zipfile raises on damaged archives is no short list
        reason = "it needs a password" if "encrypted" in str(error) else "it is damaged or cut off"
        raise Refused(f"the archive {archive} cannot be unpacked: {reason}") from None
    if not found:
        notes.append(f"The archive {archive} holds no notebook.")
    return found
