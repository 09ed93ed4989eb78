"""The figures as files, for pages on which nothing runs."""

from trainmem.figures import checkpoints, fit, parameters, timeline, walk
from trainmem.figures.svg import WIDE, standalone
from trainmem.memory import MODELS


def static_pictures() -> dict[str, str]:
    """File name → text of each figure's picture as an SVG file, always the same bytes."""
    model, s, b, _ = timeline.PRESETS["1.3b"]
    llama, llama_s, llama_b, reading = timeline.PRESETS["llama-7b"]
    example = MODELS["1.3b"]
    case = fit.Case("1.3b", 2048, 8, "a100-80")
    pictures = {
        "step_timeline": (timeline.TITLE, timeline.picture(model, s, b, "none", 1, "exact", False)),
        "step_timeline_llama": (
            f"{timeline.TITLE}: LLaMA 7B, selective recomputation",
            timeline.picture(llama, llama_s, llama_b, "selective", 1, reading, False),
        ),
        "layer_parameters": (
            parameters.TITLE,
            parameters.picture(
                "The 1.3B example", "gpt", example.h, example.f, 1, example.L, example.V, example.tied, 0
            ),
        ),
        "layer_walk": (walk.TITLE, walk.picture("gpt", False, True, 99)),
        "checkpoint_every_k": (checkpoints.TITLE, checkpoints.picture(24, 6, 34)),
        "does_it_fit": (fit.TITLE, fit.picture(case, fit.Fixes(flash=True))),
    }
    return {f"{name}.svg": standalone(picture.draw(WIDE), title) for name, (title, picture) in pictures.items()}
