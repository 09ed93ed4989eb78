"""Live storage over a step: every tensor that dispatch makes, from its birth until its storage is let go.

Counted as a framework counts: bytes of storages, each once. What a kernel takes for itself and gives back is not seen.
"""

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from trainmem.measure.naming import Moment, observed_by


class LiveStorage(TorchDispatchMode):
    """An allocation tracker. ``live_bytes`` is what is held now, ``peak_bytes`` the most, ``peak_moment`` when.

    ``history`` has (moment, bytes held) after each dispatched call.
    """

    def __init__(self) -> None:
        super().__init__()
        self.live_bytes = 0
        self.peak_bytes = 0
        self.peak_moment: Moment | None = None
        self.history: list[tuple[Moment | None, int]] = []
        self._moment: Moment | None = None
        self._seen: dict[int, int] = {}
        self._ignored: set[int] = set()

    def hold(self, tensors: Iterable[torch.Tensor]) -> None:
        """Counts tensors that are there already: parameters, optimizer states."""
        for tensor in tensors:
            self._count(tensor)
        self.restart()

    def ignore(self, tensors: Iterable[torch.Tensor]) -> None:
        """Leaves tensors out of the count: token indices, targets."""
        self._ignored |= {tensor.untyped_storage()._cdata for tensor in tensors}

    def restart(self) -> None:
        """Forgets the peak so far."""
        self.peak_bytes, self.peak_moment, self.history = self.live_bytes, self._moment, []

    def enter(self, moment: Moment) -> None:
        self._moment = moment

    def made(self, moment: Moment, nodes: list[torch.autograd.graph.Node]) -> None:
        """Nothing to do: storage is seen at dispatch."""

    def _count(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._seen or key in self._ignored or not storage.nbytes():
            return
        self._seen[key] = storage.nbytes()
        self.live_bytes += storage.nbytes()
        weakref.finalize(storage, self._gone, key).atexit = False

    def _gone(self, key: int) -> None:
        self.live_bytes -= self._seen.pop(key)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self._count(leaf)
        self.history.append((self._moment, self.live_bytes))
        if self.live_bytes > self.peak_bytes:
            self.peak_bytes, self.peak_moment = self.live_bytes, self._moment
        return result


@contextmanager
def live_storage(held: Iterable[torch.Tensor] = (), ignored: Iterable[torch.Tensor] = ()) -> Iterator[LiveStorage]:
    """Follows all storage made in here, beside what is ``held`` from before.

    >>> import torch
    >>> with live_storage() as live:
    ...     x = torch.zeros(1000)
    ...     del x
    >>> live.peak_bytes, live.live_bytes
    (4000, 0)
    """
    tracker = LiveStorage()
    tracker.ignore(ignored)
    tracker.hold(held)
    with observed_by(tracker), tracker:
        yield tracker
