"""Pictures of the experiment, drawn by matplotlib: each with a sentence that says what it shows.

They are made for a narrow column (400 pixels) and bring their own light ground, so that they read in dark mode too.
"""

import base64
import html
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from PIL import Image

from trainmem.measure.checkpointing import LAYERS, SETTINGS, Case, follow, predict, step
from trainmem.measure.progress import Run
from trainmem.measure.quantities import part, size
from trainmem.measure.results import Results

#: Okabe and Ito's colours (2008), told apart with any colour vision; grey for limits.
BLUE, ORANGE, GREEN, VERMILION, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9"
GREY, INK = "#666666", "#222222"

_COLOURS = {"no checkpoints": VERMILION, "every 1": BLUE, "selective": GREEN, "fused": ORANGE}

#: The same as words on white: two of the colours are too light to be read.
_WORDS = _COLOURS | {"no checkpoints": "#A84700", "selective": "#00704F", "fused": "#8A5F00"}


@dataclass(frozen=True)
class Picture:
    """A drawing and the sentence that says the same; in a notebook an image with that as its alternative text."""

    figure: Figure
    text: str

    @property
    def png(self) -> bytes:
        """The drawing, 800 pixels wide, in a palette (a third of the bytes)."""
        full, small = io.BytesIO(), io.BytesIO()
        self.figure.savefig(full, format="png", dpi=160, facecolor="white")
        Image.open(full).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(small, "png", optimize=True)
        return small.getvalue()

    def _repr_html_(self) -> str:
        text = html.escape(self.text, quote=True)
        data = base64.b64encode(self.png).decode()
        return (
            f'<figure style="margin:0;max-width:600px"><img alt="{text}" style="width:100%;height:auto" '
            f'src="data:image/png;base64,{data}"><figcaption>{text}</figcaption></figure>'
        )

    def __repr__(self) -> str:
        return self.text


def _figure(title: str, height: float = 3.6, rows: int = 1) -> tuple[Figure, Sequence[Axes]]:
    figure = Figure(figsize=(5, height), layout="constrained")
    axes = [figure.add_subplot(rows, 1, row + 1) for row in range(rows)]
    figure.suptitle(title, fontsize=12, color=INK, x=0.01, ha="left")
    for ax in axes:
        ax.tick_params(labelsize=11, colors=INK)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color="#DDDDDD", linewidth=0.8)
        ax.set_axisbelow(True)
    return figure, axes


def _scale(nbytes: float) -> tuple[float, str]:
    return (1e9, "GB") if nbytes >= 1e8 else (1e6, "MB")


def _card(ax: Axes, limit: float, name: str) -> None:
    ax.axhline(limit, color=GREY, linewidth=1.5, linestyle=(0, (4, 2)))
    ax.annotate(name, (0.01, limit), (0, 3), ("axes fraction", "data"), "offset points", fontsize=11, color=GREY)


def _marks(ax: Axes, x: Sequence[float], records: Sequence[dict[str, Any] | None], unit: float, colour: str) -> None:
    """Dots for what was measured; crosses, at the height that was predicted, for what ran out of memory."""
    for where, record in zip(x, records, strict=True):
        if record is None:
            continue
        if record["outcome"] == "measured":
            ax.plot(where, record["measured_bytes"] / unit, "o", color=colour, markersize=8, markeredgecolor="white")
        else:
            ax.plot(where, record["predicted_bytes"] / unit, "x", color=colour, markersize=9, markeredgewidth=2.5)


_KEY = "Lines: predicted.  Dots: measured.  Crosses: out of memory."


def by_length(run: Run, names: Iterable[str] = ("no checkpoints", "selective", "fused", "every 1")) -> Picture:
    """Peaks over the sequence length, a line for each setting."""
    lengths, names = run.shapes.lengths, tuple(names)
    unit, word = _scale(run.device.limit_bytes / 4)
    figure, (ax,) = _figure(f"Peak of a step in {word}, by sequence length", 4.0)
    ends = []
    for name in names:
        said = [predict(run.device, run.shapes, Case(s, SETTINGS[name])).predicted_bytes for s in lengths]
        dashes = (0, (3, 3)) if name == "fused" else "-"  # it lies upon the line of selective recomputation
        ax.plot(lengths, [x / unit for x in said], color=_COLOURS[name], linewidth=2, linestyle=dashes)
        _marks(ax, lengths, [run.results.get(s, name) for s in lengths], unit, _COLOURS[name])
        ends.append((said[-1] / unit, name))
    ax.set_xscale("log", base=2)
    ax.set_xticks(lengths, [f"{s:,}" for s in lengths])
    ax.minorticks_off()
    ax.set_xlim(lengths[0] * 0.9, lengths[-1] * 2.1)
    ax.set_ylim(0, 1.1 * max(max(ends)[0], run.device.limit_bytes / unit))
    _name_ends(ax, lengths[-1], ends)
    _card(ax, run.device.limit_bytes / unit, "the card's memory" if run.device.kind == "cuda" else "the played card")
    ax.set_xlabel(_KEY, fontsize=10.5, color=INK, loc="left")
    said = "; ".join(
        f"{name} {', '.join(_came(run.results.get(s, name)) for s in lengths)}"
        for name in names
        if any(run.results.get(s, name) for s in lengths)
    )
    text = f"Peaks at s = {', '.join(f'{s:,}' for s in lengths)} on a card of {size(run.device.limit_bytes)}: {said}."
    return Picture(figure, text)


def _name_ends(ax: Axes, x: float, ends: list[tuple[float, str]]) -> None:
    """Names at the right ends of lines, moved apart where they would meet."""
    low, high = ax.get_ylim()
    gap, last = 0.075 * (high - low), low
    for y, name in sorted(ends):
        last = max(y, last + gap if last > low else y)
        ax.annotate(name, (x, last), (9, 0), textcoords="offset points", va="center", fontsize=11, color=_WORDS[name])


def by_interval(run: Run, s: int) -> Picture:
    """Peaks over k at one length: the sweep that checkpointing is about."""
    intervals = range(1, LAYERS + 1)
    unit, word = _scale(run.device.limit_bytes / 4)
    said = [predict(run.device, run.shapes, Case(s, SETTINGS[f"every {k}"])).predicted_bytes for k in intervals]
    plain = predict(run.device, run.shapes, Case(s, SETTINGS["no checkpoints"])).predicted_bytes
    figure, (ax,) = _figure(f"Peak in {word} with a checkpoint every k layers, s = {s:,}")
    ax.plot(intervals, [x / unit for x in said], color=BLUE, linewidth=2)
    records = [run.results.get(s, f"every {k}") for k in intervals]
    _marks(ax, intervals, records, unit, BLUE)
    ax.axhline(plain / unit, color=VERMILION, linewidth=2)
    ax.annotate(
        "no checkpoints",
        (1, plain / unit),
        (0, -14),
        textcoords="offset points",
        fontsize=11,
        color=_WORDS["no checkpoints"],
    )
    ax.set_ylim(0, 1.12 * max(plain, *said) / unit)
    if plain > run.device.limit_bytes:
        _card(
            ax, run.device.limit_bytes / unit, "the card's memory" if run.device.kind == "cuda" else "the played card"
        )
    ax.set_xticks(intervals)
    ax.set_xlabel(f"k.  {_KEY}", fontsize=10.5, color=INK, loc="left")
    best = min(intervals, key=lambda k: said[k - 1])
    came = ", ".join(f"k = {k} {_came(x)}" for k, x in zip(intervals, records, strict=True) if x)
    text = (
        f"Peak with a checkpoint every k layers at s = {s:,}: {came}. Predicted to be lowest at k = {best}; without "
        f"checkpoints it would be {size(plain)}."
    )
    return Picture(figure, text)


def extra_time(run: Run) -> Picture:
    """What recomputation costs: measured bars beside the predicted lines."""
    names = ("selective", "every 1", "every 3", "every 12", "fused, every 1")
    figure, (ax,) = _figure("Extra time of forward and backward pass", 3.8)
    words, height = [], 0.0
    shown = [s for s in run.shapes.lengths if any(_extra(run, s, name) is not None for name in names)]
    width = 0.8 / max(1, len(shown))
    shades = (SKY, BLUE, "#003F66")
    for i, name in enumerate(names):
        for j, s in enumerate(shown):
            came = _extra(run, s, name)
            said = predict(run.device, run.shapes, Case(s, SETTINGS[name])).predicted_extra_time
            x = i - 0.4 + width * (j + 0.5)
            if came is not None:
                ax.bar(x, came * 100, width * 0.9, color=shades[j])
                height = max(height, abs(came))
            ax.plot([x - width / 2, x + width / 2], [said * 100] * 2, color=VERMILION, linewidth=3)
        row = [f"{part(_extra(run, s, name))} at {s:,}" for s in shown if _extra(run, s, name) is not None]
        if row:
            words.append(f"{name} {', '.join(row)}")
    ax.axhline(0, color=INK, linewidth=0.8)
    ax.set_ylim(min(0, ax.get_ylim()[0]), max(45, 130 * height))
    ax.set_xticks(range(len(names)), [name.replace(", ", ",\n") for name in names])
    ax.yaxis.set_major_formatter("{x:+.0f}%")
    handles = [Patch(color=shades[j], label=f"s = {s:,}") for j, s in enumerate(shown)]
    if handles:
        ax.legend(handles=handles, loc="upper left", ncols=3, fontsize=11, frameon=False, handlelength=1)
    ax.set_xlabel("Bars: measured.  Red lines: predicted from FLOPs.", fontsize=10.5, color=INK, loc="left")
    text = (
        f"Extra time against the same attention without recomputation: {'; '.join(words) or 'nothing measured yet'}. "
        f"Predicted from FLOPs: about a third wherever all layers run twice."
    )
    return Picture(figure, text)


def one_step(run: Run, s: int, name: str) -> Picture:
    """One step, operation by operation: the simulator's line and what the device held."""
    case = Case(s, SETTINGS[name])
    timeline = step(run.shapes, case, run.device.statistics).timeline(case.setting.every, "operation")
    unit, word = _scale(run.device.limit_bytes / 4)
    found = dict(follow(run.device, run.shapes, case))
    events = timeline.events
    seen = [(i, found[event.name]) for i, event in enumerate(events) if event.name in found]
    figure, (ax,) = _figure(f"{word} held during one step: {name}, s = {s:,}")
    ax.plot([x / unit for x in timeline.during_bytes], color=VERMILION, linewidth=2.5)
    few = seen[:: max(1, len(seen) // 60)]
    ax.plot([i for i, _ in few], [held / unit for _, held in few], "o", color=BLUE, markersize=4.5)
    ax.set_ylim(0, 1.1 * max(timeline.peak_bytes, max((held for _, held in seen), default=0)) / unit)
    turn = next(i for i, event in enumerate(events) if event.phase != "forward")
    ax.axvline(turn, color=GREY, linewidth=1)
    for x, phase in ((turn / 2, "forward"), ((turn + len(events)) / 2, "backward")):
        ax.annotate(phase, (x, 0.04), xycoords=("data", "axes fraction"), ha="center", fontsize=11, color=GREY)
    ax.set_xticks([])
    ax.set_xlabel("Operations in order.  Line: predicted.  Dots: measured.", fontsize=10.5, color=INK, loc="left")
    worst = max((abs(held / timeline.during_bytes[i] - 1) for i, held in seen), default=0)
    text = (
        f"Bytes held during one step, {name}, s = {s:,}: {len(seen)} of {len(events)} operations were seen, the "
        f"largest difference from the prediction is {worst:.1%}; the highest point is the {timeline.peak_event.name}."
    )
    return Picture(figure, text)


def compared(runs: Sequence[Results]) -> Picture:
    """Several runs, old and new: how near each prediction was, and what checkpointing every layer cost in time."""
    figure, (near, cost) = _figure("Old runs beside the new one", 5.2, rows=2)
    colours, words = ("#00588A", "#A84700", "#00704F", "#8A5F00", "#9B4A78", INK), []
    for i, results in enumerate(runs):
        colour = colours[i % len(colours)]
        x = [(j + 0.8 * (i + 1) / (len(runs) + 1) - 0.4, record) for j, record in _settings_of(results)]
        off = [(where, (r["measured_bytes"] / r["predicted_bytes"] - 1) * 100) for where, r in x]
        near.plot([a for a, _ in off], [b for _, b in off], "o", color=colour, markersize=6)
        extra = [(where, results.extra_time(r)) for where, r in x]
        done = [(where, value * 100) for where, value in extra if value is not None]
        cost.plot([a for a, _ in done], [b for _, b in done], "o", color=colour, markersize=6)
        widest = max((abs(b) for _, b in off), default=0)
        words.append(f"{results.title}: {len(off)} cases, at most {widest:.2f}% from the prediction")
        near.annotate(
            results.title, (0.01, 0.98 - 0.13 * i), xycoords="axes fraction", va="top", fontsize=11, color=colour
        )
    top = max(3.0, *(abs(y) for y in near.get_ylim()))
    near.set_ylim(-1.2 * top, 1.2 * top * (1 + 0.3 * len(runs)))
    near.axhspan(-3, 3, color="#E8F3EC", zorder=0)
    names = ["none", *(f"k={k}" for k in (1, 3, 6, 12)), "selective", "fused"]
    for ax in (near, cost):
        ax.set_xticks(range(len(names)), names, rotation=30, ha="right")
        ax.set_xlim(-0.6, len(names) - 0.4)
        ax.yaxis.set_major_formatter("{x:+.0f}%")
    cost.axhline(100 / 3, color=GREY, linewidth=1.5, linestyle=(0, (4, 2)))
    near.set_title("peak: measured against predicted", fontsize=11, loc="left", color=INK)
    cost.set_title("extra time (dashed: a third)", fontsize=11, loc="left", color=INK)
    return Picture(figure, ". ".join(words) + "." if words else "No results.")


def _settings_of(results: Results) -> list[tuple[int, dict[str, Any]]]:
    names = ("no checkpoints", "every 1", "every 3", "every 6", "every 12", "selective", "fused")
    return [(names.index(x["setting"]), x) for x in results.measured() if x["setting"] in names]


def _extra(run: Run, s: int, name: str) -> float | None:
    record = run.results.get(s, name)
    return None if record is None or record["outcome"] != "measured" else run.results.extra_time(record)


def _came(record: dict[str, Any] | None) -> str:
    if record is None:
        return "not measured"
    return size(record["measured_bytes"]) if record["outcome"] == "measured" else "out of memory"
