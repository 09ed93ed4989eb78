"""The numbers that the course states, each with its literal value, from the reference answers."""

from fractions import Fraction
from math import sqrt

import pytest

from trainmem_solutions import (
    activation_bytes,
    best_k,
    cheapest_fix,
    gpus_for_states,
    memory_timeline,
    model_params,
    model_state_bytes,
    params_per_layer,
    peak_bytes,
)

LLAMA_7B = dict(L=32, h=4096, V=32000, mlp_ratio=11008 / 4096, style="llama", tied=False)
LLAMA_70B = dict(L=80, h=8192, V=32000, mlp_ratio=28672 / 8192, n_kv_ratio=1 / 8, style="llama", tied=False)
EXAMPLE = dict(psi=1_311_528_960, L=24, s=2048, b=8, h=2048, a=16, V=50257)
SHAPE = dict(s=2048, b=8, h=2048, a=16)
SBH = 33_554_432


@pytest.mark.parametrize(("h", "count"), [(1024, 12_596_224), (2048, 50_358_272)])
def test_a_gpt_layer(h, count):
    assert params_per_layer(h) == count


@pytest.mark.parametrize(
    ("L", "h", "count"),
    [(12, 768, 124_439_808), (24, 1024, 354_823_168), (36, 1280, 774_030_080), (48, 1600, 1_557_611_200)],
)
def test_gpt_2_in_four_sizes(L, h, count):
    assert model_params(L, h, 50257, positions=1024) == count


def test_the_example_with_rotary_positions_and_the_shorthand():
    count = model_params(24, 2048, 50257)
    assert count == 1_311_528_960
    assert round(12 * 24 * 2048**2 / count, 3) == 0.921


def test_gpt_3():
    assert model_params(96, 12288, 50257, positions=2048) == 174_604_259_328


@pytest.mark.parametrize(
    ("model", "count"),
    [
        (LLAMA_7B, 6_738_415_616),
        (LLAMA_7B | dict(L=40, h=5120, mlp_ratio=13824 / 5120), 13_015_864_320),
        (LLAMA_70B, 68_976_648_192),
        (LLAMA_7B | dict(mlp_ratio=14336 / 4096, n_kv_ratio=1 / 4, V=128256), 8_030_261_248),
    ],
)
def test_llama_models(model, count):
    assert model_params(**model) == count


def test_a_layer_of_the_70b_class_is_not_12_h_squared():
    layer = params_per_layer(8192, mlp_ratio=3.5, n_kv_ratio=1 / 8, style="llama")
    assert Fraction(layer - 2 * 8192, 8192**2) == Fraction("12.75")


def test_activations_and_logits_of_the_example():
    assert SHAPE["s"] * SHAPE["b"] * SHAPE["h"] == SBH
    assert activation_bytes(**SHAPE) == 3_825_205_248
    assert 24 * activation_bytes(**SHAPE) == 91_804_925_952
    assert 24 * activation_bytes(**SHAPE, mode="flash") == 27_380_416_512
    bare = peak_bytes(**EXAMPLE) - peak_bytes(**EXAMPLE | dict(V=1))
    assert bare + 4 * 2048 * 8 == 3_293_642_752  # logits: 4 bytes for each word at each token


@pytest.mark.parametrize(
    ("mode", "peak"), [("baseline", 116_083_032_064), ("flash", 51_658_522_624), ("full", 27_029_569_536)]
)
def test_totals_of_the_example(mode, peak):
    assert peak_bytes(**EXAMPLE, mode=mode) == peak


@pytest.mark.parametrize(("mode", "largest", "exact"), [("flash", 12, 12.26), ("full", 62, 62.22)])
def test_largest_micro_batch_on_80_gb_with_15_percent_free(mode, largest, exact):
    budget = Fraction(85, 100) * 80 * 10**9
    assert (
        peak_bytes(**EXAMPLE | dict(b=largest), mode=mode)
        <= budget
        < peak_bytes(**EXAMPLE | dict(b=largest + 1), mode=mode)
    )
    states = 16 * EXAMPLE["psi"]
    a_sequence = Fraction(peak_bytes(**EXAMPLE | dict(b=1), mode=mode)) - states
    assert round(float((budget - states) / a_sequence), 2) == exact


def test_eight_40_gb_gpus():
    plan = dict(mode="flash", zero=2, n_gpus=8)
    peak = peak_bytes(**EXAMPLE, **plan)
    assert peak == 35_592_292_864
    assert round(1 - peak / 40e9, 2) == 0.11
    assert peak_bytes(**EXAMPLE | dict(b=4), **plan) == 20_255_263_232
    assert cheapest_fix(**EXAMPLE, gpu_bytes=40e9, n_gpus=8) == ("micro-batch", 20_255_263_232)
    assert peak - 27_380_416_512 - 3_293_642_752 == 4_918_233_600  # ZeRO-2's model states on 8 GPUs


def test_states_of_7b_and_of_a_round_7e9():
    assert round(model_state_bytes(6_738_415_616) / 1e9, 1) == 107.8
    assert model_state_bytes(7e9) == 112e9


def test_the_llama_7b_shape_by_the_gpt_formula():
    layer = activation_bytes(4096, 1, 4096, 32)
    assert layer == 194 * 4096 * 4096
    assert round(32 * layer / 1e9, 2) == 104.15


def test_where_the_attention_core_overtakes_the_rest():
    def core(s):
        return activation_bytes(s, 1, 4096, 32) - activation_bytes(s, 1, 4096, 32, "flash")

    assert next(s for s in range(1, 2000) if core(s) > activation_bytes(s, 1, 4096, 32, "flash")) == 871
    assert 34 * 4096 / (5 * 32) == 870.4


def test_the_core_of_gpt_3():
    sbh = 2048 * 12288
    whole, rest = activation_bytes(2048, 1, 12288, 96), activation_bytes(2048, 1, 12288, 96, "selective")
    assert (Fraction(whole - rest, sbh), Fraction(whole, sbh)) == (80, 114)
    assert round((whole - rest) / whole, 2) == 0.70


def test_a_long_context():
    row, whole = activation_bytes(32_768, 1, 4096, 32, "flash"), activation_bytes(32_768, 1, 4096, 32)
    assert Fraction(whole - row, 32_768 * 4096) == 1280
    assert (round(row / 1e9, 2), round(32 * row / 1e9)) == (4.56, 146)


def formula(L, k, c=2, A=34):
    """The textbook's approximation of the peak."""
    return Fraction(L, k) * c + k * A


def peak(L, k, c=2, A=34):
    return max(memory_timeline(L, c, A, k))


def test_peaks_of_24_layers():
    assert [peak(24, k) for k in (6, 1)] == [formula(24, k) for k in (6, 1)] == [212, 82]
    assert best_k(24, 2, 34) == 1
    assert sqrt(24 * 2 / 34) == pytest.approx(1.188, abs=5e-4)


def test_peaks_of_80_and_34_layers():
    assert [peak(80, k) for k in (2, 1)] == [148, 194]
    assert [peak(34, k) for k in (1, 2)] == [102, 102]


def test_where_one_layer_a_segment_is_best():
    lowest = {}
    for L in range(1, 61):
        peaks = [peak(L, k) for k in range(1, L + 1)]
        lowest[L] = [k for k, value in enumerate(peaks, 1) if value == min(peaks)]
        assert best_k(L, 2, 34) in lowest[L]
    assert all(lowest[L] == [1] for L in range(1, 33))
    assert lowest[33] == lowest[34] == [1, 2]
    assert all(1 not in lowest[L] and 2 in lowest[L] for L in range(35, 61))


def test_70b_fills_fourteen_gpus():
    assert gpus_for_states(70_000_000_000) == gpus_for_states(70e9) == 14
    assert model_state_bytes(70_000_000_000) == 14 * 80 * 10**9
    assert gpus_for_states(70_000_000_001) == 15


def test_one_linear_layer():
    assert model_state_bytes(1024 * 1024) == 16_777_216


def test_states_of_13b_on_one_gpu():
    assert model_state_bytes(13_000_000_000) == 208_000_000_000


def test_the_calculator_s_model_with_all_gradients_resident():
    upper = peak_bytes(6_738_415_616, 32, 4096, 1, 4096, 32, 32000)
    assert upper == 212_491_894_784
    assert round(upper / 1e9, 1) == 212.5


def test_small_numbers_of_the_exercise_texts():
    assert params_per_layer(2) == 74
    assert model_state_bytes(1_000_000) == 16_000_000
    assert activation_bytes(4, 1, 2, 1) == 352
    assert memory_timeline(3, 2, 10, 2) == [2, 2, 4, 14, 2, 12, 22, 12, 0]
