"""Answers to exercise 5: peak_bytes and cheapest_fix."""

from . import Wrong, edited

PLAIN = {
    "peak_bytes": """
def peak_bytes(psi, L, s, b, h, a, V, mode="baseline", zero=0, n_gpus=1, t=1, offload=False):
    d = n_gpus / t
    weights = 2
    gradients = 2
    optimizer = 12
    if zero >= 1:
        optimizer = 12 / d
    if zero >= 2:
        gradients = 2 / d
    if zero >= 3:
        weights = 2 / d
    if offload:
        optimizer = 0
    states = psi * (weights + gradients + optimizer)
    activations = L * activation_bytes(s, b, h, a, mode)
    if mode == "full":
        activations += 34 * s * b * h
    logits = 4 * s * b * V
    return (states + activations + logits) / t
""",
    "cheapest_fix": """
def cheapest_fix(psi, L, s, b, h, a, V, gpu_bytes, n_gpus=1, limited_by="compute", free=0.15):
    budget = (1 - free) * gpu_bytes
    mode, zero = "baseline", 0

    def peak(t=1, offload=False):
        return peak_bytes(psi, L, s, b, h, a, V, mode=mode, zero=zero, n_gpus=n_gpus, t=t, offload=offload)

    if peak() <= budget:
        return "nothing", peak()
    mode = "flash"
    if peak() <= budget:
        return "flash", peak()
    if n_gpus > 1:
        for zero in (1, 2):
            if peak() <= budget:
                return f"zero{zero}", peak()
    while b > 1:
        b = b // 2
        if peak() <= budget:
            return "micro-batch", peak()
    if limited_by == "compute":
        order = ["zero3", "checkpoint"]
    elif limited_by == "communication":
        order = ["checkpoint", "zero3"]
    else:
        raise ValueError("limited_by must be compute or communication")
    for rung in order:
        if rung == "zero3":
            if n_gpus == 1:
                continue
            zero = 3
        else:
            mode = "full"
        if peak() <= budget:
            return rung, peak()
    degree = 1
    for t in (2, 4, 8):
        if t <= n_gpus and n_gpus % t == 0:
            degree = t
            if peak(t) <= budget:
                return "tensor", peak(t)
    last = peak(degree, offload=True)
    if last <= budget:
        return "offload", last
    return None, last
""",
}

RIGHT = {
    "a table of stages": {
        "peak_bytes": """
def peak_bytes(psi, L, s, b, h, a, V, mode="baseline", zero=0, n_gpus=1, t=1, offload=False):
    d = n_gpus // t
    per_parameter = {0: 16, 1: 4 + 12 / d, 2: 2 + 14 / d, 3: 16 / d}[zero]
    if offload:
        per_parameter -= 12 / d if zero else 12
    layers = L * activation_bytes(s, b, h, a, mode=mode) + (activation_bytes(s, b, h, a, mode="flash") if mode == "full" else 0)
    return psi * per_parameter / t + layers / t + 4 * s * b * V / t
""",
        "cheapest_fix": """
def cheapest_fix(psi, L, s, b, h, a, V, gpu_bytes, n_gpus=1, limited_by="compute", free=0.15):
    if limited_by not in ("compute", "communication"):
        raise ValueError("compute or communication?")
    many = n_gpus > 1
    rungs = [("nothing", {}), ("flash", {"mode": "flash"})]
    if many:
        rungs += [("zero1", {"zero": 1}), ("zero2", {"zero": 2})]
    small = b
    while small > 1:
        small //= 2
        rungs.append(("micro-batch", {"b": small}))
    fifth = [("zero3", {"zero": 3}), ("checkpoint", {"mode": "full"})]
    if limited_by == "communication":
        fifth.reverse()
    rungs += [rung for rung in fifth if many or rung[0] != "zero3"]
    rungs += [("tensor", {"t": t}) for t in [2, 4, 8] if n_gpus % t == 0]
    rungs += [("offload", {"offload": True})]
    plan = {"b": b}
    for name, change in rungs:
        plan.update(change)
        peak = peak_bytes(psi, L, s, h=h, a=a, V=V, n_gpus=n_gpus, **plan)
        if peak <= gpu_bytes * (1 - free):
            return name, peak
    return None, peak
""",
    },
    "a generator of rungs, an array of two": {
        "cheapest_fix": """
import numpy as np

def ladder(b, n_gpus, limited_by):
    yield "nothing", dict(b=b)
    yield "flash", dict(b=b, mode="flash")
    zero = 0
    if n_gpus > 1:
        for zero in (1, 2):
            yield f"zero{zero}", dict(b=b, mode="flash", zero=zero)
    while b // 2 >= 1:
        b //= 2
        yield "micro-batch", dict(b=b, mode="flash", zero=zero)
    mode = "flash"
    if limited_by == "compute":
        steps = "zero3", "checkpoint"
    elif limited_by == "communication":
        steps = "checkpoint", "zero3"
    else:
        raise ValueError(f"limited_by={limited_by!r}")
    for step in steps:
        if step == "zero3" and n_gpus == 1:
            continue
        zero, mode = (3, mode) if step == "zero3" else (zero, "full")
        yield step, dict(b=b, mode=mode, zero=zero)
    t = 1
    while t < 8 and 2 * t <= n_gpus and n_gpus % (2 * t) == 0:
        t *= 2
        yield "tensor", dict(b=b, mode=mode, zero=zero, t=t)
    yield "offload", dict(b=b, mode=mode, zero=zero, t=t, offload=True)

def cheapest_fix(psi, L, s, b, h, a, V, gpu_bytes, n_gpus=1, limited_by="compute", free=0.15):
    for name, plan in ladder(b, n_gpus, limited_by):
        peak = peak_bytes(psi, L, s, plan.pop("b"), h, a, V, n_gpus=n_gpus, **plan)
        if peak <= (1 - free) * gpu_bytes:
            return np.array([name, peak], dtype=object)
    return np.array([None, peak], dtype=object)
""",
    },
    "NumPy names and scalars": {
        "peak_bytes": """
import numpy as np

def peak_bytes(psi, L, s, b, h, a, V, mode="baseline", zero=0, n_gpus=1, t=1, offload=False):
    d = np.float64(n_gpus) / t
    share = np.where(np.arange(3) < zero, 1 / d, 1.0)  # optimizer, gradients, weights
    states = np.dot(share, [0 if offload else 12, 2, 2]) * psi
    rebuilt = 34 * s * b * h * (mode == "full")
    return np.sum([states, L * activation_bytes(s, b, h, a, mode) + rebuilt, 4 * s * b * V]) / t
""",
        "cheapest_fix": edited(
            PLAIN["cheapest_fix"],
            ('return "nothing", peak()', 'return np.str_("nothing"), peak()'),
            ('return "flash", peak()', 'return np.array(["flash", ""])[0], peak()'),
            ("return rung, peak()", "return [np.str_(rung), np.array(peak())]"),
            ("return None, last", "return (None, np.float64(last))"),
        ),
    },
    "lists instead of tuples": {
        "cheapest_fix": edited(
            PLAIN["cheapest_fix"],
            ('return "nothing", peak()', 'return ["nothing", peak()]'),
            ('return "flash", peak()', 'return ["flash", peak()]'),
            ("return None, last", "return [None, last]"),
        ),
    },
    "a named tuple and an enumeration": {
        "cheapest_fix": """
from collections import namedtuple
from enum import Enum

Fix = namedtuple("Fix", "name peak")

class Rung(str, Enum):
    NOTHING = "nothing"
    FLASH = "flash"
    ZERO1 = "zero1"
    ZERO2 = "zero2"
    MICRO = "micro-batch"
    CHECKPOINT = "checkpoint"
    ZERO3 = "zero3"
    TENSOR = "tensor"
    OFFLOAD = "offload"

def cheapest_fix(psi, L, s, b, h, a, V, gpu_bytes, n_gpus=1, limited_by="compute", free=0.15):
    orders = {"compute": [Rung.ZERO3, Rung.CHECKPOINT], "communication": [Rung.CHECKPOINT, Rung.ZERO3]}
    if limited_by not in orders:
        raise ValueError(f"limited_by is one of {list(orders)}")
    plan = dict(b=b, mode="baseline", zero=0, t=1, offload=False)
    todo = [Rung.NOTHING, Rung.FLASH, Rung.ZERO1, Rung.ZERO2] + [Rung.MICRO] * (b.bit_length() - 1)
    todo += orders[limited_by] + [(Rung.TENSOR, t) for t in (2, 4, 8) if n_gpus % t == 0] + [Rung.OFFLOAD]
    for rung in todo:
        rung, t = rung if isinstance(rung, tuple) else (rung, plan["t"])
        if rung.value.startswith("zero"):
            if n_gpus == 1:
                continue
            plan["zero"] = int(rung.value[-1])
        elif rung is Rung.FLASH:
            plan["mode"] = "flash"
        elif rung is Rung.MICRO:
            plan["b"] //= 2
        elif rung is Rung.CHECKPOINT:
            plan["mode"] = "full"
        elif rung is Rung.OFFLOAD:
            plan["offload"] = True
        plan["t"] = t
        fix = Fix(rung, peak_bytes(psi, L, s, plan["b"], h, a, V, plan["mode"], plan["zero"], n_gpus, t, plan["offload"]))
        if fix.peak <= (1 - free) * gpu_bytes:
            return fix
    return fix._replace(name=None)
""",
    },
    "recursion": {
        "cheapest_fix": """
def climb(rungs, budget, model, n_gpus, plan):
    (name, change), *rest = rungs
    plan = {**plan, **change}
    peak = peak_bytes(**model, n_gpus=n_gpus, **plan)
    if peak <= budget:
        return name, peak
    return climb(rest, budget, model, n_gpus, plan) if rest else (None, peak)

def halves(b):
    return [] if b == 1 else [("micro-batch", {"b": b // 2})] + halves(b // 2)

def cheapest_fix(psi, L, s, b, h, a, V, gpu_bytes, n_gpus=1, limited_by="compute", free=0.15):
    model = dict(psi=psi, L=L, s=s, h=h, a=a, V=V)
    first, second = ("zero3", {"zero": 3}), ("checkpoint", {"mode": "full"})
    if limited_by == "communication":
        first, second = second, first
    elif limited_by != "compute":
        raise ValueError(limited_by)
    rungs = [("nothing", {"b": b}), ("flash", {"mode": "flash"}), ("zero1", {"zero": 1}), ("zero2", {"zero": 2})]
    rungs += halves(b) + [first, second] + [("tensor", {"t": 2**i}) for i in (1, 2, 3) if not n_gpus % 2**i]
    rungs += [("offload", {"offload": True})]
    rungs = [rung for rung in rungs if n_gpus > 1 or "zero" not in rung[0]]
    return climb(rungs, gpu_bytes - free * gpu_bytes, model, n_gpus, {})
""",
    },
    "a dataclass for the plan": {
        "cheapest_fix": """
from dataclasses import dataclass, replace

@dataclass(frozen=True)
class Plan:
    b: int
    mode: str = "baseline"
    zero: int = 0
    t: int = 1
    offload: bool = False

def cheapest_fix(psi, L, s, b, h, a, V, gpu_bytes, n_gpus=1, limited_by="compute", free=0.15):
    plan = Plan(b)
    tried = []

    def fits(name, **change):
        nonlocal plan
        plan = replace(plan, **change)
        peak = peak_bytes(psi, L, s, plan.b, h, a, V, plan.mode, zero=plan.zero, n_gpus=n_gpus, t=plan.t, offload=plan.offload)
        tried.append((name, peak))
        return peak <= (1 - free) * gpu_bytes

    def search():
        if fits("nothing") or fits("flash", mode="flash"):
            return True
        if n_gpus > 1 and (fits("zero1", zero=1) or fits("zero2", zero=2)):
            return True
        while plan.b > 1:
            if fits("micro-batch", b=plan.b // 2):
                return True
        zero3 = lambda: n_gpus > 1 and fits("zero3", zero=3)
        checkpoint = lambda: fits("checkpoint", mode="full")
        if limited_by not in ("compute", "communication"):
            raise ValueError("limited_by")
        if limited_by == "compute" and (zero3() or checkpoint()):
            return True
        if limited_by == "communication" and (checkpoint() or zero3()):
            return True
        return any(fits("tensor", t=t) for t in (2, 4, 8) if n_gpus % t == 0) or fits("offload", offload=True)

    found = search()
    return tried[-1] if found else (None, tried[-1][1])
""",
    },
    "a class with __call__": {
        "peak_bytes": """
class Peak:
    stages = ["optimizer", "gradients", "weights"]
    sizes = {"optimizer": 12, "gradients": 2, "weights": 2}

    def states(self, zero, d, offload):
        return sum(size / (d if self.stages.index(part) < zero else 1) for part, size in self.sizes.items()
                   if not (offload and part == "optimizer"))

    def __call__(self, psi, L, s, b, h, a, V, mode="baseline", zero=0, n_gpus=1, t=1, offload=False):
        total = psi * self.states(zero, n_gpus / t, offload)
        total += L * activation_bytes(s, b, h, a, mode)
        total += (mode == "full") * activation_bytes(s, b, h, a, "selective")
        return (total + 4 * s * b * V) / t

peak_bytes = Peak()
""",
    },
    "fractions": {
        "peak_bytes": """
from fractions import Fraction

def peak_bytes(psi, L, s, b, h, a, V, mode="baseline", zero=0, n_gpus=1, t=1, offload=False):
    d = Fraction(n_gpus, t)
    optimizer = 0 if offload else 12 / (d if zero > 0 else 1)
    states = psi * (Fraction(optimizer) + 2 / (d if zero > 1 else Fraction(1)) + 2 / (d if zero > 2 else Fraction(1)))
    rest = L * activation_bytes(s, b, h, a, mode) + 4 * s * b * V
    if mode == "full":
        rest += 34 * s * b * h
    return (states + rest) / t
""",
        "cheapest_fix": edited(
            PLAIN["cheapest_fix"], ("(1 - free) * gpu_bytes", "Fraction(gpu_bytes) * (1 - Fraction(free))")
        ),
    },
    "decimals": {
        "peak_bytes": """
from decimal import Decimal

def peak_bytes(psi, L, s, b, h, a, V, mode="baseline", zero=0, n_gpus=1, t=1, offload=False):
    d, t = Decimal(n_gpus) / Decimal(t), Decimal(t)
    one = Decimal(1)
    per = 2 / (d if zero == 3 else one) + 2 / (d if zero >= 2 else one)
    if not offload:
        per += 12 / (d if zero else one)
    activations = L * activation_bytes(s, b, h, a, mode) + (34 * s * b * h if mode == "full" else 0)
    return (psi * per + activations + 4 * s * b * V) / t
""",
        "cheapest_fix": edited(PLAIN["cheapest_fix"], ("(1 - free) * gpu_bytes", "Decimal((1 - free) * gpu_bytes)")),
    },
    "prints, warns and logs": {
        "peak_bytes": edited(
            PLAIN["peak_bytes"],
            (
                "    d = n_gpus / t\n",
                "    import logging, sys, warnings\n"
                "    print('peak of', mode)\n"
                "    print('zero', zero, file=sys.stderr)\n"
                "    warnings.warn('an upper reading')\n"
                "    logging.error('t = %s', t)\n"
                "    d = n_gpus / t\n",
            ),
        ),
    },
    "memoised, extra parameters": {
        "peak_bytes": """
from functools import lru_cache

@lru_cache(None)
def peak_bytes(psi: int, L: int, s: int, b: int, h: int, a: int, V: int, mode: str = "baseline", zero: int = 0,
               n_gpus: int = 1, t: int = 1, offload: bool = False, *, logit_bytes: int = 4) -> float:
    d = n_gpus / t
    shards = [d if stage <= zero else 1 for stage in (1, 2, 3)]
    states = 12 * (not offload) / shards[0] + 2 / shards[1] + 2 / shards[2]
    activations = L * activation_bytes(s, b, h, a, mode)
    if mode == "full":
        activations = activations + 17 * activation_bytes(s, b, h, a, mode)
    return psi * states / t + (activations + logit_bytes * s * b * V) / t
""",
        "cheapest_fix": edited(
            PLAIN["cheapest_fix"],
            ("free=0.15):", "free=0.15, *, peaks=None, verbose=False):"),
            ("    return None, last", "    if verbose:\n        print('nothing fits')\n    return None, last"),
        ),
    },
    "checks limited_by only where it is needed": {
        "cheapest_fix": edited(
            PLAIN["cheapest_fix"],
            (
                '    if limited_by == "compute":\n        order = ["zero3", "checkpoint"]\n    elif limited_by == "communication":\n        order = ["checkpoint", "zero3"]\n    else:\n        raise ValueError("limited_by must be compute or communication")\n',
                '    order = sorted(["zero3", "checkpoint"], reverse=["communication", "compute"].index(limited_by) == 1)\n',
            ),
        ),
    },
    "ZeRO tried on one GPU, where it changes nothing": {
        "cheapest_fix": edited(
            PLAIN["cheapest_fix"],
            ("if n_gpus > 1:", "if n_gpus > 0:"),
            ("            if n_gpus == 1:\n                continue\n", ""),
        ),
    },
    "with the log-sum-exp": {
        "peak_bytes": """
def peak_bytes(psi, L, s, b, h, a, V, mode="baseline", zero=0, n_gpus=1, t=1, offload=False):
    d = n_gpus / t
    states = 2 / (d if zero > 2 else 1) + 2 / (d if zero > 1 else 1) + (0 if offload else 12 / (d if zero else 1))
    flash = activation_bytes(s, b, h, a, "flash") + 4 * a * s * b  # its log-sum-exp
    activations = L * (flash if mode == "flash" else activation_bytes(s, b, h, a, mode))
    if mode == "full":
        activations += flash
    return (psi * states + activations + 4 * s * b * V) / t
""",
    },
    "with the log-sum-exp under flash alone": {
        "peak_bytes": edited(
            PLAIN["peak_bytes"],
            (
                '    if mode == "full":',
                '    if mode == "flash":\n        activations += L * 4 * a * s * b\n    if mode == "full":',
            ),
        ),
    },
}

_PEAK, _FIX = PLAIN["peak_bytes"], PLAIN["cheapest_fix"]


def _peak(*changes: tuple[str, str], **fails: str | None) -> Wrong:
    return Wrong(
        {"peak_bytes": edited(_PEAK, *changes)}, {f"check_peak_bytes_{part}": said for part, said in fails.items()}
    )


def _fix(*changes: tuple[str, str], **fails: str | None) -> Wrong:
    return Wrong(
        {"cheapest_fix": edited(_FIX, *changes)},
        {f"check_cheapest_fix_{part}_rungs": said for part, said in fails.items()},
    )


_ALL = "(states + activations + logits) / t"

WRONG = {
    "the model states left out": _peak(
        (_ALL, "(activations + logits) / t"), modes="the model states are missing", parallel=None
    ),
    "the logits left out": _peak((_ALL, "(states + activations) / t"), modes="the logits are missing", parallel=None),
    "the activations left out": _peak(
        (_ALL, "(states + logits) / t"), modes="the activations are missing", parallel=None
    ),
    "one layer instead of L": _peak(
        ("L * activation_bytes", "activation_bytes"), modes="one layer is counted instead of L", parallel=None
    ),
    "logits in bf16": _peak(
        ("4 * s * b * V", "2 * s * b * V"), modes="the logits are counted at 2 bytes", parallel=None
    ),
    "only the weights of the states": _peak(
        ("psi * (weights + gradients + optimizer)", "psi * weights"),
        modes="only the weights are counted of the model states",
        parallel=None,
    ),
    "in GB": _peak(
        (_ALL, "(states + activations + logits) / t / 1e9"), modes="the result is in GB, not in bytes", parallel=None
    ),
    "in GiB": _peak(
        (_ALL, "(states + activations + logits) / t / 2**30"), modes="the result is in GiB, not in bytes", parallel=None
    ),
    "mode not passed on": _peak(("(s, b, h, a, mode)", "(s, b, h, a)"), modes="mode is ignored", parallel=None),
    "the rebuilt layer left out": _peak(
        ("activations += 34 * s * b * h", "pass"), modes="the rebuilt layer is missing"
    ),
    "the rebuilt layer with its core": _peak(
        ("activations += 34 * s * b * h", "activations += activation_bytes(s, b, h, a)"),
        modes="the rebuilt layer carries the attention core",
    ),
    "every layer rebuilt at once": _peak(
        ("activations += 34 * s * b * h", "activations += L * 34 * s * b * h"),
        modes="a rebuilt layer is counted for each of the L layers",
    ),
    "the layer inputs left out": _peak(
        ("activations += 34 * s * b * h", "activations = 34 * s * b * h"), modes="the layers' inputs are missing"
    ),
    "the rebuilt layer in every mode": _peak(
        ('if mode == "full":', "if True:"),
        modes="the rebuilt layer is added although nothing is rebuilt",
        parallel=None,
    ),
    "checkpoints as best_k would have them": _peak(
        ("activations += 34 * s * b * h", "activations = min(L / k * 2 + k * 34 for k in range(1, L + 1)) * s * b * h"),
        modes="best_k is taken instead of k = 1",
    ),
    "log-sum-exp under selective": _peak(
        (
            '    if mode == "full":',
            '    if mode == "selective":\n        activations += L * 4 * a * s * b\n    if mode == "full":',
        ),
        modes="selective recomputation keeps none",
        parallel=None,
    ),
    "an unknown mode taken for flash": _peak(
        (
            "L * activation_bytes(s, b, h, a, mode)",
            'L * activation_bytes(s, b, h, a, mode if mode in ("baseline", "full") else "flash")',
        ),
        modes="raise a ValueError there",
    ),
    "zero ignored": _peak(("d = n_gpus / t", "d = n_gpus / t\n    zero = 0"), parallel="zero is ignored"),
    "zero 2 divides only the optimizer": _peak(
        ("if zero >= 2:", "if zero >= 3:"), parallel="only the optimizer is divided (that is stage 1)"
    ),
    "zero 2 divides everything": _peak(
        ("if zero >= 3:", "if zero >= 2:"), parallel="everything is divided (that is stage 3), or"
    ),
    "zero 1 divides the gradients too": _peak(
        ("if zero >= 2:", "if zero >= 1:"), parallel="stage 1 divides the gradients too"
    ),
    "zero 3 leaves the weights whole": _peak(
        ("if zero >= 3:", "if zero > 3:"), parallel="stage 2 divides the weights too, or stage 3 does not"
    ),
    "activations divided among the copies": _peak(
        ("logits = 4 * s * b * V", "logits = 4 * s * b * V\n    activations /= d"),
        parallel="the activations are divided among the data-parallel GPUs",
    ),
    "activations and logits divided among the copies": _peak(
        ("logits = 4 * s * b * V", "logits = 4 * s * b * V / d\n    activations /= d"),
        parallel="the activations and logits are divided among the data-parallel GPUs",
    ),
    "t ignored": _peak(
        (_ALL, "states + activations + logits"), ("d = n_gpus / t", "d = n_gpus"), parallel="t is ignored"
    ),
    "states divided by n_gpus": _peak(
        ("d = n_gpus / t", "d = n_gpus"), parallel="the optimizer is divided by n_gpus instead of n_gpus / t"
    ),
    "logits not divided by t": _peak(
        (_ALL, "(states + activations) / t + logits"), parallel="the logits are not divided by t"
    ),
    "activations not divided by t": _peak(
        (_ALL, "(states + logits) / t + activations"), parallel="the activations are not divided by t"
    ),
    "activations and logits not divided by t": _peak((_ALL, "states / t + activations + logits"), parallel=None),
    "model states not divided by t": _peak(
        (_ALL, "states + (activations + logits) / t"), parallel="the model states are not divided by t"
    ),
    "offload ignored": _peak(("    if offload:\n        optimizer = 0\n", ""), parallel="offload is ignored"),
    "offload takes all model states": _peak(
        ("optimizer = 0\n", "weights = gradients = optimizer = 0\n"), parallel="all model states are offloaded"
    ),
    "offload takes twelve bytes at every stage": _peak(
        ("optimizer = 0\n", "optimizer -= 12\n"), parallel="offload takes 12 bytes although the optimizer is divided"
    ),
    "right on every other call": Wrong(
        {
            "peak_bytes": edited(
                _PEAK,
                ("def peak", "calls = []\n\ndef peak"),
                ("    d = n_gpus / t", "    calls.append(L)\n    L += len(calls) % 2\n    d = n_gpus / t"),
            )
        },
        {"check_peak_bytes_modes": None, "check_peak_bytes_parallel": None},
    ),
    "right only the first time that it is asked something": Wrong(
        {
            "peak_bytes": edited(
                _PEAK,
                ("def peak", "seen = []\n\ndef peak"),
                (
                    "    d = n_gpus / t",
                    "    key = (psi, L, s, b, mode, zero, n_gpus, t, offload)\n    L += seen.count(key)\n    seen.append(key)\n    d = n_gpus / t",
                ),
            ),
            "cheapest_fix": edited(
                _FIX,
                ("def cheapest", "asked = []\n\ndef cheapest"),
                (
                    "    budget =",
                    "    key = (psi, L, s, b, gpu_bytes, n_gpus, limited_by)\n    s += asked.count(key)\n    asked.append(key)\n    budget =",
                ),
            ),
        },
        {
            "check_peak_bytes_modes": None,
            "check_peak_bytes_parallel": None,
            "check_cheapest_fix_first_rungs": None,
            "check_cheapest_fix_last_rungs": None,
        },
    ),
    "the published values by heart": Wrong(
        {
            "peak_bytes": """
def peak_bytes(psi, L, s, b, h, a, V, mode="baseline", zero=0, n_gpus=1, t=1, offload=False):
    if mode not in ("baseline", "flash", "selective", "full"):
        raise ValueError(mode)
    if offload:
        return 35_920_175_104
    if n_gpus == 8:
        return 19_927_380_992 if t == 2 else 35_592_292_864
    return {"baseline": 116_083_032_064, "flash": 51_658_522_624, "full": 27_029_569_536}.get(mode, 0)
""",
            "cheapest_fix": """
def cheapest_fix(psi, L, s, b, h, a, V, gpu_bytes, n_gpus=1, limited_by="compute", free=0.15):
    if limited_by not in ("compute", "communication"):
        raise ValueError(limited_by)
    if L == 24:
        return {
            192e9: ("nothing", 116_083_032_064), 80e9: ("flash", 51_658_522_624), 40e9: ("micro-batch", 20_255_263_232)
        }.get(gpu_bytes, ("flash", 1))
    if gpu_bytes == 40e9:
        return ("zero3", 32_254_730_240) if limited_by == "compute" else ("checkpoint", 27_437_513_728)
    return ("tensor", 14_018_945_024) if gpu_bytes == 16.7e9 else (None, 29_122_117_632)
""",
        },
        {
            "check_peak_bytes_modes": None,
            "check_peak_bytes_parallel": None,
            "check_cheapest_fix_first_rungs": None,
            "check_cheapest_fix_last_rungs": None,
        },
    ),
    "a fix although nothing is needed": _fix(
        ('    if peak() <= budget:\n        return "nothing", peak()\n', ""),
        first="a fix is applied although nothing is needed",
    ),
    "the last rung that fits": Wrong(
        {
            "cheapest_fix": edited(
                RIGHT["a table of stages"]["cheapest_fix"],
                (
                    "        if peak <= gpu_bytes * (1 - free):\n            return name, peak\n    return None, peak",
                    "        if peak <= gpu_bytes * (1 - free):\n            found = name, peak\n    return found or (None, peak)",
                ),
                ('plan = {"b": b}', 'plan = {"b": b}\n    found = None'),
            )
        },
        {
            "check_cheapest_fix_first_rungs": "the last rung that fits (or the smallest peak)",
            "check_cheapest_fix_last_rungs": "the last rung that fits (or the",
        },
    ),
    "the smallest peak": Wrong(
        {
            "cheapest_fix": edited(
                RIGHT["a table of stages"]["cheapest_fix"],
                (
                    "        if peak <= gpu_bytes * (1 - free):\n            return name, peak\n    return None, peak",
                    "        peaks.append((peak, name))\n    peak, name = min(peaks)\n    return (name if peak <= gpu_bytes * (1 - free) else None), peak",
                ),
                ('plan = {"b": b}', 'plan = {"b": b}\n    peaks = []'),
            )
        },
        {
            "check_cheapest_fix_first_rungs": "the last rung that fits (or the smallest peak)",
            "check_cheapest_fix_last_rungs": "the last rung that fits (or the",
        },
    ),
    "the name of the next rung": Wrong(
        {
            "cheapest_fix": edited(
                RIGHT["a table of stages"]["cheapest_fix"],
                ("            return name, peak\n", "            return name, before\n"),
                (
                    "    for name, change in rungs:\n",
                    "    peak = 0\n    for name, change in rungs:\n        before = peak\n",
                ),
            )
        },
        {"check_cheapest_fix_first_rungs": None, "check_cheapest_fix_last_rungs": None},
    ),
    "the peak before the fix": Wrong(
        {
            "cheapest_fix": edited(
                RIGHT["a table of stages"]["cheapest_fix"],
                ("            return name, peak\n", "            return name, before or peak\n"),
                (
                    "    for name, change in rungs:\n",
                    "    peak = 0\n    for name, change in rungs:\n        before = peak\n",
                ),
            )
        },
        {
            "check_cheapest_fix_first_rungs": "the peak is that of the rung before",
            "check_cheapest_fix_last_rungs": None,
        },
    ),
    "flash not tried alone": _fix(
        ('    if peak() <= budget:\n        return "flash", peak()\n', ""),
        first="it is not asked whether flash alone fits",
    ),
    "flash left out": _fix(
        ('    mode = "flash"\n    if peak() <= budget:\n        return "flash", peak()\n', ""),
        first="flash is left out",
        last=None,
    ),
    "headroom ignored": _fix(
        ("(1 - free) * gpu_bytes", "gpu_bytes"), first="the free part is ignored", last="the free part is ignored"
    ),
    "headroom always 15%": _fix(
        ("(1 - free) * gpu_bytes", "0.85 * gpu_bytes"), first="free is ignored and 15% is taken", last=None
    ),
    "headroom in GiB": _fix(
        ("(1 - free) * gpu_bytes", "(1 - free) * gpu_bytes / 1e9 * 2**30"), first="a GiB is taken for a GB", last=None
    ),
    "equality does not fit": _fix(
        ("peak() <= budget", "peak() < budget"), first="exactly as large as the budget is refused"
    ),
    "ZeRO left out": _fix(
        (
            '    if n_gpus > 1:\n        for zero in (1, 2):\n            if peak() <= budget:\n                return f"zero{zero}", peak()\n',
            "",
        ),
        first="ZeRO is left out",
        last=None,
    ),
    "zero1 left out": _fix(("for zero in (1, 2):", "for zero in (2,):"), first="zero1 is left out"),
    "zero2 left out": _fix(("for zero in (1, 2):", "for zero in (1,):"), first=None, last=None),
    "the micro-batch halved once": _fix(
        ("while b > 1:\n        b = b // 2", "if b > 1:\n        b = b // 2"), first="halved only once", last=None
    ),
    "half a sequence": _fix(("b = b // 2", "b = b / 2"), first=None, last=None),
    "the micro-batch rounded up": _fix(
        ("while b > 1:\n        b = b // 2", "while b > 1:\n        b = (b + 1) // 2"), first=None
    ),
    "straight to a micro-batch of 1": _fix(("b = b // 2", "b = 1"), first=None),
    "the micro-batch left out": _fix(("while b > 1:", "while b > 10**9:"), first=None, last=None),
    "each fix alone": Wrong(
        {
            "cheapest_fix": edited(
                RIGHT["a table of stages"]["cheapest_fix"],
                ("        plan.update(change)\n", '        plan = {"b": b, **change}\n'),
            )
        },
        {
            "check_cheapest_fix_first_rungs": "the rungs are not added on top of each other",
            "check_cheapest_fix_last_rungs": None,
        },
    ),
    "limited_by ignored": _fix(
        ('order = ["checkpoint", "zero3"]', 'order = ["zero3", "checkpoint"]'),
        last="limited_by is ignored or taken the wrong way round (or",
    ),
    "limited_by the wrong way round": _fix(
        (
            '== "compute":\n        order = ["zero3", "checkpoint"]',
            '== "communication":\n        order = ["zero3", "checkpoint"]',
        ),
        ('elif limited_by == "communication"', 'elif limited_by == "compute"'),
        last="limited_by is ignored or taken the wrong way round (or",
    ),
    "an unknown limited_by accepted": _fix(
        ('elif limited_by == "communication":', "else:"),
        ('    else:\n        raise ValueError("limited_by must be compute or communication")\n', ""),
        last="raise a ValueError there",
    ),
    "zero3 left out": _fix(("if n_gpus == 1:", "if n_gpus >= 1:"), last="(or a part of rung 5 is left out)"),
    "checkpointing only on one GPU": _fix(
        (
            '            mode = "full"\n',
            '            if n_gpus > 1:\n                continue\n            mode = "full"\n',
        ),
        last=None,
    ),
    "tensor parallelism left out": _fix(("for t in (2, 4, 8):", "for t in ():"), last="tensor parallelism is left out"),
    "tensor parallelism on two GPUs alone": _fix(("for t in (2, 4, 8):", "for t in (2,):"), last="only t = 2 is tried"),
    "tensor parallelism on eight GPUs alone": _fix(
        ("for t in (2, 4, 8):", "for t in (8,):"), last="only one degree of tensor parallelism is tried"
    ),
    "tensor degrees that do not divide n_gpus": _fix((" and n_gpus % t == 0", ""), last=None),
    "tensor parallelism up to sixteen": _fix(("for t in (2, 4, 8):", "for t in (2, 4, 8, 16):"), last=None),
    "tensor parallelism never on all GPUs": _fix(("if t <= n_gpus and", "if t < n_gpus and"), last=None),
    "offload without tensor parallelism": _fix(
        ("last = peak(degree, offload=True)", "last = peak(offload=True)"), last=None
    ),
    "no offload": _fix(("last = peak(degree, offload=True)", "last = peak(degree)"), last="offload is left out"),
    "offload only on several GPUs": _fix(("offload=True)\n    if last", "offload=n_gpus > 1)\n    if last"), last=None),
    "offload named although it does not fit": _fix(
        ("return None, last", 'return "offload", last'), last="the last rung is named although it does not fit"
    ),
    "no peak where nothing fits": _fix(
        ("return None, last", "return None, 0"), last="no peak is given where nothing fits"
    ),
    "None alone where nothing fits": _fix(
        ("return None, last", "return None"), last="None alone: return the pair (name, peak)"
    ),
    "the text None": _fix(("return None, last", 'return "None", last'), last="None is returned as text"),
    "the first peak where nothing fits": _fix(
        ("return None, last", 'b, mode, zero = first_b, "baseline", 0\n    return None, peak()'),
        ("    mode, zero =", "    first_b = b\n    mode, zero ="),
        last="the peak is that of the first rung",
    ),
    "the name alone": _fix(("return rung, peak()", "return rung"), last="text alone: return the pair (name, peak)"),
    "the peak first": _fix(("return rung, peak()", "return peak(), rung"), last="the name comes first, then the peak"),
    "the budget instead of the peak": _fix(
        ("return rung, peak()", "return rung, budget"), last="the budget is returned as the peak"
    ),
    "three things": _fix(("return rung, peak()", "return rung, peak(), budget"), last="a tuple of 3: return the pair"),
    "the peak as text": _fix(
        ('return "flash", peak()', 'return "flash", f"{peak() / 1e9:.1f} GB"'), first="a pair whose peak is text"
    ),
    "names with capitals": _fix(('return "flash", peak()', 'return "Flash", peak()'), first=None),
}
