"""The small models that are measured, written as one would write them; every operation has a name.

Tensors are (b, s, h). Attention inputs are four-dimensional (b, a, s, d): with three dimensions PyTorch's
scaled_dot_product_attention leaves its fused path and keeps more. Dropout is ``native_dropout``, whose mask takes one
byte per element; ``F.dropout`` on a CPU keeps its mask in the format of the activations.
Intermediate names are let go as soon as they are used, so that the only reference left is autograd's.
"""

from collections.abc import Collection
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils import checkpoint as recomputation

from trainmem.measure.naming import Moment, at, inside, op


class GPTLayer(nn.Module):
    """Pre-LN GPT layer; options as in `trainmem.memory.gpt_layer`. With ``t`` > 1 it is one GPU's share of the layer.

    Nothing is sent: the other GPUs' shares are taken to be equal to this one's where a shape needs them.
    """

    def __init__(
        self,
        h: int,
        a: int,
        *,
        f: int | None = None,
        attention: str = "eager",
        recompute: str = "none",
        dropout: float = 0.1,
        t: int = 1,
        sequence_parallel: bool = False,
    ) -> None:
        super().__init__()
        f = 4 * h if f is None else f
        self.d, self.attention, self.recompute, self.p = h // a, attention, recompute, dropout
        self.t, self.sequence_parallel = t, sequence_parallel
        self.ln1, self.ln2 = (nn.LayerNorm(h) for _ in range(2))
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(h, h // t) for _ in range(3))
        self.proj = nn.Linear(h // t, h)
        self.fc1, self.fc2 = nn.Linear(h, f // t), nn.Linear(f // t, h)

    def forward(self, x: Tensor) -> Tensor:
        n = op("ln1", self.ln1, x)
        rows = [self._column(name, n) for name in ("q_proj", "k_proj", "v_proj")]
        del n
        heads = rows[0].shape[-1] // self.d
        y = _attend(self, rows, heads, heads)
        y = self._row("proj", y)
        y = self._drop("dropout1", y)
        x = op("add1", torch.add, x, y)
        del y
        y = self._column("fc1", op("ln2", self.ln2, x))
        y = op("gelu", F.gelu, y)
        y = self._row("fc2", y)
        y = self._drop("dropout2", y)
        return op("add2", torch.add, x, y)

    def _drop(self, name: str, x: Tensor) -> Tensor:
        return op(name, _dropout, x, self.p) if self.p else x

    def _column(self, name: str, x: Tensor) -> Tensor:
        linear = getattr(self, name)
        if self.sequence_parallel:
            return op(name, GatheredLinear.apply, x, linear.weight, linear.bias, self.t)
        return op(name, linear, x)

    def _row(self, name: str, x: Tensor) -> Tensor:
        y = op(name, getattr(self, name), x)
        return y[:, : y.shape[1] // self.t].contiguous() if self.sequence_parallel else y


class LlamaLayer(nn.Module):
    """Llama-style layer; options as in `trainmem.memory.llama_layer`."""

    def __init__(
        self,
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
    ) -> None:
        super().__init__()
        kv = a if kv is None else kv
        self.a, self.kv, self.d, self.p = a, kv, h // a, 0.0
        self.attention, self.recompute, self.softmax, self.rotary = attention, recompute, softmax, rotary
        self.swiglu = swiglu
        self.norm = {"fused": FusedRMSNorm.apply, "by hand": rms_norm_by_hand, "composite": _rms_norm}[norm]
        self.norm1, self.norm2 = nn.Parameter(torch.ones(h)), nn.Parameter(torch.ones(h))
        self.q_proj = nn.Linear(h, h, bias=False)
        self.k_proj, self.v_proj = (nn.Linear(h, kv * self.d, bias=False) for _ in range(2))
        self.proj = nn.Linear(h, h, bias=False)
        self.gate, self.up = (nn.Linear(h, f, bias=False) for _ in range(2))
        self.down = nn.Linear(f, h, bias=False)

    def forward(self, x: Tensor, cosines: Tensor | None = None, sines: Tensor | None = None) -> Tensor:
        n = op("norm1", self.norm, x, self.norm1)
        rows = [op(name, getattr(self, name), n) for name in ("q_proj", "k_proj", "v_proj")]
        del n
        if self.rotary:
            rows[0] = op("rotary_q", rotate, rows[0], cosines, sines)
            rows[1] = op("rotary_k", rotate, rows[1], cosines, sines)
        y = _attend(self, rows, self.a, self.kv)
        y = op("proj", self.proj, y)
        x = op("add1", torch.add, x, y)
        del y
        n = op("norm2", self.norm, x, self.norm2)
        gate, up = op("gate", self.gate, n), op("up", self.up, n)
        del n
        if self.swiglu == "fused":
            y = op("swiglu", FusedSwiGLU.apply, gate, up)
        else:
            y = op("gated", torch.mul, op("silu", F.silu, gate), up)
        del gate, up
        return op("add2", torch.add, x, op("down", self.down, y))


class LoraLinear(nn.Module):
    """A frozen linear layer with an adapter: xW + xAB."""

    def __init__(self, base: nn.Linear, rank: int, name: str) -> None:
        super().__init__()
        self.base, self.name = base, name
        kind = {"bias": False, "dtype": base.weight.dtype}
        self.lora_a = nn.Linear(base.in_features, rank, **kind)
        self.lora_b = nn.Linear(rank, base.out_features, **kind)

    def forward(self, x: Tensor) -> Tensor:
        y = op(self.name, self.base, x)
        change = op(f"{self.name}.lora_b", self.lora_b, op(f"{self.name}.lora_a", self.lora_a, x))
        return op(f"{self.name}.add", torch.add, y, change)


def add_adapters(layer: nn.Module, names: Collection[str], rank: int) -> nn.Module:
    """Freezes a layer and puts a trainable adapter on each of the named matrices."""
    layer.requires_grad_(False)
    for name in names:
        setattr(layer, name, LoraLinear(getattr(layer, name), rank, name))
    return layer


class Transformer(nn.Module):
    """Embedding, ``L`` layers, final LayerNorm, an output matrix of its own, and the loss, all in bf16.

    ``every`` puts a checkpoint at every so many layers. ``loss`` is "bf16", "fp32" or "autocast".
    """

    def __init__(
        self, layers: Collection[nn.Module], h: int, V: int, *, every: int | None = None, loss: str = "fp32"
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(V, h)
        self.layers = nn.ModuleList(layers)
        self.head = Head(h, V, loss=loss)
        self.every = every

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        with inside("embedding"):
            x = op("embed", self.embed, tokens)
        L = len(self.layers)
        if self.every is None:
            x = self._segment(0, L, x)
        else:
            for start in range(0, L, self.every):
                end = min(start + self.every, L)
                x = recomputation.checkpoint(self._segment, start, end, x, use_reentrant=False)
        with inside("head"):
            return self.head(x, targets)

    def _segment(self, start: int, end: int, x: Tensor) -> Tensor:
        for number in range(start, end):
            with inside("layer", number + 1):
                x = self.layers[number](x)
        return x


class Head(nn.Module):
    """Final LayerNorm, output matrix and cross-entropy."""

    def __init__(self, h: int, V: int, *, loss: str = "fp32") -> None:
        super().__init__()
        self.final_norm, self.head, self.loss = nn.LayerNorm(h), nn.Linear(h, V, bias=False), loss

    def forward(self, x: Tensor, targets: Tensor) -> Tensor:
        # One expression from logits to loss: no name may hold a tensor that autograd does not.
        return cross_entropy(op("head", self.head, op("final_norm", self.final_norm, x)), targets, self.loss)


def cross_entropy(logits: Tensor, targets: Tensor, loss: str) -> Tensor:
    """Cross-entropy in bf16, in fp32, or as autocast does it (it converts inside; the tensors are those of fp32)."""
    logits = logits.view(-1, logits.shape[-1])
    if loss != "bf16":
        logits = op("to_fp32", Tensor.float, logits)
    logits = op("log_softmax", F.log_softmax, logits, -1)
    return op("nll", F.nll_loss, logits, targets.view(-1))


class MasterAdam:
    """Mixed-precision Adam, one parameter after the other: bf16 parameters; fp32 master copies and two moments."""

    def __init__(self, parameters: Collection[nn.Parameter], lr: float = 1e-3) -> None:
        self.parameters, self.lr, self.steps = list(parameters), lr, 0
        self.master = [p.detach().float() for p in self.parameters]
        self.first = [torch.zeros_like(p) for p in self.master]
        self.second = [torch.zeros_like(p) for p in self.master]

    @property
    def states(self) -> list[Tensor]:
        """All that it holds."""
        return [*self.master, *self.first, *self.second]

    @torch.no_grad()
    def step(self) -> None:
        """One update; gradients are left in place."""
        self.steps += 1
        step_size = self.lr / (1 - 0.9**self.steps)
        with at(Moment("optimizer", "model", None, "loop")):
            for p, master, first, second in zip(self.parameters, self.master, self.first, self.second, strict=True):
                gradient = p.grad.float()
                first.lerp_(gradient, 0.1)
                second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
                master.addcdiv_(first, second.sqrt().add_(1e-8), value=-step_size)
                p.copy_(master)

    def zero_grad(self) -> None:
        """Lets the gradients go."""
        for p in self.parameters:
            p.grad = None


def _attend(layer: nn.Module, rows: list[Tensor], a: int, kv: int) -> Tensor:
    """Takes Q, K, V out of ``rows``, so that no frame above holds them on."""
    if layer.attention == "fused":
        return op("attention", _fused_attention, rows.pop(0), rows.pop(0), rows.pop(0), a, kv)
    b, s, _ = rows[0].shape
    core, p, softmax = _core, layer.p, getattr(layer, "softmax", "bf16")
    if layer.recompute == "selective":
        core = partial(recomputation.checkpoint, _core, use_reentrant=False)
    heads = (op(f"{name}_heads", _heads, rows.pop(0), n) for name, n in (("q", a), ("k", kv), ("v", kv)))
    return op("merge_heads", _merge, core(next(heads), next(heads), next(heads), p, softmax), b, s)


def _core(q: Tensor, k: Tensor, v: Tensor, p: float, softmax: str) -> Tensor:
    scale = q.shape[-1] ** -0.5
    x = op("scores", _scores, q, k)
    del q, k
    x = op("scale", torch.mul, x, scale)
    if softmax == "fp32":
        x = op("scores_fp32", Tensor.float, x)
    x = op("softmax", F.softmax, x, -1)
    if softmax == "fp32":
        x = op("weights_bf16", Tensor.bfloat16, x)
    if p:
        x = op("attention_dropout", _dropout, x, p)
    return op("weighted", _weighted, x, v)


def _dropout(x: Tensor, p: float) -> Tensor:
    return torch.native_dropout(x, p, True)[0]


def _heads(x: Tensor, n: int) -> Tensor:
    b, s, width = x.shape
    return x.view(b, s, n, width // n).transpose(1, 2).contiguous()


def _scores(q: Tensor, k: Tensor) -> Tensor:
    b, a, s, d = q.shape
    kv = k.shape[1]  # the query heads of one key/value head are stacked, so that K is not repeated
    return torch.bmm(q.view(b * kv, a // kv * s, d), k.view(b * kv, s, d).transpose(1, 2))


def _weighted(p: Tensor, v: Tensor) -> Tensor:
    return torch.bmm(p, v.flatten(0, 1))


def _merge(x: Tensor, b: int, s: int) -> Tensor:
    return x.view(b, -1, s, x.shape[-1]).transpose(1, 2).reshape(b, s, -1)


def _fused_attention(q: Tensor, k: Tensor, v: Tensor, a: int, kv: int) -> Tensor:
    b, s, h = q.shape
    q, k, v = (x.view(b, s, n, h // a).transpose(1, 2) for x, n in ((q, a), (k, kv), (v, kv)))
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=kv != a).transpose(1, 2).reshape(b, s, h)


def rotate(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Rotary positions on (b, s, n·d); the tables are (s, d)."""
    b, s, width = x.shape
    d = cosines.shape[-1]
    x = x.view(b, s, width // d, d)
    left, right = x.chunk(2, -1)
    y = x * cosines[:, None] + torch.cat((-right, left), -1) * sines[:, None]
    return y.view(b, s, width)


def _rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    return F.rms_norm(x, weight.shape, weight)


def rms_norm_by_hand(x: Tensor, weight: Tensor) -> Tensor:
    """As many models write it: normalised in fp32, converted back, scaled."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * weight


class FusedRMSNorm(torch.autograd.Function):
    """What a fused kernel keeps: the input as it is, and one fp32 number per row."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor) -> Tensor:  # noqa: ANN001
        wide = x.float()
        rstd = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        ctx.save_for_backward(x, rstd, weight)
        return (wide * rstd * weight).to(x.dtype)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ANN001
        x, rstd, weight = ctx.saved_tensors
        unit = x.float() * rstd
        wide = gradient.float()
        inner = wide * weight
        gx = rstd * (inner - unit * (inner * unit).mean(-1, keepdim=True))
        return gx.to(x.dtype), (wide * unit).flatten(0, -2).sum(0).to(weight.dtype)


class FusedSwiGLU(torch.autograd.Function):
    """What a fused kernel keeps: gate and up; SiLU is worked out again."""

    @staticmethod
    def forward(ctx, gate: Tensor, up: Tensor) -> Tensor:  # noqa: ANN001
        ctx.save_for_backward(gate, up)
        return F.silu(gate) * up

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ANN001
        gate, up = ctx.saved_tensors
        s = torch.sigmoid(gate)
        return gradient * up * s * (1 + gate * (1 - s)), gradient * gate * s


class GatheredLinear(torch.autograd.Function):
    """A column-parallel linear layer under sequence parallelism: gathers the rows of all GPUs, keeps its own alone."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor, t: int) -> Tensor:  # noqa: ANN001
        ctx.save_for_backward(x, weight)
        ctx.t = t
        return F.linear(torch.cat([x] * t, 1), weight, bias)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:  # noqa: ANN001
        x, weight = ctx.saved_tensors
        gathered = torch.cat([x] * ctx.t, 1).flatten(0, 1)
        flat = gradient.flatten(0, 1)
        gx = (gradient @ weight).view(x.shape[0], ctx.t, *x.shape[1:]).sum(1)
        return gx, flat.T @ gathered, flat.sum(0), None
