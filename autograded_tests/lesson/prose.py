"""The lesson's prose as the tests read it."""

import re

from autograded_tests.notebooks import ROOT, read

LESSON = ROOT / "notebooks" / "lesson.ipynb"
SOURCE = ROOT / "trainmem" / "course" / "lesson.md"


def cells(kind: str) -> dict[str, str]:
    """Cell id → source, of one kind of cell."""
    return {cell.id: cell.source for cell in read(LESSON).cells if cell.cell_type == kind}


def prose() -> str:
    """All Markdown of the notebook as a reader gets it."""
    return "\n\n".join(cells("markdown").values())


def headings() -> list[str]:
    return re.findall(r"^#{1,3} (.+)$", prose(), re.MULTILINE)


def section(heading: str) -> str:
    """What stands under a heading, up to the next one of the same or a higher level."""
    match = re.search(rf"^(#+) {re.escape(heading)}$", prose(), re.MULTILINE)
    after = prose()[match.end() :]
    end = re.search(rf"^#{{1,{len(match[1])}}} ", after, re.MULTILINE)
    return after[: end.start()] if end else after


def rows(text: str) -> list[list[str]]:
    """The rows of all tables in it, without their heads."""
    found, table = [], []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            table.append([piece.strip() for piece in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif table:
            found += table[2:]
            table = []
    return found


NUMBER = re.compile(
    r"(?<![\w.])(?:\d[\d,]*(?:\.\d+)?\s?(?:GB|MB|GiB|TB|%)(?!\w)"  # with a unit
    r"|\d{1,3}(?:,\d{3})+(?!\d)"  # with commas
    r"|\d+\.\d+(?!\w|\.\d)"  # with decimals
    r"|\d{5,}(?!\w))"  # large
)


def typed_numbers(text: str) -> list[str]:
    """Numbers that look computed, but are typed in a text of the source: not in [[...]], in code or in a link."""
    text = re.sub(r"^```python cell=.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\[\[.+?\]\](?!\])", " ", text, flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"arXiv \d{4}\.\d{5}", "", text)
    return [match.strip() for match in NUMBER.findall(text)]
