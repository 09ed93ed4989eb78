"""A kernel that has the base package and torch alone, and a card that is not there."""

import dataclasses

import pytest
import torch

from autograded_tests.gpu.base_kernel import install_kernel
from trainmem.measure.checkpointing import Shapes
from trainmem.measure.device import Device, this_device
from trainmem.measure.live import LiveStorage

torch.set_num_threads(1)  # the models are small: more threads would only wait

SMALL = Shapes(h=32, a=2, V=256, b=1, lengths=(64, 128, 256))


@pytest.fixture(scope="session")
def base_environment(tmp_path_factory):
    return install_kernel(tmp_path_factory.mktemp("base"))


@pytest.fixture
def cpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    return this_device()


class PretendCard(LiveStorage):
    """Counts this computer's tensors as CUDA's allocator would: in blocks of 512 bytes."""

    total = 4 * 10**9

    def _count(self, tensor):
        before = self.live_bytes
        super()._count(tensor)
        if self.live_bytes > before:
            key = tensor.untyped_storage()._cdata
            rounded = -(-self._seen[key] // 512) * 512
            self.live_bytes += rounded - self._seen[key]
            self._seen[key] = rounded


class PretendEvent:
    now = 0.0

    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        PretendEvent.now += 500.0  # milliseconds
        self.time = PretendEvent.now

    def elapsed_time(self, later):
        return later.time - self.time


@pytest.fixture
def pretend_card(monkeypatch):
    """torch.cuda as far as this course asks for it, answered from live storage on the CPU."""
    card, asked = PretendCard(), {}
    highest = {"now": 0}

    def peak():
        highest["now"] = max(highest["now"], card.peak_bytes, card.live_bytes)
        return highest["now"]

    def reset():
        card.restart()
        highest["now"] = card.live_bytes

    answers = {
        "is_available": lambda: True,
        "get_device_name": lambda: "Pretend 4 GB",
        "get_device_capability": lambda: (8, 0),
        "mem_get_info": lambda: (card.total - 200_000_000, card.total),
        "memory_allocated": lambda: card.live_bytes,
        "max_memory_allocated": peak,
        "memory_reserved": lambda: card.live_bytes,
        "max_memory_reserved": peak,
        "reset_peak_memory_stats": reset,
        "memory_stats": lambda: {"requested_bytes.all.peak": peak(), "requested_bytes.all.current": card.live_bytes},
        "set_per_process_memory_fraction": lambda share: asked.update(share=share),
        "empty_cache": lambda: None,
        "synchronize": lambda: None,
        "Event": PretendEvent,
    }
    for name, answer in answers.items():
        monkeypatch.setattr(torch.cuda, name, answer)
    with card:
        yield card, asked


def on_this_computer(device: Device) -> Device:
    """A CUDA device whose tensors lie on the CPU."""
    return dataclasses.replace(device, place="cpu")
