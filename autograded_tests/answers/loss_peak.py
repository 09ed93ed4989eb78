"""Answers to stretch exercise 2: loss_peak_bytes."""

from . import Wrong, edited

PLAIN = {
    "loss_peak_bytes": """
def loss_peak_bytes(s, b, V, loss="fp32", referenced=False):
    n = s * b * V
    if loss not in ("fp32", "autocast", "bf16"):
        raise ValueError("unknown loss " + loss)
    each = 2 if loss == "bf16" else 4
    peak = 3 * each
    if referenced:
        peak += 4 if loss == "fp32" else 2
    return peak * n
"""
}

RIGHT = {
    "a table": {
        "loss_peak_bytes": """
TABLE = {("fp32", False): 12, ("fp32", True): 16, ("autocast", False): 12, ("autocast", True): 14,
         ("bf16", False): 6, ("bf16", True): 8}

def loss_peak_bytes(s, b, V, loss="fp32", referenced=False):
    try:
        return TABLE[loss, bool(referenced)] * s * b * V
    except KeyError:
        raise ValueError(loss) from None
"""
    },
    "events played": {
        "loss_peak_bytes": """
def loss_peak_bytes(s, b, V, loss="fp32", referenced=False):
    if loss not in ("fp32", "autocast", "bf16"):
        raise ValueError(loss)
    e = 2 if loss == "bf16" else 4
    held, peak = {}, 0

    def make(name, size):
        nonlocal peak
        held[name] = size
        peak = max(peak, sum(held.values()))

    make("bf16", 2)
    if loss != "bf16":
        make("fp32", 4)
        if not (referenced and loss == "autocast"):
            del held["bf16"]
    logits = "bf16" if loss == "bf16" else "fp32"
    make("log-probabilities", e)
    if not (referenced and loss != "autocast"):
        del held[logits]
    make("gradient of the log-probabilities", e)
    make("gradient of the logits", e)
    return peak * s * b * V
""",
    },
    "match": {
        "loss_peak_bytes": """
def loss_peak_bytes(s, b, V, loss="fp32", referenced=False):
    match loss:
        case "fp32":
            element = named = 4
        case "autocast":
            element, named = 4, 2
        case "bf16":
            element = named = 2
        case _:
            raise ValueError(f"no loss {loss!r}")
    return (3 * element + referenced * named) * (s * b * V)
"""
    },
    "floats and NumPy": {
        "loss_peak_bytes": """
import numpy as np

def loss_peak_bytes(s, b, V, loss="fp32", referenced=False):
    width = {"fp32": np.float32(0).nbytes, "autocast": np.float32(0).nbytes, "bf16": np.float16(0).nbytes}
    if loss not in width:
        raise ValueError(loss)
    name = 0 if not referenced else (2.0 if loss != "fp32" else 4.0)
    return np.float64(s) * b * V * (width[loss] * 3 + name)
"""
    },
    "an enumeration": {
        "loss_peak_bytes": """
from enum import Enum

class Loss(Enum):
    fp32 = "fp32"
    autocast = "autocast"
    bf16 = "bf16"

def loss_peak_bytes(s, b, V, loss="fp32", referenced=False):
    kind = Loss(loss)  # a ValueError for any other text
    elements = [2 if kind is Loss.bf16 else 4] * 3
    if referenced:
        elements.append(4 if kind is Loss.fp32 else 2)
    return sum(e * s * b * V for e in elements)
"""
    },
}


def _edit(*changes: tuple[str, str], **fails: str | None) -> Wrong:
    names = {"fp32": "check_loss_peak_bytes", "kinds": "check_loss_peak_bytes_kinds"}
    names["held"] = "check_loss_peak_bytes_referenced"
    source = edited(PLAIN["loss_peak_bytes"], *changes)
    return Wrong({"loss_peak_bytes": source}, {names[check]: said for check, said in fails.items()})


def _peak(new: str, said: str, kinds: str | None = None) -> Wrong:
    return _edit(("peak = 3 * each", f"peak = {new}"), fp32=said, kinds=kinds, held=None)


WRONG = {
    "the end of the forward pass": _peak("each", "held at the end of the forward pass", "end of the forward pass"),
    "one gradient": _peak("2 * each", "one of the two gradients is missing", "one of the two gradients"),
    "logits still there": _peak("4 * each", "the fp32 logits are still counted", "the logits are still counted"),
    "bf16 logits still there": _edit(
        ("peak = 3 * each", "peak = 3 * each + (2 if each == 4 else 0)"),
        fp32="the bf16 logits are still counted",
        kinds="the bf16 logits are still counted",
        held=None,
    ),
    "all in bf16": _edit(
        ("2 if loss", "2 if True or loss"), fp32="counted in bf16", kinds="counted in bf16", held=None
    ),
    "only bf16 logits": _peak("2", "only the bf16 logits"),
    "elements": _peak("3", "elements are counted"),
    "no vocabulary": _edit(("s * b * V", "s * b"), fp32="the vocabulary is missing", kinds=None, held=None),
    "no micro-batch": _edit(("s * b * V", "s * V"), fp32="the micro-batch is missing", kinds=None, held=None),
    "loss ignored": _edit(('2 if loss == "bf16" else 4', "4"), kinds="loss is ignored", held=None),
    "autocast in bf16": _edit(
        ('loss == "bf16"', 'loss != "fp32"'), kinds="counted in bf16 (autocast runs it in fp32)", held=None
    ),
    "any loss": _edit(
        ('raise ValueError("unknown loss " + loss)', "loss = 'fp32'"), kinds="but nobody knows that name"
    ),
    "referenced ignored": _edit(("if referenced:", "if False:"), held="referenced is ignored"),
    "fp32 logits held always": _edit(('4 if loss == "fp32" else 2', "4"), held="refer to fp32 logits"),
    "bf16 logits held always": _edit(('4 if loss == "fp32" else 2', "2"), held="refer to bf16 logits"),
    "held twice": _edit(
        ('4 if loss == "fp32" else 2', '8 if loss == "fp32" else 4'), held="the logits are counted twice"
    ),
}
