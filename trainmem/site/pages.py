"""The pages of the site, and what each is made of. No text stands here that stands elsewhere in the repository."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook

from trainmem.course import place
from trainmem.course.editions import KERNEL, ROOT
from trainmem.review import CARDS, CHECK_YOURSELF, INTERVIEW, questions_markdown
from trainmem.site.measured import runs_markdown


def in_repository(name: str) -> str:
    """Address of a file or folder of the repository on GitHub."""
    return place.in_repository(name, folder=(ROOT / name).is_dir())


@dataclass(frozen=True)
class Page:
    """One page: its file, its title and the short one of the navigation, and what makes its notebook.

    ``folder`` of the repository is where its relative links start from; ``made_from`` is its source there. ``shows``
    are the files and folders of the repository that a link leads to this page for.
    """

    file: str
    title: str
    short: str
    about: str
    folder: str
    made_from: str
    shows: tuple[str, ...]
    notebook: Callable[[], NotebookNode]

    @property
    def source(self) -> str:
        """Address of the source in the repository."""
        return in_repository(self.made_from)


def _of_markdown(*texts: str) -> NotebookNode:
    return new_notebook(cells=[new_markdown_cell(text) for text in texts], metadata=KERNEL)


def _read(name: str, note: str = "") -> NotebookNode:
    """A notebook of the repository, with a note beneath its title."""
    notebook = nbformat.read(ROOT / name, as_version=4)
    if note:
        notebook.cells.insert(1, new_markdown_cell(note))
    return notebook


def _text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def section(text: str, heading: str) -> str:
    """What stands under a heading of the second level, without it. Raises ``ValueError`` where there is none."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if not found:
        raise ValueError(f"there is no section {heading!r} any more: name the one that took its place in pages.py")
    return found[1].strip()


def _index() -> NotebookNode:
    """README's opening; its commands, which need a copy of the repository, come last."""
    text = _text("README.md")
    opening = text.split("\n## ")[0]
    blocks = re.findall(r"^```.*?^```$|\S.*?(?=\n\n|\Z)", opening, re.MULTILINE | re.DOTALL)
    commands = [
        block for block in blocks if block.startswith("```") or ("`make " in block and not block.startswith("|"))
    ]
    parts = [block for block in blocks if block not in commands]
    for heading in ("For students", "For readers"):
        parts += [f"## {heading}", section(text, heading)]
    return _of_markdown("\n\n".join([*parts, "## On your own machine", *commands]))


def _cards() -> NotebookNode:
    by_section: dict[str, list] = {}
    for card in CARDS.values():
        by_section.setdefault(card.section, []).append(card)
    opening = (
        f"# Recall cards and questions\n\n{len(CARDS)} cards in the order of the [lesson](notebooks/lesson.ipynb), one "
        "fact each, then questions to check yourself and questions from interviews. Answer in your head, then unfold. "
        f"With a kernel, [review.ipynb]({in_repository('notebooks/review.ipynb')}) asks each card when it is due."
    )
    cards = [f"## {name}\n\n{questions_markdown(questions)}" for name, questions in by_section.items()]
    return _of_markdown(
        opening,
        *cards,
        f"## Check yourself\n\n{questions_markdown(CHECK_YOURSELF.values())}",
        f"## Interview questions\n\n{questions_markdown(INTERVIEW.values())}",
    )


def _gpu() -> NotebookNode:
    title, rest = _text("notebooks/measured/README.md").split("\n", 1)
    return _of_markdown(title, runs_markdown(ROOT / "notebooks" / "measured"), rest)


def _instructors() -> NotebookNode:
    readme, contributing = _text("README.md"), _text("CONTRIBUTING.md")
    parts = ["# For instructors", section(readme, "For instructors")]
    for heading in ("How to add an exercise", "Where a thing is written", "Why things are as they are"):
        parts += [f"## {heading}", section(contributing, heading)]
    return _of_markdown("\n\n".join(parts))


_NEEDS_KERNEL = (
    "*This page is for reading. Writing answers, running checks and moving the figures that your functions drive need "
    f"a kernel: open [the notebook]({in_repository('notebooks/self_study.ipynb')}) in Colab or JupyterLab.*"
)

PAGES = (
    Page(
        "index.html",
        "How much GPU memory does training take?",
        "Start",
        "A course on the GPU memory that training a transformer takes, and on the cheapest way to make it fit.",
        "",
        "README.md",
        ("README.md",),
        _index,
    ),
    Page(
        "lesson.html",
        "The lesson",
        "Lesson",
        "Training memory: how much, and the cheapest way to make it fit. With five figures that move.",
        "notebooks",
        "notebooks/lesson.ipynb",
        ("notebooks/lesson.ipynb",),
        lambda: _read("notebooks/lesson.ipynb"),
    ),
    Page(
        "self_study.html",
        "Self-study",
        "Self-study",
        "The exercises with folded answers and their reasoning, and three more.",
        "notebooks",
        "notebooks/self_study.ipynb",
        ("notebooks/self_study.ipynb",),
        lambda: _read("notebooks/self_study.ipynb", _NEEDS_KERNEL),
    ),
    Page(
        "cards.html",
        "Recall cards and questions",
        "Cards",
        "Recall cards, questions to check yourself and questions from interviews, with answers that unfold.",
        "",
        "trainmem/review",
        ("notebooks/review.ipynb",),
        _cards,
    ),
    Page(
        "gpu.html",
        "Measured",
        "GPU results",
        "Predictions beside measurements and beside other calculators.",
        "notebooks/measured",
        "notebooks/measured",
        ("notebooks/measured", "notebooks/measured/README.md"),
        _gpu,
    ),
    Page(
        "checkpointing.html",
        "Checkpointing, measured",
        "GPU notebook",
        "The notebook that puts predictions beside measurements, with its stored run.",
        "notebooks",
        "notebooks/checkpointing_gpu.ipynb",
        ("notebooks/checkpointing_gpu.ipynb",),
        lambda: _read("notebooks/checkpointing_gpu.ipynb"),
    ),
    Page(
        "instructors.html",
        "For instructors",
        "Instructors",
        "Release, grade and return the exercises; add your own.",
        "",
        "README.md",
        (),
        _instructors,
    ),
)
