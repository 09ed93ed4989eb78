"""The checks against whole answers: right ones pass in full, wrong ones are told what is wrong, whatever is drawn."""

import ast
import re
from fractions import Fraction
from inspect import signature

import pytest

from autograded_tests.answers import NAMES, edited, exercise, notebook_cells
from autograded_tests.locked_cells import CELLS, asked_of, asking, checks_of, graded, literals, right_functions, run
from trainmem_solutions.opening import agrees

SEEDS = range(25)
MANY_SEEDS = range(200)
RIGHT = [(name, answer) for name in NAMES for answer in exercise(name).right]
WRONG = [(name, answer) for name in NAMES for answer in exercise(name).wrong]


def each_right(test):
    return pytest.mark.parametrize(("name", "answer"), RIGHT)(test)


def each_wrong(test):
    return pytest.mark.parametrize(("name", "answer"), WRONG)(test)


def passes_in_full(name, answer, seeds):
    answers, checks = notebook_cells(**{name: answer}), checks_of(name)
    for seed in seeds:
        assert run(answers, checks, seed) == dict.fromkeys(checks), seed


def is_rejected(name, answer, seeds, hidden_seeds):
    answers, fails, checks = notebook_cells(**{name: answer}), exercise(name).wrong[answer].fails, checks_of(name)
    assert set(fails) <= set(checks)
    for seed in seeds:
        # The checks that the mistake does not concern: some seeds will do.
        said = graded(answers, checks if seed % 12 == 0 else fails, seed)
        assert {check for check, message in said.items() if message} == set(fails), (seed, said)
        for check, phrase in fails.items():
            assert (phrase or "") in said[check], seed
    for seed in hidden_seeds:
        # The hidden cases alone reject it too: to answer the shown ones by heart is of no use.
        hidden = graded(answers, fails, seed, "hidden")
        assert all(hidden.values()), (seed, hidden)
        for check, message in hidden.items():
            says_nothing_of_the_case(check, message)


def says_nothing_of_the_case(check, message):
    assert not re.search(r"\b(expected|got)\b", message), message
    numbers = set(re.findall(r"\d[\d,.]*", re.sub(r"returned a \w+ of \d+", "", message)))  # its own length may be said
    known = literals(check)
    assert all(number.rstrip(".,") in known for number in numbers), message
    assert len(message.splitlines()) == 1, message


@each_right
def test_a_right_answer_passes_in_full(name, answer):
    passes_in_full(name, answer, SEEDS)


@pytest.mark.long
@each_right
def test_a_right_answer_passes_in_full_over_many_seeds(name, answer):
    passes_in_full(name, answer, MANY_SEEDS)


@each_wrong
def test_a_wrong_answer_fails_the_checks_of_its_mistake_alone(name, answer):
    is_rejected(name, answer, SEEDS, SEEDS[::4])


@pytest.mark.long
@each_wrong
def test_a_wrong_answer_fails_the_checks_of_its_mistake_alone_over_many_seeds(name, answer):
    is_rejected(name, answer, MANY_SEEDS, MANY_SEEDS)


def visible_mistakes(name, answer):
    """What the visible checks call the mistakes of one answer, case by case; and all names that they know there."""
    shown, _ = asking(notebook_cells(**{name: answer}), checks_of(name), part="visible")
    tables = [question for question in shown if isinstance(question.mistakes, dict)]
    known = {(question.check, question.text, mistake) for question in tables for mistake in question.mistakes}
    named = {
        (question.check, question.text, question.said.split(" comes out when ")[-1].rstrip("."))
        for question in shown
        if question.said
    }
    return known, named


@pytest.mark.parametrize("name", NAMES)
def test_every_value_in_a_visible_table_comes_from_a_real_wrong_answer(name):
    tensors = re.compile(r"is (missing|counted twice), for example$")  # a list, tested below tensor by tensor
    known, met = set(), set()
    for answer in exercise(name).wrong:
        of_this, named = visible_mistakes(name, answer)
        known, met = known | of_this, met | named
    assert {mistake for mistake in known - met if not tensors.search(mistake[-1])} == set()


def test_a_missing_or_doubled_tensor_is_found_by_its_size():
    answers = notebook_cells()
    for unit, sizes in (("s * b * h", (1, 2, 8)), ("a * s * s * b", (1, 2))):
        for size in sizes:
            for sign, word in (("-", "missing"), ("+", "counted twice")):
                changed = edited(
                    answers["activation_bytes"], ("34 * sbh + 5 * core", f"34 * sbh + 5 * core {sign} {size} * {unit}")
                )
                said = run(answers | {"activation_bytes": changed}, ["check_activation_bytes_baseline"])
                [message] = said.values()
                name = message.split(" comes out when ")[-1]
                assert name.endswith(f" is {word}, for example.")
                bytes_each = {"mask": 1, "GeLU": 8}
                assert next((n for part, n in bytes_each.items() if part in name), 2) == size
                assert any(part in name for part in ("softmax", "weights")) is (unit != "s * b * h")


def test_every_branch_of_timeline_difference_is_met_by_an_answer():
    source = next(cell.source for cell in CELLS if cell.name == "checking")
    [function] = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name == "timeline_difference"
    ]
    strings = [
        node.value for node in ast.walk(function) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    sentences = {text for text in strings if " " in text.strip() and "\n" not in text} - {
        "more than ",
        " values for ",
        " events",
    }
    sentences = {text for text in sentences if len(text) > 15}
    told = ""
    for answer in exercise("timeline").wrong:
        questions, _ = asking(notebook_cells(timeline=answer), checks_of("timeline")[:3])
        told += " ".join(question.said or "" for question in questions)
    assert len(sentences) >= 19
    assert {text for text in sentences if text not in told} == set()


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_that_knows_the_shown_cases_by_heart_gains_nothing(name):
    """Right in every shown case, and a ValueError wherever one is shown to be due; otherwise a number from the air."""
    functions = exercise(name).plain
    for seed in (1, 2, 3):
        questions, _ = asking(notebook_cells(), checks_of(name), seed)
        shown = {(q.function, repr(q.args), repr(sorted(q.options.items()))): q for q in questions if not q.hidden}

        def by_heart(function, shown=shown):
            def answer(*args, **options):
                question = shown.get((function, repr(args), repr(sorted(options.items()))))
                if question is None:
                    return 1
                if question.kind == "refused":
                    raise ValueError
                return question.want

            return answer

        cheats = {function: by_heart(function) for function in functions}
        visible = run(notebook_cells(), checks_of(name), seed, "visible", bound=cheats)
        assert visible == dict.fromkeys(checks_of(name))
        assert all(run(notebook_cells(), checks_of(name), seed, bound=cheats).values())


def test_the_log_sum_exp_is_remarked_and_shown_once():
    for name, answer in (("activations", "with the log-sum-exp under flash"), ("cheapest_fix", "with the log-sum-exp")):
        namespaces = []
        run(
            notebook_cells(**{name: answer}), [checks_of(name)[1 - (name == "cheapest_fix")]], prepare=namespaces.append
        )
        [namespace] = namespaces
        assert len(namespace["REMARKS"]) == 1
        assert "full marks" in namespace["REMARKS"][0]
        namespace["show_remarks"]()
        assert namespace["REMARKS"] == []


def questions_of_right_answers(seeds):
    for seed in seeds:
        for name in NAMES:
            questions, said = asking(notebook_cells(), checks_of(name), seed)
            assert said == dict.fromkeys(checks_of(name))
            yield seed, name, questions


def plain_numbers(values):
    return all(type(value) in (int, float) for value in values if not isinstance(value, (str, bool)))


def test_what_is_asked_keeps_the_rules():
    positional = {name: list(signature(function).parameters) for name, function in right_functions().items()}
    required = {
        name: [p.name for p in signature(function).parameters.values() if p.default is p.empty]
        for name, function in right_functions().items()
    }
    smallest, gpu_counts, tensor_degrees, refused, repeated = {}, set(), set(), set(), set()
    for seed, _, questions in questions_of_right_answers(range(20)):
        seen = set()
        for q in questions:
            assert plain_numbers([*q.args, *q.options.values()]), q
            # Optional parameters go by keyword, required ones in their place.
            assert len(q.args) == len(required[q.function])
            assert set(q.options) <= set(positional[q.function]) - set(required[q.function])
            at = dict(zip(required[q.function], q.args, strict=True)) | q.options
            if q.kind == "refused":
                refused.add((q.function, q.hidden))
                continue
            numbers = [
                value
                for value in (q.want if isinstance(q.want, (list, tuple)) else [q.want])
                if not isinstance(value, (str, type(None)))
            ]
            assert all(0 <= number < 2**53 for number in numbers)
            size = max(numbers)
            smallest[q.function] = min(size, smallest.get(q.function, size))
            key = (q.function, q.text)
            if q.hidden and key in seen:
                repeated.add((seed, q.check))
            seen.add(key)
            if "h" in at:
                for ratio in ("mlp_ratio", "n_kv_ratio"):
                    assert (at.get(ratio, 1) * at["h"]).is_integer() if isinstance(at.get(ratio), float) else True
            if q.function == "memory_timeline":
                assert at["L"] <= 128
                assert at["c"] > 0
                assert at["A"] > 0
            if "n_gpus" in at:
                n, t = at["n_gpus"], at.get("t", 1)
                assert n < 10**4
                assert n % t == 0
                assert at["psi"] % n == 0
                gpu_counts.add(n)
                tensor_degrees.add(t)
            if q.function == "gpus_for_states":
                assert q.want < 10**4
                filled = Fraction(at["psi"]) * (4 + at.get("K", 12)) / Fraction(at.get("gpu_bytes", 80e9))
                off = abs(filled - round(filled)) / filled
                assert off == 0 or off >= Fraction(1, 10**6) * Fraction(999, 1000)
            for other in (q.mistakes or {}).values() if isinstance(q.mistakes, dict) else ():
                if not isinstance(q.want, tuple) and not agrees(other, q.want):
                    assert abs(other - q.want) > 1e-6 * abs(q.want), q
    assert {3, 6, 12, 16} <= gpu_counts
    assert {1, 2, 4} <= tensor_degrees
    assert refused >= {
        (f, h)
        for f in ("params_per_layer", "activation_bytes", "memory_timeline", "cheapest_fix")
        for h in (True, False)
    }
    assert all(size < 10**6 for size in smallest.values()), smallest
    # Every function is asked something for the second time, whatever is drawn.
    assert {asked_of(check) for _, check in repeated} == set(right_functions())


def test_no_budget_lies_near_a_peak_or_between_two_that_are_both_right():
    def peaks(at, lse):
        """Every rung's peak; lse: where the log-sum-exp is counted too."""
        peak_bytes = right_functions()["peak_bytes"]
        model = {key: at[key] for key in ("psi", "L", "s", "b", "h", "a", "V")}
        n, plan, b = at.get("n_gpus", 1), {}, at["b"]
        changes = [{}, {"mode": "flash"}] + [{"zero": 1}, {"zero": 2}] * (n > 1)
        while b > 1:
            b //= 2
            changes.append({"b": b})
        fifth = [{"zero": 3}] * (n > 1) + [{"mode": "full"}]
        changes += fifth if at.get("limited_by", "compute") == "compute" else fifth[::-1]
        changes += [{"t": t} for t in (2, 4, 8) if n % t == 0] + [{"offload": True}]
        for change in changes:
            plan |= change
            now = model | plan
            kept = {"flash": at["L"], "full": 1 if lse == "everywhere" else 0}.get(plan.get("mode"), 0) if lse else 0
            yield peak_bytes(**now, n_gpus=n) + 4 * at["a"] * at["s"] * now["b"] * kept / plan.get("t", 1)

    names = [p.name for p in signature(right_functions()["cheapest_fix"]).parameters.values() if p.default is p.empty]
    for _, name, questions in questions_of_right_answers(range(25)):
        for q in questions if name == "cheapest_fix" else ():
            if q.function == "cheapest_fix" and q.kind == "gives":
                at = dict(zip(names, q.args, strict=True)) | q.options
                budget = (1 - at.get("free", 0.15)) * at["gpu_bytes"]
                fits = []
                for lse in ("", "under flash", "everywhere"):
                    rungs = list(peaks(at, lse))
                    fits.append([rung <= budget for rung in rungs].index(True) if min(rungs) <= budget else None)
                    exact = [rung for rung in rungs if rung == budget]
                    assert not exact or at["free"] in (0.25, 0.5)
                    assert all(abs(rung - budget) > 1e-6 * budget for rung in rungs if rung not in exact)
                assert len(set(fits)) == 1, q
