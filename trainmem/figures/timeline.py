"""Figure 1: the memory of one training step over time, event by event."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from html import escape

import ipywidgets as widgets
import numpy as np

from trainmem.figures.amounts import gb, in_gb, table
from trainmem.figures.frame import Figure, Picture, button, choice, field, slider, switch
from trainmem.figures.svg import FILLS, GREY, SKY, Drawing, Layout, stairs
from trainmem.figures.yours import YourFunction, asked, drawable
from trainmem.memory import (
    CATEGORIES,
    MODELS,
    Block,
    Model,
    Timeline,
    calculator_step,
    gpt_layer,
    lesson_step,
    model_step,
)
from trainmem_solutions import memory_timeline, model_state_bytes

TITLE = "Timeline of one training step"

OWN = Model("own", "your own numbers", "gpt", 24, 2048, 16, 50257, 8192, 16, True, 0, 2048, "")

#: Name of a preset → model, s, b, and the reading that it opens with.
PRESETS: dict[str, tuple[Model, int, int, str]] = {
    "1.3b": (MODELS["1.3b"], 2048, 8, "exact"),
    "llama-7b": (replace(MODELS["llama-7b"], title="LLaMA 7B"), 4096, 1, "equal"),
    "gpt2-124m": (MODELS["gpt2-124m"], 1024, 8, "exact"),
}

#: The ways to read a step, from the finest to the coarsest.
READINGS = {
    "exact": "every tensor",
    "sizes": "layer by layer, each gradient's own size",
    "equal": "layer by layer, gradients in equal units",
    "lesson": "exercise 4: states stay, a layer adds A",
}

RECOMPUTATION = {"none": "none", "selective": "selective", "full": "full, every k layers"}

Simulator = Callable[..., Iterable[float]]


@dataclass(frozen=True, eq=False)
class StepNumbers:
    """What is drawn: for each event its phase, its name, and the bytes held by category at its highest moment."""

    phases: tuple[str, ...]
    names: tuple[str, ...]
    held: dict[str, np.ndarray]

    @property
    def totals(self) -> np.ndarray:
        """Bytes held at each event."""
        return sum(self.held.values())

    @property
    def peak(self) -> int:
        """The first event at which most is held."""
        return int(self.totals.argmax())


@lru_cache(maxsize=256)
def step_numbers(
    model: Model,
    s: int,
    b: int,
    recompute: str = "none",
    k: int = 1,
    reading: str = "exact",
    fused: bool = False,
    simulator: Simulator = memory_timeline,
) -> StepNumbers:
    """The step of ``model`` at ``s`` tokens and ``b`` sequences in one of `READINGS`, or ``"yours"``.

    ``recompute`` is a key of `RECOMPUTATION`; ``fused`` is FlashAttention, under which selective recomputation has
    nothing left to recompute. The coarse readings count a layer by the GPT formula, whatever the model. Those with
    gradients layer by layer know full recomputation of each layer only (k = 1).
    """
    attention = "fused" if fused else "eager"
    if fused and recompute == "selective":
        recompute = "none"
    every = k if recompute == "full" else None
    part = recompute if recompute == "selective" else "none"
    if reading == "exact":
        return _numbers(model_step(model, s, b, attention=attention, recompute=part).timeline(every))
    layer = gpt_layer(s, b, model.h, model.a, attention=attention, recompute=part)
    if reading in ("equal", "sizes"):
        return _numbers(_calculator(model, layer.recompute() if every else layer, reading))
    c, A = layer.recompute().kept_bytes, layer.kept_bytes
    states = model_state_bytes(model.parameters)
    logits = sum(tensor.nbytes for tensor in model.head(s, b).kept if tensor.part == "logits")
    timeline = lesson_step(model.L, c, A, every, states_bytes=states, logits_bytes=logits)
    if reading == "lesson":
        return _numbers(timeline, after=True)
    return _numbers(_simulated(timeline, simulator, model.L, c, A, every, states, logits), after=True)


def _calculator(model: Model, layer: Block, reading: str) -> Timeline:
    sizes = None
    if reading == "sizes":
        one = [2 * block.parameters for block in (model.head(1), model.layer(1), model.embedding(1))]
        sizes = [one[0], *[one[1]] * model.L, one[2]]
    return calculator_step(layer, model.L, model.parameters, model.V, gradient_sizes=sizes)


def _simulated(
    right: Timeline, simulator: Simulator, L: int, c: int, A: int, every: int | None, states: int, logits: int
) -> Timeline:
    """The lesson's events with the levels that a reader's simulator gives."""
    options = {} if every is None else {"k": every}
    levels = asked(lambda: [drawable(level) for level in simulator(L, c, A, **options)])
    at_the_loss = [i for i, (_, block, _, _) in enumerate(right.labels) if block == "head"]
    wanted = len(right) - len(at_the_loss)
    if len(levels) != wanted:
        raise YourFunction(f"Your function gave {len(levels)} values for {wanted} events (L = {L}, k = {every})")
    for i in at_the_loss:
        levels.insert(i, levels[i - 1])
    changes = np.diff([0, *levels])
    events = []
    for i, (phase, block, layer, _) in enumerate(right.labels):
        during = {"logits": logits} if i in at_the_loss else {}
        events.append((phase, block, layer, during, {"activations": changes[i]}))
    return Timeline.of({"weights": states}, events)


def _numbers(timeline: Timeline, after: bool = False) -> StepNumbers:
    """An event's highest moment; with ``after``, what is held when it is over (as exercise 4 counts)."""
    lasting = timeline.after_bytes >= timeline.during_bytes
    if after:
        lasting = np.array([block != "head" for _, block, _, _ in timeline.labels])
    rows = np.where(lasting[:, None], timeline.after, timeline.during)
    events = [timeline.event(i) for i in range(len(timeline))]
    held = {name: rows[:, i] for i, name in enumerate(CATEGORIES) if rows[:, i].any()}
    phases = tuple("loss" if event.block in ("head", "loss") else event.phase for event in events)
    return StepNumbers(phases, tuple(event.name for event in events), held)


def called(category: str, reading: str) -> str:
    """A category's name in the picture."""
    if category == "weights" and reading in ("lesson", "yours"):
        return "model states"
    return {"optimizer": "optimizer states", "rebuilt": "rebuilt layers", "working": "in passing"}.get(
        category, category
    )


def draw(numbers: StepNumbers, at: int, reading: str, label: str, layout: Layout) -> str:
    """The picture: bands over the events, the peak, the chosen event and what is held then."""
    back, y0, height, left, column, high = _background(numbers, reading, layout)
    drawing = Drawing(layout)
    drawing.parts = list(back)
    x = left + at * column
    scale = height / high
    total = numbers.totals[at]
    drawing.parts.append(
        f'<rect class="now" x="{x:.1f}" y="{y0 - total * scale:.1f}" width="{max(column, 1.5):.1f}" '
        f'height="{total * scale:.1f}" fill="#000000" fill-opacity="0.25" stroke="currentColor" stroke-width="2"/>'
    )
    # What is held at the chosen event, from the top of the stack to the ground.
    rows = [(name, levels[at]) for name, levels in reversed(numbers.held.items())]
    if layout.narrow:
        x, y = 2.0, y0 + 56
    else:
        x, y = layout.width - 196.0, 34.0
    drawing.text(x, y, f"event {at + 1}: {gb(total)}", bold=True)
    for i, (name, nbytes) in enumerate(rows, 1):
        drawing.key(x, y + 20 * i, FILLS[name], f"{called(name, reading)} {gb(nbytes)}")
    bottom = y + 20 * len(rows) + 6 if layout.narrow else y0 + 46
    return drawing.svg(label, max(bottom, y0 + 46), "narrow" if layout.narrow else "wide")


@lru_cache(maxsize=64)
def _background(numbers: StepNumbers, reading: str, layout: Layout) -> tuple:
    """Everything that does not move with the chosen event."""
    drawing = Drawing(layout)
    left, top, height = 44.0, 34.0, 250.0 if not layout.narrow else 190.0
    width = layout.width - left - (210 if not layout.narrow else 4)
    y0, n = top + height, len(numbers.names)
    peak = numbers.totals[numbers.peak]
    high = peak / 1e9 * 1.08
    drawing.upright(left, top, height, high, width, "GB")
    column, scale = width / n, height / (high * 1e9)
    x = [left + i * column for i in range(n + 1)]
    lower = np.zeros(n)
    for name, levels in numbers.held.items():
        upper = lower + levels
        drawing.path(stairs(lower, upper, x, y0, scale), fill=FILLS[name], stroke="currentColor", width=0.5, close=True)
        lower = upper
    level = y0 - peak * scale
    drawing.line(left, level, left + width, level, dash="5 4", width=1.4)
    middle = x[numbers.peak] + column / 2
    anchor = "middle" if left + 60 < middle < left + width - 60 else "start" if middle < left + width / 2 else "end"
    drawing.text(middle, level - 6, f"peak {gb(peak)}", anchor, bold=True)
    # Which phase: a strip below, and a mark for each stretch of rebuilding.
    start = 0
    for i in range(1, n + 1):
        if i == n or numbers.phases[i] != numbers.phases[start]:
            if numbers.phases[start] == "rebuild":
                drawing.rect(x[start], y0 + 4, x[i] - x[start], 8, SKY)
            elif numbers.phases[start] == "backward":
                drawing.rect(x[start], y0 + 4, x[i] - x[start], 8, GREY, outline=False)
            start = i
    turn = numbers.phases.index("loss") if "loss" in numbers.phases else numbers.phases.index("backward")
    drawing.line(x[turn], y0 + 2, x[turn], y0 + 30)
    drawing.line(left, y0, left + width, y0)
    drawing.text(left, y0 + 28, "forward")
    drawing.text(x[turn] + 5, y0 + 28, "backward")
    if "rebuild" in numbers.phases:
        drawing.key(x[turn] + 5 + (78 if not layout.narrow else 70), y0 + 28, SKY, "rebuild")
    return tuple(drawing.parts), y0, height, left, column, high * 1e9


@lru_cache(maxsize=256)
def peaks(model: Model, s: int, b: int, recompute: str, k: int, fused: bool) -> dict[str, tuple[int, str, float]]:
    """Reading → its peak in bytes and when that is."""
    found = {}
    for reading in READINGS:
        numbers = step_numbers(model, s, b, recompute, k, reading, fused)
        found[reading] = (numbers.totals[numbers.peak].item(), numbers.names[numbers.peak])
    return found


def picture(
    model: Model,
    s: int,
    b: int,
    recompute: str,
    k: int,
    reading: str,
    fused: bool,
    at: int | None = None,
    simulator: Simulator = memory_timeline,
) -> Picture:
    """The figure for one setting at event ``at`` (the peak by default)."""
    numbers = step_numbers(model, s, b, recompute, k, reading, fused, simulator)
    at = numbers.peak if at is None else min(at, len(numbers.names) - 1)
    top, when = numbers.totals[numbers.peak], numbers.names[numbers.peak]
    held = ", ".join(f"{called(name, reading)} {gb(levels[at])}" for name, levels in numbers.held.items())
    now = f"Event {at + 1} of {len(numbers.names)}, {numbers.names[at]}: {held}; {gb(numbers.totals[at])} in all."
    peak = f"Peak {gb(top)} at event {numbers.peak + 1}, {when}."
    label = f"{TITLE}, {model.title}, {s:,} tokens, micro-batch {b}. {peak} {now}"
    rows = []
    for name in RECOMPUTATION:
        row = peaks(model, s, b, name, k, fused)
        words = f"full, every {k}" if name == "full" else name
        # Layer by layer, every layer is rebuilt by itself.
        cells = [
            in_gb(row[r][0]) + (" (k = 1)" if name == "full" and k > 1 and r in ("equal", "sizes") else "")
            for r in READINGS
        ]
        rows.append([words, *cells])
    summary = table(
        "Peaks in GB",
        ["rebuilt", "every tensor", "own sizes", "equal units", "as in ex. 4"],
        rows,
    )
    notes = _notes(model, s, b, recompute, k, reading, fused)
    text = f"<p>{escape(peak)}</p><p>{escape(now)}</p>{summary}{notes}"
    sentence = f"{model.title}, {RECOMPUTATION[recompute]}: peak {gb(top)}, {when}"
    return Picture(sentence, lambda layout: draw(numbers, at, reading, label, layout), text)


def _notes(model: Model, s: int, b: int, recompute: str, k: int, reading: str, fused: bool) -> str:
    notes = []
    if model.style == "llama":
        layer, formula = model.layer(s, b, attention="eager"), gpt_layer(s, b, model.h, model.a)
        notes.append(
            f"“Every tensor” counts this model's own layer ({layer.kept_bytes / layer.sbh:.1f} sbh without "
            "recomputation); the other columns count it by the GPT formula "
            f"({formula.kept_bytes / formula.sbh:.0f} sbh)."
        )
        equal, sizes = (
            [peaks(model, s, b, name, 1, fused)[r][0] for name in RECOMPUTATION] for r in ("equal", "sizes")
        )
        notes.append(
            f"With gradients in equal units the three peaks are {_three(equal)}; with each gradient's own size "
            f"they are {_three(sizes)}."
        )
    if fused and recompute == "selective":
        notes.append("Under FlashAttention no attention matrix is kept, so selective recomputation changes nothing.")
    if recompute == "full" and k > 1 and reading in ("equal", "sizes"):
        notes.append("Layer by layer, every layer is rebuilt by itself: k = 1 is drawn.")
    return "".join(f"<p>{escape(note)}</p>" for note in notes)


def _three(values: list[float]) -> str:
    return ", ".join(f"{value / 1e9:.1f}" for value in values) + " GB"


def step_timeline(
    preset: str = "1.3b",
    *,
    recompute: str = "none",
    k: int = 1,
    reading: str | None = None,
    flash: bool = False,
    simulator: Simulator | None = None,
) -> Figure:
    """The memory of one step as a figure to play, scrub and step through.

    ``preset`` is a key of `PRESETS`; ``recompute`` is ``"none"``, ``"selective"`` or ``"full"`` (with ``k`` layers
    between checkpoints); ``reading`` a key of `READINGS` (each preset has its own by default); ``flash`` switches
    FlashAttention on. ``simulator`` is your own ``memory_timeline(L, c, A, k=None)`` of exercise 4: its levels are then
    drawn on top of the model states.
    """
    if preset not in PRESETS:
        raise ValueError(f"preset is one of {', '.join(PRESETS)}, not {preset!r}")
    model, s, b, usual = PRESETS[preset]
    readings = [(words, name) for name, words in READINGS.items()]
    if simulator is not None:
        step_numbers.cache_clear()  # a function that it calls may have been written anew
        readings.append(("your memory_timeline", "yours"))
        reading = reading or "yours"
    models = choice("Model", [(m.title, name) for name, (m, *_) in PRESETS.items()] + [(OWN.title, "own")], preset)
    kind = choice("Recomputation", [(words, name) for name, words in RECOMPUTATION.items()], recompute)
    every = slider("k", k, 1, model.L)
    read = choice("Reading", readings, reading or usual)
    fused = switch("FlashAttention", flash)
    sizes = {
        name: field(name, value, 1, most)
        for name, value, most in (
            ("L", model.L, 128),
            ("h", model.h, 32768),
            ("a", model.a, 256),
            ("V", model.V, 1_000_000),
            ("s", s, 1_000_000),
            ("b", b, 4096),
        )
    }
    time = slider("Event", 1, 1, 2)
    play = widgets.Play(value=1, min=1, max=2, interval=150)
    for name in ("value", "min", "max"):
        widgets.link((play, name), (time, name))

    def chosen() -> tuple[Model, int, int]:
        if models.value != "own":
            return PRESETS[models.value][:3]
        L, h, a, V, s, b = (box.value for box in sizes.values())
        return replace(OWN, L=L, h=h, a=a, kv=a, f=4 * h, V=V), s, b

    def now() -> tuple:
        return (*chosen(), kind.value, every.value, read.value, fused.value)

    def show() -> Picture:
        return picture(*now(), at=time.value - 1, simulator=simulator or memory_timeline)

    def step_by(events: int) -> None:
        time.value = min(max(time.value + events, time.min), time.max)

    def to_the_peak() -> None:
        with suppress(ValueError):  # the drawing says what is wrong
            time.value = step_numbers(*now(), simulator=simulator or memory_timeline).peak + 1

    def refit() -> None:
        """Another step has other events: go to its peak."""
        every.max = chosen()[0].L
        every.disabled = kind.value != "full"
        try:
            numbers = step_numbers(*now(), simulator=simulator or memory_timeline)
        except ValueError:
            return  # the drawing says what is wrong
        time.max = len(numbers.names)
        time.value = numbers.peak + 1

    def preset_chosen() -> None:
        if models.value != "own":
            model, s, b, usual = PRESETS[models.value]
            for name, value in {"L": model.L, "h": model.h, "a": model.a, "V": model.V, "s": s, "b": b}.items():
                sizes[name].value = value
            read.value = "yours" if simulator is not None else usual
        refit()

    def size_changed() -> None:
        models.value = "own"
        refit()

    before = dict.fromkeys((kind, every, read, fused), refit) | {models: preset_chosen}
    before |= dict.fromkeys(sizes.values(), size_changed)
    refit()
    return Figure(
        TITLE,
        [
            [models, read, kind, every, fused],
            list(sizes.values()),
            [
                play,
                time,
                button("Back", lambda: step_by(-1)),
                button("Next", lambda: step_by(1)),
                button("To the peak", to_the_peak),
            ],
        ],
        show,
        before,
    )
