"""The page of comparisons says what its script says, and our column is the nearest."""

import importlib.util
import re

import pytest

from autograded_tests.notebooks import ROOT

PAGE = (ROOT / "notebooks" / "measured" / "README.md").read_text()


@pytest.fixture(scope="module")
def prediction():
    spec = importlib.util.spec_from_file_location("prediction", ROOT / "benchmarks" / "prediction.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def computed(prediction):
    return prediction.table_rows(prediction.PEERS)


def page_rows(title):
    """Row → column → text of the page's table under this heading."""
    lines = PAGE.split(f"### {title}\n\n")[1].split("\n\n")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(cells[0][1:], row[1:], strict=True)) for row in cells[2:]}


def number(text):
    return None if text == "—" else float(text.strip("*"))


@pytest.mark.parametrize("table", ["layer", "loss", "step", "large"])
def test_the_page_has_what_the_script_computes(prediction, computed, table):
    page = page_rows(prediction.TITLES[table])
    assert list(page) == list(computed[table])
    for name, row in computed[table].items():
        assert set(page[name]) == {*row, "llm-analysis"}
        for column, value in row.items():
            assert number(page[name][column]) == (value if value is None else pytest.approx(value, abs=0.0051)), name


@pytest.mark.parametrize("table", ["layer", "loss", "step"])
def test_ours_is_nearest_to_the_measurement(prediction, table):
    for name, row in page_rows(prediction.TITLES[table]).items():
        numbers = {column: number(text) for column, text in row.items()}
        best = prediction.nearest(numbers)
        assert "trainmem" in best, name
        assert best == {column for column, text in row.items() if text.startswith("**")}
        assert abs(numbers["trainmem"] / numbers["measured"] - 1) < 0.001, name


def test_small_shapes_have_the_proportions_of_the_real_ones(prediction):
    from trainmem.memory import MODELS

    small = prediction.LAYERS
    for name, model in (("LLaMA 7B, fused attention", "llama-7b"), ("Llama 2 70B, fused attention", "llama2-70b")):
        x, real = small[name], MODELS[model]
        assert (x.f / x.h, x.a / x.kv, x.h // x.a) == (real.f / real.h, real.a / real.kv, real.h // real.a)
    x, real = small["LLaMA 7B, s = 4096, eager attention"], MODELS["llama-7b"]
    assert (x.f / x.h, x.a * x.s / x.h) == (real.f / real.h, real.a * 4096 / real.h)
    x, real = small["the 1.3B example, eager attention"], MODELS["1.3b"]
    assert (x.f / x.h, x.a * x.s / x.h) == (4, real.a * 2048 / real.h)


def test_the_peers_formulas_at_published_figures(prediction):
    layer = prediction.LAYERS["LLaMA 7B, fused attention"]
    assert prediction.megatron(layer) == 28.75
    assert prediction.eleuther(layer) == 34
    assert prediction.accelerate_step(prediction.LARGE) == 8 * 6_738_415_616
    assert prediction.LARGE.psi == 6_738_415_616


def test_a_calculator_that_cannot_be_run_is_said_to_be_missing(prediction, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["prediction.py", "--llm-analysis", "/nowhere/python"])
    monkeypatch.setattr(prediction, "table_rows", lambda peers: {"layer": {"x": {"measured": 1.0, "trainmem": 1.0}}})
    assert prediction.main() == 1
    said = capsys.readouterr()
    assert "llm-analysis could not be run here" in said.err
    assert not re.search("llm-analysis", said.out)
