"""Recorded runs of the GPU notebook: what `trainmem.measure` saves is what the page shows."""

import re

import pytest

from trainmem.measure.checkpointing import Shapes
from trainmem.measure.results import Results
from trainmem.site.measured import runs_markdown


@pytest.fixture
def run(tmp_path):
    shapes = dict.fromkeys(Shapes.__annotations__, 1)
    cases = [
        {"s": 1024, "setting": "every 1", "predicted_bytes": 10_000_000_000, "outcome": "measured"}
        | {"measured_bytes": 10_150_000_000, "forward_seconds": 1.0, "backward_seconds": 2.0},
        {"s": 2048, "setting": "no checkpoints", "predicted_bytes": 90_000_000_000, "outcome": "out of memory"},
    ]
    device = {"kind": "cuda", "name": "Some <GPU>"}
    return Results(
        device, {"torch": "2.13.0", "cuda": "13.0"}, "2026-02-03T04:05:06+00:00", shapes, cases, tmp_path / "run.json"
    )


def test_a_folder_without_a_run_says_so(tmp_path):
    said = runs_markdown(tmp_path)
    assert "No run on a GPU has been recorded" in said
    assert "on a CPU" in said


def test_a_run_on_a_gpu_becomes_a_table(run, tmp_path):
    run.save()
    shown = runs_markdown(tmp_path)
    assert "No run" not in shown
    assert "Some &lt;GPU&gt;, 2026-02-03, torch 2.13.0, cuda 13.0" in shown
    rows = [re.findall(r">([^<]+)</t[hd]>", row) for row in shown.split("<tr>")[2:]]
    assert rows[0] == ["every 1", "1,024", "10.0 GB", "10.2 GB", "+1.5%"]
    assert rows[1] == ["no checkpoints", "2,048", "90.0 GB", "out of memory"]


def test_a_run_on_a_cpu_is_none_on_a_gpu(run, tmp_path):
    run.device["kind"] = "cpu"
    run.save()
    assert "No run on a GPU" in runs_markdown(tmp_path)


@pytest.mark.parametrize("text", ["[]", '{"kind": "something else"}', "{"])
def test_a_file_of_another_kind_is_named(text, tmp_path):
    (tmp_path / "notes.json").write_text(text)
    with pytest.raises(ValueError, match=r"notes\.json"):
        runs_markdown(tmp_path)
