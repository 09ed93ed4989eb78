"""Figure 3: a walk through the operations of one layer, each with the tensors that it keeps."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from html import escape

from trainmem.figures.amounts import gb, number, table
from trainmem.figures.frame import Area, Figure, Picture, Spots, button, slider, switch
from trainmem.figures.svg import NARROW, ORANGE, PURPLE, VERMILLION, WIDE, Drawing, Layout, length_of
from trainmem.figures.yours import Unwritten, YourFunction, asked, drawable
from trainmem.memory import MODELS, RULES, Tensor
from trainmem_solutions import activation_bytes

TITLE = "Walk through one layer"

#: Operation → its name in the diagram.
NAMES = {
    "ln1": "LayerNorm 1",
    "ln2": "LayerNorm 2",
    "norm1": "RMSNorm 1",
    "norm2": "RMSNorm 2",
    "q_proj": "Q = x W_Q",
    "k_proj": "K = x W_K",
    "v_proj": "V = x W_V",
    "rotary_q": "rotate Q",
    "rotary_k": "rotate K",
    "scores": "Q Kᵀ",
    "scale": "divide by √d",
    "softmax": "softmax",
    "attention_dropout": "dropout",
    "weighted": "times V",
    "attention": "FlashAttention",
    "proj": "times W_O",
    "dropout1": "dropout",
    "add1": "add the input",
    "fc1": "MLP, first",
    "gelu": "GeLU",
    "fc2": "MLP, second",
    "gate": "MLP, gate",
    "up": "MLP, up",
    "silu": "SiLU",
    "gated": "gate times up",
    "down": "MLP, down",
    "dropout2": "dropout",
    "add2": "add",
}

Counter = Callable[..., float]


@dataclass(frozen=True)
class Stop:
    """One operation of the walk: what it keeps that nothing before it kept, and the totals so far.

    ``tensors`` are (name, bytes as an expression, amount, whether it is counted in as²b instead of sbh).
    """

    operation: str
    name: str
    kind: str
    second_half: bool
    tensors: tuple[tuple[str, str, float, bool], ...]
    sbh: float
    as2b: float


@dataclass(frozen=True)
class Walk:
    """A layer's stops, and its shape in one phrase."""

    stops: tuple[Stop, ...]
    shape: str

    @property
    def first(self) -> int:
        """How many operations the attention half has."""
        return sum(not stop.second_half for stop in self.stops)


@lru_cache(maxsize=16)
def walk_numbers(style: str = "gpt", fused: bool = False, dropout: bool = True) -> Walk:
    """The operations of a layer in forward order. Totals are in units of sbh and of as²b.

    The GPT layer is that of the 1.3B example, the Llama-style layer LLaMA 7B's (which has no dropout).
    """
    attention = "fused" if fused else "eager"
    if style == "llama":
        layer, shape = MODELS["llama-7b"].layer(4096, attention=attention), "LLaMA 7B's layer (f = 2.6875 h)"
    else:
        layer, shape = MODELS["1.3b"].layer(b=8, attention=attention, dropout=dropout), "GPT layer"
    kept: dict[str, list[Tensor]] = {}
    for tensor in layer.kept:
        kept.setdefault(tensor.kept_by, []).append(tensor)
    stops, sbh, as2b = [], 0.0, 0.0
    for op in layer.operations:
        here = kept.get(op.name, [])
        if op.kind == "copy":  # another layout of the same numbers
            continue
        tensors = []
        for tensor in here:
            core = tensor.part == "core"
            amount = tensor.nbytes / (layer.as2b if core else layer.sbh)
            as2b += amount * core
            sbh += amount * (not core)
            tensors.append((tensor.name, tensor.expression, amount, core))
        second = any(stop.operation == "add1" for stop in stops)
        stops.append(Stop(op.name, NAMES[op.name], op.kind, second, tuple(tensors), sbh, as2b))
    return Walk(tuple(stops), shape)


@dataclass(frozen=True)
class Plan:
    """Where a layout puts things: the corner of each operation's box, the boxes' size, the totals, and the height.

    ``row`` is the distance from one box's top to the next one's.
    """

    places: tuple[tuple[float, float], ...]
    box: tuple[float, float]
    row: float
    totals: tuple[float, float, float]
    height: float


TOP = 22.0
GAP = 6.0
SECOND_HALF = 404.0  # where the MLP's column begins, if there is room for two


@lru_cache(maxsize=16)
def plan(first: int, count: int, layout: Layout, bars: int = 2) -> Plan:
    """Places for ``count`` operations, the ``first`` of which make the attention half, and ``bars`` of totals.

    On a small screen the rows are further apart: a finger needs 24 pixels.
    """
    row = 29.0 if layout.narrow else 27.0
    aside = [i >= first and not layout.narrow for i in range(count)]
    places = tuple((SECOND_HALF, TOP + row * (i - first)) if aside[i] else (12.0, TOP + row * i) for i in range(count))
    below = places[-1][1] + row
    totals = (12.0, below + 18, layout.width - 24.0) if layout.narrow else (SECOND_HALF, below + 22, 306.0)
    height = max(totals[1] + 44 * bars - 18, max(y for _, y in places) + row)
    return Plan(places, (112.0 if layout.narrow else 122.0, row - GAP), row, totals, height)


def draw(walk: Walk, at: int, label: str, layout: Layout, bars: int = 2, yours: tuple[float, int] | None = None) -> str:
    """The picture after ``at`` operations: the diagram, what has been kept, and the two running totals.

    ``yours`` are the bytes that a reader's function gives for the whole layer, and those of the list: a third bar, for
    which ``bars`` leaves room.
    """
    drawing = Drawing(layout)
    first = walk.first
    where = plan(first, len(walk.stops), layout, bars)
    places, (box, high) = where.places, where.box
    _skip(drawing, places[0], places[first - 1])
    _skip(drawing, places[first], places[-1])
    drawing.text(12, 13, "attention, from the layer input down")
    if not layout.narrow:
        drawing.text(SECOND_HALF, 13, "MLP")
    for i, (stop, (x, y)) in enumerate(zip(walk.stops, places, strict=True), 1):
        done = i <= at
        if i not in (1, first + 1):
            drawing.line(x + box / 2, y - GAP, x + box / 2, y)
        drawing.rect(x, y, box, high, "currentColor", opacity=0.12 if done else 0.02)
        if i == at:
            drawing.parts.append(
                f'<rect class="now" x="{x}" y="{y}" width="{box}" height="{high}" fill="none" '
                'stroke="currentColor" stroke-width="2.5"/>'
            )
        drawing.text(x + box / 2, y + 15, stop.name, "middle", bold=i == at)
        if done:
            _kept(drawing, stop, x + box + 6, y, layout)
    x, bottom, width = where.totals
    stop = walk.stops[at - 1] if at else None
    last = walk.stops[-1]
    for unit, fill, total, whole in (
        ("sbh", ORANGE, stop.sbh if stop else 0, last.sbh),
        ("as²b", PURPLE, stop.as2b if stop else 0, last.as2b),
    ):
        drawing.text(x, bottom, f"{number(total)} {unit}", bold=True)
        drawing.text(x + width, bottom, f"of {number(whole)}", "end")
        drawing.rect(x, bottom + 6, width, 14, "none")
        if whole:
            drawing.rect(x, bottom + 6, width * total / whole, 14, fill)
        bottom += 44
    if yours is not None:
        own, right = yours
        drawing.text(x, bottom, f"your layer {gb(own)}", bold=True)
        drawing.text(x + width, bottom, f"of {gb(right)}", "end")
        drawing.rect(x, bottom + 6, width * own / max(own, right), 14, VERMILLION)
        drawing.rect(x, bottom + 6, width * right / max(own, right), 14, "none")
    return drawing.svg(label, where.height, "narrow" if layout.narrow else "wide")


def areas(walk: Walk, layout: Layout, bars: int = 2) -> list[Area]:
    """Each operation's box in the picture; what lies between two boxes goes to both, so that a finger finds one."""
    where = plan(walk.first, len(walk.stops), layout, bars)
    width, height = layout.width, where.height
    box, high = where.box
    return [(x / width, (y - GAP / 2) / height, box / width, (high + GAP) / height) for x, y in where.places]


def _skip(drawing: Drawing, start: tuple[float, float], end: tuple[float, float]) -> None:
    """The residual connection: past the operations to the addition."""
    (x, y), (_, below) = start, end
    drawing.path([(x, y + 4), (x - 8, y + 4), (x - 8, below + 10), (x, below + 10)], stroke="currentColor", dash="3 3")


def _kept(drawing: Drawing, stop: Stop, x: float, y: float, layout: Layout) -> None:
    """What the operation keeps, to its right: a square for each unit's colour, and the amount."""
    if not stop.tensors:
        drawing.text(x, y + 15, "–")
        return
    core = [amount for *_, amount, core in stop.tensors if core]
    rest = [amount for *_, amount, core in stop.tensors if not core]
    names = ", ".join(name for name, *_ in stop.tensors)
    names = "mask" if names.endswith(".mask") else names.replace("dropped attention weights", "weights")
    amounts = [(sum(rest), ORANGE, "sbh")] * bool(rest) + [(sum(core), PURPLE, "as²b")] * bool(core)
    for amount, fill, unit in amounts:
        words = f"+{number(amount)} {unit}"
        drawing.rect(x, y + 4, 11, 11, fill)
        drawing.text(x + 15, y + 15, words, bold=True)
        x += 18 + 8.8 * len(words)
    if not layout.narrow:
        room = (layout.width if stop.second_half else SECOND_HALF - 8) - x
        drawing.text(x, y + 15, names if length_of(names, 13) <= room else names.replace(" output", ""))


def picture(style: str, fused: bool, dropout: bool, at: int, counter: Counter | None = None) -> Picture:
    """The figure after ``at`` operations."""
    walk = walk_numbers(style, fused, dropout and style == "gpt")
    at = min(at, len(walk.stops))
    last = walk.stops[-1]
    whole = f"{number(last.sbh)} sbh" + (f" + {number(last.as2b)} as²b" if last.as2b else "")
    attention = "with FlashAttention" if fused else "without FlashAttention"
    drop = "" if style == "llama" else ", dropout on" if dropout else ", dropout off"
    what = f"{walk.shape} {attention}{drop}"
    if at:
        stop = walk.stops[at - 1]
        now = (
            f"Operation {at} of {len(walk.stops)}, {stop.name}: {_said(stop)} "
            f"So far {number(stop.sbh)} sbh and {number(stop.as2b)} as²b."
        )
    else:
        now = f"Nothing has run yet: press Next. The layer has {len(walk.stops)} operations."
    label = f"{TITLE}: {what}. {now} The whole layer keeps {whole}."
    rows = [
        [
            f"{i}. {escape(stop.name)}",
            escape(", ".join(f"{name} ({expression} bytes)" for name, expression, *_ in stop.tensors) or "nothing new"),
            number(stop.sbh),
            number(stop.as2b),
        ]
        for i, stop in enumerate(walk.stops[:at], 1)
    ]
    text = f"<p>{escape(now)}</p><p>{escape(what)}: the whole layer keeps {escape(whole)}.</p>"
    yours, said = None, ""
    if counter is not None:
        yours, said = _compared(counter, style, fused, dropout)
        text += f"<p>{escape(said)}</p>"
    if rows:
        text += table("Kept so far", ["operation", "keeps", "sbh", "as²b"], rows, words=1)
    sentence = f"{what}: {whole} a layer" + (f"; yours {gb(yours[0])} of {gb(yours[1])}" if yours else "")
    label = f"{label} {said}".strip()
    return Picture(sentence, lambda layout: draw(walk, at, label, layout, bars(counter), yours), text)


def bars(counter: Counter | None) -> int:
    """How many totals there is room for: with a reader's function also one for what it gives."""
    return 2 if counter is None else 3


def _said(stop: Stop) -> str:
    rule, why = RULES[stop.kind]
    if not stop.tensors:
        if rule == "nothing" or stop.kind == "rotary":
            return f"keeps nothing that grows with the layer: {why}."
        return f"keeps {rule}, which is held already."
    names = ", ".join(
        f"{name} ({number(amount)} {'as²b' if core else 'sbh'})" for name, _, amount, core in stop.tensors
    )
    return f"keeps {rule}, because {why}. New: {names}."


def _compared(counter: Counter, style: str, fused: bool, dropout: bool) -> tuple[tuple[float, int] | None, str]:
    """A reader's bytes and the list's, if there are any, and what to say of them. Raises `Unwritten` for a stub."""
    if style == "llama" or not dropout:
        return None, "activation_bytes counts the GPT layer with dropout: switch back to compare."
    model, mode = MODELS["1.3b"], "flash" if fused else "baseline"
    shape = (2048, 8, model.h, model.a)
    right = activation_bytes(*shape, mode)
    try:
        yours = asked(lambda: drawable(counter(*shape, mode)))
    except Unwritten:
        raise
    except YourFunction as error:
        return None, str(error)
    same = abs(yours - right) <= 1e-9 * right
    return (yours, right), f"Your function gives {yours:,.0f} bytes for {mode}, the list {right:,}: " + (
        "the same." if same else "not the same."
    )


def layer_walk(
    style: str = "gpt",
    *,
    flash: bool = False,
    dropout: bool = True,
    step: int = 0,
    counter: Counter | None = None,
) -> Figure:
    """A walk through one layer's operations, with what each keeps and two running totals, in sbh and as²b.

    ``style`` is ``"gpt"`` or ``"llama"``; ``flash`` and ``dropout`` are switches; ``step`` is the operation to begin
    at. ``counter`` is your own ``activation_bytes(s, b, h, a, mode)`` of exercise 3, held against the list. A click on
    an operation in the picture goes there.
    """
    if style not in ("gpt", "llama"):
        raise ValueError(f"style is 'gpt' or 'llama', not {style!r}")
    fused, drop, llama = (
        switch("FlashAttention", flash),
        switch("Dropout", dropout and style == "gpt"),
        switch("Llama-style layer", style == "llama"),
    )
    drop.disabled = style == "llama"
    at = slider("Operation", step, 0, len(walk_numbers(style, flash, dropout and style == "gpt").stops))
    operations = Spots(lambda i: setattr(at, "value", i + 1))

    def kind() -> str:
        return "llama" if llama.value else "gpt"

    def show() -> Picture:
        return picture(kind(), fused.value, drop.value, at.value, counter)

    def now() -> Walk:
        return walk_numbers(kind(), fused.value, drop.value and not llama.value)

    def refit() -> None:
        drop.disabled = llama.value
        everything = at.value == at.max
        walk = now()
        at.max = len(walk.stops)
        if everything:
            at.value = at.max
        places = [areas(walk, layout, bars(counter)) for layout in (WIDE, NARROW)]
        operations.lay([f"{i}. {stop.name}" for i, stop in enumerate(walk.stops, 1)], *places)
        mark()

    def mark() -> None:
        operations.mark(at.value - 1 if at.value else None)

    def step_by(operations: int) -> None:
        at.value = min(max(at.value + operations, 0), at.max)

    refit()
    return Figure(
        TITLE,
        [
            [fused, drop, llama],
            [
                at,
                button("Back", lambda: step_by(-1)),
                button("Next", lambda: step_by(1)),
                button("All", lambda: step_by(at.max)),
            ],
        ],
        show,
        {fused: refit, drop: refit, llama: refit, at: mark},
        operations,
    )
