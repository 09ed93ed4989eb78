"""The quantities that the lesson and its questions speak of, each computed by the course's functions.

Bytes are bytes; divide by `GB` (10⁹), `MB` (10⁶) or `GIB` (2³⁰) where a text shows them.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from trainmem.memory import (
    CATEGORIES,
    GPUS,
    MODELS,
    Block,
    Model,
    Step,
    Timeline,
    calculator_step,
    gpt_layer,
    head,
    linear_layer,
    llama_layer,
    lora_parameters,
    model_states,
    model_step,
    recomputation_cost,
    recomputed_flops,
    stage_kept,
    trainer_layer,
)
from trainmem.memory import forward_flops as forward_flops
from trainmem.memory.layers import MODES
from trainmem_solutions import activation_bytes, best_k, cheapest_fix, gpus_for_states, memory_timeline, peak_bytes

KB, MB, GB = 10**3, 10**6, 10**9
MIB, GIB = 2**20, 2**30


def states_bytes(parameters: float, recipe: str = "mixed", **options: float) -> float:
    """Model states of one GPU in bytes; options as in `model_states`."""
    return sum(line.nbytes for line in model_states(parameters, recipe, **options))


@dataclass(frozen=True)
class Run:
    """A GPT model trained at ``s`` tokens and ``b`` sequences on one GPU, by the lesson's sum."""

    model: Model
    s: int
    b: int

    def layer(self, mode: str = "baseline") -> Block:
        """One layer, as the mode keeps it."""
        return self.model.layer(self.s, self.b, **MODES[mode])

    @property
    def states(self) -> float:
        """16 bytes a parameter."""
        return states_bytes(self.model.parameters)

    def activations(self, mode: str = "baseline") -> int:
        """What all layers keep; under "full" with the one layer that is rebuilt."""
        rebuilt = self.layer("flash").kept_bytes if mode == "full" else 0
        return self.model.L * self.layer(mode).kept_bytes + rebuilt

    @property
    def logits(self) -> int:
        """What the loss keeps of the logits at the end of the forward pass: 4 bytes each."""
        return sum(tensor.nbytes for tensor in self.model.head(self.s, self.b).kept if tensor.part == "logits")

    def total(self, mode: str = "baseline") -> float:
        """States, activations and logits."""
        return self.states + self.activations(mode) + self.logits

    def at(self, b: int) -> "Run":
        """The same with another micro-batch."""
        return Run(self.model, self.s, b)

    def per_sequence(self, mode: str) -> int:
        """Bytes of activations and logits that each sequence of the micro-batch adds."""
        return self.at(1).activations(mode) + self.at(1).logits

    def largest_micro_batch(self, mode: str, gpu_bytes: float = 80 * GB, free: float = 0.15) -> int:
        """The most sequences that fit."""
        return int(((1 - free) * gpu_bytes - self.states) // self.per_sequence(mode))

    def zero2_total(self, n_gpus: int, mode: str = "flash") -> float:
        """The same sum with ZeRO-2 over ``n_gpus``."""
        states = states_bytes(self.model.parameters, zero=2, n_gpus=n_gpus)
        return states + self.activations(mode) + self.logits

    def fix(self, gpu_bytes: float = 80 * GB, **options: float) -> tuple[str | None, float]:
        """The lesson's ladder on it."""
        m = self.model
        return cheapest_fix(m.parameters, m.L, self.s, self.b, m.h, m.a, m.V, gpu_bytes, **options)


#: The lesson's worked example.
example = Run(MODELS["1.3b"], s=2048, b=8)
example_layer = example.layer()
gpt3_layer = gpt_layer(2048, 1, 12288, 96)
llama7 = MODELS["llama-7b"]


def example_step(attention: str) -> Timeline:
    """The exact step of the worked example, with attention "eager" or "fused"."""
    return model_step(example.model, example.s, example.b, attention=attention).timeline()


def exact_peak(b: int, recompute: str = "none") -> float:
    """The exact peak of the worked example with FlashAttention, in bytes, at another micro-batch."""
    return model_step(example.model, example.s, b, attention="fused", recompute=recompute).timeline().peak_bytes


def exact_micro_batch(recompute: str = "none", gpu_bytes: float = 80 * GB, free: float = 0.15) -> int:
    """The most sequences for which that peak fits."""
    return next(b for b in range(example.largest_micro_batch("full"), 0, -1) if fits(b, recompute, gpu_bytes, free))


def fits(b: int, recompute: str, gpu_bytes: float, free: float) -> bool:
    """Whether that peak leaves so much free."""
    return exact_peak(b, recompute) <= (1 - free) * gpu_bytes


def sbh(block: Block) -> float:
    """What a block keeps, in units of sbh."""
    return block.kept_bytes / block.sbh


def coefficients(**options: object) -> tuple[int, int]:
    """(x, y) such that a GPT layer keeps x·sbh + y·as²b bytes; options as in `gpt_layer`."""
    layer = gpt_layer(16, 2, 32, 4, **options)
    core = sum(tensor.nbytes for tensor in layer.kept if tensor.part == "core")
    return (layer.kept_bytes - core) // layer.sbh, core // layer.as2b


def unsplit_sbh() -> float:
    """What tensor parallelism alone leaves whole on every GPU, in sbh: u of u + v/t, from t = 1 and 2."""
    one, two = (sbh(gpt_layer(16, 1, 32, 4, attention="fused", t=t)) for t in (1, 2))
    return 2 * two - one


def crossing(h: int, a: int) -> int:
    """The first whole s at which a GPT layer's attention core keeps more than the rest of the layer."""
    linear, core = coefficients()
    return linear * h // (core * a) + 1


def core_share(layer: Block) -> float:
    """The attention core's part of what a layer keeps."""
    return sum(tensor.nbytes for tensor in layer.kept if tensor.part == "core") / layer.kept_bytes


def extra_flops(s: int, h: int, a: int) -> float:
    """Selective recomputation's FLOPs as a part of a training step's."""
    return recomputation_cost(gpt_layer(s, 1, h, a, recompute="selective"))


def full_extra_flops() -> float:
    """Full recomputation's FLOPs as a part of a training step's."""
    return recomputation_cost(gpt_layer(16, 1, 32, 4, attention="fused", recompute="full"))


def M(L: int, k: int, c: float = 2, A: float = 34) -> float:
    """The lesson's formula for the peak with a checkpoint every k layers."""
    return L / k * c + k * A


def simulated_peak(L: int, k: int | None, c: float = 2, A: float = 34) -> float:
    """The peak of the simulated timeline (exercise 4)."""
    return max(memory_timeline(L, c, A, k))


def best_intervals(L: int, c: float = 2, A: float = 34) -> list[int]:
    """Every k whose simulated peak is the lowest."""
    peaks = {k: simulated_peak(L, k, c, A) for k in range(1, L + 1)}
    return [k for k, peak in peaks.items() if peak == min(peaks.values())]


def k_star(L: int, c: float = 2, A: float = 34) -> float:
    """√(Lc/A), where the derivative of M is zero."""
    return sqrt(L * c / A)


def loss_bytes(loss: str = "fp32", referenced: bool = False, at_peak: bool = True) -> float:
    """Bytes per logit: at the loss's peak, or kept at the end of the forward pass."""
    s, b, V = 8, 2, 4096
    block = head(s, b, 16, V, loss=loss, referenced=referenced)
    if not at_peak:
        return sum(tensor.nbytes for tensor in block.kept if tensor.part == "logits") / (s * b * V)
    layer = gpt_layer(s, b, 16, 2, attention="fused")
    timeline = Step(layer, 1, head=block).timeline()
    return timeline.during[:, CATEGORIES.index("logits")].max().item() / (s * b * V)


def calculator_peak(recompute: str) -> float:
    """The equal-units reading of LLaMA 7B at 4,096 tokens with the GPT layer's formula."""
    layer = gpt_layer(4096, 1, llama7.h, llama7.a, recompute=recompute)
    return calculator_step(layer, llama7.L, llama7.parameters, llama7.V).peak_bytes


def calculator_peak_exact_gradients(recompute: str) -> float:
    """The same, each gradient in its own size."""
    layer = gpt_layer(4096, 1, llama7.h, llama7.a, recompute=recompute)
    blocks = (llama7.head(1), *[llama7.layer(1)] * llama7.L, llama7.embedding(1))
    sizes = [2 * block.parameters for block in blocks]
    return calculator_step(layer, llama7.L, llama7.parameters, llama7.V, gradient_sizes=sizes).peak_bytes


def llama_peak(**options: object) -> float:
    """The exact step of LLaMA 7B with its own layer, 4,096 tokens, one sequence."""
    return model_step(llama7, 4096, 1, **options).timeline().peak_bytes


def upper_reading(recompute: str = "none") -> float:
    """Exercise 5's sum for the same shape: states, activations and logits at once."""
    mode = {"none": "baseline", "selective": "selective", "full": "full"}[recompute]
    return peak_bytes(llama7.parameters, llama7.L, 4096, 1, llama7.h, llama7.a, llama7.V, mode)


#: LLaMA 7B's shape by the GPT formula: 4,096 tokens, one sequence.
gpt_formula_7b = gpt_layer(4096, 1, llama7.h, llama7.a)
long_layer = gpt_layer(32768, 1, 4096, 32)
long_flash = gpt_layer(32768, 1, 4096, 32, attention="fused")
toy = linear_layer(n=4096, d_in=1024, d_out=1024)
toy_doubled = linear_layer(n=8192, d_in=1024, d_out=1024)
grid_points = 721 * 1440
small_trainer = sum(int(np.prod(tensor.sizes)) for tensor in trainer_layer(8, 1, 16, 2).kept)
small_formula = gpt_layer(8, 1, 16, 2).kept_bytes / 2

__all__ = [
    "GPUS",
    "activation_bytes",
    "best_k",
    "gpus_for_states",
    "llama_layer",
    "lora_parameters",
    "recomputed_flops",
    "stage_kept",
]
