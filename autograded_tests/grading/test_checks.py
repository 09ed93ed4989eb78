"""Marks of whole submissions: right answers of any style, stubs, mistakes that cost once, what the student reads."""

import random
from dataclasses import replace

import pytest

from autograded_tests.grading.conftest import SALT, SHORT, marks
from autograded_tests.notebooks import FUNCTIONS
from trainmem.grading.assignment import Assignment
from trainmem.grading.checks import Grader
from trainmem.grading.sandbox import Channel
from trainmem.grading.trial import StudentCell


def test_right_answers_get_full_marks_and_nothing_to_read(grader, right_cells, marks_without):
    grade = grader.grade(right_cells)
    assert marks(grade) == marks_without()
    assert grade.score == 50
    assert not any(result.message for result in grade.results)
    assert grade.notes == ()


def test_results_come_in_the_notebook_s_order(grader, right_cells, assignment):
    assert [result.check for result in grader.grade(right_cells).results] == [c.name for c in assignment.checks]


def test_an_empty_submission_gets_nothing_and_is_told_what_is_not_written(grader, assignment):
    for cells in ([], [StudentCell(answer.stub, answer.exercise, answer.name) for answer in assignment.answers]):
        grade = grader.grade(cells)
        assert grade.score == 0
        for check, result in zip(assignment.checks, grade.results, strict=True):
            assert result.message == f"{check.target}: not written yet"


@pytest.mark.parametrize("answer", FUNCTIONS)
@pytest.mark.parametrize(
    "wrong",
    ["return 1", "raise KeyError('h')", "return None", "import os; os._exit(1)", "while True: pass", "return -(", None],
    ids=["wrong", "raises", "nothing", "dies", "hangs", "no Python", "stub"],
)
def test_a_mistake_costs_only_its_own_checks(wrong, answer, grader, changed, marks_without, assignment):
    stub = next(a.stub for a in assignment.answers if a.name == answer)
    source = stub if wrong is None else f"def {answer}(*arguments, **options):\n    {wrong}\n"
    grade = grader.grade(changed({answer: source}))
    assert marks(grade) == marks_without(answer)
    for result in grade.results:
        assert not result.with_right_functions or result.score


@pytest.mark.parametrize(
    "cells",
    [
        {
            "after": {"params_per_layer": ["one_layer = params_per_layer"]},
            "uses": "one_layer(h, mlp_ratio, n_kv_ratio, style)",
        },
        {
            "after": {
                "params_per_layer": ["def my_layer(*sizes, **more):\n    return params_per_layer(*sizes, **more)"]
            },
            "uses": "my_layer(h, mlp_ratio, n_kv_ratio=n_kv_ratio, style=style)",
        },
        {
            "after": {"params_per_layer": ["import functools\nparams_per_layer = functools.cache(params_per_layer)"]},
            "uses": "params_per_layer(h, mlp_ratio, n_kv_ratio, style)",
        },
        {"after": {}, "uses": "params_per_layer(h, mlp_ratio, n_kv_ratio, style, True)"},
        {"after": {}, "uses": "params_per_layer(h, mlp_ratio, n_kv_ratio, style, bias=False, verbose=True)"},
        {"after": {}, "uses": "layer(h, mlp_ratio, n_kv_ratio, style)"},
    ],
    ids=["renamed", "wrapped", "cached", "extra positional", "extra keywords", "captured as a default"],
)
def test_right_functions_reach_a_later_answer_however_it_uses_the_earlier_one(cells, grader, changed, marks_without):
    wrong = """def params_per_layer(h, mlp_ratio=4, n_kv_ratio=1, style="gpt", bias=True, verbose=False):
    return 3"""
    uses = cells["uses"]
    right = f"""
def model_params(L, h, V, mlp_ratio=4, n_kv_ratio=1, style="gpt", tied=True, positions=0, layer=params_per_layer):
    return L * {uses} + (V * (2 - tied) + positions) * h + (2 * h if style == "gpt" else h)"""
    grade = grader.grade(changed({"params_per_layer": wrong, "model_params": right}, after=cells["after"]))
    assert marks(grade) == marks_without("params_per_layer")


def test_a_call_by_the_student_s_own_order_and_names_reaches_the_right_function(grader, changed, marks_without):
    wrong = "def params_per_layer(hidden, style='gpt', n_kv_ratio=1, mlp_ratio=4): return 3"
    right = """def model_params(L, h, V, mlp_ratio=4, n_kv_ratio=1, style="gpt", tied=True, positions=0):
    return L * params_per_layer(h, style, n_kv_ratio, mlp_ratio) + (V * (2 - tied) + positions) * h \\
        + (2 * h if style == "gpt" else h)"""
    grade = grader.grade(changed({"params_per_layer": wrong, "model_params": right}))
    assert marks(grade) == marks_without("params_per_layer")


def test_a_right_function_is_never_bound_for_the_answer_itself(grader, changed, marks_without):
    """Nor does a call-back reach the answers that come after it."""
    source = "def best_k(L, c, A):\n    return globals()['cheapest_fix'] and globals()['best_k'](L, c, A)"
    assert marks(grader.grade(changed({"best_k": source}))) == marks_without("best_k")


def test_the_better_result_counts(grader, changed, marks_without):
    """An answer that works only together with the student's own earlier one keeps its marks."""
    together = changed(
        {
            "model_state_bytes": "def model_state_bytes(psi, K=12, parts=False):\n"
            "    return (4 * psi, K * psi) if parts else (4 + K) * psi",
            "gpus_for_states": "from fractions import Fraction\nfrom math import ceil\n"
            "def gpus_for_states(psi, gpu_bytes=80e9, K=12):\n"
            "    return ceil(Fraction(sum(model_state_bytes(psi, K, parts=True))) / Fraction(gpu_bytes))",
        }
    )
    assert marks(grader.grade(together)) == marks_without()


RIGHT_IN_OTHER_WORDS = {
    "NumPy scalars": {
        "model_state_bytes": "import numpy as np\ndef model_state_bytes(psi, K=12): return np.float64(psi) * (4 + K)"
    },
    "an array without axes": {
        "model_state_bytes": "import numpy as np\ndef model_state_bytes(psi, K=12): return np.array(psi * (4 + K))"
    },
    "a fraction": {
        "model_state_bytes": "from fractions import Fraction\n"
        "def model_state_bytes(psi, K=12): return Fraction(psi) * (4 + K)"
    },
    "a decimal": {
        "model_state_bytes": "from decimal import Decimal\n"
        "def model_state_bytes(psi, K=12): return Decimal(psi) * (4 + Decimal(K))"
    },
    "a subclass of int": {
        "model_state_bytes": "class Bytes(int):\n    __str__ = lambda self: 'many'\n"
        "def model_state_bytes(psi, K=12): return Bytes(psi * (4 + K))"
    },
    "a class with __call__": {
        "model_state_bytes": "class States:\n    def __call__(self, psi, K=12): return psi * (4 + K)\n"
        "model_state_bytes = States()"
    },
    "state between calls": {
        "model_state_bytes": "calls = 0\ndef model_state_bytes(psi, K=12):\n    global calls\n    calls += 1\n"
        "    print('call', calls)\n    return psi * (4 + K)"
    },
    "prints, warns, logs": {
        "model_state_bytes": "import logging, sys, warnings\ndef model_state_bytes(psi, K=12):\n"
        "    warnings.warn('w'); logging.error('e'); print('x', file=sys.stderr); print('y' * 10**6)\n"
        "    return psi * (4 + K)"
    },
    "a string of another kind": {
        "cheapest_fix": "import numpy as np\nfrom collections import namedtuple\nFix = namedtuple('Fix', 'name peak')\n"
        "{right}\nplain = cheapest_fix\n"
        "def cheapest_fix(*a, **k):\n    name, peak = plain(*a, **k)\n"
        "    return Fix(None if name is None else np.str_(name), np.float64(peak))"
    },
    "a generator": {
        "memory_timeline": "{right}\nplain = memory_timeline\n"
        "def memory_timeline(L, c, A, k=None): return (value for value in plain(L, c, A, k))"
    },
    "an array": {
        "memory_timeline": "import numpy\n{right}\nplain = memory_timeline\n"
        "def memory_timeline(L, c, A, k=None): return numpy.array(plain(L, c, A, k))",
        "best_k": "import numpy\ndef best_k(L, c, A):\n"
        "    return numpy.argmin([memory_timeline(L, c, A, k).max() for k in range(1, L + 1)]) + 1",
    },
    "a deque": {
        "memory_timeline": "from collections import deque\n{right}\nplain = memory_timeline\n"
        "def memory_timeline(L, c, A, k=None): return deque(plain(L, c, A, k))"
    },
}


@pytest.mark.parametrize("style", RIGHT_IN_OTHER_WORDS)
def test_a_right_answer_in_another_style_gets_full_marks(style, grader, right_cells, changed, marks_without):
    right = {cell.answer: cell.source for cell in right_cells}
    sources = {name: text.replace("{right}", right[name]) for name, text in RIGHT_IN_OTHER_WORDS[style].items()}
    grade = grader.grade(changed(sources))
    assert marks(grade) == marks_without(), [result for result in grade.results if result.message]


NOTEBOOK_WAYS = {
    "line magics": "%matplotlib inline\n%load_ext autoreload\n%autoreload 2\n%config Completer.use_jedi = False",
    "shell lines": "!pip install einops\n%pip install -q numpy\n%conda install x\nfiles = !ls\nfound = files.n",
    "a timed cell": "%%time\nVALUE = 3",
    "a captured cell": "%%capture output\nVALUE = 3",
    "a cell of another language": "%%bash\nexit 1",
    "a page": "%%html\n<b>not Python</b>",
    "an unknown magic": "%%some_extension --flag\nVALUE = 3",
    "help": "len?\nlen??\n?len",
    "Colab": "from google.colab import drive, files, output\ndrive.mount('/content/drive')\nimport google.colab",
    "questions": "name = input('Your name? ')\nnumber = int(input('h? ')) + float(input())",
    "plots": "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
    "widgets": "import ipywidgets as widgets\nfrom IPython.display import display, HTML, clear_output\n"
    "slider = widgets.IntSlider()\ndisplay(slider, HTML('x'))\nclear_output()\n"
    "slider.observe(lambda change: None, names='value')",
    "the shell by name": "from IPython import get_ipython\nshell = get_ipython()\nshell.run_line_magic('pwd', '')\n"
    "get_ipython().system('ls')",
    "a module that is not there": "import no_such_module as nsm\nfrom no_such.sub import thing, other\n"
    "@nsm.compile\ndef twice(x): return 2 * x\nassert twice(2) == 4\nclass Model(nsm.Module): pass",
    "a guarded import": "try:\n    import no_such_module\nexcept ImportError:\n    no_such_module = None\n"
    "assert no_such_module is None",
    "a written module": "import os\nopen('mine.py', 'w').write('VALUE = 3')\nimport mine\nassert mine.VALUE == 3",
    "top-level await": "import asyncio\nawait asyncio.sleep(0)\nVALUE = 3",
    "future annotations": "from __future__ import annotations\ndef typed(x: no_such_name) -> also_none: return x",
    "quit": "exit()\nquit()",
    "a main guard": "if __name__ == '__main__':\n    VALUE = 3\nassert VALUE == 3",
    "dataclasses": "from dataclasses import dataclass\n@dataclass\nclass Shape:\n    h: int = 3\nassert Shape().h == 3",
    "a recorded output": "Out, In, _\n_ih",
    "own checks": "assert check_params_per_layer_gpt() is None",
}


@pytest.mark.parametrize("way", NOTEBOOK_WAYS)
def test_what_notebooks_do_besides_does_not_matter(way, grader, changed, marks_without, right_cells):
    """Beside an answer in its own cell: what follows is not reached where the cell stops before."""
    source = NOTEBOOK_WAYS[way]
    first = source if source.startswith("%%") else source + "\nreached = True"
    right = {cell.answer: cell.source for cell in right_cells}
    guarded = "reached\n" + right["params_per_layer"] if "reached" in first else right["params_per_layer"]
    grade = grader.grade(changed({"params_per_layer": guarded}, before={"params_per_layer": [first]}))
    assert marks(grade) == marks_without(), grade.notes
    assert not [note for note in grade.notes if "raised" in note]


def test_a_timed_cell_defines_its_answer(grader, changed, right_cells, marks_without):
    right = {cell.answer: cell.source for cell in right_cells}
    for magic in ("%%time", "%%capture", "%%memit -r 1"):
        assert marks(grader.grade(changed({"best_k": f"{magic}\n{right['best_k']}"}))) == marks_without()


def test_a_cell_that_raises_does_not_stop_the_next(grader, changed, marks_without):
    cells = changed(before={name: ["1 / 0", "def broken(:", "raise SystemExit", "no_such_name"] for name in FUNCTIONS})
    grade = grader.grade(cells)
    assert marks(grade) == marks_without()
    assert any("ZeroDivisionError" in note for note in grade.notes)


def test_a_later_cell_may_use_a_name_again(grader, changed, marks_without):
    cells = changed(
        {
            "params_per_layer": "def width(h, r): return round(h * r)\n"
            "def params_per_layer(h, mlp_ratio=4, n_kv_ratio=1, style='gpt'):\n"
            "    f, kv = width(h, mlp_ratio), width(h, n_kv_ratio)\n"
            "    if style == 'gpt': return 2*h*h + 2*h*kv + 2*h*f + 3*h + 2*kv + f + 4*h\n"
            "    if style == 'llama': return 2*h*h + 2*h*kv + 3*h*f + 2*h\n"
            "    raise ValueError(style)"
        },
        before={"memory_timeline": ["def width(x): return 'another helper'", "params_per_layer = model_params = None"]},
    )
    assert marks(grader.grade(cells)) == marks_without()


def test_a_stub_after_the_answer_does_not_undo_it(grader, changed, assignment, marks_without):
    stub = next(a.stub for a in assignment.answers if a.name == "best_k")
    again = [stub, stub.replace("    raise", "    # mine\n\n    raise") + "\n\n"]
    assert marks(grader.grade(changed(after={"best_k": again}))) == marks_without()


def test_of_two_answers_the_last_counts(grader, changed, marks_without):
    cells = changed(after={"best_k": ["def best_k(L, c, A): return 0"]})
    assert marks(grader.grade(cells)) == marks_without("best_k")


def test_answers_solved_in_other_cells_count(grader, right_cells, assignment, marks_without):
    stubs = {answer.name: answer.stub for answer in assignment.answers}
    cells = []
    for cell in right_cells:
        cells += [replace(cell, source=stubs[cell.answer]), StudentCell(cell.source, cell.exercise)]
    assert marks(grader.grade(cells)) == marks_without()


def test_grading_twice_agrees_and_another_salt_draws_other_cases(assignment, references, right_cells, monkeypatch):
    calls = []
    send = Channel.send

    def recorded(self, message, deadline):
        calls.append([message[key] for key in ("name", "arguments", "keywords") if key in message])
        return send(self, message, deadline)

    monkeypatch.setattr(Channel, "send", recorded)
    asked = []
    for salt in (SALT, SALT, SALT[::-1]):
        with Grader(assignment, references, salt, limits=SHORT) as grader:
            calls.clear()
            assert grader.grade(right_cells).score == 50
            asked.append([call for call in calls if call])
    assert asked[0] == asked[1]
    assert sorted(map(repr, asked[0])) != sorted(map(repr, asked[2]))
    # The order of the checks is not the notebook's, and differs too.
    names = [[name for name, *_ in calls] for calls in asked]
    assert names[0] != names[2]
    first = list(dict.fromkeys(names[0]))
    assert first != list(FUNCTIONS)


def test_only_a_check_s_own_words_and_the_exception_s_type_are_told(references, changed, assignment):
    """Hidden cases tell neither arguments nor values nor the student's own text about them."""
    source = "def {name}(*a, **k):\n    raise KeyError('SPY ' + repr((a, k)))"
    unasked = "\nclass Unasked:\n    __init__ = gives = is_refused = lambda self, *a, **k: None\nask = Unasked\n"
    hidden_only = Assignment(assignment.helpers + unasked, assignment.exercises)
    with Grader(hidden_only, references, SALT, limits=SHORT) as grader:
        grade = grader.grade(changed({name: source.format(name=name) for name in FUNCTIONS}))
    assert grade.score == 0
    for result in grade.results:
        assert "SPY" not in result.message
        assert "in a case that is not shown it raised KeyError" in result.message


def test_of_a_check_that_breaks_off_only_the_kind_of_exception_is_told(references, changed, assignment):
    def unguarded(check):
        return replace(check, source=f"def {check.name}():\n    {check.target}(1, 2, 3)\n{check.name}()\n")

    exercises = [replace(e, checks=tuple(map(unguarded, e.checks))) for e in assignment.exercises]
    source = "def {name}(*a, **k):\n    raise KeyError('SPY ' + repr(a))"
    with Grader(Assignment(assignment.helpers, tuple(exercises)), references, SALT, limits=SHORT) as grader:
        grade = grader.grade(changed({name: source.format(name=name) for name in FUNCTIONS}))
    assert {result.message for result in grade.results} == {"the check could not be finished: KeyError"}
    assert grade.score == 0


def test_a_visible_check_shows_the_student_s_own_line(grader, changed):
    source = "def best_k(L, c, A):\n    table = {}\n    return table['k']"
    grade = grader.grade(changed({"best_k": source}))
    (message,) = [result.message for result in grade.results if result.check == "check_best_k"]
    assert message.startswith("best_k(24, 2, 34) raised KeyError")
    assert "best_k, line 3: return table['k']" in message


def test_a_right_answer_in_other_words_may_carry_a_remark(grader, changed, right_cells, marks_without):
    """A log-sum-exp under "flash" is as right; the check says so."""
    source = """def activation_bytes(s, b, h, a, mode="baseline"):
    units = {"baseline": 34 + 5 * a * s / h, "flash": 34 + 4 * a / h, "selective": 34, "full": 2}
    if mode not in units:
        raise ValueError(mode)
    return s * b * h * units[mode]"""
    grade = grader.grade(changed({"activation_bytes": source}))
    assert marks(grade) == marks_without()
    assert any("log-sum-exp" in result.message for result in grade.results)


def test_random_choices_of_wrong_answers_cost_exactly_themselves(grader, changed, marks_without):
    rng = random.Random(3)
    for _ in range(4):
        lost = rng.sample(FUNCTIONS, rng.randint(2, 5))
        cells = changed({name: f"def {name}(*a, **k): return 1" for name in lost})
        assert marks(grader.grade(cells)) == marks_without(*lost)


def test_a_salt_that_can_be_guessed_is_refused(assignment, references):
    with pytest.raises(ValueError, match="salt"):
        Grader(assignment, references, b"short")


def test_every_answer_needs_a_right_function(assignment, references):
    with pytest.raises(ValueError, match="best_k"):
        Grader(assignment, {k: v for k, v in references.items() if k != "best_k"}, SALT)
