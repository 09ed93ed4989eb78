"""Memory as data: which tensors a training step holds, when, and on one GPU of how many.

Nothing here needs torch or Jupyter. A layer is written as its operations; what it keeps, its parameters and every total
follow from them as sums. Bytes are bytes, GB is 10⁹.

========== ============================================================================================================
module     what is in it
========== ============================================================================================================
layers     `gpt_layer`, `llama_layer`, `embedding`, `head` (with the loss), `linear_layer`, `trainer_layer` → `Block`;
           `MODES`: the lesson's baseline, flash, selective and full as options
operations `Block`: ``kept``, ``extras``, ``kept_bytes``, ``matrices``, ``parameters``, ``operations``, ``walk()``,
           ``units()``, ``recompute()``; `RULES`: what each kind of operation keeps, and why
tensors    `Tensor` (name, shape, sizes, format, part, ``nbytes``, ``needed_by``, ``kept_by``), `Matrix`
states     `model_states` by recipe (`RECIPES`), ZeRO stage, GPUs and t; `lora_parameters`
pipeline   `stage_kept`: what a stage of a 1F1B pipeline holds
flops      `forward_flops`, `recomputed_flops`, `recomputation_cost` of a layer
presets    `MODELS`, `GPUS`: one table each, with sources; ``MODELS["1.3b"].layer(s, b, ...)``, ``.parameters``
step       `Step(layer, L, head=..., embedding=..., ...)`: ``timeline(every)``, ``peaks(intervals)``; `model_step`
timeline   `Timeline`: ``peak_bytes``, ``peak_event``, ``peak_parts``, ``during``, ``after``; `Event`, `CATEGORIES`
readings   `lesson_step` (exercise 4's timeline), `calculator_step` (gradients in equal units)
========== ============================================================================================================

>>> from trainmem.memory import MODELS, model_step
>>> layer = MODELS["1.3b"].layer(s=2048, b=8)
>>> [(tensor.name, tensor.expression) for tensor in layer.kept][:2]
[('layer input', '2·b·s·h'), ('LN1 output', '2·b·s·h')]
>>> layer.kept_bytes
3825205248
>>> step = model_step(MODELS["1.3b"], s=2048, b=8, attention="fused")
>>> step.timeline().peak_event.name
'backward of head (log_softmax)'
"""

from trainmem.memory.flops import forward_flops, recomputation_cost, recomputed_flops
from trainmem.memory.layers import CORE, MODES, embedding, gpt_layer, head, linear_layer, llama_layer, trainer_layer
from trainmem.memory.operations import RULES, Block, Operation
from trainmem.memory.pipeline import stage_kept
from trainmem.memory.presets import GPUS, MODELS, Gpu, Model
from trainmem.memory.readings import calculator_step, lesson_step
from trainmem.memory.states import RECIPES, State, StateBytes, lora_parameters, model_states
from trainmem.memory.step import Step, model_step
from trainmem.memory.tensors import FORMAT_BYTES, Matrix, Tensor
from trainmem.memory.timeline import CATEGORIES, Event, Timeline

__all__ = [
    "CATEGORIES",
    "CORE",
    "FORMAT_BYTES",
    "GPUS",
    "MODELS",
    "MODES",
    "RECIPES",
    "RULES",
    "Block",
    "Event",
    "Gpu",
    "Matrix",
    "Model",
    "Operation",
    "State",
    "StateBytes",
    "Step",
    "Tensor",
    "Timeline",
    "calculator_step",
    "embedding",
    "forward_flops",
    "gpt_layer",
    "head",
    "lesson_step",
    "linear_layer",
    "llama_layer",
    "lora_parameters",
    "model_states",
    "model_step",
    "recomputation_cost",
    "recomputed_flops",
    "stage_kept",
    "trainer_layer",
]
