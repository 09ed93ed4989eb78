"""Where the course lives: its names for nbgrader, and the setting behind every Colab badge and first cell."""

#: The assignment and its notebook: source/<assignment>/<notebook>.ipynb, and so in release/ and every submission.
ASSIGNMENT, NOTEBOOK = "training_memory", "exercises"

#: owner/repository on GitHub, and the branch or tag that readers get. Set both, run the build, and all links follow.
REPOSITORY, VERSION = "OWNER/trainmem", "main"


def badge(notebook: str) -> str:
    """Markdown of the badge that opens a notebook of the repository (its path) in Colab.

    Its picture lies beside the notebooks, so that a page with a badge asks nobody outside for it.
    """
    address = f"https://colab.research.google.com/github/{REPOSITORY}/blob/{VERSION}/{notebook}"
    return f"[![Open in Colab](open_in_colab.svg)]({address})"


def archive() -> str:
    """Address from which pip installs the course."""
    return f"https://github.com/{REPOSITORY}/archive/{VERSION}.zip"
