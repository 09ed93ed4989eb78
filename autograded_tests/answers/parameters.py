"""Answers to exercise 1: params_per_layer and model_params."""

# ruff: noqa: E501 - the answers are lines as students write them

from . import Wrong, edited

PLAIN = {
    "params_per_layer": """
def params_per_layer(h, mlp_ratio=4, n_kv_ratio=1, style="gpt"):
    f = int(mlp_ratio * h)
    kv = int(n_kv_ratio * h)
    attention = 2 * h * h + 2 * h * kv
    if style == "gpt":
        mlp = 2 * h * f
        attention_biases = 2 * h + 2 * kv
        mlp_biases = f + h
        norms = 4 * h
        return attention + mlp + attention_biases + mlp_biases + norms
    elif style == "llama":
        mlp = 3 * h * f
        norms = 2 * h
        return attention + mlp + norms
    else:
        raise ValueError("style should be gpt or llama")
""",
    "model_params": """
def model_params(L, h, V, mlp_ratio=4, n_kv_ratio=1, style="gpt", tied=True, positions=0):
    total = L * params_per_layer(h, mlp_ratio, n_kv_ratio, style)
    total += V * h
    if not tied:
        total += V * h
    total += positions * h
    if style == "gpt":
        total += 2 * h
    else:
        total += h
    return total
""",
}

RIGHT = {
    "floats all the way": {
        "params_per_layer": """
def params_per_layer(h, mlp_ratio=4.0, n_kv_ratio=1.0, style="gpt"):
    h = float(h)
    if style == "gpt":
        return h**2 * (2 + 2 * n_kv_ratio + 2 * mlp_ratio) + h * (3 + 2 * n_kv_ratio + mlp_ratio) + 4 * h
    if style == "llama":
        return h**2 * (2 + 2 * n_kv_ratio + 3 * mlp_ratio) + 2 * h
    raise ValueError(style)
""",
    },
    "shapes in NumPy": {
        "params_per_layer": """
import numpy as np

def params_per_layer(h, mlp_ratio=4, n_kv_ratio=1, style="gpt"):
    f, kv = int(round(h * mlp_ratio)), int(round(h * n_kv_ratio))
    if style not in ("gpt", "llama"):
        raise ValueError("unknown style")
    up = [(h, f)] if style == "gpt" else [(h, f), (h, f)]
    shapes = np.array([(h, h), (h, kv), (h, kv), (h, h), *up, (f, h)])
    count = shapes.prod(axis=1).sum()
    if style == "gpt":
        count += shapes[:, 1].sum() + 2 * h
    return count + 2 * h
""",
        "model_params": """
def model_params(L, h, V, mlp_ratio=4, n_kv_ratio=1, style="gpt", tied=True, positions=0):
    tables = np.array([V, positions, 0 if tied else V])
    norm = {"gpt": 2 * h}.get(style, h)
    return np.int64(L) * params_per_layer(h, mlp_ratio, n_kv_ratio, style) + h * np.sum(tables) + norm
""",
    },
    "an array without axes": {
        "params_per_layer": """
import numpy

def params_per_layer(h, mlp_ratio=4, n_kv_ratio=1, style="gpt"):
    weights = h * h * (2 + 2 * n_kv_ratio)
    if style == "gpt":
        count = weights + 2 * h * h * mlp_ratio + h * (7 + 2 * n_kv_ratio + mlp_ratio)
    elif style == "llama":
        count = weights + 3 * h * h * mlp_ratio + 2 * h
    else:
        raise ValueError("gpt or llama, please")
    return numpy.array(count)
""",
    },
    "fractions": {
        "params_per_layer": """
from fractions import Fraction

def params_per_layer(h, mlp_ratio=4, n_kv_ratio=1, style="gpt"):
    f = Fraction(mlp_ratio) * h
    kv = Fraction(n_kv_ratio) * h
    per_style = {
        "gpt": lambda: 2 * h * f + 7 * h + 2 * kv + f,
        "llama": lambda: 3 * h * f + 2 * h,
    }
    if style not in per_style:
        raise ValueError(f"unknown style {style}")
    return 2 * h * (h + kv) + per_style[style]()
""",
    },
    "decimals": {
        "params_per_layer": """
from decimal import Decimal

def params_per_layer(h, mlp_ratio=4, n_kv_ratio=1, style="gpt"):
    h = Decimal(h)
    f = h * Decimal(mlp_ratio)
    kv = h * Decimal(n_kv_ratio)
    if style == "gpt":
        return h * h + h + 2 * (h * kv + kv) + h * h + h + h * f + f + f * h + h + 4 * h
    if style == "llama":
        return 2 * h * h + 2 * h * kv + 3 * h * f + 2 * h
    raise ValueError("style")
""",
    },
    "generators over tensors": {
        "params_per_layer": """
def tensors(h, f, kv, style):
    yield from ((h, h), (h, kv), (h, kv), (h, h))
    if style == "gpt":
        yield from ((h, f), (f, h))
        yield from ((h,), (kv,), (kv,), (h,), (f,), (h,))
        yield from ((h,), (h,), (h,), (h,))
    elif style == "llama":
        yield from ((h, f), (h, f), (f, h), (h,), (h,))
    else:
        raise ValueError(f"{style} is neither gpt nor llama")

def size(shape):
    result = 1
    for width in shape:
        result *= width
    return result

def params_per_layer(h, mlp_ratio=4, n_kv_ratio=1, style="gpt"):
    return sum(size(shape) for shape in tensors(h, int(h * mlp_ratio), int(h * n_kv_ratio), style))
""",
    },
    "recursion": {
        "model_params": """
def model_params(L, h, V, mlp_ratio=4, n_kv_ratio=1, style="gpt", tied=True, positions=0):
    if L == 0:
        return h * (V + positions + (0 if tied else V)) + (2 * h if style == "gpt" else h)
    rest = model_params(L - 1, h, V, mlp_ratio, n_kv_ratio, style, tied, positions)
    return rest + params_per_layer(h, mlp_ratio, n_kv_ratio, style)
""",
    },
    "a class with __call__": {
        "params_per_layer": '''
class Layer:
    """Counts a linear layer at a time."""

    def linear(self, inputs, outputs):
        return inputs * outputs + (outputs if self.bias else 0)

    def __call__(self, h, mlp_ratio=4, n_kv_ratio=1, style="gpt"):
        if style not in {"gpt", "llama"}:
            raise ValueError(style)
        self.bias = style == "gpt"
        f, kv = int(h * mlp_ratio), int(h * n_kv_ratio)
        total = 2 * self.linear(h, h) + 2 * self.linear(h, kv)
        total += self.linear(h, f) * (1 if self.bias else 2) + self.linear(f, h)
        return total + 2 * h * (2 if self.bias else 1)

params_per_layer = Layer()
''',
    },
    "memoised": {
        "params_per_layer": """
from functools import lru_cache

@lru_cache(maxsize=None)
def params_per_layer(h, mlp_ratio=4, n_kv_ratio=1, style="gpt"):
    f, kv = mlp_ratio * h, n_kv_ratio * h
    match style:
        case "gpt":
            return 2 * h * h + 2 * h * kv + 2 * h * f + 7 * h + 2 * kv + f
        case "llama":
            return 2 * h * h + 2 * h * kv + 3 * h * f + 2 * h
        case _:
            raise ValueError("no such style")
""",
    },
    "partial and lambda": {
        "params_per_layer": """
from functools import partial

def count(h, mlp_ratio=4, n_kv_ratio=1, style="gpt", known=()):
    for name, norm, matrices, biased in known:
        if name == style:
            f, kv = int(mlp_ratio * h), int(n_kv_ratio * h)
            biases = 3 * h + 2 * kv + f if biased else 0
            return 2 * h * h + 2 * h * kv + matrices * h * f + biases + 2 * norm * h
    raise ValueError("known styles: " + ", ".join(name for name, *_ in known))

params_per_layer = partial(count, known=[("gpt", 2, 2, True), ("llama", 1, 3, False)])
""",
        "model_params": """
model_params = lambda L, h, V, mlp_ratio=4, n_kv_ratio=1, style="gpt", tied=True, positions=0: (
    L * params_per_layer(h, mlp_ratio=mlp_ratio, n_kv_ratio=n_kv_ratio, style=style)
    + (2 - tied) * V * h + positions * h + (1 + (style == "gpt")) * h
)
""",
    },
    "prints, warns and logs": {
        "params_per_layer": """
import logging
import sys
import warnings

logging.basicConfig(level=logging.DEBUG)

def params_per_layer(h, mlp_ratio=4, n_kv_ratio=1, style="gpt"):
    print("h =", h)
    print("style", style, file=sys.stderr)
    warnings.warn("counting without dropout")
    logging.warning("counting %s", style)
    f, kv = int(mlp_ratio * h), int(n_kv_ratio * h)
    weights = 2 * h * h + 2 * h * kv
    if style == "gpt":
        return weights + 2 * h * f + 7 * h + 2 * kv + f
    if style == "llama":
        return weights + 3 * h * f + 2 * h
    raise ValueError("what is " + style)
""",
    },
    "extra parameters": {
        "params_per_layer": '''
def params_per_layer(h: int, mlp_ratio: float = 4, n_kv_ratio: float = 1, style: str = "gpt", verbose=False, *, bias=None) -> float:
    """One layer; bias=None follows the style."""
    if style not in ("gpt", "llama"):
        raise ValueError("style")
    bias = (style == "gpt") if bias is None else bias
    widths = [(h, h), (h, n_kv_ratio * h), (h, n_kv_ratio * h), (h, h), (h, mlp_ratio * h), (mlp_ratio * h, h)]
    if style == "llama":
        widths.append((h, mlp_ratio * h))
    total = sum(i * o + bias * o for i, o in widths) + (4 if style == "gpt" else 2) * h
    if verbose:
        print(total)
    return total
''',
        "model_params": """
def model_params(L, h, V, *ratios, tied=True, positions=0, style="gpt", dtype="bf16", **more):
    layer = params_per_layer(h, *ratios, style=style, verbose=False, **more)
    return layer * L + (V + V * (not tied) + positions) * h + (h, 2 * h)[style == "gpt"]
""",
    },
    "a dataclass": {
        "params_per_layer": """
from dataclasses import dataclass

@dataclass
class Block:
    h: int
    f: float
    kv: float

    @property
    def attention(self):
        return 2 * self.h * (self.h + self.kv)

    def gpt(self):
        return self.attention + 2 * self.h * self.f + 7 * self.h + 2 * self.kv + self.f

    def llama(self):
        return self.attention + 3 * self.h * self.f + 2 * self.h

def params_per_layer(h, mlp_ratio=4, n_kv_ratio=1, style="gpt"):
    try:
        return {"gpt": Block.gpt, "llama": Block.llama}[style](Block(h, mlp_ratio * h, n_kv_ratio * h))
    except KeyError:
        raise ValueError(f"style {style!r}?") from None
""",
    },
    "really builds small layers": {
        "params_per_layer": """
import numpy as np

def params_per_layer(h, mlp_ratio=4, n_kv_ratio=1, style="gpt"):
    if style != "gpt" and style != "llama":
        raise ValueError("only gpt and llama")
    f, kv = int(h * mlp_ratio), int(h * n_kv_ratio)
    if h > 64:
        bias = 3 * h + 2 * kv + f + 2 * h if style == "gpt" else 0
        return 2 * h * h + 2 * h * kv + (2 if style == "gpt" else 3) * h * f + bias + 2 * h
    layer = {"q": np.zeros((h, h)), "k": np.zeros((h, kv)), "v": np.zeros((h, kv)), "o": np.zeros((h, h))}
    layer.update(up=np.zeros((h, f)), down=np.zeros((f, h)))
    if style == "llama":
        layer["gate"] = np.zeros((h, f))
    else:
        layer.update({name + "_bias": np.zeros(w.shape[1]) for name, w in layer.items()})
        layer.update(shift_1=np.zeros(h), shift_2=np.zeros(h))
    layer.update(scale_1=np.ones(h), scale_2=np.ones(h))
    return sum(tensor.size for tensor in layer.values())
""",
    },
}

_LAYER, _MODEL = PLAIN["params_per_layer"], PLAIN["model_params"]
_GPT, _LLAMA, _STYLE = (f"check_params_per_layer_{part}" for part in ("gpt", "llama", "style"))
_MODEL_GPT, _MODEL_LLAMA = "check_model_params_gpt", "check_model_params_llama"


def _layer(*changes: tuple[str, str], **fails: str | None) -> Wrong:
    return Wrong(
        {"params_per_layer": edited(_LAYER, *changes)},
        {f"check_params_per_layer_{part}": said for part, said in fails.items()},
    )


def _model(*changes: tuple[str, str], **fails: str | None) -> Wrong:
    return Wrong(
        {"model_params": edited(_MODEL, *changes)},
        {f"check_model_params_{part}": said for part, said in fails.items()},
    )


WRONG = {
    "the biases forgotten": _layer((" + attention_biases + mlp_biases", ""), gpt="the biases are missing"),
    "weights alone": _layer(
        (" + attention_biases + mlp_biases + norms", ""), gpt="the biases and the norms are missing"
    ),
    "the norms forgotten": _layer(("mlp_biases + norms", "mlp_biases"), gpt="the norms (or the four biases"),
    "the attention's biases forgotten": _layer((" + attention_biases", ""), gpt="or the four biases of the attention"),
    "LayerNorm without a shift": _layer(("norms = 4 * h", "norms = 2 * h"), gpt="a scale but no shift"),
    "the MLP's biases forgotten": _layer((" + mlp_biases", ""), gpt="the biases of the MLP are missing"),
    "a gate in the GPT layer": _layer(
        ("mlp = 2 * h * f", "mlp = 3 * h * f"), gpt="a third MLP matrix is counted (that is the Llama layer)"
    ),
    "^ for a power, in brackets": _layer(
        ("return attention + mlp + attention_biases + mlp_biases + norms", "return 12 * (h^2) + 13 * h"),
        gpt="^ is taken for a power (Python's is **)",
    ),
    "^ for a power": _layer(
        ("return attention + mlp + attention_biases + mlp_biases + norms", "return 12 * h^2 + 13 * h"),
        gpt="and ^ comes after the sums",
    ),
    "the MLP as narrow as h": _layer(
        ("f = int(mlp_ratio * h)", "f = h"), gpt="the MLP is as narrow as the hidden size", llama=None, style=None
    ),
    "mlp_ratio ignored": _layer(
        ("f = int(mlp_ratio * h)", "f = 4 * h"), gpt="mlp_ratio is ignored", llama="mlp_ratio is ignored"
    ),
    "mlp_ratio always 8/3 for llama": _layer(("mlp = 3 * h * f", "mlp = 8 * h * h"), llama=None),
    "mlp_ratio cut to a whole number": _layer(
        ("int(mlp_ratio * h)", "int(mlp_ratio) * h"), gpt="cut to a whole number", llama="cut to a whole number"
    ),
    "n_kv_ratio ignored": _layer(
        ("kv = int(n_kv_ratio * h)", "kv = h"), gpt="n_kv_ratio is ignored", llama="n_kv_ratio is ignored"
    ),
    "n_kv_ratio the wrong way round": _layer(
        ("int(n_kv_ratio * h)", "int(h / n_kv_ratio)"), gpt=None, llama="n_kv_ratio is inverted"
    ),
    "key and value biases as wide as h": _layer(
        ("2 * h + 2 * kv", "4 * h"), gpt="the key and value biases are as wide as the query's"
    ),
    "only the key matrix narrowed": _layer(
        ("2 * h * h + 2 * h * kv", "3 * h * h + h * kv"),
        ("2 * h + 2 * kv", "3 * h + kv"),
        gpt="only the key matrix is narrowed",
        llama="only the key matrix is narrowed",
    ),
    "the query matrix narrowed too": _layer(
        ("2 * h * h + 2 * h * kv", "h * h + 3 * h * kv"),
        ("2 * h + 2 * kv", "h + 3 * kv"),
        gpt="the query matrix is narrowed as well",
        llama="the query matrix (or the output matrix) is narrowed as well",
    ),
    "the output matrix narrowed too": _layer(
        ("2 * h * h + 2 * h * kv", "h * h + 3 * h * kv"),
        gpt="the output matrix is narrowed as well",
        llama="(or the output matrix)",
    ),
    "the MLP's first bias h wide": _layer(
        ("mlp_biases = f + h", "mlp_biases = 2 * h"), gpt="the MLP's first bias is h wide"
    ),
    "the textbook's 12h² + 13h": _layer(
        ("return attention + mlp + attention_biases + mlp_biases + norms", "return 12 * h**2 + 13 * h"), gpt=None
    ),
    "the shorthand 12h²": _layer(
        ("return attention + mlp + attention_biases + mlp_biases + norms", "return 12 * h**2"),
        gpt="the biases and the norms are missing",
    ),
    "the gate forgotten": _layer(("mlp = 3 * h * f", "mlp = 2 * h * f"), llama="the gate matrix is missing"),
    "RMSNorm with a shift": _layer(("norms = 2 * h", "norms = 2 * (h + h)"), llama="the norms have a shift"),
    "the Llama norms forgotten": _layer(
        ("attention + mlp + norms\n", "attention + mlp\n"), llama="the norms are missing"
    ),
    "one Llama norm counted": _layer(("norms = 2 * h", "norms = h"), llama="only one of the two norms is counted"),
    "biases in the Llama layer": _layer(
        ("attention + mlp + norms\n", "attention + mlp + norms + 2 * h + 2 * kv + 2 * f + h\n"),
        llama="biases are counted",
    ),
    "style ignored": _layer(
        ('style == "gpt"', 'style != ""'),
        llama="the layer is the GPT layer",
        style="returned a value, but nobody knows",
    ),
    "any other style taken for llama": _layer(
        ('elif style == "llama":', "else:"),
        ('    else:\n        raise ValueError("style should be gpt or llama")\n', ""),
        style="raise a ValueError there",
    ),
    "an unknown style gives None": _layer(
        ('raise ValueError("style should be gpt or llama")', 'print("unknown style")'), style="raise a ValueError there"
    ),
    "an unknown style raises KeyError": _layer(
        ('raise ValueError("style should be gpt or llama")', "raise KeyError(style)"), style="raised KeyError"
    ),
    "always a ValueError": Wrong(
        {
            "params_per_layer": 'def params_per_layer(h, mlp_ratio=4, n_kv_ratio=1, style="gpt"):\n    raise ValueError(style)'
        },
        dict.fromkeys((_GPT, _LLAMA, _STYLE), "raised ValueError"),
    ),
    "printed, not returned": _layer(
        ("return attention + mlp + attention_biases + mlp_biases + norms", "print(attention + mlp)"),
        gpt="None: does every path end in return",
    ),
    "text with thousands set apart": _layer(
        ("return attention + mlp + norms", 'return f"{attention + mlp + norms:,}"'), llama="text: return the number"
    ),
    "a sum that goes on from call to call": Wrong(
        {
            "params_per_layer": edited(
                _LAYER,
                ("def params", "parts = []\n\ndef params"),
                ("        return attention + mlp", "        parts.append(attention + mlp)\n        return sum(parts)"),
            )
        },
        {_GPT: None, _LLAMA: None, _STYLE: None},
    ),
    "the published values by heart": Wrong(
        {
            "params_per_layer": """
def params_per_layer(h, mlp_ratio=4, n_kv_ratio=1, style="gpt"):
    known = {(1024, "gpt"): 12596224, (2048, "gpt"): 50358272, (2, "gpt"): 74, (16, "gpt"): 3280}
    known.update({(4096, "llama"): 202383360, (8192, "llama"): 855654400, (8, "llama"): 1040, (16, "llama"): 4128})
    if (h, style) not in known and style not in ("gpt", "llama"):
        raise ValueError
    return known.get((h, style), 12 * h * h)
"""
        },
        {_GPT: None, _LLAMA: None, _STYLE: None},
    ),
    "the final norm forgotten": _model(
        ("total += 2 * h", "pass"),
        ("total += h", "pass"),
        gpt="the final norm is missing",
        llama="the final norm is missing",
    ),
    "the final LayerNorm without a shift": _model(("total += 2 * h", "total += h"), gpt="a scale but no shift"),
    "the final RMSNorm with a shift": _model(
        ('if style == "gpt"', "if True"), llama="the final norm is LayerNorm's, with a shift"
    ),
    "positions forgotten": _model(
        ("    total += positions * h\n", ""),
        gpt="the learned positions are missing",
        llama="the learned positions are missing",
    ),
    "positions without the hidden size": _model(("positions * h", "positions"), gpt=None, llama=None),
    "positions only for gpt": _model(
        ("positions * h", '(positions * h if style == "gpt" else 0)'), llama="the learned positions are missing"
    ),
    "the token embedding forgotten": _model(
        ("    total += V * h\n    if", "    if"), gpt="the token embedding is missing", llama=None
    ),
    "the output matrix always counted": _model(
        ("if not tied", "if True"),
        gpt="the output matrix is counted although it shares the embedding",
        llama="although it shares the embedding",
    ),
    "the untied output matrix forgotten": _model(
        ("if not tied", "if False"),
        gpt="the untied output matrix (or the token embedding) is missing",
        llama="the untied output matrix (or the token embedding) is missing",
    ),
    "tied the wrong way round": _model(("if not tied", "if tied"), gpt="although it shares the embedding", llama=None),
    "only the layers": _model(
        ("total += V * h\n    if not tied:\n        total += V * h\n    total += positions * h", "return total"),
        gpt="only the layers are counted",
        llama=None,
    ),
    "the embedding in every layer": _model(
        ("    total += V * h\n    if", "    total += L * V * h\n    if"), gpt=None, llama=None
    ),
    "a final norm in every layer": _model(
        ("total += 2 * h", "total += 2 * h * L"), ("total += h", "total += h * L"), gpt=None, llama=None
    ),
    "the ratios not passed on": _model(
        ("h, mlp_ratio, n_kv_ratio, style)", "h, style=style)"),
        gpt="mlp_ratio and n_kv_ratio do not reach",
        llama="mlp_ratio does not reach params_per_layer",
    ),
    "n_kv_ratio not passed on": _model(
        ("h, mlp_ratio, n_kv_ratio, style)", "h, mlp_ratio, style=style)"),
        gpt="n_kv_ratio does not reach params_per_layer",
        llama="n_kv_ratio does not reach params_per_layer",
    ),
    "style not passed on": _model(("n_kv_ratio, style)", "n_kv_ratio)"), llama="style does not reach params_per_layer"),
    "style left out": _model(
        ("n_kv_ratio, style)", "n_kv_ratio)"), ('if style == "gpt"', "if True"), llama="style is ignored"
    ),
}
