"""One list of dependencies, and a base that Colab already has."""

import re
import subprocess
import sys
import tomllib

import pytest

from autograded_tests.notebooks import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def names(requirements: list[str]) -> set[str]:
    return {re.match(r"[A-Za-z0-9_-]+", requirement)[0].lower() for requirement in requirements}


def test_the_base_needs_numpy_matplotlib_and_ipywidgets_alone():
    assert names(PROJECT["dependencies"]) == {"numpy", "matplotlib", "ipywidgets"}
    assert "ipywidgets>=7.7.1,<9" in PROJECT["dependencies"]
    assert {"lab", "grade", "test", "torch"} <= set(PROJECT["optional-dependencies"])


def test_environment_yml_lists_nothing_a_second_time():
    text = (ROOT / "environment.yml").read_text()
    listed = re.findall(r"^ *- (.+)$", text, re.MULTILINE)
    assert listed == ["conda-forge", f"python{PROJECT['requires-python']}", "pip", "pip:", "-e .[lab,grade,test]"]


@pytest.mark.parametrize("module", ["trainmem_solutions", "trainmem.memory"])
def test_the_floors_need_neither_torch_nor_jupyter(module):
    """What stands on NumPy alone imports nothing above it."""
    above = ("torch", "IPython", "nbformat", "ipywidgets")
    code = f"import sys, {module}; print([name for name in {above} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert run.stdout.strip() == "[]"


def test_trainmem_solutions_imports_nothing_of_ours():
    for path in (ROOT / "trainmem_solutions").glob("*.py"):
        imported = re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(), re.MULTILINE)
        assert "trainmem" not in imported, path.name
