"""Exercise 4's picture of the student's timeline over the right one: it marks the first event that differs."""

import re
import xml.etree.ElementTree as ET

import pytest

from trainmem_solutions import timeline

SVG = "{http://www.w3.org/2000/svg}"
RIGHT = timeline.memory_timeline(12, 2, 34, 4)


def drawn(monkeypatch, capsys, answer):
    """What the cell says, and the picture, for an answer that gives these values."""
    monkeypatch.setattr(timeline, "memory_timeline", lambda L, c, A, k=None: answer)
    picture = timeline.your_timeline()
    return capsys.readouterr().out, ET.fromstring(picture._repr_svg_())


def changed(at, by):
    return [value + by * (i == at) for i, value in enumerate(RIGHT)]


@pytest.mark.parametrize(
    ("answer", "at", "name"),
    [
        (changed(0, 34), 0, "event 1, forward of layer 0"),
        (changed(12, -2), 12, "event 13, rebuild of layer 8"),
        (changed(19, 2), 19, "event 20, backward of layer 8"),
        (changed(35, 2), 35, "event 36, backward of layer 0"),
        ([*RIGHT, 0], 36, "event 37"),
        (RIGHT[:-1], 35, "event 36, backward of layer 0"),
    ],
)
def test_the_first_event_that_differs_is_marked(monkeypatch, capsys, answer, at, name):
    said, svg = drawn(monkeypatch, capsys, answer)
    if len(answer) == len(RIGHT):
        assert said.startswith(f"{name}: ")  # the words and the mark are of the same event
    assert svg.get("aria-label").endswith(f"First difference: {name}")
    [words] = [text for text in svg.iter(f"{SVG}text") if text.text == name]
    longest, top = max(len(answer), len(RIGHT)), max(*answer, *RIGHT)
    x = 50 + 570 * at / (longest - 1)
    assert abs(float(words.get("x")) - x) < 8
    assert float(words.get("x")) + 8 * len(name) * (words.get("text-anchor") == "start") < 640
    assert float(words.get("x")) - 8 * len(name) * (words.get("text-anchor") == "end") > 0
    [line] = [path for path in svg.iter(f"{SVG}path") if path.get("stroke") == "black"]
    assert float(re.match(r"M([\d.]+) ", line.get("d"))[1]) == pytest.approx(x, abs=0.1)
    rings = [(float(ring.get("cx")), float(ring.get("cy")), ring.get("stroke")) for ring in svg.iter(f"{SVG}circle")]
    expected = [
        (x, 240 - 190 * values[at] / top, colour)
        for values, colour in ((RIGHT, "#0072B2"), (answer, "#D55E00"))
        if at < len(values)
    ]
    assert [ring[2] for ring in rings] == [ring[2] for ring in expected]
    for ring, wanted in zip(rings, expected, strict=True):
        assert ring[:2] == pytest.approx(wanted[:2], abs=0.1)


def test_both_curves_have_the_same_events_at_the_same_places(monkeypatch, capsys):
    _, svg = drawn(monkeypatch, capsys, RIGHT[:24])
    right, yours = (
        [point.split(",")[0] for point in line.get("points").split()] for line in svg.iter(f"{SVG}polyline")
    )
    assert right[:24] == yours


def test_nothing_is_marked_on_a_right_timeline(monkeypatch, capsys):
    said, svg = drawn(monkeypatch, capsys, RIGHT)
    assert said == "Your timeline is the right one.\n"
    assert "difference" not in svg.get("aria-label")
    assert [*svg.iter(f"{SVG}circle")] == []
