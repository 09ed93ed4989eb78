"""Answers to exercise 2: model_state_bytes and gpus_for_states."""

from . import Wrong, edited

PLAIN = {
    "model_state_bytes": """
def model_state_bytes(psi, K=12):
    weights = 2 * psi
    gradients = 2 * psi
    optimizer = K * psi
    return weights + gradients + optimizer
""",
    "gpus_for_states": """
import math

def gpus_for_states(psi, gpu_bytes=80e9, K=12):
    need = model_state_bytes(psi, K)
    return math.ceil(need / gpu_bytes)
""",
}

RIGHT = {
    "negative floor division": {
        "model_state_bytes": "def model_state_bytes(psi, K=12): return (4 + K) * psi",
        "gpus_for_states": """
def gpus_for_states(psi, gpu_bytes=80e9, K=12):
    return -(-model_state_bytes(psi, K) // gpu_bytes)
""",
    },
    "floats": {
        "model_state_bytes": """
def model_state_bytes(psi, K=12.0):
    return float(psi) * 2.0 + float(psi) * 2.0 + float(psi) * K
""",
        "gpus_for_states": """
def gpus_for_states(psi, gpu_bytes=80e9, K=12):
    exact = psi / gpu_bytes * (4 + K)
    n = float(int(exact))
    if n < exact:
        n += 1.0
    return n
""",
    },
    "NumPy scalars": {
        "model_state_bytes": """
import numpy as np

def model_state_bytes(psi, K=12):
    return np.sum(np.array([2, 2, K], dtype=np.int64) * np.int64(psi))
""",
        "gpus_for_states": """
def gpus_for_states(psi, gpu_bytes=80e9, K=12):
    return np.ceil(model_state_bytes(psi, K) / np.float64(gpu_bytes))
""",
    },
    "arrays without axes": {
        "model_state_bytes": """
import numpy as np

def model_state_bytes(psi, K=12):
    return np.array(psi) * (4 + K)
""",
        "gpus_for_states": """
def gpus_for_states(psi, gpu_bytes=80e9, K=12):
    return np.asarray(np.ceil(model_state_bytes(psi, K=K) / gpu_bytes)).astype(int)
""",
    },
    "fractions": {
        "gpus_for_states": """
from fractions import Fraction

def gpus_for_states(psi, gpu_bytes=80e9, K=12):
    share = Fraction(psi) * (4 + K) / Fraction(gpu_bytes)
    whole = share.numerator // share.denominator
    return Fraction(whole if whole == share else whole + 1)
""",
    },
    "decimals": {
        "model_state_bytes": """
from decimal import Decimal, ROUND_CEILING

def model_state_bytes(psi, K=12):
    return Decimal(psi) * (Decimal("2") + Decimal("2") + K)
""",
        "gpus_for_states": """
def gpus_for_states(psi, gpu_bytes=80e9, K=12):
    share = model_state_bytes(psi, K) / Decimal(gpu_bytes)
    return share.to_integral_value(rounding=ROUND_CEILING)
""",
    },
    "a loop that buys GPUs": {
        "gpus_for_states": """
def gpus_for_states(psi, gpu_bytes=80e9, K=12):
    bought = 0
    memory = 0
    while memory < model_state_bytes(psi, K):
        bought += 1
        memory += gpu_bytes
    return bought
""",
    },
    "recursion and divmod": {
        "model_state_bytes": '''
def model_state_bytes(psi, K=12, parts=None):
    """Add the parts one after the other."""
    parts = [2, 2, K] if parts is None else parts
    if not parts:
        return 0
    return psi * parts[0] + model_state_bytes(psi, K, parts[1:])
''',
        "gpus_for_states": """
def gpus_for_states(psi, gpu_bytes=80e9, K=12):
    full, rest = divmod(model_state_bytes(psi, K), gpu_bytes)
    return int(full) + (rest > 0)
""",
    },
    "a class with __call__": {
        "model_state_bytes": """
class StateBytes:
    fixed = {"weights": 2, "gradients": 2}

    def __init__(self, default=12):
        self.default = default

    def __call__(self, psi, K=None):
        K = self.default if K is None else K
        return psi * sum({**self.fixed, "optimizer": K}.values())

model_state_bytes = StateBytes()
""",
        "gpus_for_states": """
from math import ceil
gpus_for_states = lambda psi, gpu_bytes=80e9, K=12: ceil(model_state_bytes(psi, K) / gpu_bytes)
""",
    },
    "in gigabytes on the way": {
        "gpus_for_states": """
from math import ceil
GB = 1e9

def gpus_for_states(psi, gpu_bytes=80e9, K=12):
    return ceil((psi / GB) * (4 + K) / (gpu_bytes / GB))
""",
    },
    "memoised and decorated": {
        "model_state_bytes": """
import functools
import time

def timed(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        start = time.perf_counter()
        try:
            return f(*args, **kwargs)
        finally:
            inner.seconds = time.perf_counter() - start
    return inner

@timed
@functools.cache
def model_state_bytes(psi, K=12):
    return psi * (4 + K)
""",
    },
    "prints, warns and logs": {
        "model_state_bytes": """
import logging, sys, warnings

def model_state_bytes(psi, K=12):
    result = (4 + K) * psi
    print(f"{result / 1e9:.1f} GB")
    sys.stderr.write("states only, no activations\\n")
    warnings.warn("remember the activations", UserWarning)
    logging.getLogger("student").error("no error at all")
    return result
""",
    },
    "counts its calls": {
        "gpus_for_states": """
import itertools

calls = itertools.count(1)

def gpus_for_states(psi, gpu_bytes=80e9, K=12, *, log=[]):
    log.append(next(calls))
    states = model_state_bytes(K=K, psi=psi)
    return int((states + gpu_bytes - 1) // gpu_bytes)
""",
    },
    "really keeps small models": {
        "model_state_bytes": """
import numpy as np

def model_state_bytes(psi, K=12):
    if psi > 5000:
        return 2 * psi + 2 * psi + K * psi
    weights = np.zeros(int(psi), dtype=np.float16)
    gradients = np.zeros_like(weights)
    optimizer = np.zeros(int(psi) * K, dtype=np.uint8)
    return weights.nbytes + gradients.nbytes + optimizer.nbytes
""",
    },
}

_STATES, _GPUS = PLAIN["model_state_bytes"], PLAIN["gpus_for_states"]
_ALL = "check_model_state_bytes"
_SOME, _EXACT = "check_gpus_for_states", "check_gpus_for_states_exact"


def _states(total: str, said: str | None) -> Wrong:
    """The plain answer with another sum."""
    return Wrong({"model_state_bytes": edited(_STATES, ("weights + gradients + optimizer", total))}, {_ALL: said})


def _gpus(result: str, **fails: str | None) -> Wrong:
    """The plain answer with another last line."""
    names = {"some": _SOME, "exact": _EXACT}
    return Wrong(
        {"gpus_for_states": edited(_GPUS, ("math.ceil(need / gpu_bytes)", result))},
        {names[part]: said for part, said in fails.items()},
    )


WRONG = {
    "inference's two bytes": _states("weights", "only the bf16 weights are counted: that is inference"),
    "the optimizer forgotten": _states("weights + gradients", "the optimizer is missing"),
    "the gradients forgotten": _states("weights + optimizer", "the gradients (or the weights) are missing"),
    "the optimizer alone": _states("optimizer", "the master weights (or weights and gradients) are missing"),
    "the master weights forgotten": _states(
        "weights + gradients + 8 * psi", "the master weights (or weights and gradients) are missing"
    ),
    "K twice": _states("weights + gradients + 2 * optimizer", "the optimizer is counted twice"),
    "gradients in fp32": _states("weights + 4 * psi + optimizer", "the gradients are counted at 4 bytes"),
    "weights and gradients in fp32": _states(
        "2 * weights + 2 * gradients + optimizer", "weights and gradients are counted at 4 bytes each"
    ),
    "K ignored": _states("16 * psi", "K is ignored"),
    "K instead of all sixteen": _states("(16 if K == 12 else K) * psi", "K replaces all sixteen bytes"),
    "K on top of the sixteen": _states("16 * psi + (optimizer if K != 12 else 0)", "K is added to the sixteen bytes"),
    "in GB": _states("(weights + gradients + optimizer) / 1e9", "the result is in GB, not in bytes"),
    "in GiB": _states("(weights + gradients + optimizer) / 2**30", "the result is in GiB, not in bytes"),
    "GiB for GB": _states("(weights + gradients + optimizer) / 1e9 * 2**30", None),
    "no optimizer where K is 0": _states("weights + gradients + (K or 12) * psi", None),
    "as text": _states('f"{weights + gradients + optimizer} bytes"', "text: return the number itself"),
    "printed, not returned": Wrong(
        {
            "model_state_bytes": edited(
                _STATES,
                ("return weights", "weights"),
                ("    weights + gradients + optimizer", "    print(weights + gradients + optimizer)"),
            )
        },
        {_ALL: "None: does every path end in return"},
    ),
    "three numbers": _states("(weights, gradients, optimizer)", "a tuple of 3: return one number"),
    "one right answer, then the same again": Wrong(
        {
            "model_state_bytes": """
first = None

def model_state_bytes(psi, K=12):
    global first
    if first is None:
        first = (4 + K) * psi
    return first
"""
        },
        {_ALL: None},
    ),
    "right on every other call": Wrong(
        {
            "model_state_bytes": """
calls = 0

def model_state_bytes(psi, K=12):
    global calls
    calls += 1
    return (4 + K) * psi if calls % 2 else 16 * psi
"""
        },
        {_ALL: None},
    ),
    "right only the first time that it is asked something": Wrong(
        {
            "model_state_bytes": """
seen = {}

def model_state_bytes(psi, K=12):
    seen[psi, K] = seen.get((psi, K), 0) + (4 + K) * psi
    return seen[psi, K]
"""
        },
        {_ALL: None},
    ),
    "the published values by heart": Wrong(
        {
            "model_state_bytes": """
def model_state_bytes(psi, K=12):
    return {1_000_000: 16_000_000, 13_000_000_000: 208_000_000_000, 1000: 8000}.get(psi)
""",
            "gpus_for_states": """
def gpus_for_states(psi, gpu_bytes=80e9, K=12):
    known = {6_738_415_616: 2, 174_604_259_328: 35, 13_000_000_000: 9, 70_000_000_000: 14, 1_000_001: 2, 1: 1}
    return known.get(psi, 1)
""",
        },
        {_ALL: "None", _SOME: None, _EXACT: None},
    ),
    "rounded down": _gpus("int(need / gpu_bytes)", some=None, exact=None),
    "rounded down, one at least": _gpus(
        "max(1, int(need // gpu_bytes))",
        some="rounded down or to the nearest number",
        exact="one parameter more than an exact multiple is let pass",
    ),
    "rounded to the nearest": _gpus(
        "max(1, round(need / gpu_bytes))", some="rounded down or to the nearest number", exact="is let pass"
    ),
    "not rounded": _gpus("need / gpu_bytes", some="the quotient is not rounded to a whole number of GPUs", exact=None),
    "always one more": _gpus("int(need // gpu_bytes) + 1", exact="an exact multiple gains a GPU"),
    "one GPU taken away": _gpus("math.floor((need - 1) / gpu_bytes)", some=None, exact="a GPU is taken away"),
    "no slack for the last parameter": _gpus("max(1, math.ceil(round(need / gpu_bytes, 3)))", exact=None),
    "only the weights fit": _gpus("math.ceil(2 * psi / gpu_bytes)", some="only the weights are counted", exact=None),
    "GPUs of 80 GiB": _gpus("math.ceil(need / (gpu_bytes / 1e9 * 2**30))", some="a GiB is taken for a GB", exact=None),
    "gpu_bytes ignored": _gpus("math.ceil(need / 80e9)", some="gpu_bytes is ignored", exact=None),
    "K not passed on": Wrong(
        {"gpus_for_states": edited(_GPUS, ("(psi, K)", "(psi)"))}, {_SOME: "K is ignored", _EXACT: "K is ignored"}
    ),
    "none for a small model": _gpus(
        "math.ceil(need / gpu_bytes) if need > gpu_bytes else 0", exact="a model smaller than one GPU needs none"
    ),
    "a power of two of GPUs": _gpus("2 ** max(0, math.ceil(math.log2(need / gpu_bytes)))", some=None, exact=None),
    "gigabytes cut off": _gpus("math.ceil((need // 10**9) / (gpu_bytes // 10**9))", exact="raised ZeroDivisionError"),
}
