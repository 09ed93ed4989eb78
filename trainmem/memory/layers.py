"""The layers of the course, written as their operations: GPT, Llama-style, the embedding and the head with its loss.

All sizes are per GPU: ``t`` is the tensor-parallel degree, and shapes that it splits are written ``h/t``, ``a/t``.
Communication buffers are not tensors of these lists.
"""

from collections.abc import Collection

from trainmem.memory.operations import Block, Builder

#: The operations that selective recomputation runs again: those whose tensors grow with s².
CORE = ("scores", "scale", "scores_fp32", "softmax", "weights_bf16", "attention_dropout", "weighted")

#: The lesson's four settings as options of a layer. Its "full" rebuilds a layer with fused attention.
MODES = {
    "baseline": {"attention": "eager", "recompute": "none"},
    "flash": {"attention": "fused", "recompute": "none"},
    "selective": {"attention": "eager", "recompute": "selective"},
    "full": {"attention": "fused", "recompute": "full"},
}

#: Names of the weight matrices that `frozen` and `adapters` may list, by style.
GPT_WEIGHTS = ("q_proj", "k_proj", "v_proj", "proj", "fc1", "fc2")
LLAMA_WEIGHTS = ("q_proj", "k_proj", "v_proj", "proj", "gate", "up", "down")


def gpt_layer(
    s: int,
    b: int,
    h: int,
    a: int,
    *,
    f: int | None = None,
    attention: str = "eager",
    recompute: str = "none",
    dropout: bool = True,
    t: int = 1,
    sequence_parallel: bool = False,
    frozen: bool = False,
    adapters: Collection[str] = (),
    rank: int = 16,
    statistics: str = "fp32",
) -> Block:
    """One pre-LN GPT layer with biases, a GeLU MLP of width ``f`` (4h by default) and three dropouts, in bf16.

    ``attention`` is ``"eager"`` (the s × s matrices are tensors) or ``"fused"`` (FlashAttention; its dropout keeps a
    random state, no mask). ``recompute`` is ``"none"``, ``"selective"`` (the attention core is run again) or
    ``"full"`` (only the layer input is kept). ``frozen`` freezes every parameter; ``adapters`` then names matrices
    with a LoRA adapter of the given ``rank``. ``statistics`` is the format of LayerNorm's mean and deviation: fp32 on
    a GPU, bf16 on PyTorch's CPU path.

    The lists give sbh(34 + 5as/h) with eager attention (Korthikanti et al. 2022, section 4.1), 34 sbh fused or
    selective, 2 sbh full, 32 sbh + 2as²b without dropout, sbh(10 + 24/t + 5as/(ht)) under tensor parallelism alone and
    sbh(34 + 5as/h)/t with sequence parallelism.

    >>> layer = gpt_layer(s=2048, b=8, h=2048, a=16)
    >>> layer.kept_bytes == 34 * layer.sbh + 5 * layer.as2b
    True
    """
    _check_attention(attention, recompute)
    dims = _dims(s, b, h, a, kv=a, f=4 * h if f is None else f, t=t, rank=rank)
    _check_names(adapters, GPT_WEIGHTS, frozen)
    wide = "4h" if dims["f"] == 4 * h else "f"
    rows = "b s/t h" if sequence_parallel else "b s h"
    make = Builder("gpt layer", dims, "attention")
    make.input = make.tensor("layer input", rows)

    def linear(name: str, x: str, out: str, shape: str, weight: str, bias: str, keep: str | None = None) -> str:
        low = "r" if name in adapters else None
        return make.linear(name, x, out, shape, weight, bias, frozen=frozen, rank=low, keep=keep)

    def gathered(number: int, x: str) -> str:
        return make.copy(f"gather{number}", x, f"{x}, gathered", "b s h") if sequence_parallel else x

    def scattered(number: int, x: str) -> str:
        return make.copy(f"scatter{number}", x, f"{x}, scattered", rows) if sequence_parallel else x

    n1 = make.layernorm("ln1", make.input, "LN1 output", statistics=statistics, frozen=frozen)
    full = gathered(1, n1)
    rowwise = {} if attention == "fused" else {"Q": "Q rows", "K": "K rows", "V": "V rows"}
    q, k, v = (
        linear(f"{x.lower()}_proj", full, rowwise.get(x, x), "b s h/t", "h h/t", "h/t", keep=n1)
        for x in ("Q", "K", "V")
    )
    context = _attend(make, attention, q, k, v, dropout=dropout, softmax="bf16")
    out = scattered(1, linear("proj", context, "projection", "b s h", "h/t h", "h"))
    if dropout:
        out = make.dropout("dropout1", out, "dropped projection")
    middle = make.add("add1", make.input, out, "middle")

    make.part = "mlp"
    n2 = make.layernorm("ln2", middle, "LN2 output", statistics=statistics, frozen=frozen)
    u = linear("fc1", gathered(2, n2), "fc1 output", f"b s {wide}/t", f"h {wide}/t", f"{wide}/t", keep=n2)
    g = make.pointwise("gelu", "gelu", u, "GeLU output")
    out = scattered(2, linear("fc2", g, "fc2 output", "b s h", f"{wide}/t h", "h"))
    if dropout:
        out = make.dropout("dropout2", out, "dropped MLP output")
    layer = make.block(make.add("add2", middle, out, "layer output"))
    return _with_recomputation(layer, recompute)


def llama_layer(
    s: int,
    b: int,
    h: int,
    a: int,
    *,
    f: int,
    kv: int | None = None,
    attention: str = "fused",
    recompute: str = "none",
    swiglu: str = "eager",
    norm: str = "fused",
    softmax: str = "bf16",
    rotary: bool = True,
    t: int = 1,
    frozen: bool = False,
    adapters: Collection[str] = (),
    rank: int = 16,
) -> Block:
    """One Llama-style layer: RMSNorm, rotary positions, ``kv`` key/value heads, a SwiGLU MLP of width ``f``; no biases.

    ``norm`` is ``"fused"``, ``"by hand"`` or ``"composite"`` (`Builder.rmsnorm` says what each keeps). ``swiglu`` is
    ``"eager"`` (four f-wide tensors kept) or ``"fused"`` (three). ``softmax`` is the format of an eager softmax:
    ``"bf16"``, or ``"fp32"`` with a bf16 copy. The rest is as in `gpt_layer`.

    With g = a/kv the lists give sbh(12 + 4/g + 8f/h) eager and 6f/h in place of 8f/h fused; 2as²b more without fused
    attention (6as²b with an fp32 softmax).

    >>> layer = llama_layer(s=4096, b=1, h=4096, a=32, f=11008)
    >>> layer.kept_bytes / layer.sbh
    37.5
    """
    _check_attention(attention, recompute)
    if swiglu not in ("eager", "fused"):
        raise ValueError(f"swiglu is 'eager' or 'fused', not {swiglu!r}")
    dims = _dims(s, b, h, a, kv=a if kv is None else kv, f=f, t=t, rank=rank)
    _check_names(adapters, LLAMA_WEIGHTS, frozen)
    make = Builder("llama layer", dims, "attention")
    make.input = make.tensor("layer input", "b s h")

    def linear(name: str, x: str, out: str, shape: str, weight: str) -> str:
        return make.linear(name, x, out, shape, weight, None, frozen=frozen, rank="r" if name in adapters else None)

    n1 = make.rmsnorm("norm1", make.input, "norm1 output", norm=norm, frozen=frozen)
    late = "" if attention == "fused" and not rotary else " rows"  # what the projection makes is not what is kept
    q = linear("q_proj", n1, "Q" + late, "b s h/t", "h h/t")
    k = linear("k_proj", n1, "K" + late, "b s hkv/t", "h hkv/t")
    v = linear("v_proj", n1, "V" if attention == "fused" else "V rows", "b s hkv/t", "h hkv/t")
    if rotary:
        cos, sin = (make.tensor(f"rotary {x}", "s d", extra=True, part="model") for x in ("cosines", "sines"))
        for x in ("Q", "K"):
            y = make.tensor(x if attention == "fused" else f"{x} rotated", "b s h/t" if x == "Q" else "b s hkv/t")
            keeps = {"product1.right": cos, "product2.right": sin}
            make.operation(f"rotary_{x.lower()}", "rotary", (q if x == "Q" else k,), (y,), keeps)
            q, k = (y, k) if x == "Q" else (q, y)
    context = _attend(make, attention, q, k, v, dropout=False, softmax=softmax)
    out = linear("proj", context, "projection", "b s h", "h/t h")
    middle = make.add("add1", make.input, out, "middle")

    make.part = "mlp"
    n2 = make.rmsnorm("norm2", middle, "norm2 output", norm=norm, frozen=frozen)
    gate = linear("gate", n2, "gate output", "b s f/t", "h f/t")
    up = linear("up", n2, "up output", "b s f/t", "h f/t")
    if swiglu == "fused":
        inner = make.swiglu("swiglu", gate, up, "SwiGLU output")
    else:
        inner = make.product(
            "gated", make.pointwise("silu", "silu", gate, "SiLU output"), up, "SwiGLU output", "b s f/t"
        )
    out = linear("down", inner, "MLP output", "b s h", "f/t h")
    layer = make.block(make.add("add2", middle, out, "layer output"))
    return _with_recomputation(layer, recompute)


def linear_layer(n: int, d_in: int, d_out: int) -> Block:
    """One linear layer without a bias on ``n`` tokens: the smallest block. It keeps its input, 2·n·d_in bytes.

    >>> layer = linear_layer(n=4096, d_in=1024, d_out=1024)
    >>> layer.kept_bytes, 16 * layer.parameters
    (8388608, 16777216)
    """
    make = Builder("linear layer", {"n": n, "i": d_in, "o": d_out})
    make.input = make.tensor("layer input", "n i")
    return make.block(make.linear("linear", make.input, "layer output", "n o", "i o", None))


def trainer_layer(s: int, b: int, h: int, a: int, *, f: int | None = None) -> Block:
    """A GPT layer without dropout in a plain trainer that keeps the result of every operation; f is 2h by default.

    Counted in values it keeps 16 sh + 2as² a sequence and two deviations per token: 2,320 at s = 8, h = 16, a = 2
    (where as² = sh, so that this is 18 sh + 2s).
    """
    dims = _dims(s, b, h, a, kv=a, f=2 * h if f is None else f, t=1, rank=1)
    wide = "2h" if dims["f"] == 2 * h else "f"
    make = Builder("trainer layer", dims, "attention")
    make.input = make.tensor("layer input", "b s h")

    def result(name: str, kind: str, reads: tuple[str, ...], out: str, shape: str = "b s h") -> str:
        made = make.tensor(out, shape)
        return make.operation(name, kind, reads, (made,), {"output": made})

    def norm(name: str, x: str) -> str:
        rstd = make.tensor(f"{name} deviation", "b s 1")
        unit = make.tensor(f"{name} normalised", "b s h")
        make.operation(name, "layernorm", (x,), (unit, rstd), {"output": unit, "rstd": rstd})
        return result(f"{name}_scale", "product", (unit,), f"{name} output")

    x = make.input
    n1 = norm("ln1", x)
    q, k, v = (result(f"{y.lower()}_proj", "linear", (n1,), y) for y in ("Q", "K", "V"))
    make.part = "core"
    p = result("scores", "product", (q, k), "scores", "b a s s")
    p = result("softmax", "softmax", (p,), "attention weights", "b a s s")
    make.part = "attention"
    out = result("proj", "linear", (result("weighted", "product", (p, v), "context"),), "projection")
    middle = result("add1", "add", (x, out), "middle")
    make.part = "mlp"
    u = result("fc1", "linear", (norm("ln2", middle),), "fc1 output", f"b s {wide}")
    out = result("fc2", "linear", (result("gelu", "gelu", (u,), "GeLU output", f"b s {wide}"),), "fc2 output")
    return make.block(result("add2", "add", (middle, out), "layer output"))


def embedding(
    s: int, b: int, h: int, V: int, *, t: int = 1, positions: int = 0, sequence_parallel: bool = False
) -> Block:
    """The token embedding (rows split over ``t``), and ``positions`` learned positions added to it."""
    make = Builder("embedding", {"s": s, "b": b, "h": h, "V": V, "t": t, "P": positions, "a": 1})
    make.tensor("token indices", "b s", "int64", extra=True)
    rows = "b s/t h" if sequence_parallel else "b s h"
    x = make.tensor("token vectors", rows)
    make.operation(
        "embed", "embedding", (), (x,), {"indices": "token indices"}, (make.matrix("embed.weight", "V/t h"),), ()
    )
    if positions:
        make.tensor("position indices", "s", "int64", extra=True)
        place = make.tensor("position vectors", rows.removeprefix("b "))
        table = (make.matrix("positions.weight", "P h"),)
        make.operation("positions", "embedding", (), (place,), {"indices": "position indices"}, table, ())
        x = make.operation("add", "add", (x, place), (make.tensor("embedding output", rows),), alias=True)
    return make.block(x)


def head(
    s: int,
    b: int,
    h: int,
    V: int,
    *,
    loss: str = "fp32",
    norm: str = "layernorm",
    tied: bool = False,
    t: int = 1,
    sequence_parallel: bool = False,
    referenced: bool = False,
    statistics: str = "fp32",
) -> Block:
    """The final norm, the output layer and the cross-entropy loss.

    ``loss`` says where the logits become fp32: ``"fp32"`` (converted by hand before the loss), ``"autocast"`` (the
    loss converts them itself) or ``"bf16"`` (never). ``referenced`` says that the program still holds the logits that
    the model returned: the fp32 ones under ``"fp32"``, the bf16 ones otherwise. ``norm`` is ``"layernorm"`` or one of
    the RMSNorms. ``tied`` uses the embedding's matrix, so there is no second one.

    Per logit, kept at the end of the forward pass and at the peak: 4 and 12 bytes in fp32 and under autocast (16 and 14
    when referenced), 2 and 6 in bf16.
    """
    if loss not in ("fp32", "autocast", "bf16"):
        raise ValueError(f"loss is 'fp32', 'autocast' or 'bf16', not {loss!r}")
    make = Builder("head", {"s": s, "b": b, "h": h, "V": V, "t": t, "a": 1}, "head")
    rows = "b s/t h" if sequence_parallel else "b s h"
    make.input = make.tensor("head input", rows)
    if referenced:  # standing first, it is let go last
        make.operation("program", "held", (), (), {"logits": "logits in fp32" if loss == "fp32" else "logits"})
    if norm == "layernorm":
        n = make.layernorm("final_norm", make.input, "final norm output", statistics=statistics)
    else:
        n = make.rmsnorm("final_norm", make.input, "final norm output", norm=norm)
    full = make.copy("gather", n, "final norm output, gathered", "b s h") if sequence_parallel else n
    make.part = "logits"
    logits = make.tensor("logits", "b s V/t")
    if tied:
        weight = {"shared": (make.matrix("embed.weight", "V/t h"),)}
    else:
        weight = {"matrices": (make.matrix("head.weight", "h V/t"),)}
    make.operation("head", "linear", (full,), (logits,), {"input": n}, **weight)
    if loss != "bf16":
        logits = make.copy("to_fp32", logits, "logits in fp32", format="fp32")
    format = "bf16" if loss == "bf16" else "fp32"
    y = make.tensor("log-probabilities", "b s V/t", format)
    make.operation("log_softmax", "log-softmax", (logits,), (y,), {"output": y})
    make.tensor("targets", "b s", "int64", extra=True)
    number = make.tensor("loss", "1", format, extra=True)
    total = make.tensor("number of targets", "1", format, extra=True)
    keeps = {"input": y, "target": "targets", "total_weight": total}
    make.operation("nll", "nll", (y,), (number, total), keeps)
    return make.block("")


def _attend(make: Builder, attention: str, q: str, k: str, v: str, *, dropout: bool, softmax: str) -> str:
    """From Q, K, V to the tensor that the output projection reads."""
    if softmax not in ("bf16", "fp32"):
        raise ValueError(f"softmax is 'bf16' or 'fp32', not {softmax!r}")
    if attention == "fused":
        return make.attention("attention", q, k, v, "context", "b a/t s")
    q = make.copy("q_heads", q, "Q", "b a/t s d")
    # The product gives the gradient of K transposed, which is K's own layout: no copy on the way back.
    k = make.copy("k_heads", k, "K", "b kv/t s d", alias=True)
    v = make.copy("v_heads", v, "V", "b kv/t s d")
    make.part = "core"
    p = make.tensor("scores", "b a/t s s")
    make.operation("scores", "product", (q, k), (p,), {"left": q, "right": k})
    p = make.scale("scale", p, "scaled scores")
    if softmax == "fp32":
        p = make.copy("scores_fp32", p, "scores in fp32", format="fp32")
    p = make.softmax("softmax", p, "attention weights" if softmax == "bf16" else "attention weights in fp32", softmax)
    if softmax == "fp32":
        p = make.copy("weights_bf16", p, "attention weights")
    if dropout:
        p = make.dropout("attention_dropout", p, "dropped attention weights")
    make.part = "attention"
    heads = make.product("weighted", p, v, "context by heads", "b a/t s d")
    return make.copy("merge_heads", heads, "context", "b s h/t")


def _with_recomputation(layer: Block, recompute: str) -> Block:
    if recompute == "full":
        return layer.recompute()
    if recompute == "selective":
        return layer.recompute(op.name for op in layer.operations if op.name in CORE)
    return layer


def _check_attention(attention: str, recompute: str) -> None:
    if attention not in ("eager", "fused"):
        raise ValueError(f"attention is 'eager' or 'fused', not {attention!r}")
    if recompute not in ("none", "selective", "full"):
        raise ValueError(f"recompute is 'none', 'selective' or 'full', not {recompute!r}")
    if recompute == "selective" and attention == "fused":
        raise ValueError("selective recomputation runs the attention core again, and fused attention keeps none of it")


def _check_names(adapters: Collection[str], known: tuple[str, ...], frozen: bool) -> None:
    unknown = sorted(set(adapters) - set(known))
    if unknown:
        raise ValueError(f"no matrix is called {', '.join(unknown)}; adapters go on {', '.join(known)}")
    if adapters and not frozen:
        raise ValueError("adapters stand beside frozen matrices: pass frozen=True too")


def _dims(s: int, b: int, h: int, a: int, *, kv: int, f: int, t: int, rank: int) -> dict[str, int]:
    for name, value in {"s": s, "b": b, "h": h, "a": a, "kv": kv, "f": f, "t": t, "rank": rank}.items():
        if value < 1 or value != int(value):
            raise ValueError(f"{name} is a whole number of at least 1, not {value!r}")
    if h % a:
        raise ValueError(f"{a} heads do not divide a hidden size of {h}")
    if a % kv:
        raise ValueError(f"{kv} key/value heads do not divide {a} heads")
    d = h // a
    return {"s": s, "b": b, "h": h, "a": a, "kv": kv, "d": d, "hkv": kv * d, "f": f, "t": t, "r": rank}
