"""Coarser readings of one step, for comparison with the exact one: the lesson's and a calculator's."""

from collections.abc import Sequence

from trainmem.memory.operations import Block
from trainmem.memory.timeline import Timeline

_Change = dict[str, float]


def lesson_step(
    L: int, c: float, A: float, every: int | None = None, *, states_bytes: float = 0, logits_bytes: float = 0
) -> Timeline:
    """The lesson's timeline (exercise 4): a layer's forward pass adds A, its backward pass frees A.

    With checkpoints every ``every`` layers, the forward pass adds c at the first layer of each segment; each segment is
    then rebuilt (A a layer, counted beside its checkpoint) and consumed. ``after_bytes`` are exercise 4's values when
    ``states_bytes`` and ``logits_bytes`` are 0. Logits, if any, are there at the loss and add one event.
    Model states are there all the time, gradients too.
    """
    if L < 1:
        raise ValueError(f"a model has at least one layer, not {L}")
    if every is not None and every < 1:
        raise ValueError(f"checkpoints stand every 1, 2, 3, … layers, not every {every!r}")
    events: list[tuple[str, str, int | None, _Change, _Change]] = []

    def add(phase: str, layer: int, change: _Change) -> None:
        events.append((phase, "layer", layer, {x: max(y, 0) for x, y in change.items()}, change))

    layers = range(1, L + 1)
    for layer in layers:
        if every is None:
            add("forward", layer, {"activations": A})
        else:
            add("forward", layer, {"checkpoints": c if (layer - 1) % every == 0 else 0})
    if logits_bytes:
        events.append(("backward", "head", None, {"logits": logits_bytes}, {}))
    if every is None:
        for layer in reversed(layers):
            add("backward", layer, {"activations": -A})
    else:
        for start in reversed(range(1, L + 1, every)):
            segment = range(start, min(start + every, L + 1))
            for layer in segment:
                add("rebuild", layer, {"rebuilt": A})
            for layer in reversed(segment):
                add("backward", layer, {"rebuilt": -A, "checkpoints": -c if layer == start else 0})
    return Timeline.of({"weights": states_bytes}, events)


def calculator_step(
    layer: Block,
    L: int,
    parameters: int,
    V: int,
    *,
    gradient_sizes: Sequence[float] | None = None,
) -> Timeline:
    """A calculator's coarse reading of mixed-precision Adam on one GPU, one event a layer.

    Weights and optimizer (14Ψ) stay. Gradients come in the backward pass: head, layers from the last to the first,
    embedding, in L + 2 equal units of 2Ψ/(L + 2), or in ``gradient_sizes`` (bytes, in that order). Each backward step
    is read with its own gradient already there and before its activations go. Logits and their gradient (4sbV each)
    are there at the loss alone. What is recomputed follows from the layer (`gpt_layer(recompute=...)`); a rebuilt
    layer's input is its checkpoint, counted once.
    """
    units = [2 * parameters / (L + 2)] * (L + 2) if gradient_sizes is None else list(gradient_sizes)
    if len(units) != L + 2:
        raise ValueError(f"{L} layers with a head and an embedding have {L + 2} gradients, not {len(units)}")
    kept = layer.kept_bytes
    again = layer.recompute(()).kept_bytes - kept
    full = layer.recomputed == {op.name for op in layer.operations}
    category = "checkpoints" if full else "activations"
    logits = 2 * 4 * layer.dims["s"] * layer.dims["b"] * V
    events: list[tuple[str, str, int | None, _Change, _Change]] = [
        ("forward", "layer", number, {category: kept}, {category: kept}) for number in range(1, L + 1)
    ]
    events.append(("backward", "loss", None, {"logits": logits}, {}))
    events.append(("backward", "head", None, {"gradients": units[0]}, {"gradients": units[0]}))
    for number, unit in zip(range(L, 0, -1), units[1:-1], strict=True):
        during = {"gradients": unit, "rebuilt": again}
        events.append(("backward", "layer", number, during, {"gradients": unit, category: -kept}))
    events.append(("backward", "embedding", None, {"gradients": units[-1]}, {"gradients": units[-1]}))
    return Timeline.of({"weights": 2 * parameters, "optimizer": 12 * parameters}, events)
