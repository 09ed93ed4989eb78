"""Bad input to the reference functions: an error of the right kind whose sentence says what is allowed; good input passes."""

import numpy as np
import pytest

import trainmem_solutions
from trainmem_solutions import MODULES

NAN, INF = float("nan"), float("inf")

# A legal call of each public function, by keyword.
LEGAL = {
    "params_per_layer": dict(h=64, mlp_ratio=4, n_kv_ratio=0.5, style="gpt"),
    "model_params": dict(L=2, h=64, V=100, mlp_ratio=4, n_kv_ratio=1, style="llama", tied=False, positions=10),
    "model_state_bytes": dict(psi=1000, K=12),
    "gpus_for_states": dict(psi=1000, gpu_bytes=80e9, K=12),
    "activation_bytes": dict(s=8, b=2, h=16, a=2, mode="full"),
    "memory_timeline": dict(L=5, c=2, A=34, k=2),
    "best_k": dict(L=5, c=2, A=34),
    "peak_bytes": dict(psi=960, L=2, s=8, b=1, h=16, a=2, V=32, mode="flash", zero=1, n_gpus=4, t=2, offload=False),
    "cheapest_fix": dict(
        psi=960, L=2, s=8, b=2, h=16, a=2, V=32, gpu_bytes=30e3, n_gpus=4, limited_by="compute", free=0.15
    ),
}

OTHER_KINDS = [None, "12", [3], 2 + 1j, True]
WHOLE = dict(kinds=OTHER_KINDS, values=[0, -1, 1.5, NAN, INF, -INF], allowed="a whole number, 1 or more")
NOT_NEGATIVE = WHOLE | dict(values=[-1, 0.5, NAN, INF], allowed="a whole number, 0 or more")
POSITIVE = dict(kinds=OTHER_KINDS, values=[0, -1, -0.5, NAN, INF], allowed="above 0")
NAME = dict(kinds=[None, 3, True, b"gpt", ["gpt"]], values=["no such name", "", "GPT"], allowed="")
TRUE_OR_FALSE = dict(kinds=[None, 0, 1, "yes", np.float64(1)], values=[], allowed="bool")
RULES = {
    **dict.fromkeys(("h", "L", "V", "psi", "s", "b", "a", "n_gpus", "t"), WHOLE),
    **dict.fromkeys(("K", "positions"), NOT_NEGATIVE),
    **dict.fromkeys(("mlp_ratio", "gpu_bytes", "c", "A"), POSITIVE),
    "n_kv_ratio": dict(kinds=OTHER_KINDS, values=[0, -0.5, 1.5, NAN, INF], allowed="above 0 and not above 1"),
    "free": dict(kinds=OTHER_KINDS, values=[-0.1, 1, 1.5, NAN, INF], allowed="from 0 on and below 1"),
    "zero": dict(kinds=OTHER_KINDS, values=[-1, 4, 0.5, NAN], allowed="a whole number from 0 to 3"),
    "k": WHOLE | dict(kinds=["12", [3], 2 + 1j, True]),
    "style": NAME | dict(allowed="gpt"),
    "mode": NAME | dict(allowed="baseline"),
    "limited_by": NAME | dict(allowed="compute"),
    "tied": TRUE_OR_FALSE,
    "offload": TRUE_OR_FALSE,
}
BAD = [
    (function, argument, value, error, RULES[argument]["allowed"] if error is ValueError else "")
    for function, arguments in LEGAL.items()
    for argument in arguments
    for error, values in ((TypeError, RULES[argument]["kinds"]), (ValueError, RULES[argument]["values"]))
    for value in values
]


def call(function, **options):
    return getattr(trainmem_solutions, function)(**options)


def test_every_public_function_is_tested_here():
    assert {*LEGAL, "MODULES"} == set(trainmem_solutions.__all__)
    assert len(MODULES) == 6


@pytest.mark.parametrize("function", LEGAL)
def test_a_legal_call_passes(function):
    assert call(function, **LEGAL[function]) is not None


@pytest.mark.parametrize(("function", "argument", "value", "error", "allowed"), BAD)
def test_a_bad_argument_is_named(function, argument, value, error, allowed):
    with pytest.raises(error) as caught:
        call(function, **LEGAL[function] | {argument: value})
    said = str(caught.value)
    assert function in said
    assert argument in said
    assert allowed in said
    assert len(said) < 200


@pytest.mark.parametrize(
    "bad",
    [dict(n_gpus=4, t=3), dict(n_gpus=2, t=4), dict(n_gpus=1, t=2)],
)
def test_tensor_parallelism_must_divide_the_gpus(bad):
    with pytest.raises(ValueError, match="peak_bytes.*t must divide n_gpus"):
        call("peak_bytes", **LEGAL["peak_bytes"] | bad)


@pytest.mark.parametrize("function", LEGAL)
def test_missing_and_unknown_arguments(function):
    with pytest.raises(TypeError, match="argument"):
        call(function)
    with pytest.raises(TypeError, match="surplus"):
        call(function, **LEGAL[function], surplus=1)


@pytest.mark.parametrize("function", LEGAL)
@pytest.mark.parametrize("number", [np.int64, np.int32, np.uint16])
def test_numpy_integers_are_whole_numbers(function, number):
    def converted(value):
        whole = isinstance(value, int) and not isinstance(value, bool)
        return number(value) if whole and value < 2**15 else value

    got = call(function, **{name: converted(value) for name, value in LEGAL[function].items()})
    want = call(function, **LEGAL[function])
    assert got == want


def test_whole_floats_where_large_numbers_are_written_so():
    assert call("model_state_bytes", psi=7e9) == 112e9
    assert call("gpus_for_states", psi=70e9, gpu_bytes=80_000_000_000) == 14
    assert call("peak_bytes", **LEGAL["peak_bytes"] | dict(psi=960.0)) == call("peak_bytes", **LEGAL["peak_bytes"])
    assert call("cheapest_fix", **LEGAL["cheapest_fix"] | dict(psi=960.0)) == call(
        "cheapest_fix", **LEGAL["cheapest_fix"]
    )


@pytest.mark.parametrize(
    ("function", "legal"),
    [
        ("params_per_layer", dict(n_kv_ratio=1)),
        ("params_per_layer", dict(n_kv_ratio=np.float64(0.125), mlp_ratio=np.float64(2.5))),
        ("params_per_layer", dict(style=np.str_("llama"))),
        ("model_params", dict(positions=0)),
        ("model_state_bytes", dict(K=0)),
        ("memory_timeline", dict(k=None)),
        ("memory_timeline", dict(k=100, c=0.5, A=np.float64(3))),
        ("peak_bytes", dict(zero=0)),
        ("peak_bytes", dict(zero=3, t=4, offload=True)),
        ("cheapest_fix", dict(free=0)),
        ("cheapest_fix", dict(gpu_bytes=1)),
    ],
)
def test_the_edges_of_what_is_allowed(function, legal):
    assert call(function, **LEGAL[function] | legal) is not None


def test_an_unknown_limited_by_is_refused_even_where_rung_5_is_not_reached():
    with pytest.raises(ValueError, match="limited_by must be"):
        call("cheapest_fix", **LEGAL["cheapest_fix"] | dict(gpu_bytes=80e9, limited_by="money"))
