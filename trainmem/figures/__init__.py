"""The five interactive figures of the lesson: numbers from the course's functions, drawn as SVG, in a thin widget.

Each function returns a widget: make it the last expression of a cell. Its ``repr`` is a sentence with its numbers.

====================== ===============================================================================================
function               the figure, and what of yours can drive it
====================== ===============================================================================================
`step_timeline`        the memory of one step over time; ``simulator=memory_timeline``
`layer_parameters`     parameters of one layer, a bar a matrix; ``counter=params_per_layer``
`layer_walk`           operations of one layer and what each keeps; ``counter=activation_bytes``
`checkpoint_every_k`   the sawtooth, and the peak and the time against k; ``simulator=memory_timeline``
`does_it_fit`          one GPU, the fixes, the ladder; ``ladder=cheapest_fix``
====================== ===============================================================================================

>>> from trainmem import figures
>>> figures.does_it_fit()
The 1.3B example, A100 80 GB × 1: 116.1 GB with no fix. Does not fit.
"""

from trainmem.figures.checkpoints import checkpoint_every_k
from trainmem.figures.fit import does_it_fit
from trainmem.figures.parameters import layer_parameters
from trainmem.figures.static import static_pictures
from trainmem.figures.timeline import step_timeline
from trainmem.figures.walk import layer_walk

__all__ = [
    "checkpoint_every_k",
    "does_it_fit",
    "layer_parameters",
    "layer_walk",
    "static_pictures",
    "step_timeline",
]
