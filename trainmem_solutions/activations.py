"""Exercise 3: the bytes that one transformer layer keeps for its backward pass."""

from trainmem_solutions.arguments import accepts, name, whole
from trainmem_solutions.opening import CHECK_SEED, CheckFailed, ask, probe, show_remarks

# %% [markdown]
# ## Exercise 3 · Activations
#
# `activation_bytes` counts what one GPT layer (pre-LayerNorm, a GeLU MLP of width $4h$, dropout at three places with
# masks of one byte an element, everything else in 16-bit) keeps until its backward pass. Korthikanti et al. 2022,
# section 4.1, list the tensors; in units of $sbh$ and $as^2b$ bytes:
#
# | part | keeps | $sbh$ | $as^2b$ |
# |---|---|---|---|
# | both LayerNorms | their inputs | 2 + 2 | |
# | query, key, value projections | **one** input, shared by the three | 2 | |
# | scores $QK^\top$ | $Q$ and $K$ | 2 + 2 | |
# | softmax | its output | | 2 |
# | dropout on the attention weights | a mask, and its output for the product with $V$ | | 1 + 2 |
# | weights times values | $V$ | 2 | |
# | output projection and the dropout after it | input; mask | 2 + 1 | |
# | MLP | input; GeLU's input and output, each $4h$ wide; mask | 2 + 8 + 8 + 1 | |
#
# That is 34 and 5. The modes differ in what they keep:
#
# - `"baseline"`: everything, $34\,sbh + 5\,as^2b$.
# - `"flash"`: FlashAttention stores nothing of size $s \times s$; `"selective"`: the attention core is recomputed in the
#   backward pass. Both $34\,sbh$.
# - `"full"`: the layer's input alone, $2\,sbh$; the rest is rebuilt.
#
# **Left out on purpose:** the mean and variance of the LayerNorms, FlashAttention's log-sum-exp ($4asb$ bytes) and the
# saved state of the random generator. They are small, and leaving them out keeps the formula readable.
#
# **A small number to hold on to.** $s = 4$, $b = 1$, $h = 2$, $a = 1$: $sbh = 8$ and $as^2b = 16$, so the baseline keeps
# $34 \cdot 8 + 5 \cdot 16 = 352$ bytes.


# %%
@accepts(s=whole(1), b=whole(1), h=whole(1), a=whole(1), mode=name())
def activation_bytes(s: int, b: int, h: int, a: int, mode: str = "baseline") -> int:
    """Return the bytes of activations that one GPT layer keeps for its backward pass.

    s: sequence length. b: micro-batch. h: hidden size. a: attention heads.
    mode: "baseline", "flash", "selective" or "full"; anything else raises ValueError.
    """
    ### BEGIN SOLUTION
    sbh_units = {"baseline": 34, "flash": 34, "selective": 34, "full": 2}
    if mode not in sbh_units:
        raise ValueError(f"mode must be one of {', '.join(sbh_units)}, not {mode!r}")
    core = 5 * a * s**2 * b if mode == "baseline" else 0
    return sbh_units[mode] * s * b * h + core
    ### END SOLUTION


# %% points=4
def check_activation_bytes_baseline():
    # The count tensor by tensor, in bytes an element: whatever differs is looked for in the list.
    linear = {
        "the input of the first LayerNorm": 2,
        "the input of the query, key and value projections": 2,
        "Q": 2,
        "K": 2,
        "V": 2,
        "the input of the output projection": 2,
        "the mask of the dropout after the attention": 1,
        "the input of the second LayerNorm": 2,
        "the input of the MLP": 2,
        "the input of GeLU (4h wide)": 8,
        "the output of GeLU (4h wide)": 8,
        "the mask of the dropout after the MLP": 1,
    }
    square = {
        "the output of the softmax": 2,
        "the mask of the dropout on the attention weights": 1,
        "the output of the dropout on the attention weights": 2,
    }

    def mistakes_of(s, b, h, a, right):
        """Map each known mistake to the value that it gives: whole mistakes first, then one tensor missing or doubled."""
        row, core = s * b * h, a * s * s * b
        values = {
            "the attention core is missing": right - 5 * core,
            "the masks are counted at 2 bytes an element": right + 2 * row + core,
            "the masks are missing": right - 2 * row - core,
            "the input of the query, key and value projections is counted three times": right + 4 * row,
            "the inputs of both LayerNorms are missing": right - 4 * row,
            "the layer is counted without dropout": right - 2 * row - 3 * core,
            "the MLP is counted as h wide instead of 4h": right - 12 * row,
            "the heads are missing from the core (one s by s matrix a head)": right - 5 * core + 5 * s * s * b,
            "the micro-batch is missing from the core": right - 5 * core + 5 * a * s * s,
            "the core grows with s instead of s squared": right - 5 * core + 5 * a * s * b,
            "the core is multiplied by h instead of the number of heads": right - 5 * core + 5 * h * s * s * b,
            "bytes are doubled once more for 16-bit (the formula is in bytes already)": 2 * right,
            "values are counted, not bytes": right / 2,
            "the LayerNorms' statistics are in it (this count leaves them out)": right + 16 * s * b,
            "the LayerNorms' statistics are in it, at 2 bytes (this count leaves them out)": right + 8 * s * b,
            "FlashAttention's log-sum-exp is in it (the baseline keeps none)": right + 4 * a * s * b,
            "^ is taken for a power (Python's is **)": right - 5 * core + 5 * a * (s ^ 2) * b,
            "^ is taken for a power (Python's is **, and ^ comes after the sums)": (34 * row + 5 * a * s) ^ (2 * b),
        }
        for unit, tensors in ((row, linear), (core, square)):
            for tensor, each in tensors.items():
                values[f"{tensor} is missing, for example"] = right - each * unit
                values[f"{tensor} is counted twice, for example"] = right + each * unit
        return values

    ask(lambda: activation_bytes, 12, 3, 64, 8).gives(95_616, mistakes_of(12, 3, 64, 8, 95_616))
    ask(lambda: activation_bytes, 4, 1, 2, 1).gives(352)
    ask(lambda: activation_bytes, 2048, 8, 2048, 16).gives(3_825_205_248)
    ### BEGIN HIDDEN TESTS
    from random import Random

    rng = Random(f"{CHECK_SEED}/activation_bytes_baseline")
    # Not 2, 4 or 8 heads: with them the log-sum-exp is as large as statistics of the LayerNorms.
    shapes = [(11, 3, 35, 5), (rng.randint(3, 9), 2, 8 * rng.randint(3, 7), 1)]
    shapes += [(rng.randint(500, 9000), rng.randint(1, 16), 64 * heads, heads) for heads in (7, rng.randint(9, 96))]
    shapes += [(rng.randint(9, 90), 2 * rng.randint(1, 7) + 1, 128 * heads, heads) for heads in (3, rng.randint(9, 64))]
    for s, b, h, a in [*shapes, shapes[0]]:  # and once more what was asked before
        elements = dict.fromkeys(linear, s * b * h) | dict.fromkeys(square, a * s * s * b)
        right = sum(elements[tensor] * each for tensor, each in (linear | square).items())
        probe(lambda: activation_bytes, s, b, h, a, mode="baseline").gives(right, mistakes_of(s, b, h, a, right))
    probe(lambda: activation_bytes, 12, 3, 64, 8).gives(95_616)
    ### END HIDDEN TESTS


# %% points=2
def check_activation_bytes_flash():
    kept_too = (
        "FlashAttention's log-sum-exp is in your count under 'flash': that is true of the kernel, and full marks."
    )
    ask(lambda: activation_bytes, 10, 3, 64, 8, mode="flash").gives(
        65_280,
        {
            "the attention core is still in it": 77_280,
            "the masks are counted at 2 bytes an element": 69_120,
            "the two masks that remain are missing": 61_440,
            "the LayerNorms' statistics (or the log-sum-exp at 2 bytes) are in it; this count leaves them out": 65_760,
            "the log-sum-exp and the LayerNorms' statistics are in it": 66_720,
            "only the core is counted": 12_000,
            "the layer's input alone is counted (that is 'full')": 3_840,
        },
        also=[66_240],
        remark=kept_too,
    )
    ### BEGIN HIDDEN TESTS
    from random import Random

    rng = Random(f"{CHECK_SEED}/activation_bytes_flash")
    shapes = [(6, 2, 21, 3), (rng.randint(500, 9000), rng.randint(1, 16), 64 * 5, 5)]
    shapes += [
        (rng.randint(20, 9000), 2 * rng.randint(1, 7) + 1, 128 * heads, heads) for heads in (7, rng.randint(9, 96))
    ]
    for s, b, h, a in [*shapes, shapes[0]]:
        widths = {"norms": (2, 2 * h), "projections": (2, h), "heads": (2, 3 * h), "attended": (2, h)}
        widths |= {"mlp": (2, h + 4 * h + 4 * h), "masks": (1, 2 * h)}
        right = sum(each * width * s * b for each, width in widths.values())
        probe(lambda: activation_bytes, s, b, h, a, mode="flash").gives(
            right,
            {
                "the attention core is still in it": right + 5 * a * s * s * b,
                "the masks are counted at 2 bytes an element": right + 2 * s * b * h,
                "the two masks that remain are missing": right - 2 * s * b * h,
                "the micro-batch is missing": right / b,
                "only the core is counted": 5 * a * s * s * b,
                "the layer's input alone is counted (that is 'full')": 2 * s * b * h,
                "the LayerNorms' statistics are in it (this count leaves them out)": right + 16 * b * s,
                "the LayerNorms' statistics are in it, at 2 bytes (this count leaves them out)": right + 8 * b * s,
                "the log-sum-exp and the LayerNorms' statistics are in it": right + 4 * a * s * b + 16 * s * b,
                "the log-sum-exp is counted at 2 bytes (it is fp32, and left out of this count)": right + 2 * a * s * b,
            },
            also=[right + 4 * a * s * b],
            remark=kept_too,
        )
    ### END HIDDEN TESTS


# %% remarks_flash
show_remarks()


# %% points=1
def check_activation_bytes_selective():
    ask(lambda: activation_bytes, 10, 3, 64, 8, mode="selective").gives(
        65_280,
        {
            "the attention core is still in it": 77_280,
            "FlashAttention's log-sum-exp is in it (selective recomputation keeps none)": 66_240,
            "the output of the softmax is still in it": 70_080,
            "the mask of the attention weights is still in it": 67_680,
            "the LayerNorms' statistics are in it (this count leaves them out)": 65_760,
            "the layer's input alone is counted (that is 'full')": 3_840,
        },
    )
    ### BEGIN HIDDEN TESTS
    from random import Random

    rng = Random(f"{CHECK_SEED}/activation_bytes_selective")
    for case in range(5):
        heads = rng.randint(9, 40)
        s, b, h, a = (rng.randint(20, 9000), rng.randint(1, 16), 64 * heads, heads) if 0 < case < 4 else (7, 3, 15, 5)
        rows = [2 * h] * 8 + [h] * 2 + [2 * 4 * h] * 2  # eight 16-bit tensors, two masks, GeLU's input and output
        right = sum(rows) * s * b
        probe(lambda: activation_bytes, s, b, h, a, mode="selective").gives(
            right,
            {
                "the attention core is still in it": right + 5 * a * s * s * b,
                "the output of the softmax is still in it": right + 2 * a * s * s * b,
                "the mask of the attention weights is still in it": right + a * s * s * b,
                "FlashAttention's log-sum-exp is in it (selective recomputation keeps none)": right + 4 * a * s * b,
                "the LayerNorms' statistics are in it (this count leaves them out)": right + 16 * b * s,
                "the layer's input alone is counted (that is 'full')": 2 * s * b * h,
                "the micro-batch is missing": right / b,
            },
        )
    ### END HIDDEN TESTS


# %% points=2
def check_activation_bytes_full():
    ask(lambda: activation_bytes, 10, 3, 64, 8, mode="full").gives(
        3_840,
        {
            "nothing is counted (the layer's input must stay, or nothing can be rebuilt)": 0,
            "the input is counted at 1 byte an element": 1_920,
            "the input is counted at 4 bytes an element (it is 16-bit)": 7_680,
            "the rebuilt layer is in it (it comes later, once for all layers)": 69_120,
            "the attention core is still in it": 15_840,
            "nothing changes against 'flash'": 65_280,
            "mode is ignored": 77_280,
            "the micro-batch is missing": 1_280,
        },
    )
    ### BEGIN HIDDEN TESTS
    from random import Random

    rng = Random(f"{CHECK_SEED}/activation_bytes_full")
    for case in range(5):
        heads = rng.randint(9, 40)
        s, b, h, a = (rng.randint(20, 9000), rng.randint(1, 16), 64 * heads, heads) if 0 < case < 4 else (7, 3, 15, 5)
        tokens, bytes_a_token = s * b, h + h
        right = tokens * bytes_a_token
        probe(lambda: activation_bytes, s, b, h, a, mode="full").gives(
            right,
            {
                "the micro-batch is missing": right / b,
                "the input is counted at 1 byte an element": right / 2,
                "the input is counted at 4 bytes an element (it is 16-bit)": 2 * right,
                "the rebuilt layer is in it (it comes later, once for all layers)": 18 * right,
                "nothing changes against 'flash'": 17 * right,
                "mode is ignored": 17 * right + 5 * a * s * s * b,
                "the attention core is still in it": right + 5 * a * s * s * b,
            },
        )
    ### END HIDDEN TESTS


# %% points=1
def check_activation_bytes_mode():
    def any_value(asks, s, values):
        """One right mode will do for the value: a wrong formula has cost its own check already."""
        *first, (last, value) = values.items()
        for mode, right in first:
            try:
                return asks(lambda: activation_bytes, s, 2, 16, 2, mode=mode).gives(right)
            except CheckFailed:
                pass
        return asks(lambda: activation_bytes, s, 2, 16, 2, mode=last).gives(value)

    any_value(ask, 8, {"full": 512, "flash": 8_704, "selective": 8_704, "baseline": 9_984})
    ask(lambda: activation_bytes, 8, 2, 16, 2, mode="no such mode").is_refused()
    ### BEGIN HIDDEN TESTS
    from random import Random

    rng = Random(f"{CHECK_SEED}/activation_bytes_mode")
    s = rng.randint(9, 99)
    any_value(probe, s, {"full": 64 * s, "flash": 1088 * s, "selective": 1088 * s, "baseline": 1088 * s + 20 * s * s})
    unknown = rng.choice(("bogus-mode", "not-a-mode", "nonesuch", "???"))
    probe(lambda: activation_bytes, s, 2, 16, 2, mode=unknown).is_refused()
    ### END HIDDEN TESTS


# %% reasoning [markdown]
# The backward pass of an operation needs certain of its inputs or outputs; what is needed stays. So go through the layer
# once, ask each operation what its gradient multiplies with, and write every tensor down **once**, also where two
# operations need it.
#
# 1. **What has $sbh$ elements** and two bytes: the inputs of both LayerNorms, the one input of the three projections, $Q$,
#    $K$, $V$, the input of the output projection, the input of the MLP. Eight tensors, 16.
# 2. **What is $4h$ wide**: input and output of GeLU, $2 \cdot 4 \cdot 2 = 16$.
# 3. **Masks** of one byte: two of them, 2. Together 34.
# 4. **What has $as^2b$ elements**: softmax's output 2, the mask 1, the dropout's output 2. Together 5.
#
# FlashAttention goes over the scores in blocks and makes them again in the backward pass, selective recomputation does
# that with the whole core: in both cases step 4 is gone. Full checkpointing keeps the first tensor of step 1 alone: from
# it all others can be made again, and from nothing less.
#
# For the 1.3B example ($s = 2048$, $b = 8$, $h = 2048$, $a = 16$) the core is $5as/h = 80$ beside 34: a layer keeps
# [[activation_bytes(2048, 8, 2048, 16) / GB:.2f]] GB, and [[activation_bytes(2048, 8, 2048, 16, "flash") / GB:.2f]] GB
# without its core. The core is the only part that grows with $s^2$. With $h = 4096$ and 32 heads it overtakes the rest
# at $s = 34h/5a = [[34 * 4096 / (5 * 32):.1f]]$ tokens.
#
# The table of units keeps the code to one formula, and an unknown mode cannot slip through: it is refused before anything
# is computed.

# %% mistakes [markdown]
# ### What people get wrong about activations
#
# - **bytes are doubled once more for 16-bit (the formula is in bytes already)**: 34 looks like a count of values. It is a
#   sum of bytes, and a mask adds 1 to it. Several public calculators have this mistake. Notice it on the small
#   number: 352.
# - **the input of the query, key and value projections is counted three times**: three operations need it, but it is one
#   tensor in memory. Count storages, not uses.
# - **the heads are missing from the core (one s by s matrix a head)**: widths add up to $h$ over the heads, and so heads
#   mostly cancel; the scores are where they do not. Try twice as many heads at the same $h$: the core has to double.
# - **the masks are counted at 2 bytes an element**: a mask is a tensor of booleans, a byte each. On some devices a
#   framework does keep it in the activations' format; this count does not.
# - **nothing is counted (the layer's input must stay, or nothing can be rebuilt)**: under full checkpointing "everything
#   is recomputed" is taken at its word. Something has to be there to begin from.
# - **the rebuilt layer is in it (it comes later, once for all layers)**: true of the peak, and exercise 5 adds it there,
#   once. As part of what *each* layer keeps it would be counted $L$ times.
