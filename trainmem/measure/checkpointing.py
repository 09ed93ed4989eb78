"""The experiment of the GPU notebook: a model of 12 layers with and without checkpointing, predicted and measured."""

import statistics
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import torch

from trainmem.measure.cuda import is_out_of_memory
from trainmem.measure.device import Device, metered
from trainmem.measure.models import GPTLayer, MasterAdam, Transformer
from trainmem.measure.naming import Moment, observed_by
from trainmem.memory import Event, Step, embedding, forward_flops, gpt_layer, head, recomputed_flops

LAYERS = 12

#: Prediction over limit: below the first a case is expected to fit, above the second not; between, it is open. What
#: the allocator keeps in pieces too small to use decides there.
OPEN = (0.9, 1.0)


@dataclass(frozen=True)
class Setting:
    """How a step is run: which attention, and what is recomputed. ``every`` is the k of a checkpoint every k layers."""

    name: str
    attention: str = "eager"
    recompute: str = "none"
    every: int | None = None


#: All settings by name. "fused" is attention in one kernel (FlashAttention and its like).
SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting("no checkpoints"),
        *(Setting(f"every {k}", every=k) for k in range(1, LAYERS + 1)),
        Setting("selective", recompute="selective"),
        Setting("fused", attention="fused"),
        Setting("fused, every 1", attention="fused", every=1),
    )
}


@dataclass(frozen=True)
class Shapes:
    """Sizes of the model and of its input; ``lengths`` are the three sequence lengths."""

    h: int
    a: int
    V: int
    b: int
    lengths: tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """One setting at one sequence length."""

    s: int
    setting: Setting


def cases(shapes: Shapes, names: Iterable[str] = tuple(SETTINGS), lengths: Iterable[int] | None = None) -> list[Case]:
    """Settings by name at the given lengths (all three by default), short ones first."""
    return [Case(s, SETTINGS[name]) for s in (shapes.lengths if lengths is None else lengths) for name in names]


@lru_cache(maxsize=256)
def step(shapes: Shapes, case: Case, ln_statistics: str) -> Step:
    """The simulator's step of this case."""
    s, b, h, V = case.s, shapes.b, shapes.h, shapes.V
    options = {"attention": case.setting.attention, "recompute": case.setting.recompute}
    return Step(
        gpt_layer(s, b, h, shapes.a, statistics=ln_statistics, **options),
        LAYERS,
        embedding=embedding(s, b, h, V),
        head=head(s, b, h, V, statistics=ln_statistics),
        optimizer="loop",
    )


@dataclass(frozen=True)
class Prediction:
    """The peak and the event where it lies, and the time that recomputation adds to the step without it.

    ``verdict`` is "fits", "does not fit" or "open"; ``runs_out_at`` names the event that would go over the limit.
    """

    predicted_bytes: int
    predicted_at: str
    predicted_extra_time: float
    verdict: str
    runs_out_at: str | None


def predict(device: Device, shapes: Shapes, case: Case) -> Prediction:
    """What the simulator says of a case on a device, before anything is run."""
    model = step(shapes, case, device.statistics)
    timeline = model.timeline(case.setting.every)
    peak = int(timeline.peak_bytes)
    full = peak / device.limit_bytes
    verdict = "fits" if full <= OPEN[0] else "does not fit" if full > OPEN[1] else "open"
    above = (timeline.during_bytes > device.limit_bytes).nonzero()[0]
    where = timeline.event(int(above[0])) if len(above) else None
    return Prediction(
        peak, timeline.peak_event.name, extra_time(model, case.setting), verdict, _without_operation(where)
    )


def extra_time(model: Step, setting: Setting) -> float:
    """FLOPs of what runs again, over those of a forward and backward pass that recomputes nothing."""
    again = forward_flops(model.layer) if setting.every else recomputed_flops(model.layer)
    forward = LAYERS * forward_flops(model.layer) + forward_flops(model.head)
    return LAYERS * again / (3 * forward)


#: From how many bytes on which sizes: a layer as wide as a card of that memory trains well.
_SIZES: tuple[tuple[float, dict[str, Any]], ...] = (
    (60e9, {"h": 2048, "a": 16, "V": 16384, "lengths": (512, 1024, 2048)}),
    (9e9, {"h": 1024, "a": 16, "V": 16384, "lengths": (512, 1024, 2048)}),
    (0, {"h": 512, "a": 8, "V": 8192, "lengths": (256, 512, 1024)}),
)


def fitting(device: Device) -> Shapes:
    """Shapes for a device: without checkpoints the model fits at the middle length, and at the longest not.

    The micro-batch is the largest that does it, with every tensor below 2³¹ elements (beyond that kernels take other
    paths).

    Raises ``ValueError`` for less than about 1.1 GB on a GPU.
    """
    if device.kind == "cpu":
        return Shapes(h=32, a=2, V=256, b=1, lengths=(64, 128, 256))
    sizes = next(sizes for limit, sizes in _SIZES if device.limit_bytes >= limit)
    plain = SETTINGS["no checkpoints"]

    def fits(b: int) -> bool:
        shapes = Shapes(b=b, **sizes)
        asked = [Case(shapes.lengths[1], plain), *cases(shapes, ("every 3", "selective", "fused"), shapes.lengths[2:])]
        return all(predict(device, shapes, case).verdict == "fits" for case in asked)

    largest = (2**31 - 1) // (sizes["a"] * sizes["lengths"][-1] ** 2)
    b = bisect_left(range(1, largest + 1), True, key=lambda b: not fits(b))  # how many of 1, 2, 3, … fit
    if not b:
        raise ValueError(
            f"{device.name} leaves {device.limit_bytes / 1e9:.2f} GB, and the smallest model of this notebook needs "
            "about 1.1 GB: close what else uses the GPU (nvidia-smi lists it), or run on the CPU"
        )
    return Shapes(b=b, **sizes)


def build(device: Device, shapes: Shapes, setting: Setting) -> tuple[Transformer, MasterAdam]:
    """The measured model and its optimizer, on the device, in its 16-bit format."""
    with torch.device(device.place):
        layers = [
            GPTLayer(shapes.h, shapes.a, attention=setting.attention, recompute=setting.recompute)
            for _ in range(LAYERS)
        ]
        model = Transformer(layers, shapes.h, shapes.V, every=setting.every)
    model = model.to(device.format)
    return model, MasterAdam(model.parameters())


def warm_up(device: Device) -> None:
    """Runs something small once: libraries load, and on a GPU the workspaces of cuBLAS come to stay.

    On a CPU it also sets torch to one thread: at these sizes more would wait for each other.
    """
    if device.kind == "cpu":
        torch.set_num_threads(1)
    shapes = Shapes(h=32, a=2, V=64, b=1, lengths=(16,))
    for name in ("every 1", "fused"):
        model, adam = build(device, shapes, SETTINGS[name])
        tokens = torch.zeros(1, 16, dtype=torch.int64, device=device.place)
        _train(model, adam, tokens, tokens)


def _train(
    model: Transformer,
    adam: MasterAdam,
    tokens: torch.Tensor,
    targets: torch.Tensor,
    mark: Callable[[], None] = lambda: None,
) -> None:
    mark()
    loss = model(tokens, targets)
    mark()
    loss.backward()
    mark()
    adam.step()
    adam.zero_grad()
    mark()


@dataclass
class _LastMoment:
    """An observer that knows where a step was when it stopped."""

    moment: Moment | None = None

    def enter(self, moment: Moment) -> None:
        if sys.exc_info()[0] is None:  # on its way out, an error passes back through the operations around
            self.moment = moment

    def made(self, moment: Moment, nodes: list[Any]) -> None:
        pass


def measure(device: Device, shapes: Shapes, case: Case) -> dict[str, Any]:
    """Runs a case: one step under the meter, then timed ones without it; an out-of-memory error is a result too.

    There are at least 2 timed steps and at most 10. The record has the prediction, ``outcome`` ("measured" or "out of
    memory"), ``measured_bytes`` and ``measured_at``, medians of ``forward_seconds``, ``backward_seconds`` and
    ``optimizer_seconds``, and what the meter adds under ``details``.
    """
    record: dict[str, Any] = {"s": case.s, "setting": case.setting.name, **asdict(predict(device, shapes, case))}
    last = _LastMoment()
    ran_out = ""
    try:
        record |= _measured(device, shapes, case, last)
    except (torch.cuda.OutOfMemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        ran_out = str(error).split(" If reserved")[0].strip()
    if ran_out:  # outside of the except clause: the error's frames hold the whole model
        where = last.moment and _words(replace(last.moment, operation=""), case.setting)
        record |= {"outcome": "out of memory", "stopped_at": where, "message": ran_out}
    device.release()
    return record


def _measured(device: Device, shapes: Shapes, case: Case, last: _LastMoment) -> dict[str, Any]:
    torch.manual_seed(0)
    tokens, targets = torch.randint(shapes.V, (2, shapes.b, case.s), device=device.place).unbind()
    meter = device.meter()
    model, adam = build(device, shapes, case.setting)
    meter.ignore([] if device.kind == "cuda" else [tokens, targets])
    meter.hold([*model.parameters(), *adam.states])
    before = meter.live_bytes
    with observed_by(last), metered(meter):
        _train(model, adam, tokens, targets)
    record = {
        "outcome": "measured",
        "states_bytes": before,
        "measured_bytes": meter.peak_bytes,
        "measured_at": meter.peak_moment and _words(meter.peak_moment, case.setting),
        "details": dict(meter.details),
    }
    laps: list[list[float]] = []
    while len(laps) < 2 or (len(laps) < 10 and sum(map(sum, laps)) < device.timing_seconds):
        clock = device.clock()
        _train(model, adam, tokens, targets, clock.mark)
        laps.append(clock.laps())
    names = ("forward_seconds", "backward_seconds", "optimizer_seconds")
    record |= {name: statistics.median(column) for name, column in zip(names, zip(*laps, strict=True), strict=True)}
    return record | {"timed_steps": len(laps)}


def follow(device: Device, shapes: Shapes, case: Case) -> list[tuple[str, int]]:
    """One step, operation by operation: (operation in words, the most bytes held in it), in the order of the step."""
    tokens, targets = torch.randint(shapes.V, (2, shapes.b, case.s), device=device.place).unbind()
    meter = device.meter()
    model, adam = build(device, shapes, case.setting)
    meter.ignore([] if device.kind == "cuda" else [tokens, targets])
    meter.hold([*model.parameters(), *adam.states])
    with metered(meter):
        _train(model, adam, tokens, targets)
    highest: dict[str, int] = {}
    for moment, held in meter.history:
        if moment is not None:
            name = _words(moment, case.setting)
            highest[name] = max(highest.get(name, 0), held)
    return list(highest.items())


def _words(moment: Moment, setting: Setting) -> str:
    """A measured moment in the simulator's words: selective recomputation happens inside a layer's backward pass."""
    phase, operation = moment.phase, moment.operation
    if phase == "rebuild" and setting.recompute == "selective":
        phase, operation = "backward", f"rebuilding {operation}"
    return Event(phase, moment.block, moment.layer, operation, {}, {}).name


def _without_operation(event: Event | None) -> str | None:
    return event and replace(event, operation="").name
