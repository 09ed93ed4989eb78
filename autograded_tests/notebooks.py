"""Notebooks as the tests need them: the editions, filled in with answers, executed in a kernel."""

import subprocess
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "source" / "training_memory" / "exercises.ipynb"
RELEASE = ROOT / "release" / "training_memory" / "exercises.ipynb"
FUNCTIONS = (
    "params_per_layer",
    "model_params",
    "model_state_bytes",
    "gpus_for_states",
    "activation_bytes",
    "memory_timeline",
    "best_k",
    "peak_bytes",
    "cheapest_fix",
)


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def reference_answers() -> dict[str, str]:
    """The reference's cells by the function that they define."""
    cells = {cell.id: cell.source for cell in read(SOURCE).cells}
    return {name: cells[name] for name in FUNCTIONS}


def answered(answers: dict[str, str]) -> nbformat.NotebookNode:
    """The release with the given answer cells written, the others still stubs."""
    notebook = read(RELEASE)
    for cell in notebook.cells:
        cell.source = answers.get(cell.id, cell.source)
    return notebook


def execute(notebook: nbformat.NotebookNode, folder: Path, kernel: str = "python3") -> nbformat.NotebookNode:
    """Run all cells in a fresh kernel in `folder`, going on after errors, as a person's Run All does here."""
    executed = nbformat.from_dict(notebook)
    NotebookClient(executed, kernel_name=kernel, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return executed


def errors(notebook: nbformat.NotebookNode) -> dict[str, tuple[str, str]]:
    """What each cell raised: cell id → (exception's name, its text)."""
    return {
        cell.id: (output.ename, output.evalue)
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "error"
    }


def nbval(notebook: nbformat.NotebookNode, folder: Path) -> subprocess.CompletedProcess:
    """What nbval says of an executed notebook that stands alone in a folder."""
    path = folder / "twin.ipynb"
    nbformat.write(notebook, path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval", path.name]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)
