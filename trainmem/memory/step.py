"""The exact step simulator: every tensor of one training step, when it appears and when it goes.

Each block (embedding, layer, head) is run once as its operations, forwards and backwards, with the lifetimes that an
eager framework gives: a tensor goes when nothing reads it any more and no backward pass needs it; a gradient goes when
the operation before has used it; an operation's kept tensors go when its backward pass is over. A step of L layers is
these pieces in a row, so that 200 layers cost no more than one, but for a running sum.

Counted are tensors, as a framework's live storage: not the inside of a kernel, communication buffers or fragmentation.
"""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from trainmem.memory.layers import gpt_layer, llama_layer
from trainmem.memory.operations import Block, Operation
from trainmem.memory.presets import Model
from trainmem.memory.states import RECIPES, StateBytes, model_states
from trainmem.memory.tensors import Matrix
from trainmem.memory.timeline import Timeline, vector


@dataclass(frozen=True)
class _Piece:
    """A stretch of events that returns in every layer: one row an operation, as changes against its beginning."""

    phase: str
    block: str
    operations: tuple[str, ...]
    during: np.ndarray
    after: np.ndarray

    @cached_property
    def folded(self) -> tuple[str, np.ndarray, np.ndarray]:
        """The whole stretch as one event: its highest operation, what is held then, and what is held at its end."""
        held = np.cumsum(self.after, axis=0)
        during = held - self.after + self.during
        top = int(during.sum(axis=1).argmax())
        return self.operations[top], during[top], held[-1]

    @cached_property
    def totals(self) -> tuple[float, float]:
        """Bytes above its beginning at its highest moment and at its end."""
        _, during, end = self.folded
        return during.sum().item(), end.sum().item()


class _Ledger:
    """Writes the rows of a piece: what is allocated and freed at each operation."""

    def __init__(self) -> None:
        self.operations: list[str] = []
        self.during: list[dict[str, float]] = []
        self.after: list[dict[str, float]] = []

    def begin(self, operation: str) -> None:
        self.operations.append(operation)
        self.during.append({})
        self.after.append({})

    def allocate(self, category: str, nbytes: float) -> None:
        for row in (self.during[-1], self.after[-1]):
            row[category] = row.get(category, 0) + nbytes

    def free(self, category: str, nbytes: float) -> None:
        self.after[-1][category] = self.after[-1].get(category, 0) - nbytes

    def moment(self, category: str, nbytes: float) -> None:
        """Held for the time of this operation only."""
        self.during[-1][category] = self.during[-1].get(category, 0) + nbytes

    def whole(self, category: str, nbytes: float) -> None:
        """Held from the beginning to the end of the piece."""
        for row in self.during[:1] + self.after[:1]:
            row[category] = row.get(category, 0) + nbytes
        self.free(category, nbytes)

    def piece(self, phase: str, block: str) -> _Piece:
        during, after = (np.array([vector(row) for row in rows]) for rows in (self.during, self.after))
        return _Piece(phase, block, tuple(self.operations), during, after)


@dataclass
class _Storage:
    nbytes: int
    category: str
    holders: int = 1


def _category(block: Block, name: str, otherwise: str) -> str:
    return "logits" if block.tensors[name].part == "logits" else otherwise


def _run_forward(
    ledger: _Ledger,
    block: Block,
    operations: tuple[Operation, ...],
    kept: Mapping[str, str],
    present: Mapping[str, str],
    output: str = "",
    output_category: str = "",
) -> None:
    """Runs operations forwards. ``kept`` and ``present``: tensor → category; of the ``present`` ones those that are
    not kept go after their last reader. The ``output`` stays.
    """
    last_reader = {name: i for i, op in enumerate(operations) for name in op.reads}
    live = dict(present)
    for i, op in enumerate(operations):
        ledger.begin(op.name)
        for name in op.writes:
            live[name] = output_category if name == output else kept.get(name) or _category(block, name, "working")
            ledger.allocate(live[name], block.tensors[name].nbytes)
        for name in [name for name in live if last_reader.get(name, -1) <= i and name not in kept and name != output]:
            if name in present and name not in last_reader:
                continue
            ledger.free(live.pop(name), block.tensors[name].nbytes)


def _rebuilt_part(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
    """What a rebuild runs: all up to the last kept tensor (an operation that keeps only inputs need not run)."""
    last = max(i for i, op in enumerate(operations) if op.keeps)
    makes_what_it_keeps = any(name in operations[last].writes for _, name in operations[last].keeps)
    return operations[: last + 1 if makes_what_it_keeps else last]


def _update_bytes(optimizer: str, sizes: list[int]) -> int:
    """What PyTorch's Adam takes for a moment, for fp32 arrays of these sizes in order."""
    if optimizer == "fused":
        return 0
    if optimizer == "foreach":  # the denominators of all arrays at once
        return 4 * sum(sizes)
    if optimizer == "loop":  # √v and its quotient, while the name still holds the denominator before
        return max((8 * size + 4 * before for before, size in zip([0, *sizes], sizes, strict=False)), default=0)
    raise ValueError(f"optimizer is 'fused', 'foreach' or 'loop', not {optimizer!r}")


class Step:
    """One training step of ``L`` equal layers on one GPU, ready to be laid out for any checkpointing interval.

    ``layer``, ``embedding`` and ``head`` are blocks (all made for the same s, b and t). ``states`` is a recipe of
    `RECIPES`; ``zero`` and ``n_gpus`` shard it over n_gpus / t data-parallel GPUs. ``gradients`` is ``"late"``
    (allocated as they come, as after ``zero_grad(set_to_none=True)``) or ``"resident"`` (there from the beginning: what
    exercise 5 assumes). ``micro_batches`` accumulates gradients over several forward and backward passes.
    ``optimizer`` is how Adam's update runs: ``"foreach"`` (4 bytes a parameter for a moment), ``"loop"`` (8 bytes for
    each parameter of one array, and 4 for the one before it) or ``"fused"`` (nothing).

    Under ZeRO-3 each block's weights are gathered while it runs, one block at a time.
    """

    def __init__(
        self,
        layer: Block,
        L: int,
        *,
        head: Block | None = None,
        embedding: Block | None = None,
        states: str = "mixed",
        zero: int = 0,
        n_gpus: int = 1,
        offload: bool = False,
        gradients: str = "late",
        optimizer: str = "fused",
        micro_batches: int = 1,
    ) -> None:
        if L < 1:
            raise ValueError(f"a model has at least one layer, not {L}")
        if gradients not in ("late", "resident"):
            raise ValueError(f"gradients are 'late' or 'resident', not {gradients!r}")
        if micro_batches < 1:
            raise ValueError(f"a step has at least one micro-batch, not {micro_batches}")
        self.every_default: int | None = None
        if layer.recomputed == {op.name for op in layer.operations}:  # "full": a checkpoint at every layer
            layer, self.every_default = layer.recompute(()), 1
        self.layer, self.L, self.head, self.embedding = layer, L, head, embedding
        self.gradients, self.optimizer, self.micro_batches = gradients, optimizer, micro_batches
        self.shards = n_gpus // layer.dims.get("t", 1) or 1
        self.zero = zero
        blocks = [(block, count) for block, count in ((embedding, 1), (layer, L), (head, 1)) if block is not None]
        matrices = [matrix for block, count in blocks for matrix in block.matrices * count]
        self.parameters = sum(matrix.elements for matrix in matrices)
        self.trainable = sum(matrix.elements for matrix in matrices if not matrix.frozen)
        self._transient = _update_bytes(optimizer, [matrix.elements for matrix in matrices if not matrix.frozen])
        #: The model states of this GPU, line by line.
        self.states: tuple[StateBytes, ...] = model_states(
            self.parameters, states, trainable=self.trainable, zero=zero, n_gpus=self.shards, offload=offload
        )
        recipe = RECIPES[states]
        self._weight = next(state.bytes_per_parameter for state in recipe if state.category == "weights")
        self._tied = {m.name for op in (head.operations if head else ()) for m in op.shared}
        self._pieces: dict[tuple, _Piece] = {}

    # --- what is held, and where it is counted -------------------------------------------------------------------

    @cached_property
    def _kept_names(self) -> set[str]:
        return {tensor.name for tensor in self.layer.everything}

    def _entry(self, block: Block | None) -> str:
        """Category of the tensor that enters a block when nothing is recomputed."""
        kept = block is not None and block.input in {tensor.name for tensor in block.everything}
        return "activations" if kept else "working"

    def _whole_kept(self, block: Block, category: str) -> dict[str, str]:
        return {name: _category(block, name, category) for name in block.needed_by}

    def _gather(self, ledger: _Ledger, block: Block) -> None:
        if self.zero == 3 and self.shards > 1:
            full = block.parameters * self._weight
            ledger.whole("working", full - full / self.shards)

    # --- pieces --------------------------------------------------------------------------------------------------

    def _forward(self, block: Block, name: str, entry: str, exit: str, checkpointed: bool = False) -> _Piece:
        key = ("forward", name, entry, exit, checkpointed)
        if key not in self._pieces:
            kept = {}
            if not checkpointed:
                kept = {x.name: _category(block, x.name, "activations") for x in block.everything}
            elif entry == "checkpoints":
                kept = {block.input: entry}
            ledger = _Ledger()
            present = {block.input: entry} if block.input else {}
            _run_forward(ledger, block, block.operations, kept, present, block.output, exit)
            self._gather(ledger, block)
            self._pieces[key] = ledger.piece("forward", name)
        return self._pieces[key]

    def _rebuild(self, first: bool, last: bool) -> _Piece:
        key = ("rebuild", first, last)
        if key not in self._pieces:
            block = self.layer
            kept = self._whole_kept(block, "rebuilt")
            between = "rebuilt" if block.input in kept else "working"
            present = {block.input: "checkpoints" if first else between}
            if first:
                kept = {**kept, block.input: "checkpoints"}
            ledger = _Ledger()
            operations = _rebuilt_part(block.operations) if last else block.operations
            output = "" if last else block.output
            _run_forward(ledger, block, operations, kept, present, output, between)
            self._gather(ledger, block)
            self._pieces[key] = ledger.piece("rebuild", "layer")
        return self._pieces[key]

    def _backward(self, block: Block, name: str, held: str, accumulate: bool, first: bool = False) -> _Piece:
        """``held`` is the category of what was kept; ``first``: the input is a checkpoint, which goes at the end."""
        key = ("backward", name, held, accumulate, first)
        if key not in self._pieces:
            ledger = _Ledger()
            self._run_backward(ledger, block, held, accumulate, first)
            self._gather(ledger, block)
            self._pieces[key] = ledger.piece("backward", name)
        return self._pieces[key]

    def _run_backward(self, ledger: _Ledger, block: Block, held: str, accumulate: bool, first: bool) -> None:
        operations, tensors = block.operations, block.tensors
        region = [i for i, op in enumerate(operations) if op.name in block.recomputed]
        made = {name for op in operations for name in op.writes} | {block.input}
        # The operation (in forward order) whose backward pass is the last to need each tensor.
        until: dict[str, int] = {}
        for i, op in enumerate(operations):
            for _, kept in op.keeps:
                until.setdefault(kept, i)
        for name in block.region_inputs:
            until[name] = min(until.get(name, region[0]), region[0])
        live = {name: _category(block, name, held) for name in until if name in made}
        rebuilt_here = {name for i in region for name in operations[i].writes}
        for name in rebuilt_here - {x.name for x in block.everything}:
            live.pop(name, None)
        if first:
            live[block.input] = "checkpoints"
            until[block.input] = 0
        gradients: dict[str, _Storage] = {}
        if block.output:
            gradients[block.output] = _Storage(tensors[block.output].nbytes, "working")

        for i in reversed(range(len(operations))):
            op = operations[i]
            if region and i == region[-1]:
                part = _rebuilt_part(tuple(operations[j] for j in region))
                again = {x: _category(block, x, "rebuilt") for x in until if x in rebuilt_here}
                inputs = {x: live[x] for x in block.region_inputs if x in live}
                _run_forward(ledger, block, part, {**again, **inputs}, inputs)
                for row in range(len(part)):
                    ledger.operations[-1 - row] = "rebuilding " + ledger.operations[-1 - row]
                live |= again
            ledger.begin(op.name)
            incoming = gradients.pop(op.writes[0], None) if op.writes else None
            for name in op.differentiable:
                nbytes = tensors[name].nbytes
                there = gradients.get(name)
                if op.alias and incoming is not None:
                    if there is None:
                        gradients[name] = incoming
                        incoming.holders += 1
                    continue
                category = _category(block, name, "working")
                if there is None:
                    gradients[name] = _Storage(nbytes, category)
                    ledger.allocate(category, nbytes)
                elif there.holders == 1:  # added in place
                    ledger.moment(category, nbytes)
                else:
                    there.holders -= 1
                    gradients[name] = _Storage(nbytes, category)
                    ledger.allocate(category, nbytes)
            for matrix in (*op.matrices, *op.shared):
                if not matrix.frozen:
                    # A tied matrix has its gradient from the head by the time the embedding adds to it.
                    late = not accumulate and (matrix.name not in self._tied or matrix in op.shared)
                    self._gradient(ledger, matrix, late)
            if incoming is not None:
                incoming.holders -= 1
                if not incoming.holders:
                    ledger.free(incoming.category, incoming.nbytes)
            for name in [name for name in live if until[name] == i]:
                ledger.free(live.pop(name), tensors[name].nbytes)

    @property
    def _gradient_bytes(self) -> float:
        return sum(line.nbytes for line in self.states if line.category == "gradients")

    def _gradient(self, ledger: _Ledger, matrix: Matrix, late: bool) -> None:
        """A weight gradient arrives: it stays if it is the first, else it is added to what is there and goes."""
        own = matrix.elements * self._weight
        stays = matrix.elements * self._gradient_bytes / self.trainable if late else 0
        ledger.allocate("gradients", int(stays) if float(stays).is_integer() else stays)
        if stays != own:  # sharded, in another format, or added: the gradient itself is there for a moment
            ledger.moment("working", own)

    def _update(self) -> _Piece:
        ledger = _Ledger()
        ledger.begin(self.optimizer)
        shards = self.shards if self.zero >= 1 else 1
        ledger.moment("working", self._transient / shards if shards > 1 else self._transient)
        if self.gradients == "late":
            ledger.free("gradients", self._gradient_bytes)
        for line in self.states:
            if not line.lasts:
                ledger.free(line.category, line.nbytes)
        return ledger.piece("optimizer", "model")

    # --- laying out ----------------------------------------------------------------------------------------------

    def _layout(self, every: int | None) -> list[tuple[_Piece, int, int, int]]:
        """(piece, first layer, step between layers, times) in order; layer 0 stands for none."""
        every = self.every_default if every is None else every
        if every is not None and (every < 1 or every != int(every)):
            raise ValueError(f"checkpoints stand every 1, 2, 3, … layers, not every {every!r}")
        if every is not None and self.layer.recomputed:
            raise ValueError("a layer with selective recomputation is not checkpointed as a whole too: choose one")
        L, layer, head, embedding = self.L, self.layer, self.head, self.embedding
        plain = self._entry(layer)
        after_layers = self._entry(head)
        enter = plain if every is None else "checkpoints"
        layout: list[tuple[_Piece, int, int, int]] = []
        for batch in range(self.micro_batches):
            accumulate = batch > 0 or self.gradients == "resident"
            if embedding is not None:
                layout.append((self._forward(embedding, "embedding", "", enter), 0, 0, 1))
            else:
                layout.append((self._source(enter), 0, 0, 1))
            if every is None:
                if L > 1:
                    layout.append((self._forward(layer, "layer", plain, plain), 1, 1, L - 1))
                layout.append((self._forward(layer, "layer", plain, after_layers), L, 0, 1))
            else:
                for start in range(0, L, every):
                    m = min(every, L - start)
                    leave = after_layers if start + m == L else "checkpoints"
                    if m == 1:
                        layout.append((self._forward(layer, "layer", enter, leave, True), start + 1, 0, 1))
                        continue
                    layout.append((self._forward(layer, "layer", enter, "working", True), start + 1, 0, 1))
                    if m > 2:
                        layout.append((self._forward(layer, "layer", "working", "working", True), start + 2, 1, m - 2))
                    layout.append((self._forward(layer, "layer", "working", leave, True), start + m, 0, 1))
            if head is not None:
                layout.append((self._forward(head, "head", after_layers, ""), 0, 0, 1))
                layout.append((self._backward(head, "head", "activations", accumulate), 0, 0, 1))
            else:
                layout.append((self._sink(after_layers), 0, 0, 1))
            if every is None:
                layout.append((self._backward(layer, "layer", "activations", accumulate), L, -1, L))
            else:
                for start in reversed(range(0, L, every)):
                    m = min(every, L - start)
                    layout.append((self._rebuild(True, m == 1), start + 1, 0, 1))
                    if m > 2:
                        layout.append((self._rebuild(False, False), start + 2, 1, m - 2))
                    if m > 1:
                        layout.append((self._rebuild(False, True), start + m, 0, 1))
                        backward = self._backward(layer, "layer", "rebuilt", accumulate)
                        layout.append((backward, start + m, -1, m - 1))
                    layout.append((self._backward(layer, "layer", "rebuilt", accumulate, True), start + 1, 0, 1))
            if embedding is not None:
                layout.append((self._backward(embedding, "embedding", "activations", accumulate), 0, 0, 1))
            else:
                layout.append((self._drain(), 0, 0, 1))
        layout.append((self._optimizer_piece, 0, 0, 1))
        return layout

    @cached_property
    def _optimizer_piece(self) -> _Piece:
        return self._update()

    def _boundary(self, phase: str, block: str, *changes: tuple[str, float]) -> _Piece:
        """Stands in for a missing embedding or head: the layers' input appears, their output turns into a gradient."""
        ledger = _Ledger()
        ledger.begin(phase)
        for category, nbytes in changes:
            (ledger.allocate if nbytes > 0 else ledger.free)(category, abs(nbytes))
        return ledger.piece("forward" if phase == "input" else "backward", block)

    def _source(self, category: str) -> _Piece:
        return self._boundary("input", "input", (category, self.layer.tensors[self.layer.input].nbytes))

    def _sink(self, category: str) -> _Piece:
        nbytes = self.layer.tensors[self.layer.output].nbytes
        return self._boundary("output gradient", "output", ("working", nbytes), (category, -nbytes))

    def _drain(self) -> _Piece:
        return self._boundary("input gradient", "input", ("working", -self.layer.tensors[self.layer.input].nbytes))

    @property
    def initial(self) -> dict[str, float]:
        """What is held before the step, by category."""
        held: dict[str, float] = {}
        for line in self.states:
            if line.category != "gradients" or self.gradients == "resident":
                held[line.category] = held.get(line.category, 0) + line.nbytes
        return held

    def timeline(self, every: int | None = None, detail: str = "layer") -> Timeline:
        """The step with a checkpoint every ``every`` layers (None: no checkpointing).

        ``detail`` is ``"layer"`` (one event for each pass through a block, whose ``during`` is its highest moment) or
        ``"operation"`` (one event an operation). Both have the same peak.

        Raises ``ValueError`` for ``every`` below 1, or where the layer already recomputes a part of itself.
        """
        if detail not in ("layer", "operation"):
            raise ValueError(f"detail is 'layer' or 'operation', not {detail!r}")
        labels, during, after = [], [], []
        for piece, start, by, times in self._layout(every):
            if detail == "layer":
                operation, high, end = piece.folded
                names, highs, ends = (operation,), high[None], end[None]
            else:
                names, highs, ends = piece.operations, piece.during, piece.after
            for i in range(times):
                layer = start + by * i or None
                labels += [(piece.phase, piece.block, layer, name) for name in names]
            during += [highs] * times
            after += [ends] * times
        return Timeline(vector(self.initial), labels, np.concatenate(during), np.concatenate(after))

    def peaks(self, intervals: Iterable[int | None]) -> list[float]:
        """The peak in bytes for each checkpointing interval, by running sums alone: for sweeps over many."""
        start = sum(self.initial.values())
        result = []
        for every in intervals:
            held, peak = start, start
            # A piece that returns with the same change is highest at its first or its last time.
            for piece, _, _, times in self._layout(every):
                high, end = piece.totals
                peak = max(peak, held + high, held + end * (times - 1) + high)
                held += end * times
                peak = max(peak, held)
            result.append(peak)
        return result


def model_step(
    model: Model, s: int | None = None, b: int = 1, *, t: int = 1, loss: str = "fp32", **options: Any
) -> Step:
    """The step of a model of `MODELS` at ``s`` tokens (its context by default) and ``b`` sequences, on one GPU of it.

    Options that the layer knows (``attention``, ``recompute``, ``dropout``, ``norm``, ``sequence_parallel``, …: see
    `gpt_layer` and `llama_layer`) go to the layer, the rest (``zero``, ``n_gpus``, ``gradients``, ``optimizer``,
    ``states``, …) to `Step`. With t > 1 a GPT layer has sequence parallelism unless ``sequence_parallel=False``.
    """
    s = model.context if s is None else s
    known = inspect.signature(gpt_layer if model.style == "gpt" else llama_layer).parameters
    of_layer = {name: options.pop(name) for name in list(options) if name in known}
    if model.style == "gpt":
        split = {"sequence_parallel": of_layer.setdefault("sequence_parallel", t > 1)}
    else:
        split = {}
    norm = {"norm": of_layer["norm"]} if "norm" in of_layer else {}
    return Step(
        model.layer(s, b, t=t, **of_layer),
        model.L,
        embedding=model.embedding(s, b, t=t, **split),
        head=model.head(s, b, t=t, loss=loss, **split, **norm),
        n_gpus=options.pop("n_gpus", t),
        **options,
    )
