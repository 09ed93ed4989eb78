"""On a GPU: every case within 3% of its prediction, and those that do not fit end as predicted.

Skipped where torch sees no GPU: nothing in here stands for a measurement then.
"""

import pytest
import torch

from trainmem.measure.checkpointing import Case, cases, fitting, measure, warm_up
from trainmem.measure.device import this_device
from trainmem.measure.progress import Run, TerminalBar

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU here: the CUDA measurements did not run"),
    pytest.mark.long,
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    device = this_device()
    run = Run(device, fitting(device), tmp_path_factory.mktemp("measured"))
    assert run.measure(cases(run.shapes), TerminalBar)
    return run


def test_peaks_are_as_predicted(run):
    ratios = {(x["s"], x["setting"]): x["measured_bytes"] / x["predicted_bytes"] for x in run.results.measured()}
    assert len(ratios) > 30
    assert {case: ratio for case, ratio in ratios.items() if abs(ratio - 1) > 0.03} == {}


def test_what_fits_fits_and_what_does_not_does_not(run):
    outcomes = {"fits": "measured", "does not fit": "out of memory"}
    assert all(x["outcome"] == outcomes.get(x["verdict"], x["outcome"]) for x in run.results.cases)
    assert any(x["outcome"] == "out of memory" for x in run.results.cases)


def test_an_out_of_memory_error_leaves_the_card_empty(run):
    device, shapes = run.device, run.shapes
    warm_up(device)
    before = torch.cuda.memory_allocated()
    record = measure(device, shapes, next(c for c in cases(shapes) if run.results.find(c)["verdict"] == "does not fit"))
    assert record["outcome"] == "out of memory"
    assert torch.cuda.memory_allocated() == before


def test_recomputation_costs_time(run):
    extra = run.results.extra_time(run.results.find(Case(run.shapes.lengths[1], cases(run.shapes)[1].setting)))
    assert 0.1 < extra < 1.0
