"""A dozen students who never lived: `python -m autograded_tests.sample_class FOLDER` writes what they hand in.

Each is made from named answers (autograded_tests/answers), with the marks that these answers deserve: exercise by
exercise, in the order of the course. `carried` is what stock nbgrader gives, where mistakes carry forward.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from autograded_tests.answers import notebook_cells
from autograded_tests.notebooks import answered
from trainmem.course.place import ASSIGNMENT, NOTEBOOK


@dataclass(frozen=True)
class Student:
    """Who hands in what: answers by exercise (plain ones for the rest), and what became of the file."""

    marks: tuple[int, int, int, int, int]
    answers: dict[str, str] | None = field(default_factory=dict)  # None: nothing was written
    carried: tuple[int, int, int, int, int] | None = None
    save: Callable[[nbformat.NotebookNode], None] = lambda notebook: None

    def notebook(self) -> nbformat.NotebookNode:
        notebook = answered({} if self.answers is None else notebook_cells(**self.answers))
        self.save(notebook)
        return notebook


def saved_by_colab(notebook: nbformat.NotebookNode) -> None:
    """Colab: format 4.0, ids in the metadata, execution info, a trimmed kernelspec, widget state without state."""
    notebook.nbformat_minor = 0
    notebook.metadata = nbformat.from_dict(
        {
            "colab": {"provenance": [], "toc_visible": True},
            "kernelspec": {"name": "python3", "display_name": "Python 3"},
            "language_info": {"name": "python"},
            "widgets": {"application/vnd.jupyter.widget-state+json": {}},
        }
    )
    for cell in notebook.cells:
        cell.metadata["id"] = cell.pop("id")
        if cell.cell_type == "code":
            cell.metadata["executionInfo"] = {"status": "ok", "timestamp": 1700000000000, "user_tz": -60, "elapsed": 12}
            cell.metadata["outputId"] = "3f0c9a54-8b1d-4c60-f7a2-0c8c9f6d7e11"


def with_helper_cells(notebook: nbformat.NotebookNode) -> None:
    """Helpers in cells of their own, before and after the answers, one of them called like a built-in."""
    cells = {cell.id: cell for cell in notebook.cells}
    answer = cells["activation_bytes"]
    first = answer.source.split("\n")[0]
    moved = answer.source.replace(first, first.replace("activation_bytes", "kept_by_one_layer"), 1)
    helper = nbformat.v4.new_code_cell("import numpy as np\n\nsum = 0  # tokens so far\n\n\n" + moved, id="my-helper")
    again = "\n".join([first, "    return kept_by_one_layer(s, b, h, a, mode)"])
    notebook.cells.insert(notebook.cells.index(answer), helper)
    answer.source = again
    notebook.cells.append(
        nbformat.v4.new_code_cell("print(cheapest_fix(10**9, 2, 64, 1, 64, 1, 99, 8e9))", id="my-trial")
    )


CLASS = {
    "ada": Student((10, 10, 10, 10, 10)),
    "blaise": Student(
        (10, 10, 10, 10, 10),
        {
            "parameters": "shapes in NumPy",
            "model_states": "fractions",
            "activations": "generator and helper",
            "timeline": "a generator",
            "cheapest_fix": "a generator of rungs, an array of two",
        },
    ),
    "carl": Student((0, 0, 0, 0, 0), None),
    "dorothy": Student((7, 10, 10, 10, 10), {"parameters": "the norms forgotten"}, carried=(5, 10, 10, 10, 10)),
    "emmy": Student((10, 6, 10, 10, 10), {"model_states": "K ignored"}, carried=(10, 0, 10, 10, 10)),
    "felix": Student((10, 10, 6, 10, 10), {"activations": "masks at two bytes"}, carried=(10, 10, 6, 10, 2)),
    "grace": Student((10, 10, 10, 6, 10), {"timeline": "checkpoints never freed"}, carried=(10, 10, 10, 2, 10)),
    "hedy": Student((10, 10, 10, 10, 6), {"cheapest_fix": "headroom ignored"}),
    "ivan": Student(
        (10, 10, 10, 6, 8),
        {"timeline": "the square root rounded", "cheapest_fix": "limited_by ignored"},
    ),
    "john": Student((10, 10, 10, 10, 10), save=saved_by_colab),
    "katherine": Student((10, 10, 10, 10, 10), save=with_helper_cells),
    "leonhard": Student(
        (10, 10, 10, 10, 10),
        {
            "parameters": "prints, warns and logs",
            "model_states": "prints, warns and logs",
            "activations": "with the log-sum-exp under flash",
            "timeline": "prints, warns and logs",
            "cheapest_fix": "prints, warns and logs",
        },
    ),
}


def write_class(folder: Path) -> None:
    """Write FOLDER/<student>/training_memory/exercises.ipynb for the whole class."""
    for name, student in CLASS.items():
        place = folder / name / ASSIGNMENT / f"{NOTEBOOK}.ipynb"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(nbformat.v4.writes(student.notebook()), "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m autograded_tests.sample_class", description=__doc__.splitlines()[0]
    )
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    write_class(folder)
    print(f"{len(CLASS)} students of the sample class handed in: {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
