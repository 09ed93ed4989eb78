"""A run that is interrupted, that runs out of memory, or that finds damaged files: nothing is lost, all is said."""

import json
import signal
import subprocess
import sys

import pytest
import torch

from autograded_tests.gpu.conftest import SMALL
from autograded_tests.notebooks import ROOT
from trainmem.measure import progress, reading
from trainmem.measure.checkpointing import SETTINGS, Case, cases, measure, predict
from trainmem.measure.device import this_device
from trainmem.measure.progress import Run, TerminalBar
from trainmem.measure.results import ResultsError, load, load_folder

NAMES = ["no checkpoints", "every 1", "every 6", "selective"]


class Silent(TerminalBar):
    def tell(self, done, total, what):
        pass


def test_an_interruption_keeps_what_was_done_and_the_next_call_goes_on(cpu, tmp_path, monkeypatch, capsys):
    wanted, run = cases(SMALL, NAMES, [64]), Run(cpu, SMALL, tmp_path)
    really, calls = progress.measure, []

    def stopped(device, shapes, case):
        calls.append(case)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return really(device, shapes, case)

    monkeypatch.setattr(progress, "measure", stopped)
    assert run.measure(wanted, Silent) is False
    said = capsys.readouterr().out
    assert "s = 64, every 6" in said
    assert "The 2 cases before are kept" in said
    assert [x["setting"] for x in load(run.results.path).cases] == NAMES[:2]
    assert run.measure(wanted, Silent) is True
    assert calls == [*wanted[:3], *wanted[2:]]
    assert [x["setting"] for x in load(run.results.path).cases] == NAMES
    assert not list(tmp_path.glob("*.part"))


def test_a_signal_stops_the_command_and_leaves_a_whole_file(tmp_path):
    command = [sys.executable, "-u", "-m", "trainmem.measure", "--save", str(tmp_path)]
    running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for line in running.stdout:
            if line.strip().startswith("4 of"):
                break
        running.send_signal(signal.SIGINT)
        rest, _ = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 130
    (path,) = tmp_path.glob("*.json")
    done = load(path).cases
    assert len(done) >= 3
    assert f"The {len(done)} cases before are kept" in rest


def test_out_of_memory_is_a_result_and_the_next_case_runs(cpu, tmp_path, monkeypatch):
    small = this_device(4e6)  # torch.cuda says no, so this is a played card
    run = Run(small, SMALL, tmp_path)
    # After a whole step: what a step leaves behind in the names of operations must not reach the next one's.
    assert run.measure(cases(SMALL, ["every 2", "no checkpoints", "every 1"], [128]), Silent)
    _, first, second = run.results.cases
    assert first["outcome"] == "out of memory"
    assert first["stopped_at"] == first["runs_out_at"]
    assert second["outcome"] == "measured"
    assert second["measured_bytes"] == pytest.approx(second["predicted_bytes"], rel=0.001)
    said = reading.out_of_memory(run)
    assert f"in the {first['runs_out_at']}, as predicted" in said
    assert "every 1" not in said


def test_a_card_that_is_fuller_than_it_seems_is_told_from_a_wrong_prediction(cpu, tmp_path):
    run = Run(cpu, SMALL, None)
    run.results.cases = [
        {**record(64, "every 1"), "verdict": "fits", "outcome": "out of memory", "stopped_at": "forward of layer 2"},
        {**record(64, "every 2"), "verdict": "does not fit"},
    ]
    said = reading.out_of_memory(run).splitlines()
    assert "against the prediction" in said[0]
    assert "nvidia-smi" in said[0]
    assert "The prediction is too high here" in said[1]


def test_a_difference_gets_a_reason(cpu):
    run = Run(cpu, SMALL, None)
    assert reading.differences(run) == "Nothing is measured yet."
    run.results.cases = [record(64, "every 1", measured_bytes=1010)]
    assert "That is within 2%" in reading.differences(run)
    run.results.cases = [record(64, "every 1", measured_bytes=1100, details={"requested_bytes": 1005})]
    assert "The rest is the allocator's" in reading.differences(run)
    run.results.cases = [record(64, "every 1", measured_bytes=1100)]
    assert "More was asked for than the list has" in reading.differences(run)
    run.results.cases = [record(64, "every 1", measured_bytes=900)]
    assert "Less was held than the list has" in reading.differences(run)


def test_the_extra_time_is_against_the_same_attention(cpu):
    results = Run(cpu, SMALL, None).results
    results.cases = [
        record(64, "no checkpoints"),
        record(64, "every 1", backward_seconds=3.0),
        record(64, "fused, every 1", backward_seconds=3.0),
        record(128, "every 1"),
    ]
    assert results.extra_time(results.cases[1]) == pytest.approx(1 / 3)
    assert results.extra_time(results.cases[2]) is None  # "fused" was not run
    assert results.extra_time(results.cases[3]) is None
    assert reading.best_interval(results, 64) == 1
    assert reading.best_interval(results, 256) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read"),
        ('{"kind": "trainmem checkpointing", "version": 1, "cases": [', "cannot be read"),
        ("[1, 2]", "holds no results of this experiment"),
        ('{"name": "a package", "version": 1}', "holds no results of this experiment"),
        ('{"kind": "trainmem checkpointing", "version": 0}', "has layout 0, and this trainmem reads layout 1"),
        ('{"kind": "trainmem checkpointing", "version": 1}', "lacks device, versions, started, shapes, cases"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_kept(tmp_path, text, said):
    path = tmp_path / "old.json"
    path.write_text(text)
    with pytest.raises(ResultsError, match=said):
        load(path)
    results, complaints = load_folder(tmp_path)
    assert results == []
    assert len(complaints) == 1
    assert complaints[0].startswith("old.json ")
    assert "left as it is" in complaints[0]
    assert path.read_text() == text


def test_a_damaged_case_is_named(cpu, tmp_path):
    run = Run(cpu, SMALL, tmp_path)
    run.results.cases = [record(64, "every 1"), record(64, "every 2")]
    run.results.save()
    text = json.loads(run.results.path.read_text())
    assert load(run.results.path).cases == run.results.cases
    text["cases"][1]["measured_bytes"] = "many"
    run.results.path.write_text(json.dumps(text))
    with pytest.raises(ResultsError, match=r"lacks cases\[1\]"):
        load(run.results.path)


def test_old_results_lie_beside_new_ones(cpu, tmp_path):
    old = Run(cpu, SMALL, tmp_path)
    old.results.cases = [record(64, "every 1")]
    old.results.path = tmp_path / "20250101T000000Z-another.json"
    old.results.save()
    new = Run(cpu, SMALL, tmp_path)
    new.results.cases = [record(64, "every 2")]
    new.results.save()
    loaded, complaints = load_folder(tmp_path, but=new.results)
    assert complaints == []
    assert [results.cases for results in loaded] == [old.results.cases]


def test_a_disk_that_is_full_leaves_the_file_before(cpu, tmp_path, monkeypatch):
    run = Run(cpu, SMALL, tmp_path)
    run.results.cases = [record(64, "every 1")]
    run.results.save()
    before = run.results.path.read_bytes()
    run.results.cases.append(record(64, "every 2"))
    monkeypatch.setattr("os.replace", lambda *a: (_ for _ in ()).throw(OSError("no space left")))
    with pytest.raises(OSError, match="no space left"):
        run.results.save()
    assert run.results.path.read_bytes() == before


def test_pytorch_s_own_tracker_sees_the_same_peak(cpu):
    """An oracle that shares nothing with the meter."""
    from torch.distributed._tools.mem_tracker import MemTracker

    from trainmem.measure.checkpointing import build

    case = Case(64, SETTINGS["every 5"])
    model, adam = build(cpu, SMALL, case.setting)
    tokens, targets = torch.randint(SMALL.V, (2, SMALL.b, case.s)).unbind()
    tracker = MemTracker()
    tracker.track_external(model, *adam.states)
    with tracker:
        model(tokens, targets).backward()
    second = tracker.get_tracker_snapshot("peak")[torch.device("cpu")]["Total"]
    first = measure(cpu, SMALL, case)
    assert first["measured_bytes"] == pytest.approx(second, rel=0.001)
    assert predict(cpu, SMALL, case).predicted_bytes == pytest.approx(second, rel=0.001)


def record(s, setting, **changes):
    return {
        "s": s,
        "setting": setting,
        "predicted_bytes": 1000,
        "predicted_at": "backward of layer 1 (fc2)",
        "predicted_extra_time": 0.3,
        "verdict": "fits",
        "runs_out_at": None,
        "outcome": "measured",
        "measured_bytes": 1000,
        "forward_seconds": 1.0,
        "backward_seconds": 2.0,
        "optimizer_seconds": 0.1,
    } | changes
