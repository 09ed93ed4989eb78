"""Exercise 5: the predicted peak of one GPU, and the cheapest change that makes it fit."""

from trainmem_solutions.activations import activation_bytes
from trainmem_solutions.arguments import accepts, name, positive, share, true_or_false, whole
from trainmem_solutions.opening import CHECK_SEED, ask, probe, show_remarks

# %% [markdown]
# ## Exercise 5 · The cheapest fix
#
# Now put everything together. `peak_bytes` predicts the peak of **one GPU** as model states + activations + logits.
#
# - **Model states.** With $d = $ `n_gpus` $/ t$ data-parallel copies, a parameter takes
#   16 bytes at ZeRO stage 0, $4 + 12/d$ at stage 1, $2 + 14/d$ at stage 2 and $16/d$ at stage 3 (Rajbhandari et al. 2020,
#   section 5). `offload` moves the optimizer's share to the CPU: 12 bytes at stage 0, $12/d$ at stages 1 to 3.
# - **Activations.** $L$ layers, each by `mode` as in exercise 3. Under `"full"` there is one more thing: the layer that is
#   being rebuilt, at $34\,sbh$.
# - **Logits.** $4sbV$: one fp32 score for each token and each word of the vocabulary.
# - Tensor parallelism of degree $t$ (with sequence parallelism) divides all three by $t$.
#
# **What may surprise.** $L$ times `activation_bytes(mode="full")` is not the whole: one rebuilt layer comes on top.
# `"full"` means a checkpoint at every layer, $k = 1$, also where `best_k` would be 2 (for $L = 80$ that costs 194 $sbh$
# against 148). The rebuilt layer is counted at 34, as under FlashAttention. And with a single layer, checkpointing costs
# more than it saves; that is never asked.
#
# **A small number to hold on to.** The 1.3B example ($\Psi = 1{,}311{,}528{,}960$, $L = 24$, $s = 2048$, $b = 8$, $h = 2048$,
# $a = 16$, $V = 50257$) needs 21.0 + 91.8 + 3.3 = 116.1 GB as it is, and 51.7 GB with FlashAttention.


# %%
@accepts(
    psi=whole(1, floats=True),
    L=whole(1),
    s=whole(1),
    b=whole(1),
    h=whole(1),
    a=whole(1),
    V=whole(1),
    mode=name(),
    zero=whole(0, 3),
    n_gpus=whole(1),
    t=whole(1),
    offload=true_or_false(),
)
def peak_bytes(
    psi: int,
    L: int,
    s: int,
    b: int,
    h: int,
    a: int,
    V: int,
    mode: str = "baseline",
    zero: int = 0,
    n_gpus: int = 1,
    t: int = 1,
    offload: bool = False,
) -> float:
    """Return the predicted peak of one GPU in bytes: model states, activations and logits.

    psi: parameters. L: layers. s: sequence length. b: micro-batch. h: hidden size. a: heads. V: vocabulary.
    mode: as in activation_bytes. zero: ZeRO stage, 0 to 3. n_gpus: GPUs in all. t: degree of tensor parallelism, a
    divisor of n_gpus. offload: keep the optimizer states in CPU memory.
    """
    ### BEGIN SOLUTION
    if n_gpus % t:
        raise ValueError(f"t must divide n_gpus: {n_gpus} GPUs do not form groups of {t}")
    d = n_gpus // t
    optimizer = 0 if offload else 12 / (d if zero >= 1 else 1)
    gradients = 2 / (d if zero >= 2 else 1)
    weights = 2 / (d if zero >= 3 else 1)
    activations = L * activation_bytes(s, b, h, a, mode)
    if mode == "full":
        activations += activation_bytes(s, b, h, a, "flash")
    return (psi * (weights + gradients + optimizer) + activations + 4 * s * b * V) / t
    ### END SOLUTION


# %% hidden
def oracle_peak(
    psi,
    L,
    s,
    b,
    h,
    a,
    V,
    mode="baseline",
    zero=0,
    n_gpus=1,
    t=1,
    offload=False,
    core=5,
    rebuilt=34,
    lse=0,
    lse_rebuilt=0,
):
    """Add up whole tensors, one GPU's part of each; `lse` adds the log-sum-exp where the mode keeps it."""
    copies, tokens = n_gpus // t, s * b
    parts = [(2 * psi, zero > 2), (2 * psi, zero > 1), (4 * psi * (not offload), zero > 0)]
    parts += [(4 * psi * (not offload), zero > 0)] * 2
    held = sum(size // copies if sharded else size for size, sharded in parts)
    per_layer = {
        "baseline": [34 * h, core * a * s],
        "flash": [34 * h, 4 * a * lse],
        "selective": [34 * h],
        "full": [2 * h],
    }
    held += L * tokens * sum(per_layer[mode])
    held += tokens * (rebuilt * h + 4 * a * lse_rebuilt) * (mode == "full")
    return (held + tokens * V * 4) / t


# %% points=3
def check_peak_bytes_modes():
    example = (1_311_528_960, 24, 2048, 8, 2048, 16, 50257)
    kept_too = "FlashAttention's log-sum-exp is in your peak: that is true of the kernel, and full marks."
    ask(lambda: peak_bytes, *example).gives(
        116_083_032_064,
        {
            "the model states are missing": 95_098_568_704,
            "the logits are missing": 112_789_389_312,
            "the activations are missing": 24_278_106_112,
            "one layer is counted instead of L": 28_103_311_360,
            "the logits are counted at 2 bytes (the loss is computed in fp32)": 114_436_210_688,
            "only the weights are counted of the model states": 97_721_626_624,
            "the result is in GB, not in bytes": 116.083032064,
            "the result is in GiB, not in bytes": 108.11074829101562,
            "the rebuilt layer is added although nothing is rebuilt": 117_223_882_752,
        },
    )
    ask(lambda: peak_bytes, *example, mode="flash").gives(
        51_658_522_624, {"mode is ignored": 116_083_032_064}, also=[51_683_688_448], remark=kept_too
    )
    ask(lambda: peak_bytes, *example, mode="full").gives(
        27_029_569_536,
        {
            "the rebuilt layer is missing": 25_888_718_848,
            "the rebuilt layer carries the attention core": 29_713_924_096,
            "a rebuilt layer is counted for each of the L layers": 53_269_135_360,
            "the layers' inputs are missing": 25_418_956_800,
        },
        also=[27_030_618_112],
        remark=kept_too,
    )
    ask(lambda: peak_bytes, 960, 2, 8, 1, 16, 2, 32, mode="no such mode").is_refused()
    ### BEGIN HIDDEN TESTS
    from random import Random

    rng = Random(f"{CHECK_SEED}/peak_bytes_modes")
    asked = [("baseline", 2), ("flash", rng.randint(3, 90)), ("selective", rng.randint(3, 90))]
    asked += [("full", rng.randint(3, 30)), ("full", rng.randint(40, 90))]  # best_k is 1, and then 2
    cases = []
    for mode, L in asked:
        small = mode == "baseline"
        heads = 2 if small else rng.randint(3, 64)
        h = heads * (8 if small else 64)
        # As many parameters as such a model has: nothing that may be forgotten is less than a millionth of the whole.
        case = dict(psi=12 * L * h * h + rng.randint(0, 99), L=L, s=8 if small else rng.randint(256, 8000))
        case |= dict(b=3 if small else rng.randint(1, 17), h=h, a=heads)
        case |= dict(V=rng.randint(30, 99) if small else rng.randint(1000, 200_000), mode=mode)
        cases.append(case)
    for case in [*cases, cases[0]]:  # and once more what was asked before
        right, mode = oracle_peak(**case), case["mode"]
        L, s, b, heads = case["L"], case["s"], case["b"], case["a"]
        rows = s * b * case["h"]
        variants = (
            [oracle_peak(**case, lse=1), oracle_peak(**case, lse=1, lse_rebuilt=1)] if mode in ("flash", "full") else []
        )
        probe(lambda: peak_bytes, *list(case.values())[:7], mode=mode).gives(
            right,
            {
                "the model states are missing": right - 16 * case["psi"],
                "the logits are missing": right - 4 * s * b * case["V"],
                "the logits are counted at 2 bytes (the loss is computed in fp32)": right - 2 * s * b * case["V"],
                "not every layer keeps its input: best_k is taken instead of k = 1": right
                + (min(L / k * 2 + k * 34 for k in range(2, L + 1)) - 2 * L - 34) * rows * (mode == "full"),
                "the rebuilt layer is missing": right - 34 * rows * (mode == "full"),
                "the rebuilt layer is added although nothing is rebuilt": right + 34 * rows * (mode != "full"),
                "the rebuilt layer carries the attention core": right + 5 * heads * s * s * b * (mode == "full"),
                "a rebuilt layer is counted for each of the L layers": right + 34 * rows * (L - 1) * (mode == "full"),
                "mode is ignored": oracle_peak(**case | {"mode": "baseline"}),
                "the attention core is still in it": right + 5 * L * heads * s * s * b,
                "the log-sum-exp is in it (selective recomputation keeps none)": right + 4 * L * heads * s * b,
                "one layer is counted instead of L": oracle_peak(**case | {"L": 1}),
            },
            also=variants,
            remark=kept_too,
        )
    unknown = rng.choice(("bogus-mode", "not-a-mode", "nonesuch", "???"))
    probe(lambda: peak_bytes, *list(cases[0].values())[:7], mode=unknown).is_refused()
    ### END HIDDEN TESTS


# %% remarks_peak_bytes
show_remarks()


# %% points=3
def check_peak_bytes_parallel():
    example = (1_311_528_960, 24, 2048, 8, 2048, 16, 50257)
    ask(lambda: peak_bytes, *example, mode="selective", zero=2, n_gpus=8).gives(
        35_592_292_864,
        {
            "zero is ignored": 51_658_522_624,
            "only the optimizer is divided (that is stage 1)": 37_887_468_544,
            "everything is divided (that is stage 3), or only the weights are counted": 33_297_117_184,
            "the activations are divided among the data-parallel GPUs": 11_634_428_416,
            "the activations and logits are divided among the data-parallel GPUs": 8_752_491_008,
        },
    )
    ask(lambda: peak_bytes, *example, mode="selective", zero=1, n_gpus=6, t=2).gives(
        20_583_145_472,
        {
            "t is ignored": 38_543_233_024,
            "the optimizer is divided by n_gpus instead of n_gpus / t": 19_271_616_512,
            "stage 1 divides the gradients too": 19_708_792_832,
            "the logits are not divided by t": 22_229_966_848,
            "the activations are not divided by t": 34_273_353_728,
            "the model states are not divided by t": 25_829_261_312,
        },
    )
    ask(lambda: peak_bytes, *example, mode="selective", offload=True).gives(
        35_920_175_104,
        {"offload is ignored": 51_658_522_624, "all model states are offloaded": 30_674_059_264},
    )
    ### BEGIN HIDDEN TESTS
    from random import Random

    rng = Random(f"{CHECK_SEED}/peak_bytes_parallel")
    for zero in (0, 1, 2, 3):
        for n_gpus, t, offload in (
            (rng.choice((3, 12)), 1, False),
            (8, 4, False),
            (rng.choice((6, 16)), 2, True),
            (1, 1, True),
        ):
            heads = 4 * rng.randint(1, 16)
            mode = rng.choice(("baseline", "selective"))
            L, h = 2 * rng.randint(1, 40), 64 * heads
            case = dict(psi=48 * (L * h * h // 4 + rng.randint(0, 99)), L=L, s=4 * rng.randint(64, 2000))
            case |= dict(b=rng.randint(1, 17), h=h, a=heads, V=4 * rng.randint(250, 50_000))
            plan = dict(mode=mode, zero=zero, n_gpus=n_gpus, t=t, offload=offload)
            right = oracle_peak(**case, **plan)
            alone = oracle_peak(**case, mode=mode) - 16 * case["psi"]
            states, logits = right - alone / t, 4 * case["s"] * case["b"] * case["V"]
            probe(lambda: peak_bytes, *list(case.values()), **plan).gives(
                right,
                {
                    "zero is ignored": oracle_peak(**case, **plan | {"zero": 0}),
                    "offload is ignored": oracle_peak(**case, **plan | {"offload": False}),
                    "t is ignored": oracle_peak(**case, **plan | {"t": 1}),
                    "stage 1 divides the gradients too, or stage 2 does not": oracle_peak(
                        **case, **plan | {"zero": {1: 2, 2: 1}.get(zero, zero)}
                    ),
                    "stage 2 divides the weights too, or stage 3 does not": oracle_peak(
                        **case, **plan | {"zero": {2: 3, 3: 2}.get(zero, zero)}
                    ),
                    "the optimizer is divided by n_gpus instead of n_gpus / t": oracle_peak(**case, **plan | {"t": 1})
                    / t,
                    "the activations and logits are not divided by t": right + alone - alone / t,
                    "the logits are not divided by t": right + logits - logits / t,
                    "the activations are not divided by t": right + (alone - logits) * (1 - 1 / t),
                    "the model states are not divided by t": right + states * (t - 1),
                    "the activations are divided among the data-parallel GPUs": states + alone / n_gpus,
                    "all model states are offloaded": alone / t if offload else -1,
                    "offload takes 12 bytes although the optimizer is divided": right
                    + (12 * case["psi"] / (n_gpus // t) - 12 * case["psi"]) / t * offload * (zero > 0),
                },
            )
    probe(lambda: peak_bytes, *list(case.values()), **plan).gives(right)  # once more what was asked before
    ### END HIDDEN TESTS


# %% reasoning [markdown]
# Three sums, divided by $t$ at the end, since tensor parallelism with sequence parallelism cuts all of them.
#
# 1. **Model states.** Write the 16 bytes as three parts: weights 2, gradients 2, optimizer 12. Each ZeRO stage shards one
#    part more over the $d$ data-parallel copies: stage 1 the optimizer, stage 2 the gradients too, stage 3 the weights
#    too. So each part is divided by $d$ *from its stage on*, and `offload` strikes the optimizer's part out.
# 2. **Activations.** $L$ layers by `mode`. Under `"full"` the $L$ inputs stay, and at any moment one layer is rebuilt.
# 3. **Logits.** $4sbV$.
#
# $d$ is `n_gpus` $/\, t$, not `n_gpus`: the $t$ GPUs of a group hold parts of one copy. With stage 3 both cuts together are
# $16\Psi/(dt) = 16\Psi/\text{n\_gpus}$, a good test. Data parallelism divides neither activations nor logits:
# `b` is already what *one* GPU is given.
#
# For the 1.3B example: 16 bytes a parameter are [[example.states / GB:.1f]] GB. Without a fix the 24 layers are
# [[example.activations() / GB:.1f]] and the logits [[example.logits / GB:.1f]], together
# [[example.total() / GB:.1f]] GB. FlashAttention leaves [[example.activations("flash") / GB:.1f]] of the layers:
# [[example.total("flash") / GB:.1f]] GB. Under `"full"` 24 inputs and one layer are
# [[example.activations("full") / GB:.1f]]: [[example.total("full") / GB:.1f]] GB.

# %% [markdown]
# ### The ladder
#
# When it does not fit, try the fixes from the cheapest to the dearest, each **on top of** those before it, and stop at the
# first that fits. `cheapest_fix` returns the pair `(name, peak)`: the name of that rung and its predicted peak per GPU.
# It fits where the peak is at most $(1 - \text{free}) \cdot$ `gpu_bytes`; the free part is for temporary buffers and
# fragmentation.
#
# | rung | name | what changes | why it stands there |
# |---|---|---|---|
# | 1 | `"nothing"` | nothing | |
# | 2 | `"flash"` | mode `"flash"` | costs no time |
# | 3 | `"zero1"`, then `"zero2"` | ZeRO stage; only where `n_gpus > 1` | no more communication than plain data parallelism |
# | 4 | `"micro-batch"` | $b$ halved (whole division), again and again, until it fits or is 1 | accumulation; nearly free |
# | 5 | `"checkpoint"` and `"zero3"` | mode `"full"`; ZeRO stage 3, only where `n_gpus > 1` | a third more compute, or half more communication |
# | 6 | `"tensor"` | $t = 2$, then 4, then 8; never above `n_gpus`, only a divisor of it | communication in every layer |
# | 7 | `"offload"` | optimizer states to the CPU, with the largest $t$ tried | the slow link to the CPU |
#
# On rung 5 the resource that is *not* scarce is spent first: where the step is `limited_by="compute"`, `"zero3"` comes before
# `"checkpoint"`; where it is limited by `"communication"`, `"checkpoint"` comes first. Any other `limited_by` raises
# `ValueError`. `"offload"` is always the last rung, also on one GPU. Where even that does not fit, return `None` as the name,
# with the last rung's peak.
#
# The lesson's ladder also names selective recomputation beside FlashAttention and pipeline parallelism after tensor
# parallelism. Both are left out here, so that there is one right answer.


# %%
@accepts(
    psi=whole(1, floats=True),
    L=whole(1),
    s=whole(1),
    b=whole(1),
    h=whole(1),
    a=whole(1),
    V=whole(1),
    gpu_bytes=positive(),
    n_gpus=whole(1),
    limited_by=name(),
    free=share(zero=True),
)
def cheapest_fix(
    psi: int,
    L: int,
    s: int,
    b: int,
    h: int,
    a: int,
    V: int,
    gpu_bytes: float,
    n_gpus: int = 1,
    limited_by: str = "compute",
    free: float = 0.15,
) -> tuple:
    """Return (name, peak): the first rung of the ladder that fits, or None, and the predicted peak per GPU in bytes.

    gpu_bytes: memory of one GPU. limited_by: "compute" or "communication". free: the part of the memory kept free.
    The other arguments are those of peak_bytes.
    """
    ### BEGIN SOLUTION
    if limited_by not in ("compute", "communication"):
        raise ValueError(f"limited_by must be 'compute' or 'communication', not {limited_by!r}")
    now = {"b": b}

    def rungs():
        yield "nothing", {}
        yield "flash", {"mode": "flash"}
        if n_gpus > 1:
            yield "zero1", {"zero": 1}
            yield "zero2", {"zero": 2}
        while now["b"] > 1:
            yield "micro-batch", {"b": now["b"] // 2}
        compute, communication = ("checkpoint", {"mode": "full"}), ("zero3", {"zero": 3})
        both = [communication, compute] if limited_by == "compute" else [compute, communication]
        yield from both if n_gpus > 1 else [compute]
        for degree in (2, 4, 8):
            if n_gpus % degree == 0:  # and so it is not above n_gpus either
                yield "tensor", {"t": degree}
        yield "offload", {"offload": True}

    for rung, change in rungs():
        now |= change
        settings = {key: value for key, value in now.items() if key != "b"}
        peak = peak_bytes(psi, L, s, now["b"], h, a, V, n_gpus=n_gpus, **settings)
        if peak <= (1 - free) * gpu_bytes:
            return rung, peak
    return None, peak
    ### END SOLUTION


# %% hidden
def oracle_ladder(model, n_gpus, limited_by="compute", halvings=99, left_out="", **tensors):
    """List every rung with its whole plan and its peak, first to last: [(name, plan, peak)]."""
    plans = [("nothing", dict(mode="baseline")), ("flash", dict(mode="flash"))]
    plans += [("zero1", dict(zero=1)), ("zero2", dict(zero=2))] * (n_gpus > 1)
    smaller = model["b"]
    while smaller // 2 and halvings:
        smaller, halvings = smaller // 2, halvings - 1
        plans.append(("micro-batch", dict(b=smaller)))
    fifth = [("checkpoint", dict(mode="full"))] + [("zero3", dict(zero=3))] * (n_gpus > 1)
    plans += fifth[:: -1 if limited_by == "compute" else 1]
    plans += [("tensor", dict(t=degree)) for degree in (2, 4, 8) if degree <= n_gpus and not n_gpus % degree]
    plans += [("offload", dict(offload=True))]
    listed, plan = [], dict(model, n_gpus=n_gpus)
    for rung, change in plans:
        if rung == left_out:
            continue
        plan = plan | change
        listed.append((rung, plan, oracle_peak(**plan, **tensors)))
    return listed


# %% hidden
def oracle_case(
    rng, target, n_gpus, limited_by="compute", tight=None, batches=(1, 2, 3, 5, 6, 7, 8, 11, 13), which=None
):
    """Draw a model and a GPU on which the ladder stops at `target`: a name, "tensor2" to "tensor8", or None.

    Returns what to ask and what is right: (arguments, options, right, also, mistakes). No budget lies between a peak
    with and without the log-sum-exp. `tight`: the part kept free, where the
    rung before would fit with less. `which`: of several
    rungs of that name the first (0) or the last (-1), not any.
    """

    def first_that_fits(listed, budget):
        return next(((rung, peak) for rung, _, peak in listed if peak <= budget), (None, listed[-1][2]))

    degree = int(target[-1]) if target and target.startswith("tensor") else 0
    while True:
        heads = 2 * rng.randint(1, 32)
        model = dict(psi=48 * int(10 ** (4 + 4.5 * rng.random())), L=rng.randint(2, 90), s=8 * rng.randint(4, 900))
        model |= dict(b=rng.choice(batches), h=64 * heads, a=heads, V=8 * rng.randint(9, 20_000))
        ladder = oracle_ladder(model, n_gpus, limited_by)
        names = [f"tensor{plan['t']}" if degree and rung == "tensor" else rung for rung, plan, _ in ladder]
        if target and target not in names:
            continue
        stops = [i for i, rung in enumerate(names) if rung == target] if target else [len(ladder)]
        stop = rng.choice(stops) if which is None else stops[which]
        at = min(stop, len(ladder) - 1)
        high = min([peak for *_, peak in ladder[:stop]], default=3 * ladder[0][2])
        if target and ladder[at][2] > high * (1 - 1e-3):
            continue
        kept = [[p for *_, p in oracle_ladder(model, n_gpus, limited_by, lse=1, lse_rebuilt=both)] for both in (0, 1)]
        low = max(ladder[at][2], *[row[at] for row in kept]) if target else high / 3
        if low > high * (1 - 1e-3):
            continue
        free = tight or rng.choice((0.15, 0.1, 0.25, 0.5))
        budget = high * (1 - 1e-4) if tight else low + (high - low) * rng.uniform(0.2, 0.8)
        gpu_bytes = budget / (1 - free)
        right = (ladder[at][0] if target else None, ladder[at][2])
        other = oracle_ladder(model, n_gpus, {"compute": "communication"}.get(limited_by, "compute"))
        alone, before = [], dict(model, n_gpus=n_gpus)
        for rung, plan, _ in ladder:
            changed = {key: value for key, value in plan.items() if before.get(key) != value}
            alone.append((rung, plan, oracle_peak(**dict(model, n_gpus=n_gpus) | changed)))
            before = plan
        mistakes = {
            "free is ignored and 15% is taken": first_that_fits(ladder, 0.85 * gpu_bytes),
            "the last rung is named although it does not fit": (ladder[-1][0], ladder[-1][2]),
            "None is returned as text": ("None", right[1]),
            "no peak is given where nothing fits": (right[0], 0),
            "the peak is that of the rung before": (right[0], ladder[at - 1][2]),
            "the peak is that of the first rung": (right[0], ladder[0][2]),
            "the peak is that of the last rung": (right[0], ladder[-1][2]),
            "the budget is returned as the peak": (right[0], budget),
            "the GPU's memory is returned as the peak": (right[0], gpu_bytes),
            "the free part is ignored": first_that_fits(ladder, gpu_bytes),
            "the free part is added to the GPU instead of taken from it": first_that_fits(
                ladder, (1 + free) * gpu_bytes
            ),
            "limited_by is ignored or taken the wrong way round (or a part of rung 5 is left out)": first_that_fits(
                other, budget
            ),
            "the last rung that fits is returned instead of the first": first_that_fits(ladder[::-1], budget),
            "the rungs are not added on top of each other": first_that_fits(alone, budget),
            "n_gpus does not reach the ladder, or ZeRO is left out": first_that_fits(
                oracle_ladder(model, 1, limited_by), budget
            ),
            "the rebuilt layer is missing": first_that_fits(
                oracle_ladder(model, n_gpus, limited_by, rebuilt=0), budget
            ),
            f"{right[0]} is left out": first_that_fits(
                oracle_ladder(model, n_gpus, limited_by, left_out=right[0]), budget
            ),
        }
        if target == "micro-batch":
            mistakes["the micro-batch is halved only once"] = first_that_fits(
                oracle_ladder(model, n_gpus, limited_by, halvings=1), budget
            )
        options = dict(n_gpus=n_gpus) if n_gpus > 1 else {}
        options |= dict(limited_by=limited_by) if limited_by != "compute" else {}
        options |= dict(free=free) if free != 0.15 else {}
        return [*model.values(), gpu_bytes], options, right, [(right[0], row[at]) for row in kept], mistakes


# %% points=2
def check_cheapest_fix_first_rungs():
    kept_too = "FlashAttention's log-sum-exp is in your peak: that is true of the kernel, and full marks."
    example = (1_311_528_960, 24, 2048, 8, 2048, 16, 50257)
    ask(lambda: cheapest_fix, *example, 192e9).gives(
        ("nothing", 116_083_032_064),
        {
            "a fix is applied although nothing is needed": ("flash", 51_658_522_624),
            "the last rung that fits (or the smallest peak) is returned instead of the first that fits": (
                "offload",
                6_001_754_112,
            ),
        },
    )
    ask(lambda: cheapest_fix, *example, 80e9).gives(
        ("flash", 51_658_522_624),
        {
            "the peak is that of the rung before": ("flash", 116_083_032_064),
            "flash is left out": ("micro-batch", 44_759_105_536),
            "it is not asked whether flash alone fits": ("micro-batch", 36_321_492_992),
        },
        also=[("flash", 51_683_688_448)],
        remark=kept_too,
    )
    ask(lambda: cheapest_fix, 960, 2, 8, 1, 16, 2, 32, 32_000).gives(("nothing", 26_368))
    ask(lambda: cheapest_fix, *example, 40e9, n_gpus=8).gives(
        ("micro-batch", 20_255_263_232),
        {
            "the free part is ignored": ("zero1", 37_887_468_544),
            "a GiB is taken for a GB": ("zero2", 35_592_292_864),
            "ZeRO is left out": ("micro-batch", 28_652_978_176),
            "the rungs are not added on top of each other": ("micro-batch", 32_871_784_448),
        },
        also=[("micro-batch", 20_267_846_144)],
        remark=kept_too,
    )
    ### BEGIN HIDDEN TESTS
    from random import Random

    rng = Random(f"{CHECK_SEED}/cheapest_fix_first_rungs")
    for target, n_gpus, draw in (
        ("nothing", 1, {}),
        ("flash", rng.choice((1, 3)), dict(tight=0.15)),
        ("zero1", 2, dict(tight=0.5)),
        ("zero1", rng.choice((6, 16)), {}),
        ("zero2", rng.choice((3, 12)), dict(tight=0.1)),
        ("zero2", 8, {}),
        ("micro-batch", 1, dict(tight=0.15, batches=(4, 5, 8, 11), which=-1)),  # halved twice or more
        ("micro-batch", 1, dict(batches=(7, 11, 13, 15), which=0)),  # half of it is not whole
        ("micro-batch", rng.choice((3, 6, 12, 16)), {}),
    ):
        arguments, options, right, also, mistakes = oracle_case(rng, target, n_gpus, **draw)
        probe(lambda: cheapest_fix, *arguments, **options).gives(right, mistakes, also=also, remark=kept_too)
        if target == "flash":
            again = arguments, options, right, also
    arguments, options, right, also = again
    probe(lambda: cheapest_fix, *arguments, **options).gives(right, also=also)
    small = dict(psi=480, L=2, s=8, b=2 * rng.randint(1, 4), h=16, a=2, V=8 * rng.randint(4, 9))
    peak = oracle_peak(**small)
    probe(lambda: cheapest_fix, *small.values(), 2 * peak).gives(("nothing", peak))
    # Equality fits: with half of the memory kept free nothing is rounded.
    arguments, _, (_, peak), *_ = oracle_case(rng, "nothing", 1)
    probe(lambda: cheapest_fix, *arguments[:-1], 2 * peak, free=0.5).gives(
        ("nothing", peak),
        lambda got: "a peak that is exactly as large as the budget is refused" if got[0] != "nothing" else None,
    )
    ### END HIDDEN TESTS


# %% points=2
def check_cheapest_fix_last_rungs():
    kept_too = "FlashAttention's log-sum-exp is in your peak: that is true of the kernel, and full marks."
    seven = (6_738_415_616, 32, 4096, 1, 4096, 32, 32000)
    swapped = "limited_by is ignored or taken the wrong way round (or a part of rung 5 is left out)"
    compute, communication = ("zero3", 32_254_730_240), ("checkpoint", 27_437_513_728)
    ask(lambda: cheapest_fix, *seven, 40e9, n_gpus=8).gives(
        compute,
        {
            swapped: communication,
            "the last rung that fits (or the smallest peak) is returned instead of the first that fits": (
                "offload",
                3_640_264_704,
            ),
            "the budget is returned as the peak": ("zero3", 34e9),
        },
        also=[("zero3", 32_271_507_456)],
        remark=kept_too,
    )
    ask(lambda: cheapest_fix, *seven, 40e9, n_gpus=8, limited_by="communication").gives(
        communication,
        {swapped: compute, "the rebuilt layer is missing": ("checkpoint", 26_867_088_384)},
        also=[("checkpoint", 27_438_038_016)],
        remark=kept_too,
    )
    ask(lambda: cheapest_fix, *seven, 16.7e9, n_gpus=8).gives(
        ("tensor", 14_018_945_024),
        {
            "only one degree of tensor parallelism is tried": ("tensor", 13_747_888_128),
            "only t = 2 is tried": ("offload", 4_453_435_392),
            "tensor parallelism is left out": ("offload", 5_537_662_976),
            "the free part is ignored": ("checkpoint", 15_645_286_400),
        },
        also=[("tensor", 14_019_076_096)],
        remark=kept_too,
    )
    ask(lambda: cheapest_fix, *seven, 24e9).gives(
        (None, 29_122_117_632),
        {
            "the last rung is named although it does not fit": ("offload", 29_122_117_632),
            "None is returned as text": ("None", 29_122_117_632),
            "offload is left out": (None, 109_983_105_024),
            "no peak is given where nothing fits": (None, 0),
            "the peak is that of the first rung": (None, 212_491_894_784),
        },
        also=[(None, 29_122_641_920)],
        remark=kept_too,
    )
    ask(lambda: cheapest_fix, *seven, 24e9, limited_by="no such resource").is_refused()
    ### BEGIN HIDDEN TESTS
    from random import Random

    rng = Random(f"{CHECK_SEED}/cheapest_fix_last_rungs")
    for target, n_gpus, limited_by, tight in (
        ("checkpoint", 1, rng.choice(("compute", "communication")), 0.15),
        ("checkpoint", rng.choice((2, 12)), "communication", None),
        ("checkpoint", rng.choice((3, 8)), "compute", None),
        ("zero3", rng.choice((2, 16)), "compute", 0.5),
        ("zero3", rng.choice((6, 8)), "communication", None),
        ("tensor2", rng.choice((2, 6)), "compute", None),
        ("tensor4", rng.choice((12, 16)), "communication", None),
        ("tensor8", 8, "compute", None),
        ("offload", 1, "compute", 0.15),
        ("offload", 3, "communication", None),
        ("offload", rng.choice((6, 12)), "compute", None),
        (None, 1, "communication", None),
        (None, rng.choice((6, 12)), "compute", None),
        (None, 16, "compute", None),
    ):
        arguments, options, right, also, mistakes = oracle_case(rng, target, n_gpus, limited_by, tight)
        probe(lambda: cheapest_fix, *arguments, **options).gives(right, mistakes, also=also, remark=kept_too)
    probe(lambda: cheapest_fix, *arguments, **options).gives(right, also=also)  # once more what was asked before
    arguments, options, *_ = oracle_case(rng, "offload", 1)
    probe(lambda: cheapest_fix, *arguments, **options | {"limited_by": "nonesuch"}).is_refused()
    ### END HIDDEN TESTS


# %% remarks_cheapest_fix
show_remarks()


# %% reasoning [markdown]
# The ladder is a list of rungs, each a *name* and a *change*; a plan collects the changes, since every rung stands on those
# before it. Then the search is four lines: apply the change, ask `peak_bytes`, stop at the first plan that fits.
#
# What keeps it right:
#
# - **The plan is never reset.** On rung 5 the micro-batch is still halved and ZeRO-2 still on.
# - **Rungs that do not exist are not listed**: no ZeRO on one GPU; no $t$ that does not divide `n_gpus` (and so none
#   above it). Halvings are listed while $b > 1$, by whole division: 7, 3, 1.
# - **The order of rung 5** follows what is scarce: with compute scarce the communication of ZeRO-3 is spent first.
# - **Nothing fits**: after the loop the last plan's peak is at hand; the name is `None`.
# - **`limited_by` is checked first**, so that a wrong one is refused whichever rung would have been reached.
#
# A generator of rungs is convenient for the halvings, which depend on what $b$ is by then; a list built beforehand is as good.
#
# The 1.3B example on eight GPUs of 40 GB has a budget of 34 GB. As it is: [[example.total() / GB:.1f]] GB; flash
# [[example.total("flash") / GB:.1f]]; ZeRO-1 [[peak_bytes(example.model.parameters, 24, 2048, 8, 2048, 16, 50257, "flash", 1, 8) / GB:.1f]]; ZeRO-2
# [[peak_bytes(example.model.parameters, 24, 2048, 8, 2048, 16, 50257, "flash", 2, 8) / GB:.1f]], which fits the card but not its budget; with $b = 4$ it is
# [[cheapest_fix(example.model.parameters, 24, 2048, 8, 2048, 16, 50257, 40e9, 8)[1] / GB:.1f]] GB, which does: the answer is `"micro-batch"`.

# %% mistakes [markdown]
# ### What people get wrong about the cheapest fix
#
# - **the rungs are not added on top of each other**: each fix is tried alone. On a large model no single one is enough, and
#   the answer becomes `None` although the ladder would hold.
# - **the free part is ignored**: 80 GB on the data sheet are not 80 GB for tensors. CUDA itself, buffers for communication
#   and fragmentation live in the rest. Notice it on a case that fits the card only just.
# - **the optimizer is divided by n_gpus instead of n_gpus / t**: the two parallelisms are mixed up. Count what one GPU of a
#   tensor-parallel pair holds: half of each matrix, and of *that* its ZeRO share.
# - **the rebuilt layer is missing**: checkpointing is taken for "inputs only". To compute a gradient one layer has to be
#   there in full; at $L = 24$ it is as large as 17 of the 24 inputs.
# - **the activations are divided among the data-parallel GPUs**: ZeRO shards what all copies have in common. Each copy
#   has its own sequences, and so its own activations.
# - **limited_by is ignored or taken the wrong way round (or a part of rung 5 is left out)**: "limited by compute" asks to
#   spare compute, so it is spent *last*.
