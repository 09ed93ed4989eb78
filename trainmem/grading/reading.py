"""From a file's bytes to its cells, believing nothing but the text of each and what it may be called."""

import codecs
import json
import re
from dataclasses import dataclass
from typing import Any, Literal

MAX_FILE_BYTES = 100_000_000
MAX_SOURCE_CHARACTERS = 1_000_000
MAX_CELLS = 500
_LARGE_BYTES = 1_000_000  # of outputs and attachments, from which on their loss is told
_BLANK = "\0 \t\r\n\ufeff"

Kind = Literal["code", "markdown", "raw"]


class Refused(Exception):
    """A submission cannot be graded. The message is one sentence without its end: which file, and why."""


@dataclass(frozen=True)
class RawCell:
    """A cell of the student's file. `names`: what it claims to be called, the most trustworthy first."""

    kind: Kind
    source: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class RawNotebook:
    """The cells of a file in order; sentences on what was repaired and on what was cut."""

    cells: tuple[RawCell, ...]
    repairs: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()


def read_notebook(data: bytes, file: str) -> RawNotebook:
    """Return the cells of a notebook in nbformat 2 to 4, in any encoding; `file` is its name in sentences.

    Raises Refused where the bytes hold no notebook.
    """
    repairs: list[str] = []
    cut: list[str] = []
    notebook = _document(_decoded(data, file, repairs), file, repairs)
    listed = _listed_cells(notebook, file, repairs)
    if not listed:
        raise Refused(f"{file} is a notebook without any cell")
    cells = [_cell(item) for item in listed if isinstance(item, dict)]
    if len(cells) < len(listed):
        repairs.append(f"{_many(len(listed) - len(cells), 'entry', 'entries')} among the cells were none and left out.")
    beside_bytes = len(data) - sum(len(cell.source.encode()) for cell in cells)
    long = [cell for cell in cells if len(cell.source) > MAX_SOURCE_CHARACTERS]
    if long:
        cells = [cell for cell in cells if cell not in long]
        cut.append(f"{_many(len(long), 'cell')} of more than {MAX_SOURCE_CHARACTERS:,} characters left out.")
    if len(cells) > MAX_CELLS:
        cut.append(f"{len(cells) - MAX_CELLS:,} cells after the first {MAX_CELLS:,} left out.")
        del cells[MAX_CELLS:]
    if beside_bytes > _LARGE_BYTES:
        cut.append(f"Saved outputs, images and attachments of {beside_bytes / 1e6:.1f} MB were left out.")
    return RawNotebook(tuple(cells), tuple(repairs), tuple(cut))


def _many(count: int, one: str, more: str | None = None) -> str:
    return f"{count} {one if count == 1 else more or one + 's'}"


def _decoded(data: bytes, file: str, repairs: list[str]) -> str:
    if not data.strip(_BLANK.encode()):
        raise Refused(f"{file} is empty" + (f" ({len(data):,} bytes of nothing)" if data else ""))
    for beginning, kind in ((b"%PDF", "a PDF file"), (b"\x1f\x8b", "a gzip archive"), (b"\x89PNG", "a picture")):
        if data.startswith(beginning):
            raise Refused(f"{file} is {kind}, not the notebook itself")
    marks = (
        (codecs.BOM_UTF8, "utf-8-sig", "UTF-8 with a byte-order mark"),
        (codecs.BOM_UTF32_LE, "utf-32", "UTF-32"),
        (codecs.BOM_UTF32_BE, "utf-32", "UTF-32"),
        (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
        (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
        (b"{\0", "utf-16-le", "UTF-16"),
        (b"\0{", "utf-16-be", "UTF-16"),
    )
    encoding = "utf-8"
    for mark, name, called in marks:
        if data.startswith(mark):
            repairs.append(f"The file was saved as {called}.")
            encoding = name
            break
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        repairs.append("Some characters of the file could not be read and were replaced.")
        return data.decode(encoding, "replace")


def _document(text: str, file: str, repairs: list[str]) -> Any:
    text = text.strip(_BLANK)
    if not text:
        raise Refused(f"{file} is empty")
    if re.match(r"<(?!<)", text):
        raise Refused(f"{file} is a web page (HTML), not the notebook itself: download the notebook, not the page")
    try:
        document, end = json.JSONDecoder(strict=False).raw_decode(text)
    except json.JSONDecodeError as error:
        conflict = re.search(r"^(<{7}|={7}|>{7})( |\r?$)", text, re.MULTILINE)
        if conflict:
            line = text.count("\n", 0, conflict.start()) + 1
            raise Refused(f"{file} holds merge-conflict markers (line {line}): two versions stand in it") from None
        if error.pos >= len(text) - 1 or error.msg.startswith("Unterminated string"):
            raise Refused(f"{file} ends in the middle (line {text.count(chr(10)) + 1}): it was cut off") from None
        where = f"line {error.lineno}, column {error.colno}"
        raise Refused(f"{file} is no notebook: it cannot be read as JSON ({where}: {error.msg})") from None
    except (RecursionError, ValueError):
        raise Refused(f"{file} is no notebook: it is nested too deep or holds a number without end") from None
    rest = text[end:].strip(_BLANK)
    if rest.startswith("{"):
        raise Refused(f"{file} holds two notebooks, one after the other")
    if rest:
        repairs.append("What followed the notebook's end in the file was left out.")
    return document


def _listed_cells(notebook: Any, file: str, repairs: list[str]) -> list[Any]:
    if not isinstance(notebook, dict):
        raise Refused(f"{file} is no notebook: its JSON is no object with cells")
    if "cells" not in notebook and isinstance(notebook.get("content"), dict):
        notebook = notebook["content"]  # as Jupyter's own contents service sends it
    if isinstance(notebook.get("cells"), list):
        return notebook["cells"]
    if isinstance(notebook.get("worksheets"), list):
        repairs.append("The notebook was in an old format (nbformat 3 or older).")
        sheets = [sheet.get("cells") for sheet in notebook["worksheets"] if isinstance(sheet, dict)]
        return [cell for cells in sheets if isinstance(cells, list) for cell in cells]
    raise Refused(f"{file} is no notebook: it has no list of cells")


def _cell(item: dict[str, Any]) -> RawCell:
    written = item.get("cell_type")
    kind: Kind
    if written in ("markdown", "heading"):
        kind = "markdown"
    elif written in ("raw", "html", "plaintext", "rst"):
        kind = "raw"
    else:  # a type that does not exist, too: code is what may hold an answer
        kind = "code"
    metadata = item.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    nbgrader = metadata.get("nbgrader")
    nbgrader = nbgrader if isinstance(nbgrader, dict) else {}
    claims = (nbgrader.get("grade_id"), item.get("id"), metadata.get("id"))
    names = tuple(name for name in claims if isinstance(name, str) and len(name) < 200)
    return RawCell(kind, _source(item.get("source", item.get("input"))), names)


def _source(value: Any) -> str:
    if isinstance(value, list):
        lines = [line for line in value if isinstance(line, str)]
        # Some tools write the lines without their ends.
        unended = len(lines) > 1 and not any(line.endswith(("\n", "\r")) for line in lines[:-1])
        value = ("\n" if unended else "").join(lines)
    if not isinstance(value, str):
        return ""
    try:
        value.encode()
    except UnicodeEncodeError:
        value = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
