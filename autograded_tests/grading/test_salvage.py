"""What is taken from a file: the answers and the student's own cells, in any state, and nothing else."""

import json

import pytest

from autograded_tests.grading import damaged
from autograded_tests.grading.damaged import ANSWERS, DAMAGED, STUBS, cell_of, code, honest, index, saved
from autograded_tests.notebooks import ROOT
from trainmem.course.editions import course_config
from trainmem.grading.definitions import contents
from trainmem.grading.edition import course_stub, read_edition
from trainmem.grading.reading import Refused, read_notebook
from trainmem.grading.salvage import notebook_json, salvage, salvage_cells


@pytest.fixture(scope="module")
def edition():
    return read_edition(ROOT / "source" / "training_memory" / "exercises.ipynb", course_stub(course_config()))


def salvaged(notebook, edition):
    return salvage_cells(read_notebook(saved(notebook), "exercises.ipynb"), "exercises.ipynb", edition)


def test_the_edition_is_the_release(edition):
    release = json.loads((ROOT / "release" / "training_memory" / "exercises.ipynb").read_text("utf-8"))
    assert [place.given for place in edition.places] == ["".join(cell["source"]) for cell in release["cells"]]
    for place, cell in zip(edition.places, release["cells"], strict=True):
        assert place.metadata["nbgrader"].items() <= cell["metadata"]["nbgrader"].items()
    assert [place.exercise for place in edition.places] == sorted(place.exercise for place in edition.places)
    assert list(edition.titles) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", DAMAGED)
def test_each_kind_is_salvaged_or_refused_with_a_reason(name, edition, tmp_path):
    kind = DAMAGED[name]
    kind.write(tmp_path)
    try:
        found = salvage(tmp_path / "training_memory", edition)
    except Refused as refused:
        assert kind.score is None
        told = str(refused)
        assert "\n" not in told
        assert not told.endswith(".")
    else:
        assert kind.score is not None
        told = " ".join(found.repairs + found.cut)
        assert all(sentence.endswith(".") for sentence in found.repairs + found.cut)
    for expected in kind.told:
        assert expected in told


def test_the_copy_holds_the_course_as_it_is_and_the_answers(edition):
    notebook = honest()
    notebook["cells"].insert(index(notebook, "check_best_k"), code("mine = 1"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and cell.get("id", "").startswith("check_"):
            cell["source"] = "assert True"
            cell["metadata"]["nbgrader"]["points"] = 1000
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "forged"}]
    copy = json.loads(notebook_json(salvaged(notebook, edition), edition, {}, {}))
    ours = [cell for cell in copy["cells"] if "nbgrader" in cell["metadata"]]
    assert [cell["id"] for cell in ours] == [place.name for place in edition.places]
    assert [cell["metadata"] for cell in ours] == [place.metadata for place in edition.places]
    for cell, place in zip(ours, edition.places, strict=True):
        assert cell["source"] == ANSWERS.get(place.name, place.given)
    added = [cell["source"] for cell in copy["cells"] if "nbgrader" not in cell["metadata"]]
    assert added == ["mine = 1"]
    assert "forged" not in json.dumps(copy)
    assert copy["metadata"]["kernelspec"]["name"] == "python3"


def test_no_hidden_line_is_in_the_copy(edition):
    copy = notebook_json(salvaged(honest(), edition), edition, {}, {})
    parts = [part for check in edition.assignment.checks for part in check.hidden]
    lines = {line.strip() for part in parts for line in part.split("\n")}
    given = "\n".join(place.given for place in edition.places)
    secret = {line for line in lines if len(line) > 20 and line not in given}
    assert len(secret) > 50
    assert not [line for line in secret if json.dumps(line, ensure_ascii=False)[1:-1] in copy]


def test_added_cells_keep_their_order_and_their_exercise(edition):
    notebook = honest()
    for number, before in enumerate(("params_per_layer", "check_params_per_layer_llama", "best_k", "peak_bytes")):
        notebook["cells"].insert(index(notebook, before), code(f"x{number} = {number}"))
    notebook["cells"].append(code("x4 = 4"))
    found = salvaged(notebook, edition)
    added = [(cell.source[:2], cell.exercise) for cell in found.code if cell.source.startswith("x")]
    assert added == [("x0", 1), ("x1", 1), ("x2", 4), ("x3", 5), ("x4", 5)]
    answers = [cell for cell in found.code if cell.answer]
    assert [cell.answer for cell in answers] == list(ANSWERS)
    assert [cell.source for cell in answers] == list(ANSWERS.values())
    assert len(found.called) == len(found.code)


def test_prose_of_the_student_cannot_run_in_the_instructors_browser(edition):
    notebook = honest()
    prose = "~~~~\n<script>alert(1)</script>\n~~~~~\n<img src=x onerror=alert(2)>"
    for kind in ("markdown", "raw"):
        notebook["cells"].insert(3, {"cell_type": kind, "metadata": {"raw_mimetype": "text/html"}, "source": prose})
    copy = json.loads(notebook_json(salvaged(notebook, edition), edition, {}, {}))
    added = [cell for cell in copy["cells"] if "nbgrader" not in cell["metadata"]]
    assert len(added) == 2
    for cell in added:
        assert cell["cell_type"] == "markdown"
        first, *_, last = cell["source"].split("\n")
        assert first == last == "~" * 8


def test_a_name_used_again_in_a_later_exercise_is_not_the_answer(edition):
    notebook = honest()
    notebook["cells"].insert(index(notebook, "check_peak_bytes_modes"), code("def best_k(x):\n    return 7"))
    found = salvaged(notebook, edition)
    assert next(cell.source for cell in found.code if cell.answer == "best_k") == ANSWERS["best_k"]
    assert [cell.exercise for cell in found.code if cell.source.endswith("return 7")] == [5]


def test_nothing_after_the_answer_replaces_it(edition):
    notebook = honest()
    notebook["cells"].insert(index(notebook, "check_best_k") + 1, code("best_k = best_k(80, 2, 34)"))
    stub = "def best_k(L, c, A):\n    raise NotImplementedError"
    notebook["cells"].insert(index(notebook, "check_best_k") + 1, code(stub))
    code_cells = salvaged(notebook, edition).code
    own = [cell for cell in code_cells if cell.exercise == 4 and "best_k" in cell.source and cell.answer is None]
    answer = next(cell for cell in code_cells if cell.answer == "best_k")
    assert [cell.source for cell in own] == ["best_k = best_k(80, 2, 34)"]
    assert code_cells.index(own[0]) < code_cells.index(answer)


def test_a_stub_defines_nothing_wherever_it_stands(edition):
    notebook = damaged.blank()
    found = salvaged(notebook, edition)
    assert found.code == ()
    assert found.written == frozenset()
    cell_of(notebook, "best_k")["source"] = ANSWERS["best_k"]
    notebook["cells"].append(code(STUBS["best_k"]))
    notebook["cells"].insert(0, code(STUBS["best_k"]))
    found = salvaged(notebook, edition)
    assert [cell.source for cell in found.code] == [ANSWERS["best_k"]]


@pytest.mark.parametrize(
    ("source", "writes"),
    [
        ("def f(): pass", {"f"}),
        ("async def f(): pass", {"f"}),
        ("class f: pass", {"f"}),
        ("f = lambda x: x", {"f"}),
        ("f = partial(g, 1)", {"f"}),
        ("from mine import g as f", {"f"}),
        ("if True:\n    def f(): pass\nelse:\n    g = f", {"f", "g"}),
        ("try:\n    import f\nexcept ImportError:\n    def g(): pass", {"f", "g"}),
        ("f = 3", set()),
        ("f = f(3)", set()),
        ("f: int = 3\ng = [1]", set()),
        ("def f():\n    raise NotImplementedError()", set()),
        ('def f(a, b=1):\n    """later"""\n    raise NotImplementedError', set()),
        ("def f(x):\n    if x: raise NotImplementedError\n    return 1", {"f"}),
        ("%%time\ndef f(): pass", {"f"}),
        ("%%bash\ndef f(): pass", set()),
        ("%matplotlib inline\n!ls\ndef f(): pass\nf?", {"f"}),
        ("def f(:\n  pass", {"f"}),
        ("def g(x):\n    def f(): pass\n    return f", {"g"}),
        ("f = 1\ndef f(): pass", {"f"}),
        ("def f(): pass\nf = 1", set()),
        ("(" * 5000, set()),
        ("x = " + "-" * 50_000 + "1", {"x"}),
        ("\0", set()),
    ],
)
def test_what_a_cell_writes(source, writes):
    assert contents(source, frozenset({"f"})).writes == writes


def test_a_name_in_a_sentence_is_harmless(edition, tmp_path):
    folder = tmp_path / "training_memory"
    folder.mkdir()
    (folder / "exercises\n\x1b[31m\u202e.ipynb").write_bytes(saved(honest()))
    found = salvage(folder, edition)
    assert found.repairs[0].isprintable()
