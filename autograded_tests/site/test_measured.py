"""Recorded runs of the GPU notebook: what `trainmem.measure` saves is what the page shows."""

import json
import re
import subprocess
import sys

import pytest

from trainmem.measure.checkpointing import Shapes
from trainmem.measure.results import Results, ResultsError, load
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


@pytest.mark.parametrize(
    ("spoil", "lacks"),
    [
        (lambda run: run.pop("device"), "device"),
        (lambda run: run["device"].pop("kind"), r"device\.kind"),
        (lambda run: run.pop("versions"), "versions"),
        (lambda run: run["cases"][0].pop("predicted_bytes"), r"cases\[0\]"),
        (lambda run: run["cases"][0].pop("measured_bytes"), r"cases\[0\]"),
    ],
)
def test_a_run_that_lacks_something_is_named_on_both_sides(spoil, lacks, run, tmp_path):
    run.save()
    found = json.loads(run.path.read_text())
    spoil(found)
    run.path.write_text(json.dumps(found))
    with pytest.raises(ValueError, match=rf"run\.json lacks {lacks};.*Mend it, or take it out of"):
        runs_markdown(tmp_path)
    with pytest.raises(ResultsError, match=rf"run\.json lacks {lacks};"):
        load(run.path)


def test_another_layout_is_named(run, tmp_path):
    run.save()
    run.path.write_text(run.path.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(ValueError, match=r"run\.json has layout 2, .* reads layout 1"):
        runs_markdown(tmp_path)


def test_no_torch_is_needed():
    program = "import sys; sys.modules['torch'] = None; import trainmem.site.measured"
    subprocess.run([sys.executable, "-c", program], check=True)
