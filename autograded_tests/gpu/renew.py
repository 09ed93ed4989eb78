"""Runs the GPU notebook on the CPU in an empty folder and keeps its outputs: after an edit to its cells.

python -m autograded_tests.gpu.renew
"""

import os
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from autograded_tests.notebooks import ROOT, read

NOTEBOOK = ROOT / "notebooks" / "checkpointing_gpu.ipynb"
WIDGET = "application/vnd.jupyter.widget-view+json"


def without_widgets(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Without the state of widgets, and without outputs that would show nothing without it."""
    notebook.metadata.pop("widgets", None)
    notebook.metadata.language_info = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if WIDGET not in output.get("data", {})]
    return notebook


if __name__ == "__main__":
    os.environ |= {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}
    notebook = read(NOTEBOOK)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, kernel_name="python3", timeout=300, resources=resources).execute()
    nbformat.write(without_widgets(notebook), NOTEBOOK)
    print(f"{NOTEBOOK.relative_to(Path.cwd())}: {len(notebook.cells)} cells run")
