"""The pictures themselves: well-formed, self-contained, readable at both widths, and the same every time."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import ipywidgets
import pytest

from trainmem import figures
from trainmem.figures import checkpoints, fit, parameters, timeline, walk
from trainmem.figures.amounts import gb
from trainmem.figures.svg import NARROW, WIDE, length_of
from trainmem.memory import MODELS

ROOT = Path(__file__).parents[2]
OKABE_ITO = {"#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"}
OTHERS = {"none", "currentColor", "#999999", "#ffffff"}  # ink, grey, and white words on blue

FIGURES = {
    "step_timeline": figures.step_timeline,
    "layer_parameters": figures.layer_parameters,
    "layer_walk": figures.layer_walk,
    "checkpoint_every_k": figures.checkpoint_every_k,
    "does_it_fit": figures.does_it_fit,
}


def settings():
    """Many states of every figure."""
    for preset in timeline.PRESETS.values():
        for recompute, k in (("none", 1), ("selective", 1), ("full", 1), ("full", 5)):
            for reading in timeline.READINGS:
                yield timeline.picture(*preset[:3], recompute, k, reading, False)
        yield timeline.picture(*preset[:3], "selective", 1, "exact", True, at=0)
        yield timeline.picture(*preset[:3], "full", 3, "exact", True, at=10**6)
    for model in MODELS.values():
        for g in (1, 8):
            sizes = (model.h, model.f, g, model.L, model.V, model.tied, model.positions)
            yield parameters.picture(model.title, model.style, *sizes)
    yield parameters.picture("small", "gpt", 64, 65536, 64, 1, 10_000_000, False, 1_000_000)
    for style in ("gpt", "llama"):
        for fused in (False, True):
            for dropout in (False, True):
                for at in (0, 1, 7, 99):
                    yield walk.picture(style, fused, dropout, at)
    for L in (1, 2, 24, 33, 128):
        for k in (1, 2, L // 2 or 1, L):
            for A in (34, 114):
                yield checkpoints.picture(L, k, A)
    for name in MODELS:
        for gpu, n_gpus in (("t4", 1), ("a100-80", 8), ("b200", 64)):
            case = fit.Case(name, 4096, 16, gpu, n_gpus)
            yield fit.picture(case, fit.Fixes())
            yield fit.picture(case, fit.Fixes(True, True, 3, 4, 1, True), fit.Fixes(flash=True))


@pytest.fixture(scope="module")
def drawn():
    pictures = list(settings())
    return [(picture, layout, picture.draw(layout)) for picture in pictures for layout in (WIDE, NARROW)]


def tag(element):
    return element.tag.rsplit("}", 1)[-1]


def test_every_picture_is_plain_svg_without_script_or_reference(drawn):
    for _, layout, svg in drawn:
        root = ET.fromstring(svg)
        used = {tag(element) for element in root.iter()}
        assert used <= {"svg", "rect", "path", "text", "circle"}, used
        names = {name.rsplit("}", 1)[-1] for element in root.iter() for name in element.attrib}
        assert not {name for name in names if name.startswith("on") or name in ("href", "style", "id", "src")}
        assert not re.search(r"url\(|https?:", svg.replace('xmlns="http://www.w3.org/2000/svg"', ""))
        assert root.get("class") == ("narrow" if layout is NARROW else "wide")


def test_every_picture_says_its_numbers(drawn):
    for picture, _, svg in drawn:
        root = ET.fromstring(svg)
        assert root.get("role") == "img"
        label = root.get("aria-label")
        assert len(re.findall(r"\d", label)) >= 4
        # The sentence under the picture opens with the same words.
        first = re.sub(r"<[^>]+>", "", picture.text.split("</p>")[0]).replace("&#x27;", "'").rstrip(".")
        assert first.split(": ")[0] in label


def test_only_okabe_ito_and_ink_are_used(drawn):
    for _, _, svg in drawn:
        colours = {element.get(name) for element in ET.fromstring(svg).iter() for name in ("fill", "stroke")} - {None}
        assert colours <= OKABE_ITO | OTHERS, colours


def test_everything_stays_inside_the_picture_and_no_words_are_small(drawn):
    """At 400 pixels the notebook leaves 258 to a picture: that has to be 11 pixels a letter at least."""
    for picture, layout, svg in drawn:
        root = ET.fromstring(svg)
        _, _, width, height = map(float, root.get("viewBox").split())
        assert float(root.get("font-size")) * (258 / width if layout is NARROW else 600 / width) >= 10.8
        for element in root.iter():
            if tag(element) == "rect":
                x, y, w, h = (float(element.get(name)) for name in ("x", "y", "width", "height"))
                assert -0.5 <= x <= x + w <= width + 1, (picture.sentence, ET.tostring(element))
                assert -0.5 <= y <= y + h <= height + 1, (picture.sentence, ET.tostring(element))
            if tag(element) == "text":
                long = length_of(element.text, layout.size) * 0.9
                x, anchor = float(element.get("x")), element.get("text-anchor", "start")
                left = x - {"start": 0, "middle": 0.5, "end": 1}[anchor] * long
                assert -6 <= left < left + long <= width + 6, (picture.sentence, element.text, left, long)
                assert 8 <= float(element.get("y")) <= height


def overlapping(svg, size):
    boxes = []
    for element in ET.fromstring(svg).iter():
        if tag(element) == "text":
            long = length_of(element.text, size) * 0.85
            x = (
                float(element.get("x"))
                - {"start": 0, "middle": 0.5, "end": 1}[element.get("text-anchor", "start")] * long
            )
            y = float(element.get("y"))
            boxes.append((x, x + long, y - 0.7 * size, y, element.text))
    return [
        (a[4], b[4])
        for i, a in enumerate(boxes)
        for b in boxes[i + 1 :]
        if a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]
    ]


def test_no_words_lie_on_other_words(drawn):
    for picture, layout, svg in drawn:
        assert overlapping(svg, layout.size) == [], (picture.sentence, layout)


def test_a_picture_is_a_function_of_its_numbers():
    once, twice = ([picture.draw(NARROW) for picture in settings()] for _ in "ab")
    assert once == twice


def test_static_pictures_are_the_committed_files():
    folder = ROOT / "notebooks" / "figures"
    pictures = figures.static_pictures()
    assert {path.name: path.read_text("utf-8") for path in folder.glob("*.svg")} == pictures
    for text in pictures.values():
        root = ET.fromstring(text)
        assert [tag(element) for element in root][:2] == ["title", "rect"]
        assert root[1].get("fill") == "#ffffff"
        assert "var(" not in text


def test_static_pictures_are_the_same_bytes_in_another_process(tmp_path):
    subprocess.run([sys.executable, "-m", "trainmem.figures", tmp_path], cwd=ROOT, check=True, capture_output=True)
    assert {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()} == figures.static_pictures()


# --- the widgets ---------------------------------------------------------------------------------------------------


def controls(figure):
    """Every control by its label, those that lie on the picture too."""
    boxes = [row for row in figure.children if isinstance(row, ipywidgets.Box)]
    boxes += [part for row in boxes for part in row.children if isinstance(part, ipywidgets.Box)]
    inside = [part for row in boxes for part in row.children if not isinstance(part, ipywidgets.Box | ipywidgets.HTML)]
    return {control.description: control for control in inside}


@pytest.mark.parametrize("name", list(FIGURES))
def test_a_figure_is_a_widget_whose_repr_is_a_sentence(name):
    figure = FIGURES[name]()
    assert isinstance(figure, ipywidgets.Widget)
    assert re.search(r"\d", repr(figure))
    assert len(repr(figure)) <= 110
    assert all(label for label, control in controls(figure).items() if not isinstance(control, ipywidgets.Play))


@pytest.mark.parametrize("name", list(FIGURES))
def test_no_control_leaves_the_figure_without_a_picture(name):
    """Each control is moved from one end to the other."""
    figure = FIGURES[name]()
    for control in controls(figure).values():
        if isinstance(control, ipywidgets.Button):
            control.click()
            control.click()
        elif isinstance(control, ipywidgets.Checkbox):
            control.value = not control.value
        elif isinstance(control, ipywidgets.Dropdown):
            for _, value in control.options:
                control.value = value
                assert "<svg" in figure._picture.value, (control.description, value)
        elif control.description not in ("h", "a"):  # heads have to divide h: below
            for value in (control.min, min(control.max, 4096), control.min + control.step):
                control.value = value
                assert "<svg" in figure._picture.value, (control.description, value)
        assert figure._picture.value.count("<svg") == 2


def test_sizes_that_do_not_go_together_are_named_and_mended():
    figure = figures.step_timeline()
    sizes = controls(figure)
    sizes["a"].value = 15
    assert "15 heads do not divide a hidden size of 2048" in figure._numbers.value
    sizes["a"].value = 32
    assert "<svg" in figure._picture.value
    assert sizes["Model"].value == "own"


def test_a_preset_sets_every_field_and_draws_once(monkeypatch):
    figure = figures.step_timeline()
    drawings = []
    monkeypatch.setattr(figure, "redraw", lambda: drawings.append(1))
    controls(figure)["Model"].value = "llama-7b"
    assert len(drawings) == 1
    assert [controls(figure)[name].value for name in "LhaVsb"] == [32, 4096, 32, 32000, 4096, 1]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: figures.step_timeline("gpt-9"), "preset is one of 1.3b"),
        (lambda: figures.layer_parameters("gpt-9"), "preset is one of"),
        (lambda: figures.layer_walk("rnn"), "'gpt' or 'llama'"),
        (lambda: figures.does_it_fit(gpu="abacus"), "gpu is one of t4"),
        (lambda: figures.does_it_fit(n_gpus=0), "at least 1"),
    ],
)
def test_unknown_names_are_refused_with_what_there_is(make, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        make()


def test_gb_is_ten_to_the_ninth():
    assert gb(2**30) == "1.07 GB"


CLICKED = """
import ipywidgets
from trainmem import figures
assert ipywidgets.__version__ == "7.7.1"
walk = figures.layer_walk("llama")
spots = walk.children[3].children[1]
for spot in spots.children[8], spots.children[-1]:
    spot.click()
    print(walk._numbers.value.split("</p>")[0], [part.description for part in spots.children if part._dom_classes])
"""


def test_a_click_on_an_operation_works_with_colabs_widgets(colab):
    run = subprocess.run(
        [colab, "-c", CLICKED], cwd=ROOT, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)}
    )
    assert run.returncode == 0, run.stderr
    first, last = run.stdout.splitlines()
    assert "Operation 9 of 19, softmax" in first
    assert "So far 8 sbh and 2 as²b." in first
    assert "So far 37.5 sbh and 2 as²b." in last
    assert first.endswith("['9. softmax']")
    assert last.endswith("['19. add']")
