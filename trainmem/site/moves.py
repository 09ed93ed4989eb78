"""What of each figure the site shows: presets, and for each the settings that one slider passes through.

Every frame is a `Picture` of `trainmem.figures`, made by the function that draws it in the notebook.
"""

from collections.abc import Callable
from dataclasses import dataclass

from trainmem.figures import checkpoints, fit, parameters, timeline, walk
from trainmem.figures.frame import Picture
from trainmem.memory import GPUS, MODELS


@dataclass(frozen=True)
class Frame:
    """One setting of a figure: where its slider stands, in words, and the picture there."""

    at: str
    picture: Picture


@dataclass(frozen=True)
class Preset:
    """A choice of the select, its frames in the slider's order, and the one that it opens at."""

    title: str
    frames: tuple[Frame, ...]
    start: int


@dataclass(frozen=True)
class Moves:
    """All that the site shows of one figure."""

    title: str
    slider: str
    presets: tuple[Preset, ...]


#: Model of `timeline.PRESETS`, recomputation, k, FlashAttention.
_STEPS = (
    ("1.3b", "none", 1, False),
    ("1.3b", "none", 1, True),
    ("1.3b", "selective", 1, False),
    ("1.3b", "full", 1, True),
    ("1.3b", "full", 6, True),
    ("llama-7b", "none", 1, False),
    ("llama-7b", "selective", 1, False),
    ("llama-7b", "full", 1, False),
    ("gpt2-124m", "none", 1, False),
    ("gpt2-124m", "none", 1, True),
)

#: L and A (in sbh), the k of the frames (None: all), and the k that is shown first.
_INTERVALS = (
    (24, 34, None, 6),
    (24, 114, None, 1),
    (34, 34, None, 2),
    (80, 34, (*range(1, 11), 16, 20, 27, 40, 80), 2),
)

_ALONE = tuple(
    fit.Case(*case)
    for case in (
        ("1.3b", 2048, 8, "a100-80", 1),
        ("1.3b", 2048, 8, "a100-40", 8),
        ("gpt2-1.5b", 1024, 8, "t4", 4),
        ("llama2-7b", 4096, 4, "rtx4090", 8),
        ("llama3-8b", 8192, 1, "h200", 1),
        ("llama2-70b", 4096, 1, "h100", 64),
        ("gpt3-175b", 2048, 1, "a100-80", 1024),
    )
)
#: Cases of the ladder, and what limits their step.
_LADDERS = (*((case, "compute") for case in _ALONE), (_ALONE[5], "communication"))


def step_timeline() -> Moves:
    """The slider goes through the events of a step; every preset opens at its peak."""
    presets = []
    for name, recompute, k, flash in _STEPS:
        model, s, b, reading = timeline.PRESETS[name]
        numbers = timeline.step_numbers(model, s, b, recompute, k, reading, flash)
        frames = tuple(
            Frame(f"{at + 1}, {event}", timeline.picture(model, s, b, recompute, k, reading, flash, at))
            for at, event in enumerate(numbers.names)
        )
        rebuilt = {"none": "", "selective": ", selective recomputation"}
        words = rebuilt.get(recompute, f", a checkpoint every {'layer' if k == 1 else f'{k} layers'}")
        title = f"{_capital(model.title)}{', FlashAttention' if flash else ''}{words}"
        presets.append(Preset(title, frames, numbers.peak))
    return Moves(timeline.TITLE, "Event", tuple(presets))


def layer_parameters() -> Moves:
    """The slider widens the MLP; every preset opens at the model's own width."""
    presets = []
    for model in MODELS.values():
        widths = sorted({*range(model.h, 8 * model.h + 1, model.h // 2), model.f})
        title = _capital(model.title)
        frames = tuple(
            Frame(
                f"{f:,} = {f / model.h:.4g} h",
                parameters.picture(
                    title if f == model.f else f"{title} with another MLP",
                    *(model.style, model.h, f, model.a // model.kv, model.L, model.V, model.tied, model.positions),
                ),
            )
            for f in widths
        )
        presets.append(Preset(title, frames, widths.index(model.f)))
    first = next(i for i, name in enumerate(MODELS) if name == "1.3b")
    return Moves(parameters.TITLE, "MLP width f", (presets[first], *presets[:first], *presets[first + 1 :]))


def layer_walk() -> Moves:
    """The slider goes through the operations; every preset opens with all of them done."""
    presets = []
    for style, fused, dropout in (
        ("gpt", False, True),
        ("gpt", True, True),
        ("gpt", False, False),
        ("gpt", True, False),
        ("llama", False, False),
        ("llama", True, False),
    ):
        walked = walk.walk_numbers(style, fused, dropout)
        names = ["none yet", *(f"{i}, {stop.name}" for i, stop in enumerate(walked.stops, 1))]
        frames = tuple(Frame(words, walk.picture(style, fused, dropout, at)) for at, words in enumerate(names))
        kind = "Llama-style layer" if style == "llama" else "GPT layer" if dropout else "GPT layer without dropout"
        presets.append(Preset(f"{kind}{', FlashAttention' if fused else ''}", frames, len(walked.stops)))
    return Moves(walk.TITLE, "Operation", tuple(presets))


def checkpoint_every_k() -> Moves:
    """The slider is k."""
    presets = []
    for L, A, ks, start in _INTERVALS:
        ks = ks or tuple(range(1, L + 1))
        frames = tuple(Frame(f"k = {k}", checkpoints.picture(L, k, A)) for k in ks)
        presets.append(Preset(f"L = {L}, A = {checkpoints.LAYERS[A]}", frames, ks.index(start)))
    return Moves(checkpoints.TITLE, "Layers to a checkpoint, k", tuple(presets))


def does_it_fit() -> Moves:
    """The slider climbs the ladder, rung by rung, up to the first that fits."""
    presets = []
    for case, limited_by in _LADDERS:
        frames, before = [], fit.Fixes()
        for rung, fixes, _ in fit.ladder_of(case, limited_by):
            last = f"micro-batch {case.b >> fixes.halvings}" if rung == "micro-batch" else fit.RUNGS[rung]
            words = f"up to {last}" if frames else "no fix"
            frames.append(Frame(words, fit.picture(case, fixes, before, limited_by)))
            before = fixes
        title = f"{_capital(MODELS[case.model].title)}, {case.n_gpus:,} × {GPUS[case.gpu].title}"
        title += "" if limited_by == "compute" else f", limited by {limited_by}"
        presets.append(Preset(title, tuple(frames), 0))
    return Moves(fit.TITLE, "Climb the ladder", tuple(presets))


#: Figure → what the site shows of it.
MOVES: dict[str, Callable[[], Moves]] = {
    made.__name__: made for made in (step_timeline, layer_parameters, layer_walk, checkpoint_every_k, does_it_fit)
}


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]
