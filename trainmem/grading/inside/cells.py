"""Run a student's cells as a notebook would, without a kernel, and answer calls of the functions that they define.

IPython's own transformer turns cell syntax into Python; what magics, shell lines, widgets and Colab's modules would do
beyond that is left out, so that an answer beside them still counts.
"""

import __future__

import ast
import asyncio
import builtins
import contextlib
import importlib.abc
import importlib.machinery
import inspect
import io
import linecache
import os
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

Ask = Callable[[str, tuple[Any, ...], dict[str, Any]], Any]
"""Asks the grader for the value of a right function: name, positional and keyword arguments."""

_LASTING_FLAGS = __future__.annotations.compiler_flag
OTHER_LANGUAGES = re.compile(
    r"!|bash|cmd|html|javascript|js|latex|markdown|perl|pypy|python[23]?|ruby|script|sh|svg|sx|system", re.I
)


class Harmless:
    """Stands for what a module that is not installed holds, and for all that comes of it.

    Everything about it succeeds, except being a number: then the module is missing after all. Called with one function,
    as a decorator is, it gives that function back.
    """

    _module = ""  # "" where nothing is missing, as with what a shell gives

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    @classmethod
    def of(cls, module: str) -> "Harmless":
        """Make one for a module."""
        made = Harmless()
        made._module = module
        return made

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        decorates = len(arguments) == 1 and not keywords and isinstance(arguments[0], types.FunctionType | type)
        return arguments[0] if decorates else Harmless.of(self._module)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Harmless.of(self._module)

    def __getitem__(self, _: Any) -> Any:
        return Harmless.of(self._module)

    def as_plain_data(self, *_: Any) -> Any:
        """Raise ModuleNotFoundError, as the import would have done."""
        if self._module:
            raise ModuleNotFoundError(f"No module named {self._module!r}")
        return []

    __int__ = __float__ = __index__ = __neg__ = __abs__ = __round__ = as_plain_data
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = as_plain_data
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = as_plain_data
    __lt__ = __le__ = __gt__ = __ge__ = as_plain_data

    def __setitem__(self, *_: Any) -> None:
        pass

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def __mro_entries__(self, _: Any) -> tuple[type, ...]:
        return ()


class HarmlessModule(types.ModuleType):
    """A module that is not installed: everything can be imported from it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Harmless.of(self.__name__)


class AbsentModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds what nobody else finds, where a student's cell imports it and has made no provision for its absence."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module = module
        self.provided_for: set[str] = set()
        self.given: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        parent = name.rpartition(".")[0]
        if parent not in self.given and not name.startswith("google.colab"):
            frame = sys._getframe(1)
            while frame is not None and "importlib" in frame.f_code.co_filename:
                frame = frame.f_back
            if frame is None or frame.f_globals is not self.module.__dict__ or name.split(".")[0] in self.provided_for:
                return None
        self.given.add(name)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return HarmlessModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


class Output(list):
    """What a shell line gave: nothing."""

    n = s = nlstr = spstr = property(lambda self: "")
    l = list = property(lambda self: [])


class Shell:
    """As much of IPython's shell as transformed cells call."""

    def __init__(self, module: types.ModuleType, run: Callable[[str], None]) -> None:
        self.user_module = module
        self.user_ns = module.__dict__
        self.run = run

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Harmless()

    def system(self, _: str) -> None:
        return None

    def getoutput(self, _: str, *__: Any, **___: Any) -> Output:
        return Output()

    getoutput_pexpect = getoutput

    def run_line_magic(self, name: str, line: str, *_: Any, **__: Any) -> Any:
        if name in ("time", "prun", "memit", "timeit"):
            self.run(_without_options(line))
        elif name == "run" and line.split():
            path = line.split()[0].strip("\"'")
            with open(path if os.path.exists(path) else path + ".py") as file:
                self.run(file.read())
        elif name == "reset":
            for key in [key for key in self.user_ns if not key.startswith("__")]:
                del self.user_ns[key]
        elif name in ("sx", "system"):
            return Output()
        return None

    magic = run_line_magic

    def run_cell_magic(self, name: str, line: str, body: str) -> Any:
        if name in ("writefile", "file"):
            path = line.replace("-a", "", 1).strip().strip("\"'")
            with open(path, "a" if line.strip().startswith("-a") else "w") as file:
                file.write(body)
        elif not OTHER_LANGUAGES.fullmatch(name):
            self.run(body)
            if name == "capture" and line.split() and line.split()[0].isidentifier():
                self.user_ns[line.split()[0]] = Harmless()
        return None


def _without_options(line: str) -> str:
    words = line.split(" ")
    while words and words[0].startswith("-"):
        takes_value = len(words[0]) == 2 and len(words) > 1 and words[1].isdigit()
        words = words[2 if takes_value else 1 :]
    return " ".join(words)


# As it stands in a pasted session, of which IPython takes it away; "In [1]: f = ..." would be Python too.
PROMPT = re.compile(r"^(?:\[(?:nav|ins)\] )?In \[\d+\]: |^\s*\.{3,}:", re.MULTILINE)


def parse(source: str, name: str = "<cell>") -> tuple[str, ast.Module]:
    """A cell's source as Python's text and tree."""
    if not PROMPT.search(source):
        # What is Python already has nothing else of IPython in it, and most cells are.
        with contextlib.suppress(SyntaxError, ValueError):
            return f"{source}\n", ast.parse(source, name)
    text = TransformerManager().transform_cell(source)
    return text, ast.parse(text, name)


def shape(source: str) -> str:
    """A text that two cells share when they say the same, whatever their comments and spaces."""
    return ast.dump(parse(source)[1])


class Notebook:
    """A student's namespace, and each exercise's functions as they stood at its end."""

    def __init__(self, helpers: types.CodeType | None, stubs: set[str], checks: Iterable[str], ask: Ask) -> None:
        self.module = types.ModuleType("__main__")
        self.namespace = self.module.__dict__
        self.namespace["__builtins__"] = builtins
        sys.modules["__main__"] = self.module
        self.ask = ask
        self.stubs = stubs
        self.flags = 0
        self.count = 0
        self.snapshots: dict[int, dict[str, Any]] = {}
        self.owner: dict[str, int] = {}
        self.shown: int | None = None
        self.absent = AbsentModules(self.module)
        sys.meta_path.append(self.absent)
        self._furnish()
        if helpers is not None:
            with contextlib.suppress(Exception):
                exec(helpers, self.namespace)
        for name in checks:
            self.namespace[name] = lambda *_, **__: None

    def _furnish(self) -> None:
        """What a notebook has at hand, so made that nothing waits for a person or a browser."""
        shell = Shell(self.module, self.run)
        asked = iter(["1"] * 100)

        def answer(*_: Any) -> str:
            for text in asked:
                return text
            raise EOFError("nobody is there to answer")

        def display(*_: Any, **__: Any) -> Harmless:
            return Harmless()

        builtins.input = answer
        builtins.get_ipython = lambda: shell
        builtins.display = display
        builtins.exit = builtins.quit = lambda *_: None
        self.namespace.update({"In": [""], "Out": {}, "_": "", "__": "", "___": "", "_ih": [""], "_oh": {}})
        ipython = sys.modules.get("IPython")
        if ipython is not None:
            ipython.get_ipython = builtins.get_ipython
            sys.modules["IPython.core.getipython"].get_ipython = builtins.get_ipython
            for name in ("IPython.display", "IPython.core.display", "IPython.core.display_functions"):
                module = sys.modules.get(name)
                if module is not None and hasattr(module, "display"):
                    module.display = display
        warnings.simplefilter("ignore")
        for name in ("stdout", "stderr"):
            stream = io.TextIOWrapper(open(os.devnull, "wb"), "utf-8", errors="replace")  # noqa: SIM115
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        sys.stdin = io.StringIO()
        sys.path.insert(0, "")
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None:
            pyplot.show = lambda *_, **__: None

    def run(self, source: str) -> None:
        """Run one cell's source in the namespace, unless it is a stub and its name is taken. Raises what it raises."""
        self.count += 1
        name = f"<cell {self.count}>"
        text, tree = parse(source, name)
        if ast.dump(tree) in self.stubs and any(getattr(node, "name", None) in self.namespace for node in tree.body):
            return
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        self.absent.provided_for |= _provided_for(tree)
        code = compile(tree, name, "exec", self.flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        self.flags |= code.co_flags & _LASTING_FLAGS
        if code.co_flags & inspect.CO_COROUTINE:
            asyncio.run(eval(code, self.namespace))
        else:
            exec(code, self.namespace)

    def cell(self, source: str, bind: dict[str, str], capture: dict[str, int]) -> None:
        """Run a cell; then bind right functions to names that it defined, and keep those that are finished.

        `bind` says of each name ``"if defined"`` (by this cell) or ``"always"``; `capture` gives a finished function's
        exercise. Both happen even where the cell raises, and its exception then goes on.
        """
        before = {name: self.namespace.get(name) for name in bind}
        try:
            if source:
                self.run(source)
        finally:
            for name, when in bind.items():
                own = self.namespace.get(name)
                if when == "always" or own is not before[name]:
                    self.namespace[name] = self._right(name, own)
            self.owner.update(capture)
            for exercise in set(capture.values()):
                self.snapshots[exercise] = dict(self.namespace)

    def _right(self, name: str, own: Any) -> Callable[..., Any]:
        """A function that has the right values and takes what the student's own took."""
        try:
            signature = None if isinstance(own, _Right) else inspect.signature(own)
        except (TypeError, ValueError):
            signature = None
        return _Right(name, signature, self.ask)

    def call(self, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Call a kept function, with all names of the notebook as they stood at the end of its exercise."""
        exercise = self.owner[name]
        if self.shown != exercise:
            if self.shown is not None:
                self.snapshots[self.shown] = dict(self.namespace)
            # A later cell may have used the name of an earlier one's helper again. Never empty: threads may be running.
            then = self.snapshots[exercise]
            self.namespace.update(then)
            for later in self.namespace.keys() - then.keys():
                del self.namespace[later]
            self.shown = exercise
        if name not in self.namespace:
            error = NotImplementedError()  # as the stub does
            error.function = name
            raise error
        return self.namespace[name](*arguments, **keywords)


class _Right:
    """A right function, reached through the grader: values cross, nothing else."""

    def __init__(self, name: str, own: inspect.Signature | None, ask: Ask) -> None:
        self.__name__ = self.__qualname__ = name
        self._own = own
        self._ask = ask

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        if self._own is not None:
            try:
                bound = self._own.bind(*arguments, **keywords)
            except TypeError:
                pass
            else:
                return self._ask(self.__name__, *_by_parameter(self._own, bound))
        return self._ask(self.__name__, arguments, keywords)


def _by_parameter(own: inspect.Signature, bound: inspect.BoundArguments) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call in the student's order as one by names: required parameters in order, the others by keyword."""
    kinds = inspect.Parameter
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        parameter = own.parameters[name]
        if parameter.kind is kinds.VAR_POSITIONAL:
            positional.extend(value)
        elif parameter.kind is kinds.VAR_KEYWORD:
            named.update(value)
        elif parameter.default is kinds.empty and parameter.kind is not kinds.KEYWORD_ONLY and not named:
            positional.append(value)
        else:
            named[name] = value
    return tuple(positional), named


def _provided_for(tree: ast.AST) -> set[str]:
    """Top-level modules whose import the source guards itself, by a try statement."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and node.handlers:
            for inner in (item for statement in node.body for item in ast.walk(statement)):
                if isinstance(inner, ast.Import):
                    names |= {alias.name.split(".")[0] for alias in inner.names}
                elif isinstance(inner, ast.ImportFrom) and inner.module:
                    names.add(inner.module.split(".")[0])
    return names
