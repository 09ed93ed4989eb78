"""Where a link in a notebook or a Markdown file of the repository leads to on the site."""

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath

from trainmem.course.editions import ROOT
from trainmem.site.pages import PAGES, in_repository

#: File of the repository → page of the site that shows it.
SHOWN = {name: page.file for page in PAGES for name in page.shows}

_OUTSIDE = re.compile(r"^[a-z][a-z0-9+.-]*:|^//", re.IGNORECASE)


def outside(url: str) -> bool:
    """Whether an address is a complete one, of this or another host."""
    return bool(_OUTSIDE.match(url))


def leads_to(url: str, folder: str) -> str:
    """The address on the site for ``url`` as it stands in a file of ``folder`` (from the repository's root).

    Another page of the site, or the file in the repository on GitHub. Raises ``ValueError`` where there is none.
    """
    if outside(url) or url.startswith("#"):
        return url
    path, mark, place = url.partition("#")
    name = normpath(PurePosixPath(folder, path))
    if name in SHOWN:
        return SHOWN[name] + mark + place
    if not (ROOT / name).exists():
        raise ValueError(f"{url!r} in {folder or 'the root'} leads to {name}, which is not there")
    return in_repository(name) + mark + place


def picture(url: str, folder: str) -> Path | None:
    """The picture's file, or None for one that would be loaded from elsewhere. Raises ``ValueError`` without a file."""
    if outside(url):
        return None
    path = ROOT / normpath(PurePosixPath(folder, url))
    if not path.is_file():
        raise ValueError(f"the picture {url!r} in {folder or 'the root'} is not there")
    return path
