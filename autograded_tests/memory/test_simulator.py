"""The step simulator against intervals, against exercise 4, and against the published peaks."""

import random
from dataclasses import replace

import pytest
from interval_oracle import step_totals

from trainmem.memory import (
    CATEGORIES,
    MODELS,
    MODES,
    Step,
    calculator_step,
    embedding,
    gpt_layer,
    head,
    lesson_step,
    llama_layer,
    model_states,
    model_step,
)
from trainmem_solutions import best_k, memory_timeline


def random_case(rng):
    """A small model of any kind: its layer, embedding, head, L and checkpointing interval."""
    s, b, a, d = rng.randint(1, 9), rng.randint(1, 3), rng.choice((1, 2, 4)), rng.choice((2, 4))
    h, V, L = a * d, rng.randint(2, 60), rng.randint(1, 6)
    attention, recompute = rng.choice((("eager", "none"), ("fused", "none"), ("eager", "selective")))
    frozen = rng.random() < 0.2
    lora = {"frozen": frozen, "adapters": ("q_proj", "v_proj") if frozen and rng.random() < 0.7 else (), "rank": 2}
    if rng.random() < 0.5:
        layer = gpt_layer(
            s,
            b,
            h,
            a,
            f=rng.choice((h, 4 * h)),
            attention=attention,
            recompute=recompute,
            dropout=rng.random() < 0.5,
            **lora,
        )
        norm = "layernorm"
    else:
        norm = rng.choice(("fused", "by hand", "composite"))
        layer = llama_layer(
            s,
            b,
            h,
            a,
            f=rng.randint(1, 3 * h),
            kv=rng.choice([x for x in (1, 2, 4) if a % x == 0]),
            attention=attention,
            recompute=recompute,
            swiglu=rng.choice(("eager", "fused")),
            norm=norm,
            softmax=rng.choice(("bf16", "fp32")),
            rotary=rng.random() < 0.5,
            **lora,
        )
    ends = (
        head(
            s,
            b,
            h,
            V,
            norm=norm,
            loss=rng.choice(("bf16", "fp32", "autocast")),
            tied=rng.random() < 0.3,
            referenced=rng.random() < 0.3,
        ),
        embedding(s, b, h, V, positions=rng.choice((0, s))),
    )
    every = None if recompute == "selective" else rng.choice((None, *range(1, L + 2)))
    return layer, L, *ends, every, rng.random() < 0.3


def test_a_thousand_random_steps_agree_with_intervals_at_every_operation():
    rng = random.Random(20)
    for _ in range(1000):
        layer, L, top, bottom, every, resident = random_case(rng)
        step = Step(layer, L, head=top, embedding=bottom, gradients="resident" if resident else "late")
        fine = step.timeline(every, "operation")
        expected = step_totals(layer, L, top, bottom, every, resident)
        assert [(*label, during) for label, during in zip(fine.labels, fine.during_bytes.tolist(), strict=True)][
            :-1
        ] == expected
        coarse = step.timeline(every)
        assert coarse.peak_bytes == fine.peak_bytes == step.peaks([every])[0] == max(row[-1] for row in expected)
        where = (coarse.peak_event.phase, coarse.peak_event.block, coarse.peak_event.layer, coarse.peak_event.operation)
        assert where == (fine.peak_event.phase, fine.peak_event.block, fine.peak_event.layer, fine.peak_event.operation)
        assert sum(fine.peak_parts.values()) == fine.peak_bytes
        # A step leaves what it found.
        assert (
            dict(zip(CATEGORIES, fine.after[-1].tolist(), strict=True)) == dict.fromkeys(CATEGORIES, 0) | step.initial
        )


def test_the_sweep_agrees_with_timelines_for_every_interval():
    step = Step(gpt_layer(64, 1, 32, 4), 40, zero=2, n_gpus=8, optimizer="foreach", micro_batches=2)
    intervals = [None, *range(1, 45)]
    assert step.peaks(intervals) == [step.timeline(every).peak_bytes for every in intervals]


def test_full_recomputation_is_a_checkpoint_at_every_layer():
    plain, full = (gpt_layer(16, 2, 32, 4, attention="fused", recompute=x) for x in ("none", "full"))
    assert str(Step(full, 5).timeline()) == str(Step(plain, 5).timeline(1))


def push_and_pop(L, c, A, k):
    """Exercise 4's contract with named things on a pile."""
    held, values = {}, []

    def note():
        values.append(sum(held.values()))

    for layer in range(L):
        if k is None:
            held["layer", layer] = A
        elif layer % k == 0:
            held["checkpoint", layer] = c
        note()
    while held:
        if k is None:
            held.pop(("layer", max(layer for _, layer in held)))
            note()
            continue
        start = max(layer for kind, layer in held if kind == "checkpoint")
        segment = range(start, min(start + k, L))
        for layer in segment:
            held["rebuilt", layer] = A
            note()
        for layer in reversed(segment):
            del held["rebuilt", layer]
            if layer == start:
                del held["checkpoint", layer]
            note()
    return values


def test_the_lesson_s_reading_is_exercise_4_on_a_thousand_cases():
    rng = random.Random(4)
    for _ in range(1000):
        L, c, A = rng.randint(1, 24), rng.randint(1, 60), rng.randint(1, 60)
        k = rng.choice((None, *range(1, L + 3)))
        timeline = lesson_step(L, c, A, k)
        assert timeline.after_bytes.tolist() == push_and_pop(L, c, A, k) == list(memory_timeline(L, c, A, k))
        assert timeline.peak_bytes == max(memory_timeline(L, c, A, k))


@pytest.mark.parametrize(("L", "best"), [(1, {1}), (32, {1}), (33, {1, 2}), (34, {1, 2}), (35, {2}), (80, {2})])
def test_the_best_interval_for_a_checkpoint_of_2_and_a_layer_of_34(L, best):
    peaks = {k: lesson_step(L, 2, 34, k).peak_bytes for k in range(1, L + 1)}
    assert {k for k, peak in peaks.items() if peak == min(peaks.values())} == best
    assert best_k(L, 2, 34) in best


def test_the_lesson_s_peaks_in_units_of_sbh():
    assert lesson_step(24, 2, 34, 6).peak_bytes == 212
    assert lesson_step(24, 2, 34, 1).peak_bytes == 82
    assert [lesson_step(80, 2, 34, k).peak_bytes for k in (2, 1)] == [148, 194]
    assert [lesson_step(34, 2, 34, k).peak_bytes for k in (1, 2)] == [102, 102]


# --- the calculator's peaks for LLaMA 7B at s = 4096, b = 1 ---------------------------------------------------------

LLAMA = MODELS["llama-7b"]


def calculator(recompute, exact=False):
    """Its reading; ``exact`` takes each block's own gradient for the equal units."""
    layer = gpt_layer(4096, 1, 4096, 32, recompute=recompute)
    sizes = None
    if exact:
        sizes = (
            [2 * LLAMA.head(1).parameters] + [2 * LLAMA.layer(1).parameters] * 32 + [2 * LLAMA.embedding(1).parameters]
        )
    return calculator_step(layer, LLAMA.L, LLAMA.parameters, LLAMA.V, gradient_sizes=sizes)


@pytest.mark.parametrize(
    ("recompute", "gigabytes", "exact", "where"),
    [
        ("none", 199.539, 199.5, "backward of loss"),
        ("selective", 116.069, 115.9, "backward of layer 32"),
        ("full", 110.673, 110.8, "backward of layer 1"),
    ],
)
def test_the_calculator_s_peaks(recompute, gigabytes, exact, where):
    assert round(calculator(recompute).peak_bytes / 1e9, 3) == gigabytes
    assert round(calculator(recompute, exact=True).peak_bytes / 1e9, 1) == exact
    assert calculator(recompute).peak_event.name == calculator(recompute, exact=True).peak_event.name == where


def test_what_the_calculator_s_peaks_are_made_of():
    psi, sbh = LLAMA.parameters, 4096 * 4096
    assert calculator("none").peak_bytes == 14 * psi + 32 * 194 * sbh + 8 * 4096 * 32000
    unit = 2 * psi / 34
    assert calculator("selective").peak_bytes == pytest.approx(14 * psi + 2 * unit + (32 * 34 + 160) * sbh, rel=1e-12)
    assert calculator("full").peak_bytes == pytest.approx(16 * psi - unit + 194 * sbh, rel=1e-12)
    assert set(calculator("full").peak_parts) == {"weights", "optimizer", "gradients", "checkpoints", "rebuilt"}


# --- what moves the peak --------------------------------------------------------------------------------------------


def test_without_recomputation_the_peak_of_the_1_3b_is_at_the_loss():
    timeline = model_step(MODELS["1.3b"], 2048, 8, attention="fused").timeline()
    assert timeline.peak_event.name == "backward of head (log_softmax)"
    assert round(timeline.peak_parts["logits"] / 1e9, 1) == 9.9  # 12 bytes a logit, where 4 are kept


def test_with_checkpoints_and_late_gradients_the_peak_is_at_the_end():
    step = Step(gpt_layer(4096, 1, 4096, 32, recompute="full"), 32)
    assert (step.timeline().peak_event.phase, step.timeline().peak_event.layer) == ("backward", 1)
    resident = Step(gpt_layer(4096, 1, 4096, 32, recompute="full"), 32, gradients="resident")
    assert resident.timeline().peak_event.layer == 32


def test_accumulating_gradients_adds_them_to_the_peak_from_the_second_micro_batch_on():
    layer = gpt_layer(512, 1, 256, 4)
    one, two, three = (Step(layer, 6, micro_batches=n).timeline() for n in (1, 2, 3))
    assert two.peak_bytes == three.peak_bytes == one.peak_bytes + 2 * 6 * layer.parameters
    assert two.peak_index > len(two) // 2 - 1


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_states_are_sharded_in_a_step_as_in_the_table(zero):
    step = Step(gpt_layer(8, 1, 64, 4), 4, zero=zero, n_gpus=8, gradients="resident")
    lines = model_states(step.parameters, zero=zero, n_gpus=8)
    assert sum(step.initial.values()) == sum(line.nbytes for line in lines)


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
@pytest.mark.parametrize("states", ["mixed", "fp32", "autocast", "megatron", "deepspeed"])
def test_a_sharded_step_leaves_what_it_found(zero, states):
    step = Step(gpt_layer(8, 1, 64, 4, t=2), 4, zero=zero, n_gpus=8, states=states, optimizer="foreach")
    for every in (None, 1, 3):
        fine = step.timeline(every, "operation")
        gone = dict(zip(CATEGORIES, fine.after[-1].tolist(), strict=True))
        lasting = sum(x.nbytes for x in step.states if x.category != "gradients" and x.lasts)
        assert sum(gone.values()) == pytest.approx(lasting)
        assert gone["gradients"] == pytest.approx(0)
        assert step.timeline(every).peak_bytes == pytest.approx(fine.peak_bytes)


def test_zero_3_gathers_one_block_s_weights_while_it_runs():
    layer = gpt_layer(8, 1, 64, 4)
    second, third = (Step(layer, 4, zero=zero, n_gpus=8).timeline(2, "operation") for zero in (2, 3))
    away = 2 * 7 / 8  # seven eighths of two bytes are on other GPUs
    for (_, block, _, _), less in zip(third.labels, (second.during_bytes - third.during_bytes).tolist(), strict=True):
        here = layer.parameters if block == "layer" else 0
        assert less == pytest.approx(away * (4 * layer.parameters - here))


def test_tensor_parallelism_divides_what_a_gpu_holds():
    one = model_step(MODELS["1.3b"], 2048, 8, optimizer="fused")
    four = model_step(replace(MODELS["1.3b"], V=50260), 2048, 8, t=4)
    assert 3.5 < one.timeline().peak_bytes / four.timeline().peak_bytes < 4


def test_modes_are_options_of_layers():
    for mode, kept in {"baseline": 34 + 5 * 16, "flash": 34, "selective": 34, "full": 2}.items():
        layer = MODELS["1.3b"].layer(2048, 8, **MODES[mode])
        assert layer.kept_bytes == kept * layer.sbh


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Step(gpt_layer(8, 1, 8, 2), 0), "at least one layer"),
        (lambda: Step(gpt_layer(8, 1, 8, 2), 2).timeline(0), "every 1, 2, 3"),
        (lambda: Step(gpt_layer(8, 1, 8, 2), 2).timeline(detail="all"), "'layer' or 'operation'"),
        (lambda: Step(gpt_layer(8, 1, 8, 2, recompute="selective"), 2).timeline(2), "choose one"),
        (lambda: Step(gpt_layer(8, 1, 8, 2), 2, optimizer="sgd"), "'foreach'"),
        (lambda: Step(gpt_layer(8, 1, 8, 2), 2, gradients="none"), "'late' or 'resident'"),
        (lambda: Step(gpt_layer(8, 1, 8, 2), 2, micro_batches=0), "at least one micro-batch"),
        (lambda: Step(gpt_layer(8, 1, 8, 2), 2, states="adamw"), "mixed"),
        (lambda: lesson_step(3, 1, 1, 0), "every 1, 2, 3"),
        (lambda: lesson_step(0, 1, 1), "at least one layer"),
        (lambda: calculator_step(gpt_layer(8, 1, 8, 2), 3, 100, 10, gradient_sizes=[1]), "5 gradients"),
    ],
)
def test_wrong_questions_are_answered_by_what_to_do(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


# --- faults that the checks above have to see -----------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["softmax", "gelu", "ln1", "fc2", "dropout1"])
def test_a_layer_that_forgets_a_tensor_does_not_agree_with_intervals(operation):
    layer = gpt_layer(6, 2, 8, 2)
    ends = head(6, 2, 8, 11), embedding(6, 2, 8, 11)
    forgetful = replace(
        layer, operations=tuple(replace(op, keeps=()) if op.name == operation else op for op in layer.operations)
    )
    fine = Step(forgetful, 3, head=ends[0], embedding=ends[1]).timeline(None, "operation")
    assert fine.during_bytes.tolist()[:-1] != [row[-1] for row in step_totals(layer, 3, *ends)]
