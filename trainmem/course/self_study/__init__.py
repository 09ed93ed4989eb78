"""What the self-study edition adds to the exercises, in the same percent format: a welcome, three stretch exercises
on what the lesson measures beyond the five, and the figures that the reader's own functions drive.

The order of `MODULES` is the order in the notebook. The exercises stand on the standard library alone, like the five.
"""

#: Stands below the notebook's title.
WELCOME = "welcome"

#: Stand after the five exercises.
MODULES = ("llama_activations", "loss_peak", "largest_micro_batch", "your_figures")
