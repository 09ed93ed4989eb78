"""The device that a measurement runs on: a CUDA GPU, or the CPU with its live storage counted, behind one interface."""

import platform
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from trainmem.measure import cuda
from trainmem.measure.live import LiveStorage
from trainmem.measure.naming import Moment, observed_by
from trainmem.measure.quantities import size

#: On the CPU a card of this many bytes is played, so that something does not fit there too.
PLAYED_CARD_BYTES = 12_000_000


class Meter(Protocol):
    """Counts bytes while it is entered, and is told of operations."""

    source: str
    peak_bytes: int
    peak_moment: Moment | None
    history: list[tuple[Moment | None, int]]
    details: dict[str, int]

    @property
    def live_bytes(self) -> int:
        """Held now."""

    def hold(self, tensors: Iterable[torch.Tensor]) -> None:
        """These are there already and count; the peak starts afresh."""

    def ignore(self, tensors: Iterable[torch.Tensor]) -> None:
        """These do not count."""

    def restart(self) -> None:
        """Forgets the peak so far."""


class Clock(Protocol):
    """Times between marks."""

    def mark(self) -> None:
        """Now."""

    def laps(self) -> list[float]:
        """Seconds from each mark to the next."""


class CappedLiveStorage(LiveStorage):
    """Live storage on the CPU that refuses to grow above ``limit_bytes``, as a card of that size would."""

    source = "live storage on a CPU"

    def __init__(self, limit_bytes: float) -> None:
        super().__init__()
        self.limit_bytes = limit_bytes
        self.details: dict[str, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if self.live_bytes > self.limit_bytes:
            raise torch.cuda.OutOfMemoryError(
                f"the played card has {self.limit_bytes:,.0f} bytes, and this operation brings it to "
                f"{self.live_bytes:,} bytes"
            )
        return result


class CpuClock:
    """Time that this process has a CPU for: what else runs on the computer does not count."""

    def __init__(self) -> None:
        self._marks: list[float] = []

    def mark(self) -> None:
        """Now."""
        self._marks.append(time.process_time())

    def laps(self) -> list[float]:
        """Seconds from each mark to the next."""
        return [b - a for a, b in zip(self._marks, self._marks[1:], strict=False)]


@dataclass(frozen=True)
class Device:
    """Where the models run. ``limit_bytes`` is what a step may take; ``statistics`` LayerNorm's format there.

    ``place`` is torch's name for it, ``format`` the 16-bit format of weights and activations, ``why`` its reason.
    """

    name: str
    kind: str
    place: str
    limit_bytes: int
    format: torch.dtype
    why: str

    @property
    def statistics(self) -> str:
        """Format of LayerNorm's mean and deviation: fp32 on a GPU, bf16 on PyTorch's CPU path."""
        return "fp32" if self.kind == "cuda" else "bf16"

    @property
    def timing_seconds(self) -> float:
        """About so long a case's timed steps may take."""
        return 2.0 if self.kind == "cuda" else 0.1

    @property
    def measures(self) -> str:
        """What a peak measured here is."""
        return cuda.CudaMeter.source if self.kind == "cuda" else CappedLiveStorage.source

    def meter(self) -> Meter:
        """A fresh meter; make it before what it is to count."""
        return cuda.CudaMeter() if self.kind == "cuda" else CappedLiveStorage(self.limit_bytes)

    def clock(self) -> Clock:
        """A fresh clock."""
        return cuda.CudaClock() if self.kind == "cuda" else CpuClock()

    def release(self) -> None:
        """Gives back what the last case left behind."""
        if self.kind == "cuda":
            cuda.release()

    def record(self) -> dict[str, Any]:
        """For a results file."""
        return {
            "name": self.name,
            "kind": self.kind,
            "limit_bytes": self.limit_bytes,
            "format": str(self.format).removeprefix("torch."),
            "measures": self.measures,
        }

    def __str__(self) -> str:
        return f"{self.name}, {size(self.limit_bytes)} to use, {self.why}"


def this_device(limit_bytes: float | None = None) -> Device:
    """The first CUDA GPU, or the CPU where there is none (other accelerators have no counter like CUDA's).

    ``limit_bytes`` makes the card smaller than it is.
    """
    if torch.cuda.is_available():
        allowed = cuda.allowed_bytes(limit_bytes)
        return Device(torch.cuda.get_device_name(), "cuda", "cuda", allowed, *cuda.number_format())
    limit = int(PLAYED_CARD_BYTES if limit_bytes is None else limit_bytes)
    why = "bf16, as on a GPU"
    return Device(f"CPU ({platform.machine() or 'unknown'})", "cpu", "cpu", limit, torch.bfloat16, why)


@contextmanager
def metered(meter: Meter) -> Iterator[None]:
    """What happens in here is counted."""
    running: AbstractContextManager[Any] = meter  # type: ignore[assignment]
    with observed_by(meter), running:
        yield
