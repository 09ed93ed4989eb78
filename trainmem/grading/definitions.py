"""What a cell of the student's defines and what it needs, read without running it."""

import ast
import re
import symtable
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from trainmem.grading.inside.cells import OTHER_LANGUAGES, parse

_MAX_PARSED_CHARACTERS = 200_000
_MAX_REMEMBERED_CHARACTERS = 20_000
_NOT_RUN = ("writefile", "file")
_DEFINITION_LINE = re.compile(r"^(?:async +)?(?:def|class) +(\w+)|^(\w+) *=(?!=)", re.MULTILINE)


@dataclass(frozen=True)
class Contents:
    """Names at the top level of a cell.

    defines: bound to what may be a function. unwritten: functions among these that only raise NotImplementedError.
    binds: bound to anything. uses: global names that its code reads. broken: it is no Python, and the names are those
    at the beginning of its lines. only_unwritten: it says nothing but unwritten functions.
    """

    defines: frozenset[str] = frozenset()
    unwritten: frozenset[str] = frozenset()
    binds: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()
    broken: bool = False
    only_unwritten: bool = False

    @property
    def writes(self) -> frozenset[str]:
        """The functions that it defines and has written."""
        return self.defines - self.unwritten


def contents(source: str, functions: frozenset[str] = frozenset()) -> Contents:
    """Return what a cell with IPython's syntax defines.

    functions: names whose call gives a number, so that `best_k = best_k(80, 2, 34)` defines no function.
    """
    read = _remembered if len(source) < _MAX_REMEMBERED_CHARACTERS else _contents
    return read(source, functions)


def _contents(source: str, functions: frozenset[str]) -> Contents:
    magic = re.match(r"\s*%%(\S*).*\n?", source)
    if magic:
        if magic[1] in _NOT_RUN or OTHER_LANGUAGES.fullmatch(magic[1]):
            return Contents()
        return _contents(source[magic.end() :], functions)
    if len(source) > _MAX_PARSED_CHARACTERS:
        return _by_lines(source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text, tree = parse(source)
            uses = _global_reads(symtable.symtable(text, "<cell>", "exec"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _by_lines(source)
    names = _Names(functions)
    names.visit_block(tree.body)
    if names.returns:
        return _by_lines(source)
    unwritten = frozenset(name for name, written in names.functions.items() if not written)
    only = bool(tree.body) and all(isinstance(node, ast.FunctionDef) and node.name in unwritten for node in tree.body)
    defines = frozenset(names.functions)
    return Contents(defines, unwritten, frozenset(names.bound), uses, False, only)


# A class hands in the same checks and prose again and again.
_remembered = lru_cache(maxsize=256)(_contents)


def _by_lines(source: str) -> Contents:
    found = frozenset(name for pair in _DEFINITION_LINE.findall(source) for name in pair if name)
    return Contents(defines=found, binds=found, broken=True)


class _Names:
    """Collects what statements at the top level bind, also inside if, for, while, with, try and match."""

    def __init__(self, number_functions: frozenset[str]) -> None:
        self.number_functions = number_functions
        self.bound: set[str] = set()
        self.functions: dict[str, bool] = {}
        self.returns = False

    def visit_block(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self.visit(statement)

    def visit(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self.bound.add(node.name)
            self.functions[node.name] = not is_unwritten(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                self._bind(alias.asname or alias.name.split(".")[0], function=True)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for inner in ast.walk(target):
                    if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                        self._bind(inner.id, function=self._may_be_function(node.value))
        elif isinstance(node, ast.Return):
            self.returns = True  # outside of any function: part of one that was split
        else:
            for field in ("body", "orelse", "finalbody"):
                self.visit_block(getattr(node, field, []))
            for part in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
                self.visit_block(part.body)

    def _bind(self, name: str, *, function: bool) -> None:
        self.bound.add(name)
        if function:
            self.functions[name] = True
        else:
            self.functions.pop(name, None)

    def _may_be_function(self, value: ast.expr | None) -> bool:
        if isinstance(value, ast.Call):
            return not (isinstance(value.func, ast.Name) and value.func.id in self.number_functions)
        return isinstance(value, ast.Lambda | ast.Name | ast.Attribute | ast.Subscript | ast.IfExp | ast.Tuple)


def is_unwritten(node: ast.AST) -> bool:
    """Tell whether a function does nothing but raise NotImplementedError, whatever its documentation says."""
    if not isinstance(node, ast.FunctionDef):
        return False
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    if len(body) != 1 or not isinstance(body[0], ast.Raise):
        return False
    raised = body[0].exc
    raised = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"


def _global_reads(table: symtable.SymbolTable) -> frozenset[str]:
    reads: set[str] = set()
    tables = [table]
    while tables:
        one = tables.pop()
        tables += one.get_children()
        top = one.get_type() == "module"
        reads |= {s.get_name() for s in one.get_symbols() if s.is_referenced() and (top or s.is_global())}
    return frozenset(reads)
