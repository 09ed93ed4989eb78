"""An environment with what Colab has, as far as the course's notebooks meet it, and notebooks executed in it."""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat

from autograded_tests.notebooks import read

COLAB = ("ipywidgets==7.7.1", "ipython==7.34.0", "ipykernel==6.17.1", "traitlets==5.7.1")
COLAB += ("numpy==2.1.3", "matplotlib==3.10.0", "ipython_genutils==0.2.0")


def environment(folder: Path) -> Path:
    """The Python of Colab's environment in `folder`. Whoever comes first makes it; the others wait and take it."""
    folder.mkdir(parents=True, exist_ok=True)
    python, made = folder / "python" / "bin" / "python", folder / "made"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # given back when its holder ends, however that happens
        if not made.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder / "python"], check=True)
            pip = [python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
            # ipywidgets 7 asks for the old notebook server, which the notebooks do not meet.
            subprocess.run([*pip, *(name for name in COLAB if name != COLAB[0])], check=True, timeout=300)
            subprocess.run([*pip, "--no-deps", COLAB[0]], check=True, timeout=300)
            made.touch()
    return python


def copied(python: Path, folder: Path) -> Path:
    """The Python of a copy of an environment, to install into: files are shared until one is replaced."""
    subprocess.run(["cp", "-al", python.parents[1], folder], check=True)
    return folder / "bin" / "python"


def execute(
    python: Path, notebook: nbformat.NotebookNode, folder: Path, variables: dict[str, str] | None = None
) -> nbformat.NotebookNode:
    """The notebook after all its cells ran under that Python, in an empty folder `folder`/work.

    The kernel knows nothing of this process's environment but `variables`. A cell that fails stops nothing.
    """
    kernel = folder / "jupyter" / "kernels" / "colab"
    kernel.mkdir(parents=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "colab"}))
    nbformat.write(notebook, folder / "notebook.ipynb")
    work = folder / "work"
    work.mkdir()
    script = (
        "import nbformat; from nbclient import NotebookClient; n = nbformat.read('notebook.ipynb', 4);"
        "NotebookClient(n, kernel_name='colab', timeout=120, allow_errors=True,"
        " resources={'metadata': {'path': 'work'}}).execute(); nbformat.write(n, 'executed.ipynb')"
    )
    variables = {"JUPYTER_PATH": str(folder / "jupyter"), "PATH": os.defpath, "HOME": str(work)} | (variables or {})
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-3000:]
    return read(folder / "executed.ipynb")
