"""The regions of a cell that students do not get, between nbgrader's markers: an answer's solution, hidden checks."""

import re
import textwrap

BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
BEGIN_HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
# As nbgrader, which looks for a marker anywhere in a line: what it takes out must not stay in here.
_SOLUTION = re.compile(
    rf"^([ \t]*)[^\n]*{BEGIN_SOLUTION}[^\n]*\n.*?^[^\n]*{END_SOLUTION}[^\n]*$", re.DOTALL | re.MULTILINE
)
_HIDDEN = re.compile(rf"^[^\n]*{BEGIN_HIDDEN}[^\n]*\n(.*?)^[^\n]*{END_HIDDEN}[^\n]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)


def without_solution(source: str, stub: str) -> str:
    """Return a cell's source with its solution replaced by the stub, as nbgrader does it.

    Raises ValueError where a marker has no partner: nothing of a solution may stay.
    """
    return _unmarked(_SOLUTION.sub(lambda region: textwrap.indent(stub, region[1]), source))


def without_hidden(source: str) -> str:
    """Return a cell's source without its hidden regions.

    Raises ValueError where a marker has no partner: nothing that is hidden may stay.
    """
    return _unmarked(_HIDDEN.sub("", source), BEGIN_HIDDEN, END_HIDDEN)


def hidden_regions(source: str) -> tuple[str, ...]:
    """Return what stands in a cell's hidden regions."""
    return tuple(_HIDDEN.findall(source))


def _unmarked(source: str, *marks: str) -> str:
    for line in source.split("\n"):
        for mark in marks or (BEGIN_SOLUTION, END_SOLUTION):
            if mark in line:
                first = next(text for text in source.split("\n") if text.strip())
                raise ValueError(f"the cell that begins with {first!r} has a line {line.strip()!r} without its partner")
    return source


def without_marks(source: str) -> str:
    """Return a cell's source without the lines that mark regions."""
    marks = (BEGIN_SOLUTION, END_SOLUTION, BEGIN_HIDDEN, END_HIDDEN)
    return "\n".join(line for line in source.split("\n") if line.strip() not in marks)
