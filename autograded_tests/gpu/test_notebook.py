"""The GPU notebook as a person without a GPU meets it: alone in an empty folder, with the base package and torch."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from autograded_tests.gpu.renew import NOTEBOOK, WIDGET
from autograded_tests.notebooks import read
from trainmem.course import place
from trainmem.measure.checkpointing import SETTINGS
from trainmem.measure.results import load

IGNORED = "nbval-ignore-output"

# The fixture runs the whole notebook: a minute on an idle core, but many on a busy machine.
pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def notebook():
    return read(NOTEBOOK)


@pytest.fixture(scope="module")
def nbval_run(base_environment, tmp_path_factory):
    """nbval in a folder that holds the notebook and nothing else, with the base kernel."""
    folder = tmp_path_factory.mktemp("alone")
    shutil.copy(NOTEBOOK, folder)
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-kernel-name=base", "--nbval-cell-timeout=200"]
    command += ["-q", "-p", "no:cacheprovider", "-o", "addopts=", f"--rootdir={folder}", NOTEBOOK.name]
    done = subprocess.run(command, cwd=folder, env=base_environment, capture_output=True, text=True)
    return folder, done


def test_it_runs_and_its_stored_numbers_come_out_again(nbval_run):
    _, done = nbval_run
    assert done.returncode == 0, done.stdout[-6000:]


def test_every_case_is_within_two_percent_of_live_storage(nbval_run):
    folder, _ = nbval_run
    (path,) = (folder / "measured").glob("*.json")
    results = load(path)
    assert results.device["measures"] == "live storage on a CPU"
    assert {x["setting"] for x in results.cases} == set(SETTINGS)
    assert len(results.cases) == 3 * len(SETTINGS)
    off = {(x["s"], x["setting"]): x["measured_bytes"] / x["predicted_bytes"] - 1 for x in results.measured()}
    assert len(off) > 40
    assert {case: value for case, value in off.items() if abs(value) > 0.02} == {}
    wrong_moment = [x for x in results.measured() if x["measured_at"] != x["predicted_at"]]
    assert wrong_moment == []


def test_what_ran_out_of_memory_did_so_where_predicted(nbval_run):
    folder, _ = nbval_run
    (path,) = (folder / "measured").glob("*.json")
    ran_out = [x for x in load(path).cases if x["outcome"] == "out of memory"]
    assert {x["setting"] for x in ran_out} == {"no checkpoints", "every 11", "every 12"}
    assert all(x["verdict"] == "does not fit" and x["stopped_at"] == x["runs_out_at"] for x in ran_out)


def test_the_kernel_has_the_wheel_and_no_more(base_environment, tmp_path):
    kernel = json.loads((tmp_path.joinpath(base_environment["JUPYTER_PATH"], "kernels/base/kernel.json")).read_text())
    code = (
        "import trainmem, importlib.util as u; print(trainmem.__file__, [x for x in ('torch', 'ipywidgets', "
        "'nbgrader', 'jupyterlab', 'pytest', 'nbval', 'notebook', 'nbformat', 'tqdm') if u.find_spec(x)])"
    )
    env = base_environment | kernel["env"]
    done = subprocess.run([*kernel["argv"][:2], "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    where, left = done.stdout.split(" ", 1)
    assert where.startswith(kernel["env"]["PYTHONPATH"])
    assert left.strip() == "['torch', 'ipywidgets']"


def test_what_is_stable_is_compared(notebook):
    """The tables of peaks are stored and compared; pictures, times and names of devices are not."""
    code = {cell.id: cell for cell in notebook.cells if cell.cell_type == "code"}
    compared = {name for name, cell in code.items() if IGNORED not in cell.metadata.get("tags", []) and cell.outputs}
    assert {"shapes", "plain-peaks", "every-1-peaks", "every-k-best", "attention-peaks", "limit-outcome"} <= compared
    assert {"plain-predicted", "attention-predicted", "limit-predicted", "together-difference"} <= compared
    for name, cell in code.items():
        text = json.dumps(cell.outputs)
        if "image/png" in text or " ms |" in text:
            assert IGNORED in cell.metadata.tags, name


def test_the_stored_notebook_is_clean(notebook):
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert set(notebook.metadata.language_info) == {"name"}
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z][a-z0-9-]+", name) and not re.fullmatch(r"[0-9a-f]{8}.*", name) for name in ids)
    for cell in notebook.cells:
        assert set(cell.metadata) <= {"tags"}, cell.id
        for output in cell.get("outputs", []):
            assert output.output_type in ("stream", "display_data", "execute_result"), cell.id
            assert output.get("name") != "stderr", cell.id
            assert WIDGET not in output.get("data", {}), cell.id


def test_a_prediction_is_asked_for_before_each_measurement(notebook):
    ids = [cell.id for cell in notebook.cells]
    for part in ("plain", "every-1", "every-k", "attention", "limit"):
        guess, run = ids.index(f"{part}-guess"), ids.index(f"{part}-run")
        assert ids.index(f"{part}-text") < guess < run < ids.index(f"{part}-reading")
        assert "Predict first" in notebook.cells[ids.index(f"{part}-text")].source
        assert "What to make of it" in notebook.cells[ids.index(f"{part}-reading")].source


def test_pictures_have_alternative_text(notebook):
    pictures = [
        output.data["text/html"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "text/html" in output.get("data", {})
    ]
    assert len(pictures) == 7
    for picture in pictures:
        alt = re.search(r'alt="([^"]{60,})"', picture)[1]
        assert f"<figcaption>{alt}</figcaption>" in picture


def test_it_installs_the_course_and_nothing_else(notebook, tmp_path, monkeypatch):
    """The first cell where trainmem is missing: one pip command, for the course alone; where torch is, a sentence."""
    setup = next(cell.source for cell in notebook.cells if cell.id == "setup")
    opening = setup.split("from pathlib")[0]
    script = (
        "import sys, subprocess\n"
        "sys.modules['torch'] = {torch}\n"
        "sys.modules['trainmem'] = None\n"
        "subprocess.run = lambda command, check: print(command[1:])\n" + opening
    )
    (tmp_path / "install.py").write_text(script.replace("{torch}", "sys"))
    done = subprocess.run([sys.executable, tmp_path / "install.py"], capture_output=True, text=True)
    asked = ["-m", "pip", "install", "--quiet", "--no-deps", place.archive()]
    assert done.stdout.strip() == str(asked)
    (tmp_path / "install.py").write_text(script.replace("{torch}", "None"))
    done = subprocess.run([sys.executable, tmp_path / "install.py"], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].startswith("ImportError: PyTorch is missing. Colab has it")
