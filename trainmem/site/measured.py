"""Recorded runs of the GPU notebook as Markdown tables. No torch is needed."""

from html import escape
from pathlib import Path
from typing import Any

from trainmem.figures.amounts import gb, table
from trainmem.measure.layout import ResultsError, read


def runs_markdown(folder: Path) -> str:
    """One table a run of ``folder`` (JSON files of `trainmem.measure`), or a sentence that there is none.

    Raises ``ValueError`` with the name of a file that is none of them, and what is wrong with it.
    """
    runs = [_run(path) for path in sorted(folder.glob("*.json"))]
    gpus = [run for run in runs if run["device"]["kind"] == "cuda"]
    if not gpus:
        return (
            "> **No run on a GPU has been recorded yet.** What stands here was measured on a CPU: the tables below, "
            "and [the notebook with its stored run](../checkpointing_gpu.ipynb) of a tiny model."
        )
    return "\n\n".join(_markdown(run) for run in gpus)


def _run(path: Path) -> dict[str, Any]:
    try:
        return read(path)
    except ResultsError as error:
        raise ValueError(f"{error}. Mend it, or take it out of {path.parent}") from error


def _markdown(run: dict[str, Any]) -> str:
    rows = []
    for case in run["cases"]:
        measured, difference = case["outcome"], ""
        if case["outcome"] == "measured":
            measured = gb(case["measured_bytes"])
            difference = f"{case['measured_bytes'] / case['predicted_bytes'] - 1:+.1%}"
        rows.append([escape(case["setting"]), f"{case['s']:,}", gb(case["predicted_bytes"]), measured, difference])
    versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items() if number)
    caption = f"{run['device']['name']}, {run['started'][:10]}, {versions}"
    columns = ["setting", "s", "predicted", "measured", "difference"]
    return f'<div class="scrolls">{table(escape(caption), columns, rows)}</div>'
