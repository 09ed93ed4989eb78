"""The stretch exercises: their references against trainmem.memory, their checks against right and wrong answers."""

import ast
import re
from functools import cache
from random import Random

import pytest

from autograded_tests.answers import cells, exercise
from autograded_tests.locked_cells import CELLS, code
from trainmem.course import self_study
from trainmem.course.cells import Cell, module_cells
from trainmem.course.self_study.largest_micro_batch import Peak, largest_micro_batch
from trainmem.course.self_study.llama_activations import llama_activation_bytes
from trainmem.course.self_study.loss_peak import loss_peak_bytes
from trainmem.memory import MODELS, Step, gpt_layer, head, llama_layer, model_step
from trainmem_solutions import model_params, peak_bytes

NAMES = ("llama_activations", "loss_peak", "largest_micro_batch")
RIGHT = [(name, answer) for name in NAMES for answer in exercise(name).right]
WRONG = [(name, answer) for name in NAMES for answer in exercise(name).wrong]


@cache
def runnable(name: str) -> list[Cell]:
    return [cell for cell in module_cells(name, self_study) if cell.kind in ("answer", "check", "code")]


def said_of(name: str, answer: str) -> dict[str, str | None]:
    """What each check of a stretch exercise says of an answer, None where it passes."""
    namespace: dict = {}
    exec(code(next(cell.source for cell in CELLS if cell.name == "checking"), "checking"), namespace)
    answers, said = cells(name, answer), {}
    for cell in runnable(name):
        source = answers.get(cell.name, cell.source)
        try:
            exec(code(source, cell.name), namespace)
        except namespace["CheckFailed"] as failed:
            said[cell.name] = failed.args[0]
        else:
            said |= {cell.name: None} if cell.kind == "check" else {}
    return said


def test_there_are_the_three_and_nothing_of_them_counts():
    assert set(NAMES) < set(self_study.MODULES)
    for name in NAMES:
        assert {cell.points for cell in runnable(name)} == {0}
        assert len(exercise(name).right) >= 6, "the plain one and five styles"
        assert len(exercise(name).wrong) >= 6


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_a_right_answer_passes(name, answer):
    assert set(said_of(name, answer).values()) == {None}


@pytest.mark.parametrize(("name", "answer"), WRONG)
def test_a_wrong_answer_is_told_its_mistake(name, answer):
    said = said_of(name, answer)
    fails = exercise(name).wrong[answer].fails
    assert {check for check, message in said.items() if message} == set(fails), said
    for check, phrase in fails.items():
        assert (phrase or "") in said[check]


@pytest.mark.parametrize("name", NAMES)
def test_every_mistake_that_a_check_knows_is_that_of_a_wrong_answer(name):
    """Each key of a table of mistakes is said to some answer of the list."""
    said = [message for answer in exercise(name).wrong for message in said_of(name, answer).values()]
    told = "\n".join(message for message in said if message)
    for cell in runnable(name):
        if cell.kind == "check":
            tables = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Dict)]
            keys = [key.value for table in tables for key in table.keys if isinstance(key, ast.Constant)]
            for mistake in (key for key in keys if re.search(" (is|are|has|have|grows) ", str(key))):
                assert f"when {mistake}." in told, mistake


def test_the_llama_layer_s_reference_is_the_sum_of_the_list():
    rng = Random("llama layers")
    for _ in range(200):
        kv, group, d = rng.choice((1, 2, 3, 8)), rng.choice((1, 2, 4, 8)), 2 * rng.randint(1, 64)
        a = kv * group
        shape = dict(s=rng.randint(1, 5000), b=rng.randint(1, 9), h=a * d, a=a, kv=kv, f=rng.randint(1, 30_000))
        for fused, swiglu in ((True, False), (True, True), (False, False), (False, True)):
            kinds = {"attention": "fused" if fused else "eager", "swiglu": "fused" if swiglu else "eager"}
            kept = llama_layer(**shape, **kinds).kept_bytes
            assert llama_activation_bytes(**shape, fused_attention=fused, fused_swiglu=swiglu) == kept


def test_the_loss_s_reference_is_the_simulator_s_highest_moment():
    rng = Random("losses")
    for _ in range(30):
        s, b, V = rng.randint(1, 300), rng.randint(1, 5), rng.randint(2, 3000)
        for loss in ("fp32", "autocast", "bf16"):
            for referenced in (False, True):
                end = head(s, b, 8, V, loss=loss, referenced=referenced)
                events = Step(gpt_layer(s, b, 8, 2), 2, head=end).timeline().events
                highest = max(event.during.get("logits", 0) for event in events)
                # The loss and the number of targets, two single numbers, are counted with the logits.
                assert 0 <= highest - loss_peak_bytes(s, b, V, loss, referenced) <= 8, (s, b, V, loss)
    with pytest.raises(ValueError, match="fp16"):
        loss_peak_bytes(1, 1, 1, "fp16")


def counted_up(peak, budget):
    b = 0
    while peak(b + 1) <= budget:
        b += 1
    return b


def test_the_micro_batch_s_reference_is_what_counting_up_finds():
    rng = Random("micro-batches")
    for _ in range(300):
        peak = Peak(*[(rng.randint(0, 5000), rng.randint(1, 300)) for _ in range(rng.randint(1, 4))])
        gpu_bytes, free = rng.randint(1, 40_000), rng.choice((0, 0.15, 0.25, 0.5))
        assert largest_micro_batch(peak, gpu_bytes, free) == counted_up(peak, (1 - free) * gpu_bytes)
        # Equality fits, wherever the search meets it.
        b = rng.randint(1, 40)
        assert largest_micro_batch(peak, peak(b), 0) == counted_up(peak, peak(b)) >= b


@pytest.mark.parametrize("attention", ["fused", "eager"])
def test_the_micro_batch_s_reference_on_the_exact_simulator(attention):
    model = MODELS["gpt2-124m"]

    @cache
    def peak(b):
        return model_step(model, 1024, b, attention=attention, optimizer="foreach").timeline().peak_bytes

    for gpu_bytes in (1e9, 4e9, 16e9, 24e9, 40e9):
        assert largest_micro_batch(peak, gpu_bytes) == counted_up(peak, 0.85 * gpu_bytes)


def test_the_worked_numbers_are_those_of_exercise_5():
    psi = model_params(24, 2048, 50257)
    shown = [node.value for node in ast.walk(ast.parse(checks_text())) if isinstance(node, ast.Constant)]
    for mode, largest in (("flash", 12), ("full", 62)):

        def peak(b, mode=mode):
            return peak_bytes(psi, 24, 2048, b, 2048, 16, 50257, mode)

        assert largest_micro_batch(peak, 80e9) == largest
        assert {16 * psi, peak(2) - peak(1)} <= {value for value in shown if isinstance(value, int)}


def checks_text() -> str:
    return "\n".join(cell.source for cell in runnable("largest_micro_batch") if cell.kind == "check")


def test_a_peak_prints_as_one_would_type_it():
    peak = Peak((20_984_463_360, 3_834_257_408), (900, 1))
    typed = eval(repr(peak))
    assert [typed(b) for b in (1, 2, 12)] == [peak(b) for b in (1, 2, 12)]
    with pytest.raises(ValueError, match="a whole number from 1 on, not 0"):
        peak(0)


@pytest.mark.parametrize("module", [*NAMES])
def test_only_the_standard_library_is_needed(module):
    for cell in runnable(module):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
                assert not any(re.match("trainmem|numpy|torch", name) for name in names)
