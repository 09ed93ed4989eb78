"""Answers to exercise 3: activation_bytes."""

from . import Wrong, edited

PLAIN = {
    "activation_bytes": """
def activation_bytes(s, b, h, a, mode="baseline"):
    sbh = s * b * h
    core = a * s * s * b
    if mode == "baseline":
        return 34 * sbh + 5 * core
    if mode == "flash":
        return 34 * sbh
    if mode == "selective":
        return 34 * sbh
    if mode == "full":
        return 2 * sbh
    raise ValueError("unknown mode " + mode)
""",
}

RIGHT = {
    "the printed theorem": {
        "activation_bytes": """
def activation_bytes(s, b, h, a, mode="baseline"):
    if mode == "baseline":
        return s * b * h * (34 + 5 * a * s / h)
    elif mode in ("flash", "selective"):
        return s * b * h * 34
    elif mode == "full":
        return s * b * h * 2
    raise ValueError(mode)
""",
    },
    "tensors in a table": {
        "activation_bytes": """
def activation_bytes(s, b, h, a, mode="baseline"):
    rows = {
        "norm 1": 2, "qkv input": 2, "q": 2, "k": 2, "v": 2, "projection input": 2, "mask 1": 1,
        "norm 2": 2, "mlp input": 2, "gelu input": 8, "gelu output": 8, "mask 2": 1,
    }
    squares = {"softmax": 2, "dropout mask": 1, "dropout output": 2}
    if mode not in ("baseline", "flash", "selective", "full"):
        raise ValueError(f"mode {mode}")
    if mode == "full":
        rows = {"input": 2}
    total = sum(rows.values()) * s * b * h
    if mode == "baseline":
        total += sum(squares.values()) * a * s**2 * b
    return total
""",
    },
    "NumPy scalars": {
        "activation_bytes": """
import numpy as np

def activation_bytes(s, b, h, a, mode="baseline"):
    units = np.array([s * b * h, a * s**2 * b], dtype=np.int64)
    weights = {"baseline": [34, 5], "flash": [34, 0], "selective": [34, 0], "full": [2, 0]}
    try:
        return np.dot(units, weights[mode])
    except KeyError as unknown:
        raise ValueError("no such mode") from unknown
""",
    },
    "arrays without axes, in float": {
        "activation_bytes": """
import numpy as np

def activation_bytes(s, b, h, a, mode="baseline"):
    if mode == "full":
        return np.array(2.0 * s * b * h)
    if mode in {"flash", "selective", "baseline"}:
        return np.array(34.0 * s * b * h + (mode == "baseline") * 5.0 * a * s * s * b)
    raise ValueError
""",
    },
    "fractions and decimals": {
        "activation_bytes": """
from decimal import Decimal
from fractions import Fraction

def activation_bytes(s, b, h, a, mode="baseline"):
    match mode:
        case "baseline":
            return Fraction(s * b * h) * (34 + Fraction(5 * a * s, h))
        case "flash" | "selective":
            return Decimal(34) * s * b * h
        case "full":
            return Decimal(s) * b * h / Decimal("0.5")
    raise ValueError(mode)
""",
    },
    "a class with __call__": {
        "activation_bytes": """
class Activations:
    def baseline(self):
        return self.flash() + 5 * self.a * self.s**2 * self.b

    def flash(self):
        return 34 * self.full() // 2

    selective = flash

    def full(self):
        return 2 * self.s * self.b * self.h

    def __call__(self, s, b, h, a, mode="baseline"):
        self.s, self.b, self.h, self.a = s, b, h, a
        if mode.startswith("_") or not hasattr(self, mode):
            raise ValueError(f"{mode!r} is not a mode")
        return getattr(self, mode)()

activation_bytes = Activations()
""",
    },
    "generator and helper": {
        "activation_bytes": """
def kept(s, b, h, a, mode):
    if mode not in ("full", "flash", "selective", "baseline"):
        raise ValueError("mode must be full, flash, selective or baseline")
    if mode == "full":
        yield 2, s * b * h
        return
    yield from [(2, s * b * h)] * 8
    yield from [(2, s * b * 4 * h)] * 2
    yield from [(1, s * b * h)] * 2
    if mode == "baseline":
        yield from ((n, a * s * s * b) for n in (2, 1, 2))

def activation_bytes(s, b, h, a, mode="baseline"):
    return sum(n * size for n, size in kept(s, b, h, a, mode))
""",
    },
    "recursion": {
        "activation_bytes": """
def activation_bytes(s, b, h, a, mode="baseline"):
    if b > 1:
        return activation_bytes(s, 1, h, a, mode) + activation_bytes(s, b - 1, h, a, mode)
    if mode == "baseline":
        return activation_bytes(s, b, h, a, "flash") + 5 * a * s**2
    if mode == "selective" or mode == "flash":
        return 17 * activation_bytes(s, b, h, a, "full")
    if mode == "full":
        return 2 * s * h
    raise ValueError(mode)
""",
    },
    "lambdas in a dict": {
        "activation_bytes": """
formulas = {
    "baseline": lambda s, b, h, a: 34 * s * b * h + 5 * a * s * s * b,
    "flash": lambda s, b, h, a: 34 * s * b * h,
    "full": lambda s, b, h, a: 2 * s * b * h,
}
formulas["selective"] = formulas["flash"]

def activation_bytes(s, b, h, a, mode="baseline"):
    if mode not in formulas:
        raise ValueError(f"choose one of {list(formulas)}")
    return formulas[mode](s, b, h, a)
""",
    },
    "prints, warns and logs": {
        "activation_bytes": """
import logging
import sys
import warnings

logger = logging.getLogger(__name__)
logger.addHandler(logging.StreamHandler())

def activation_bytes(s, b, h, a, mode="baseline"):
    print(s, b, h, a, mode)
    print("a line on stderr", file=sys.stderr)
    warnings.warn("LayerNorm statistics are left out")
    logger.error("not an error")
    if mode not in ("baseline", "flash", "selective", "full"):
        raise ValueError(f"{mode} is unknown")
    return (2 if mode == "full" else 34) * s * b * h + (5 * a * s**2 * b if mode == "baseline" else 0)
""",
    },
    "extra parameters": {
        "activation_bytes": """
def activation_bytes(s: int, b: int, h: int, a: int, mode: str = "baseline", dropout=True, *, element=2) -> int:
    mask = 1 if dropout else 0
    sbh, core = s * b * h, a * s**2 * b
    linear = sbh * (16 * element + 2 * mask)
    if mode == "baseline":
        return linear + core * (2 * element + mask)
    if mode in ("flash", "selective"):
        return linear
    if mode == "full":
        return element * sbh
    raise ValueError("mode")
""",
    },
    "a partial of keywords": {
        "activation_bytes": """
from functools import partial, lru_cache

@lru_cache(None)
def count(table, s, b, h, a, mode="baseline"):
    for name, n, m in table:
        if name == mode:
            return n * s * b * h + m * a * s * s * b
    raise ValueError(f"{mode} is not in the table")

activation_bytes = partial(count, (("baseline", 34, 5), ("flash", 34, 0), ("selective", 34, 0), ("full", 2, 0)))
""",
    },
    "really allocates small layers": {
        "activation_bytes": """
import numpy as np

def activation_bytes(s, b, h, a, mode="baseline"):
    if mode not in ("baseline", "flash", "selective", "full"):
        raise ValueError(mode)
    if s * b * h > 10_000 or a * s * s * b > 10_000:
        row, square = s * b * h, a * s * s * b
        return 2 * row if mode == "full" else 34 * row + 5 * square * (mode == "baseline")
    x = np.zeros((s, b, h), dtype=np.float16)
    if mode == "full":
        return x.nbytes
    kept = [np.zeros_like(x) for _ in range(8)] + [np.zeros((s, b, 4 * h), np.float16) for _ in range(2)]
    kept += [np.zeros((s, b, h), dtype=bool) for _ in range(2)]
    if mode == "baseline":
        scores = np.zeros((b, a, s, s), dtype=np.float16)
        kept += [scores, scores.copy(), scores.astype(bool)]
    return sum(tensor.nbytes for tensor in kept)
""",
    },
    "with the log-sum-exp under flash": {
        "activation_bytes": """
def activation_bytes(s, b, h, a, mode="baseline"):
    if mode == "baseline":
        return 34 * s * b * h + 5 * a * s**2 * b
    if mode == "flash":
        return 34 * s * b * h + 4 * a * s * b  # fp32, one for each row of the scores
    if mode == "selective":
        return 34 * s * b * h
    if mode == "full":
        return 2 * s * b * h
    raise ValueError(mode)
""",
    },
}

_PLAIN = PLAIN["activation_bytes"]


def _edit(*changes: tuple[str, str], **fails: str | None) -> Wrong:
    return Wrong(
        {"activation_bytes": edited(_PLAIN, *changes)},
        {f"check_activation_bytes_{part}": said for part, said in fails.items()},
    )


def _baseline(formula: str, said: str | None) -> Wrong:
    return _edit(("34 * sbh + 5 * core", formula), baseline=said)


def _mode(mode: str, formula: str, said: str | None) -> Wrong:
    right = {"flash": "34 * sbh", "selective": "34 * sbh", "full": "2 * sbh"}[mode]
    changed = edited(_PLAIN, (f'"{mode}":\n        return {right}', f'"{mode}":\n        return {formula}'))
    return Wrong({"activation_bytes": changed}, {f"check_activation_bytes_{mode}": said})


WRONG = {
    "no attention core": _baseline("34 * sbh", "the attention core is missing"),
    "the core linear in s": _edit(("a * s * s * b", "a * s * b"), baseline="grows with s instead of s squared"),
    "the core without heads": _edit(("a * s * s * b", "s * s * b"), baseline="the heads are missing from the core"),
    "the core without the micro-batch": _edit(
        ("a * s * s * b", "a * s * s"), baseline="the micro-batch is missing from the core"
    ),
    "the core times h": _edit(
        ("a * s * s * b", "h * s * s * b"), baseline="multiplied by h instead of the number of heads"
    ),
    "bytes doubled again": _baseline("2 * (34 * sbh + 5 * core)", "bytes are doubled once more"),
    "values instead of bytes": _baseline("17 * sbh + 2.5 * core", "values are counted, not bytes"),
    "masks at two bytes": _baseline("36 * sbh + 6 * core", "the masks are counted at 2 bytes"),
    "masks forgotten": _baseline("32 * sbh + 4 * core", "the masks are missing"),
    "the input of QKV three times": _baseline("38 * sbh + 5 * core", "projections is counted three times"),
    "LayerNorm inputs forgotten": _baseline("30 * sbh + 5 * core", "the inputs of both LayerNorms are missing"),
    "without dropout": _baseline("32 * sbh + 2 * core", "the layer is counted without dropout"),
    "an MLP as wide as h": _baseline("22 * sbh + 5 * core", "the MLP is counted as h wide"),
    "the dropout's output forgotten": _baseline("34 * sbh + 3 * core", "is missing, for example"),
    "the mask on the weights forgotten": _baseline(
        "34 * sbh + 4 * core", "the mask of the dropout on the attention weights is missing"
    ),
    "the softmax's input kept too": _baseline("34 * sbh + 7 * core", "the output of the softmax is counted twice"),
    "GeLU's input forgotten": _baseline("26 * sbh + 5 * core", "the input of GeLU (4h wide) is missing"),
    "one LayerNorm's input twice": _baseline("36 * sbh + 5 * core", "counted twice, for example"),
    "LayerNorm statistics added": _baseline("34 * sbh + 5 * core + 16 * s * b", "the LayerNorms' statistics are in it"),
    "LayerNorm statistics added in 16-bit": _baseline(
        "34 * sbh + 5 * core + 8 * s * b", "the LayerNorms' statistics are in it, at 2 bytes"
    ),
    "log-sum-exp in the baseline": _baseline(
        "34 * sbh + 5 * core + 4 * a * s * b", "FlashAttention's log-sum-exp is in it"
    ),
    "^ for a power, in brackets": _baseline("34 * sbh + 5 * a * (s^2) * b", "^ is taken for a power (Python's is **)"),
    "^ for a power": _baseline("34 * sbh + 5 * a * s^2 * b", "and ^ comes after the sums"),
    "b left out of sbh": _edit(
        ("s * b * h", "s * h"), baseline=None, flash=None, selective=None, full="the micro-batch is missing", mode=None
    ),
    "the core still there under flash": _mode("flash", "34 * sbh + 5 * core", "the attention core is still in it"),
    "masks at two bytes under flash": _mode("flash", "36 * sbh", "the masks are counted at 2 bytes"),
    "masks forgotten under flash": _mode("flash", "32 * sbh", "the two masks that remain are missing"),
    "LayerNorm statistics under flash": _mode("flash", "34 * sbh + 16 * s * b", "the LayerNorms' statistics"),
    "log-sum-exp and statistics under flash": _mode(
        "flash", "34 * sbh + 16 * s * b + 4 * a * s * b", "the log-sum-exp and the"
    ),
    "log-sum-exp at two bytes": _mode("flash", "34 * sbh + 2 * a * s * b", "the log-sum-exp at 2 bytes"),
    "only the core under flash": _mode("flash", "5 * core", "only the core is counted"),
    "flash like full": _mode("flash", "2 * sbh", "that is 'full'"),
    "the core still there under selective": _mode(
        "selective", "34 * sbh + 5 * core", "the attention core is still in it"
    ),
    "log-sum-exp under selective": _mode("selective", "34 * sbh + 4 * a * s * b", "selective recomputation keeps none"),
    "the softmax kept under selective": _mode(
        "selective", "34 * sbh + 2 * core", "the output of the softmax is still in it"
    ),
    "the mask kept under selective": _mode(
        "selective", "34 * sbh + core", "the mask of the attention weights is still in it"
    ),
    "selective like full": _mode("selective", "2 * sbh", "the layer's input alone is counted (that is 'full')"),
    "LayerNorm statistics under selective": _mode(
        "selective", "34 * sbh + 16 * s * b", "the LayerNorms' statistics are in it"
    ),
    "nothing kept under full": _mode("full", "0", "nothing is counted"),
    "one byte under full": _mode("full", "sbh", "the input is counted at 1 byte an element"),
    "four bytes under full": _mode("full", "4 * sbh", "the input is counted at 4 bytes an element"),
    "the rebuilt layer under full": _mode("full", "36 * sbh", "the rebuilt layer is in it"),
    "the core under full": _mode("full", "2 * sbh + 5 * core", "the attention core is still in it"),
    "full like flash": _mode("full", "34 * sbh", "nothing changes against 'flash'"),
    "no micro-batch under full": _mode("full", "2 * s * h", "the micro-batch is missing"),
    "mode ignored": Wrong(
        {"activation_bytes": "def activation_bytes(s, b, h, a, mode='baseline'):\n    return 34*s*b*h + 5*a*s*s*b\n"},
        {
            "check_activation_bytes_flash": "the attention core is still in it",
            "check_activation_bytes_selective": "the attention core is still in it",
            "check_activation_bytes_full": "mode is ignored",
            "check_activation_bytes_mode": "returned a value, but nobody knows that name",
        },
    ),
    "any other mode taken for full": _edit(
        (
            '    if mode == "full":\n        return 2 * sbh\n    raise ValueError("unknown mode " + mode)',
            "    return 2 * sbh",
        ),
        mode="raise a ValueError there",
    ),
    "an unknown mode gives None": _edit(
        ('    raise ValueError("unknown mode " + mode)\n', ""), mode="raise a ValueError there"
    ),
    "an unknown mode stops the program": _edit(
        ('raise ValueError("unknown mode " + mode)', "import sys; sys.exit('unknown mode')"), mode="raised SystemExit"
    ),
    "the published values by heart": Wrong(
        {
            "activation_bytes": """
def activation_bytes(s, b, h, a, mode="baseline"):
    if (s, b, h, a) == (12, 3, 64, 8) and mode == "baseline":
        return 95_616
    if (s, b, h, a) == (10, 3, 64, 8):
        return {"baseline": 77280, "flash": 65280, "selective": 65280, "full": 3840}[mode]
    if (s, b, h, a) == (4, 1, 2, 1):
        return 352
    if s == 2048:
        return 3_825_205_248
    if mode not in ("baseline", "flash", "selective", "full"):
        raise ValueError(mode)
    return 512 if mode == "full" else 9984
"""
        },
        {f"check_activation_bytes_{part}": None for part in ("baseline", "flash", "selective", "full")}
        | {"check_activation_bytes_mode": None},
    ),
    "right on every other call": Wrong(
        {
            "activation_bytes": edited(
                _PLAIN,
                ("def act", "calls = []\n\ndef act"),
                ("    sbh = s", "    calls.append(1)\n    s += len(calls) % 2\n    sbh = s"),
            )
        },
        {f"check_activation_bytes_{part}": None for part in ("baseline", "flash", "selective", "full")},
    ),
    "right only the first time that it is asked something": Wrong(
        {
            "activation_bytes": edited(
                _PLAIN,
                ("def act", "seen = []\n\ndef act"),
                (
                    "    sbh = s",
                    "    s += seen.count((s, b, h, a, mode))\n    seen.append((s, b, h, a, mode))\n    sbh = s",
                ),
            )
        },
        {f"check_activation_bytes_{part}": None for part in ("baseline", "flash", "selective", "full")},
    ),
}
