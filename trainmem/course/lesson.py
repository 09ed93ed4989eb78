r"""The lesson: from `lesson.md` to `notebooks/lesson.ipynb`.

`lesson.md` is Markdown with five kinds of blocks; everything else is prose, cut into cells at its headings.

- ```` ```python cell=NAME ```` (and ``unchecked``): a code cell; NAME is its id. Without ``cell=`` it stays prose.
- ```` ```figure NAME ````: a figure's cell. The first line below is the alt text of its static picture, the rest the
  sentence with its numbers; both stand folded beneath it.
- ``<!-- quick check NAME -->``: a quick check of `trainmem.review`, with the folded text beneath it.
- ``<!-- questions CHECK_YOURSELF -->``: a group of questions of `trainmem.review` with folded answers.
- ``[[expression:format]]``: a number, computed (`trainmem.review.records.filled`).

A widget is committed as its plain text alone, which nbval compares; its picture comes from a kernel. A cell that is
``unchecked`` is run by nbval, but committed without outputs.
"""

import os
import re
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from trainmem import review
from trainmem.course import place
from trainmem.course.editions import KERNEL, ROOT

SOURCE = Path(__file__).with_name("lesson.md")
UNCHECKED = "nbval-ignore-output"

_BLOCK = re.compile(
    r"^```python cell=(?P<code>[\w-]+)(?P<unchecked> unchecked)?\n(?P<source>.*?)\n```$"
    r"|^```figure (?P<figure>\w+)\n(?P<alt>[^\n]*)\n(?P<sentence>.*?)\n```$"
    r"|^<!-- quick check (?P<check>[\w-]+) -->$"
    r"|^<!-- questions (?P<questions>\w+) -->$"
    r"|^(?P<heading>#{1,3} [^\n]*)$",
    re.DOTALL | re.MULTILINE,
)


def lesson_cells(text: str | None = None) -> list[nbformat.NotebookNode]:
    """Return the lesson's cells, numbers in place, without outputs. Raises ValueError where two have the same id."""
    text = SOURCE.read_text("utf-8") if text is None else text
    text = place.filled(text, "notebooks/lesson.ipynb")
    cells: list[nbformat.NotebookNode] = []
    prose, name = "", ""

    def close() -> None:
        if prose.strip():
            cells.append(new_markdown_cell(review.filled(prose.strip("\n")), id=name))

    end = 0
    for match in _outside_fences(text):
        prose += text[end : match.start()]
        end = match.end()
        close()
        if match["heading"]:
            prose, name = match["heading"], _slug(match["heading"])
            continue
        made, after = _block_cells(match)
        cells += made
        prose, name = "", f"after-{after}"
    prose += text[end:]
    close()
    ids = [cell.id for cell in cells]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise ValueError(f"{SOURCE.name}: two cells are called {', '.join(twice)}; give one another name or heading")
    return cells


def lesson_edition(committed: Path, run: bool) -> str:
    """Return the notebook's text: executed now, or with the outputs that the committed file has."""
    notebook = new_notebook(cells=lesson_cells(), metadata=KERNEL)
    if run:
        with tempfile.TemporaryDirectory() as folder:
            client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": folder}})
            path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
            client.execute(env=os.environ | {"PYTHONPATH": path})
        outputs = {cell.id: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}
    elif committed.exists():
        cells = nbformat.read(committed, as_version=4).cells
        outputs = {cell.id: cell.outputs for cell in cells if cell.cell_type == "code"}
    else:
        outputs = {}
    notebook = new_notebook(cells=lesson_cells(), metadata=KERNEL)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for count, cell in enumerate(code, 1):
        cell.execution_count = count
        if UNCHECKED not in cell.metadata.get("tags", []):
            cell.outputs = _joined(outputs.get(cell.id, []))
            for output in cell.outputs:
                output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
                if "execution_count" in output:
                    output.execution_count = count
    return nbformat.writes(notebook) + "\n"


def _joined(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Pieces of one stream as one: where a kernel cuts it is a matter of timing."""
    joined: list[nbformat.NotebookNode] = []
    for output in outputs:
        before = joined[-1] if joined else None
        if before and output.output_type == "stream" == before.output_type and output.name == before.name:
            before.text += output.text
        else:
            joined.append(output)
    return joined


def _outside_fences(text: str) -> list[re.Match]:
    """The blocks and headings of the text; what looks like one inside another fence is passed over."""
    plain = [match.span() for match in re.finditer(r"^```(?!python cell=|figure )\w+\n.*?^```$", text, re.S | re.M)]
    return [m for m in _BLOCK.finditer(text) if not any(start <= m.start() < end for start, end in plain)]


def _slug(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def _block_cells(match: re.Match) -> tuple[list[nbformat.NotebookNode], str]:
    """The cells of one block, and the name that the prose after it takes up."""
    if match["code"]:
        return [_code(match["code"], match["source"], bool(match["unchecked"]))], match["code"]
    if match["figure"]:
        name = match["figure"]
        slug = name.replace("_", "-")
        still = (
            "<details><summary>The picture and its numbers, without a kernel</summary>\n\n"
            f"![{review.filled(match['alt'])}](figures/{name}.svg)\n\n{review.filled(match['sentence'])}\n\n</details>"
        )
        return [
            _code(f"figure-{slug}", f"figures.{name}()"),
            new_markdown_cell(still, id=f"still-{slug}"),
        ], f"figure-{slug}"
    if match["check"]:
        name = match["check"]
        return [
            _code(f"check-{name}", f'quick_check("{name}")'),
            new_markdown_cell(review.check_markdown(review.QUICK_CHECKS[name]), id=f"text-{name}"),
        ], f"check-{name}"
    name = match["questions"]
    slug = "questions-" + name.lower().replace("_", "-")
    return [new_markdown_cell(review.questions_markdown(getattr(review, name).values()), id=slug)], slug


def _code(name: str, source: str, unchecked: bool = False) -> nbformat.NotebookNode:
    return new_code_cell(source, id=name, metadata={"tags": [UNCHECKED]} if unchecked else {})
