"""What the parameters themselves take: weights, gradients and optimizer states, per parameter and per GPU."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class State:
    """One number kept for every parameter: its category, its bytes, and the ZeRO stage from which it is sharded.

    ``trainable_only`` is false for what a frozen parameter has too (its weights). ``lasts`` is false for what
    is there only from the forward pass until the backward pass is over (autocast's copies of the weights).
    """

    name: str
    category: str
    format: str
    bytes_per_parameter: int
    sharded_from: int
    trainable_only: bool = True
    lasts: bool = True


_WEIGHTS = State("weights", "weights", "bf16", 2, 3, trainable_only=False)
_GRADIENTS = State("gradients", "gradients", "bf16", 2, 2)
_MASTER = State("master weights", "optimizer", "fp32", 4, 1)
_ADAM = (
    State("Adam first moment", "optimizer", "fp32", 4, 1),
    State("Adam second moment", "optimizer", "fp32", 4, 1),
)

#: Recipes of training, each as the list of what it keeps for a parameter.
RECIPES: dict[str, tuple[State, ...]] = {
    # Rajbhandari et al. 2020 (ZeRO), section 3.1: 2 + 2 + 12.
    "mixed": (_WEIGHTS, _GRADIENTS, _MASTER, *_ADAM),
    # Plain fp32 Adam: 4 + 4 + 8.
    "fp32": (
        State("weights", "weights", "fp32", 4, 3, trainable_only=False),
        State("gradients", "gradients", "fp32", 4, 2),
        *_ADAM,
    ),
    # PyTorch autocast: fp32 parameters, and bf16 copies of them that autograd holds until the backward pass is over.
    "autocast": (
        State("weights", "weights", "fp32", 4, 3, trainable_only=False),
        State("weights in bf16", "weights", "bf16", 2, 3, trainable_only=False, lasts=False),
        State("gradients", "gradients", "fp32", 4, 2),
        *_ADAM,
    ),
    # Megatron-LM with fp32 gradient buffers: 2 + 4 + 12.
    "megatron": (_WEIGHTS, State("gradients", "gradients", "fp32", 4, 2), _MASTER, *_ADAM),
    # DeepSpeed reduces gradients in fp32, so that ZeRO-2 takes 2Ψ + 18Ψ/N.
    "deepspeed": (_WEIGHTS, _GRADIENTS, State("gradients in fp32", "gradients", "fp32", 4, 2), _MASTER, *_ADAM),
    "inference": (_WEIGHTS,),
}


@dataclass(frozen=True)
class StateBytes:
    """One line of a GPU's model states: what it is, and its bytes on this GPU."""

    name: str
    category: str
    nbytes: float
    lasts: bool = True


def model_states(
    parameters: float,
    recipe: str | Sequence[State] = "mixed",
    *,
    trainable: float | None = None,
    zero: int = 0,
    n_gpus: int = 1,
    t: int = 1,
    offload: bool = False,
) -> tuple[StateBytes, ...]:
    """The model states of one GPU, line by line; add up ``nbytes`` for the total.

    ``parameters`` is Ψ of the whole model, of which ``trainable`` get gradients and optimizer states (LoRA trains few:
    the frozen rest has its weights alone). ZeRO shards over the n_gpus / t data-parallel GPUs from the stage on that
    each state names, and tensor parallelism divides all by ``t``. ``offload`` moves the optimizer's part to the CPU.

    >>> sum(line.nbytes for line in model_states(7e9))
    112000000000.0
    >>> sum(line.nbytes for line in model_states(8e9, "deepspeed", zero=2, n_gpus=8)) / 8e9  # 2 + 18/8
    4.25

    Raises ``ValueError`` for an unknown recipe, a stage outside 0 to 3, or GPUs that ``t`` does not divide.
    """
    if isinstance(recipe, str):
        if recipe not in RECIPES:
            raise ValueError(f"no recipe is called {recipe!r}; there are {', '.join(RECIPES)}")
        recipe = RECIPES[recipe]
    if zero not in (0, 1, 2, 3):
        raise ValueError(f"ZeRO has the stages 0, 1, 2 and 3, not {zero!r}")
    if n_gpus < 1 or t < 1 or n_gpus % t:
        raise ValueError(f"{n_gpus} GPUs cannot be split into groups of t = {t}: t has to divide their number")
    trainable = parameters if trainable is None else trainable
    if not 0 <= trainable <= parameters:
        raise ValueError(f"trainable parameters lie between 0 and {parameters}, not {trainable}")
    lines = []
    for state in recipe:
        if offload and state.category == "optimizer":
            continue
        count = trainable if state.trainable_only else parameters
        total = count * state.bytes_per_parameter
        shards = t * (n_gpus // t if zero >= state.sharded_from else 1)
        lines.append(StateBytes(state.name, state.category, total if shards == 1 else total / shards, state.lasts))
    return tuple(lines)


def lora_parameters(rank: int, shapes: Sequence[tuple[int, int]]) -> int:
    """Parameters of LoRA adapters (d_in × rank and rank × d_out) on matrices of the given shapes (Hu et al. 2021)."""
    return sum(rank * (d_in + d_out) for d_in, d_out in shapes)
