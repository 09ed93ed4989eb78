"""The packages as their readers meet them: every example in a docstring runs, and no torch where none is needed."""

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest

import trainmem.measure
import trainmem.memory

MODULES = [
    module.name
    for package in (trainmem.memory, trainmem.measure)
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + ".")
]


@pytest.mark.parametrize("name", ["trainmem.memory", "trainmem.measure", *MODULES])
def test_examples_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_memory_needs_neither_torch_nor_jupyter():
    block = (
        "import sys; sys.modules.update(dict.fromkeys(('torch', 'IPython', 'ipywidgets', 'nbgrader', 'matplotlib')))"
    )
    program = f"{block}; import trainmem.memory; print(trainmem.memory.MODELS['1.3b'].parameters)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "1311528960\n"


def test_every_module_stands_in_the_map():
    for package in (trainmem.memory, trainmem.measure):
        for module in pkgutil.iter_modules(package.__path__):
            assert f"\n{module.name} " in package.__doc__
    assert all(hasattr(trainmem.memory, name) for name in trainmem.memory.__all__)
