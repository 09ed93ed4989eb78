"""Figure 4: a checkpoint every k layers: the sawtooth of one step, and the peak and the time against k."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from math import log, sqrt

from trainmem.figures.amounts import number, table
from trainmem.figures.frame import Figure, Picture, button, choice, slider
from trainmem.figures.svg import FILLS, GREY, ORANGE, SKY, VERMILLION, Drawing, Layout, plain, stairs
from trainmem.figures.yours import YourFunction, asked, drawable
from trainmem.memory import gpt_layer, lesson_step, recomputation_cost
from trainmem_solutions import best_k, memory_timeline

TITLE = "A checkpoint every k layers"

_LAYER = gpt_layer(2048, 8, 2048, 16, attention="fused")

#: Bytes of a checkpoint in units of sbh, and the forward passes that a step with and without checkpoints takes.
C = _LAYER.recompute().kept_bytes / _LAYER.sbh
PLAIN_STEP = 3
CHECKPOINTED_STEP = PLAIN_STEP * (1 + recomputation_cost(_LAYER.recompute()))

#: Activations of a layer in units of sbh.
LAYERS = {34: "34 (FlashAttention)", 54: "54 (as/h = 4)", 114: "114 (the 1.3B example)"}

Simulator = Callable[..., Iterable[float]]


def approximate_peak(L: int, c: float, A: float, k: float) -> float:
    """M(k) = (L/k)·c + k·A (Chen et al. 2016): exact where k divides L. Its lowest point is at √(Lc/A)."""
    return L / k * c + k * A


@dataclass(frozen=True, eq=False)
class CheckpointNumbers:
    """Levels after each event by what is held, the peak for every k, and a simulator's own levels, if any."""

    phases: tuple[str, ...]
    checkpoints: tuple[float, ...]
    rebuilt: tuple[float, ...]
    yours: tuple[float, ...] | None
    peaks: tuple[float, ...]
    formula: tuple[float, ...]
    best: int
    root: float


@lru_cache(maxsize=128)
def checkpoint_numbers(L: int, k: int, c: float, A: float, simulator: Simulator | None = None) -> CheckpointNumbers:
    """All of the figure for L layers, checkpoints of c and layers of A, in the same unit."""
    timeline = lesson_step(L, c, A, k)
    events = timeline.events
    own = None
    if simulator is not None:
        own = asked(lambda: tuple(drawable(level) for level in simulator(L, c, A, k=k)))
        if len(own) != len(events):
            raise YourFunction(f"Your function gave {len(own)} values for {len(events)} events (L = {L}, k = {k})")
    peaks, best = _peaks(L, c, A, simulator or memory_timeline)
    return CheckpointNumbers(
        tuple(event.phase for event in events),
        tuple(event.after["checkpoints"] for event in events),
        tuple(event.after["rebuilt"] for event in events),
        own,
        peaks,
        tuple(approximate_peak(L, c, A, other) for other in range(1, L + 1)),
        best,
        sqrt(L * c / A),
    )


@lru_cache(maxsize=32)
def _peaks(L: int, c: float, A: float, simulator: Simulator) -> tuple[tuple[float, ...], int]:
    peaks = asked(lambda: tuple(max(drawable(level) for level in simulator(L, c, A, k=k)) for k in range(1, L + 1)))
    if min(peaks) <= 0:
        raise YourFunction(f"The highest value that your function gave for L = {L} is {min(peaks):g}, not above 0.")
    return peaks, best_k(L, c, A) if simulator is memory_timeline else 1 + peaks.index(min(peaks))


def draw(numbers: CheckpointNumbers, k: int, label: str, layout: Layout) -> str:
    """The picture: the sawtooth, beside or below it the peak against k, and the step's time."""
    drawing = Drawing(layout)
    if layout.narrow:
        _sawtooth(drawing, numbers, k, 48, 30, layout.width - 52, 150)
        _against_k(drawing, numbers, k, 48, 268, layout.width - 64, 140)
        bottom = _time(drawing, 502, layout)
    else:
        _sawtooth(drawing, numbers, k, 48, 30, 320, 210)
        _against_k(drawing, numbers, k, 436, 30, 266, 210)
        bottom = _time(drawing, 334, layout)
    return drawing.svg(label, bottom, "narrow" if layout.narrow else "wide")


def _sawtooth(
    drawing: Drawing, numbers: CheckpointNumbers, k: int, left: float, top: float, width: float, height: float
) -> None:
    n = len(numbers.phases)
    levels = [c + a for c, a in zip(numbers.checkpoints, numbers.rebuilt, strict=True)]
    peak = max(levels)
    high = max(peak, *(numbers.yours or [0])) * 1.15
    scale, y0 = height / high, top + height
    x = [left + width * i / n for i in range(n + 1)]
    drawing.upright(left, top, height, high, width, "held after each event, in sbh")
    drawing.path(
        stairs([0.0] * n, numbers.checkpoints, x, y0, scale),
        fill=FILLS["checkpoints"],
        stroke="currentColor" if n < 150 else "none",
        width=0.5,
        close=True,
    )
    drawing.path(
        stairs(numbers.checkpoints, levels, x, y0, scale),
        fill=FILLS["rebuilt"],
        stroke="currentColor" if n < 150 else "none",
        width=0.5,
        close=True,
    )
    if numbers.yours:
        points = stairs([], numbers.yours, x, y0, scale)
        drawing.path(points, stroke=VERMILLION, width=2.5)
        drawing.text(left + width, top + 6, "your timeline", "end", fill="currentColor")
    at = levels.index(peak)
    level = y0 - peak * scale
    drawing.line(left, level, left + width, level, dash="5 4")
    side = "end" if x[at] > left + width * 0.5 else "start"
    drawing.text(x[at + 1], level - 5, f"peak {number(peak)}", side, bold=True)
    # A mark for each stretch that is rebuilt.
    start = 0
    for i in range(1, n + 1):
        if i == n or numbers.phases[i] != numbers.phases[start]:
            if numbers.phases[start] == "rebuild":
                drawing.rect(x[start], y0 + 4, x[i] - x[start], 8, VERMILLION, outline=x[i] - x[start] > 3)
            start = i
    drawing.line(left, y0, left + width, y0)
    turn = x[numbers.phases.index("rebuild")]
    drawing.line(turn, y0 + 2, turn, y0 + 30)
    drawing.text(left, y0 + 28, "forward")
    drawing.text(turn + 5, y0 + 28, "backward")
    drawing.key(turn + 76, y0 + 28, VERMILLION, "rebuild")
    drawing.key(left, y0 + 48, FILLS["checkpoints"], "checkpoints")
    drawing.key(left + 112, y0 + 48, FILLS["rebuilt"], "rebuilt layers")


def _against_k(
    drawing: Drawing, numbers: CheckpointNumbers, k: int, left: float, top: float, width: float, height: float
) -> None:
    """Both axes are logarithmic: else the lowest point is lost beside the large k."""
    L, y0 = len(numbers.peaks), top + height
    levels = [*numbers.peaks, *numbers.formula]
    low, high = log(min(levels) / 2), log(max(levels) * 2)

    def x(value: float) -> float:
        return left + (width * log(value) / log(L) if L > 1 else width / 2)

    def y(value: float) -> float:
        return y0 - height * (log(value) - low) / (high - low)

    drawing.text(left, top - 8, "peak against k, in sbh (log scales)")
    for tick in (m * 10**power for power in range(-3, 7) for m in (1, 2, 5)):
        if low <= log(tick) <= high:
            drawing.faint(left, y(tick), width)
            drawing.text(left - 5, y(tick) + 4, plain(tick), "end")
    drawing.line(left, y0, left + width, y0)
    for tick in [*(2**i for i in range(8) if 2**i < L / 1.3), L]:
        drawing.line(x(tick), y0, x(tick), y0 + 4)
        drawing.text(x(tick), y0 + 18, str(tick), "middle")
    if 1 <= numbers.root <= L:
        drawing.line(x(numbers.root), top, x(numbers.root), y0, dash="2 3", width=1.3)
    drawing.path([(x(i), y(peak)) for i, peak in enumerate(numbers.peaks, 1)], stroke=ORANGE, width=4)
    drawing.path(
        [(x(i), y(peak)) for i, peak in enumerate(numbers.formula, 1)], stroke="currentColor", width=1.6, dash="5 4"
    )
    here = numbers.peaks[k - 1]
    drawing.dot(x(k), y(here), 5, ORANGE)
    words = f"k = {k}: {number(here)}"  # above the curve where it falls, below it where it rises
    if x(k) > left + width / 2:
        drawing.text(x(k) - 9, y(here) - 8, words, "end", bold=True)
    elif k < numbers.root:
        drawing.text(x(k) + 8, y(here) - 8, words, bold=True)
    else:
        drawing.text(x(k) + 10, y(here) + 17, words, bold=True)
    drawing.rect(left, y0 + 38, 14, 4, ORANGE, outline=False)
    drawing.text(left + 18, y0 + 44, "simulated")
    drawing.path([(left + 98, y0 + 40), (left + 114, y0 + 40)], stroke="currentColor", width=2, dash="5 3")
    drawing.text(left + 119, y0 + 44, "M(k) = (L/k)c + kA")
    drawing.line(left + 7, y0 + 52, left + 7, y0 + 64, dash="2 3", width=1.3)
    drawing.text(left + 18, y0 + 63, f"√(Lc/A) = {numbers.root:.2f}")


def _time(drawing: Drawing, y: float, layout: Layout) -> float:
    """Two bars: a step without and with checkpoints, in forward passes."""
    drawing.text(0, y, "time of one step, in forward passes", bold=True)
    left = 0.0 if layout.narrow else 122.0
    unit = (layout.width - left - 30) / CHECKPOINTED_STEP
    y += 10
    for words, again in (("no checkpoints", 0.0), ("any k", CHECKPOINTED_STEP - PLAIN_STEP)):
        if layout.narrow:
            y += 14
            drawing.text(0, y, words)
            y += 5
        else:
            drawing.text(left - 8, y + 14, words, "end")
        at = left
        stretches = ((1, GREY, "forward"), (again, VERMILLION, "rebuild"), (PLAIN_STEP - 1, SKY, "backward"))
        for long, fill, name in stretches:
            if long:
                drawing.rect(at, y, long * unit, 19, fill)
                drawing.text(at + long * unit / 2, y + 14, name, "middle", fill="#000000")
                at += long * unit
        drawing.text(at + 6, y + 14, number(PLAIN_STEP + again))
        y += 25
    return y


def picture(L: int, k: int, A: float, c: float = C, simulator: Simulator | None = None) -> Picture:
    """The figure for one k."""
    k = min(k, L)
    numbers = checkpoint_numbers(L, k, c, A, simulator)
    here = numbers.peaks[k - 1]
    lowest = numbers.peaks[numbers.best - 1]
    others = [i for i, peak in enumerate(numbers.peaks, 1) if peak == lowest]
    best = f"k = {' and '.join(map(str, others))}" if len(others) < 4 else f"k = {others[0]} to {others[-1]}"
    shape = f"L = {L}, c = {number(c)}, A = {number(A)} (units of sbh)"
    said = f"{shape}: with a checkpoint every {'layer' if k == 1 else f'{k} layers'} the peak is {number(here)}."
    compared = (
        f"M(k) = (L/k)c + kA gives {number(numbers.formula[k - 1])}. The lowest peak is {number(lowest)} at {best}; "
        f"√(Lc/A) = {numbers.root:.2f}. Without checkpoints {number(L * A)} are held."
    )
    time = (
        f"A step takes {number(CHECKPOINTED_STEP)} forward passes instead of {PLAIN_STEP}, whatever k: "
        f"{CHECKPOINTED_STEP / PLAIN_STEP - 1:+.0%}."
    )
    text = f"<p>{escape(said)}</p><p>{escape(compared)}</p><p>{escape(time)}</p>"
    if numbers.yours is not None:
        right = [a + b for a, b in zip(numbers.checkpoints, numbers.rebuilt, strict=True)]
        wrong = [i for i, (a, b) in enumerate(zip(numbers.yours, right, strict=True)) if abs(a - b) > 1e-9 * max(right)]
        verdict = "is the right one"
        if wrong:
            i = wrong[0]
            verdict = f"differs first after event {i + 1}: {number(numbers.yours[i])} for {number(right[i])}"
        text += f"<p>{escape(f'Your timeline {verdict}.')}</p>"
    shown = sorted({1, 2, 3, 4, 6, 8, 12, k, L} & set(range(1, L + 1)))
    rows = [[str(i), number(numbers.peaks[i - 1]), number(numbers.formula[i - 1])] for i in shown]
    text += table("Peaks in sbh", ["k", "simulated", "M(k)"], rows)
    label = f"{TITLE}. {said} {compared} {time}"
    sentence = (
        f"L = {L}, every {k}: peak {number(here)} sbh; lowest {number(lowest)} at {best}; √(Lc/A) = {numbers.root:.2f}"
    )
    return Picture(sentence, lambda layout: draw(numbers, k, label, layout), text)


def checkpoint_every_k(L: int = 24, *, k: int = 6, A: float = 34, simulator: Simulator | None = None) -> Figure:
    """One step with a checkpoint every k layers, and what other k would give. Amounts are in units of sbh.

    ``L`` layers, ``A`` for one layer's activations (a checkpoint is 2). ``simulator`` is your own
    ``memory_timeline(L, c, A, k=None)`` of exercise 4: its levels are drawn over the right ones, and the peaks are its.
    """
    amounts = [(words, value) for value, words in LAYERS.items()]
    if A not in LAYERS:
        amounts.append((number(A), A))
    if simulator is not None:  # a function that it calls may have been written anew
        checkpoint_numbers.cache_clear()
        _peaks.cache_clear()
    layers, activations = slider("Layers L", L, 1, 128), choice("A, in sbh", amounts, A)
    every = slider("k", min(k, L), 1, L)

    def show() -> Picture:
        return picture(layers.value, every.value, activations.value, simulator=simulator)

    def refit() -> None:
        every.max = layers.value

    def to_the_best() -> None:
        with suppress(ValueError):  # the drawing says what is wrong
            every.value = checkpoint_numbers(layers.value, every.value, C, activations.value, simulator).best

    return Figure(
        TITLE,
        [[layers, activations, every, button("Best k", to_the_best)]],
        show,
        {layers: refit},
    )
