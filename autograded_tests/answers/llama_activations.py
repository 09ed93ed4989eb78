"""Answers to stretch exercise 1: llama_activation_bytes."""

from . import Wrong, edited

PLAIN = {
    "llama_activation_bytes": """
def llama_activation_bytes(s, b, h, a, kv, f, fused_attention=True, fused_swiglu=False):
    sb = s * b
    shared = h // a * kv
    norms = 4 * h
    inputs = 4 * h
    q = 2 * h
    k = 2 * shared
    v = 2 * shared
    attended = 2 * h
    wide = 6 * f if fused_swiglu else 8 * f
    total = sb * (norms + inputs + q + k + v + attended + wide)
    if not fused_attention:
        total += 2 * a * s**2 * b
    return total
"""
}

RIGHT = {
    "in units of sbh": {
        "llama_activation_bytes": """
def llama_activation_bytes(s, b, h, a, kv, f, fused_attention=True, fused_swiglu=False):
    sbh = s * b * h
    units = 12 + 4 * kv / a + (6 if fused_swiglu else 8) * f / h
    return sbh * units + (0 if fused_attention else 2 * a * s * s * b)
"""
    },
    "fractions": {
        "llama_activation_bytes": """
from fractions import Fraction

def llama_activation_bytes(s, b, h, a, kv, f, fused_attention=True, fused_swiglu=False):
    units = 12 + Fraction(4 * kv, a) + Fraction((8 - 2 * fused_swiglu) * f, h)
    return s * b * h * units + 2 * (not fused_attention) * a * s * s * b
"""
    },
    "a list of tensors": {
        "llama_activation_bytes": """
def llama_activation_bytes(s, b, h, a, kv, f, fused_attention=True, fused_swiglu=False):
    d = h // a
    tensors = [("norm1", h), ("qkv input", h), ("q", a * d), ("k", kv * d), ("v", kv * d), ("out", h), ("norm2", h)]
    tensors += [("mlp input", h), ("gate", f), ("up", f), ("down input", f)]
    if not fused_swiglu:
        tensors.append(("silu", f))
    kept = sum(2 * s * b * width for _, width in tensors)
    for head in range(a if not fused_attention else 0):
        kept += 2 * s * s * b
    return kept
"""
    },
    "NumPy": {
        "llama_activation_bytes": """
import numpy as np

def llama_activation_bytes(s, b, h, a, kv, f, fused_attention=True, fused_swiglu=False):
    widths = np.array([h] * 6 + [h * kv // a] * 2 + [f] * (3 if fused_swiglu else 4), dtype=np.int64)
    core = np.int64(0 if fused_attention else a * s) * np.int64(s * b)
    return 2 * (s * b * widths.sum() + core)
"""
    },
    "a class and a helper": {
        "llama_activation_bytes": """
class Layer:
    def __init__(self, h, a, kv, f):
        self.h, self.f, self.shared = h, f, h * kv / a

    def row(self, fused):
        return 6 * self.h + 2 * self.shared + (3 if fused else 4) * self.f

def llama_activation_bytes(s, b, h, a, kv, f, fused_attention=True, fused_swiglu=False):
    print("counting")
    scores = 0 if fused_attention else a * s * s * b
    return 2 * (s * b * Layer(h, a, kv, f).row(fused_swiglu) + scores)
"""
    },
}


def _edit(*changes: tuple[str, str], **fails: str) -> Wrong:
    names = {"count": "check_llama_activation_bytes", "attention": "check_llama_activation_bytes_attention"}
    source = edited(PLAIN["llama_activation_bytes"], *changes)
    return Wrong({"llama_activation_bytes": source}, {names[check]: said for check, said in fails.items()})


def _both(said: str, *changes: tuple[str, str]) -> Wrong:
    return _edit(*changes, count=said, attention=None)


_CORE = "2 * a * s**2 * b"

WRONG = {
    "keys as wide as queries": _both("as wide as the queries", ("shared = h // a * kv", "shared = h")),
    "only the keys narrowed": _both("only the keys are narrowed", ("v = 2 * shared", "v = 2 * h")),
    "queries narrowed too": _both("the queries are narrowed", ("q = 2 * h", "q = 2 * shared")),
    "a and kv swapped": _both("a and kv are swapped", ("h // a * kv", "h * a // kv")),
    "two wide tensors": _both("two f-wide tensors", ("6 * f if fused_swiglu else 8 * f", "4 * f")),
    "three wide tensors": _both("three f-wide tensors", ("6 * f if fused_swiglu else 8 * f", "6 * f")),
    "four wide tensors always": _both("fused_swiglu is ignored", ("6 * f if fused_swiglu else 8 * f", "8 * f")),
    "an MLP of 4h": _both(
        "taken to be 4h wide", ("6 * f if fused_swiglu else 8 * f", "24 * h if fused_swiglu else 32 * h")
    ),
    "three inputs of the projections": _both("counted three times", ("inputs = 4 * h", "inputs = 8 * h")),
    "two inputs of gate and up": _both("gate and up is counted twice", ("inputs = 4 * h", "inputs = 6 * h")),
    "no norms": _both("inputs of both norms are missing", ("norms = 4 * h", "norms = 0")),
    "one norm": _both("the input of one norm", ("norms = 4 * h", "norms = 2 * h")),
    "both sides of the rotation": _both("before the rotation", ("q = 2 * h", "q = 4 * h"), ("k = 2 *", "k = 4 *")),
    "the GPT formula": _both(
        "GPT formula", ("total = sb * (norms + inputs + q + k + v + attended + wide)", "total = 34 * sb * h")
    ),
    "values": _both("values are counted", ("return total", "return total / 2")),
    "no softmax": _edit((_CORE, "0"), attention="the output of the softmax is missing"),
    "scores too": _edit((_CORE, "4 * a * s**2 * b"), attention="scores before the softmax are kept as well"),
    "the GPT core": _edit((_CORE, "5 * a * s**2 * b"), attention="the core is the GPT layer's"),
    "a core of kv heads": _edit((_CORE, "2 * kv * s**2 * b"), attention="the core has kv heads"),
    "a core of one head": _edit((_CORE, "2 * s**2 * b"), attention="the heads are missing from the core"),
    "a core of one sequence": _edit((_CORE, "2 * a * s**2"), attention="the micro-batch is missing from the core"),
    "a linear core": _edit((_CORE, "2 * a * s * b"), attention="grows with s instead of s squared"),
    "a core of bytes": _edit((_CORE, "a * s**2 * b"), attention="the core is counted at 1 byte"),
}
