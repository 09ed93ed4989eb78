"""Stretch exercise 3: the largest micro-batch that a GPU holds."""

from trainmem_solutions.opening import ask

# %% [markdown]
# ## Stretch 3 · The largest micro-batch
#
# Exercise 5 asks whether a given micro-batch fits. Before a run you ask the other way round: **how many sequences fit?**
#
# `largest_micro_batch(peak, gpu_bytes, free=0.15)` returns the largest whole $b$ with
# $\text{peak}(b) \le (1 - \text{free}) \cdot$ `gpu_bytes`, and 0 where not even one sequence fits. Equality fits, as on the
# ladder. `peak` is a **function**: it takes a whole $b$ from 1 on and returns bytes, as exercise 5's sum does, or the
# lesson's exact simulator, or a measurement. Of its values you know that from one $b$ to the next they never fall, and
# that in the end they pass every budget.
#
# They need **not** lie on a straight line. A step has several moments that may be the fullest; each grows with $b$ at its own rate,
#
# $$\text{peak}(b) = \max_i\,(u_i + w_i\,b),$$
#
# and which is the highest changes: with little to do it is the optimizer's update, which does not see $b$ at all; with
# many sequences it is the loss.
#
# **A small number to hold on to.** The 1.3B example with FlashAttention has 16 bytes for each of its parameters and
# 3.83 GB for each sequence: $b = 12$ on 80 GB with 15% free. With full checkpointing it is 62.
#
# Source: the arithmetic of exercise 5; for the moments of a step, the lesson's section on its timeline.


# %% peaks
# Nothing to change: predicted peaks to ask your function with. The highest of several moments, each u + w * b.
class Peak:
    def __init__(self, *moments):
        self.moments = moments

    def __call__(self, b):
        if b < 1 or b != int(b):
            raise ValueError(f"a micro-batch is a whole number from 1 on, not {b}")
        return max(u + w * int(b) for u, w in self.moments)

    def __repr__(self):
        moments = ", ".join(f"{u:_} + {w:_} * b" for u, w in self.moments)
        return f"(lambda b: max({moments}))" if len(self.moments) > 1 else f"(lambda b: {moments})"


# %%
def largest_micro_batch(peak: object, gpu_bytes: float, free: float = 0.15) -> int:
    """Return the largest whole b with peak(b) <= (1 - free) * gpu_bytes, and 0 where peak(1) is above that.

    peak: a function from a whole micro-batch, 1 or more, to bytes; it never falls. gpu_bytes: memory of one GPU.
    free: the part of the memory that is kept free.
    """
    ### BEGIN SOLUTION
    budget = (1 - free) * gpu_bytes
    if peak(1) > budget:
        return 0
    fits, fails = 1, 2
    while peak(fails) <= budget:
        fits, fails = fails, 2 * fails
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if peak(middle) <= budget:
            fits = middle
        else:
            fails = middle
    return fits
    ### END SOLUTION


# %% points=0
def check_largest_micro_batch():
    flash, full = Peak((20_984_463_360, 3_834_257_408)), Peak((20_984_463_360, 755_638_272))
    ask(lambda: largest_micro_batch, full, 80e9).gives(
        62,
        {
            "the free part is ignored": 78,
            "the free part is added to the GPU instead of taken from it": 93,
            "one more than fits is returned (the first that does not fit, or a quotient that is rounded up)": 63,
            "the search ends one too early": 61,
            "only powers of two are tried": 32,
            "a GiB is taken for a GB": 68,
            "the budget is divided by the peak of one sequence, as if the model states grew with b": 3,
            "the model states are forgotten": 89,
            "the quotient is not rounded to a whole number": (68e9 - 20_984_463_360) / 755_638_272,
            "the peak is returned instead of b": 67_834_036_224,
            "the first micro-batch that fits is returned, not the largest": 1,
        },
    )
    ask(lambda: largest_micro_batch, flash, 80e9).gives(12)
    ask(lambda: largest_micro_batch, flash, 80e9, free=0.5).gives(4, {"free is ignored and 15% is taken": 12})


# %% points=0
def check_largest_micro_batch_limits():
    for gpu_bytes, largest in ((8_000, 6), (10_000, 8)):
        ask(lambda: largest_micro_batch, Peak((1_000, 500)), gpu_bytes, free=0.5).gives(
            largest, {"a peak that is exactly as large as the budget is refused": largest - 1}
        )
    ask(lambda: largest_micro_batch, Peak((20_984_463_360, 3_834_257_408)), 24e9).gives(
        0,
        {
            "1 is returned although not even one sequence fits": 1,
            "a negative number is returned where not even one sequence fits": -1,
        },
    )
    ask(lambda: largest_micro_batch, Peak((100, 1)), 20_000, free=0.5).gives(
        9_900, lambda got: "the search ends too early: more sequences fit" if 0 < got < 9_900 else None
    )


# %% points=0
def check_largest_micro_batch_moments():
    line = "a straight line through b = 1 and 2 is continued (another moment becomes the highest)"
    ask(lambda: largest_micro_batch, Peak((24_000_000_000, 100_000_000), (14_000_000_000, 4_000_000_000)), 80e9).gives(
        13, {line: 440, "the budget is divided by the peak of one sequence, as if the model states grew with b": 2}
    )
    three = Peak((900, 1), (700, 30), (100, 90))
    largest, b = 0, 1
    while three(b) <= 0.75 * 4_000:
        largest, b = b, b + 1
    ask(lambda: largest_micro_batch, three, 4_000, free=0.25).gives(largest, {line: 2_100})


# %% reasoning [markdown]
# What you know of `peak` is that it does not fall. So there is one border: up to it everything fits, beyond it nothing
# does, and a border is found by **asking**, not by solving for $b$.
#
# 1. If `peak(1)` is above the budget, nothing fits: 0. Without this case the search below has nothing to stand on.
# 2. Double $b$ until it does not fit any more. Now the border lies between the last that fits and the first that does not.
# 3. Halve that stretch: ask in the middle, and keep the half with the border in it, until the two are neighbours.
#
# That takes about $2\log_2 b$ questions: for $b = 62$ a dozen, where counting up from 1 takes 63. Counting up is as right.
# The difference shows when a question is a *measurement* that takes a minute and may end in an out-of-memory error.
#
# For a peak that is one straight line, the division gives the same:
# $\lfloor (68 - 20.98) / 3.834 \rfloor = \lfloor 12.26 \rfloor = 12$. Rounded amounts can be one off:
# with full checkpointing the exact quotient is 62.22, and from amounts with two digits comes 61.

# %% mistakes [markdown]
# ### What people get wrong about the largest micro-batch
#
# - **the budget is divided by the peak of one sequence, as if the model states grew with b**: "one sequence takes 25 GB, so
#   two take 50" forgets that the weights are there once. Notice it by measuring at two micro-batches before you divide.
# - **a straight line through b = 1 and 2 is continued (another moment becomes the highest)**: two measurements at small
#   $b$ may both be those of the optimizer's update. Measure where you want to train, not where it is cheap.
# - **only powers of two are tried**: a habit from widths, where it serves the hardware. A micro-batch of 12 is as good a
#   number as 8, with which you would take half as many steps again.
# - **a peak that is exactly as large as the budget is refused**: $<$ where $\le$ was meant. The room for surprises is in
#   `free` already.
# - **1 is returned although not even one sequence fits**: the search starts from $b = 1$ and nobody asked about it.
