"""Figure 5: does it fit on one GPU, what each fix moves, and the ladder of the cheapest one."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from html import escape
from typing import Any

from trainmem.figures.amounts import gb, in_gb, number, table
from trainmem.figures.frame import Figure, Picture, button, choice, field, switch
from trainmem.figures.svg import FILLS, SKY, Drawing, Layout, length_of, on, plain, ticks
from trainmem.figures.yours import Unwritten, YourFunction, asked, drawable
from trainmem.memory import GPUS, MODELS, model_states
from trainmem_solutions import cheapest_fix, peak_bytes

TITLE = "Does it fit?"

#: Part of the GPU's memory that is kept free.
FREE = 0.15

#: Preset → s and b that it opens with; other models open at their context and one sequence.
OPENING = {"1.3b": (2048, 8)}

NUMBERS_OF_GPUS = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256, 512, 1024)

#: Rung of `cheapest_fix` → what people call it.
RUNGS = {
    "nothing": "nothing",
    "flash": "FlashAttention",
    "zero1": "ZeRO-1",
    "zero2": "ZeRO-2",
    "zero3": "ZeRO-3",
    "micro-batch": "a smaller micro-batch",
    "checkpoint": "full checkpointing",
    "tensor": "tensor + sequence parallelism",
    "offload": "offload of the optimizer",
}

PARTS = ("weights", "gradients", "optimizer", "activations", "logits")

Ladder = Callable[..., tuple]


@dataclass(frozen=True)
class Case:
    """A model, its tokens, and the GPUs that it is to fit on."""

    model: str
    s: int
    b: int
    gpu: str
    n_gpus: int = 1

    @property
    def shape(self) -> tuple[int, int, int, int, int, int, int]:
        """The first seven arguments of `peak_bytes`."""
        model = MODELS[self.model]
        return model.parameters, model.L, self.s, self.b, model.h, model.a, model.V

    @property
    def gpu_bytes(self) -> int:
        """Memory of one GPU."""
        return GPUS[self.gpu].memory_bytes


@dataclass(frozen=True)
class Fixes:
    """Which fixes are on. ``parts_of_b`` is how often the micro-batch is halved."""

    flash: bool = False
    checkpoint: bool = False
    zero: int = 0
    halvings: int = 0
    t: int = 1
    offload: bool = False

    @property
    def mode(self) -> str:
        """As `peak_bytes` calls it."""
        return "full" if self.checkpoint else "flash" if self.flash else "baseline"


@lru_cache(maxsize=1024)
def fit_numbers(case: Case, fixes: Fixes) -> dict[str, float]:
    """Part of one GPU's memory → bytes. Their sum is `peak_bytes`.

    Raises ``ValueError`` where t does not divide the number of GPUs.
    """
    psi, L, s, b, h, a, V = case.shape
    b = max(b >> fixes.halvings, 1)
    options = {"mode": fixes.mode, "zero": fixes.zero, "n_gpus": case.n_gpus, "t": fixes.t, "offload": fixes.offload}
    peak = peak_bytes(psi, L, s, b, h, a, V, **options)
    # The logits are what a second vocabulary of the same size would add.
    logits = peak_bytes(psi, L, s, b, h, a, 2 * V, **options) - peak
    parts = dict.fromkeys(PARTS, 0.0)
    for line in model_states(psi, zero=fixes.zero, n_gpus=case.n_gpus, t=fixes.t, offload=fixes.offload):
        parts[line.category] += line.nbytes
    parts["logits"] = logits
    parts["activations"] = peak - sum(parts.values())
    return parts


def ladder_of(
    case: Case, limited_by: str = "compute", ladder: Ladder = cheapest_fix
) -> tuple[tuple[str, Fixes, float], ...]:
    """The rungs of ``ladder`` up to the first that fits: name, fixes that are then on, and the peak.

    The rungs are asked out of the function itself, by GPUs that are a little too small for the rung before; so a rung
    that gains nothing does not appear. What a rung sets is found by trying which fix gives the peak that it names.
    """
    rungs: list[tuple[str, Fixes, float]] = []
    fixes, budget = Fixes(), 1e30
    while True:
        name, peak = asked_at(case, budget, limited_by, ladder)
        if name is None or len(rungs) > 40:
            return tuple(rungs)
        fixes = _after(case, fixes, name, peak)
        rungs.append((name, fixes, peak))
        if peak <= (1 - FREE) * case.gpu_bytes:
            return tuple(rungs)
        budget = peak / (1 - FREE) * (1 - 1e-9)


def asked_at(case: Case, gpu_bytes: float, limited_by: str, ladder: Ladder) -> tuple[str | None, float]:
    """The rung and the peak that a ladder gives. Raises `YourFunction` where it gives no such pair."""

    def pair() -> tuple[str | None, float]:
        name, peak = ladder(*case.shape, gpu_bytes, n_gpus=case.n_gpus, limited_by=limited_by, free=FREE)
        return (None if name is None else str(name)), drawable(peak)

    return asked(pair)


def _after(case: Case, fixes: Fixes, rung: str, peak: float) -> Fixes:
    """The fixes after a rung, given those of the rung before."""
    changes: dict[str, list[dict[str, Any]]] = {
        "nothing": [{}],
        "flash": [{"flash": True}],
        "zero1": [{"zero": 1}],
        "zero2": [{"zero": 2}],
        "zero3": [{"zero": 3}],
        "checkpoint": [{"checkpoint": True}],
        "micro-batch": [{"halvings": n} for n in range(case.b.bit_length())],
        "tensor": [{"t": t} for t in (2, 4, 8) if case.n_gpus % t == 0],
        "offload": [{"offload": True}],
    }
    if rung not in changes:
        raise YourFunction(f"There is no rung {rung!r}; there are {', '.join(RUNGS)}")
    # Rungs that gain nothing were passed over silently: what they set stays on, or is on already.
    halved = {"halvings": case.b.bit_length() - 1}
    before: list[dict[str, Any]] = [{}, {"zero": 2}, halved, halved | {"zero": 2}]
    tries = [replace(fixes, **(extra | change)) for extra in before for change in changes[rung]]
    gaps = [abs(sum(fit_numbers(case, one).values()) - peak) for one in tries]
    return tries[gaps.index(min(gaps))]


def draw(case: Case, fixes: Fixes, label: str, layout: Layout, yours: tuple[str | None, float] | None = None) -> str:
    """The picture: one GPU as it is and with the fixes, against its memory and the line at 15% free.

    ``yours`` is the rung and the peak that a reader's ladder gives.
    """
    drawing = Drawing(layout)
    plainly, now = fit_numbers(case, Fixes()), fit_numbers(case, fixes)
    own = yours[1] if yours else 0
    high = max(sum(plainly.values()), sum(now.values()), case.gpu_bytes, own) / 1e9 * 1.04
    left, right = 0.0, layout.width - 4.0
    scale = (right - left) / high / 1e9
    y = 44.0
    capacity, line = left + case.gpu_bytes * scale, left + case.gpu_bytes * (1 - FREE) * scale
    bars = 74.0
    for words, parts in (("no fix", plainly), ("with the fixes", now)):
        total = sum(parts.values())
        drawing.text(left, y + 12, f"{words}: {gb(total)}", bold=True)
        x = left
        for name in PARTS:
            long = parts[name] * scale
            if long > 0:
                drawing.rect(x, y + 18, long, 34, FILLS[name])
            words = _short(name)
            if long > length_of(words, layout.size) + 8:
                drawing.text(x + 6, y + 40, words, fill=on(FILLS[name]))
            x += long
        y += bars
    if yours:
        drawing.text(left, y + 12, f"your cheapest_fix: {yours[0] or 'nothing fits'}, {gb(own)}", bold=True)
        drawing.rect(left, y + 18, own * scale, 34, SKY)
        y += bars
    drawing.line(left, y, right, y)
    for tick in ticks(high, 4 if layout.narrow else 8):
        drawing.line(left + tick * 1e9 * scale, y, left + tick * 1e9 * scale, y + 4)
        x = left + tick * 1e9 * scale
        drawing.text(x, y + 18, plain(tick), "start" if tick == 0 else "end" if x > right - 16 else "middle")
    drawing.text(right, y + 34, "GB on one GPU", "end")
    # Where a line would cross the words above the bars, it stands at the bars alone.
    stretches = (
        [(34.0, y)]
        if line > 200
        else [(34.0, 44.0)] + [(44 + bars * i + 15, 44 + bars * i + 56) for i in range(3 if yours else 2)]
    )
    for start, end in stretches:
        drawing.line(capacity, start, capacity, end, width=2.5)
        drawing.line(line, start, line, end, width=1.8, dash="6 4")
    size = number(case.gpu_bytes / 1e9)
    gpu = f"{GPUS[case.gpu].title.removesuffix(f' {size} GB')}: {size} GB"
    free = f"15% free: {number(case.gpu_bytes * (1 - FREE) / 1e9)} GB"
    if capacity > layout.width / 2:
        drawing.text(min(capacity + 2, right), 12, gpu, "end", bold=True)
        drawing.text(min(line + 2, right), 28, free, "end")
    else:
        drawing.text(capacity - 2, 12, gpu, bold=True)
        drawing.text(line - 2 if line > 4 else 0, 28, free)
    y += 58
    verdict = _verdict(case, sum(now.values()))
    drawing.text(0, y, verdict, bold=True)
    y += 22
    for name in PARTS:
        before, after = plainly[name], now[name]
        moved, stays = abs(after - before) > 1, "" if fixes == Fixes() else "does not move"
        drawing.key(0, y, FILLS[name], _long(name))
        x = 132.0 if layout.narrow else 160.0
        drawing.text(x, y, f"{in_gb(before)} → {in_gb(after)} GB" if moved else f"{gb(after)}", bold=moved)
        if not layout.narrow:
            drawing.text(x + 180, y, f"moves, by {gb(abs(after - before))}" if moved else stays)
        elif stays and not moved:
            drawing.text(layout.width - 4, y, "stays", "end")
        y += 21
    return drawing.svg(label, y, "narrow" if layout.narrow else "wide")


def _short(name: str) -> str:
    return {"optimizer": "optimizer"}.get(name, name)


def _long(name: str) -> str:
    return {"optimizer": "optimizer states"}.get(name, name)


def _verdict(case: Case, total: float) -> str:
    free = 1 - total / case.gpu_bytes
    if total > case.gpu_bytes:
        return f"Does not fit: {gb(total - case.gpu_bytes)} too much."
    if total > (1 - FREE) * case.gpu_bytes:
        return f"Over the 15% line: only {free:.1%} stays free."
    return f"Fits, with {free:.1%} free."


def named(case: Case, fixes: Fixes) -> str:
    """The fixes in words."""
    on_ = [RUNGS["flash"]] * fixes.flash + [f"ZeRO-{fixes.zero}"] * bool(fixes.zero)
    if fixes.halvings:
        on_.append(f"micro-batch {max(case.b >> fixes.halvings, 1)}")
    on_ += [RUNGS["checkpoint"]] * fixes.checkpoint + [f"t = {fixes.t}"] * (fixes.t > 1)
    on_ += [RUNGS["offload"]] * fixes.offload
    return ", ".join(on_) or "no fix"


def picture(
    case: Case,
    fixes: Fixes,
    before: Fixes = Fixes(),
    limited_by: str = "compute",
    ladder: Ladder = cheapest_fix,
) -> Picture:
    """The figure; ``before`` are the fixes that were on a moment ago."""
    model, gpu = MODELS[case.model], GPUS[case.gpu]
    plainly, was, now = (fit_numbers(case, one) for one in (Fixes(), before, fixes))
    total = sum(now.values())
    gpus = "one" if case.n_gpus == 1 else f"each of {case.n_gpus}"
    what = (
        f"{_capital(model.title)}, {case.s:,} tokens, micro-batch {case.b}, on {gpus} {gpu.title}, {named(case, fixes)}"
    )
    verdict = _verdict(case, total)
    parts = ", ".join(f"{_long(name)} {gb(now[name])}" for name in PARTS)
    text = f"<p>{escape(f'{what}: {gb(total)}. {verdict}')}</p>"
    if before != fixes:
        moved = [
            f"{_long(name)} {in_gb(was[name])} → {gb(now[name])}" for name in PARTS if abs(was[name] - now[name]) > 1
        ]
        still = [_long(name) for name in PARTS if abs(was[name] - now[name]) <= 1]
        words = ("What moved: " + ", ".join(moved) if moved else "Nothing moved") + (
            "; what did not: " + ", ".join(still) if still and moved else ""
        )
        text += f"<p>{escape(words)}.</p>"
    yours, answer = _answer(case, limited_by, ladder)
    yours = yours if ladder is not cheapest_fix else None
    text += f"<p>{escape(answer)}</p>"
    rows = [[_long(part), in_gb(plainly[part]), in_gb(now[part])] for part in PARTS]
    rows.append(["in all", in_gb(sum(plainly.values())), in_gb(total)])
    text += table("One GPU, in GB", ["part", "no fix", "with the fixes"], rows)
    if model.style == "llama":
        own = model.layer(case.s, 1, attention="fused")
        text += (
            "<p>Activations here are those of a GPT layer of this width, as in exercise 5: 34 sbh with "
            f"FlashAttention. This model's own layer keeps {number(own.kept_bytes / own.sbh)} sbh.</p>"
        )
    label = f"{TITLE} {what}: {parts}; {gb(total)} in all. {verdict} {answer}"
    short = named(case, fixes).replace(RUNGS["flash"], "flash").replace(RUNGS["checkpoint"], "checkpoints")
    short = short.replace("micro-batch", "b =").replace(RUNGS["offload"], "offload")
    ends = (
        "Does not fit." if total > case.gpu_bytes else "Fits." if verdict.startswith("Fits") else "Over the 15% line."
    )
    sentence = f"{_capital(model.title)}, {gpu.title} × {case.n_gpus}: {gb(total)} with {short}. {ends}"
    own = f" Yours: {yours[0] or 'nothing fits'}, {gb(yours[1])}." if yours else ""
    sentence += own if len(sentence + own) <= 110 else ""
    return Picture(sentence, lambda layout: draw(case, fixes, label, layout, yours), text)


def _answer(case: Case, limited_by: str, ladder: Ladder) -> tuple[tuple[str | None, float] | None, str]:
    """The rung and the peak, if there are any, and what to say of them. Raises `Unwritten` for a stub."""
    try:
        name, peak = asked_at(case, case.gpu_bytes, limited_by, ladder)
    except Unwritten:
        raise
    except YourFunction as error:
        return None, str(error)
    whose = "The" if ladder is cheapest_fix else "Your"
    if name is None:
        return (name, peak), f"{whose} ladder ends without a fit: {gb(peak)} with everything on."
    return (name, peak), f"{whose} cheapest fix is {RUNGS.get(name, name)}: {gb(peak)}."


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]


def does_it_fit(
    preset: str = "1.3b",
    *,
    gpu: str = "a100-80",
    n_gpus: int = 1,
    s: int | None = None,
    b: int | None = None,
    ladder: Ladder | None = None,
) -> Figure:
    """One GPU as a stacked bar, its memory and the line at 15% free; a switch for each fix; the ladder, rung by rung.

    ``preset`` is a key of `trainmem.memory.MODELS`, ``gpu`` one of `trainmem.memory.GPUS`; ``s`` tokens, micro-batch
    ``b``. ``ladder`` is your own ``cheapest_fix(psi, L, s, b, h, a, V, gpu_bytes, n_gpus, limited_by, free)`` of
    exercise 5: the button then climbs its rungs.
    """
    for value, known, what in ((preset, MODELS, "preset"), (gpu, GPUS, "gpu")):
        if value not in known:
            raise ValueError(f"{what} is one of {', '.join(known)}, not {value!r}")
    if n_gpus < 1:
        raise ValueError(f"n_gpus is a whole number of at least 1, not {n_gpus!r}")
    climb = ladder or cheapest_fix
    opening = OPENING.get(preset, (MODELS[preset].context, 1))
    models = choice("Model", [(_capital(m.title), name) for name, m in MODELS.items()], preset)
    gpus = choice("GPU", [(f"{g.title} ({g.memory_bytes // 10**9} GB)", name) for name, g in GPUS.items()], gpu)
    count = choice("Number of GPUs", [(str(n), n) for n in sorted({*NUMBERS_OF_GPUS, n_gpus})], n_gpus)
    limit = choice("Limited by", [("compute", "compute"), ("communication", "communication")], "compute")
    tokens, batch = field("s", s or opening[0], 1, 1_000_000), field("b", b or opening[1], 1, 65536)
    flash = switch(RUNGS["flash"], False)
    zero = choice("ZeRO", [("off", 0), ("stage 1", 1), ("stage 2", 2), ("stage 3", 3)], 0)
    halvings = choice("Micro-batch", [("b", 0)], 0)
    checkpoint = switch("Full checkpointing", False)
    tensor = choice("Tensor parallel t", [("1", 1)], 1)
    offload = switch("Offload the optimizer", False)
    moved = {"before": Fixes(), "now": Fixes()}

    def case() -> Case:
        return Case(models.value, tokens.value, batch.value, gpus.value, count.value)

    def fixes() -> Fixes:
        return Fixes(flash.value, checkpoint.value, zero.value, halvings.value, tensor.value, offload.value)

    def show() -> Picture:
        return picture(case(), fixes(), moved["before"], limit.value, climb)

    def options() -> None:
        """What can be chosen: halvings of b, and degrees that divide the GPUs."""
        kept_b, kept_t = halvings.value, tensor.value
        possible = [(str(batch.value >> n), n) for n in range(batch.value.bit_length())]
        degrees = [(str(t), t) for t in (1, 2, 4, 8) if count.value % t == 0]
        halvings.options, tensor.options = possible, degrees
        halvings.value = kept_b if any(n == kept_b for _, n in possible) else 0
        tensor.value = kept_t if any(t == kept_t for _, t in degrees) else 1

    def set_to(wanted: Fixes) -> None:
        with figure.settings():
            flash.value, checkpoint.value, zero.value = wanted.flash, wanted.checkpoint, wanted.zero
            halvings.value, tensor.value, offload.value = wanted.halvings, wanted.t, wanted.offload
            fixed()

    def fixed() -> None:
        moved["before"], moved["now"] = moved["now"], fixes()

    def started_anew() -> None:
        options()
        moved["before"] = moved["now"] = fixes()

    def preset_chosen() -> None:
        model = MODELS[models.value]
        tokens.value, batch.value = OPENING.get(models.value, (model.context, 1))
        started_anew()

    def next_rung() -> None:
        try:
            climbed = ladder_of(case(), limit.value, climb)
        except YourFunction:
            return  # the drawing says what is wrong
        rungs = [rung for _, rung, _ in climbed]
        at = rungs.index(fixes()) if fixes() in rungs else -1
        set_to(rungs[min(at + 1, len(rungs) - 1)] if rungs else Fixes())

    options()
    of_fixes = [flash, zero, halvings, checkpoint, tensor, offload]
    figure = Figure(
        TITLE,
        [
            [models, tokens, batch, gpus, count],
            of_fixes,
            [limit, button("Climb one rung", next_rung), button("No fix", lambda: set_to(Fixes()))],
        ],
        show,
        dict.fromkeys(of_fixes, fixed)
        | dict.fromkeys((tokens, batch, gpus, count), started_anew)
        | {models: preset_chosen},
    )
    return figure
