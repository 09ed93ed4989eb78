"""A run over many cases, with a bar that tells what is running, and what is left when it is interrupted."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from trainmem.measure.checkpointing import Case, Shapes, measure, warm_up
from trainmem.measure.device import Device
from trainmem.measure.results import Results


class Bar(Protocol):
    """Shows how far a run is."""

    def tell(self, done: int, total: int, what: str) -> None:
        """``done`` of ``total`` cases are over, and this one begins."""

    def close(self) -> None:
        """The run is over, or stops."""


class NotebookBar:
    """ipywidgets' progress bar, with a line beside it (the name of the running case)."""

    def __init__(self) -> None:
        import ipywidgets
        from IPython.display import display

        self._bar = ipywidgets.IntProgress(value=0, min=0, max=1)
        self._text = ipywidgets.Label()
        self._box = ipywidgets.HBox([self._bar, self._text])
        display(self._box)

    def tell(self, done: int, total: int, what: str) -> None:
        self._bar.max, self._bar.value = total, done
        self._text.value = f"{done + 1} of {total}: {what}"

    def close(self) -> None:
        self._box.close()


class TerminalBar:
    """One line a case."""

    def tell(self, done: int, total: int, what: str) -> None:
        print(f"{done + 1:3d} of {total}: {what}", flush=True)

    def close(self) -> None:
        pass


class Run:
    """The experiment on one device. ``results`` fill up case by case and are saved after each.

    Asking again for cases that are there does nothing, so that an interrupted cell goes on where it stopped.
    """

    def __init__(self, device: Device, shapes: Shapes, folder: Path | str | None = "measured") -> None:
        self.device, self.shapes = device, shapes
        self.results = Results.begin(device, shapes, None if folder is None else Path(folder))
        self._warm = False

    def measure(self, cases: Iterable[Case], bar: type[Bar] = NotebookBar) -> bool:
        """Measures what is not measured yet; False where the person at the keyboard stopped it."""
        wanted = [case for case in cases if self.results.find(case) is None]
        if not wanted:
            return True
        with _shown(bar) as shown:
            for done, case in enumerate(wanted):
                try:
                    shown.tell(done, len(wanted), f"s = {case.s:,}, {case.setting.name}")
                    if not self._warm:
                        warm_up(self.device)
                        self._warm = True
                    record = measure(self.device, self.shapes, case)
                except KeyboardInterrupt:
                    self.device.release()
                    where = f" and saved in {self.results.path}" if self.results.path and self.results.cases else ""
                    print(
                        f"Stopped at s = {case.s:,}, {case.setting.name}. The {len(self.results.cases)} cases before "
                        f"are kept{where}; run the cell again to go on from here."
                    )
                    return False
                self.results.cases.append(record)
                self.results.save()
        return True

    def records(self, cases: Iterable[Case]) -> list[dict[str, Any]]:
        """What has been measured of these cases."""
        found = (self.results.find(case) for case in cases)
        return [record for record in found if record is not None]


@contextmanager
def _shown(bar: type[Bar]) -> Iterator[Bar]:
    shown = bar()
    try:
        yield shown
    finally:
        shown.close()
