"""Every small change of the reference answers, and the legal input on which a change that matters shows."""

import ast
import copy
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from autograded_tests.locked_cells import CELLS, code
from trainmem.course.regions import without_marks

REFERENCE = {cell.name: without_marks(cell.source) for cell in CELLS if cell.kind == "answer"}
OPERATORS = {
    ast.Add: [ast.Sub, ast.Mult],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Add, ast.Div, ast.FloorDiv],
    ast.Div: [ast.Mult, ast.FloorDiv, ast.Sub],
    ast.FloorDiv: [ast.Div, ast.Mult],
    ast.Mod: [ast.FloorDiv, ast.Mult],
    ast.Pow: [ast.Mult, ast.Add],
    ast.BitOr: [ast.BitAnd],
}
COMPARISONS = {
    ast.Lt: [ast.LtE, ast.Gt],
    ast.LtE: [ast.Lt, ast.GtE],
    ast.Gt: [ast.GtE, ast.Lt, ast.NotEq],
    ast.GtE: [ast.Gt, ast.LtE, ast.Eq],
    ast.Eq: [ast.NotEq, ast.GtE],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
CALLS = {"min": "max", "max": "min", "ceil": "floor", "round": "float", "reversed": "list", "range": "list"}


def mutants(function: str) -> Iterator[tuple[str, str]]:
    """Yield (what was changed, source) for each mutant of one reference answer."""
    tree = ast.parse(REFERENCE[function])
    body = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
    start = body.body[1].lineno  # below the docstring: the signature is given
    assigned = {node.id for node in ast.walk(body) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names = sorted({argument.arg for argument in body.args.args} | assigned)
    seen = {ast.dump(tree)}
    nodes = list(ast.walk(tree))
    for i, node in enumerate(nodes):
        if getattr(node, "lineno", start) < start:
            continue
        for what, change in changes(node, names):
            mutant = copy.deepcopy(tree)
            change(list(ast.walk(mutant))[i])
            key = ast.dump(mutant)
            if key not in seen:
                seen.add(key)
                yield (
                    f"{function}, line {getattr(node, 'lineno', '?')}: {what}",
                    ast.unparse(ast.fix_missing_locations(mutant)),
                )


def changes(node: ast.AST, names: list[str]) -> Iterator[tuple[str, Callable[[ast.AST], None]]]:
    """Yield (what, change) for one node; a change is applied to the same node of a copy."""

    def put(**fields: object) -> Callable[[ast.AST], None]:
        return lambda copied: [setattr(copied, name, copy.deepcopy(value)) for name, value in fields.items()]

    def become(other: ast.AST) -> Callable[[ast.AST], None]:
        def change(copied: ast.AST) -> None:
            new = copy.deepcopy(other)
            copied.__class__, copied.__dict__ = new.__class__, new.__dict__

        return change

    match node:
        case ast.BinOp() | ast.AugAssign():
            for other in OPERATORS.get(type(node.op), ()):
                yield f"{type(node.op).__name__} → {other.__name__}", put(op=other())
            if isinstance(node, ast.BinOp):
                yield "left operand alone", become(node.left)
                yield "right operand alone", become(node.right)
        case ast.Compare(ops=[op]):
            for other in COMPARISONS.get(type(op), ()):
                yield f"{type(op).__name__} → {other.__name__}", put(ops=[other()])
        case ast.BoolOp():
            yield "and ↔ or", put(op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
            for value in node.values:
                yield "one condition alone", become(value)
        case ast.UnaryOp():
            yield "without its sign", become(node.operand)
        case ast.Constant(value=bool(value)):
            yield f"{value} → {not value}", put(value=not value)
        case ast.Constant(value=int(value) | float(value)):
            for other in (value + 1, value - 1, 0):
                yield f"{value} → {other}", put(value=other)
        case ast.Constant(value=str(value)):
            yield f"{value!r} → other text", put(value=value + "x")
        case ast.Constant(value=None):
            yield "None → 0", put(value=0)
        case ast.Name(ctx=ast.Load()):
            for other in names:
                if node.id in names:
                    yield f"{node.id} → {other}", put(id=other)
            if node.id in CALLS:
                yield f"{node.id} → {CALLS[node.id]}", put(id=CALLS[node.id])
        case ast.IfExp():
            yield "always", become(node.body)
            yield "never", become(node.orelse)
        case ast.If() | ast.While():
            yield "condition False", put(test=ast.Constant(False))
            if isinstance(node, ast.If):
                yield "condition True", put(test=ast.Constant(True))
        case ast.Call():
            for j in range(len(node.args)):
                yield f"without argument {j}", put(args=node.args[:j] + node.args[j + 1 :])
            for j, keyword in enumerate(node.keywords):
                yield f"without {keyword.arg}", put(keywords=node.keywords[:j] + node.keywords[j + 1 :])
            if len(node.args) == 1:
                yield "its argument alone", become(node.args[0])
        case ast.Tuple() | ast.List() if isinstance(node.ctx, ast.Load) and len(node.elts) > 1:
            yield "without its last", put(elts=node.elts[:-1])
            yield "without its first", put(elts=node.elts[1:])
            yield "the other way round", put(elts=node.elts[::-1])
        case ast.Dict() if node.keys:
            yield "without its last entry", put(keys=node.keys[:-1], values=node.values[:-1])
        case ast.comprehension() if node.ifs:
            yield "without its condition", put(ifs=[])
        case ast.Yield() | ast.YieldFrom():
            yield "not yielded", become(ast.Constant(None))
    if isinstance(node, ast.stmt) and not isinstance(node, (ast.FunctionDef, ast.Import, ast.ImportFrom, ast.Pass)):
        yield f"without {type(node).__name__}", become(ast.Pass())


class TooLong(BaseException):
    """A mutant that does not end by itself."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TooLong after so many seconds of our own processor time, and MemoryError beyond 256 MiB more than now.

    pytest-timeout has the other clock; a mutant may well repeat a text a billion times.
    """

    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**28, limits[1]))
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, limits)


def legal_calls(function: str) -> list[tuple[tuple, dict]]:
    """Many legal calls with their edges: each mode, stage and style, small and large, ratios that are whole."""
    rng = Random(function)
    calls: list[tuple[tuple, dict]] = []
    ratios = [dict(mlp_ratio=m, n_kv_ratio=r) for m in (1, 1.5, 2.75, 4) for r in (1 / 8, 1 / 2, 1)]
    styles = ("gpt", "llama", "nobody's")
    if function == "params_per_layer":
        calls = [((h,), {**r, "style": y}) for h in (8, 64, 1024) for r in ratios for y in styles] + [
            ((1,), {}),
            ((7,), {}),
        ]
    if function == "model_params":
        ends = [dict(tied=t, positions=p) for t in (True, False) for p in (0, 1, 512)]
        calls = [
            ((L, 64, V), {**r, **e, "style": y})
            for L, V in ((1, 1), (3, 999))
            for r in ratios
            for e in ends
            for y in styles
        ]
    if function == "model_state_bytes":
        calls = [((psi,), {"K": K}) for psi in (1, 2, 7, 10**6, 7e9) for K in (0, 1, 4, 12, 20)] + [((5,), {})]
    if function == "gpus_for_states":
        calls = [
            ((psi,), {"gpu_bytes": g, "K": K})
            for psi in (1, 15, 16, 17, 999, 1000, 1001)
            for g in (1, 16, 1000, 16e3)
            for K in (0, 12)
        ]
        calls += [((psi,), {}) for psi in (1, 5 * 10**9, 5 * 10**9 + 1, 70_000_000_000, 70e9, 70_000_000_001)]
    if function == "activation_bytes":
        modes = ("baseline", "flash", "selective", "full", "nobody's")
        shapes = [(1, 1, 1, 1), (4, 1, 2, 1), (10, 3, 64, 8), (12, 3, 64, 8), (7, 5, 30, 3), (2048, 8, 2048, 16)]
        calls = [(shape, {"mode": mode}) for shape in shapes for mode in modes] + [(shape, {}) for shape in shapes]
    if function == "memory_timeline":
        sizes = [(L, c, A) for L in (1, 2, 3, 5, 12, 13) for c, A in ((2, 34), (7, 7), (50, 3), (0.5, 2.0))]
        calls = [(size, {"k": k}) for size in sizes for k in (None, -1, 0, 1, 2, 3, 5, 12, 40)] + [
            (size, {}) for size in sizes
        ]
    if function == "best_k":
        calls = [
            ((L, c, A), {})
            for L in (1, 2, 3, 9, 24, 33, 35, 40)
            for c, A in ((2, 34), (5, 5), (60, 4), (900, 2), (3, 50))
        ]
    if function in ("peak_bytes", "cheapest_fix"):
        models = [
            (960, 2, 8, 1, 16, 2, 32),
            (48 * 10**6, 40, 512, 7, 256, 4, 5000),
            (48 * 10**8, 24, 64, 13, 640, 5, 99),
        ]
        models += [(48 * 10**5, 60, 4096, 8, 512, 8, 32000), (1_311_528_960, 24, 2048, 8, 2048, 16, 50257)]
    if function == "peak_bytes":
        plans = [
            dict(mode=mode, zero=zero, n_gpus=n, t=t, offload=offload)
            for mode in ("baseline", "flash", "selective", "full")
            for zero in range(4)
            for n, t in ((1, 1), (8, 1), (8, 2), (6, 2), (12, 4))
            for offload in (False, True)
        ]
        calls = [(models[i % 5], plan) for i, plan in enumerate(plans)] + [(model, {}) for model in models]
        calls += [(models[0], dict(mode="nobody's"))]
    if function == "cheapest_fix":
        for model in models:
            for n_gpus in (1, 2, 3, 6, 8, 12, 16):
                for limited_by in ("compute", "communication", "nobody's"):
                    for _ in range(8):
                        free = rng.choice((0.15, 0.25, 0.5))
                        high = 16 * model[0] + 34 * model[1] * model[2] * model[3] * model[4]
                        gpu_bytes = high * 10 ** rng.uniform(-2.2, 0.8) / (1 - free)
                        if limited_by == "nobody's":
                            gpu_bytes = 1.0
                        calls.append(((*model, gpu_bytes), dict(n_gpus=n_gpus, limited_by=limited_by, free=free)))
        calls += [((*models[0], 2 * 26_368), dict(free=0.5)), ((*models[0], 2 * 25_088), dict(free=0.5))]
        calls += [((*models[0], 2 * (16 * 960 + 34 * 256 * 2 + 1024)), dict(free=0.5)), ((*models[3], 80e9), {})]
    return calls


def outcomes(source: str, function: str, seconds: float = 1) -> Iterator[object]:
    """What the function gives for each legal call in turn: a value as plain data, or the name of what it raises."""
    opening = code(next(cell.source for cell in CELLS if cell.name == "checking"), "checking")
    namespace: dict = {}
    exec(opening, namespace)
    for name, text in REFERENCE.items():
        exec(compile(source if name == function else text, name, "exec"), namespace)
        if name == function:
            break
    read = {"memory_timeline": lambda value: namespace["as_numbers"](value, 500), "cheapest_fix": namespace["as_pair"]}
    for args, options in legal_calls(function):
        try:
            with within(seconds):
                value = read.get(function, namespace["as_number"])(namespace[function](*args, **options))
        except (Exception, TooLong) as error:
            yield type(error).__name__
        else:
            yield best_peak(namespace, args, value) if function == "best_k" else value


def best_peak(namespace: dict, args: tuple, k: object) -> object:
    """Several k may be right: what counts is the peak that they give."""
    whole = k == int(k) and 1 <= k <= args[0]
    return max(namespace["memory_timeline"](*args, int(k))) if whole else "not from 1 to L"
