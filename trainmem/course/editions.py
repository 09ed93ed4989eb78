"""The notebooks that are made from the cells: the instructor's, the student's (by nbgrader itself) and self-study."""

import logging
import tempfile
from dataclasses import replace
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from traitlets.config import Config, PyFileConfigLoader

import trainmem_solutions
from trainmem import review
from trainmem.course import place
from trainmem.course.cells import Cell, course_cells, self_study_cells
from trainmem.course.place import ASSIGNMENT, NOTEBOOK
from trainmem.course.regions import without_marks, without_solution

ROOT = Path(__file__).resolve().parents[2]
FOLDED = {"jupyter": {"source_hidden": True}}
RELEASE = f"release/{ASSIGNMENT}/{NOTEBOOK}.ipynb"
SELF_STUDY = "notebooks/self_study.ipynb"
KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def course_config() -> Config:
    """Return what nbgrader_config.py says."""
    return PyFileConfigLoader("nbgrader_config.py", path=str(ROOT)).load_config()


def stub() -> str:
    """Return the text that stands for an unwritten answer."""
    return course_config().ClearSolutions.code_stub["python"]


def instructor_edition() -> str:
    """Return the source notebook: what formgrader and nbgrader read, with answers and hidden checks."""
    return _text([_instructor_cell(cell) for cell in course_cells()], RELEASE)


def student_edition(source: str) -> str:
    """Return the release that nbgrader's generate_assignment makes of a source notebook."""
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "source", ASSIGNMENT, f"{NOTEBOOK}.ipynb")
        path.parent.mkdir(parents=True)
        path.write_text(source, "utf-8")
        config = course_config()
        config.CourseDirectory.root = folder
        config.CourseDirectory.assignment_id = ASSIGNMENT
        log = logging.getLogger(__name__)  # errors only, to stderr
        GenerateAssignment(coursedir=CourseDirectory(config=config), config=config, log=log).start()
        return Path(folder, RELEASE).read_text("utf-8")


def self_study_edition() -> str:
    """Return the notebook for readers on their own: answers folded, every check in full, nothing to hand in."""
    course = {name: getattr(trainmem_solutions, name) for name in trainmem_solutions.__all__}
    cells, answers = [], {}
    for cell in self_study_cells():
        prose = review.filled(cell.source, **course) if cell.kind in ("prose", "reasoning", "mistakes") else ""
        if cell.kind == "answer":
            answers[f"answer-{cell.name}"] = f"```python\n{without_marks(cell.source)}\n```"
            cells.append(_plain_cell(replace(cell, source=without_solution(cell.source, stub()))))
        elif cell.kind == "reasoning":
            cells.append(_folded(cell.name, "Answer, and why", f"{answers.pop(cell.name)}\n\n{prose}"))
        elif cell.kind == "mistakes":
            heading, _, text = prose.partition("\n")
            cells.append(_folded(cell.name, "The likeliest mistakes, and how to notice them", text.strip(), heading))
        elif cell.kind == "prose":
            cells.append(new_markdown_cell(prose, id=cell.name))
        else:
            cells.append(_plain_cell(cell))
            if cell.kind == "check":  # in full it holds what the answer should be, in other words
                cells[-1].metadata |= FOLDED
    if answers:
        raise ValueError(f"{', '.join(answers)}: a reasoning cell after the answer is missing, in which it is folded")
    return _text(cells, SELF_STUDY)


def _folded(name: str, summary: str, text: str, above: str = "") -> nbformat.NotebookNode:
    """A cell of Markdown that a reader opens: never a runnable one, which Run All would run."""
    folded = f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"
    return new_markdown_cell(f"{above}\n\n{folded}".strip(), id=name)


def _text(cells: list[nbformat.NotebookNode], path: str) -> str:
    """The file's text; badges open the notebook at `path`."""
    for cell in cells:
        cell.source = place.filled(cell.source, path)
    return nbformat.writes(new_notebook(cells=cells, metadata=KERNEL)) + "\n"


def _plain_cell(cell: Cell) -> nbformat.NotebookNode:
    if cell.kind == "prose":
        return new_markdown_cell(cell.source, id=cell.name)
    # Run All must go on after a check that fails; what is only machinery stands folded.
    goes_on = {"tags": ["raises-exception"]}
    metadata = {"check": goes_on, "figure": goes_on, "code": FOLDED}.get(cell.kind, {})
    return new_code_cell(without_marks(cell.source), id=cell.name, metadata=metadata)


def _instructor_cell(cell: Cell) -> nbformat.NotebookNode:
    made = _plain_cell(cell)
    made.source = cell.source
    graded = {"points": cell.points} if cell.kind == "check" else {}
    made.metadata["nbgrader"] = {
        "grade": cell.kind == "check",
        "grade_id": cell.name,
        "locked": cell.kind != "answer",
        **graded,
        "schema_version": 3,
        "solution": cell.kind == "answer",
        "task": False,
    }
    return made
