"""Stretch exercise 2: how high the memory rises at the loss."""

from trainmem_solutions.opening import ask

# %% [markdown]
# ## Stretch 2 · The loss's true peak
#
# Exercise 5 counts the logits at $4sbV$ bytes. That is what is still held when the forward pass ends. A moment later, when
# the backward pass of the loss begins, it is more. `loss_peak_bytes` returns the most that is held of tensors with one
# element for each of the $sbV$ logits, at any moment.
#
# An eager framework runs the cross-entropy as two operations, log-softmax and the choice of the target's entry:
#
# | | event | makes | lets go |
# |---|---|---|---|
# | forward | output layer | logits, bf16 | |
# | | conversion to fp32 | logits in fp32 | the bf16 logits |
# | | log-softmax; its gradient needs its **output** | log-probabilities | the fp32 logits |
# | | the loss, one number | | |
# | backward | of the choice | gradient of the log-probabilities | |
# | | of the log-softmax, which reads the last two | gradient of the logits | then both |
# | | of the conversion | that gradient in bf16 | the fp32 one |
#
# A tensor goes when nothing needs it any more, unless the program **still refers to it** (`referenced=True`): in
# `logits = model(x)`, the name `logits` holds what the model returned until it is used for something else.
#
# | `loss` | where the logits become fp32 | what a program refers to |
# |---|---|---|
# | `"fp32"` | in the model, before they are returned: `return self.head(x).float()` | the fp32 logits |
# | `"autocast"` | inside the loss, which autocast runs in fp32 | the bf16 logits |
# | `"bf16"` | nowhere: all of the above stays in bf16, two bytes an element | the bf16 logits |
#
# Anything else raises `ValueError`.
#
# **A small number to hold on to.** $s = 2$, $b = 1$, $V = 10$ are 20 logits. In fp32 the forward pass ends with 80 bytes;
# `"bf16"` has its peak at 120.
#
# Source: the lesson's simulator, which agrees with what PyTorch allocates; the two operations are those of
# `torch.nn.functional.cross_entropy`.


# %%
def loss_peak_bytes(s: int, b: int, V: int, loss: str = "fp32", referenced: bool = False) -> int:
    """Return the most bytes that are held at once of logits, log-probabilities and their gradients.

    s: sequence length. b: micro-batch. V: vocabulary.
    loss: "fp32", "autocast" or "bf16"; anything else raises ValueError.
    referenced: the program still refers to the logits that the model returned.
    """
    ### BEGIN SOLUTION
    element = {"fp32": 4, "autocast": 4, "bf16": 2}
    returned = {"fp32": 4, "autocast": 2, "bf16": 2}
    if loss not in element:
        raise ValueError(f"loss must be one of {', '.join(element)}, not {loss!r}")
    at_once = 3 * element[loss]  # the log-probabilities, their gradient and the gradient of the logits
    return s * b * V * (at_once + (returned[loss] if referenced else 0))
    ### END SOLUTION


# %% points=0
def check_loss_peak_bytes():
    for s, b, V in ((7, 5, 101), (2, 1, 10), (2048, 8, 50257)):
        logits = s * b * V
        ask(lambda: loss_peak_bytes, s, b, V).gives(
            12 * logits,
            {
                "only what is held at the end of the forward pass is counted": 4 * logits,
                "one of the two gradients is missing": 8 * logits,
                "the fp32 logits are still counted although nothing refers to them": 16 * logits,
                "the bf16 logits are still counted although nothing refers to them": 14 * logits,
                "the loss is counted in bf16 (or the conversion's moment is taken for the highest)": 6 * logits,
                "only the bf16 logits are counted": 2 * logits,
                "elements are counted, not bytes": 3 * logits,
                "the vocabulary is missing": 12 * s * b,
                "the micro-batch is missing": 12 * s * V,
            },
        )


# %% points=0
def check_loss_peak_bytes_kinds():
    s, b, V = 7, 5, 101
    logits = s * b * V
    ask(lambda: loss_peak_bytes, s, b, V, loss="bf16").gives(
        6 * logits,
        {
            "loss is ignored": 12 * logits,
            "only what is held at the end of the forward pass is counted": 2 * logits,
            "one of the two gradients is missing": 4 * logits,
            "the logits are still counted although nothing refers to them": 8 * logits,
        },
    )
    ask(lambda: loss_peak_bytes, s, b, V, loss="autocast").gives(
        12 * logits,
        {
            "the loss is counted in bf16 (autocast runs it in fp32)": 6 * logits,
            "the bf16 logits are still counted although nothing refers to them": 14 * logits,
        },
    )
    ask(lambda: loss_peak_bytes, s, b, V, loss="no such loss").is_refused()


# %% points=0
def check_loss_peak_bytes_referenced():
    s, b, V = 7, 5, 101
    logits = s * b * V
    for loss, element, returned in (("fp32", 4, 4), ("autocast", 4, 2), ("bf16", 2, 2)):
        tensors = {"log-probabilities": element, "their gradient": element, "the logits' gradient": element}
        tensors["logits that the model returned"] = returned
        right = logits * sum(tensors.values())
        ask(lambda: loss_peak_bytes, s, b, V, loss=loss, referenced=True).gives(
            right,
            {
                "referenced is ignored": 3 * element * logits,
                "the program is taken to refer to fp32 logits (here the model returned bf16)": (3 * element + 4)
                * logits,
                "the program is taken to refer to bf16 logits (here the model returned fp32)": (3 * element + 2)
                * logits,
                "the logits are counted twice": (3 * element + 2 * returned) * logits,
            },
        )


# %% reasoning [markdown]
# Play the events and keep a list. In fp32, in bytes a logit:
#
# 1. The output layer makes 2; the conversion adds 4 and lets the 2 go: 4.
# 2. The log-softmax adds 4 and, when it is over, lets the logits go: 8 for a moment, then 4. The forward pass ends here,
#    with the log-probabilities; this is the 4 of exercise 5.
# 3. The backward pass adds the gradient of the log-probabilities: 8. It is zero but for one entry a token, and is written
#    out in full all the same.
# 4. The log-softmax's gradient needs the log-probabilities and that gradient, and makes a third tensor: **12**. Only then
#    do the first two go.
# 5. The conversion makes 2 beside the 4 that are left: 6.
#
# So the peak is three elements a logit: 12 bytes, or 6 where everything is bf16. A reference adds what the model
# returned: 4 under `"fp32"`, and 2 where the loss converts for itself or nobody does. At worst that is 16.
#
# For the 1.3B example with eight sequences it is [[12 * example.logits / 4 / GB:.1f]] GB where the sum of exercise 5 has
# [[example.logits / GB:.1f]]. With FlashAttention this moment *is* the peak of that model's step. Fused and chunked
# cross-entropy kernels are written for it: they never hold all logits at once.

# %% mistakes [markdown]
# ### What people get wrong about the loss
#
# - **only what is held at the end of the forward pass is counted**: "activations" are taken for all that there is.
#   Gradients of activations are tensors too, and those of the logits are as large as the logits. Notice it by asking how
#   many tensors one *backward* operation has in hand: what was kept, what comes in, and what it makes.
# - **one of the two gradients is missing**: log-softmax and the choice are taken for one operation. They are one function
#   in Python, and two in autograd.
# - **the fp32 logits are still counted although nothing refers to them**: log-softmax needs its output, not its input, so
#   they go. They stay where the program holds them; `del logits`, or a model that returns the loss, is worth a quarter.
# - **the program is taken to refer to fp32 logits (here the model returned bf16)**: under autocast the model returns bf16,
#   and the fp32 copy is made inside the loss, where no name of yours reaches it.
