"""The figures' numbers, worked out a second time from the formulas as they stand on paper."""

import re

LLAMA_7B = 6_738_415_616
EXAMPLE = 1_311_528_960
GPT2_124M = 124_439_808


def agrees(words, value):
    """Whether a number as it is written on the page is this value, rounded as the figures round."""
    shown = float(words.replace(",", ""))
    places = 6 if abs(value) < 0.00995 else 3 if abs(value) < 0.9995 else 2 if abs(value) < 9.995 else 1
    return abs(shown - value) <= 0.5001 * 10**-places


def found(pattern, text):
    """The numbers that the groups of a pattern find in a text; they have to be there."""
    match = re.search(pattern, text)
    assert match, f"{pattern!r} is not in {text!r}"
    return match.groups()


def held_by_layers(L, c, A, k=None):
    """Exercise 4 with a stack: activation bytes after each event."""
    stack, levels = [], []
    if k is None:
        for _ in range(L):
            stack.append(A)
            levels.append(sum(stack))
        while stack:
            stack.pop()
            levels.append(sum(stack))
        return levels
    checkpoints = []
    for layer in range(L):
        if layer % k == 0:
            checkpoints.append(layer)
        levels.append(c * len(checkpoints))
    end = L
    while checkpoints:
        start = checkpoints[-1]
        for _ in range(start, end):
            stack.append(A)
            levels.append(c * len(checkpoints) + sum(stack))
        for _ in range(start, end):
            stack.pop()
            if not stack:
                checkpoints.pop()
            levels.append(c * len(checkpoints) + sum(stack))
        end = start
    return levels


def equal_units(psi, L, s, b, h, a, V):
    """The three peaks of a calculator whose gradients come in L + 2 equal units: none, selective, full."""
    sbh, unit = s * b * h, 2 * psi / (L + 2)
    core = 5 * a * s * s * b
    return (
        14 * psi + L * (34 * sbh + core) + 8 * s * b * V,
        14 * psi + 2 * unit + L * 34 * sbh + core,
        16 * psi - unit + 34 * sbh + core,
    )


def layer_parameters(style, h, f, kv_share):
    """Parameters of a layer: matrices, then biases and norms."""
    kv = round(h * kv_share)
    attention = h * h + 2 * h * kv + h * h
    if style == "llama":
        return attention + 3 * h * f + 2 * h
    return attention + 2 * h * f + (h + kv + kv + h + f + h) + 4 * h


def one_gpu(psi, L, s, b, h, a, V, mode="baseline", zero=0, n_gpus=1, t=1, offload=False):
    """Exercise 5's parts of one GPU, in bytes."""
    d = n_gpus // t
    shards = [d if zero >= stage else 1 for stage in (3, 2, 1)]
    weights, gradients, optimizer = (size * psi / shard / t for size, shard in zip((2, 2, 12), shards, strict=True))
    per_layer = {"baseline": 34 * s * b * h + 5 * a * s * s * b, "flash": 34 * s * b * h, "full": 2 * s * b * h}
    activations = (L * per_layer[mode] + (34 * s * b * h if mode == "full" else 0)) / t
    return {
        "weights": weights,
        "gradients": gradients,
        "optimizer": 0 if offload else optimizer,
        "activations": activations,
        "logits": 4 * s * b * V / t,
    }


def climb(psi, L, s, b, h, a, V, gpu_bytes, n_gpus, limited_by="compute"):
    """The rungs of exercise 5 as (name, peak), up to the first that fits."""
    now = {"b": b}
    listed = [("nothing", {}), ("flash", {"mode": "flash"})]
    if n_gpus > 1:
        listed += [("zero1", {"zero": 1}), ("zero2", {"zero": 2})]
    while b > 1:
        b //= 2
        listed.append(("micro-batch", {"b": b}))
    compute = [("zero3", {"zero": 3})] * (n_gpus > 1)
    listed += (
        [*compute, ("checkpoint", {"mode": "full"})]
        if limited_by == "compute"
        else ([("checkpoint", {"mode": "full"}), *compute])
    )
    listed += [("tensor", {"t": t}) for t in (2, 4, 8) if t <= n_gpus and n_gpus % t == 0]
    listed.append(("offload", {"offload": True}))
    rungs = []
    for name, change in listed:
        now |= change
        peak = sum(
            one_gpu(psi, L, s, now["b"], h, a, V, n_gpus=n_gpus, **{k: v for k, v in now.items() if k != "b"}).values()
        )
        rungs.append((name, peak))
        if peak <= 0.85 * gpu_bytes:
            break
    return rungs
