"""The exercises as a student sees them, in JupyterLab in a real browser."""

import shutil
import urllib.parse

import nbformat

from autograded_tests.lab import open_notebook, run_all
from autograded_tests.notebooks import RELEASE, answered, read, reference_answers

DRAWINGS = ".jp-Notebook [data-mime-type='image/svg+xml'] img"
CHECKS = [cell.id for cell in read(RELEASE).cells if cell.metadata.nbgrader.grade]


def test_run_all_on_the_untouched_release_goes_through_to_the_end(lab, lab_folder, page):
    shutil.copy(RELEASE, lab_folder / "exercises.ipynb")
    open_notebook(page, lab, "exercises.ipynb")
    run_all(page)
    said = page.locator(".jp-Notebook [data-mime-type='application/vnd.jupyter.stderr']").all_inner_texts()
    assert [line.strip().endswith(": not written yet") for line in said] == [True] * len(CHECKS)
    assert page.locator(DRAWINGS).count() == 0


def test_the_timeline_is_drawn_over_the_right_one_and_the_first_difference_named(lab, lab_folder, page):
    right = reference_answers()
    wrong = right | {"memory_timeline": right["memory_timeline"].replace("timeline[-1] -= c", "pass")}
    for name, answers, sentence in (
        ("right.ipynb", right, "Your timeline is the right one."),
        ("wrong.ipynb", wrong, "event 20, backward of layer 8: c too much: the checkpoint was not freed."),
    ):
        nbformat.write(answered(answers), lab_folder / name)
        open_notebook(page, lab, name)
        run_all(page)
        timeline, peaks = page.locator(DRAWINGS).all()
        for drawing, labels in ((timeline, ("right", "yours")), (peaks, ("M(k)", "your timelines"))):
            assert drawing.bounding_box()["width"] > 500
            svg = urllib.parse.unquote(drawing.get_attribute("src"))
            assert svg.count("<polyline") == 2
            assert all(f">{label}</text>" in svg for label in labels)
        said = page.locator(".jp-Notebook .jp-OutputArea-output").all_inner_texts()
        assert sentence in [text.strip() for text in said]
