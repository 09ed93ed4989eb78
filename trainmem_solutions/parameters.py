"""Exercise 1: the parameters of one transformer layer and of the whole model."""

from trainmem_solutions.arguments import accepts, name, positive, share, true_or_false, whole
from trainmem_solutions.opening import CHECK_SEED, CheckFailed, ask, probe

# %% [markdown]
# ## Exercise 1 · Parameters
#
# Count before you multiply by bytes. Everything is a matrix or a vector, so the count is a sum of products of widths.
#
# With $f = $ `mlp_ratio` $\cdot h$ the width of the MLP, and `n_kv_ratio` the number of key/value heads divided by the
# number of query heads (1 is ordinary attention; in Llama 2 70B eight query heads share one key/value head: 1/8):
#
# | | `style="gpt"` | `style="llama"` |
# |---|---|---|
# | $W_Q$, $W_O$ | $h \times h$ each | $h \times h$ each |
# | $W_K$, $W_V$ | $h \times (\text{n\_kv\_ratio} \cdot h)$ each | the same |
# | MLP | $h \times f$ and $f \times h$ | three matrices of $h \times f$ elements (SwiGLU) |
# | biases | one a matrix, as wide as the matrix's **output** | none |
# | two norms | LayerNorm: a scale and a shift of size $h$ | RMSNorm: a scale of size $h$ |
#
# **A small number to hold on to.** A GPT layer with $h = 2$, everything at its default: attention $4 \cdot 2 \cdot 2$
# weights and $4 \cdot 2$ biases, MLP $2 \cdot 2 \cdot 8$ weights and $8 + 2$ biases, norms $4 \cdot 2$:
# $16 + 8 + 32 + 10 + 8 = 74$, and indeed $12h^2 + 13h = 48 + 26$.
#
# Sources: Vaswani et al. 2017 (the layer); Touvron et al. 2023, section 2 (the Llama layer); Ainslie et al. 2023
# (shared key/value heads).


# %%
@accepts(h=whole(1), mlp_ratio=positive(), n_kv_ratio=share(), style=name())
def params_per_layer(h: int, mlp_ratio: float = 4, n_kv_ratio: float = 1, style: str = "gpt") -> int:
    """Return the number of parameters of one transformer layer.

    h: hidden size. mlp_ratio: width of the MLP / h. n_kv_ratio: key/value heads / query heads.
    style: "gpt" or "llama"; anything else raises ValueError.
    """
    ### BEGIN SOLUTION
    f, kv = round(mlp_ratio * h), round(n_kv_ratio * h)
    attention = 2 * h * h + 2 * h * kv
    if style == "gpt":
        return attention + 2 * h * f + (3 * h + 2 * kv + f) + 4 * h  # matrices, biases, LayerNorms
    if style == "llama":
        return attention + 3 * h * f + 2 * h
    raise ValueError(f"style must be 'gpt' or 'llama', not {style!r}")
    ### END SOLUTION


# %% points=3
def check_params_per_layer_gpt():
    ask(lambda: params_per_layer, 1024).gives(
        12_596_224,
        {
            "the biases and the norms are missing": 12_582_912,
            "the biases are missing": 12_587_008,
            "the norms (or the four biases of the attention) are missing": 12_592_128,
            "the norms have a scale but no shift (or only one norm is counted)": 12_594_176,
            "the biases of the MLP are missing": 12_591_104,
            "a third MLP matrix is counted (that is the Llama layer)": 16_790_528,
            "the MLP is as narrow as the hidden size": 6_301_696,
            "the MLP's first bias is h wide": 12_593_152,
            "^ is taken for a power (Python's is **)": 25_624,
            "^ is taken for a power (Python's is **, and ^ comes after the sums)": 1_026,
        },
    )
    ask(lambda: params_per_layer, 2048).gives(50_358_272)
    ask(lambda: params_per_layer, 2).gives(74)
    ### BEGIN HIDDEN TESTS
    from random import Random

    rng = Random(f"{CHECK_SEED}/params_per_layer_gpt")
    cases = [(8 * rng.randint(1, 4), 4, 1), (512 * rng.randint(3, 9), 4, 1)]
    cases += [(64 * rng.randint(3, 40), rng.choice(ratios), 1) for ratios in ((1.5, 2.75, 3.5), (2, 5, 8))]
    cases += [(64 * rng.randint(3, 40), 4, rng.choice((0.125, 0.25, 0.5)))]
    cases += [(64 * rng.randint(3, 40), rng.choice((2.5, 3, 6)), rng.choice((0.125, 0.25, 0.5))) for _ in "ab"]
    for h, mlp_ratio, n_kv_ratio in [*cases, cases[0]]:  # and once more what was asked before
        wide, shared = int(h * mlp_ratio), int(h * n_kv_ratio)
        matrices = {"query": (h, h), "key": (h, shared), "value": (h, shared), "output": (h, h)}
        matrices |= {"up": (h, wide), "down": (wide, h)}
        weights = {tensor: rows * columns for tensor, (rows, columns) in matrices.items()}
        biases = {tensor: columns for tensor, (_, columns) in matrices.items()}
        norms = 2 * (h + h)
        right = sum(weights.values()) + sum(biases.values()) + norms
        probe(lambda: params_per_layer, h, mlp_ratio=mlp_ratio, n_kv_ratio=n_kv_ratio).gives(
            right,
            {
                "the biases are missing": right - sum(biases.values()),
                "the biases and the norms are missing": sum(weights.values()),
                "the norms (or the four biases of the attention) are missing": right - norms,
                "the biases of the attention are missing": right - 2 * h - 2 * shared,
                "the biases of the MLP are missing": right - wide - h,
                "the norms have a scale but no shift (or only one norm is counted)": right - 2 * h,
                "mlp_ratio is cut to a whole number": right - (wide - int(mlp_ratio) * h) * (2 * h + 1),
                "the MLP is as narrow as the hidden size": right - (wide - h) * (2 * h + 1),
                "mlp_ratio is ignored": right - (wide - 4 * h) * (2 * h + 1),
                "n_kv_ratio is ignored": right + 2 * (h - shared) * (h + 1),
                "the key and value biases are as wide as the query's": right + 2 * (h - shared),
                "only the key matrix is narrowed, not the value matrix": right + (h - shared) * (h + 1),
                "the query matrix is narrowed as well": right - (h - shared) * (h + 1),
                "the output matrix is narrowed as well": right - (h - shared) * h,
                "a third MLP matrix is counted (that is the Llama layer)": right + h * wide,
                "the MLP's first bias is h wide": right + h - wide,
            },
        )
    ### END HIDDEN TESTS


# %% points=2
def check_params_per_layer_llama():
    ask(lambda: params_per_layer, 4096, mlp_ratio=2.6875, style="llama").gives(
        202_383_360,
        {
            "the gate matrix is missing (the MLP has three matrices here)": 157_294_592,
            "biases are counted (a Llama layer has none)": 202_425_856,
            "the norms have a shift (RMSNorm has a scale only)": 202_391_552,
            "the norms are missing": 202_375_168,
            "only one of the two norms is counted": 202_379_264,
            "mlp_ratio is cut to a whole number": 167_780_352,
            "mlp_ratio is ignored": 268_443_648,
            "the layer is the GPT layer": 157_334_272,
        },
    )
    ask(lambda: params_per_layer, 8192, mlp_ratio=3.5, n_kv_ratio=1 / 8, style="llama").gives(
        855_654_400,
        {
            "n_kv_ratio is ignored": 973_094_912,
            "n_kv_ratio is inverted": 1_912_619_008,
            "only the key matrix is narrowed, not the value matrix": 914_374_656,
            "the query matrix (or the output matrix) is narrowed as well": 796_934_144,
        },
    )
    ask(lambda: params_per_layer, 8, style="llama").gives(1_040)
    ### BEGIN HIDDEN TESTS
    from random import Random

    rng = Random(f"{CHECK_SEED}/params_per_layer_llama")
    sizes = [(8 * rng.randint(1, 5), 2.5, 1), (64 * rng.randint(3, 60), 4, 1)]
    sizes += [
        (64 * rng.randint(3, 60), rng.choice((1.25, 2.75, 3.25)), rng.choice((1 / 8, 1 / 4, 1 / 2))) for _ in "abc"
    ]
    for h, mlp_ratio, n_kv_ratio in [*sizes, sizes[0]]:
        wide, shared = int(h * mlp_ratio), int(h * n_kv_ratio)
        shapes = {"query": (h, h), "key": (h, shared), "value": (h, shared), "output": (h, h)}
        shapes |= {"gate": (h, wide), "up": (h, wide), "down": (wide, h), "norm 1": (h, 1), "norm 2": (h, 1)}
        right = sum(rows * columns for rows, columns in shapes.values())
        probe(lambda: params_per_layer, h, mlp_ratio=mlp_ratio, n_kv_ratio=n_kv_ratio, style="llama").gives(
            right,
            {
                "the gate matrix is missing (the MLP has three matrices here)": right - h * wide,
                "the norms have a shift (RMSNorm has a scale only)": right + 2 * h,
                "the norms are missing": right - 2 * h,
                "only one of the two norms is counted": right - h,
                "mlp_ratio is ignored": right + 3 * h * (4 * h - wide),
                "mlp_ratio is taken as 8/3 whatever is asked": right + 8 * h * h - 3 * h * wide,
                "n_kv_ratio is ignored": right + 2 * h * (h - shared),
                "only the key matrix is narrowed, not the value matrix": right + h * (h - shared),
                "the query matrix (or the output matrix) is narrowed as well": right - h * (h - shared),
                "n_kv_ratio is inverted": right + 2 * h * (h * h // shared - shared),
                "mlp_ratio is cut to a whole number": right - 3 * h * (wide - int(mlp_ratio) * h),
                "biases are counted (a Llama layer has none)": right + 2 * h + 2 * shared + 2 * wide + h,
                "the layer is the GPT layer": right - h * wide + 3 * h + 2 * shared + wide + 2 * h,
            },
        )
    ### END HIDDEN TESTS


# %% points=1
def check_params_per_layer_style():
    # Either layer will do for the value: a wrong formula has cost its own check already.
    try:
        ask(lambda: params_per_layer, 16).gives(3_280)
    except CheckFailed:
        ask(lambda: params_per_layer, 16, style="llama").gives(4_128)
    ask(lambda: params_per_layer, 16, style="no such layer").is_refused()
    ### BEGIN HIDDEN TESTS
    from random import Random

    rng = Random(f"{CHECK_SEED}/params_per_layer_style")
    h = 16 * rng.randint(2, 40)
    try:
        probe(lambda: params_per_layer, h).gives(12 * h * h + 13 * h)
    except CheckFailed:
        probe(lambda: params_per_layer, h, style="llama").gives(16 * h * h + 2 * h)
    probe(lambda: params_per_layer, h, style=rng.choice(("bogus-style", "not-a-layer", "nonesuch", "???"))).is_refused()
    ### END HIDDEN TESTS


# %% reasoning [markdown]
# Write the layer as a list of matrices, rows times columns, and add. With $q$ the width of the keys, `n_kv_ratio` $\cdot h$:
#
# | | weights | biases |
# |---|---|---|
# | $W_Q$, $W_O$ | $2h^2$ | $2h$ |
# | $W_K$, $W_V$ | $2hq$ | $2q$ |
# | MLP, GPT | $2hf$ | $f + h$ |
# | two LayerNorms | $4h$ | |
#
# A bias is added to what a matrix gives, so it is as wide as the matrix's output: $f$ after the first matrix of the MLP,
# $h$ after the second. With $q = h$ and $f = 4h$ the weights are $4h^2 + 8h^2$ and all the rest is $13h$: for
# $h = 1024$ that is [[12 * 1024**2:,]] + [[13 * 1024:,]] = [[params_per_layer(1024):,]].
#
# The Llama layer has no biases and two scales, so $2h^2 + 2hq + 3hf + 2h$. Llama 2 70B has $q = h/8$ and $f = 3.5h$:
# $2 + 0.25 + 10.5 = [[params_per_layer(8192, 3.5, 1 / 8, "llama") / 8192**2:.2f]]\,h^2$ where the shorthand says 12, and that they are so close is an accident: a narrower attention
# pays for a wider MLP.
#
# Why `round`: `mlp_ratio * h` is a float, and a width is a whole number. `int` would do here too; it would cut
# 11007.999… to 11007 where a ratio is not exact in binary.

# %% [markdown]
# ### The whole model
#
# `model_params` adds up: $L$ layers; the token embedding $V \times h$; a second $V \times h$ matrix for the output where
# `tied` is `False`; `positions` learned position vectors of size $h$; and one final norm, of the same kind as the layers'.
#
# GPT-2's smallest model is $L = 12$, $h = 768$, $V = 50257$ with 1,024 learned positions and tied embeddings:
# 124,439,808 parameters, of which the embeddings are almost a third. The usual shorthand $12Lh^2$ gives 84.9 million.


# %%
@accepts(
    L=whole(1),
    h=whole(1),
    V=whole(1),
    mlp_ratio=positive(),
    n_kv_ratio=share(),
    style=name(),
    tied=true_or_false(),
    positions=whole(0),
)
def model_params(
    L: int,
    h: int,
    V: int,
    mlp_ratio: float = 4,
    n_kv_ratio: float = 1,
    style: str = "gpt",
    tied: bool = True,
    positions: int = 0,
) -> int:
    """Return the number of parameters of a model of L layers.

    V: vocabulary. tied: the output layer shares the token embedding. positions: learned position vectors.
    The other arguments are those of params_per_layer.
    """
    ### BEGIN SOLUTION
    layers = L * params_per_layer(h, mlp_ratio, n_kv_ratio, style)
    embeddings = (V * (1 if tied else 2) + positions) * h
    final_norm = 2 * h if style == "gpt" else h
    return layers + embeddings + final_norm
    ### END SOLUTION


# %% points=2
def check_model_params_gpt():
    ask(lambda: model_params, 12, 768, 50257, positions=1024).gives(
        124_439_808,
        {
            "the final norm is missing": 124_438_272,
            "the final norm has a scale but no shift": 124_439_040,
            "the learned positions are missing": 123_653_376,
            "the token embedding is missing": 85_842_432,
            "the output matrix is counted although it shares the embedding": 163_037_184,
            "only the layers are counted": 85_054_464,
        },
    )
    ask(lambda: model_params, 24, 2048, 50257).gives(1_311_528_960)
    ### BEGIN HIDDEN TESTS
    from random import Random

    rng = Random(f"{CHECK_SEED}/model_params_gpt")
    models = [(3, 8, 11, 4, 1, True, 0)]
    for mlp_ratio, n_kv_ratio, tied, positions in (
        (4, 1, True, 0),
        (4, 1, False, rng.randint(9, 4096)),
        (2.5, 1 / 4, True, rng.randint(9, 999)),
        (3, 1 / 2, False, 0),
    ):
        # No larger, so that a vector of size h is still more than a millionth of the whole.
        L, h, V = rng.randint(2, 30), 64 * rng.randint(2, 16), rng.randint(1000, 60_000)
        models.append((L, h, V, mlp_ratio, n_kv_ratio, tied, positions))
    for L, h, V, mlp_ratio, n_kv_ratio, tied, positions in [*models, models[0]]:
        wide, shared = int(h * mlp_ratio), int(h * n_kv_ratio)

        def layer_of(wide, shared):
            outputs = [(h, h), (h, shared), (h, shared), (h, h), (h, wide), (wide, h)]
            return sum(rows * columns + columns for rows, columns in outputs) + 2 * (h + h)

        layer = layer_of(wide, shared)
        tables = [V * h, positions * h] + [V * h] * (not tied)
        right = sum([layer] * L) + sum(tables) + (h + h)
        probe(
            lambda: model_params, L, h, V, mlp_ratio=mlp_ratio, n_kv_ratio=n_kv_ratio, tied=tied, positions=positions
        ).gives(
            right,
            {
                "the final norm is missing": right - 2 * h,
                "the final norm has a scale but no shift": right - h,
                "the learned positions are missing": right - positions * h,
                "positions is added without the hidden size": right - positions * h + positions,
                "the output matrix is counted although it shares the embedding": right + V * h * tied,
                f"the {'token embedding' if tied else 'untied output matrix (or the token embedding)'} is missing": right
                - V * h,
                "only the layers are counted": layer * L,
                "the embedding is counted once a layer": right + (L - 1) * V * h,
                "the final norm is counted once a layer": right + (L - 1) * 2 * h,
                "mlp_ratio and n_kv_ratio do not reach params_per_layer": right + L * (layer_of(4 * h, h) - layer),
                "mlp_ratio does not reach params_per_layer": right + L * (layer_of(4 * h, shared) - layer),
                "n_kv_ratio does not reach params_per_layer": right + L * (layer_of(wide, h) - layer),
            },
        )
    ### END HIDDEN TESTS


# %% points=2
def check_model_params_llama():
    ask(lambda: model_params, 3, 16, 100, style="llama", tied=False).gives(
        15_600,
        {
            "the untied output matrix (or the token embedding) is missing": 14_000,
            "the final norm is LayerNorm's, with a shift": 15_616,
            "the final norm is missing": 15_584,
            "the final norm is counted once a layer": 15_632,
            "only the layers are counted": 12_384,
            "style does not reach params_per_layer": 13_056,
            "style is ignored": 13_072,
        },
    )
    ask(lambda: model_params, 32, 4096, 32000, mlp_ratio=2.6875, style="llama", tied=False).gives(
        6_738_415_616,
        {"mlp_ratio does not reach params_per_layer": 8_852_344_832},
    )
    ask(lambda: model_params, 80, 8192, 32000, mlp_ratio=3.5, n_kv_ratio=1 / 8, style="llama", tied=False).gives(
        68_976_648_192, {"n_kv_ratio does not reach params_per_layer": 78_371_889_152}
    )
    ask(lambda: model_params, 2, 16, 32, style="no such layer").is_refused()
    ### BEGIN HIDDEN TESTS
    from random import Random

    rng = Random(f"{CHECK_SEED}/model_params_llama")
    models = [(3, 8, 13, 2.5, 1 / 2, True, 0)]
    for tied, positions in ((True, 0), (False, 0), (True, rng.randint(9, 4096)), (False, rng.randint(9, 4096))):
        ratios = rng.choice((2.75, 3.5, 4)), rng.choice((1, 1 / 2, 1 / 4, 1 / 8))
        L, h, V = rng.randint(2, 20), 64 * rng.randint(2, 16), rng.randint(1000, 60_000)
        models.append((L, h, V, *ratios, tied, positions))
    for L, h, V, mlp_ratio, n_kv_ratio, tied, positions in [*models, models[0]]:
        wide, shared = int(h * mlp_ratio), int(h * n_kv_ratio)

        def blocks(wide, shared):
            return [(h, h), (h, shared), (h, shared), (h, h), (h, wide), (h, wide), (wide, h), (1, h), (1, h)]

        def elements(matrices):
            return sum(rows * columns for rows, columns in matrices)

        everything = blocks(wide, shared) * L + [(V, h), (positions, h), (1, h)] + [(V, h)] * (not tied)
        layer, right = elements(blocks(wide, shared)), elements(everything)
        probe(
            lambda: model_params,
            L,
            h,
            V,
            mlp_ratio=mlp_ratio,
            n_kv_ratio=n_kv_ratio,
            style="llama",
            tied=tied,
            positions=positions,
        ).gives(
            right,
            {
                "the final norm is LayerNorm's, with a shift": right + h,
                "the final norm is missing": right - h,
                "the final norm is counted once a layer": right + (L - 1) * h,
                "the learned positions are missing": right - positions * h,
                "positions is added without the hidden size": right - positions * h + positions,
                "the output matrix is counted although it shares the embedding": right + V * h * tied,
                f"the {'token embedding' if tied else 'untied output matrix (or the token embedding)'} is missing": right
                - V * h,
                "only the layers are counted": layer * L,
                "mlp_ratio and n_kv_ratio do not reach params_per_layer": right
                + L * (elements(blocks(4 * h, h)) - layer),
                "mlp_ratio does not reach params_per_layer": right + L * (elements(blocks(4 * h, shared)) - layer),
                "n_kv_ratio does not reach params_per_layer": right + L * (elements(blocks(wide, h)) - layer),
            },
        )
    ### END HIDDEN TESTS


# %% reasoning [markdown]
# A model is a row of layers between a table that turns words into vectors and one that turns vectors into scores.
#
# 1. $L$ layers, each as above. Every argument that the layer knows has to be handed on.
# 2. The token table, $V \times h$. Where the output shares it (`tied`), it is there once, else twice.
# 3. Learned positions, one vector of $h$ for each. Rotary positions are computed, not learned: `positions=0`.
# 4. One norm before the output, of the layers' kind: $2h$ with a shift, $h$ without.
#
# GPT-2's smallest: 12 layers of [[params_per_layer(768):,]], a table of [[50257 * 768:,]], positions of
# [[1024 * 768:,]], a norm of [[2 * 768:,]]: [[model_params(12, 768, 50257, positions=1024):,]]. An unknown `style` needs no
# line of its own, since `params_per_layer` refuses it.

# %% mistakes [markdown]
# ### What people get wrong about parameters
#
# - **the biases are missing**: they are a thousandth of the layer, so the paper's $12h^2$ looks complete. What you count is
#   then no longer what a framework reports, and a comparison with it tells you nothing about larger mistakes. Notice it on a
#   tiny layer: at $h = 2$ the biases and norms are more than a third of all.
# - **the MLP's first bias is h wide**: a bias is taken for something as wide as the model. It follows the *output* of its
#   matrix. Notice it by drawing the shape of $xW + b$.
# - **the norms have a scale but no shift (or only one norm is counted)**: RMSNorm, which has become usual, has no shift;
#   LayerNorm has. Ask which norm it is before you count it.
# - **mlp_ratio is cut to a whole number**: `int(mlp_ratio) * h` instead of `int(mlp_ratio * h)`. At the default 4 nobody
#   sees it; Llama's 2.6875 loses a quarter of the MLP. Test with a ratio that is not whole.
# - **n_kv_ratio does not reach params_per_layer**: defaults hide what is not handed on. Notice it by calling the model with
#   every argument away from its default.
