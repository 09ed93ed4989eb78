"""The regions of a cell that students do not get, between nbgrader's markers: an answer's solution, hidden checks."""

import re
import textwrap

BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
BEGIN_HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
_SOLUTION = re.compile(rf"^( *){BEGIN_SOLUTION}\n.*?^ *{END_SOLUTION}$", re.DOTALL | re.MULTILINE)
_HIDDEN = re.compile(rf"^ *{BEGIN_HIDDEN}\n(.*?)^ *{END_HIDDEN}(?:\n|\Z)", re.DOTALL | re.MULTILINE)


def without_solution(source: str, stub: str) -> str:
    """Return a cell's source with its solution replaced by the stub, as nbgrader does it."""
    return _SOLUTION.sub(lambda region: textwrap.indent(stub, region[1]), source)


def without_hidden(source: str) -> str:
    """Return a cell's source without its hidden regions."""
    return _HIDDEN.sub("", source)


def hidden_regions(source: str) -> tuple[str, ...]:
    """Return what stands in a cell's hidden regions."""
    return tuple(_HIDDEN.findall(source))


def without_marks(source: str) -> str:
    """Return a cell's source without the lines that mark regions."""
    marks = (BEGIN_SOLUTION, END_SOLUTION, BEGIN_HIDDEN, END_HIDDEN)
    return "\n".join(line for line in source.split("\n") if line.strip() not in marks)
