"""The numbers behind the five figures, against the same worked out on paper."""

import doctest
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograded_tests.figures.oracles import (
    EXAMPLE,
    LLAMA_7B,
    agrees,
    climb,
    equal_units,
    found,
    held_by_layers,
    layer_parameters,
    one_gpu,
)
from trainmem.figures import checkpoints, fit, parameters, timeline, walk, yours
from trainmem.figures.svg import WIDE
from trainmem.memory import GPUS, MODELS

QUICK = settings(max_examples=40, deadline=None)


# --- timeline of one step ------------------------------------------------------------------------------------------


def peak_of(preset, recompute, k, reading, fused=False):
    model, s, b, _ = timeline.PRESETS[preset]
    numbers = timeline.step_numbers(model, s, b, recompute, k, reading, fused)
    return numbers.totals.max()


def test_llama_7b_in_equal_units_shows_the_published_peaks():
    wanted = equal_units(LLAMA_7B, 32, 4096, 1, 4096, 32, 32000)
    peaks = [peak_of("llama-7b", recompute, 1, "equal") for recompute in ("none", "selective", "full")]
    assert peaks == pytest.approx(wanted, rel=1e-12)
    assert [round(peak / 1e9, 1) for peak in peaks] == [199.5, 116.1, 110.7]


def test_llama_7b_says_what_each_gradients_own_size_gives():
    peaks = [peak_of("llama-7b", recompute, 1, "sizes") for recompute in ("none", "selective", "full")]
    assert [round(peak / 1e9, 1) for peak in peaks] == [199.5, 115.9, 110.8]
    picture = timeline.picture(*timeline.PRESETS["llama-7b"][:3], "none", 1, "equal", False)
    assert "199.5, 116.1, 110.7 GB" in picture.text
    assert "199.5, 115.9, 110.8 GB" in picture.text


def test_the_exact_reading_is_states_and_layers_and_three_copies_of_the_logits_at_the_loss():
    sbh, s, b, V = 2048 * 8 * 2048, 2048, 8, 50257
    formula = 14 * EXAMPLE + 24 * 114 * sbh + 12 * s * b * V
    exact = peak_of("1.3b", "none", 1, "exact")
    assert formula < exact < 1.002 * formula  # statistics and the head's own inputs come on top


@pytest.mark.parametrize("k", [None, 1, 2, 5, 6, 24])
@pytest.mark.parametrize("fused", [False, True])
def test_exercise_4s_reading_is_the_stack_on_top_of_the_states(k, fused):
    model, s, b, _ = timeline.PRESETS["1.3b"]
    numbers = timeline.step_numbers(model, s, b, "full" if k else "none", k or 1, "lesson", fused)
    sbh, A = 2048 * 8 * 2048, 34 * 2048 * 8 * 2048 + (0 if fused else 5 * 16 * 2048 * 2048 * 8)
    levels = held_by_layers(24, 2 * sbh, A, k)
    wanted = [16 * EXAMPLE + level for level in levels]
    wanted.insert(24, 16 * EXAMPLE + levels[23] + 4 * s * b * 50257)
    assert numbers.totals.tolist() == wanted


def test_a_readers_simulator_is_drawn_and_its_slip_shows():
    model, s, b, _ = timeline.PRESETS["1.3b"]

    def never_frees(L, c, A, k=None):
        return [min(i + 1, L) * A for i in range(2 * L)] if k is None else [0] * (3 * L)

    right = timeline.step_numbers(model, s, b, reading="yours", simulator=held_by_layers)
    wrong = timeline.step_numbers(model, s, b, reading="yours", simulator=never_frees)
    lesson = timeline.step_numbers(model, s, b, reading="lesson")
    assert right.totals.tolist() == lesson.totals.tolist()
    assert wrong.totals[-1] > right.totals[-1]


@pytest.mark.parametrize(
    ("simulator", "said"),
    [
        (lambda L, c, A, k=None: [1, 2], "gave 2 values for 48 events"),
        (lambda L, c, A, k=None: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_simulator_that_fails_is_told_so_in_the_figure(simulator, said):
    figure = timeline.step_timeline(simulator=simulator)
    assert said in repr(figure)


# --- parameters of one layer ---------------------------------------------------------------------------------------

TOTALS = {
    "gpt2-124m": 124_439_808,
    "gpt2-355m": 354_823_168,
    "gpt2-774m": 774_030_080,
    "gpt2-1.5b": 1_557_611_200,
    "1.3b": 1_311_528_960,
    "gpt3-175b": 174_604_259_328,
    "llama2-7b": 6_738_415_616,
    "llama2-13b": 13_015_864_320,
    "llama2-70b": 68_976_648_192,
    "llama3-8b": 8_030_261_248,
}


def numbers_of(model):
    sizes = (model.h, model.f, model.a // model.kv, model.L, model.V, model.tied, model.positions)
    return parameters.layer_numbers(model.style, *sizes)


@pytest.mark.parametrize("name", list(MODELS))
def test_the_bars_are_the_layer(name):
    model = MODELS[name]
    numbers = numbers_of(model)
    assert numbers.layer == layer_parameters(model.style, model.h, model.f, model.kv / model.a)
    assert sum(count for *_, count in numbers.weights) + numbers.others == numbers.layer
    assert numbers.approximate == 12 * model.L * model.h**2
    assert numbers.model == TOTALS.get(name, numbers.model)
    assert numbers.embedding == numbers.model - model.L * numbers.layer


def test_12lh2_is_0_921_of_the_example_and_a_70b_layer_is_12_75_h2():
    numbers = numbers_of(MODELS["1.3b"])
    assert round(numbers.approximate / numbers.model, 3) == 0.921
    assert "12.75 h²" in parameters.picture("x", "llama", 8192, 28672, 8, 80, 32000, False, 0).text


@given(
    style=st.sampled_from(["gpt", "llama"]),
    h=st.integers(1, 40).map(lambda n: 64 * n),
    f=st.integers(1, 99).map(lambda n: 64 * n),
    g=st.sampled_from([1, 2, 4, 8, 64]),
)
@QUICK
def test_any_layer_with_grouped_queries(style, h, f, g):
    numbers = parameters.layer_numbers(style, h, f, g, 2, 100, True, 0)
    assert numbers.layer == layer_parameters(style, h, f, 1 / g)
    assert {name: count for name, _, count in numbers.weights}["W_K"] == h * h // g


def test_a_readers_counter_is_held_against_the_layer():
    def without_norms(h, mlp_ratio=4, n_kv_ratio=1, style="gpt"):
        return layer_parameters(style, h, h * mlp_ratio, n_kv_ratio) - 4 * h

    def right(h, mlp_ratio=4, n_kv_ratio=1, style="gpt"):
        return layer_parameters(style, h, h * mlp_ratio, n_kv_ratio)

    sizes = ("x", "gpt", 1024, 4096, 1, 24, 50257, True, 0)
    assert "12,596,224 too" in parameters.picture(*sizes, right).text
    assert "12,592,128: 4,096 fewer" in parameters.picture(*sizes, without_norms).text
    assert "does not fit the figure: " in parameters.picture(*sizes, lambda h: h).text


# --- walk through one layer ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("style", "fused", "dropout", "sbh", "as2b"),
    [
        ("gpt", False, True, 34, 5),
        ("gpt", True, True, 34, 0),
        ("gpt", False, False, 32, 2),
        ("gpt", True, False, 32, 0),
        ("llama", True, False, 12 + 4 + 8 * 11008 / 4096, 0),
        ("llama", False, False, 12 + 4 + 8 * 11008 / 4096, 2),
    ],
)
def test_the_running_totals_reach_the_formula(style, fused, dropout, sbh, as2b):
    stops = walk.walk_numbers(style, fused, dropout).stops
    assert (stops[-1].sbh, stops[-1].as2b) == (sbh, as2b)
    so_far = [0.0, 0.0]
    for stop in stops:
        for *_, amount, core in stop.tensors:
            so_far[core] += amount
        assert [stop.sbh, stop.as2b] == so_far


def test_the_proofs_order_and_amounts():
    kept = [(stop.operation, [amount for *_, amount, _ in stop.tensors]) for stop in walk.walk_numbers().stops]
    assert [entry for entry in kept if entry[1]] == [
        ("ln1", [2]),
        ("q_proj", [2]),
        ("scores", [2, 2]),
        ("softmax", [2]),
        ("attention_dropout", [1]),
        ("weighted", [2, 2]),
        ("proj", [2]),
        ("dropout1", [1]),
        ("ln2", [2]),
        ("fc1", [2]),
        ("gelu", [8]),
        ("fc2", [8]),
        ("dropout2", [1]),
    ]


def test_a_readers_activation_bytes_is_held_against_the_list():
    def right(s, b, h, a, mode="baseline"):
        return 34 * s * b * h + (5 * a * s * s * b if mode == "baseline" else 0)

    assert ": the same." in walk.picture("gpt", False, True, 3, right).text
    assert ": the same." in walk.picture("gpt", True, True, 3, right).text
    assert "not the same" in walk.picture("gpt", False, True, 3, lambda *_: 7).text


# --- a checkpoint every k layers -----------------------------------------------------------------------------------


@given(L=st.integers(1, 128), A=st.sampled_from([34, 54, 114]), data=st.data())
@QUICK
def test_the_sawtooth_and_the_peaks_are_the_stacks(L, A, data):
    k = data.draw(st.integers(1, L))
    numbers = checkpoints.checkpoint_numbers(L, k, 2, A)
    levels = held_by_layers(L, 2, A, k)
    assert [c + a for c, a in zip(numbers.checkpoints, numbers.rebuilt, strict=True)] == levels
    assert numbers.peaks[k - 1] == max(levels)
    assert numbers.formula[k - 1] == pytest.approx(L / k * 2 + k * A)
    assert numbers.peaks[numbers.best - 1] == min(numbers.peaks)
    assert numbers.root == pytest.approx((2 * L / A) ** 0.5)


def test_published_checkpointing_numbers():
    assert checkpoints.C == 2
    peaks = checkpoints.checkpoint_numbers(24, 6, 2, 34).peaks
    assert (peaks[5], peaks[0]) == (212, 82)
    peaks = checkpoints.checkpoint_numbers(80, 2, 2, 34).peaks
    assert (peaks[1], peaks[0]) == (148, 194)
    assert "102 at k = 1 and 2" in checkpoints.picture(34, 1, 34).sentence
    best = {L: checkpoints.checkpoint_numbers(L, 1, 2, 34).best for L in (1, 32, 35, 60)}
    assert (best[1], best[32], best[35], best[60]) == (1, 1, 2, 2)


def test_a_step_takes_one_more_forward_pass_whatever_k():
    assert pytest.approx(4) == checkpoints.CHECKPOINTED_STEP
    assert "4 forward passes instead of 3, whatever k: +33%" in checkpoints.picture(24, 6, 34).text


def test_a_readers_simulator_is_compared_event_by_event():
    def keeps_a_checkpoint(L, c, A, k=None):
        levels = held_by_layers(L, c, A, k)
        return [*levels[:-1], levels[-1] + c]

    assert "is the right one" in checkpoints.picture(6, 2, 34, simulator=held_by_layers).text
    text = checkpoints.picture(6, 2, 34, simulator=keeps_a_checkpoint).text
    assert "differs first after event 18: 2 for 0" in text


# --- does it fit ---------------------------------------------------------------------------------------------------

names = st.sampled_from(list(MODELS))


@given(
    name=names,
    s=st.sampled_from([1, 77, 2048, 8192]),
    b=st.integers(1, 9),
    n_gpus=st.sampled_from([1, 2, 4, 8, 16, 64]),
    fixes=st.builds(
        fit.Fixes,
        st.booleans(),
        st.booleans(),
        st.integers(0, 3),
        st.integers(0, 3),
        st.sampled_from([1, 2, 4, 8]),
        st.booleans(),
    ),
)
@settings(max_examples=150, deadline=None)
def test_the_parts_of_one_gpu(name, s, b, n_gpus, fixes):
    case = fit.Case(name, s, b, "h100", n_gpus)
    if n_gpus % fixes.t:
        with pytest.raises(ValueError, match="t"):
            fit.fit_numbers(case, fixes)
        return
    model = MODELS[name]
    mode = "full" if fixes.checkpoint else "flash" if fixes.flash else "baseline"
    wanted = one_gpu(
        model.parameters,
        model.L,
        s,
        max(b >> fixes.halvings, 1),
        model.h,
        model.a,
        model.V,
        mode=mode,
        zero=fixes.zero,
        n_gpus=n_gpus,
        t=fixes.t,
        offload=fixes.offload,
    )
    assert fit.fit_numbers(case, fixes) == pytest.approx(wanted, rel=1e-9, abs=64)


def test_the_worked_example():
    one, eight = fit.Case("1.3b", 2048, 8, "a100-80"), fit.Case("1.3b", 2048, 8, "a100-40", 8)
    totals = [
        sum(fit.fit_numbers(case, fixes).values())
        for case, fixes in (
            (one, fit.Fixes()),
            (one, fit.Fixes(flash=True)),
            (one, fit.Fixes(flash=True, checkpoint=True)),
            (eight, fit.Fixes(flash=True, zero=2)),
            (eight, fit.Fixes(flash=True, zero=2, halvings=1)),
        )
    ]
    assert totals == [116_083_032_064, 51_658_522_624, 27_029_569_536, 35_592_292_864, 20_255_263_232]
    assert "Over the 15% line: only 11.0% stays free." in fit.picture(eight, fit.Fixes(flash=True, zero=2)).text


@given(
    name=names,
    gpu=st.sampled_from(list(GPUS)),
    s=st.sampled_from([512, 2048, 4096]),
    b=st.sampled_from([1, 3, 8, 24]),
    n_gpus=st.sampled_from([1, 2, 3, 6, 8, 16]),
    limited_by=st.sampled_from(["compute", "communication"]),
)
@settings(max_examples=150, deadline=None)
def test_the_ladder_is_climbed_rung_by_rung(name, gpu, s, b, n_gpus, limited_by):
    model = MODELS[name]
    case = fit.Case(name, s, b, gpu, n_gpus)
    shape = (model.parameters, model.L, s, b, model.h, model.a, model.V)
    wanted = climb(*shape, GPUS[gpu].memory_bytes, n_gpus, limited_by)
    # A rung that gains nothing (ZeRO-2 and the like always gain; a checkpoint may not) is passed over.
    lower = [
        rung for i, rung in enumerate(wanted) if i == 0 or rung[1] < min(peak for _, peak in wanted[:i]) * (1 - 1e-9)
    ]
    rungs = fit.ladder_of(case, limited_by)
    assert [rung for rung, *_ in rungs] == [rung for rung, _ in lower]
    for (_, fixes, peak), (_, right) in zip(rungs, lower, strict=True):
        assert peak == pytest.approx(right, rel=1e-9)
        assert sum(fit.fit_numbers(case, fixes).values()) == pytest.approx(right, rel=1e-9)


def test_the_switches_say_what_moves():
    case = fit.Case("1.3b", 2048, 8, "a100-80")
    text = fit.picture(case, fit.Fixes(flash=True), fit.Fixes()).text
    moved, still = found(r"What moved: (.*); what did not: (.*)\.</p><p>The", text)
    assert moved == "activations 91.8 → 27.4 GB"
    assert still == "weights, gradients, optimizer states, logits"
    text = fit.picture(fit.Case("1.3b", 2048, 8, "h100", 8), fit.Fixes(zero=2), fit.Fixes()).text
    moved, still = found(r"What moved: (.*); what did not: (.*)\.</p><p>The", text)
    assert still == "weights, activations, logits"
    after = found(r"gradients 2.62 → ([\d.]+) GB", moved)[0]
    assert agrees(after, 2 * EXAMPLE / 8 / 1e9)


def test_a_readers_ladder_is_climbed():
    figure = fit.does_it_fit(ladder=lambda *_, **__: ("flash", 51_658_522_624))
    assert "116.1 GB" in repr(figure)
    assert (
        "does not fit the figure: "
        in fit.picture(fit.Case("1.3b", 2048, 8, "t4"), fit.Fixes(), ladder=lambda: None).text
    )


def test_every_sentence_is_short_enough_for_a_notebook():
    """Jupyter cuts the text of a widget at 110 characters."""
    said = [
        fit.picture(fit.Case(name, 4096, 1, gpu, 1024), fit.Fixes(True, True, 3, 0, 8, True)).sentence
        for name in MODELS
        for gpu in GPUS
    ]
    said += [
        timeline.picture(*preset[:3], kind, 1, reading, False).sentence
        for preset in timeline.PRESETS.values()
        for kind in timeline.RECOMPUTATION
        for reading in timeline.READINGS
    ]
    said += [
        walk.picture(style, fused, dropout, 1).sentence
        for style in ("gpt", "llama")
        for fused in (0, 1)
        for dropout in (0, 1)
    ]
    said += [checkpoints.picture(L, 1, 114).sentence for L in (1, 7, 33, 128)]
    assert [sentence for sentence in said if len(sentence) > 110] == []


# --- what a reader's function gives --------------------------------------------------------------------------------

DRIVEN = {
    timeline.step_timeline: "simulator",
    parameters.layer_parameters: "counter",
    walk.layer_walk: "counter",
    checkpoints.checkpoint_every_k: "simulator",
    fit.does_it_fit: "ladder",
}


@pytest.fixture(params=DRIVEN, ids=lambda figure: figure.__name__)
def driven(request):
    """A figure as a function of a reader's function."""
    return lambda function: request.param(**{DRIVEN[request.param]: function})


def shown(figure):
    """The picture and the text of a figure."""
    return figure._picture.value, figure._numbers.value


def test_the_example_of_how_a_function_is_asked_runs():
    assert doctest.testmod(yours).attempted == 2
    assert doctest.testmod(yours).failed == 0


def test_a_stub_is_said_in_one_line_and_nothing_is_drawn(driven):
    def not_yet(*_, **__):
        raise NotImplementedError()

    def calls_it(*arguments, **options):
        return not_yet(*arguments, **options)

    for function in (not_yet, calls_it):
        figure = driven(function)
        assert repr(figure) == "not_yet: not written yet"
        assert shown(figure) == ("", "<p>not_yet: not written yet</p>")


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda *_, **__: 1 / 0, ("raised ZeroDivisionError: division by zero",)),
        (lambda *_, **__: None, ("gave None, which is no number", "does not fit the figure: ")),
        (lambda: None, ("does not fit the figure: ",)),
    ],
)
def test_what_a_function_raises_is_said_and_no_traceback_comes(driven, function, said):
    text = escaped(shown(driven(function))[1])
    assert any(words in text for words in said), text
    assert ("raised" in text) == ("raised" in said[0])


def escaped(text):
    return text.replace("&#x27;", "'")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_cannot_be_drawn_is_said(value):
    gives = {"counter": lambda *_, **__: value, "ladder": lambda *_, **__: ("flash", value)}
    gives["simulator"] = lambda L, c, A, k=None: [value] * (3 * L if k else 2 * L)
    for figure, name in DRIVEN.items():
        picture, text = shown(figure(**{name: gives[name]}))
        assert f"Your function gave {value}, which cannot be drawn." in text
        assert not re.search(r' (x|y|d|width|height)="[^"]*(nan|inf)', picture)


def test_a_readers_count_is_drawn_below_the_model():
    sizes = ("x", "gpt", 64, 256, 1, 3, 100, True, 0)
    right = parameters.layer_numbers(*sizes[1:]).layer
    for count in (right, right - 1000, 3 * right):
        picture = parameters.picture(*sizes, counter=lambda h, count=count, **_: count)
        drawn = picture.draw(WIDE)
        assert f"your params_per_layer: {count:,} =" in drawn
        assert picture.sentence.endswith(f"; yours {count:,}")
    assert "yours" not in parameters.picture(*sizes).sentence
    assert "your params" not in parameters.picture(*sizes).draw(WIDE)


def test_a_readers_bytes_are_drawn_beside_the_list():
    given = []

    def counter(s, b, h, a, mode):
        given.append(mode)
        return 2e9

    for fused, right in ((False, "3.83 GB"), (True, "1.14 GB")):
        picture = walk.picture("gpt", fused, True, 99, counter)
        assert "your layer 2.00 GB" in picture.draw(WIDE)
        assert f"of {right}" in picture.draw(WIDE)
    assert given == ["baseline", "flash"]
    assert "your layer" not in walk.picture("llama", False, True, 99, counter).draw(WIDE), (
        "another layer than it counts"
    )


def test_a_readers_rung_is_drawn_with_its_peak():
    case = fit.Case("1.3b", 2048, 8, "a100-80")
    picture = fit.picture(case, fit.Fixes(), ladder=lambda *_, **__: (None, 2e11))
    assert "your cheapest_fix: nothing fits, 200.0 GB" in picture.draw(WIDE)
    assert "Your ladder ends without a fit: 200.0 GB" in picture.text
    assert "your cheapest_fix" not in fit.picture(case, fit.Fixes()).draw(WIDE)


def test_a_function_that_calls_another_one_is_asked_again_when_the_figure_is_made_again():
    level = [1.0]

    def simulator(L, c, A, k=None):
        return [level[0]] * (3 * L if k else 2 * L)

    def ladder(*_, **__):
        return "flash", level[0] * 1e9

    before = [
        repr(checkpoints.checkpoint_every_k(simulator=simulator)),
        repr(timeline.step_timeline(simulator=simulator)),
    ]
    before.append(repr(fit.does_it_fit(ladder=ladder)))
    level[0] = 7e9
    after = [
        repr(checkpoints.checkpoint_every_k(simulator=simulator)),
        repr(timeline.step_timeline(simulator=simulator)),
    ]
    after.append(repr(fit.does_it_fit(ladder=ladder)))
    assert all(a != b for a, b in zip(before, after, strict=True))


def test_buttons_leave_what_a_wrong_function_says_in_place():
    def buttons(figure):
        return [w for row in figure.children for w in getattr(row, "children", ()) if hasattr(w, "click")]

    wanted, pressed = {"Best k", "To the peak", "Climb one rung"}, set()
    for figure, name in DRIVEN.items():
        made = figure(**{name: lambda *_, **__: 1 / 0})
        text = made._numbers.value
        for press in buttons(made):
            if press.description in wanted:
                pressed.add(press.description)
                press.click()
                assert "ZeroDivisionError" in made._numbers.value
                assert made._numbers.value == text
    assert pressed == wanted
