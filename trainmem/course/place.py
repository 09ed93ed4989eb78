"""Where the course lives: its names for nbgrader, and the setting behind every Colab badge and first cell."""

import json
import re
from os.path import relpath
from pathlib import PurePosixPath

#: The assignment and its notebook: source/<assignment>/<notebook>.ipynb, and so in release/ and every submission.
ASSIGNMENT, NOTEBOOK = "training_memory", "exercises"

#: owner/repository on GitHub, and the branch or tag that readers get. Set both, run the build, and all links follow.
REPOSITORY, VERSION = "OWNER/trainmem", "main"

#: The notebooks that are written by hand. The build keeps the addresses in them, and nothing else.
WRITTEN = ("notebooks/review.ipynb", "notebooks/checkpointing_gpu.ipynb")


def badge(notebook: str) -> str:
    """Markdown of the badge that opens a notebook of the repository (its path) in Colab.

    Its picture lies in the repository, so that a page with a badge asks nobody outside for it.
    """
    address = f"https://colab.research.google.com/github/{REPOSITORY}/blob/{VERSION}/{notebook}"
    picture = relpath("notebooks/open_in_colab.svg", PurePosixPath(notebook).parent)
    return f"[![Open in Colab]({picture})]({address})"


def archive() -> str:
    """Address from which pip installs the course."""
    return f"https://github.com/{REPOSITORY}/archive/{VERSION}.zip"


def in_repository(path: str, folder: bool = False) -> str:
    """Address on GitHub of a file of the repository, or of a ``folder`` (its path from the root)."""
    return f"https://github.com/{REPOSITORY}/{'tree' if folder else 'blob'}/{VERSION}/{path}"


def filled(text: str, notebook: str) -> str:
    """A text of a generated notebook with its ``{{badge}}`` and ``{{archive}}`` in place."""
    return text.replace("{{badge}}", badge(notebook)).replace("{{archive}}", archive())


def readdressed(text: str, notebook: str) -> str:
    """A hand-written notebook's file with its badge and its line ``ARCHIVE = "…"`` as they should be.

    Not a byte besides is changed. Raises ValueError where the badge or the line is not there exactly once.
    """
    for what, pattern, wanted in (
        ("badge", r"\[!\[Open in Colab\]\([^)\s]*\)\]\([^)\s]*\)", badge(notebook)),
        ("line ARCHIVE = …", r'(?<=")ARCHIVE = \\"[^"\\]*\\"', f'ARCHIVE = "{archive()}"'),
    ):
        inside = json.dumps(wanted, ensure_ascii=False)[1:-1]
        text, found = re.subn(pattern, lambda _, inside=inside: inside, text)
        if found != 1:
            raise ValueError(f"{notebook}: {found} times a {what}; it must stand there once")
    return text
