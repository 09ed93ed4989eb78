"""The five figures in JupyterLab, moved by mouse and keyboard: what the page then shows, against the formulas."""

import re

import nbformat
import pytest

from autograded_tests.figures.oracles import (
    EXAMPLE,
    GPT2_124M,
    LLAMA_7B,
    agrees,
    climb,
    equal_units,
    held_by_layers,
    layer_parameters,
    one_gpu,
)
from autograded_tests.lab import choose_theme, open_notebook, run_all

NAMES = ("step_timeline", "layer_parameters", "layer_walk", "checkpoint_every_k", "does_it_fit")
SMALL = {"width": 400, "height": 1800}
LARGE = {"width": 1280, "height": 1300}
SBH = 2048 * 8 * 2048  # of the 1.3B example

#: What each operation of a layer adds, as (sbh, as²b): the GPT layer of the proof, with dropout.
GPT = [(2, 0), (2, 0), (0, 0), (0, 0), (4, 0), (0, 0), (0, 2), (0, 1), (2, 2), (2, 0), (1, 0), (0, 0)]
GPT += [(2, 0), (2, 0), (8, 0), (8, 0), (1, 0), (0, 0)]
#: LLaMA 7B's: rotations keep nothing that grows; one tensor of its MLP is f wide, and four of them are kept.
WIDE = 2 * 11008 / 4096
LLAMA = [(2, 0), (2, 0), (0, 0), (0, 0), (0, 0), (0, 0), (4, 0), (0, 0), (0, 2), (2, 0), (2, 0), (0, 0)]
LLAMA += [(2, 0), (2, 0), (0, 0), (WIDE, 0), (2 * WIDE, 0), (WIDE, 0), (0, 0)]
#: The same with FlashAttention, which keeps Q, K, V and its output: the product with W_O then finds its input there.
LLAMA_FLASH = [*LLAMA[:6], (8, 0), (0, 0), *LLAMA[11:]]

#: The words below a figure, and the labels of its pictures that can be seen.
SEEN = """figure => [
  figure.querySelector('.trainmem-numbers').innerText,
  [...figure.querySelectorAll('svg')].filter(svg => svg.checkVisibility()).map(svg => svg.ariaLabel),
]"""


class Figure:
    """One figure on the page: its controls by their labels, and the numbers that it shows."""

    def __init__(self, page, index, shots):
        self.page, self.name, self.shots = page, NAMES[index], shots
        self.root = page.locator(".trainmem-figure").nth(index)

    @property
    def text(self):
        return self.root.locator(".trainmem-numbers").inner_text()

    def shows(self, pattern, *values, moving=False):
        """Wait until the page shows the pattern with these numbers in its groups, and the picture's label says so too
        (a table's cells are in no sentence, and what plays has moved on).

        The text and the label are read at one moment: after several keys the page passes through what is awaited.
        """
        for _ in range(200):
            text, labels = self.root.evaluate(SEEN)
            match = re.search(pattern, text)
            right = match and all(agrees(words, value) for words, value in zip(match.groups(), values, strict=True))
            said = right and (moving or re.search(r"[\t\n]", match[0]) or any(match[0] in label for label in labels))
            if said and len(labels) == 1:
                return
            self.page.wait_for_timeout(50)
        pytest.fail(f"{self.name}: no {pattern!r} with {values} in {text!r}, or not in the picture's {labels}")

    def comes_to_rest(self):
        """Wait until what was on its way has come and nothing changes any more."""
        seen, quiet = self.text, 0
        for _ in range(30):
            self.page.wait_for_timeout(300)
            quiet, seen = (quiet + 1 if self.text == seen else 0), self.text
            if quiet == 3:
                return
        pytest.fail(f"{self.name}: still moving")

    def shot(self, state):
        self.root.screenshot(path=self.shots / f"{self.name} {state}.png")

    def labelled(self, label, inside):
        label = self.page.locator(f".widget-label:text-is('{label}')")
        return self.root.locator(".widget-inline-hbox").filter(has=label).locator(inside).first

    def slider(self, label):
        return self.labelled(label, "[role=slider]")

    def press(self, label, *keys):
        handle = self.slider(label)
        handle.focus()
        for key in keys:
            self.page.keyboard.press(key)

    def drag(self, label, part):
        """Take the handle by the mouse to a part of the way."""
        track = self.labelled(label, ".noUi-base").bounding_box()
        handle = self.slider(label)
        handle.scroll_into_view_if_needed()
        at, track = handle.bounding_box(), self.labelled(label, ".noUi-base").bounding_box()
        y = at["y"] + at["height"] / 2
        self.page.mouse.move(at["x"] + at["width"] / 2, y)
        self.page.mouse.down()
        self.page.mouse.move(track["x"] + part * track["width"], y, steps=4)
        self.page.mouse.up()
        return int(handle.get_attribute("aria-valuetext").split(".")[0])

    def choose(self, label, words):
        """With the mouse (a native list is the system's own; this is what a click on its entry sends)."""
        self.labelled(label, "select").select_option(label=words)

    def choose_by_key(self, label, *keys):
        self.labelled(label, "select").focus()
        for key in keys:
            self.page.keyboard.press(key)

    def write(self, label, number):
        box = self.labelled(label, "input")
        box.fill(str(number))
        box.press("Enter")

    def step(self, label, key):
        box = self.labelled(label, "input")
        box.focus()
        box.press(key)
        box.press("Enter")

    def box(self, words):
        return self.root.locator("label:has(input[type=checkbox])").filter(has_text=words).locator("input")

    def click(self, words):
        self.root.get_by_role("button", name=words, exact=True).click()

    @property
    def operations(self):
        """The buttons that lie on the operations of the walk's diagram."""
        return self.root.get_by_role("toolbar", name="Walk through one layer").get_by_role("button")

    def drawn(self, number):
        """The middle of an operation's name as it is drawn."""
        name = self.root.locator("svg:visible text[text-anchor=middle]").nth(number - 1)
        name.scroll_into_view_if_needed()
        box = name.bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def stands_at(self, number, amounts):
        """The numbers are those after so many operations, and one button says that it is the present one."""
        totals = [sum(amount[i] for amount in amounts[:number]) for i in (0, 1)]
        words = rf"Operation {number} of {len(amounts)}, .*So far ([\d.]+) sbh and ([\d.]+) as²b"
        self.shows(words, *totals)
        # Buttons come and go a moment after the words.
        wanted = ["true" if i == number else "false" for i in range(1, len(amounts) + 1)]
        for _ in range(100):
            pressed = self.operations.evaluate_all("all => all.map(button => button.ariaPressed)")
            if pressed == wanted:
                return
            self.page.wait_for_timeout(50)
        assert pressed == wanted

    def enter(self, words):
        button = self.root.get_by_role("button", name=words, exact=True)
        # JupyterLab takes the focus to the cell a moment after a click in it: the key must not go there.
        self.page.wait_for_timeout(100)
        button.press("Enter")


@pytest.fixture(scope="module")
def shots(tmp_path_factory):
    """Where the screenshots lie, to be looked at."""
    return tmp_path_factory.mktemp("figures")


@pytest.fixture(scope="module")
def open_page(browser, lab, lab_folder):
    """One page with the five figures, all cells run; and what it said and asked for."""
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    notebook.cells = [nbformat.v4.new_code_cell("from trainmem import figures")]
    notebook.cells += [nbformat.v4.new_code_cell(f"figures.{name}()") for name in NAMES]
    nbformat.write(notebook, lab_folder / "figures.ipynb")
    page = browser.new_page(viewport=LARGE)
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    open_notebook(page, lab, "figures.ipynb")
    run_all(page)
    page.wait_for_selector(".trainmem-figure >> nth=4")
    page.wait_for_function("document.querySelectorAll('.trainmem-figure svg').length === 10")
    yield page, said, asked
    page.close()


@pytest.fixture
def figure(open_page, shots, request):
    return Figure(open_page[0], NAMES.index(request.param), shots)


def of(name):
    return pytest.mark.parametrize("figure", [name], indirect=True)


@of("step_timeline")
def test_timeline_of_one_step(figure):
    gb = 1e9
    figure.shot("opening")
    # The 1.3B example in the reading of exercise 4, event by event.
    figure.choose("Reading", "exercise 4: states stay, a layer adds A")
    levels = held_by_layers(24, 2 * SBH, 114 * SBH)
    peak = (16 * EXAMPLE + levels[23] + 4 * 2048 * 8 * 50257) / gb
    figure.shows(r"Peak ([\d.]+) GB at event 25", peak)
    figure.click("Back")
    figure.shows(r"Event 24 of 49, forward of layer 24: .* ([\d.]+) GB in all", (16 * EXAMPLE + levels[23]) / gb)
    figure.enter("Back")
    figure.shows(r"Event 23 of 49, .* ([\d.]+) GB in all", (16 * EXAMPLE + levels[22]) / gb)
    figure.click("Next")
    figure.enter("Next")
    figure.click("Next")
    figure.shows(r"Event 26 of 49, backward of layer 24: .* ([\d.]+) GB in all", (16 * EXAMPLE + levels[24]) / gb)
    figure.press("Event", "ArrowRight", "ArrowRight")
    figure.shows(r"Event 28 of 49, .* ([\d.]+) GB in all", (16 * EXAMPLE + levels[26]) / gb)
    figure.press("Event", "ArrowLeft")
    figure.shows(r"Event 27 of 49, .* ([\d.]+) GB in all", (16 * EXAMPLE + levels[25]) / gb)
    figure.press("Event", "Home")
    figure.shows(r"Event 1 of 49, forward of layer 1: .* ([\d.]+) GB in all", (16 * EXAMPLE + levels[0]) / gb)
    at = figure.drag("Event", 0.8)
    assert 30 < at < 48
    figure.shows(rf"Event {at} of 49, .* ([\d.]+) GB in all", (16 * EXAMPLE + levels[at - 2]) / gb)
    figure.enter("To the peak")
    figure.shows(r"Event 25 of 49, .* ([\d.]+) GB in all", peak)
    figure.click("Play or pause")
    figure.shows(r"Event (?:2[7-9]|3\d|4[0-9]) of 49,", moving=True)
    figure.click("Play or pause")
    figure.comes_to_rest()
    assert re.search(r"Event (?:2[7-9]|3\d|4[0-8]) of 49", figure.text)
    figure.click("Stop")
    figure.shows("Event 1 of 49")
    # Full recomputation, every k layers.
    figure.choose_by_key("Recomputation", "ArrowDown", "ArrowDown")
    for k, move in ((1, None), (2, "ArrowRight"), (3, "ArrowRight")):
        if move:
            figure.press("k", move)
        levels = held_by_layers(24, 2 * SBH, 114 * SBH, k)
        figure.shows(
            r"Peak ([\d.]+) GB", (16 * EXAMPLE + max(*levels, levels[23] + 4 * 2048 * 8 * 50257 / SBH * SBH)) / gb
        )
    k = figure.drag("k", 0.5)
    figure.shows(r"Peak ([\d.]+) GB", (16 * EXAMPLE + max(held_by_layers(24, 2 * SBH, 114 * SBH, k))) / gb)
    figure.shot("full, every k")
    figure.box("FlashAttention").click()
    figure.shows(r"Peak ([\d.]+) GB", (16 * EXAMPLE + max(held_by_layers(24, 2 * SBH, 34 * SBH, k))) / gb)
    figure.choose("Recomputation", "selective")
    flash = 16 * EXAMPLE + 24 * 34 * SBH + 4 * 2048 * 8 * 50257
    figure.shows(r"Peak ([\d.]+) GB", flash / gb)
    assert "selective recomputation changes nothing" in figure.text
    figure.box("FlashAttention").focus()
    figure.page.keyboard.press("Space")
    figure.choose("Recomputation", "none")
    figure.shows(r"Peak ([\d.]+) GB", peak)
    # LLaMA 7B opens in equal units.
    figure.choose_by_key("Model", "L")
    peaks = [value / gb for value in equal_units(LLAMA_7B, 32, 4096, 1, 4096, 32, 32000)]
    for words, value in zip(("none", "selective", "full, every k layers"), peaks, strict=True):
        figure.choose("Recomputation", words)
        figure.shows(r"Peak ([\d.]+) GB", value)
        figure.shot(f"LLaMA 7B, {words}")
    assert "are 199.5, 116.1, 110.7 GB; with each gradient's own size they are 199.5, 115.9, 110.8 GB" in figure.text
    figure.choose("Recomputation", "none")
    figure.choose_by_key("Reading", "ArrowUp")
    figure.shows(r"none\s+[\d.]+\s+([\d.]+)\s+([\d.]+)", peaks[0], peaks[0])
    # GPT-2, then numbers of one's own.
    figure.choose("Model", "GPT-2 124M")
    figure.choose("Reading", "exercise 4: states stay, a layer adds A")

    def own(L, h, a, V, s, b, psi):
        return (16 * psi + L * (34 * s * b * h + 5 * a * s * s * b) + 4 * s * b * V) / gb

    figure.shows(r"Peak ([\d.]+) GB", own(12, 768, 12, 50257, 1024, 8, GPT2_124M))
    sizes = {"L": 12, "h": 768, "a": 12, "V": 50257, "s": 1024, "b": 8}
    for label, value in (("b", 3), ("s", 512), ("V", 1000), ("h", 960), ("a", 10), ("L", 7)):
        figure.write(label, value)
        sizes[label] = value
        psi = sizes["L"] * (12 * sizes["h"] ** 2 + 13 * sizes["h"]) + sizes["V"] * sizes["h"] + 2 * sizes["h"]
        figure.shows(r"Peak ([\d.]+) GB", own(**sizes, psi=psi))
    figure.step("b", "ArrowUp")
    sizes["b"] = 4
    figure.shows(r"Peak ([\d.]+) GB", own(**sizes, psi=psi))
    figure.write("a", 7)
    figure.page.wait_for_function("document.body.innerText.includes('7 heads do not divide a hidden size of 960')")
    figure.write("a", 10)
    figure.shows(r"Peak ([\d.]+) GB", own(**sizes, psi=psi))
    figure.choose("Model", "the 1.3B example")
    figure.shows(r"Peak ([\d.]+) GB at event 27", 120.188)


@of("layer_parameters")
def test_parameters_of_one_layer(figure):
    figure.shot("opening")

    def shows(style, h, f, share):
        layer = layer_parameters(style, h, f, share)
        figure.shows(rf"has {layer:,} parameters, ([\d.]+) h²", round(layer / h**2, 2))
        figure.shows(rf"W_K\s+{h:,} × {round(h * share):,}\s+{round(h * h * share):,}\s+([\d.]+)", share)
        biases = layer - (2 + 2 * share) * h * h - (3 if style == "llama" else 2) * h * f
        figure.shows(rf"biases and norms\s+{round(biases):,}\s+([\d.]+)", biases / h**2)

    shows("gpt", 2048, 8192, 1)
    figure.shows(r"1,311,528,960 parameters in 24 layers; 12Lh² is (0.921) of it, .* norm (7.8)%", 0.921, 7.8)
    figure.choose_by_key("Layer", "ArrowDown")
    shows("llama", 2048, 8192, 1)
    figure.choose("Layer", "GPT")
    figure.press("Hidden size h", "ArrowRight")
    shows("gpt", 2112, 8192, 1)
    h = figure.drag("Hidden size h", 0.5)
    assert h > 4000
    shows("gpt", h, 8192, 1)
    figure.press("MLP width f", "ArrowRight", "PageUp")
    f = int(figure.slider("MLP width f").get_attribute("aria-valuetext").split(".")[0])
    assert f > 8192
    shows("gpt", h, f, 1)
    f = figure.drag("MLP width f", 0.1)
    shows("gpt", h, f, 1)
    figure.choose("Queries a K/V head", "8")
    shows("gpt", h, f, 1 / 8)
    figure.choose_by_key("Queries a K/V head", "ArrowUp")
    shows("gpt", h, f, 1 / 4)
    figure.shot("own numbers")
    figure.choose("Model", "Llama 2 70B")
    shows("llama", 8192, 28672, 1 / 8)
    figure.shows(r"68,976,648,192 parameters in 80 layers")
    figure.shot("Llama 2 70B")
    layer = layer_parameters("llama", 8192, 28672, 1 / 8)
    figure.write("L", 3)
    figure.shows(rf"{3 * layer + 2 * 32000 * 8192 + 8192:,} parameters in 3 layers")
    figure.write("V", 1000)
    figure.shows(rf"{3 * layer + 2 * 1000 * 8192 + 8192:,} parameters in 3 layers")
    figure.box("Output layer shares").click()
    figure.shows(rf"{3 * layer + 1000 * 8192 + 8192:,} parameters in 3 layers")
    figure.step("Positions", "ArrowUp")
    figure.shows(rf"{3 * layer + 1001 * 8192 + 8192:,} parameters in 3 layers")
    figure.choose_by_key("Model", "Home")
    figure.shows(r"124,439,808 parameters in 12 layers")


@of("layer_walk")
def test_walk_through_one_layer(figure):
    figure.shot("opening")
    linear, core = 0, 0
    for i, (sbh, as2b) in enumerate(GPT, 1):
        (figure.click if i % 2 else figure.enter)("Next")
        linear, core = linear + sbh, core + as2b
        figure.shows(rf"Operation {i} of 18, .*So far ([\d.]+) sbh and ([\d.]+) as²b", linear, core)
    assert (linear, core) == (34, 5)
    figure.shot("all")
    figure.box("FlashAttention").click()
    figure.shows(r"So far ([\d.]+) sbh and ([\d.]+) as²b", 34, 0)
    figure.box("Dropout").focus()
    figure.page.keyboard.press("Space")
    figure.shows(r"So far ([\d.]+) sbh and ([\d.]+) as²b", 32, 0)
    figure.box("FlashAttention").focus()
    figure.page.keyboard.press("Space")
    figure.shows(r"So far ([\d.]+) sbh and ([\d.]+) as²b", 32, 2)
    figure.shot("without dropout")
    figure.box("Dropout").click()
    figure.shows(r"So far ([\d.]+) sbh and ([\d.]+) as²b", 34, 5)
    figure.box("Llama-style layer").click()
    figure.shows(r"So far ([\d.]+) sbh and ([\d.]+) as²b", 12 + 4 + 8 * 2.6875, 2)
    assert figure.box("Dropout").is_disabled()
    figure.shot("Llama-style")
    figure.box("Llama-style layer").focus()
    figure.page.keyboard.press("Space")
    figure.click("Back")
    figure.enter("Back")
    figure.shows(r"Operation 16 of 18, .*So far ([\d.]+) sbh", 33)
    figure.press("Operation", "ArrowLeft")
    figure.shows(r"Operation 15 of 18, .*So far ([\d.]+) sbh", 25)
    at = figure.drag("Operation", 0.4)
    figure.shows(
        rf"Operation {at} of 18, .*So far ([\d.]+) sbh and ([\d.]+) as²b",
        *(sum(amount[i] for amount in GPT[:at]) for i in (0, 1)),
    )
    figure.shot("half way")
    figure.click("All")
    figure.shows(r"So far ([\d.]+) sbh", 34)


@of("layer_walk")
def test_a_click_on_a_drawn_operation_goes_there(figure):
    def click_all(amounts):
        for i in range(len(amounts)):
            number = 1 + 7 * i % len(amounts)
            figure.page.mouse.click(*figure.drawn(number))
            figure.stands_at(number, amounts)

    drawn = figure.root.locator("svg:visible text[text-anchor=middle]").all_text_contents()
    named = figure.operations.all_text_contents()
    assert named == [f"{i}. {name}" for i, name in enumerate(drawn, 1)]
    figure.operations.evaluate_all("all => all.forEach(button => { button.kept = true; })")
    click_all(GPT)
    figure.box("Llama-style layer").click()
    figure.shows(r"Operation \d+ of (\d+)", len(LLAMA))
    click_all(LLAMA)
    figure.shot("Llama-style, clicked")
    figure.box("FlashAttention").click()
    figure.shows(r"Operation \d+ of (\d+)", len(LLAMA_FLASH))
    click_all(LLAMA_FLASH)
    figure.box("FlashAttention").click()
    figure.box("Llama-style layer").click()
    figure.shows(r"Operation \d+ of (\d+)", len(GPT))
    # Through all this the buttons of the page have stayed; only what came on top went and came.
    assert figure.operations.evaluate_all("all => all.map(button => !!button.kept)") == [True] * 16 + [False] * 2


@of("layer_walk")
def test_operations_are_reached_by_tab_and_arrows(figure):
    def focused():
        return figure.operations.evaluate_all("all => all.indexOf(document.activeElement) + 1")

    figure.page.mouse.click(*figure.drawn(5))
    figure.stands_at(5, GPT)
    figure.root.get_by_role("button", name="All", exact=True).focus()
    figure.page.keyboard.press("Tab")
    assert focused() == 5
    for keys, key, number in (
        (["ArrowDown", "ArrowDown"], "Enter", 7),
        (["ArrowUp"], "Space", 6),
        (["End"], "Enter", 18),
        (["ArrowRight"], "Space", 18),
        (["Home", "ArrowRight", "ArrowRight", "ArrowLeft"], "Enter", 2),
    ):
        for move in keys:
            figure.page.keyboard.press(move)
        assert focused() == number
        figure.page.keyboard.press(key)
        figure.stands_at(number, GPT)
        assert focused() == number
    figure.page.keyboard.press("ArrowDown")
    figure.shot("focus")
    figure.page.keyboard.press("Shift+Tab")
    assert figure.root.get_by_role("button", name="All", exact=True).evaluate("all => all === document.activeElement")
    # Whatever moves the walk takes the mark along, and Tab then leads there.
    figure.press("Operation", "ArrowRight", "ArrowRight")
    figure.stands_at(4, GPT)
    figure.box("Llama-style layer").focus()
    figure.page.keyboard.press("Space")
    figure.stands_at(4, LLAMA)
    figure.root.get_by_role("button", name="All", exact=True).focus()
    figure.page.keyboard.press("Tab")
    assert focused() == 4
    for _ in range(12):
        figure.page.keyboard.press("ArrowDown")
    figure.page.keyboard.press("Enter")
    figure.stands_at(16, LLAMA)
    figure.box("Llama-style layer").click()
    figure.stands_at(16, GPT)


@of("checkpoint_every_k")
def test_a_checkpoint_every_k_layers(figure):
    figure.shot("opening")

    def shows(L, k, A):
        peaks = {other: max(held_by_layers(L, 2, A, other)) for other in range(1, L + 1)}
        figure.shows(rf"L = {L}, .* every {'layer' if k == 1 else f'{k} layers'} the peak is ([\d.,]+\d)", peaks[k])
        figure.shows(r"M\(k\) = \(L/k\)c \+ kA gives ([\d.,]+\d)", L / k * 2 + k * A)
        figure.shows(
            r"lowest peak is ([\d.,]+) at k = \d.*√\(Lc/A\) = ([\d.]+)\.",
            min(peaks.values()),
            round((2 * L / A) ** 0.5, 2),
        )
        figure.shows(rf"\n{k}\s+([\d.,]+)\s+([\d.,]+)", peaks[k], L / k * 2 + k * A)
        figure.shows(r"takes (4) forward passes instead of 3, whatever k: \+(33)%", 4, 33)

    shows(24, 6, 34)
    for key, k in (("ArrowRight", 7), ("ArrowLeft", 6), ("ArrowLeft", 5)):
        figure.press("k", key)
        shows(24, k, 34)
    k = figure.drag("k", 0.6)
    shows(24, k, 34)
    figure.shot(f"k = {k}")
    figure.choose("A, in sbh", "114 (the 1.3B example)")
    shows(24, k, 114)
    figure.choose_by_key("A, in sbh", "Home")
    figure.click("Best k")
    shows(24, 1, 34)
    figure.press("Layers L", "ArrowRight")
    shows(25, 1, 34)
    L = figure.drag("Layers L", 0.75)
    assert L > 80
    shows(L, 1, 34)
    figure.enter("Best k")
    shows(L, min(range(1, L + 1), key=lambda k: max(held_by_layers(L, 2, 34, k))), 34)
    figure.shot(f"L = {L}, best k")
    k = figure.drag("k", 1)
    assert k == L
    shows(L, L, 34)
    figure.press("Layers L", "Home")
    shows(1, 1, 34)


@of("does_it_fit")
def test_does_it_fit(figure):
    figure.shot("opening")
    example = (EXAMPLE, 24, 2048, 8, 2048, 16, 50257)

    def shows(shape, gpu_bytes, **fixes):
        parts = one_gpu(*shape, **fixes)
        total = sum(parts.values())
        figure.shows(r"in all\s+[\d.,]+\s+([\d.,]+)", total / 1e9)
        for words, name in (("weights", "weights"), ("optimizer states", "optimizer"), ("activations", "activations")):
            figure.shows(rf"\n{words}\s+[\d.,]+\s+([\d.,]+)", parts[name] / 1e9)
        free = 1 - total / gpu_bytes
        if free < 0:
            figure.shows(r"Does not fit: ([\d.,]+) GB too much", (total - gpu_bytes) / 1e9)
        else:
            words = r"Fits, with ([\d.]+)% free" if free >= 0.15 else r"15% line: only ([\d.]+)% stays free"
            figure.shows(words, 100 * free if free >= 0.0999 else round(100 * free, 1))

    shows(example, 80e9)
    figure.box("FlashAttention").click()
    shows(example, 80e9, mode="flash")
    assert "What moved: activations 91.8 → 27.4 GB; what did not: weights, gradients" in figure.text
    figure.shot("FlashAttention")
    figure.box("Full checkpointing").focus()
    figure.page.keyboard.press("Space")
    shows(example, 80e9, mode="full")
    figure.choose("Micro-batch", "4")
    half = (*example[:3], 4, *example[4:])
    shows(half, 80e9, mode="full")
    figure.box("Full checkpointing").click()
    figure.choose("GPU", "A100 40 GB (40 GB)")
    figure.choose_by_key("Number of GPUs", "8")
    figure.choose("ZeRO", "stage 2")
    shows(half, 40e9, mode="flash", zero=2, n_gpus=8)
    figure.choose_by_key("Micro-batch", "ArrowUp")
    shows(example, 40e9, mode="flash", zero=2, n_gpus=8)
    figure.shot("8 GPUs, over the line")
    figure.choose_by_key("ZeRO", "ArrowDown")
    shows(example, 40e9, mode="flash", zero=3, n_gpus=8)
    figure.choose("Tensor parallel t", "4")
    shows(example, 40e9, mode="flash", zero=3, n_gpus=8, t=4)
    figure.choose_by_key("Tensor parallel t", "ArrowUp")
    shows(example, 40e9, mode="flash", zero=3, n_gpus=8, t=2)
    figure.box("Offload").click()
    shows(example, 40e9, mode="flash", zero=3, n_gpus=8, t=2, offload=True)
    figure.click("No fix")
    shows(example, 40e9, n_gpus=8)
    for label, value, shape in (("b", 6, (*example[:3], 6)), ("s", 1024, (EXAMPLE, 24, 1024, 6))):
        figure.write(label, value)
        shows((*shape, *example[4:]), 40e9, n_gpus=8)
    figure.step("b", "ArrowUp")
    shows((EXAMPLE, 24, 1024, 7, *example[4:]), 40e9, n_gpus=8)
    # The ladder of a model that needs most of it.
    figure.choose("Model", "Llama 2 7B")
    shows((LLAMA_7B, 32, 4096, 1, 4096, 32, 32000), 40e9, n_gpus=8)
    figure.write("b", 4)
    seven = (LLAMA_7B, 32, 4096, 4, 4096, 32, 32000)
    figure.choose_by_key("GPU", "R")
    for words, limited_by in (("communication", "communication"), ("compute", "compute")):
        figure.choose("Limited by", words)
        figure.click("No fix")
        rungs = climb(*seven, 24e9, 8, limited_by)
        for i, (_, peak) in enumerate(rungs[1:]):
            (figure.click if i % 2 else figure.enter)("Climb one rung")
            figure.shows(r"in all\s+[\d.,]+\s+([\d.,]+)", peak / 1e9)
        figure.shows(r"The cheapest fix is .*: ([\d.,]+) GB", rungs[-1][1] / 1e9)
        assert "Fits" in figure.text
        figure.shot(f"the ladder, limited by {limited_by}")
    figure.choose_by_key("Model", "T")
    figure.shows(r"in all\s+([\d.,]+)\s+[\d.,]+", sum(one_gpu(*example, n_gpus=8).values()) / 1e9)


def test_keys_for_a_control_are_not_the_notebooks(open_page, shots):
    """In a notebook D, D deletes a cell and 1 makes it a heading: not while a list of a figure has the focus."""
    page, *_ = open_page
    figure = Figure(page, 4, shots)
    cells = page.locator(".jp-Notebook .jp-CodeCell").count()
    figure.choose_by_key("Limited by", "d", "d", "1", "x", "ArrowDown")
    figure.choose_by_key("Limited by", "ArrowUp")
    page.wait_for_timeout(300)
    assert page.locator(".jp-Notebook .jp-CodeCell").count() == cells
    assert figure.labelled("Limited by", "select").evaluate("list => document.activeElement === list")


def test_the_small_screen_has_the_same_numbers_and_nothing_sticks_out(open_page, shots):
    page, *_ = open_page
    page.keyboard.press("Control+b")  # the side bar; the focus is in a figure, and this is the notebook's all the same
    page.set_viewport_size(SMALL)
    page.wait_for_timeout(500)
    try:
        for index in range(5):
            figure = Figure(page, index, shots)
            figure.root.scroll_into_view_if_needed()
            figure.shot("small")
            picture = figure.root.locator("svg:visible")
            assert picture.get_attribute("class") == "narrow"
            size = picture.evaluate("svg => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width") * 13
            assert size >= 11
            sticking_out = figure.root.evaluate(
                """root => {
                  const edge = root.getBoundingClientRect().right + 1;
                  return [...root.querySelectorAll('*')]
                    .filter(node => node.getClientRects().length && !node.closest('.noUi-target'))
                    .filter(node => node.getBoundingClientRect().right > edge)
                    .map(node => node.outerHTML.slice(0, 90)) }"""
            )
            assert sticking_out == []
        walk = Figure(page, NAMES.index("layer_walk"), shots)
        sizes = walk.operations.evaluate_all(
            "all => all.map(spot => Math.min(spot.offsetWidth, spot.getBoundingClientRect().height))"
        )
        assert min(sizes) >= 24
        finger = page.context.new_cdp_session(page)
        for number in (15, 3, 8):
            x, y = walk.drawn(number)
            finger.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
            finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
            walk.stands_at(number, GPT)
        walk.shot("small, tapped")
    finally:
        page.set_viewport_size(LARGE)
        page.keyboard.press("Control+b")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(open_page, axe, shots, theme):
    page, *_ = open_page
    if theme == "dark":
        choose_theme(page, "dark")
        for index in range(5):
            Figure(page, index, shots).shot("dark")
    assert axe(page, ".trainmem-figure") == []
    assert page.locator(".trainmem-figure .trainmem-numbers [aria-live=polite]").count() == 5


def test_nothing_was_said_on_the_console_and_nothing_asked_of_other_machines(open_page, lab):
    """Last of this file: all that went before is in it."""
    _, said, asked = open_page
    assert said == []
    assert asked
    assert [url for url in asked if not url.startswith((lab, "data:", "blob:"))] == []
