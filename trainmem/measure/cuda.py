"""A CUDA device's memory and time: all that this course asks of ``torch.cuda``.

The allocator counts every block that it hands out (a multiple of 512 bytes), so nothing has to be followed tensor by
tensor: ``max_memory_allocated`` is the peak. It counts cuBLAS's workspaces too; they are there before a model is built
once something small has run, and a meter leaves out what is there before it.
"""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from trainmem.measure.naming import Moment

#: What a capped process may take of the memory that is free: the rest is for the driver's own needs.
SHARE = 0.95

#: Other words for "out of memory" when it is not the allocator that meets the end of it.
_OTHER_WORDS = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")


class CudaMeter:
    """What tensors take on the GPU; read it as `trainmem.measure.live.LiveStorage`.

    Make it before the model, run one step inside it (``with meter``) as its observer. ``history`` has (moment, the most
    held in it); ``details`` what the allocator says beside.
    """

    source = "max_memory_allocated"

    def __init__(self) -> None:
        release()
        self._before = torch.cuda.memory_allocated()
        self._requested_before = torch.cuda.memory_stats().get("requested_bytes.all.current", 0)
        self.restart()

    @property
    def live_bytes(self) -> int:
        """Allocated now, above what was there before."""
        return torch.cuda.memory_allocated() - self._before

    def hold(self, tensors: Iterable[torch.Tensor]) -> None:
        """Nothing to count: the allocator knows what it gave. Starts the peak afresh."""
        release()
        self.restart()

    def ignore(self, tensors: Iterable[torch.Tensor]) -> None:
        """Leaves tensors out that were made after the meter."""
        self._before += sum(-(-x.untyped_storage().nbytes() // 512) * 512 for x in tensors)

    def restart(self) -> None:
        """Forgets the peak so far."""
        torch.cuda.reset_peak_memory_stats()
        self.peak_bytes = self.live_bytes
        self.peak_moment: Moment | None = None
        self.history: list[tuple[Moment | None, int]] = []
        self.details: dict[str, int] = {"requested_bytes": 0, "reserved_bytes": 0}
        self._moment: Moment | None = None

    def enter(self, moment: Moment) -> None:
        """The moment before is over: its highest point is what the allocator says."""
        self._look()
        self._moment = moment

    def made(self, moment: Moment, nodes: list[torch.autograd.graph.Node]) -> None:
        """Nothing to do."""

    def _look(self) -> None:
        highest = torch.cuda.max_memory_allocated() - self._before
        self.history.append((self._moment, highest))
        stats = torch.cuda.memory_stats()
        requested = stats.get("requested_bytes.all.peak", 0) - self._requested_before
        self.details["requested_bytes"] = max(self.details["requested_bytes"], requested)
        self.details["reserved_bytes"] = max(self.details["reserved_bytes"], torch.cuda.max_memory_reserved())
        if highest > self.peak_bytes:
            self.peak_bytes, self.peak_moment = highest, self._moment
        torch.cuda.reset_peak_memory_stats()

    def __enter__(self) -> "CudaMeter":
        return self

    def __exit__(self, *failure: object) -> None:
        self._look()


class CudaClock:
    """Times between marks, by events that the GPU itself passes; Python does not wait for it until the end."""

    def __init__(self) -> None:
        self._marks: list[torch.cuda.Event] = []

    def mark(self) -> None:
        """Now."""
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        self._marks.append(event)

    def laps(self) -> list[float]:
        """Seconds from each mark to the next."""
        torch.cuda.synchronize()
        return [a.elapsed_time(b) / 1e3 for a, b in zip(self._marks, self._marks[1:], strict=False)]


def allowed_bytes(limit_bytes: float | None = None) -> int:
    """What a step may take here, and a cap that makes the allocator refuse more.

    `SHARE` of what is free on the card, or ``limit_bytes`` where that is less: so a large card can stand for a small
    one. Without a cap some drivers would go on in the computer's own memory, slowly, instead of saying no.
    """
    release()
    free, total = torch.cuda.mem_get_info()
    allowed = int(SHARE * free)
    if limit_bytes is not None:
        allowed = min(allowed, int(limit_bytes))
    torch.cuda.set_per_process_memory_fraction(min(1.0, (allowed + torch.cuda.memory_reserved()) / total))
    return allowed


def number_format() -> tuple[torch.dtype, str]:
    """The 16-bit format to train in on this card, and why, as a sentence.

    ``torch.cuda.is_bf16_supported()`` says yes on cards that only imitate bf16, so the compute capability decides.
    """
    major, minor = torch.cuda.get_device_capability()
    if major >= 8:
        return torch.bfloat16, f"bf16: compute capability {major}.{minor} has tensor cores for it"
    reason = "its tensor cores know fp16 alone" if major == 7 else "it has no tensor cores"
    return torch.float16, (
        f"fp16: compute capability {major}.{minor} is older than 8.0 and {reason}; bf16 would be imitated, slowly. "
        "Both take 2 bytes, so memory is the same; a real training run in fp16 would scale its loss"
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out."""
    if isinstance(error, torch.cuda.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _OTHER_WORDS)


def release() -> None:
    """Gives back all that no tensor uses, so that the next case starts on an empty card."""
    gc.collect()
    torch.cuda.empty_cache()


@contextmanager
def snapshot(path: Path) -> Iterator[None]:
    """Records every allocation in here and writes them to ``path``, to be dropped on pytorch.org/memory_viz."""
    torch.cuda.memory._record_memory_history(max_entries=100_000)
    try:
        yield
    finally:
        torch.cuda.memory._dump_snapshot(str(path))
        torch.cuda.memory._record_memory_history(enabled=None)
