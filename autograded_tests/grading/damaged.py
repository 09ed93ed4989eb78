"""Submissions as they come from real people: each is an honest notebook, altered by a small function.

`DAMAGED` is the table: name → what is handed in, and what must come of it. `honest` makes the notebook that they start
from: the student's edition with right answers.
"""

import copy
import io
import json
import os
import random
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from autograded_tests.notebooks import RELEASE, ROOT, reference_answers
from trainmem.course.regions import without_marks

FULL = 50.0
Notebook = dict
Handed = Notebook | bytes | dict[str, bytes]

_RELEASE = json.loads(RELEASE.read_text("utf-8"))
WRONG = "def params_per_layer(h, mlp_ratio=4, n_kv_ratio=1, style='gpt'):\n    return 12 * h**2\n"


def text(cell):
    return cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])


ANSWERS = {name: without_marks(source) for name, source in reference_answers().items()}
STUBS = {cell["id"]: text(cell) for cell in _RELEASE["cells"] if cell["id"] in ANSWERS}


def honest(answers=ANSWERS, remark=""):
    """The student's edition with `answers` by their names; a remark makes it unlike all others."""
    notebook = copy.deepcopy(_RELEASE)
    for cell in notebook["cells"]:
        cell["source"] = text(cell)
        if cell["id"] in answers:
            cell["source"] = answers[cell["id"]] + (f"\n# {remark}" if remark else "")
    return notebook


def blank():
    return honest({})


@dataclass(frozen=True)
class Damaged:
    """What is handed in: a notebook, its bytes, or files by their paths in the student's folder; or `place` writes it.

    score: what must be recorded, or None where nothing may be. told: what a repair or the refusal must say.
    """

    hand_in: Callable[[Notebook], Handed] | None
    score: float | None = FULL
    told: tuple[str, ...] = ()
    place: Callable[[Path, Notebook], None] | None = None

    def write(self, student: Path) -> None:
        """Write it where nbgrader would have collected it."""
        folder = student / "training_memory"
        folder.mkdir(parents=True)
        if self.place is not None:
            self.place(folder, honest())
            return
        handed = self.hand_in(honest())
        files = handed if isinstance(handed, dict) and "cells" not in handed and "worksheets" not in handed else None
        for name, data in (files or {"exercises.ipynb": handed}).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data if isinstance(data, bytes) else saved(data))


def saved(notebook, **options):
    return json.dumps(notebook, ensure_ascii=False, **options).encode()


DAMAGED: dict[str, Damaged] = {}


def damaged(score=FULL, *told):
    def register(function):
        DAMAGED[function.__name__] = Damaged(function, score, told)
        return function

    return register


def placed(score=FULL, *told):
    def register(function):
        DAMAGED[function.__name__] = Damaged(None, score, told, function)
        return function

    return register


def index(notebook, name):
    return next(i for i, cell in enumerate(notebook["cells"]) if cell.get("id") == name)


def cell_of(notebook, name):
    return notebook["cells"][index(notebook, name)]


def code(source, **more):
    return {"cell_type": "code", "execution_count": 3, "metadata": {}, "outputs": [], "source": source, **more}


def checks(notebook):
    return [cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("grade")]


# Cells doubled, split, moved, deleted


@damaged(FULL, "more than one cell: the last one counts")
def answer_doubled_the_last_is_right(n):
    at = index(n, "params_per_layer")
    n["cells"].insert(at, copy.deepcopy(n["cells"][at]) | {"source": WRONG})
    return n


@damaged(FULL - 6, "more than one cell: the last one counts")
def answer_doubled_the_last_is_wrong(n):
    at = index(n, "params_per_layer")
    n["cells"].insert(at + 1, copy.deepcopy(n["cells"][at]) | {"source": WRONG})
    return n


@damaged()
def answer_doubled_the_last_is_the_stub(n):
    at = index(n, "params_per_layer")
    n["cells"].insert(at + 1, copy.deepcopy(n["cells"][at]) | {"source": STUBS["params_per_layer"]})
    return n


@damaged()
def answer_doubled_the_last_is_the_stub_with_a_remark(n):
    at = index(n, "params_per_layer")
    source = 'def params_per_layer(h, *rest):\n    "later"\n    raise NotImplementedError  # to do\n'
    n["cells"].insert(at + 2, code(source))
    return n


@damaged()
def answer_doubled_with_a_syntax_error_last(n):
    n["cells"].insert(index(n, "best_k") + 1, code("def best_k(L, c, A)\n    return 1"))
    return n


@damaged(FULL, "split into two cells was joined: memory_timeline")
def answer_split_within_the_function(n):
    at = index(n, "memory_timeline")
    lines = n["cells"][at]["source"].split("\n")
    half = len(lines) - 2
    n["cells"][at]["source"] = "\n".join(lines[:half])
    second = copy.deepcopy(n["cells"][at]) | {"source": "\n".join(lines[half:])}
    n["cells"].insert(at + 1, second)
    return n


@damaged()
def answer_split_from_its_helper(n):
    at = index(n, "model_state_bytes")
    n["cells"][at]["source"] = "def model_state_bytes(psi, K=12):\n    return each(K) * psi"
    n["cells"].insert(at, copy.deepcopy(n["cells"][at]) | {"source": "def each(K):\n    return 4 + K"})
    return n


@damaged()
def test_split(n):
    at = index(n, "check_best_k")
    lines = text(n["cells"][at]).split("\n")
    n["cells"][at]["source"] = "\n".join(lines[:5])
    n["cells"].insert(at + 1, code("\n".join(lines[5:])))
    return n


@damaged(FULL, "Copies of the course's own cells were left out")
def test_doubled(n):
    at = index(n, "check_best_k")
    n["cells"].insert(at, copy.deepcopy(n["cells"][at]))
    return n


@damaged(FULL)
def answer_moved_to_the_end(n):
    n["cells"].append(n["cells"].pop(index(n, "params_per_layer")))
    return n


@damaged(FULL, "in another order, which was restored")
def cells_reversed(n):
    n["cells"].reverse()
    return n


@damaged(FULL, "in another order, which was restored")
def cells_shuffled(n):
    random.Random(7).shuffle(n["cells"])
    return n


@damaged(FULL, "were missing were replaced by our own: check_best_k")
def test_deleted(n):
    n["cells"].pop(index(n, "check_best_k"))
    return n


@damaged(FULL, "were missing were replaced by our own")
def everything_but_the_answers_deleted(n):
    n["cells"] = [cell for cell in n["cells"] if cell["id"] in ANSWERS]
    return n


@damaged(FULL, "not by its label")
def only_the_answers_text_left(n):
    n["cells"] = [code(cell["source"]) for cell in n["cells"] if cell["id"] in ANSWERS]
    return n


@damaged()
def prose_deleted(n):
    n["cells"] = [cell for cell in n["cells"] if cell["cell_type"] != "markdown"]
    return n


# Cells changed


@damaged()
def test_label_lost(n):
    cell = cell_of(n, "check_best_k")
    cell["metadata"] = {}
    cell.pop("id")
    return n


@damaged()
def test_turned_into_prose(n):
    cell = cell_of(n, "check_best_k")
    cell["cell_type"] = "markdown"
    for key in ("outputs", "execution_count"):
        cell.pop(key)
    return n


@damaged(FULL - 10, "had been changed were replaced by our own")
def test_emptied_and_no_answer(n):
    for cell in checks(n):
        cell["source"] = "float(1000)"
    for name in ("memory_timeline", "best_k"):
        cell_of(n, name)["source"] = STUBS[name]
    return n


@damaged(FULL - 6)
def points_raised_and_grades_switched_off(n):
    for cell in checks(n):
        cell["metadata"]["nbgrader"] |= {"points": 1000, "grade": False, "locked": False, "solution": True}
    cell_of(n, "params_per_layer")["source"] = STUBS["params_per_layer"]
    return n


@damaged()
def helper_written_into_a_test_cell(n):
    cell_of(n, "model_state_bytes")["source"] = "def model_state_bytes(psi, K=12):\n    return (fixed + K) * psi"
    cell_of(n, "check_model_state_bytes")["source"] = "fixed = 4"
    return n


@damaged(FULL, "was of type markdown; it was read as code")
def answer_turned_into_prose(n):
    cell = cell_of(n, "best_k")
    cell["cell_type"] = "markdown"
    for key in ("outputs", "execution_count"):
        cell.pop(key)
    return n


@damaged(FULL, "was of type raw; it was read as code")
def answer_turned_raw(n):
    cell_of(n, "best_k")["cell_type"] = "raw"
    return n


@damaged()
def cell_types_that_do_not_exist(n):
    for cell, kind in zip(n["cells"], [None, 3, "sql", [], "Code"] * 9, strict=False):
        if cell["cell_type"] == "code":
            cell["cell_type"] = kind
    return n


@damaged(FULL, "were none and left out")
def cells_that_are_none(n):
    n["cells"][3:3] = [None, "text", 3, ["code"], True]
    return n


@damaged(FULL - 6)
def syntax_error_in_one_answer(n):
    cell_of(n, "params_per_layer")["source"] = "def params_per_layer(h:\n    return 12 * h * h"
    return n


@damaged(FULL - 4)
def function_renamed(n):
    cell_of(n, "best_k")["source"] = ANSWERS["best_k"].replace("best_k", "bestK")
    return n


# Labels lost


@damaged(FULL, "not by its label")
def all_metadata_lost(n):
    for cell in n["cells"]:
        cell["metadata"] = {}
        cell.pop("id")
    n["metadata"] = {}
    return n


@damaged(FULL)
def labels_emptied(n):
    for cell in n["cells"]:
        cell["metadata"] = {"nbgrader": {}}
    return n


@damaged()
def metadata_of_wrong_types(n):
    wrong = [None, [], "text", 3, {"nbgrader": None}, {"nbgrader": []}, {"nbgrader": {"grade_id": 5}}]
    for cell, value in zip(n["cells"], wrong * 9, strict=False):
        cell["metadata"] = value
    n["metadata"] = "none"
    return n


@damaged(FULL)
def labels_of_two_answers_exchanged(n):
    one, other = cell_of(n, "params_per_layer"), cell_of(n, "cheapest_fix")
    one["metadata"], other["metadata"] = other["metadata"], one["metadata"]
    one["id"], other["id"] = other["id"], one["id"]
    return n


@damaged()
def ids_doubled(n):
    for cell in n["cells"]:
        cell["id"] = "checking"
    return n


@damaged()
def ids_illegal(n):
    for number, cell in enumerate(n["cells"]):
        cell["id"] = ["", "a b", "x" * 500, 3, None, "ä"][number % 6]
    return n


@damaged()
def ids_missing_and_minor_0(n):
    for cell in n["cells"]:
        cell.pop("id")
    return n | {"nbformat_minor": 0}


# Answers in other places


@damaged()
def answer_deleted_and_retyped(n):
    at = index(n, "best_k")
    n["cells"][at] = code(ANSWERS["best_k"])
    return n


@damaged(FULL, "was found among the cells of exercise 5")
def stub_left_and_solved_at_the_end(n):
    cell_of(n, "params_per_layer")["source"] = STUBS["params_per_layer"]
    n["cells"].append(code(ANSWERS["params_per_layer"]))
    return n


@damaged(FULL, "was found among the cells of exercise 3")
def stub_left_and_solved_two_exercises_later(n):
    cell_of(n, "params_per_layer")["source"] = STUBS["params_per_layer"]
    n["cells"].insert(index(n, "check_activation_bytes_full"), code(ANSWERS["params_per_layer"]))
    return n


@damaged()
def all_answers_in_one_cell(n):
    for name in ANSWERS:
        cell_of(n, name)["source"] = STUBS[name]
    n["cells"].insert(2, code("\n\n".join(ANSWERS.values())))
    return n


@damaged()
def name_used_again_for_something_else(n):
    n["cells"].insert(index(n, "check_peak_bytes_modes"), code("def best_k(x):\n    return -x"))
    n["cells"].insert(index(n, "check_best_k") + 1, code("best_k = best_k(80, 2, 34)"))
    return n


@damaged()
def helper_cells_and_imports_added(n):
    n["cells"].insert(0, code("import math\nfrom fractions import Fraction"))
    n["cells"].insert(index(n, "best_k"), code("def whole(x):\n    return math.ceil(x)"))
    cell_of(n, "gpus_for_states")["source"] = (
        "def gpus_for_states(psi, gpu_bytes=80e9, K=12):\n"
        "    return math.ceil(Fraction(model_state_bytes(int(psi), K)) / Fraction(gpu_bytes))"
    )
    return n


@damaged(FULL, "stands after the answer that needs it")
def helper_defined_in_a_later_exercise(n):
    cell_of(n, "model_state_bytes")["source"] = "def model_state_bytes(psi, K=12):\n    return each(K) * psi"
    n["cells"].append(code("def each(K):\n    return 4 + K"))
    return n


@damaged()
def magics_in_the_answers(n):
    cell_of(n, "best_k")["source"] = "%%time\n" + ANSWERS["best_k"] + "\n%timeit -n1 3"
    cell_of(n, "model_state_bytes")["source"] = (
        "!pip install numpy\n%matplotlib inline\n" + ANSWERS["model_state_bytes"]
    )
    n["cells"].insert(1, code("from google.colab import drive\ndrive.mount('/content/drive')"))
    n["cells"].insert(1, code("%%bash\nls\n"))
    return n


@damaged()
def stub_magic_hides_nothing(n):
    cell_of(n, "best_k")["source"] = STUBS["best_k"]
    n["cells"].insert(index(n, "best_k") + 1, code("%%capture out\n" + ANSWERS["best_k"]))
    return n


# Other programs' files


@damaged()
def colab(n):
    for number, cell in enumerate(n["cells"]):
        cell["metadata"] = {"id": cell.pop("id"), "outputId": f"9f{number}", "executionInfo": {"status": "ok"}}
        if cell["cell_type"] == "code":
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["ok\n"]}]
    n["metadata"] = {
        "colab": {"provenance": []},
        "kernelspec": {"name": "python3"},
        "widgets": {"application/vnd.jupyter.widget-state+json": {"a1": {"model_name": "HTMLModel"}}},
    }
    return n | {"nbformat_minor": 0}


@damaged()
def colab_minor_4(n):
    return colab(n) | {"nbformat_minor": 4}


@damaged()
def vs_code(n):
    for cell in n["cells"]:
        cell["metadata"]["vscode"] = {"languageId": "python"}
    n["metadata"] = {"kernelspec": {"display_name": ".venv", "name": "python3"}, "orig_nbformat": 4}
    return n | {"nbformat_minor": 2}


@damaged()
def kaggle(n):
    for cell in n["cells"]:
        cell["metadata"] = {"_uuid": "4f", "_cell_guid": "b1", "trusted": True, "papermill": {"status": "completed"}}
        cell.pop("id")
    n["metadata"] = {"kernelspec": {"name": "python3"}, "kaggle": {"isInternetEnabled": False}}
    return n | {"nbformat_minor": 4}


@damaged()
def deepnote(n):
    for cell in n["cells"]:
        cell["metadata"] = {"cell_id": "00000-5f", "deepnote_cell_type": cell["cell_type"], "tags": []}
        cell.pop("id")
    n["metadata"] = {"deepnote": {}, "deepnote_execution_queue": []}
    return n | {"nbformat_minor": 0}


@damaged()
def conda_kernel(n):
    n["metadata"]["kernelspec"] = {"display_name": "conda root", "language": "R", "name": "conda-root-ir"}
    return n


@damaged(FULL, "old format")
def nbformat_3(n):
    cells = []
    for cell in n["cells"]:
        if cell["cell_type"] == "code":
            old = {"cell_type": "code", "input": cell["source"].splitlines(True), "language": "python", "outputs": []}
            cells.append(old | {"collapsed": False, "metadata": cell["metadata"], "prompt_number": 3})
        else:
            cells.append({"cell_type": "markdown", "metadata": {}, "source": [cell["source"]]})
    return {"metadata": {"name": ""}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": cells}]}


@damaged()
def sources_as_lines(n):
    for number, cell in enumerate(n["cells"]):
        cell["source"] = cell["source"].splitlines(number % 2 == 0)
    return n


# Encodings


@damaged(FULL, "UTF-8 with a byte-order mark")
def byte_order_mark(n):
    return b"\xef\xbb\xbf" + saved(n)


@damaged()
def windows_line_ends(n):
    for cell in n["cells"]:
        cell["source"] = cell["source"].replace("\n", "\r\n")
    return saved(n, indent=1).replace(b"\n", b"\r\n")


@damaged(FULL, "UTF-16")
def utf_16(n):
    return saved(n).decode().encode("utf-16")


@damaged(FULL, "UTF-16")
def utf_16_without_a_mark(n):
    return saved(n).decode().encode("utf-16-be")


@damaged(FULL, "could not be read and were replaced")
def latin_1(n):
    n["cells"].insert(0, {"cell_type": "markdown", "metadata": {}, "source": "Übung"})
    return json.dumps(n, ensure_ascii=True).replace("\\u00dc", "\xdc").encode("latin-1")


@damaged()
def zeros_after_the_end(n):
    return saved(n) + b"\0" * 4096


# Size


@damaged(FULL, "Saved outputs, images and attachments of")
def output_of_20_mb(n):
    cell_of(n, "check_best_k")["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * 20_000_000}]
    return n


@damaged(FULL, "Saved outputs, images and attachments of")
def attachments(n):
    picture = {"picture.png": {"image/png": "iVBO" * 500_000}}
    n["cells"].append({"cell_type": "markdown", "metadata": {}, "source": "![](x)", "attachments": picture})
    return n


@damaged(FULL, "1 cell of more than 1,000,000 characters left out")
def cell_of_2_mb(n):
    n["cells"].append(code("x = '''" + "y" * 2_000_000 + "'''"))
    return n


# Names and places


@damaged(FULL, "“exercises (1).ipynb”")
def numbered_copy(n):
    return {"exercises (1).ipynb": saved(n)}


@damaged(FULL, "“My Exercises.IPYNB”")
def spaces_and_capitals(n):
    return {"My Exercises.IPYNB": saved(n), "notes.txt": b"mine", "data.csv": b"1,2"}


@damaged(FULL, "“Übungen-ответ.ipynb”")
def name_not_ascii(n):
    return {"Übungen-ответ.ipynb": saved(n)}


@damaged(FULL, "“exercises.ipynb.txt”")
def named_by_a_browser(n):
    return {"exercises.ipynb.txt": saved(n)}


@damaged(FULL, "“training_memory/exercises.ipynb”")
def one_folder_deeper(n):
    return {"training_memory/exercises.ipynb": saved(n)}


def _zip(files, compression=zipfile.ZIP_DEFLATED):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", compression) as opened:
        for name, data in files.items():
            opened.writestr(name, data)
    return archive.getvalue()


@damaged(FULL, "“homework.zip/training_memory/exercises.ipynb”")
def in_a_zip(n):
    inside = {"training_memory/exercises.ipynb": saved(n), "__MACOSX/training_memory/._exercises.ipynb": b"\0\5\x16"}
    return {"homework.zip": _zip(inside)}


@damaged(FULL)
def zip_called_a_notebook(n):
    return _zip({"exercises.ipynb": saved(n)})


@damaged(FULL)
def zip_with_paths_that_lead_out(n):
    return {"homework.zip": _zip({"../../../../tmp/trainmem-escaped.ipynb": saved(n)})}


@damaged(None, "larger than", "when it is unpacked")
def zip_bomb(n):
    return {"homework.zip": _zip({"exercises.ipynb": b" " * 101_000_000})}


@damaged(None, "cannot be unpacked")
def zip_cut_off(n):
    return {"homework.zip": _zip({"exercises.ipynb": saved(n)})[:-100]}


@damaged(None, "it holds no notebook")
def zip_without_a_notebook(n):
    return {"homework.zip": _zip({"readme.txt": b"sorry"})}


@damaged(None, "link and was not followed")
def zip_with_a_link(n):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        link = zipfile.ZipInfo("exercises.ipynb")
        link.external_attr = 0o120777 << 16
        opened.writestr(link, str(ROOT / "source" / "training_memory" / "exercises.ipynb"))
    return {"homework.zip": archive.getvalue()}


@damaged(None, "2 notebooks", "“exercises.ipynb”", "“exercises (1).ipynb”")
def two_notebooks(n):
    other = copy.deepcopy(n)
    cell_of(other, "best_k")["source"] = STUBS["best_k"]
    return {"exercises.ipynb": saved(n), "exercises (1).ipynb": saved(other)}


@damaged(FULL)
def two_copies_of_one_notebook(n):
    return {"exercises.ipynb": saved(n), "exercises (1).ipynb": saved(n, indent=1)}


@damaged(FULL, "were left aside: “exercises.ipynb”")
def untouched_release_beside_the_answers(n):
    return {"exercises.ipynb": saved(blank()), "exercises-mine.ipynb": saved(n)}


@damaged(FULL, "left aside: exercises.ipynb is empty")
def empty_file_beside_the_answers(n):
    return {"exercises.ipynb": b"", "exercises (1).ipynb": saved(n)}


@damaged(FULL)
def checkpoint_beside_the_answers(n):
    old = copy.deepcopy(n)
    cell_of(old, "best_k")["source"] = STUBS["best_k"]
    return {"exercises.ipynb": saved(n), ".ipynb_checkpoints/exercises-checkpoint.ipynb": saved(old)}


@placed(None, "is a link to another place")
def folder_that_is_a_link(folder, n):
    folder.rmdir()
    folder.symlink_to(ROOT / "source" / "training_memory")


@placed(None, "exercises.ipynb is a link and was not followed")
def notebook_that_is_a_link(folder, n):
    (folder / "exercises.ipynb").symlink_to(ROOT / "source" / "training_memory" / "exercises.ipynb")


@placed(FULL, "elsewhere is a link and was not followed")
def link_beside_the_notebook(folder, n):
    (folder / "exercises.ipynb").write_bytes(saved(n))
    (folder / "elsewhere").symlink_to("/")


@placed(None, "exercises.ipynb is no regular file")
def pipe_called_a_notebook(folder, n):
    os.mkfifo(folder / "exercises.ipynb")


# Files that hold no notebook


@placed(None, "holds no file")
def empty_folder(folder, n):
    pass


@damaged(None, "exercises.ipynb is empty")
def empty_file(n):
    return b""


@damaged(None, "exercises.ipynb is empty")
def file_of_zeros(n):
    return b"\0" * 5000


@damaged(None, "exercises.ipynb ends in the middle")
def cut_off(n):
    return saved(n, indent=1)[:40_000]


@damaged(None, "cannot be read as JSON")
def comma_too_many(n):
    return saved(n).replace(b'"cells": [', b'"cells": [,')


@damaged(None, "is a web page (HTML)")
def web_page(n):
    return b"<!DOCTYPE html>\n<html><head><title>exercises</title></head><body>Sign in</body></html>"


@damaged(None, "is a PDF file")
def pdf(n):
    return b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"


@damaged(None, "merge-conflict markers (line 2")
def merge_conflict(n):
    lines = saved(n, indent=1).decode().split("\n")
    return "\n".join([*lines[:20], "<<<<<<< HEAD", *lines[20:22], "=======", *lines[22:24], ">>>>>>> mine"]).encode()


@damaged(None, "it is another notebook")
def another_notebook(n):
    return {"metadata": {}, "nbformat": 4, "nbformat_minor": 5, "cells": [code("print('lesson')")]}


@damaged(None, "it is another notebook")
def a_notebook_that_imports_the_answers(n):
    cells = [code("from trainmem_solutions import best_k, peak_bytes"), code("best_k(80, 2, 34)")]
    return {"metadata": {}, "nbformat": 4, "nbformat_minor": 5, "cells": cells}


@damaged(FULL, "500 cells after the first 500 left out")
def a_thousand_cells(n):
    return n | {"cells": n["cells"] + [code(f"x{i} = x{i + 1}") for i in range(1000 - len(n["cells"]))]}


@damaged(None, "without any cell")
def no_cells(n):
    return n | {"cells": []}


@damaged(None, "has no list of cells")
def cells_are_null(n):
    return saved(n | {"cells": None})


@damaged(None, "its JSON is no object")
def a_list(n):
    return b"[1, 2, 3]"


@damaged(None, "it is nested too deep")
def nested_without_end(n):
    return b"[" * 200_000


@damaged(None, "two notebooks, one after the other")
def two_in_one_file(n):
    return saved(n) + b"\n" + saved(n)


@damaged(0.0)
def untouched(n):
    return blank()
