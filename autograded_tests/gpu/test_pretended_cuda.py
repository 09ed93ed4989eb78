"""The CUDA code as far as it can run without a GPU: its counters answered from live storage in 512-byte blocks."""

import dataclasses

import pytest
import torch

from autograded_tests.gpu.conftest import SMALL, on_this_computer
from trainmem.measure import cuda
from trainmem.measure.checkpointing import SETTINGS, Case, fitting, follow, measure, warm_up
from trainmem.measure.device import this_device

SHAPES = dataclasses.replace(SMALL, h=64)


def test_a_device_of_4_gb(pretend_card):
    _, asked = pretend_card
    device = this_device()
    assert device.kind == "cuda"
    assert device.name == "Pretend 4 GB"
    assert device.limit_bytes == int(0.95 * 3.8e9)
    assert asked["share"] == pytest.approx(0.95 * 3.8 / 4, rel=1e-3)
    assert fitting(device).b >= 1
    small = this_device(1e9)
    assert small.limit_bytes == 1e9
    assert asked["share"] == pytest.approx(0.25, rel=1e-3)
    with pytest.raises(ValueError, match="close what else uses the GPU"):
        fitting(small)


@pytest.mark.parametrize("name", ["every 3", "selective"])
def test_a_case_is_measured_as_predicted(pretend_card, name):
    device = on_this_computer(this_device())
    warm_up(device)
    kept = torch.ones(10**6)  # what is there before does not count
    record = measure(device, SHAPES, Case(128, SETTINGS[name]))
    assert record["outcome"] == "measured"
    assert record["measured_bytes"] == pytest.approx(record["predicted_bytes"], rel=0.03)
    assert record["measured_at"] == record["predicted_at"]
    assert record["details"]["requested_bytes"] == pytest.approx(record["measured_bytes"], rel=0.01)
    assert record["details"]["reserved_bytes"] >= record["measured_bytes"]
    assert (record["forward_seconds"], record["backward_seconds"], record["optimizer_seconds"]) == (0.5,) * 3
    assert (record["timed_steps"], kept.sum()) == (2, 10**6)


def test_what_is_left_behind_is_nothing(pretend_card):
    card, _ = pretend_card
    device = on_this_computer(this_device())
    before = card.live_bytes
    measure(device, SHAPES, Case(64, SETTINGS["every 1"]))
    assert card.live_bytes == before


def test_a_step_operation_by_operation(pretend_card):
    device = on_this_computer(this_device())
    seen = dict(follow(device, SHAPES, Case(64, SETTINGS["every 3"])))
    assert "rebuild of layer 7 (softmax)" in seen
    assert max(seen, key=seen.get).startswith("backward of")


@pytest.mark.parametrize(
    ("capability", "format", "word"),
    [
        ((9, 0), torch.bfloat16, "bf16"),
        ((8, 6), torch.bfloat16, "bf16"),
        ((7, 5), torch.float16, "imitated"),
        ((6, 1), torch.float16, "no tensor cores"),
    ],
)
def test_the_format_follows_from_the_tensor_cores(monkeypatch, capability, format, word):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    chosen, why = cuda.number_format()
    assert chosen == format
    assert word in why


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), True),
        (RuntimeError("CUDA error: device-side assert triggered"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_which_errors_say_that_memory_ran_out(error, is_one):
    assert cuda.is_out_of_memory(error) is is_one


def test_another_error_is_not_taken_for_one(pretend_card, monkeypatch):
    device = on_this_computer(this_device())
    monkeypatch.setattr("trainmem.measure.checkpointing._train", lambda *a: (_ for _ in ()).throw(RuntimeError("no")))
    with pytest.raises(RuntimeError, match="no"):
        measure(device, SHAPES, Case(64, SETTINGS["every 1"]))
