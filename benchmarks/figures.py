"""From key press to new picture in JupyterLab: each figure, and the same content by `interact` and matplotlib.

The walk is clicked as well, on the operations of its picture; its counterpart has nothing that one could click.

    python -m benchmarks.figures [presses]

Both stand in one notebook and are pressed in turn, so that whatever else the machine does falls on both. Time runs from
the key or the click in the page to the frame after the new picture stands in it (for matplotlib: its image decoded).
Exit status 1 where a figure is less than four times as fast at the median.
"""

import statistics
import sys
import tempfile
from pathlib import Path

import nbformat
from playwright.sync_api import Page, TimeoutError

from autograded_tests.lab import chromium, jupyterlab, open_notebook, run_all

PRESSES = 30
WANTED_RATIO = 4

#: Figure → the control that is pressed, and the two keys that are pressed in turn.
CONTROLS = {
    "step_timeline": ("Event", "ArrowRight", "ArrowLeft"),
    "layer_parameters": ("MLP width f", "ArrowRight", "ArrowLeft"),
    "layer_walk": ("Operation", "ArrowRight", "ArrowLeft"),
    "checkpoint_every_k": ("k", "ArrowRight", "ArrowLeft"),
    "does_it_fit": ("FlashAttention", "Space", "Space"),
}

#: The figure whose picture is clicked, and the two operations that are clicked in turn.
CLICKED = ("layer_walk", "7. softmax", "8. dropout")

MATPLOTLIB = """
%matplotlib inline
import matplotlib.pyplot as plt
import numpy as np
from ipywidgets import Checkbox, IntSlider, interact
from trainmem.figures import checkpoints, fit, parameters, timeline, walk
from trainmem.figures.svg import FILLS
from trainmem.memory import MODELS

def step_timeline(Event):
    numbers = timeline.step_numbers(MODELS["1.3b"], 2048, 8)
    figure, axes = plt.subplots(figsize=(8, 4))
    x = np.arange(len(numbers.names))
    lower = np.zeros(len(x))
    for name, levels in numbers.held.items():
        label = f"{name} {levels[Event - 1] / 1e9:.2f} GB"
        axes.fill_between(x, lower / 1e9, (lower + levels) / 1e9, step="mid", color=FILLS[name], label=label)
        lower = lower + levels
    axes.axhline(lower.max() / 1e9, ls="--", color="k")
    axes.axvspan(Event - 1.5, Event - 0.5, color="k", alpha=0.25)
    axes.set_title(f"event {Event}: {lower[Event - 1] / 1e9:.1f} GB, peak {lower.max() / 1e9:.1f} GB")
    axes.set_ylabel("GB")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    plt.show()

def layer_parameters(f):
    numbers = parameters.layer_numbers("gpt", 2048, f, 1, 24, 50257, True, 0)
    figure, (axes, below) = plt.subplots(2, 1, figsize=(8, 5), height_ratios=(3, 1))
    bars = [*numbers.weights, ("biases, norms", "", numbers.others)]
    drawn = axes.barh([name for name, *_ in bars], [count / 2048**2 for *_, count in bars])
    axes.bar_label(drawn, [f"{count / 2048**2:.3f} {shape}" for _, shape, count in bars])
    axes.invert_yaxis()
    below.barh(["model", "12Lh²"], [numbers.model - numbers.embedding, numbers.approximate])
    below.barh(["model"], [numbers.embedding], left=[numbers.model - numbers.embedding], color="grey")
    below.set_title(f"one layer: {numbers.layer:,}; the model: {numbers.model:,}")
    plt.show()

def layer_walk(Operation):
    stops = walk.walk_numbers().stops
    figure, (axes, below) = plt.subplots(2, 1, figsize=(8, 6), height_ratios=(4, 1))
    axes.axis("off")
    for i, stop in enumerate(stops):
        x, y = (0.55, 18 - i + 12) if stop.second_half else (0.1, 18 - i)
        box = dict(boxstyle="square", fc="0.85" if i < Operation else "1", lw=2.5 if i == Operation - 1 else 0.7)
        axes.text(x, y, stop.name, bbox=box, ha="center", fontsize=8)
        if i < Operation:
            kept = ", ".join(f"{name} {amount:g}" for name, _, amount, _ in stop.tensors) or "–"
            axes.text(x + 0.12, y, kept, fontsize=8)
    axes.set_ylim(0, 20)
    sbh, as2b = (stops[Operation - 1].sbh, stops[Operation - 1].as2b) if Operation else (0, 0)
    below.barh(["sbh", "as²b"], [sbh / 34, as2b / 5], color=["#E69F00", "#CC79A7"])
    below.set_xlim(0, 1)
    below.set_title(f"{sbh:g} of 34 sbh, {as2b:g} of 5 as²b")
    plt.show()

def checkpoint_every_k(k):
    numbers = checkpoints.checkpoint_numbers(24, k, 2, 34)
    figure = plt.figure(figsize=(9, 5))
    grid = figure.add_gridspec(2, 2, height_ratios=(4, 1))
    axes, against, time = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1, :])
    x = np.arange(len(numbers.phases))
    bands = dict(colors=["#009E73", "#56B4E9"], labels=["checkpoints", "rebuilt layers"], step="mid")
    axes.stackplot(x, numbers.checkpoints, numbers.rebuilt, **bands)
    axes.plot(x, [0 if phase == "rebuild" else np.nan for phase in numbers.phases], lw=6, color="#D55E00")
    axes.legend()
    against.loglog(range(1, 25), numbers.peaks, color="#E69F00", lw=4, label="simulated")
    against.loglog(range(1, 25), numbers.formula, "k--", label="M(k)")
    against.plot([k], [numbers.peaks[k - 1]], "o")
    against.axvline(numbers.root, ls=":")
    against.set_title(f"k = {k}: {numbers.peaks[k - 1]:g}")
    against.legend()
    time.barh(["no checkpoints", "any k"], [1, 1], color="grey")
    time.barh(["any k"], [1], left=[1], color="#D55E00")
    time.barh(["no checkpoints", "any k"], [2, 2], left=[1, 2], color="#56B4E9")
    plt.show()

def does_it_fit(FlashAttention):
    case = fit.Case("1.3b", 2048, 8, "a100-80")
    fixed = fit.fit_numbers(case, fit.Fixes(flash=FlashAttention))
    bars = {"no fix": fit.fit_numbers(case, fit.Fixes()), "with the fixes": fixed}
    figure, axes = plt.subplots(figsize=(9, 4))
    for y, parts in bars.items():
        left = 0
        for name in fit.PARTS:
            label = f"{name} {parts[name] / 1e9:.2f} GB" if parts is fixed else None
            axes.barh([y], [parts[name] / 1e9], left=[left], color=FILLS[name], label=label)
            left += parts[name] / 1e9
    axes.axvline(80, color="k", lw=2.5)
    axes.axvline(68, color="k", ls="--")
    axes.set_title(f"{left:.1f} GB")
    axes.invert_yaxis()
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    plt.show()
"""

INTERACT = {
    "step_timeline": "IntSlider(27, 1, 53)",
    "layer_parameters": "IntSlider(8192, 64, 65536, 64)",
    "layer_walk": "IntSlider(5, 0, 18)",
    "checkpoint_every_k": "IntSlider(6, 1, 24)",
    "does_it_fit": "Checkbox(False)",
}

# One promise for the next picture: its time since the key's event, in milliseconds.
WATCH = """([index, ours]) => {
  const root = ours ? document.querySelectorAll('.trainmem-figure')[index]
                    : document.querySelectorAll('.widget-interact')[index];
  const shown = () => ours ? root.querySelector('svg.wide')?.outerHTML : root.querySelector('img')?.src;
  const before = shown();
  let start = null;
  for (const type of ['keydown', 'click']) {
    window.addEventListener(type, () => { start ??= performance.now(); }, {capture: true, once: true});
  }
  window.drawn = new Promise(resolve => {
    const observer = new MutationObserver(async () => {
      const now = shown();
      if (!now || now === before) return;
      observer.disconnect();
      if (!ours) await root.querySelector('img').decode();
      requestAnimationFrame(() => resolve(performance.now() - start));
    });
    observer.observe(root, {childList: true, subtree: true, attributes: true});
  });
}"""


DRAWN = "Promise.race([window.drawn, new Promise((_, no) => setTimeout(() => no('no picture'), 10000))])"


def notebook() -> nbformat.NotebookNode:
    cells = ["from trainmem import figures", MATPLOTLIB]
    for name, widget in INTERACT.items():
        argument = MATPLOTLIB.split(f"def {name}(")[1].split(")")[0]
        cells += [f"figures.{name}()", f"interact({name}, {argument}={widget});"]
    made = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    made.cells = [nbformat.v4.new_code_cell(cell.strip()) for cell in cells]
    return made


def rest(page: Page) -> None:
    """Wait until the page, which has scrolled to the next control, is drawn: one presses a key on what stands still."""
    page.wait_for_timeout(250)
    page.evaluate(
        "new Promise(done => requestIdleCallback(() => requestAnimationFrame(() => requestIdleCallback(done))))"
    )


def press(page: Page, name: str, ours: bool, turn: int) -> float:
    """Press a key on the figure's control; return the milliseconds to its new picture."""
    index = list(CONTROLS).index(name)
    label, *keys = CONTROLS[name]
    root = page.locator(".trainmem-figure" if ours else ".widget-interact").nth(index)
    if keys[0] == "Space":
        control = root.locator("input[type=checkbox]").first
    elif ours:
        row = root.locator(".widget-inline-hbox").filter(has=page.locator(f".widget-label:text-is('{label}')"))
        control = row.locator("[role=slider]")
    else:
        control = root.locator("[role=slider]")
    control.focus()
    rest(page)
    page.evaluate(WATCH, [index, ours])
    page.keyboard.press(keys[turn % 2])
    return page.evaluate(DRAWN)


def click(page: Page, turn: int) -> float:
    """Click an operation in the walk's picture; return the milliseconds to its new picture."""
    name, *operations = CLICKED
    index = list(CONTROLS).index(name)
    operation = page.locator(".trainmem-figure").nth(index).get_by_role("button", name=operations[turn % 2], exact=True)
    operation.scroll_into_view_if_needed()
    rest(page)
    page.evaluate(WATCH, [index, True])
    operation.click()
    return page.evaluate(DRAWN)


def main(presses: int) -> int:
    seen: dict[tuple[str, bool], list[float]] = {(name, ours): [] for name in CONTROLS for ours in (True, False)}
    clicks: list[float] = []
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as scratch:
        nbformat.write(notebook(), Path(folder) / "figures.ipynb")
        with chromium() as browser, jupyterlab(Path(folder), Path(scratch)) as address:
            page = browser.new_page(viewport={"width": 1280, "height": 1300})
            open_notebook(page, address, "figures.ipynb")
            for _ in range(3):
                try:
                    run_all(page, timeout_s=60)
                    break
                except TimeoutError:
                    print("once more: the kernel did not hear of it", file=sys.stderr)
            page.wait_for_function("document.querySelectorAll('.trainmem-figure svg.wide').length === 5")
            page.wait_for_function("document.querySelectorAll('.widget-interact img').length === 5")
            for turn in range(presses + 2):
                for (name, ours), times in seen.items():
                    took = press(page, name, ours, turn)
                    if turn > 1:  # the first ones warm both up
                        times.append(took)
                took = click(page, turn)
                if turn > 1:
                    clicks.append(took)
    print(f"{presses} presses each, milliseconds from key to picture: median (95th percentile)")
    worst = float("inf")
    for name in CONTROLS:
        ours, theirs = seen[name, True], seen[name, False]
        ratio = statistics.median(theirs) / statistics.median(ours)
        worst = min(worst, ratio)
        print(f"{name:20} {spread(ours)}   interact + matplotlib {spread(theirs)}   {ratio:.1f} times as fast")
    print(f"{CLICKED[0]:20} {spread(clicks)}   by a click on an operation")
    return 0 if worst >= WANTED_RATIO else 1


def spread(times: list[float]) -> str:
    return f"{statistics.median(times):5.0f} ({statistics.quantiles(times, n=20)[-1]:.0f})"


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else PRESSES))
