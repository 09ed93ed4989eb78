"""Every tensor of a layer's list against what PyTorch's autograd saves, in bf16 on the CPU, counted by storage."""

import random
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from trainmem.measure import models
from trainmem.measure.agreement import disagreements
from trainmem.measure.models import GPTLayer, Head, LlamaLayer, add_adapters
from trainmem.measure.saved import saved_tensors
from trainmem.memory import gpt_layer, head, llama_layer, stage_kept

BF16 = torch.bfloat16


def vectors(*shape):
    return torch.randn(*shape, dtype=BF16, requires_grad=True)


def save(layer, *inputs, runs=1):
    """What ``runs`` forward passes of a layer save, and a backward pass to prove that it is a working graph."""
    layer = layer.to(BF16)
    with saved_tensors(layer.parameters()) as saved:
        results = [layer(*inputs) for _ in range(runs)]
    torch.stack([y.float().sum() for y in results]).sum().backward()
    return saved


def assert_agrees(block, saved):
    wrong = disagreements(block, saved)
    assert not wrong, "\n".join(wrong)
    assert saved.nbytes == block.kept_bytes + block.extra_bytes


def gpt_shapes(seed, count=20, t=1):
    rng = random.Random(seed)
    for _ in range(count):
        a = t * rng.randint(1, 4)
        # b and s of at least 2: with one of them PyTorch sees that a transposed tensor needs no copy.
        yield t * rng.randint(2, 24), rng.randint(2, 4), a * 2 * rng.randint(1, 12), a


GPT = {
    "baseline": {},
    "fused": {"attention": "fused"},
    "selective": {"recompute": "selective"},
    "no dropout": {"dropout": False},
}


@pytest.mark.parametrize("kind", GPT)
def test_gpt_layers(kind):
    options = GPT[kind]
    measured = {**options, "dropout": 0.1 if options.get("dropout", True) else 0.0}
    for s, b, h, a in gpt_shapes(kind):
        f = random.Random(s).choice((None, 3 * h))
        block = gpt_layer(s, b, h, a, f=f, statistics="bf16", **options)
        assert_agrees(block, save(GPTLayer(h, a, f=f, **measured), vectors(b, s, h)))


@pytest.mark.parametrize("attention", ["eager", "fused"])
@pytest.mark.parametrize("t", [2, 4])
def test_one_gpu_s_share_under_tensor_parallelism(t, attention):
    for s, b, h, a in gpt_shapes(t, 8, t):
        options = {"t": t, "attention": attention}
        block = gpt_layer(s, b, h, a, statistics="bf16", **options)
        assert_agrees(block, save(GPTLayer(h, a, **options), vectors(b, s, h)))
        options["sequence_parallel"] = True
        block = gpt_layer(s, b, h, a, statistics="bf16", **options)
        assert_agrees(block, save(GPTLayer(h, a, **options), vectors(b, s // t, h)))


def test_the_first_stage_of_a_pipeline():
    """Four stages of two layers: before its first backward pass the first has run four micro-batches forward."""
    s, b, h, a, stages, L = 12, 2, 24, 3, 4, 8
    block = gpt_layer(s, b, h, a, statistics="bf16")
    listed = sum(x.tensor.nbytes for x in stage_kept(block, L, stages)) + L * block.extra_bytes
    stage = torch.nn.Sequential(*(GPTLayer(h, a) for _ in range(L // stages))).to(BF16)
    with saved_tensors(stage.parameters()) as saved:
        results = [stage(vectors(b, s, h)) for _ in range(stages)]
    assert saved.nbytes == listed == L * (block.kept_bytes + block.extra_bytes)
    assert len(results) == stages


LLAMA = {
    "fused kernels": {"norm": "fused", "swiglu": "fused"},
    "eager SwiGLU": {},
    "norm by hand": {"norm": "by hand"},
    "norm by PyTorch on the CPU": {"norm": "composite"},
    "eager attention": {"attention": "eager"},
    "softmax in fp32": {"attention": "eager", "softmax": "fp32"},
    "selective": {"attention": "eager", "recompute": "selective"},
    "no positions": {"rotary": False},
}


@pytest.mark.parametrize("kind", LLAMA)
def test_llama_layers(kind):
    rng = random.Random(kind)
    for s, b, h, a in gpt_shapes(kind):
        kv, f = rng.choice([n for n in range(1, a + 1) if a % n == 0]), rng.randint(1, 3 * h)
        block = llama_layer(s, b, h, a, f=f, kv=kv, **LLAMA[kind])
        tables = [torch.randn(s, h // a, dtype=BF16) for _ in range(2)]
        assert_agrees(block, save(LlamaLayer(h, a, f=f, kv=kv, **LLAMA[kind]), vectors(b, s, h), *tables))


@pytest.mark.parametrize("adapters", [(), ("q_proj", "v_proj"), ("fc1", "fc2", "proj")])
def test_frozen_layers_and_adapters(adapters):
    for s, b, h, a in gpt_shapes(repr(adapters), 8):
        options = {"attention": "fused"}
        block = gpt_layer(s, b, h, a, statistics="bf16", frozen=True, adapters=adapters, rank=3, **options)
        assert_agrees(block, save(add_adapters(GPTLayer(h, a, **options), adapters, 3), vectors(b, s, h)))


@pytest.mark.parametrize("loss", ["bf16", "fp32"])
def test_heads(loss):
    for s, b, h, _ in gpt_shapes(loss, 10):
        V = 7 + s
        targets = torch.randint(V, (b, s))
        block = head(s, b, h, V, loss=loss, statistics="bf16")
        assert_agrees(block, save(Head(h, V, loss=loss), vectors(b, s, h), targets))


def test_autocast_keeps_for_the_loss_what_fp32_keeps():
    s, b, h, V = 8, 2, 16, 50
    linear = torch.nn.Linear(h, V, bias=False)
    x, targets = torch.randn(b * s, h), torch.randint(V, (b * s,))
    with torch.autocast("cpu", BF16):
        logits = linear(x)
        assert logits.dtype == BF16
        with saved_tensors([logits]) as saved:
            F.cross_entropy(logits, targets)
    listed = [x.nbytes for x in head(s, b, h, V, loss="autocast").everything if x.part == "logits"]
    assert sorted(x.nbytes for x in saved.storages) == sorted(listed)


@pytest.mark.parametrize(
    ("options", "units"),
    [({}, 54.03), ({"attention": "fused"}, 34.09), ({"dropout": 0.0}, 40.03), ({"recompute": "full"}, 2.0)],
)
def test_the_published_measurement(options, units):
    """s = 256, b = 2, h = 256, a = 4: as/h = 4."""
    layer, x = GPTLayer(256, 4, **{k: v for k, v in options.items() if v != "full"}).to(BF16), vectors(2, 256, 256)
    with saved_tensors(layer.parameters()) as saved:
        if options.get("recompute") == "full":
            torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
        else:
            layer(x)
    assert round(saved.nbytes / (256 * 2 * 256), 2) == units


def test_grouped_queries_at_the_published_shape():
    """h = 512, a = 8, kv = 2, f = 1408 with PyTorch's own RMSNorm on the CPU: 47 listed, and extras."""
    fused = llama_layer(256, 2, 512, 8, f=1408, kv=2)
    assert fused.kept_bytes / fused.sbh == 35
    block = llama_layer(256, 2, 512, 8, f=1408, kv=2, norm="composite")
    assert block.kept_bytes / block.sbh == 47
    tables = [torch.randn(256, 64, dtype=BF16) for _ in range(2)]
    saved = save(LlamaLayer(512, 8, f=1408, kv=2, norm="composite"), vectors(2, 256, 512), *tables)
    assert_agrees(block, saved)
    assert round(saved.nbytes / block.sbh, 2) == 47.33


# --- planted faults: each must be seen, and named -------------------------------------------------------------------

SHAPE = dict(s=12, b=2, h=24, a=3)


def measured(**options):
    return save(GPTLayer(24, 3, **options), vectors(2, 12, 24))


def listed(**options):
    return gpt_layer(**SHAPE, statistics="bf16", **options)


@pytest.mark.parametrize("role", [f"{op.name}.{role}" for op in gpt_layer(**SHAPE).operations for role, _ in op.keeps])
def test_a_tensor_left_out_of_the_list_is_named(role):
    block = listed()
    forgetful = replace(
        block,
        operations=tuple(
            replace(op, keeps=tuple(x for x in op.keeps if f"{op.name}.{x[0]}" != role)) for op in block.operations
        ),
    )
    with pytest.raises(AssertionError, match=role.replace(".", r"\.")):
        assert_agrees(forgetful, measured())


@pytest.mark.parametrize("name", ["attention_dropout.mask", "dropout1.mask", "dropout2.mask"])
def test_a_mask_at_two_bytes_in_the_list_is_named(name):
    block = listed()
    wide = replace(block, tensors={**block.tensors, name: replace(block.tensors[name], format="bf16")})
    with pytest.raises(AssertionError, match=name.replace(".", r"\.")):
        assert_agrees(wide, measured())


def test_a_mask_at_two_bytes_in_the_model_is_named(monkeypatch):
    monkeypatch.setattr(models, "_dropout", lambda x, p: F.dropout(x, p, training=True))
    for name in ("attention_dropout", "dropout1", "dropout2"):
        with pytest.raises(AssertionError, match=rf"{name}\.mask[^\n]*nothing saved there"):
            assert_agrees(listed(), measured())
    # And this is what it costs: 2 sbh + as²b more.
    extra = measured().nbytes - listed().kept_bytes - listed().extra_bytes
    assert extra == 2 * listed().sbh + listed().as2b


def test_a_three_dimensional_attention_call_is_named(monkeypatch):
    def three_dimensional(q, k, v, a, kv):
        b, s, h = q.shape
        q, k, v = (x.view(b, s, a, h // a).transpose(1, 2).reshape(b * a, s, h // a) for x in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v).view(b, a, s, h // a).transpose(1, 2).reshape(b, s, h)

    monkeypatch.setattr(models, "_fused_attention", three_dimensional)
    with pytest.raises(AssertionError, match=r"attention\.logsumexp[^\n]*nothing saved there"):
        assert_agrees(listed(attention="fused"), measured(attention="fused"))


def test_dropout_left_out_of_the_model_is_named():
    with pytest.raises(AssertionError, match=r"dropout2\.mask"):
        assert_agrees(listed(), measured(dropout=0.0))
