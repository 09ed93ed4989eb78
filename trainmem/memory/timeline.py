"""Memory over time: the events of one training step, and what its peak is, when, and what it is made of."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

#: What memory is counted under. ``working`` are the gradients of activations and what an operation holds for a moment.
CATEGORIES = ("weights", "optimizer", "gradients", "checkpoints", "activations", "rebuilt", "logits", "working")

_INDEX = {name: i for i, name in enumerate(CATEGORIES)}


def vector(parts: Mapping[str, float]) -> np.ndarray:
    """Bytes by category as a row in the order of `CATEGORIES`: int64 where all are whole, else float64.

    Raises ``ValueError`` for an unknown category.
    """
    unknown = sorted(set(parts) - set(CATEGORIES))
    if unknown:
        raise ValueError(f"no category {', '.join(unknown)}; there are {', '.join(CATEGORIES)}")
    whole = all(float(value).is_integer() for value in parts.values())
    row = np.zeros(len(CATEGORIES), dtype=np.int64 if whole else np.float64)
    for name, value in parts.items():
        row[_INDEX[name]] += value
    return row


@dataclass(frozen=True)
class Event:
    """One event: ``phase`` (forward, rebuild, backward, optimizer), ``block`` (embedding, layer, head, model),
    ``layer`` (1 to L, or None) and ``operation``, the one at which the event's highest moment lies.

    ``during`` are the bytes held at that moment by category, ``after`` those held when the event is over.
    """

    phase: str
    block: str
    layer: int | None
    operation: str
    during: Mapping[str, float]
    after: Mapping[str, float]

    @property
    def name(self) -> str:
        """For people: ``"backward of layer 12 (fc2)"``."""
        where = self.block if self.layer is None else f"{self.block} {self.layer}"
        phase = {"optimizer": "optimizer step"}.get(self.phase, self.phase)
        return f"{phase} of {where}" + (f" ({self.operation})" if self.operation else "")

    @property
    def during_bytes(self) -> float:
        """Total at its highest moment."""
        return sum(self.during.values())

    @property
    def after_bytes(self) -> float:
        """Total when it is over."""
        return sum(self.after.values())


class Timeline:
    """The events of one step in order.

    ``during`` and ``after`` are arrays of shape (events, categories) in bytes; ``during_bytes`` and ``after_bytes``
    their totals. ``initial`` is what is held before the first event.
    """

    def __init__(
        self,
        initial: np.ndarray,
        labels: Sequence[tuple[str, str, int | None, str]],
        during: np.ndarray,
        after: np.ndarray,
    ) -> None:
        self.initial = initial
        self.labels = labels
        held = initial + np.cumsum(after, axis=0)
        self.after = held
        self.during = held - after + during

    @classmethod
    def of(
        cls,
        initial: Mapping[str, float],
        events: Iterable[tuple[str, str, int | None, Mapping[str, float], Mapping[str, float]]],
    ) -> "Timeline":
        """From (phase, block, layer, during, after), the last two as changes against what was held before the event."""
        events = list(events)
        return cls(
            vector(initial),
            [(phase, block, layer, "") for phase, block, layer, _, _ in events],
            np.array([vector(during) for *_, during, _ in events]),
            np.array([vector(after) for *_, after in events]),
        )

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def during_bytes(self) -> np.ndarray:
        """Total at the highest moment of each event."""
        return self.during.sum(axis=1)

    @cached_property
    def after_bytes(self) -> np.ndarray:
        """Total after each event."""
        return self.after.sum(axis=1)

    def event(self, index: int) -> Event:
        """One event as a record."""
        rows = (dict(zip(CATEGORIES, row[index].tolist(), strict=True)) for row in (self.during, self.after))
        return Event(*self.labels[index], *rows)

    @property
    def events(self) -> list[Event]:
        """All of them; build it once and keep it."""
        return [self.event(i) for i in range(len(self))]

    @property
    def peak_index(self) -> int:
        """The first event at which the peak is reached."""
        return int(np.maximum(self.during_bytes, self.after_bytes).argmax())

    @property
    def peak_bytes(self) -> float:
        """The most bytes held at any moment."""
        return max(self.during_bytes.max(), self.after_bytes.max()).item()

    @property
    def peak_event(self) -> Event:
        """When that is."""
        return self.event(self.peak_index)

    @property
    def peak_parts(self) -> dict[str, float]:
        """What it is made of: category → bytes, without empty ones."""
        event = self.peak_event
        parts = event.during if event.during_bytes >= event.after_bytes else event.after
        return {name: nbytes for name, nbytes in parts.items() if nbytes}

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {nbytes / 1e9:.3f}" for name, nbytes in self.peak_parts.items())
        return f"peak {self.peak_bytes / 1e9:.3f} GB at the {self.peak_event.name}: {parts}"
