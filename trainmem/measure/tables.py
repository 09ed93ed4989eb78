"""Tables of the experiment in Markdown: what was predicted, what came out, and how long it took."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from trainmem.measure.checkpointing import Case, Shapes, predict
from trainmem.measure.device import Device
from trainmem.measure.progress import Run
from trainmem.measure.quantities import part, size


@dataclass(frozen=True, repr=False)
class Table:
    """Shows itself as Markdown in a notebook and as plain lines in a terminal."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return str(self)

    def _repr_markdown_(self) -> str:
        return str(self)

    def _lines(self) -> list[str]:
        rule = ("---", *["---:"] * (len(self.head) - 1))
        return ["| " + " | ".join(row) + " |" for row in (self.head, rule, *self.rows)]


def predictions(device: Device, shapes: Shapes, cases: Iterable[Case]) -> Table:
    """Before anything runs: peak, whether it fits, and the extra time by FLOPs."""
    rows = []
    for case in cases:
        said = predict(device, shapes, case)
        verdict = said.verdict if said.runs_out_at is None else f"{said.verdict}: ends in the {said.runs_out_at}"
        rows.append(
            (
                f"{case.s:,}",
                case.setting.name,
                size(said.predicted_bytes),
                verdict,
                part(said.predicted_extra_time),
            )
        )
    return Table(("s", "setting", "predicted peak", "on this card", "predicted extra time"), tuple(rows))


def peaks(run: Run, cases: Iterable[Case]) -> Table:
    """Predicted and measured peaks side by side."""
    rows = [
        (f"{x['s']:,}", x["setting"], size(x["predicted_bytes"]), *_outcome(x), x["predicted_at"])
        for x in run.records(cases)
    ]
    return Table(("s", "setting", "predicted peak", "measured", "difference", "predicted to be at the"), tuple(rows))


def times(run: Run, cases: Iterable[Case]) -> Table:
    """Step times, and what recomputation adds to the forward and backward pass."""
    rows = []
    for x in run.records(cases):
        if x["outcome"] != "measured":
            continue
        laps = (x[f"{name}_seconds"] for name in ("forward", "backward", "optimizer"))
        extra = run.results.extra_time(x)
        rows.append(
            (
                f"{x['s']:,}",
                x["setting"],
                *(f"{lap * 1e3:.1f} ms" for lap in laps),
                part(x["predicted_extra_time"]),
                part(extra),
            )
        )
    return Table(("s", "setting", "forward", "backward", "optimizer", "predicted extra", "measured extra"), tuple(rows))


def _outcome(record: dict[str, Any]) -> Sequence[str]:
    if record["outcome"] != "measured":
        return record["outcome"], "—"
    off = record["measured_bytes"] / record["predicted_bytes"] - 1
    return size(record["measured_bytes"]), part(off, 2)
