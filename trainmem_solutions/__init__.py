"""The five exercises, each written once: its text, stub, answer, visible and hidden checks.

The order of the modules is the order of the exercises in the notebook; each module is one exercise, in percent format.
"""

from trainmem_solutions.activations import activation_bytes
from trainmem_solutions.cheapest_fix import cheapest_fix, peak_bytes
from trainmem_solutions.model_states import gpus_for_states, model_state_bytes
from trainmem_solutions.parameters import model_params, params_per_layer
from trainmem_solutions.timeline import best_k, memory_timeline

MODULES = ("opening", "parameters", "model_states", "activations", "timeline", "cheapest_fix")

__all__ = [
    "MODULES",
    "activation_bytes",
    "best_k",
    "cheapest_fix",
    "gpus_for_states",
    "memory_timeline",
    "model_params",
    "model_state_bytes",
    "params_per_layer",
    "peak_bytes",
]
