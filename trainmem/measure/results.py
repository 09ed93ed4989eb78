"""Results of the checkpointing experiment as JSON: written after every case, read again beside later ones."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from trainmem.measure.checkpointing import Case, Shapes
from trainmem.measure.device import Device
from trainmem.measure.layout import KIND, REQUIRED, VERSION, ResultsError, read


@dataclass
class Results:
    """One run: where, with what, when, and its cases so far (records as `trainmem.measure.checkpointing.measure`'s)."""

    device: dict[str, Any]
    versions: dict[str, str]
    started: str
    shapes: dict[str, Any]
    cases: list[dict[str, Any]] = field(default_factory=list)
    path: Path | None = None

    @classmethod
    def begin(cls, device: Device, shapes: Shapes, folder: Path | None) -> "Results":
        """Empty results of a run that starts now, to be kept in ``folder`` (None: not at all)."""
        now = datetime.now(UTC).replace(microsecond=0)
        versions = {"torch": torch.__version__, "cuda": torch.version.cuda or ""}
        path = folder and folder / f"{now:%Y%m%dT%H%M%SZ}-{_slug(device.name)}.json"
        return cls(device.record(), versions, now.isoformat(), {**asdict(shapes)}, path=path)

    def find(self, case: Case) -> dict[str, Any] | None:
        """The record of a case, if it has been run."""
        return self.get(case.s, case.setting.name)

    def get(self, s: int, setting: str) -> dict[str, Any] | None:
        """The same by sequence length and name of the setting."""
        return next((x for x in self.cases if x["s"] == s and x["setting"] == setting), None)

    def measured(self) -> Iterator[dict[str, Any]]:
        """The cases that ran to their end."""
        return (x for x in self.cases if x["outcome"] == "measured")

    def extra_time(self, record: dict[str, Any]) -> float | None:
        """Time of its forward and backward pass over that without recomputation, less one; None without the latter."""
        plain = self.get(record["s"], "fused" if record["setting"].startswith("fused") else "no checkpoints")
        if plain is None or {plain["outcome"], record["outcome"]} != {"measured"}:
            return None
        return _seconds(record) / _seconds(plain) - 1

    @property
    def title(self) -> str:
        """For a legend: device and day."""
        return f"{self.device['name']}, {self.started[:10]}"

    def save(self) -> None:
        """Writes the file whole or not at all; a file that is there stays until the new one is complete."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = {"kind": KIND, "version": VERSION} | {name: getattr(self, name) for name in REQUIRED}
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")
        os.replace(part, self.path)


def load(path: Path) -> Results:
    """Reads one file.

    Raises `ResultsError` for one that is damaged, of another kind or of another version; the file stays as it is.
    """
    return Results(**read(path), path=path)


def load_folder(folder: Path, but: Results | None = None) -> tuple[list[Results], list[str]]:
    """All results of a folder, old ones first, without ``but``; and what to say of files that cannot be read."""
    loaded, complaints = [], []
    for path in sorted(folder.glob("*.json")):
        if but is not None and but.path is not None and path.resolve() == but.path.resolve():
            continue
        try:
            loaded.append(load(path))
        except ResultsError as error:
            complaints.append(str(error))
    return loaded, complaints


def _seconds(record: dict[str, Any]) -> float:
    return record["forward_seconds"] + record["backward_seconds"]


def _slug(name: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())
