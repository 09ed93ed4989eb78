"""The lesson in a kernel: from an empty folder, under nbval, without torch, and on Colab's stack."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from autograded_tests.colab import COLAB, copied, execute
from autograded_tests.lesson.prose import LESSON, cells
from autograded_tests.notebooks import ROOT, errors, read

TORCH_CELLS = ("setup", "pytorch", "llama-measured")


def text_of(cell: nbformat.NotebookNode) -> str:
    return "".join(output.get("text", "") for output in cell.outputs)


def test_nbval_passes_from_an_empty_folder_and_notices_a_changed_output(tmp_path):
    notebook = read(LESSON)
    nbformat.write(notebook, tmp_path / "lesson.ipynb")
    changed = nbformat.from_dict(notebook)
    # Only the cells that are needed to see that a difference fails: the first, and the changed one.
    changed.cells = [cell for cell in changed.cells if cell.id in ("setup", "linear-layer-keeps")]
    changed.cells[1].outputs[0].text = changed.cells[1].outputs[0].text.replace("8,388,608", "8,388,609")
    nbformat.write(changed, tmp_path / "changed.ipynb")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    options = dict(cwd=tmp_path, env=environment, capture_output=True, text=True)
    same = subprocess.run([*command, "lesson.ipynb"], **options)
    assert same.returncode == 0, same.stdout[-3000:]
    assert f"{len(cells('code'))} passed" in same.stdout
    different = subprocess.run([*command, "changed.ipynb"], **options)
    assert different.returncode == 1
    assert "1 failed, 1 passed" in different.stdout


def test_without_torch_it_says_what_one_would_see(tmp_path):
    notebook = read(LESSON)
    shown = {cell.id: text_of(cell) for cell in notebook.cells if cell.cell_type == "code"}
    notebook.cells = [cell for cell in notebook.cells if cell.id in TORCH_CELLS]
    # A torch that cannot be imported stands in front of the real one.
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')\n")
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}}).execute(env=environment)
    said = {cell.id: text_of(cell) for cell in notebook.cells}
    assert "need not install it" in said["pytorch"]
    for name in ("pytorch", "llama-measured"):
        measured = re.findall(r"\d+\.\d\d(?= sbh)", shown[name])
        promised = re.findall(r"\d+\.\d\d", said[name].split("2.13", 1)[1])
        assert len(measured) >= 2
        assert promised == measured
    text = "\n".join(cells("markdown").values())
    assert (
        re.findall(r"\d+\.\d\d", text.split("The measured numbers (")[1].split(",  and")[0])[:3]
        == re.findall(r"\d+\.\d\d(?= sbh)", shown["pytorch"])[:3]
    )


def test_the_measurement_meets_the_theorem():
    shown = {cell.id: text_of(cell) for cell in read(LESSON).cells if cell.cell_type == "code"}
    lines = re.findall(r"\(theorem: (\d+)\)\s+(\d+\.\d\d) sbh", shown["pytorch"])
    assert [int(theorem) for theorem, _ in lines] == [34 + 20, 34, 2]
    for theorem, measured in lines:
        assert 0 <= float(measured) - int(theorem) < 0.1


def test_an_assert_of_the_worked_example_fails_where_a_number_is_wrong(tmp_path):
    notebook = read(LESSON)
    notebook.cells = [cell for cell in notebook.cells if cell.id in ("setup", "step-1")]
    notebook.cells[1].source = notebook.cells[1].source.replace("V * h == 102_926_336", "V * h == 102_926_337")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    client = NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}})
    with pytest.raises(CellExecutionError, match="AssertionError"):
        client.execute(env=environment)


def installed(python: Path) -> set[str]:
    """Distributions with their versions, as their metadata folders in site-packages are called."""
    return {place.name for place in python.parents[1].glob("lib/python3*/site-packages/*.dist-info")}


@pytest.mark.long
def test_on_colabs_stack_the_first_cell_installs_the_course_and_nothing_else(colab, tmp_path):
    python = copied(colab, tmp_path / "colab")
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "trainmem", "trainmem_solutions"):
        subprocess.run(["cp", "-r", ROOT / name, source / name], check=True)
    wheel_command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, source]
    subprocess.run(wheel_command, check=True, timeout=300)
    [wheel] = tmp_path.glob("trainmem-*.whl")
    before = installed(python)
    assert {package.replace("==", "-") + ".dist-info" for package in COLAB} <= before
    assert not any(package.startswith("trainmem") for package in before)

    notebook = read(LESSON)
    setup = notebook.cells[1]
    assert setup.id == "setup"
    setup.source, replaced = re.subn(r'^ARCHIVE = ".*"$', f'ARCHIVE = "{wheel}"', setup.source, flags=re.MULTILINE)
    assert replaced == 1
    executed = execute(python, notebook, tmp_path)
    assert errors(executed) == {}

    assert {package.split("-")[0] for package in installed(python) ^ before} == {"trainmem"}
    committed = {cell.id: cell for cell in read(LESSON).cells}
    widgets = 0
    for cell in executed.cells:
        if cell.cell_type != "code" or cell.id in ("pytorch", "llama-measured"):
            continue
        assert text_of(cell) == text_of(committed[cell.id]), cell.id
        widgets += any("application/vnd.jupyter.widget-view+json" in output.get("data", {}) for output in cell.outputs)
    shown = [name for name in cells("code") if name.startswith(("figure-", "check-"))]
    assert widgets == len(shown) > 10
    torchless = next(cell for cell in executed.cells if cell.id == "pytorch")
    assert "PyTorch is not installed" in text_of(torchless)
