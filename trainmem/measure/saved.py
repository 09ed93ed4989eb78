"""What autograd keeps: the tensors saved for the backward pass, counted by storage, named by operation and role."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from trainmem.measure.naming import Moment, observed_by

#: (kind of graph node, attribute) → the role that the lists of trainmem.memory use.
ROLES = {
    ("Addmm", "mat1"): "input",
    ("Mm", "self"): "input",
    ("NativeLayerNorm", "input"): "input",
    ("NativeLayerNorm", "result1"): "mean",
    ("NativeLayerNorm", "result2"): "rstd",
    ("NativeDropout", "result1"): "mask",
    ("Gelu", "self"): "input",
    ("Silu", "self"): "input",
    ("Softmax", "result"): "output",
    ("LogSoftmax", "result"): "output",
    ("Bmm", "self"): "left",
    ("Bmm", "mat2"): "right",
    ("Mul", "self"): "left",
    ("Mul", "other"): "right",
    ("Pow", "self"): "input",
    ("Rsqrt", "result"): "output",
    ("NllLoss", "self"): "input",
    ("NllLoss", "target"): "target",
    ("NllLoss", "total_weight"): "total_weight",
    ("Embedding", "indices"): "indices",
    ("ScaledDotProductFlashAttentionForCpu", "query"): "query",
    ("ScaledDotProductFlashAttentionForCpu", "key"): "key",
    ("ScaledDotProductFlashAttentionForCpu", "value"): "value",
    ("ScaledDotProductFlashAttentionForCpu", "output"): "output",
    ("ScaledDotProductFlashAttentionForCpu", "logsumexp"): "logsumexp",
    ("FusedRMSNorm", "0"): "input",
    ("FusedRMSNorm", "1"): "rstd",
    ("FusedSwiGLU", "0"): "gate",
    ("FusedSwiGLU", "1"): "up",
    ("GatheredLinear", "0"): "input",
}

#: An operation that consists of several nodes says which one holds a tensor: "product2.left".
_STEPS = {"Mul": "product", "Pow": "square", "Rsqrt": "rsqrt"}


@dataclass
class SavedStorage:
    """One storage that the backward pass needs: its bytes, and every place that holds it, as ``operation.role``."""

    nbytes: int
    places: list[str] = field(default_factory=list)
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    dtypes: list[torch.dtype] = field(default_factory=list)


class SavedTensors:
    """Filled by `saved_tensors`: ``storages`` without those of parameters and other tensors named as known."""

    def __init__(self, known: Iterable[torch.Tensor]) -> None:
        self._known = {x.untyped_storage()._cdata for x in known}
        self._by_storage: dict[int, SavedStorage] = {}
        self._alive: list[torch.UntypedStorage] = []  # an address must not be used twice while we count

    @property
    def storages(self) -> list[SavedStorage]:
        """In the order in which they were first saved."""
        return list(self._by_storage.values())

    @property
    def nbytes(self) -> int:
        """Their sum."""
        return sum(storage.nbytes for storage in self.storages)

    def pack(self, tensor: torch.Tensor) -> "_Packed":
        storage = tensor.untyped_storage()
        if storage.nbytes() and storage._cdata not in self._known:
            if storage._cdata not in self._by_storage:
                self._by_storage[storage._cdata] = SavedStorage(storage.nbytes())
                self._alive.append(storage)
            record = self._by_storage[storage._cdata]
            record.shapes.append(tuple(tensor.shape))
            record.dtypes.append(tensor.dtype)
        return _Packed(tensor)

    def enter(self, moment: Moment) -> None:
        """Nothing to do: places are named when an operation is over."""

    def made(self, moment: Moment, nodes: list[torch.autograd.graph.Node]) -> None:
        held = [(node, attribute, packed) for node in nodes for attribute, packed in _held(node)]
        held = [x for x in held if x[2].tensor.untyped_storage()._cdata in self._by_storage]
        several = len({id(node) for node, _, _ in held}) > 1
        count: Counter[str] = Counter()
        numbers: dict[int, str] = {}
        for node, _, _ in held:
            if id(node) not in numbers:
                step = _STEPS.get(_kind(node), _kind(node).lower())
                count[step] += 1
                numbers[id(node)] = f"{step}{count[step]}." if step == "product" else f"{step}."
        for node, attribute, packed in held:
            role = ROLES.get((_kind(node), attribute), f"{_kind(node)}.{attribute}")
            place = f"{moment.operation}.{numbers[id(node)] if several else ''}{role}"
            record = self._by_storage[packed.tensor.untyped_storage()._cdata]
            if place not in record.places:
                record.places.append(place)

    def name_rest(self, place: str) -> None:
        """Names what no graph node of a named operation holds (a checkpoint's inputs)."""
        for record in self.storages:
            if not record.places:
                record.places.append(place)


@dataclass
class _Packed:
    tensor: torch.Tensor


def _kind(node: torch.autograd.graph.Node) -> str:
    return node.name().rsplit(".", 1)[-1].rstrip("0123456789").removesuffix("Backward")


def _held(node: torch.autograd.graph.Node) -> Iterator[tuple[str, _Packed]]:
    """(attribute, what our hook returned) for the tensors that a node holds; recomputed ones are passed over."""
    for attribute in dir(node):
        if attribute.startswith("_raw_saved_") and attribute != "_raw_saved_tensors":
            raw = getattr(node, attribute)
            if isinstance(raw, torch._C._autograd.SavedTensor) and isinstance(_data(raw), _Packed):
                yield attribute.removeprefix("_raw_saved_"), _data(raw)
    for number, raw in enumerate(getattr(node, "_raw_saved_tensors", None) or ()):
        if isinstance(_data(raw), _Packed):
            yield str(number), _data(raw)


def _data(raw: torch._C._autograd.SavedTensor) -> object:
    try:
        return raw.data
    except RuntimeError:  # nothing saved, or no hook on it
        return None


@contextmanager
def saved_tensors(known: Iterable[torch.Tensor] = ()) -> Iterator[SavedTensors]:
    """Counts what autograd saves in here, without the ``known`` tensors (pass a model's parameters).

    >>> import torch
    >>> x = torch.ones(4, 8, requires_grad=True)
    >>> with saved_tensors() as saved:
    ...     y = torch.softmax(x, -1)
    >>> saved.nbytes
    128
    """
    record = SavedTensors(known)
    with torch.autograd.graph.saved_tensors_hooks(record.pack, lambda packed: packed.tensor), observed_by(record):
        yield record
    record.name_rest("checkpoint.input")
