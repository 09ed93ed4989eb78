"""The lists themselves: their sums against the published formulas, and the numbers that the course states."""

import random

import pytest

from trainmem.memory import (
    FORMAT_BYTES,
    GPUS,
    MODELS,
    RECIPES,
    RULES,
    embedding,
    forward_flops,
    gpt_layer,
    head,
    linear_layer,
    llama_layer,
    lora_parameters,
    model_states,
    recomputation_cost,
    recomputed_flops,
    stage_kept,
    trainer_layer,
)
from trainmem.memory.tensors import size_of
from trainmem_solutions import (
    activation_bytes,
    gpus_for_states,
    model_params,
    model_state_bytes,
    params_per_layer,
    peak_bytes,
)


def shapes(seed, count, t=1):
    """(s, b, h, a) with heads and rows that t divides."""
    rng = random.Random(seed)
    for _ in range(count):
        a = t * rng.randint(1, 4)
        yield t * rng.randint(1, 40), rng.randint(1, 5), a * rng.randint(1, 16), a


def total(lines):
    return sum(line.nbytes for line in lines)


# --- sums against formulas ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [1, 2, 4, 8])
def test_gpt_layer(t):
    for s, b, h, a in shapes(t, 30, t):
        sbh, as2b = s * b * h, a * s * s * b
        alone = gpt_layer(s, b, h, a, t=t)
        assert alone.kept_bytes == 10 * sbh + (24 * sbh + 5 * as2b) // t
        both = gpt_layer(s, b, h, a, t=t, sequence_parallel=True)
        assert both.kept_bytes * t == 34 * sbh + 5 * as2b
        quiet = gpt_layer(s, b, h, a, t=t, sequence_parallel=True, dropout=False)
        assert quiet.kept_bytes * t == 32 * sbh + 2 * as2b
        assert gpt_layer(s, b, h, a, t=t, sequence_parallel=True, recompute="full").kept_bytes * t == 2 * sbh


def test_exercise_3_agrees_with_the_lists():
    for s, b, h, a in shapes(3, 30):
        for mode, options in {
            "baseline": {},
            "flash": {"attention": "fused"},
            "selective": {"recompute": "selective"},
            "full": {"recompute": "full"},
        }.items():
            assert gpt_layer(s, b, h, a, **options).kept_bytes == activation_bytes(s, b, h, a, mode)


def test_llama_layer():
    rng = random.Random(5)
    for s, b, h, a in shapes(5, 30):
        kv = rng.choice([n for n in range(1, a + 1) if a % n == 0])
        f, sbh, as2b = rng.randint(1, 4 * h), s * b * h, a * s * s * b
        f_wide = s * b * f
        base = 12 * sbh + 4 * sbh * kv // a
        assert llama_layer(s, b, h, a, f=f, kv=kv).kept_bytes == base + 8 * f_wide
        assert llama_layer(s, b, h, a, f=f, kv=kv, swiglu="fused").kept_bytes == base + 6 * f_wide
        assert llama_layer(s, b, h, a, f=f, kv=kv, attention="eager").kept_bytes == base + 8 * f_wide + 2 * as2b
        wide = llama_layer(s, b, h, a, f=f, kv=kv, attention="eager", softmax="fp32")
        assert wide.kept_bytes == base + 8 * f_wide + 6 * as2b
        selective = llama_layer(s, b, h, a, f=f, kv=kv, attention="eager", recompute="selective")
        assert selective.kept_bytes == base + 8 * f_wide
        # Two norms of 6 or 8 sbh instead of 2.
        assert llama_layer(s, b, h, a, f=f, kv=kv, norm="by hand").kept_bytes == base + 8 * f_wide + 8 * sbh
        assert llama_layer(s, b, h, a, f=f, kv=kv, norm="composite").kept_bytes == base + 8 * f_wide + 12 * sbh


@pytest.mark.parametrize(
    ("model", "swiglu", "units"),
    [
        ("llama2-7b", "eager", 37.5),
        ("llama2-7b", "fused", 32.125),
        ("llama2-70b", "eager", 40.5),
        ("llama2-70b", "fused", 33.5),
    ],
)
def test_llama_models_in_units_of_sbh(model, swiglu, units):
    layer = MODELS[model].layer(swiglu=swiglu)
    assert layer.kept_bytes == units * layer.sbh


def test_llama_7b_without_fused_attention_is_not_the_gpt_formula():
    llama = llama_layer(4096, 1, 4096, 32, f=11008, attention="eager")
    assert llama.kept_bytes == 101.5 * llama.sbh
    gpt = gpt_layer(4096, 1, 4096, 32)
    assert gpt.kept_bytes == 194 * gpt.sbh
    assert round(32 * gpt.kept_bytes / 1e9, 2) == 104.15


def test_lora_lists():
    for s, b, h, a in shapes(7, 20):
        sbh = s * b * h
        frozen = gpt_layer(s, b, h, a, attention="fused", frozen=True)
        assert frozen.kept_bytes == 22 * sbh
        # One adapter on Q brings back the input that Q, K and V share, and its own narrow tensor.
        adapted = gpt_layer(s, b, h, a, attention="fused", frozen=True, adapters=("q_proj",), rank=2)
        assert adapted.kept_bytes == 24 * sbh + 2 * s * b * 2
        trained = [m for m in adapted.matrices if not m.frozen]
        assert sum(m.elements for m in trained) == lora_parameters(2, [(h, h)])
    everywhere = gpt_layer(
        64, 2, 64, 4, frozen=True, adapters=("q_proj", "k_proj", "v_proj", "proj", "fc1", "fc2"), rank=4
    )
    plain = gpt_layer(64, 2, 64, 4)
    assert everywhere.kept_bytes == plain.kept_bytes + 6 * 2 * 64 * 2 * 4


@pytest.mark.parametrize(("L", "stages"), [(24, 1), (24, 4), (96, 8), (12, 12)])
def test_the_first_stage_of_a_pipeline_holds_as_much_as_all_layers(L, stages):
    layer = gpt_layer(64, 2, 32, 4)
    first = list(stage_kept(layer, L, stages))
    assert {x.micro_batch for x in first} == set(range(1, stages + 1))
    assert max(x.layer for x in first) == L // stages
    assert sum(x.tensor.nbytes for x in first) == L * layer.kept_bytes
    last = sum(x.tensor.nbytes for x in stage_kept(layer, L, stages, stages - 1))
    assert last * stages == L * layer.kept_bytes
    assert sum(x.tensor.nbytes for x in stage_kept(layer, L, stages, micro_batches=1)) * stages == L * layer.kept_bytes


def test_every_tensor_has_a_name_a_shape_and_a_keeper():
    for layer in (gpt_layer(6, 2, 12, 3), llama_layer(6, 2, 12, 3, f=10, attention="eager"), head(6, 2, 12, 50)):
        operations = {op.name: op for op in layer.operations}
        for tensor in layer.everything:
            assert tensor.sizes == tuple(size_of(dimension, layer.dims) for dimension in tensor.shape)
            assert tensor.kept_by.split(".")[0] in {name.split(".")[0] for name in operations}
            assert tensor.expression.startswith(f"{FORMAT_BYTES[tensor.format]}")
        assert {op.kind for op in layer.operations} <= set(RULES)
        assert all(op.why for op in layer.operations)
        assert layer.kept_bytes + layer.extra_bytes == sum(x.nbytes for x in layer.everything)


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_walking_through_a_layer_meets_every_kept_tensor_once(recompute):
    layer = gpt_layer(6, 2, 12, 3, recompute=recompute)
    met = [tensor for _, tensors in layer.walk() for tensor in tensors]
    assert sorted(x.name for x in met) == sorted(x.name for x in layer.everything)
    assert [op for op, _ in layer.walk()] == list(layer.operations)
    orange = sum(number for number, unit in map(layer.units, layer.kept) if unit == "sbh")
    magenta = sum(number for number, unit in map(layer.units, layer.kept) if unit == "as²b")
    assert (orange, magenta) == {"none": (34, 5), "selective": (34, 0), "full": (2, 0)}[recompute]


def test_what_dropout_adds():
    with_, without = ({x.name for x in gpt_layer(6, 2, 12, 3, dropout=x).kept} for x in (True, False))
    assert with_ - without == {
        "attention_dropout.mask",
        "dropped attention weights",
        "dropout1.mask",
        "dropout2.mask",
    }


# --- the loss -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "kept"), [("bf16", 2), ("fp32", 4), ("autocast", 4)])
def test_bytes_per_logit_at_the_end_of_the_forward_pass(loss, kept):
    block = head(16, 2, 8, 1000, loss=loss)
    assert sum(x.nbytes for x in block.kept if x.part == "logits") == kept * 16 * 2 * 1000


# --- parameters and states ------------------------------------------------------------------------------------------

PARAMETERS = {
    "gpt2-124m": 124_439_808,
    "gpt2-355m": 354_823_168,
    "gpt2-774m": 774_030_080,
    "gpt2-1.5b": 1_557_611_200,
    "1.3b": 1_311_528_960,
    "gpt3-175b": 174_604_259_328,
    "llama-7b": 6_738_415_616,
    "llama2-7b": 6_738_415_616,
    "llama2-13b": 13_015_864_320,
    "llama2-70b": 68_976_648_192,
    "llama3-8b": 8_030_261_248,
    "llama3-70b": 70_553_706_496,
}


def test_parameters_of_the_models():
    assert {name: model.parameters for name, model in MODELS.items()} == PARAMETERS


@pytest.mark.parametrize("name", MODELS)
def test_exercise_1_agrees_with_the_matrices(name):
    m = MODELS[name]
    arguments = {"mlp_ratio": m.f / m.h, "n_kv_ratio": m.kv / m.a, "style": m.style}
    assert m.layer(1).parameters == pytest.approx(params_per_layer(m.h, **arguments), rel=1e-12)
    whole = model_params(m.L, m.h, m.V, **arguments, tied=m.tied, positions=m.positions)
    assert m.parameters == pytest.approx(whole, rel=1e-12)


def test_parameters_of_layers():
    assert gpt_layer(1, 1, 1024, 16).parameters == 12_596_224
    assert gpt_layer(1, 1, 2048, 16).parameters == 50_358_272
    assert round(12 * 24 * 2048**2 / MODELS["1.3b"].parameters, 3) == 0.921
    llama = MODELS["llama2-70b"].layer(1)
    weights = sum(m.elements for m in llama.matrices if m.kind == "weight")
    assert weights == 12.75 * 8192**2
    names = [m.name for m in gpt_layer(1, 1, 8, 2).matrices if m.kind == "weight"]
    assert names == ["q_proj.weight", "k_proj.weight", "v_proj.weight", "proj.weight", "fc1.weight", "fc2.weight"]


@pytest.mark.parametrize("t", [2, 4])
def test_tensor_parallelism_splits_the_matrices(t):
    one, part = gpt_layer(4, 1, 16, 4), gpt_layer(4, 1, 16, 4, t=t)
    whole = {m.name: m.elements for m in one.matrices}
    for m in part.matrices:
        replicated = m.kind == "norm" or m.name in ("proj.bias", "fc2.bias")
        assert m.elements == whole[m.name] // (1 if replicated else t)


@pytest.mark.parametrize(
    ("recipe", "per_parameter", "at_the_turn"),
    [
        ("mixed", 16, 16),
        ("fp32", 16, 16),
        ("autocast", 16, 18),
        ("megatron", 18, 18),
        ("deepspeed", 20, 20),
        ("inference", 2, 2),
    ],
)
def test_bytes_per_parameter(recipe, per_parameter, at_the_turn):
    assert sum(x.bytes_per_parameter for x in RECIPES[recipe] if x.lasts) == per_parameter
    assert total(model_states(7, recipe)) == 7 * at_the_turn


def test_states_under_zero():
    psi, N = 10_000, 8
    by_stage = [total(model_states(psi, zero=zero, n_gpus=N)) / psi for zero in range(4)]
    assert by_stage == [16, 4 + 12 / N, 2 + 14 / N, 16 / N]
    assert total(model_states(psi, "deepspeed", zero=2, n_gpus=N)) / psi == 2 + 18 / N
    offloaded = [total(model_states(psi, zero=zero, n_gpus=N, offload=True)) / psi for zero in range(4)]
    assert offloaded == [4, 4, 2 + 2 / N, 4 / N]
    assert total(model_states(1_311_528_960, zero=2, n_gpus=8)) == 4_918_233_600
    assert total(model_states(13e9)) == 208e9
    assert total(model_states(70e9)) / 80e9 == gpus_for_states(70e9) == 14
    assert round(total(model_states(MODELS["llama2-7b"].parameters)) / 1e9, 1) == 107.8
    assert total(model_states(123)) == model_state_bytes(123)
    # LoRA: 2 bytes for what is frozen, 16 for what is trained.
    assert total(model_states(1000, trainable=10)) == 2 * 990 + 16 * 10


def test_exercise_5_agrees_with_states_lists_and_logits():
    rng = random.Random(8)
    for _ in range(100):
        t, d, zero, offload = rng.choice((1, 2, 4)), rng.choice((1, 2, 3, 4)), rng.randint(0, 3), rng.random() < 0.5
        a, L, V, psi = 4 * rng.randint(1, 2), rng.randint(2, 9), 4 * rng.randint(5, 500), 48 * rng.randint(1, 10**6)
        s, b, h = 4 * rng.randint(1, 30), rng.randint(1, 4), a * rng.randint(1, 8)
        split = {"t": t, "sequence_parallel": t > 1}
        states = total(model_states(psi, zero=zero, n_gpus=t * d, t=t, offload=offload))
        logits = sum(x.nbytes for x in head(s, b, h, V, t=t).kept if x.part == "logits")
        for mode, options in {
            "baseline": {},
            "flash": {"attention": "fused"},
            "selective": {"recompute": "selective"},
        }.items():
            activations = L * gpt_layer(s, b, h, a, **split, **options).kept_bytes
            expected = peak_bytes(psi, L, s, b, h, a, V, mode=mode, zero=zero, n_gpus=t * d, t=t, offload=offload)
            assert states + activations + logits == pytest.approx(expected, rel=1e-9)
        layer = gpt_layer(s, b, h, a, attention="fused", **split)
        activations = L * layer.recompute().kept_bytes + layer.kept_bytes
        expected = peak_bytes(psi, L, s, b, h, a, V, mode="full", zero=zero, n_gpus=t * d, t=t, offload=offload)
        assert states + activations + logits == pytest.approx(expected, rel=1e-9)


# --- the numbers of the lesson --------------------------------------------------------------------------------------


def test_the_worked_example():
    m = MODELS["1.3b"]
    layer, flash = m.layer(2048, 8), m.layer(2048, 8, attention="fused")
    full = flash.recompute()
    logits = sum(x.nbytes for x in m.head(2048, 8).kept if x.part == "logits")
    states = total(model_states(m.parameters))
    assert layer.sbh == 33_554_432
    assert layer.kept_bytes == 3_825_205_248
    assert 24 * layer.kept_bytes == 91_804_925_952
    assert 24 * flash.kept_bytes == 27_380_416_512
    assert logits == 3_293_642_752
    assert states + 24 * layer.kept_bytes + logits == 116_083_032_064
    assert states + 24 * flash.kept_bytes + logits == 51_658_522_624
    assert states + 24 * full.kept_bytes + flash.kept_bytes + logits == 27_029_569_536
    sharded = total(model_states(m.parameters, zero=2, n_gpus=8))
    assert sharded + 24 * flash.kept_bytes + logits == 35_592_292_864
    assert sharded + (24 * flash.kept_bytes + logits) // 2 == 20_255_263_232
    assert 0.85 * GPUS["a100-40"].memory_bytes < 35_592_292_864 < GPUS["a100-40"].memory_bytes


@pytest.mark.parametrize(("checkpointed", "largest"), [(False, 12), (True, 62)])
def test_the_largest_micro_batch(checkpointed, largest):
    m = MODELS["1.3b"]

    def fits(b):
        layer = m.layer(2048, b, attention="fused")
        activations = 24 * layer.recompute().kept_bytes + layer.kept_bytes if checkpointed else 24 * layer.kept_bytes
        logits = sum(x.nbytes for x in m.head(2048, b).kept if x.part == "logits")
        return total(model_states(m.parameters)) + activations + logits <= 0.85 * GPUS["h100"].memory_bytes

    assert [b for b in range(1, 100) if fits(b)] == list(range(1, largest + 1))


def test_where_the_attention_core_overtakes_the_rest():
    def core_is_larger(s):
        layer = gpt_layer(s, 1, 4096, 32)
        core = sum(x.nbytes for x in layer.kept if x.part == "core")
        return core > layer.kept_bytes - core

    assert not core_is_larger(870)
    assert core_is_larger(871)


def test_gpt3_s_core():
    layer = MODELS["gpt3-175b"].layer()
    core = sum(x.nbytes for x in layer.kept if x.part == "core")
    assert (core, layer.kept_bytes) == (80 * layer.sbh, 114 * layer.sbh)
    assert round(core / layer.kept_bytes, 2) == 0.70


def test_a_long_sequence():
    layer = gpt_layer(32768, 1, 4096, 32)
    flash = gpt_layer(32768, 1, 4096, 32, attention="fused").kept_bytes
    assert layer.kept_bytes - flash == 1280 * layer.sbh
    assert round(flash / 1e9, 2) == 4.56
    assert round(32 * flash / 1e9) == 146


def test_one_linear_layer():
    layer = linear_layer(4096, 1024, 1024)
    assert total(model_states(layer.parameters)) == 16_777_216
    assert layer.kept_bytes == 8_388_608
    assert linear_layer(8192, 1024, 1024).kept_bytes == 16_777_216


def test_flops():
    for s, b, h, a in shapes(11, 20):
        layer = gpt_layer(s, b, h, a, recompute="selective")
        assert forward_flops(layer) == 24 * b * s * h * h + 4 * b * s * s * h
        assert recomputed_flops(layer) == 4 * b * s * s * h
        assert recomputation_cost(layer) == pytest.approx(s / (18 * h + 3 * s))
        assert forward_flops(gpt_layer(s, b, h, a, attention="fused")) == forward_flops(layer)
        assert recomputation_cost(layer.recompute()) == pytest.approx(1 / 3)
    assert f"{recomputation_cost(MODELS['gpt3-175b'].layer(recompute='selective')):.2%}" == "0.90%"
    assert f"{recomputation_cost(gpt_layer(2048, 1, 2048, 16, recompute='selective')):.1%}" == "4.8%"
    gpt3 = MODELS["gpt3-175b"].layer(recompute="selective")
    linear = forward_flops(gpt3) - recomputed_flops(gpt3)
    assert recomputed_flops(gpt3) / linear == pytest.approx(2048 / (6 * 12288))


def test_flops_a_token():
    """6 for each weight of the layers (forward and backward), and 8 with full recomputation (forward again)."""
    layer = gpt_layer(1, 1, 512, 8)
    weights = sum(m.elements for m in layer.matrices if m.kind == "weight")
    plain = 3 * (forward_flops(layer) - recomputed_flops(layer.recompute(("scores", "weighted"))))
    assert plain == 6 * weights
    assert plain * (1 + recomputation_cost(layer.recompute())) == pytest.approx(8 * weights)


def test_the_small_reference_model_in_values():
    formula = gpt_layer(8, 1, 16, 2)
    assert formula.kept_bytes / FORMAT_BYTES["bf16"] == 2496  # a mask's byte is half a value
    trainer = trainer_layer(8, 1, 16, 2)
    assert sum(x.elements for x in trainer.everything) == 2320 == 18 * 8 * 16 + 2 * 8


def test_gpus():
    assert {name: gpu.memory_bytes / 1e9 for name, gpu in GPUS.items()} == {
        "t4": 16,
        "rtx4090": 24,
        "a100-40": 40,
        "a100-80": 80,
        "h100": 80,
        "h200": 141,
        "b200": 180,
    }
    assert all(row.source and row.title for row in (*GPUS.values(), *MODELS.values()))


# --- wrong questions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: gpt_layer(8, 1, 10, 3), "3 heads do not divide"),
        (lambda: gpt_layer(8, 1, 12, 3, t=2), "does not divide by t"),
        (lambda: gpt_layer(8, 1, 12, 3, attention="flash"), "'eager' or 'fused'"),
        (lambda: gpt_layer(8, 1, 12, 3, recompute="all"), "'none', 'selective' or 'full'"),
        (lambda: gpt_layer(8, 1, 12, 3, attention="fused", recompute="selective"), "fused attention keeps none"),
        (lambda: gpt_layer(8, 1, 12, 3, adapters=("q_proj",)), "frozen=True"),
        (lambda: gpt_layer(8, 1, 12, 3, frozen=True, adapters=("gate",)), "q_proj"),
        (lambda: gpt_layer(0, 1, 12, 3), "s is a whole number"),
        (lambda: llama_layer(8, 1, 12, 3, f=8, kv=2), "2 key/value heads do not divide 3"),
        (lambda: llama_layer(8, 1, 12, 3, f=8, norm="layernorm"), "'fused', 'by hand' or 'composite'"),
        (lambda: llama_layer(8, 1, 12, 3, f=8, swiglu="none"), "'eager' or 'fused'"),
        (lambda: llama_layer(8, 1, 12, 3, f=8, softmax="fp8", attention="eager"), "'bf16' or 'fp32'"),
        (lambda: head(8, 1, 12, 50, loss="mse"), "'fp32', 'autocast' or 'bf16'"),
        (lambda: gpt_layer(8, 1, 12, 3).recompute(["fc3"]), "no operation fc3"),
        (lambda: list(stage_kept(gpt_layer(8, 1, 12, 3), 24, 5)), "evenly into 5"),
        (lambda: list(stage_kept(gpt_layer(8, 1, 12, 3), 24, 4, 4)), "numbered 0 to 3"),
        (lambda: model_states(10, zero=4), "stages 0, 1, 2 and 3"),
        (lambda: model_states(10, n_gpus=6, t=4), "t has to divide"),
        (lambda: model_states(10, "adam"), "mixed"),
        (lambda: model_states(10, trainable=11), "between 0 and 10"),
        (lambda: size_of("4q", {"h": 3}), "only h are known"),
        (lambda: size_of("h*2", {"h": 3}), "is no dimension"),
    ],
)
def test_wrong_questions_are_answered_by_what_to_do(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


def test_positions_are_a_part_of_the_embedding():
    assert embedding(4, 1, 8, 100, positions=16).parameters == 8 * (100 + 16)
