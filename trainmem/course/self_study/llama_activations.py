"""Stretch exercise 1: what one Llama-style layer keeps for its backward pass."""

from trainmem_solutions.opening import ask

# %% [markdown]
# ## Stretch 1 · What a Llama-style layer keeps
#
# Exercise 3 counts the GPT layer. Llama, Mistral and most open models since are built otherwise, and their layer keeps
# something else: RMSNorm for LayerNorm, no dropout and so no masks, rotary positions, `kv` key/value heads for `a` query
# heads (GQA), and an MLP with a gate (SwiGLU): $W_{down}(\text{silu}(x W_{gate}) \odot x W_{up})$, $f$ wide.
#
# `llama_activation_bytes` counts the bytes that one such layer keeps for its backward pass, everything in 16-bit. The
# rules are those of exercise 3, and each asks what the **gradient** of an operation needs:
#
# - A norm and a matrix product need their input; several products of one input share it.
# - The rotation of $Q$ and $K$ needs nothing but its sines and cosines, which belong to the model, not to the layer.
#   What the attention keeps are the *rotated* $Q$ and $K$.
# - Attention needs $Q$, $K$ and $V$, with $K$ and $V$ only `kv` heads wide, and a head $h/a$. Under FlashAttention
#   (`fused_attention=True`) it also needs its output, which the output projection needs as *its* input anyway. Without it,
#   the softmax needs its output: `a` matrices of $s \times s$ for each sequence.
# - $\text{silu}$ needs its input; the product $\odot$ needs both its factors. A fused SwiGLU kernel
#   (`fused_swiglu=True`) keeps its two inputs alone and computes $\text{silu}$ again.
#
# **Left out on purpose**, as in exercise 3: the norms' statistics and the log-sum-exp.
#
# **A small number to hold on to.** $s = 4$, $b = 1$, $h = 8$, $a = 4$, `kv` $= 2$, $f = 20$, FlashAttention, eager SwiGLU:
# [[llama_layer(4, 1, 8, 4, kv=2, f=20).kept_bytes:,]] bytes, and
# [[llama_layer(4, 1, 8, 4, kv=2, f=20, attention="eager").kept_bytes:,]] without FlashAttention.
#
# Sources: Touvron et al. 2023, section 2 (the layer); Shazeer 2020 (SwiGLU); Ainslie et al. 2023 (GQA). What PyTorch keeps
# was measured for this course, tensor by tensor.


# %%
def llama_activation_bytes(
    s: int, b: int, h: int, a: int, kv: int, f: int, fused_attention: bool = True, fused_swiglu: bool = False
) -> int:
    """Return the bytes of activations that one Llama-style layer keeps for its backward pass.

    s: sequence length. b: micro-batch. h: hidden size. a: query heads. kv: key/value heads, a divisor of a.
    f: width of the MLP. fused_attention: FlashAttention. fused_swiglu: silu and product in one kernel.
    """
    ### BEGIN SOLUTION
    shared = kv * (h // a)  # the width of K, and of V
    attention = 2 * h + 2 * h + 2 * h + 2 * shared + 2 * shared + 2 * h  # norm, projections, Q, K, V, output
    mlp = 2 * h + 2 * h + (6 if fused_swiglu else 8) * f  # norm, gate and up, the f-wide tensors
    core = 0 if fused_attention else 2 * a * s * s * b
    return s * b * (attention + mlp) + core
    ### END SOLUTION


# %% points=0
def check_llama_activation_bytes():
    def mistakes_of(s, b, h, a, kv, f, right, fused):
        """Map each known mistake to the value that it gives."""
        tokens, shared = s * b, kv * h // a
        return {
            "keys and values are counted as wide as the queries (they have kv heads, not a)": right
            + tokens * 4 * (h - shared),
            "only the keys are narrowed, not the values": right + tokens * 2 * (h - shared),
            "the queries are narrowed as well": right - tokens * 2 * (h - shared),
            "a and kv are swapped": right + tokens * 4 * (h * a // kv - shared),
            "two f-wide tensors are counted (silu and the product need more)": right - tokens * (2 if fused else 4) * f,
            "three f-wide tensors are counted (eager SwiGLU keeps four)": right - tokens * (0 if fused else 2) * f,
            "fused_swiglu is ignored": right + tokens * 2 * f * fused,
            "the MLP is taken to be 4h wide": right + tokens * (6 if fused else 8) * (4 * h - f),
            "the input of the query, key and value projections is counted three times": right + tokens * 4 * h,
            "the input of gate and up is counted twice (or one norm's)": right + tokens * 2 * h,
            "the inputs of both norms are missing": right - tokens * 4 * h,
            "the input of one norm (or one other h-wide tensor) is missing": right - tokens * 2 * h,
            "Q and K are counted before the rotation too": right + tokens * 2 * (h + shared),
            "the layer is counted by the GPT formula, 34 sbh": 34 * tokens * h,
            "values are counted, not bytes": right / 2,
        }

    shape = (6, 3, 35, 5, 1, 90)
    ask(lambda: llama_activation_bytes, *shape).gives(21_024, mistakes_of(*shape, 21_024, False))
    ask(lambda: llama_activation_bytes, 4, 1, 8, 4, 2, 20).gives(1_088)
    seven = (4096, 1, 4096, 32, 32, 11008)
    ask(lambda: llama_activation_bytes, *seven).gives(629_145_600, mistakes_of(*seven, 629_145_600, False))
    seventy = (512, 3, 8192, 64, 8, 28672)
    ask(lambda: llama_activation_bytes, *seventy).gives(509_607_936, mistakes_of(*seventy, 509_607_936, False))
    ask(lambda: llama_activation_bytes, *seventy, fused_swiglu=True).gives(
        421_527_552, mistakes_of(*seventy, 421_527_552, True)
    )


# %% points=0
def check_llama_activation_bytes_attention():
    for s, b, h, a, kv, f, fused in (
        (7, 5, 36, 6, 2, 90, True),
        (4, 1, 8, 4, 2, 20, False),
        (128, 2, 64, 8, 2, 96, False),
    ):
        core = a * s * s * b
        heads = {"Q": a, "K": kv, "V": kv, "attended": a}
        held = [2 * count * h // a for count in heads.values()] + [2 * h] * 4 + [2 * f] * (3 if fused else 4)
        right = s * b * sum(held) + 2 * core
        ask(lambda: llama_activation_bytes, s, b, h, a, kv, f, fused_attention=False, fused_swiglu=fused).gives(
            right,
            {
                "the output of the softmax is missing": right - 2 * core,
                "the scores before the softmax are kept as well (its gradient needs the output alone)": right
                + 2 * core,
                "the core is the GPT layer's, with dropout: 5 as²b": right + 3 * core,
                "the core has kv heads (there is a matrix for every query head)": right - 2 * core + 2 * kv * s * s * b,
                "the heads are missing from the core": right - 2 * core + 2 * s * s * b,
                "the micro-batch is missing from the core": right - 2 * core + 2 * a * s * s,
                "the core grows with s instead of s squared": right - 2 * core + 2 * a * s * b,
                "the core is counted at 1 byte an element": right - core,
            },
        )


# %% reasoning [markdown]
# Walk through the layer and write down what each gradient needs, once for each tensor, in units of $sb$ elements:
#
# 1. **Attention.** Input of the norm $h$. Its output, the one input of the three projections, $h$. The rotated $Q$: $h$.
#    The rotated $K$ and $V$: $h \cdot \text{kv}/a$ each. The attention's output, which the output projection multiplies: $h$.
# 2. **MLP.** Input of the norm $h$; its output, the one input of gate and up, $h$. Then four tensors of $f$: silu's input,
#    the two factors of the product (silu's output and what comes from up), and the product itself, the input of down.
#
# With two bytes an element that is $sbh\,(12 + 4\,\text{kv}/a + 8f/h)$. Fused, silu's output is made again and $8f/h$
# becomes $6f/h$. Each $s \times s$ matrix of the softmax costs two bytes: $2as^2b$, and no more than that, since nothing
# is dropped.
#
# For LLaMA 7B that gives [[llama_layer(64, 1, 4096, 32, f=11008).kept_bytes / (64 * 4096):.1f]] $sbh$, more than the GPT
# layer's 34 although there are no masks: four tensors of $f = 2.7h$ weigh more than two of $4h$. Two calculators that
# people use give 28.75 (two $f$-wide tensors, and one $h$-wide tensor more) and 34 (the GPT formula). PyTorch with a
# fused RMSNorm, asked which storages autograd holds, agrees with the list here; its norm on a CPU keeps $8\,sbh$ more.

# %% mistakes [markdown]
# ### What people get wrong about a Llama-style layer
#
# - **the layer is counted by the GPT formula, 34 sbh**: the number is famous, so it is taken for a law. It is a sum over
#   one layer's tensors, and another layer has others. Notice it by asking what $f$ does to your count: nothing?
# - **three f-wide tensors are counted (eager SwiGLU keeps four)**: people count the three *matrices*. Ask of every
#   operation what its gradient multiplies with; the product $\odot$ asks for both factors.
# - **keys and values are counted as wide as the queries (they have kv heads, not a)**: GQA is remembered for the cache in
#   inference and forgotten in training. Try `kv=1`: two tensors should almost vanish.
# - **the core has kv heads (there is a matrix for every query head)**: the other way round. Query heads share keys, but
#   each has its own scores.
# - **the core is the GPT layer's, with dropout: 5 as²b**: of the five bytes three belong to the dropout. Without it the
#   softmax's output goes straight into the product with $V$.
