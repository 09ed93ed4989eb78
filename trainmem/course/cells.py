"""Read the modules of trainmem_solutions as cells: percent format in, one `Cell` for each cell of the notebooks out.

What a cell is follows from its content: prose; a function with a solution region (an answer); a function under a
header with points (a graded check); a hidden function, which checks carry inside their hidden region; or code that is
run as it stands, with a call of the function that its header names. Prose under the headers `reasoning` and `mistakes`
and code under `figure` are for the self-study edition alone: `course_cells`, of which the source and the release are
made, knows nothing of them. Names come from functions, headers and headings, never from positions.
"""

import ast
import builtins
import re
import textwrap
from dataclasses import dataclass, replace
from importlib import resources
from types import ModuleType
from typing import Literal

import trainmem_solutions
from trainmem.course import self_study

BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
BEGIN_HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"

# Without `_`, which an interactive session or gettext may have put among them.
BUILTINS = {name for name in vars(builtins) if not name.startswith("_")}

#: Kinds of cells that no student and no grader gets to see.
SELF_STUDY_ONLY = ("reasoning", "mistakes", "figure")


@dataclass(frozen=True)
class Cell:
    """One cell of the course's notebooks.

    name: unique, the same as its id and grade_id. module: the module that it is written in. points: what a check is
    worth, 0 elsewhere.
    """

    name: str
    kind: Literal["prose", "answer", "check", "code", "reasoning", "mistakes", "figure"]
    source: str
    module: str
    points: int = 0


def course_cells() -> list[Cell]:
    """Return the cells of all exercises in the order of the notebook; raises ValueError where two share a name."""
    cells = [cell for module in trainmem_solutions.MODULES for cell in module_cells(module)]
    return _named_apart([cell for cell in cells if cell.kind not in SELF_STUDY_ONLY])


def self_study_cells() -> list[Cell]:
    """Return the same with what the self-study edition adds: its welcome below the title, reasoning, more exercises."""
    title, *exercises = [cell for module in trainmem_solutions.MODULES for cell in module_cells(module)]
    added = [cell for module in self_study.MODULES for cell in module_cells(module, self_study)]
    return _named_apart([title, *module_cells(self_study.WELCOME, self_study), *exercises, *added])


def _named_apart(cells: list[Cell]) -> list[Cell]:
    names = [cell.name for cell in cells]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two cells are called {name!r}: give one another heading, header or function name")
    return cells


def module_cells(module: str, package: ModuleType = trainmem_solutions) -> list[Cell]:
    """Return the cells of one module of a package; what stands above the first `# %%` belongs to none."""
    text = resources.files(package).joinpath(f"{module}.py").read_text("utf-8")
    _, *parts = re.split(r"^# %%", text, flags=re.MULTILINE)
    hidden: dict[str, str] = {}
    cells: list[Cell] = []
    for part in parts:
        header, _, body = part.partition("\n")
        header, body = header.strip(), body.strip("\n")
        if header.endswith("[markdown]"):
            kind = header.removesuffix("[markdown]").strip() or "prose"
            cells.append(_prose_cell(kind, re.sub(r"^# ?", "", body, flags=re.MULTILINE), module, cells))
        elif header == "hidden":
            hidden[_functions(body)[-1].name] = body
        else:
            cells.append(_code_cell(header, re.sub(r"  # noqa.*", "", body), module, hidden))
    return cells


def _prose_cell(kind: str, prose: str, module: str, before: list[Cell]) -> Cell:
    if kind == "reasoning":  # of the last answer above it
        answers = [cell.name for cell in before if cell.kind == "answer"]
        if not answers:
            raise ValueError(f"{module}: reasoning without an answer above it: {prose[:60]!r}")
        return Cell(f"answer-{answers[-1]}", "reasoning", prose, module)
    if kind not in ("prose", "mistakes"):
        raise ValueError(f"{module}: prose is [markdown], reasoning [markdown] or mistakes [markdown], not {kind!r}")
    return Cell(_slug(prose), kind, prose, module)


def _code_cell(header: str, body: str, module: str, hidden: dict[str, str]) -> Cell:
    functions = _functions(body)
    points = re.fullmatch(r"points=(\d+)", header)
    if BEGIN_SOLUTION in body:
        return Cell(functions[-1].name, "answer", _without_decorators(body), module)
    if points:
        name = functions[-1].name
        source = _import_builtins(_with_hidden_functions(body, hidden))
        return Cell(name, "check", f"{source}\n\n\n{name}()", module, int(points[1]))
    if not header:
        raise ValueError(f"{module}: a code cell without a name: {body[:60]!r}")
    if header.startswith("figure "):
        return Cell(header.removeprefix("figure "), "figure", body, module)
    call = f"\n\n\n{header}()" if header in [function.name for function in functions] else ""
    return Cell(header, "code", _import_builtins(body) + call, module)


def _functions(body: str) -> list[ast.FunctionDef]:
    return [node for node in ast.parse(body).body if isinstance(node, ast.FunctionDef)]


def _slug(prose: str) -> str:
    heading = re.match(r"#+ (.*)", prose)
    if not heading:
        raise ValueError(f"prose must begin with a heading: {prose[:60]!r}")
    return re.sub(r"[^a-z0-9]+", "-", heading[1].lower()).strip("-")


def _without_decorators(body: str) -> str:
    """Drop the decorators: they guard the reference functions and are no part of the exercise."""
    function = _functions(body)[-1]
    lines = body.split("\n")
    first = min((decorator.lineno for decorator in function.decorator_list), default=function.lineno)
    return "\n".join(lines[: first - 1] + lines[function.lineno - 1 :])


def _with_hidden_functions(body: str, hidden: dict[str, str]) -> str:
    """Put the hidden functions that a check uses at the beginning of its hidden region, so that it stands alone."""
    needed, text = [], body
    for name in reversed(hidden):  # a hidden function uses only earlier ones
        if re.search(rf"\b{name}\b", text):
            needed.insert(0, hidden[name])
            text += hidden[name]
    if not needed:
        return body
    definitions = textwrap.indent("\n\n".join(needed), "    ")
    return body.replace(BEGIN_HIDDEN, f"{BEGIN_HIDDEN}\n{definitions}\n", 1)


def _import_builtins(body: str) -> str:
    """Let every function import the built-ins that it uses, so that a student's own `sum` or `max` cannot reach it.

    Names that only the hidden region uses are imported there.
    """
    lines = body.split("\n")
    begin = next((i for i, line in enumerate(lines, 1) if line.strip() == BEGIN_HIDDEN), len(lines) + 1)
    insertions: list[tuple[int, str]] = []
    tree = ast.parse(body)
    scopes = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    scopes += [
        method
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, ast.FunctionDef)
    ]
    for scope in scopes:
        names = [node for statement in scope.body for node in ast.walk(statement) if isinstance(node, ast.Name)]
        used = [node for node in names if isinstance(node.ctx, ast.Load) and node.id in BUILTINS]
        visible = sorted({node.id for node in used if node.lineno < begin})
        only_hidden = sorted({node.id for node in used if node.lineno > begin} - set(visible))
        first = scope.body[0]
        documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        start = first.end_lineno if documented else first.lineno - 1
        indent = " " * first.col_offset
        for at, imported in ((start, visible), (begin, only_hidden)):
            if imported:
                insertions.append((at, f"{indent}from builtins import {', '.join(imported)}"))
    for at, line in sorted(insertions, reverse=True):
        lines.insert(at, line)
    return "\n".join(lines)


def without_solution(cell: Cell, stub: str) -> Cell:
    """Return an answer cell with its solution region replaced by the stub, as nbgrader does it."""
    region = re.compile(rf"^( *){BEGIN_SOLUTION}\n.*?^ *{END_SOLUTION}$", re.DOTALL | re.MULTILINE)
    return replace(cell, source=region.sub(lambda match: textwrap.indent(stub, match[1]), cell.source))


def without_marks(source: str) -> str:
    """Return a cell's source without the lines that mark solution and hidden regions."""
    marks = (BEGIN_SOLUTION, END_SOLUTION, BEGIN_HIDDEN, END_HIDDEN)
    return "\n".join(line for line in source.split("\n") if line.strip() not in marks)
