"""The released notebook in a kernel: what runs, what is said, and that nbval would notice any change of it."""

import subprocess
import sys
import venv

import nbformat
import pytest

from autograded_tests.notebooks import FUNCTIONS, RELEASE, answered, errors, execute, nbval, read, reference_answers

CHECKS = [cell.id for cell in read(RELEASE).cells if cell.metadata.nbgrader.grade]


def function_of(check: str) -> str:
    """The function that a check asks: the longest name that its own name contains."""
    return max((name for name in FUNCTIONS if check.startswith(f"check_{name}")), key=len)


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    return execute(answered(reference_answers()), tmp_path_factory.mktemp("solved"))


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    return execute(read(RELEASE), tmp_path_factory.mktemp("untouched"))


def change_one_output(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    changed = nbformat.from_dict(notebook)
    printed = next(o for c in changed.cells if c.cell_type == "code" for o in c.outputs if o.output_type == "stream")
    printed.text = printed.text.replace("e", "x", 1)
    return changed


def test_every_check_accepts_the_reference(solved):
    assert errors(solved) == {}


def test_untouched_each_check_says_not_written_yet_in_one_line(untouched):
    said = errors(untouched)
    assert said == {check: ("NotWritten", f"{function_of(check)}: not written yet") for check in CHECKS}
    for cell in untouched.cells:
        if cell.id in said:
            [output] = cell.outputs
            assert output.traceback == [said[cell.id][1]], "one line, and no page of traceback"


def test_an_answer_that_calls_an_unwritten_one_names_the_innermost(tmp_path):
    answers = {name: source for name, source in reference_answers().items() if name != "params_per_layer"}
    said = errors(execute(answered(answers), tmp_path))
    for check in CHECKS:
        if "param" in check:
            assert said[check] == ("NotWritten", "params_per_layer: not written yet")


@pytest.mark.parametrize("edition", ["solved", "untouched"])
def test_every_code_cell_ran(edition, request):
    notebook = request.getfixturevalue(edition)
    assert [cell.id for cell in notebook.cells if cell.cell_type == "code" and not cell.execution_count] == []


@pytest.mark.parametrize("edition", ["solved", "untouched"])
def test_nbval_passes_on_the_executed_twin_and_fails_where_an_output_differs(edition, request, tmp_path):
    notebook = request.getfixturevalue(edition)
    same = nbval(notebook, tmp_path)
    assert same.returncode == 0, same.stdout[-3000:]
    assert f"{sum(cell.cell_type == 'code' for cell in notebook.cells)} passed" in same.stdout
    assert nbval(change_one_output(notebook), tmp_path).returncode == 1


@pytest.mark.parametrize("numpy", ["numpy==2.0.*", "numpy"])
def test_the_release_runs_alone_with_numpy_and_ipykernel(numpy, tmp_path):
    venv.create(tmp_path / "alone", with_pip=True)
    python = tmp_path / "alone" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", numpy, "ipykernel"], check=True, timeout=300)
    kernel = tmp_path / "jupyter" / "kernels" / "alone"
    kernel.mkdir(parents=True)
    spec = f'{{"argv": ["{python}", "-m", "ipykernel_launcher", "-f", "{{connection_file}}"], "display_name": "alone"}}'
    (kernel / "kernel.json").write_text(spec)
    notebook = answered(reference_answers())
    notebook.cells.insert(0, nbformat.v4.new_code_cell("import numpy; print(numpy.__version__)"))
    nbformat.write(notebook, tmp_path / "exercises.ipynb")
    (tmp_path / "empty").mkdir()
    command = [sys.executable, "-m", "jupyter", "execute", "--inplace", "--kernel_name=alone", "exercises.ipynb"]
    environment = {"JUPYTER_PATH": str(tmp_path / "jupyter"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "empty")}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-3000:]
    executed = read(tmp_path / "exercises.ipynb")
    assert errors(executed) == {}
    assert (
        executed.cells[0]
        .outputs[0]
        .text.startswith(numpy.removeprefix("numpy==").removesuffix("*").removeprefix("numpy"))
    )
