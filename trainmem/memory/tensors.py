"""A tensor as data: its name, its shape as an expression and in numbers, its format, and who needs it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

#: Bytes of one element. A dropout mask is a bool tensor: one byte, not one bit.
FORMAT_BYTES = {"bf16": 2, "fp32": 4, "mask": 1, "int64": 8}

_DIMENSION = re.compile(r"(\d*)([A-Za-z]*)(?:/([A-Za-z]+))?$")


def size_of(dimension: str, dims: Mapping[str, int]) -> int:
    """The number that one dimension of a shape expression stands for.

    ``dimension`` is an optional whole factor, a symbol and an optional divisor: ``"s"``, ``"4h"``, ``"h/t"``, ``"1"``.

    >>> size_of("4h/t", {"h": 1024, "t": 8})
    512

    Raises ``ValueError`` for an unknown symbol, and where the divisor does not divide: a head or a row cannot be cut.
    """
    match = _DIMENSION.match(dimension)
    if not dimension or match is None:
        raise ValueError(
            f"{dimension!r} is no dimension: write a factor, a symbol and a divisor, as in 's', '4h', 'h/t'"
        )
    factor, symbol, divisor = match.groups()
    unknown = {name for name in (symbol, divisor) if name} - set(dims)
    if unknown:
        raise ValueError(
            f"{dimension!r} uses {', '.join(sorted(unknown))}, but only {', '.join(sorted(dims))} are known"
        )
    whole = int(factor or 1) * (dims[symbol] if symbol else 1)
    by = dims[divisor] if divisor else 1
    if whole % by:
        raise ValueError(f"{dimension}: {whole} does not divide by {divisor} = {by}; choose sizes that do")
    return whole // by


@dataclass(frozen=True)
class Tensor:
    """One tensor of a training step.

    ``shape`` is the expression (``("b", "a", "s", "s")``) and ``sizes`` the same in numbers. ``part`` says which part
    of the layer it belongs to: ``attention``, ``core`` (the part that grows with s²), ``mlp``, ``logits`` or ``model``.
    ``extra`` marks what the usual formulas leave out on purpose: norm statistics, the log-sum-exp, token indices.
    ``needed_by`` names the places that hold it for the backward pass, each as ``operation.role``
    (``"softmax.output"``); a tensor that several operations need is still one tensor.
    """

    name: str
    shape: tuple[str, ...]
    sizes: tuple[int, ...]
    format: str
    part: str
    extra: bool = False
    needed_by: tuple[str, ...] = ()

    @property
    def elements(self) -> int:
        """How many numbers it holds."""
        return prod(self.sizes)

    @property
    def nbytes(self) -> int:
        """Bytes: elements times the bytes of one in this format."""
        return self.elements * FORMAT_BYTES[self.format]

    @property
    def kept_by(self) -> str:
        """The operation that keeps it first, in the order of the forward pass (empty when nothing keeps it)."""
        return self.needed_by[0].rsplit(".", 1)[0] if self.needed_by else ""

    @property
    def expression(self) -> str:
        """Its bytes as an expression: ``"2·b·a·s·s"``."""
        return "·".join([str(FORMAT_BYTES[self.format]), *(d for d in self.shape if d != "1")])


@dataclass(frozen=True)
class Matrix:
    """One parameter array: a weight matrix, a bias or a norm's vector. ``kind`` is ``weight``, ``bias`` or ``norm``.

    A ``frozen`` one gets no gradient and no optimizer state.
    """

    name: str
    shape: tuple[str, ...]
    sizes: tuple[int, ...]
    kind: str
    frozen: bool = False

    @property
    def elements(self) -> int:
        """How many parameters it holds."""
        return prod(self.sizes)
