"""The folder that holds a site: known by its list of the files that were written there, and nothing else is touched."""

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

#: The list: a line that says what it is, then one file's name a line.
LISTING = "trainmem_site.txt"

_FIRST = (
    "Written by python -m trainmem.site, which removes and replaces these files, and no others, when it runs again:"
)


def listed(folder: Path) -> set[str]:
    """The names of the files that an earlier run wrote into ``folder``; none for a folder that is empty or not there.

    Raises ``ValueError`` where ``folder`` is a file, or holds something and no list of ours.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: name a folder that is empty or new, or one with an earlier site")
    listing = folder / LISTING
    try:
        # What a link leads to was not written here.
        first, *names = [""] if listing.is_symlink() else listing.read_text("utf-8").splitlines() or [""]
    except (FileNotFoundError, IsADirectoryError, UnicodeDecodeError):
        first, names = "", []
    if first == _FIRST:
        return {name for name in names if name != LISTING and _inside(folder, name)}
    # A fresh checkout, to publish from, is as good as empty.
    strangers = sorted(path.name for path in folder.iterdir() if path.name != ".git") if folder.exists() else []
    if strangers:
        raise ValueError(
            f"{folder} is not empty and has no list of a site's files ({LISTING}); it holds {_some(strangers)}. "
            "Nothing was changed: name an empty folder or a new one, or move these away"
        )
    return set()


def replace(folder: Path, files: Mapping[str, bytes]) -> None:
    """Put ``files`` (name, with ``/`` between folders → content) where those of an earlier run were.

    Raises ``ValueError``, and changes nothing, as `listed` does or where something else stands in a file's way; and
    ``OSError`` where the disk fails: the list then names all that may be there, so that another run can replace it.
    """
    before = listed(folder)
    in_the_way = sorted({found for name in files if name not in before and (found := _obstacle(folder, name, before))})
    if in_the_way:
        raise ValueError(
            f"in {folder} stands what an earlier site did not write and this one would overwrite: {_some(in_the_way)}. "
            "Nothing was changed: move it away, or name another folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    _list(folder, {*before, *files})
    for name in before:
        _remove(folder, name)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    _list(folder, files)


def _inside(folder: Path, name: str) -> bool:
    """Whether a listed name is a file of the folder: not above it, not through a link, and no folder."""
    parts = PurePosixPath(name).parts
    if not name.isprintable() or not parts or parts[0] == "/" or ".." in parts or "\\" in name:
        return False
    path = folder.joinpath(*parts)
    real = path.parent.resolve() == folder.resolve().joinpath(*parts[:-1])
    return real and (path.is_symlink() or path.is_file())


def _obstacle(folder: Path, name: str, before: set[str]) -> str | None:
    """What stands where a file, or a folder of its name, is to come."""
    parts = PurePosixPath(name).parts
    for end in range(1, len(parts) + 1):
        path, so_far = folder.joinpath(*parts[:end]), "/".join(parts[:end])
        if so_far in before:
            return None
        if path.is_symlink() or (path.exists() and (end == len(parts) or not path.is_dir())):
            return so_far
    return None


def _remove(folder: Path, name: str) -> None:
    path = folder / name
    path.unlink(missing_ok=True)
    for parent in list(path.relative_to(folder).parents)[:-1]:
        if any((folder / parent).iterdir()):
            break
        (folder / parent).rmdir()


def _list(folder: Path, names: Iterable[str]) -> None:
    (folder / LISTING).write_text("\n".join([_FIRST, *sorted(names)]) + "\n", "utf-8")


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
