"""The last section: the lesson's figures, drawn by the functions that the reader wrote."""

from trainmem import figures
from trainmem_solutions import activation_bytes, cheapest_fix, memory_timeline, params_per_layer

# %% [markdown]
# ## Your functions in the figures
#
# Here the figures of the lesson are drawn by **your** functions. A number that is wrong is drawn as it is, beside the
# right one: look at the picture before you look for the mistake. What is not written yet is said in one line; write it,
# run its cell, and then run the figure's cell again.
#
# ### Your parameters
#
# `params_per_layer`: the last bar is your count, times the layers.

# %% figure your_parameters
figures.layer_parameters(counter=params_per_layer)

# %% [markdown]
# ### Your activations
#
# `activation_bytes`: your number for the whole layer is held against the list; with the switch *FlashAttention* your
# `"flash"` is. All operations are done; *Back* goes through them.

# %% figure your_activations
figures.layer_walk(counter=activation_bytes, step=99)

# %% [markdown]
# ### Your timeline
#
# `memory_timeline`, over the model states of the 1.3B example. Choose *full* recomputation and move $k$.

# %% figure your_step
figures.step_timeline(simulator=memory_timeline)

# %% [markdown]
# ### Your checkpoints
#
# The same function, over the right sawtooth; and the peak of *your* timeline for every $k$.

# %% figure your_checkpoints
figures.checkpoint_every_k(simulator=memory_timeline)

# %% [markdown]
# ### Your cheapest fix
#
# `cheapest_fix`, and with it `peak_bytes` and `activation_bytes`. *Climb one rung* asks your function for the next one.

# %% figure your_fix
figures.does_it_fit(ladder=cheapest_fix)
