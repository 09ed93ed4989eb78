"""Models and GPUs by name: one table each, with the source of every row."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trainmem.memory.layers import embedding, gpt_layer, head, llama_layer
from trainmem.memory.operations import Block
from trainmem.memory.tensors import Matrix


@dataclass(frozen=True)
class Model:
    """The shape of a model. ``kv`` are key/value heads, ``positions`` the rows of a learned position table."""

    name: str
    title: str
    style: str
    L: int
    h: int
    a: int
    V: int
    f: int
    kv: int
    tied: bool
    positions: int
    context: int
    source: str

    def layer(self, s: int | None = None, b: int = 1, **options: Any) -> Block:
        """One layer of it at ``s`` tokens (its context by default); options as in `gpt_layer` or `llama_layer`."""
        s = self.context if s is None else s
        if self.style == "gpt":
            return gpt_layer(s, b, self.h, self.a, f=self.f, **options)
        return llama_layer(s, b, self.h, self.a, f=self.f, kv=self.kv, **options)

    def embedding(self, s: int | None = None, b: int = 1, **options: Any) -> Block:
        """Its embedding."""
        s = self.context if s is None else s
        return embedding(s, b, self.h, self.V, positions=self.positions, **options)

    def head(self, s: int | None = None, b: int = 1, **options: Any) -> Block:
        """Its final norm, output layer and loss."""
        options.setdefault("norm", "layernorm" if self.style == "gpt" else "fused")
        return head(self.context if s is None else s, b, self.h, self.V, tied=self.tied, **options)

    @cached_property
    def matrices(self) -> tuple[Matrix, ...]:
        """Every parameter array outside the layers, and those of one layer L times over."""
        return (*self.embedding(1).matrices, *self.layer(1).matrices * self.L, *self.head(1).matrices)

    @cached_property
    def parameters(self) -> int:
        """Ψ: the sum over ``matrices``."""
        return sum(matrix.elements for matrix in self.matrices)


@dataclass(frozen=True)
class Gpu:
    """A GPU and its memory in bytes, by its data sheet's GB (10⁹)."""

    name: str
    title: str
    memory_bytes: int
    source: str


def _gpt(name: str, title: str, L: int, h: int, a: int, positions: int, context: int, source: str) -> Model:
    return Model(name, title, "gpt", L, h, a, 50257, 4 * h, a, True, positions, context, source)


def _llama(name: str, title: str, L: int, h: int, a: int, kv: int, f: int, V: int, context: int, source: str) -> Model:
    return Model(name, title, "llama", L, h, a, V, f, kv, False, 0, context, source)


_GPT2 = "Radford et al. 2019, table 2; released configurations (V = 50257, 1024 learned positions, tied)"
_LLAMA1 = "Touvron et al. 2023 (LLaMA), table 2; f from the released weights"
_LLAMA2 = "Touvron et al. 2023 (Llama 2), table 1 and appendix A.2; f from the released weights"
_LLAMA3 = "Llama Team 2024 (Llama 3), table 3; context of the first release"

MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        _gpt("gpt2-124m", "GPT-2 124M", 12, 768, 12, 1024, 1024, _GPT2),
        _gpt("gpt2-355m", "GPT-2 355M", 24, 1024, 16, 1024, 1024, _GPT2),
        _gpt("gpt2-774m", "GPT-2 774M", 36, 1280, 20, 1024, 1024, _GPT2),
        _gpt("gpt2-1.5b", "GPT-2 1.5B", 48, 1600, 25, 1024, 1024, _GPT2),
        _gpt("1.3b", "the 1.3B example", 24, 2048, 16, 0, 2048, "the lesson's worked example: rotary positions, tied"),
        _gpt("gpt3-175b", "GPT-3 175B", 96, 12288, 96, 2048, 2048, "Brown et al. 2020, table 2.1"),
        _llama("llama-7b", "LLaMA 7B", 32, 4096, 32, 32, 11008, 32000, 2048, _LLAMA1),
        _llama("llama2-7b", "Llama 2 7B", 32, 4096, 32, 32, 11008, 32000, 4096, _LLAMA2),
        _llama("llama2-13b", "Llama 2 13B", 40, 5120, 40, 40, 13824, 32000, 4096, _LLAMA2),
        _llama("llama2-70b", "Llama 2 70B", 80, 8192, 64, 8, 28672, 32000, 4096, _LLAMA2),
        _llama("llama3-8b", "Llama 3 8B", 32, 4096, 32, 8, 14336, 128256, 8192, _LLAMA3),
        _llama("llama3-70b", "Llama 3 70B", 80, 8192, 64, 8, 28672, 128256, 8192, _LLAMA3),
    )
}

GPUS: dict[str, Gpu] = {
    gpu.name: gpu
    for gpu in (
        Gpu("t4", "T4", 16 * 10**9, "NVIDIA T4 data sheet: 16 GB GDDR6"),
        Gpu("rtx4090", "RTX 4090", 24 * 10**9, "NVIDIA GeForce RTX 4090 specifications: 24 GB GDDR6X"),
        Gpu("a100-40", "A100 40 GB", 40 * 10**9, "NVIDIA A100 data sheet: 40 GB HBM2"),
        Gpu("a100-80", "A100 80 GB", 80 * 10**9, "NVIDIA A100 data sheet: 80 GB HBM2e"),
        Gpu("h100", "H100 SXM", 80 * 10**9, "NVIDIA H100 data sheet: 80 GB HBM3"),
        Gpu("h200", "H200", 141 * 10**9, "NVIDIA H200 data sheet: 141 GB HBM3e"),
        Gpu("b200", "B200", 180 * 10**9, "NVIDIA HGX B200 data sheet: 1,440 GB HBM3e for 8 GPUs"),
    )
}
