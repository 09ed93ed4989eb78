"""Operations of a measured model by name: whoever observes learns which one runs, and which graph nodes it made."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True)
class Moment:
    """A place in a step: phase (forward, rebuild, backward, optimizer), block, layer (1 to L, or None), operation."""

    phase: str
    block: str
    layer: int | None
    operation: str


class Observer(Protocol):
    """Is told when a named operation begins and what it made."""

    def enter(self, moment: Moment) -> None:
        """An operation begins, or goes on after another one inside it."""

    def made(self, moment: Moment, nodes: list[torch.autograd.graph.Node]) -> None:
        """An operation is over; these graph nodes are new."""


_observers: list[Observer] = []
_now = Moment("forward", "", None, "")


@contextmanager
def observed_by(observer: Observer) -> Iterator[None]:
    """Tells ``observer`` of every named operation."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


@contextmanager
def inside(block: str, layer: int | None = None) -> Iterator[None]:
    """Operations in here belong to this block."""
    global _now
    before = _now
    _now = replace(_now, block=block, layer=layer)
    try:
        yield
    finally:
        _now = before


@contextmanager
def at(moment: Moment) -> Iterator[None]:
    """What happens in here happens at this moment."""
    global _now
    before = _now
    _go(moment)
    try:
        yield
    finally:
        _go(before)


def _go(moment: Moment) -> None:
    global _now
    _now = moment
    for observer in _observers:
        observer.enter(moment)


def op(name: str, function: Callable[..., Any], *inputs: Any, **options: Any) -> Any:
    """Calls ``function(*inputs, **options)`` as the operation ``name``.

    Observers are told of it, and, by hooks on the graph nodes that it makes, of its backward pass.
    """
    if not _observers:
        return function(*inputs, **options)
    again = torch._C._current_graph_task_id() != -1  # called from within a backward pass: a rebuild
    moment = replace(_now, phase="rebuild" if again else "forward", operation=name)
    with at(moment):
        result = function(*inputs, **options)
        nodes = _new_nodes(result, (*inputs, *options.values()))
        for node in nodes:
            node.register_prehook(_Announce(replace(moment, phase="backward")))
        for observer in _observers:
            observer.made(moment, nodes)
    return result


class _Announce:
    """A hook that holds nothing but a moment: a closure over the result would keep the result alive."""

    def __init__(self, moment: Moment) -> None:
        self.moment = moment

    def __call__(self, gradients: Any) -> None:
        _go(self.moment)


def _new_nodes(result: Any, inputs: tuple[Any, ...]) -> list[torch.autograd.graph.Node]:
    """Graph nodes between the result and the inputs that no operation inside this one has named already."""
    old = [x.grad_fn for x in tree_leaves(inputs) if isinstance(x, torch.Tensor) and x.grad_fn is not None]
    new: list[torch.autograd.graph.Node] = []
    waiting = [x.grad_fn for x in tree_leaves(result) if isinstance(x, torch.Tensor)]
    while waiting:
        node = waiting.pop()
        if node is None or node in new or node in old or hasattr(node, "variable"):
            continue
        new.append(node)
        waiting += [before for before, _ in node.next_functions]
    unnamed = [node for node in new if "named" not in node.metadata]
    for node in unnamed:
        node.metadata["named"] = True
    return sorted(unnamed, key=lambda node: node._sequence_nr())
