"""Any bytes as a notebook, and any notebook made by spoiling a good one: no crash, and no mark lost unexplained."""

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograded_tests.grading.damaged import ANSWERS, STUBS, honest, saved
from autograded_tests.notebooks import ROOT
from trainmem.course.editions import course_config
from trainmem.grading.checks import Grader
from trainmem.grading.edition import course_stub, read_edition
from trainmem.grading.reading import Refused, read_notebook
from trainmem.grading.salvage import notebook_json, salvage_cells
from trainmem.grading.worker import right_functions

GOOD = honest()
EDITION = read_edition(ROOT / "source" / "training_memory" / "exercises.ipynb", course_stub(course_config()))
NUMBER = len(GOOD["cells"])
ORDINARY = {
    "derandomize": True,
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
WORDS = ["cells", "metadata", "nbgrader", "grade_id", "id", "source", "cell_type", "outputs", "worksheets", "content"]
VALUES = JSON | st.sampled_from([*ANSWERS, "code", "markdown"])
CELLS = st.lists(st.dictionaries(st.sampled_from(WORDS), VALUES), max_size=6)
NOTEBOOKS = st.dictionaries(st.sampled_from(WORDS), CELLS | JSON)


def salvaged(data):
    return salvage_cells(read_notebook(data, "exercises.ipynb"), "exercises.ipynb", EDITION)


def outcome(data):
    """What is salvaged, or the sentence that refuses."""
    try:
        return salvaged(data)
    except Refused as refused:
        return str(refused)


def salvages_or_refuses(data):
    found = outcome(data)
    if isinstance(found, str):
        assert found.startswith("exercises.ipynb ")
        assert "\n" not in found
        return
    copied = json.loads(notebook_json(found, EDITION, {}, {}))
    names = [cell["id"] for cell in copied["cells"] if "nbgrader" in cell["metadata"]]
    assert names == [place.name for place in EDITION.places]
    assert sum(cell.answer is not None for cell in found.code) <= len(ANSWERS)


def any_bytes(examples):
    @settings(max_examples=examples, **ORDINARY)
    @given(st.binary(max_size=300) | st.text().map(lambda text: text.encode("utf-16", "surrogatepass")))
    def bytes_alone(data):
        salvages_or_refuses(data)

    @settings(max_examples=examples, **ORDINARY)
    @given(NOTEBOOKS)
    def made_of_its_words(notebook):
        salvages_or_refuses(json.dumps(notebook).encode())

    @settings(max_examples=examples // 4, **ORDINARY)
    @given(st.data())
    def good_bytes_spoilt(data):
        whole = bytearray(saved(GOOD))
        for _ in range(data.draw(st.integers(1, 4))):
            start = data.draw(st.integers(0, len(whole)))
            end = start + data.draw(st.sampled_from([0, 1, 5, 5_000, len(whole)]))
            whole[start:end] = data.draw(st.binary(max_size=4))
        salvages_or_refuses(bytes(whole))

    bytes_alone()
    made_of_its_words()
    good_bytes_spoilt()


def test_any_bytes():
    any_bytes(200)


@pytest.mark.long
def test_any_bytes_at_length():
    any_bytes(2_000)


class Spoilt:
    """A good notebook after a number of accidents, and the answers that it must still have."""

    def __init__(self, draw):
        self.cells = copy.deepcopy(GOOD["cells"])
        self.touched = set()
        for _ in range(draw(st.integers(1, 12))):
            accident = draw(st.sampled_from(ACCIDENTS))
            at = draw(st.integers(0, len(self.cells) - 1)) if self.cells else None
            if at is not None:
                accident(self, at, draw)

    def kept(self):
        """The answers that stand somewhere in full and nowhere in part."""
        there = {name for name, source in ANSWERS.items() if any(cell.get("source") == source for cell in self.cells)}
        return there - self.touched

    def delete(self, at, draw):
        del self.cells[at]

    def double(self, at, draw):
        self.cells.insert(draw(st.integers(0, len(self.cells))), copy.deepcopy(self.cells[at]))

    def move(self, at, draw):
        cell = self.cells.pop(at)
        self.cells.insert(draw(st.integers(0, len(self.cells))), cell)

    def swap_labels(self, at, draw):
        other = draw(st.integers(0, len(self.cells) - 1))
        one, two = self.cells[at], self.cells[other]
        for key in ("id", "metadata"):
            one[key], two[key] = two.get(key), one.get(key)

    def lose_metadata(self, at, draw):
        self.cells[at]["metadata"] = draw(st.none() | st.just({}) | st.just({"nbgrader": {}}) | JSON)

    def lose_all_metadata(self, at, draw):
        for cell in self.cells:
            cell["metadata"] = {}
            cell.pop("id", None)

    def relabel(self, at, draw):
        name = draw(st.sampled_from([place.name for place in EDITION.places]) | st.text(max_size=9))
        self.cells[at]["metadata"] = {"nbgrader": {"grade_id": name, "grade": True, "points": 99, "solution": True}}

    def change_id(self, at, draw):
        self.cells[at]["id"] = draw(JSON | st.sampled_from([place.name for place in EDITION.places]))

    def change_type(self, at, draw):
        self.cells[at]["cell_type"] = draw(st.sampled_from(["code", "markdown", "raw", None, 7]))

    def empty(self, at, draw):
        self._touch(at)
        self.cells[at]["source"] = draw(st.sampled_from(["", " \n", [], None, 3]))

    def cut(self, at, draw):
        self._touch(at)
        source = self.cells[at].get("source")
        if isinstance(source, str):
            self.cells[at]["source"] = source[: draw(st.integers(0, len(source)))]

    def add_stub(self, at, draw):
        self.cells.insert(at, {"cell_type": "code", "source": draw(st.sampled_from(sorted(STUBS.values())))})

    def add_own(self, at, draw):
        sources = ["x = 1", "import math", "print(", "%%time\n2", "1/0", "# note", "def g():\n  return"]
        source = draw(st.sampled_from(sources))
        self.cells.insert(at, {"cell_type": "code", "metadata": {}, "source": source})

    def fill_output(self, at, draw):
        self.cells[at]["outputs"] = draw(JSON)

    def _touch(self, at):
        source = self.cells[at].get("source")
        self.touched |= {name for name in ANSWERS if isinstance(source, str) and f"def {name}" in source}


ACCIDENTS = [value for key, value in vars(Spoilt).items() if key[0] != "_" and key != "kept"]


def marks_are_kept(examples, grader):
    points = {check.name: check.points for check in EDITION.assignment.checks}
    target = {check.name: check.target for check in EDITION.assignment.checks}

    @settings(max_examples=examples, **ORDINARY)
    @given(st.data())
    def one(data):
        spoilt = Spoilt(data.draw)
        kept = spoilt.kept()
        file = saved(GOOD | {"cells": spoilt.cells})
        found = outcome(file)
        if isinstance(found, str):
            assert not kept
            return
        assert kept <= found.written
        if grader is None:
            for name in kept:
                counts = [cell.source for cell in found.code if f"def {name}(" in cell.source]
                assert ANSWERS[name] in counts
            return
        for result in grader.grade(found.code).results:
            assert result.max_score == points[result.check]
            if target[result.check] in kept:
                assert result.score == result.max_score, (result, spoilt.cells)
            else:
                assert result.score == result.max_score or result.message

    one()


@pytest.fixture(scope="module")
def grader():
    with Grader(EDITION.assignment, right_functions(EDITION), b"fuzzing" * 5) as grader:
        yield grader


def test_a_spoilt_notebook_keeps_its_answers():
    marks_are_kept(200, None)


def test_a_spoilt_notebook_keeps_its_marks(grader):
    marks_are_kept(60, grader)


@pytest.mark.long
def test_a_spoilt_notebook_keeps_its_marks_at_length(grader):
    marks_are_kept(2_000, grader)
