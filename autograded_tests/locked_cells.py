"""The source notebook's locked cells with somebody's answers, in one namespace and without a kernel."""

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import Literal

from autograded_tests.answers import NAMES, exercise, notebook_cells
from trainmem.course.cells import Cell, course_cells
from trainmem.course.regions import without_hidden

CELLS = [cell for cell in course_cells() if cell.kind != "prose"]
CHECKS = {cell.name: cell for cell in CELLS if cell.kind == "check"}
RUN_BY_HAND = ("your_timeline", "formula_and_timeline")  # drawings: no check waits for them


def checks_of(name: str) -> list[str]:
    """The graded checks of one exercise, in order."""
    return [cell.name for cell in CHECKS.values() if cell.module == name]


@cache
def asked_of(check: str) -> str:
    """The function that a check asks: the longest one that its name begins with."""
    functions = [function for name in NAMES for function in exercise(name).plain]
    return max((function for function in functions if check.startswith(f"check_{function}")), key=len)


@cache
def code(source: str, where: str) -> CodeType:
    return compile(source, where, "exec", dont_inherit=True)


@cache
def check_code(name: str, part: str) -> CodeType:
    """The definition of a check, without its call; "visible" leaves out the hidden region, as the release does."""
    source = CHECKS[name].source.removesuffix(f"\n\n\n{name}()")
    return code(without_hidden(source) if part == "visible" else source, name)


class Unasked:
    """Stands for `ask` where the hidden cases alone are wanted."""

    def __init__(self, answer: Callable, *args: object, **options: object) -> None:
        self.gives = self.is_refused = lambda *args, **options: None


def run(
    answers: Mapping[str, str],
    checks: Iterable[str],
    seed: object = "practice",
    part: str = "all",
    bound: Mapping[str, Callable] | None = None,
    prepare: Callable[[dict], None] = lambda namespace: None,
) -> dict[str, str | None]:
    """Run the code cells in order up to the last of `checks`; return what each check says, None where it passes.

    answers: function → source of its cell. part: "all", "visible" or "hidden" cases. bound: right functions, each to
    stand in its answer's place once that cell has run. prepare: called with the namespace after the first cell.
    """
    said: dict[str, str | None] = {}
    waiting, namespace = set(checks), {"__name__": "__main__"}
    for cell in CELLS:
        if not waiting:
            break
        if cell.kind == "check":
            if cell.name in waiting:
                waiting.remove(cell.name)
                said[cell.name] = _say(cell, namespace, part)
        elif cell.kind == "answer":
            exec(code(answers[cell.name], cell.name), namespace)
            if bound and cell.name in bound:
                namespace[cell.name] = bound[cell.name]
        elif cell.name not in RUN_BY_HAND:
            exec(code(cell.source, cell.name), namespace)
            if cell.name == "checking":
                namespace["CHECK_SEED"] = seed
                prepare(namespace)
    return said


def _say(cell: Cell, namespace: dict, part: str) -> str | None:
    asks = namespace["ask"]
    exec(check_code(cell.name, part), namespace)
    if part == "hidden":
        namespace["ask"] = Unasked
    try:
        namespace[cell.name]()
    except namespace["CheckFailed"] as failed:
        return failed.args[0]
    finally:
        namespace["ask"] = asks
    return None


@cache
def right_functions() -> dict[str, Callable]:
    """The plain right answers, as functions that know nothing of a student's namespace."""
    namespace: dict = {}
    for name, source in notebook_cells().items():
        exec(code(source, name), namespace)
    return {name: namespace[name] for name in notebook_cells()}


def graded(answers: Mapping[str, str], checks: Iterable[str], seed: object, part: str = "all") -> dict[str, str | None]:
    """The same, where a mistake costs once: what fails beside other wrong answers runs again beside right ones."""
    said, plain = run(answers, checks, seed, part), notebook_cells()
    for check, failed in said.items():
        others = {name: right for name, right in right_functions().items() if name != asked_of(check)}
        if failed and any(answers[name] != plain[name] for name in others):
            said[check] = run(answers, [check], seed, part, bound=others)[check] and failed
    return said


def literals(check: str) -> str:
    """All text that stands in a check and in what every check uses: nothing else may be said of a hidden case."""
    sources = [CHECKS[check].source, next(cell.source for cell in CELLS if cell.name == "checking")]
    trees = [ast.walk(ast.parse(source)) for source in sources]
    return " ".join(
        node.value for tree in trees for node in tree if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


@dataclass(frozen=True)
class Question:
    """One question of a check: what was asked, what is right, and what was said of the answer."""

    check: str
    hidden: bool
    kind: Literal["gives", "refused"]
    function: str
    args: tuple
    options: dict
    text: str
    want: object
    mistakes: object
    said: str | None


def asking(
    answers: Mapping[str, str], checks: Iterable[str], seed: object = "practice", part: str = "all"
) -> tuple[list[Question], dict[str, str | None]]:
    """Run whole checks that go on after what is wrong; return every question, and what the checks themselves say."""
    questions: list[Question] = []
    said: dict[str, str | None] = {}
    for check in checks:

        def listen(namespace: dict, check: str = check) -> None:
            def listening(asks: type, hidden: bool) -> type:
                class Listening(asks):
                    def gives(self, want, mistakes=None, also=(), remark=None):
                        self._note("gives", want, mistakes, lambda: asks.gives(self, want, mistakes, also, remark))

                    def is_refused(self):
                        self._note("refused", None, None, lambda: asks.is_refused(self))

                    def _note(self, kind, want, mistakes, put):
                        told = None
                        try:
                            put()
                        except namespace["CheckFailed"] as failed:
                            told = failed.args[0]
                        asked = (self.name, self.args, self.options, self.text())
                        questions.append(Question(check, hidden, kind, *asked, want, mistakes, told))

                return Listening

            namespace["ask"], namespace["probe"] = (
                listening(namespace["ask"], False),
                listening(namespace["probe"], True),
            )

        said |= run(answers, [check], seed, part, prepare=listen)
    return questions, said
