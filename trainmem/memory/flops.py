"""Floating-point operations of the matrix products of a layer, and what recomputation adds to them.

A product of m × k and k × n counts 2·m·k·n; everything element by element is left out, as is usual.
"""

from trainmem.memory.operations import Block, Operation


def _flops(layer: Block, op: Operation) -> int:
    weights = sum(matrix.elements for matrix in op.matrices if matrix.kind == "weight")
    if op.kind in ("linear", "frozen linear"):
        rows = layer.tensors[op.reads[0]].elements // layer.tensors[op.reads[0]].sizes[-1]
        return 2 * rows * weights
    dims = layer.dims
    one = 2 * layer.as2b * dims.get("d", 0) // dims.get("t", 1)
    return {"scores": one, "weighted": one, "attention": 2 * one}.get(op.name, 0)


def forward_flops(layer: Block) -> int:
    """Forward pass of one layer: 24bsh² + 4bs²h for a GPT layer with a 4h MLP. The backward pass takes twice that."""
    return sum(_flops(layer, op) for op in layer.operations)


def recomputed_flops(layer: Block) -> int:
    """What the backward pass runs again: 4bs²h under selective recomputation, the whole forward pass under full."""
    return sum(_flops(layer, op) for op in layer.operations if op.name in layer.recomputed)


def recomputation_cost(layer: Block) -> float:
    """Extra FLOPs as a part of a training step's (three forward passes): s/(18h + 3s) selective, 1/3 full.

    Against one forward pass of the linear layers alone, selective recomputation is s/6h: 2.8% for GPT-3 instead
    of 0.9%. Both figures are in use; this is the first.
    """
    return recomputed_flops(layer) / (3 * forward_flops(layer))
