"""The notebook's model on cards of every size, and what is drawn of it."""

import io
import re

import pytest
import torch
from matplotlib.text import Text
from PIL import Image

from autograded_tests.gpu.test_run import record
from trainmem.measure import plots, quantities, tables
from trainmem.measure.checkpointing import LAYERS, SETTINGS, Case, cases, fitting, predict
from trainmem.measure.device import Device
from trainmem.measure.progress import Run
from trainmem.memory import GPUS


def card(gigabytes):
    return Device(f"{gigabytes} GB", "cuda", "cuda", int(gigabytes * 1e9), torch.bfloat16, "")


SIZES = [3.4, 3.9, 5.5, 7.6, 11, *(0.93 * gpu.memory_bytes / 1e9 for gpu in GPUS.values())]


@pytest.mark.parametrize("gigabytes", SIZES)
def test_something_does_not_fit_and_checkpoints_make_it_fit(gigabytes):
    device = card(gigabytes)
    shapes = fitting(device)
    short, middle, longest = shapes.lengths
    verdicts = {(c.s, c.setting.name): predict(device, shapes, c).verdict for c in cases(shapes)}
    assert {verdicts[s, name] for s in (short, middle) for name in SETTINGS} == {"fits"}
    assert verdicts[longest, "no checkpoints"] == "does not fit"
    assert {verdicts[longest, name] for name in ("every 1", "every 3", "selective", "fused")} == {"fits"}
    assert shapes.a * shapes.b * longest**2 < 2**31
    # The tensors are large beside what the allocator rounds and the libraries keep (some 10 MB).
    assert min(predict(device, shapes, c).predicted_bytes for c in cases(shapes)) > 0.5e9


def test_a_card_that_is_too_small_is_told_so():
    with pytest.raises(ValueError, match=r"leaves 1\.00 GB"):
        fitting(card(1.0))


def test_the_extra_time_of_a_full_rebuild_is_a_third_less_the_output_matrix():
    device = card(15)
    shapes = fitting(device)
    s, b, h, V = shapes.lengths[1], shapes.b, shapes.h, shapes.V
    layers = LAYERS * (24 * b * s * h * h + 4 * b * s * s * h)
    expected = layers / (3 * (layers + 2 * b * s * h * V))
    for k in (1, 5, 12):
        assert predict(device, shapes, Case(s, SETTINGS[f"every {k}"])).predicted_extra_time == pytest.approx(expected)
    core = LAYERS * 4 * b * s * s * h / (3 * (layers + 2 * b * s * h * V))
    assert predict(device, shapes, Case(s, SETTINGS["selective"])).predicted_extra_time == pytest.approx(core)
    assert predict(device, shapes, Case(s, SETTINGS["fused"])).predicted_extra_time == 0


def test_the_run_that_ends_names_the_layer():
    device = card(15)
    shapes = fitting(device)
    said = predict(device, shapes, Case(shapes.lengths[2], SETTINGS["no checkpoints"]))
    assert re.fullmatch(r"forward of layer \d+", said.runs_out_at)


@pytest.fixture
def run(cpu):
    run = Run(cpu, fitting(cpu), None)
    for case in cases(run.shapes):
        said = predict(cpu, run.shapes, case)
        changes = vars(said) | {"measured_bytes": said.predicted_bytes}
        if said.verdict == "does not fit":
            changes |= {"outcome": "out of memory", "stopped_at": said.runs_out_at}
        run.results.cases.append(record(case.s, case.setting.name, **changes))
    return run


def drawings(run):
    middle, longest = run.shapes.lengths[1:]
    return {
        "by length": plots.by_length(run),
        "by interval": plots.by_interval(run, middle),
        "by interval, not all fit": plots.by_interval(run, longest),
        "extra time": plots.extra_time(run),
        "compared": plots.compared([run.results, run.results]),
    }


def test_pictures_say_their_numbers(run):
    pictures = drawings(run)
    assert "no checkpoints 3.90 MB, 6.42 MB, out of memory" in pictures["by length"].text
    assert "k = 1 3.73 MB" in pictures["by interval, not all fit"].text
    assert "k = 12 out of memory" in pictures["by interval, not all fit"].text
    assert "every 1 +0% at 64, +0% at 128" in pictures["extra time"].text
    assert pictures["compared"].text.count("at most 0.00% from the prediction") == 2
    for picture in pictures.values():
        assert f'alt="{picture.text}"' in picture._repr_html_()


def test_pictures_are_legible_at_400_pixels_and_on_a_dark_page(run):
    for name, picture in drawings(run).items():
        figure = picture.figure
        figure.draw_without_rendering()
        texts = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text()]
        scale = 400 / (figure.get_figwidth() * 72)  # pixels a point
        assert min(t.get_fontsize() for t in texts) * scale >= 11, name
        drawn = Image.open(io.BytesIO(picture.png)).convert("RGBA")
        assert drawn.width == 800
        assert {drawn.getpixel(xy)[3] for xy in ((0, 0), (799, 0), (400, 5))} == {255}, name
        assert min(drawn.getpixel((0, 0))[:3]) > 245, name
        for text in texts:
            assert contrast_with_white(text.get_color()) >= 4.5, (name, text.get_text())


def contrast_with_white(colour):
    from matplotlib.colors import to_rgb

    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 1.05 / (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)


def test_nothing_measured_is_no_reason_to_fail(cpu):
    empty = Run(cpu, fitting(cpu), None)
    for picture in drawings(empty).values():
        assert picture.png
    assert tables.peaks(empty, cases(empty.shapes)).rows == ()


def test_a_table_is_markdown():
    table = tables.Table(("a", "b"), (("1", "2"),))
    assert table._repr_markdown_() == "| a | b |\n| --- | ---: |\n| 1 | 2 |"
    assert [quantities.part(x) for x in (None, 0.331, -0.001, -0.25)] == ["—", "+33%", "+0%", "−25%"]
    assert [quantities.size(x) for x in (99_999_999, 100_000_000)] == ["100.00 MB", "0.10 GB"]
