"""What a stage of a pipeline holds under the 1F1B schedule (Narayanan et al. 2021)."""

from collections.abc import Iterator
from dataclasses import dataclass

from trainmem.memory.operations import Block
from trainmem.memory.tensors import Tensor


@dataclass(frozen=True)
class InFlight:
    """A kept tensor of a pipeline stage: whose micro-batch and which of the stage's layers it belongs to (from 1)."""

    micro_batch: int
    layer: int
    tensor: Tensor


def stage_kept(
    layer: Block, L: int, stages: int, stage: int = 0, micro_batches: int | None = None
) -> Iterator[InFlight]:
    """Every tensor that one stage keeps at its fullest moment, extras left out.

    Each stage has L / stages layers. Before its first backward pass, stage i (from 0) has run stages − i
    micro-batches forward (or all ``micro_batches``, if fewer). So the first stage holds ``stages`` micro-batches
    of L / stages layers: as much as L layers of one.

    Raises ``ValueError`` where the stages do not divide the layers or there is no such stage.
    """
    if stages < 1 or L % stages:
        raise ValueError(f"{L} layers cannot be split evenly into {stages} stages")
    if not 0 <= stage < stages:
        raise ValueError(f"stages are numbered 0 to {stages - 1}, not {stage}")
    in_flight = stages - stage if micro_batches is None else min(stages - stage, micro_batches)
    for micro_batch in range(1, in_flight + 1):
        for number in range(1, L // stages + 1):
            for tensor in layer.kept:
                yield InFlight(micro_batch, number, tensor)
