"""The figures' frames: what the page joins is what the figures draw, and the script beside them computes nothing."""

import json
import re

import pytest

from trainmem import figures
from trainmem.site.formulas import mathml
from trainmem.site.moves import MOVES, Frame
from trainmem.site.packing import sections

every_figure = pytest.mark.parametrize("name", MOVES)


@pytest.fixture(scope="module")
def moves():
    return {name: made() for name, made in MOVES.items()}


def test_every_figure_of_the_lesson_moves():
    assert set(MOVES) == set(figures.__all__) - {"static_pictures"}


@every_figure
def test_joined_pieces_are_the_figures_own_drawing(moves, name, folder):
    stored = (folder / "frames" / f"{name}.js").read_text("utf-8")
    start = f"(globalThis.trainmemFrames ??= {{}}).{name} = "
    assert stored.startswith(start)
    data = json.loads(stored.removeprefix(start).rstrip(";\n"))
    assert len(data["presets"]) == len(moves[name].presets) > 3
    for kept, preset in zip(data["presets"], moves[name].presets, strict=True):
        assert kept["last"] == len(preset.frames) - 1 >= 1
        assert 0 <= kept["start"] <= kept["last"]
        for row, frame in zip(kept["frames"], preset.frames, strict=True):
            joined = ["".join(data["pieces"][piece] for piece in part) for part in row["html"]]
            picture, told, below = sections(frame)
            assert joined == [picture, told, below]
            assert told + below == frame.picture.text
            assert picture.count("<svg") == 2


@every_figure
def test_titles_and_positions_tell_presets_and_frames_apart(moves, name):
    titles = [preset.title for preset in moves[name].presets]
    assert len(set(titles)) == len(titles)
    for preset in moves[name].presets:
        assert len({frame.at for frame in preset.frames}) == len(preset.frames)
        assert len({frame.picture.text for frame in preset.frames}) == len(preset.frames)


def test_a_frame_without_a_table_is_told_whole():
    moved = MOVES["layer_walk"]().presets[0].frames[0]
    assert isinstance(moved, Frame)
    assert sections(moved)[2] == ""


def test_the_script_holds_no_formula(folder):
    """It picks, joins and shows: no number of two digits, no arithmetic, nothing that computes or reads numbers."""
    source = (folder / "site.js").read_text("utf-8")
    assert computes("a = 34 * b") == ["34", "*"]
    assert computes("x => Math.round(x)") == ["Math"]
    assert computes(source) == []


def computes(source):
    bare = re.sub(r"//[^\n]*", "", source)
    bare = re.sub(r"'[^'\n]*'", "''", bare).replace("=>", "")
    return re.findall(r"Math|Number|parse\w+|eval|Function|\d{2,}|[*/%^]|\+|(?<![\w-])-|\*\*", bare)


def test_a_formula_that_cannot_be_read_is_named():
    assert "<mfrac>" in mathml(r"\frac{a}{b}")
    assert "n_kv_ratio" in mathml(r"\text{n\_kv\_ratio}")
    for wrong in (r"\nosuchcommand x", r"\left( a"):
        with pytest.raises(ValueError, match=r"cannot be read|not known") as told:
            mathml(wrong)
        assert wrong in str(told.value)
