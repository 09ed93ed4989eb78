"""Exercise 2: the bytes of the model states and the GPUs that hold them."""

from trainmem_solutions.arguments import accepts, positive, whole
from trainmem_solutions.opening import CHECK_SEED, ask, probe

# %% [markdown]
# ## Exercise 2 · Model states
#
# Training with mixed-precision Adam keeps five numbers for every parameter:
#
# | | format | bytes |
# |---|---|---|
# | weight, for the forward and backward pass | bf16 | 2 |
# | gradient | bf16 | 2 |
# | master weight | fp32 | 4 |
# | Adam's first and second moment | fp32 | 4 + 4 |
#
# The last three belong to the optimizer: $K = 12$ bytes a parameter, so the model states take $(4 + K)\,\Psi$ bytes
# (Rajbhandari et al. 2020, section 3.1). Another optimizer has another $K$: plain SGD with a master copy has $K = 4$, and
# an 8-bit Adam with a master copy $K = 6$.
#
# **A small number to hold on to.** A model of one million parameters needs 16 MB for its states; for inference in bf16
# it would be 2 MB.


# %%
@accepts(psi=whole(1, floats=True), K=whole(0))
def model_state_bytes(psi: int, K: int = 12) -> int:
    """Return the bytes of the model states: bf16 weights and gradients, and K optimizer bytes a parameter.

    psi: number of parameters. K: optimizer bytes per parameter (12 for mixed-precision Adam).
    """
    ### BEGIN SOLUTION
    return psi * (2 + 2 + K)
    ### END SOLUTION


# %% points=4
def check_model_state_bytes():
    ask(lambda: model_state_bytes, 1_000_000).gives(
        16_000_000,
        {
            "only the bf16 weights are counted: that is inference": 2_000_000,
            "the optimizer is missing": 4_000_000,
            "the master weights (or weights and gradients) are missing": 12_000_000,
            "the gradients (or the weights) are missing": 14_000_000,
            "the optimizer is counted twice": 28_000_000,
            "the gradients are counted at 4 bytes": 18_000_000,
            "weights and gradients are counted at 4 bytes each": 20_000_000,
            "the result is in GB, not in bytes": 0.016,
            "the result is in GiB, not in bytes": 0.014901161193847656,
        },
    )
    ask(lambda: model_state_bytes, 13_000_000_000).gives(208_000_000_000)
    ask(lambda: model_state_bytes, 1000, K=4).gives(
        8_000,
        {"K is ignored": 16_000, "K replaces all sixteen bytes": 4_000, "K is added to the sixteen bytes": 20_000},
    )
    ### BEGIN HIDDEN TESTS
    from random import Random

    rng = Random(f"{CHECK_SEED}/model_state_bytes")
    draws = [(rng.randint(1, 9), 12), (rng.randint(10**8, 10**11), 12), (rng.randint(10**8, 10**11), 0)]
    draws += [(rng.randint(10**6, 10**11), rng.choice((3, 5, 7, 9, 18, 20, 24))) for _ in "abc"]
    for psi, K in [*draws, draws[0]]:  # and once more what was asked before
        per_parameter = {"weight": 2, "gradient": 2, "optimizer": K}
        right = sum(each * psi for each in per_parameter.values())
        probe(lambda: model_state_bytes, psi, K=K).gives(
            right,
            {
                "K is ignored": 16 * psi,
                "K replaces all sixteen bytes": K * psi,
                "the optimizer is counted twice": right + K * psi,
                "K is added to the sixteen bytes": (16 + K) * psi,
                "the gradients (or the weights) are missing": right - 2 * psi,
                "the gradients are counted at 4 bytes": right + 2 * psi,
                "weights and gradients are counted at 4 bytes each": right + 4 * psi,
                "only the bf16 weights are counted: that is inference": 2 * psi,
                "the optimizer is missing": 4 * psi,
                "the result is in GB, not in bytes": right / 10**9,
                "the result is in GiB, not in bytes": right / 2**30,
            },
        )
    ### END HIDDEN TESTS


# %% reasoning [markdown]
# Each parameter brings a row of numbers: its bf16 weight, 2 bytes; its bf16 gradient, 2 bytes; and what the optimizer
# keeps, $K$ bytes. The row is the same for every parameter, so the whole is $(2 + 2 + K)\,\Psi$.
#
# With Adam the optimizer keeps an fp32 copy of the weight, because an update is often smaller than the step from one bf16
# number to the next and would be lost, and two moments of the gradient: $K = 4 + 4 + 4 = 12$, 16 bytes in all. Of these
# only two are what people call "the model": 7 billion parameters are 14 GB to run and
# [[model_state_bytes(7 * 10**9) / GB:.0f]] GB to train.
#
# The function stays with whole numbers as long as $\Psi$ is one: bytes are counted, not measured.

# %% [markdown]
# ### How many GPUs for the states alone?
#
# Fully sharded (ZeRO-3, FSDP), every GPU holds an equal part of the model states. `gpus_for_states` gives the least whole
# number of GPUs whose memory together is enough. A model that fills its GPUs to the last byte needs no further one:
# $70 \cdot 10^9$ parameters take 1,120 GB, exactly fourteen GPUs of 80 GB.


# %%
@accepts(psi=whole(1, floats=True), gpu_bytes=positive(), K=whole(0))
def gpus_for_states(psi: int, gpu_bytes: float = 80e9, K: int = 12) -> int:
    """Return the least number of GPUs of gpu_bytes each that hold the model states, fully sharded.

    psi: number of parameters. gpu_bytes: memory of one GPU in bytes. K: optimizer bytes per parameter.
    """
    ### BEGIN SOLUTION
    # Fractions do not round: an exact multiple must not gain a GPU from the last bit of a float.
    from fractions import Fraction
    from math import ceil

    return ceil(Fraction(model_state_bytes(psi, K)) / Fraction(gpu_bytes))
    ### END SOLUTION


# %% points=3
def check_gpus_for_states():
    ask(lambda: gpus_for_states, 6_738_415_616).gives(
        2,
        {
            "the quotient is rounded down or to the nearest number (or only the weights are counted)": 1,
            "the quotient is not rounded to a whole number of GPUs": 1.3476831232,
        },
    )
    ask(lambda: gpus_for_states, 174_604_259_328).gives(
        35,
        {
            "the quotient is rounded down": 34,
            "a GiB is taken for a GB": 33,
        },
    )
    ask(lambda: gpus_for_states, 13_000_000_000, gpu_bytes=24e9).gives(9, {"gpu_bytes is ignored": 3})
    ### BEGIN HIDDEN TESTS
    from random import Random

    rng = Random(f"{CHECK_SEED}/gpus_for_states")
    for gigabytes, K in ((80, 12), (24, 12), (40, 6), (rng.choice((16, 32, 141, 192)), rng.choice((4, 8, 20)))):
        capacity = gigabytes * 10**9
        for most in (90, 44, 9):
            # The states fill between 0.15 and 0.4, or between 0.6 and 0.85, of the last GPU. Many GPUs come first: there
            # no two mistakes give the same number.
            gpus = rng.randint(most // 2, most)
            filled = gpus - 1 + rng.choice((0.15, 0.6)) + rng.random() / 4
            psi = int(filled * capacity) // (4 + K)
            loaded, room = psi * (4 + K), 0
            right = 0
            while room < loaded:
                right, room = right + 1, room + capacity
            options = {} if K == 12 else {"K": K}
            probe(lambda: gpus_for_states, psi, gpu_bytes=rng.choice((capacity, capacity * 1.0)), **options).gives(
                right,
                {
                    "the quotient is rounded down": right - 1,
                    "the quotient is not rounded to a whole number of GPUs": loaded / capacity,
                    "one GPU too many": right + 1,
                    "gpu_bytes is ignored": -(-loaded // (80 * 10**9)),
                    "K is ignored": -(-16 * psi // capacity),
                    "only the bf16 weights are counted: that is inference": -(-2 * psi // capacity),
                    "a GiB is taken for a GB": -(-loaded // (gigabytes * 2**30)),
                },
            )
    ### END HIDDEN TESTS


# %% points=3
def check_gpus_for_states_exact():
    for psi in (70_000_000_000, 70e9):
        ask(lambda: gpus_for_states, psi).gives(
            14, {"an exact multiple gains a GPU": 15, "the states are rounded down and a GPU is taken away": 13}
        )
    ask(lambda: gpus_for_states, 1_000_001, gpu_bytes=16_000_000).gives(
        2, {"one parameter more than an exact multiple is let pass, or gpu_bytes is not taken as it is": 1}
    )
    ask(lambda: gpus_for_states, 1, gpu_bytes=1000).gives(1, {"a model smaller than one GPU needs none": 0})
    ### BEGIN HIDDEN TESTS
    from random import Random

    rng = Random(f"{CHECK_SEED}/gpus_for_states_exact")
    for case in range(6):
        gpus, each = 2 ** rng.randint(1, 6), rng.randint(100, 15_000)
        K = 12 if case < 4 else rng.choice((4, 28))
        # Powers of two of GPUs and of bytes a parameter: every order of operations is exact, in GB as in bytes.
        psi, capacity = gpus * each, each * (4 + K)
        options = {} if case < 4 else {"K": K}
        as_given = psi if case % 3 else float(psi)
        probe(lambda: gpus_for_states, as_given, gpu_bytes=float(capacity) if case % 2 else capacity, **options).gives(
            gpus, {"an exact multiple gains a GPU": gpus + 1, "K is ignored": -(-16 * psi // capacity)}
        )
        probe(lambda: gpus_for_states, psi + 1, gpu_bytes=capacity, **options).gives(
            gpus + 1,
            {"one parameter more than an exact multiple is let pass, or gpu_bytes is not taken as it is": gpus},
        )
    psi = rng.randint(1, 10**6)
    for _ in "ab":
        probe(lambda: gpus_for_states, psi).gives(1, {"a model smaller than one GPU needs none": 0})
    ### END HIDDEN TESTS


# %% reasoning [markdown]
# Fully sharded, $n$ GPUs of $C$ bytes hold $nC$ bytes. The least whole $n$ with $nC \ge$ states is the quotient, rounded
# **up**; and where the quotient is whole already, it is itself the answer.
#
# The last bit matters where the quotient is whole. One division in floats is safe, since it is exact there. A detour is
# not: 15 billion parameters fill three GPUs of 80 GB, but `15e9 * 16 * 1e-9 / 80` is [[15e9 * 16 * 1e-9 / 80]], of which
# `ceil` makes 4. Fractions do not round, so that no order of operations has to be thought about; for whole numbers
# `-(-states // gpu_bytes)` is as exact.
#
# For $70 \cdot 10^9$ parameters: [[model_state_bytes(70 * 10**9) / GB:,.0f]] GB over 80 GB is
# [[gpus_for_states(70 * 10**9)]] with no byte to spare. One parameter more, and it takes
# [[gpus_for_states(70 * 10**9 + 1)]]. In practice you would take more than that anyway: activations come on top.

# %% mistakes [markdown]
# ### What people get wrong about model states
#
# - **only the bf16 weights are counted: that is inference**: the size of the file that one downloads is taken for the size
#   of the training. Notice it by the factor: training with Adam takes eight times as much.
# - **the master weights (or weights and gradients) are missing**: "mixed precision halves the memory" is true of
#   activations. The fp32 copy is *added* to the bf16 weights.
# - **K replaces all sixteen bytes**: $K$ is the optimizer's part alone. Ask what is left at $K = 0$: weights and gradients,
#   4 bytes.
# - **an exact multiple gains a GPU**: either from `states // gpu_bytes + 1`, which adds one always, or from a detour in
#   floats that ends a little above a whole number. Test with a model that fills its GPUs to the last byte.
# - **a GiB is taken for a GB**: 80 GB are 74.5 GiB. The difference of 7% is a GPU in fourteen.
