"""The review notebook: its cells, nbval, Colab's stack, and a reader in JupyterLab."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from autograded_tests.colab import execute
from autograded_tests.lab import open_notebook, run_all
from autograded_tests.notebooks import ROOT, errors, read
from trainmem.course import place
from trainmem.review import CARDS
from trainmem.review.progress import from_json

REVIEW = ROOT / "notebooks" / "review.ipynb"
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}
FIRST = next(iter(CARDS))


def test_its_first_cell_and_its_badge_follow_the_one_setting():
    cells = {cell.id: cell.source for cell in read(REVIEW).cells}
    setup = {cell.id: cell.source for cell in read(ROOT / "notebooks" / "lesson.ipynb").cells}["setup"]
    install = setup[
        : setup.index("    import trainmem\n", setup.index("subprocess.run")) + len("    import trainmem\n")
    ]
    assert f'ARCHIVE = "{place.archive()}"' in install
    assert cells["setup"].startswith(install)
    assert place.badge("notebooks/review.ipynb") in cells["review-the-recall-cards"]


def test_it_is_stored_without_state_and_with_names_for_its_cells():
    notebook = read(REVIEW)
    assert "widgets" not in notebook.metadata
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", cell.id) for cell in notebook.cells)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert [list(output.data) for output in outputs] == [["text/plain"]]


def test_nbval_passes_and_leaves_no_file_behind(tmp_path):
    nbformat.write(read(REVIEW), tmp_path / "review.ipynb")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval", "review.ipynb"]
    run = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:]
    assert "2 passed" in run.stdout
    assert not (tmp_path / "trainmem_progress.json").exists()


SEVEN = """
import ipywidgets, json
from pathlib import Path
assert ipywidgets.__version__ == "7.7.1"
box = review_session("mine.json")
first = box.session.current
box.show.click()
box.grades[2].click()
box.key_field.value = " "
box.key_field.value = "1"
answers = json.loads(Path("mine.json").read_text())["answers"]
print("SAVED", answers[first][0]["grade"], [rows[0]["grade"] for rows in answers.values()])
other = b\'{"version": 1, "answers": {"m-of-k": [{"at": "2026-01-01T00:00:00+00:00", "grade": 2}]}}\'
for counter in (1, 2):  # as the front end of ipywidgets 7 sets it
    box.upload.metadata = [{"name": "other.json", "type": "application/json", "size": len(other)}]
    box.upload.data = [other]
    box.upload._counter = counter
    print("LOADED", box.said.value)
print("PLAIN", box.session.schedule.description)
"""


def test_it_runs_on_colabs_stack_and_its_buttons_work_there(colab, tmp_path):
    notebook = read(REVIEW)
    notebook.cells.append(nbformat.v4.new_code_cell(SEVEN, id="by-hand"))
    executed = execute(colab, notebook, tmp_path, {"PYTHONPATH": str(ROOT)})
    assert errors(executed) == {}
    outputs = {cell.id: cell.outputs for cell in executed.cells if cell.cell_type == "code"}
    assert "application/vnd.jupyter.widget-view+json" in outputs["session"][0].data
    said = "".join(output.text for output in outputs["by-hand"] if output.output_type == "stream")
    assert "SAVED 3 [3, 1]" in said
    assert re.findall(r"other.json: \d new answers?", said) == ["other.json: 1 new answer", "other.json: 0 new answers"]
    assert "PLAIN Each card comes once a day" in said


# --- in the browser ------------------------------------------------------------------------------------------------


def opened(page, lab, name):
    open_notebook(page, lab, name)
    run_all(page)
    page.wait_for_selector(".trainmem-review button")


def active(page):
    return page.evaluate("document.activeElement.textContent")


@pytest.fixture
def review(lab_folder):
    folder = lab_folder / "review"
    folder.mkdir(exist_ok=True)
    nbformat.write(read(REVIEW), folder / "review.ipynb")
    yield folder
    for file in folder.iterdir():
        if file.is_file():
            file.unlink()


def test_a_reader_without_a_mouse_and_on_a_phone(lab, review, page, tmp_path):
    opened(page, lab, "review/review.ipynb")
    box = page.locator(".trainmem-review")
    asked, answer = box.locator(".trainmem-asked"), box.locator(".trainmem-answer")
    picture = box.locator("svg[role=img]")
    assert CARDS[FIRST].question in asked.inner_text()
    assert answer.count() == 0
    assert f"0 known for now, 0 due, {len(CARDS)} new" in picture.get_attribute("aria-label")

    # By Tab and Enter.
    box.get_by_role("button", name="Show the answer").focus()
    page.keyboard.press("Enter")
    answer.wait_for()
    assert "112 GB" in answer.inner_text()
    for name in ("1 · Again", "2 · Hard", "3 · Good"):
        page.keyboard.press("Tab")
        assert active(page).startswith(name)
    page.keyboard.press("Enter")
    answer.wait_for(state="detached")
    page.wait_for_function("document.activeElement.textContent === 'Show the answer'")
    assert "1 known for now, 0 due" in picture.get_attribute("aria-label")
    second = list(CARDS.values())[1]
    assert second.question in asked.inner_text()

    # By single keys in the field.
    box.get_by_label("By keys").focus()
    page.keyboard.press("Space")
    answer.wait_for()
    page.keyboard.press("1")
    answer.wait_for(state="detached")
    assert "1 known for now, 1 due" in picture.get_attribute("aria-label")
    grades = {name: int(rows[-1].grade) for name, rows in saved(review).answers.items()}
    assert grades == {FIRST: 3, second.name: 1}

    # The file is downloaded; on another computer, and in another folder, it is loaded.
    with page.expect_download() as download:
        box.get_by_role("link", name="Download progress").click()
    assert download.value.suggested_filename == "trainmem_progress.json"
    download.value.save_as(tmp_path / "trainmem_progress.json")
    assert from_json((tmp_path / "trainmem_progress.json").read_text()) == saved(review)
    (review / "trainmem_progress.json").unlink()
    opened(page, lab, "review/review.ipynb")
    assert "0 known for now, 0 due" in picture.get_attribute("aria-label")
    with page.expect_file_chooser() as chooser:
        box.get_by_role("button", name="Load progress").click()
    chooser.value.set_files(tmp_path / "trainmem_progress.json")
    box.get_by_text("trainmem_progress.json: 2 new answers.").wait_for()
    assert "1 known for now, 1 due" in picture.get_attribute("aria-label")
    assert len(saved(review).answers) == 2

    # On a phone nothing sticks out, and no word is small.
    box.get_by_role("button", name="Show the answer").click()
    answer.wait_for()
    shot(box, "large")
    page.keyboard.press("Control+b")
    page.set_viewport_size({"width": 400, "height": 1400})
    page.wait_for_timeout(500)
    box.scroll_into_view_if_needed()
    shot(box, "small")
    assert picture.evaluate("svg => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width") * 13 >= 11
    out = box.evaluate(
        """box => [...box.querySelectorAll('button, input, a, svg, div')].filter(part => part.offsetParent !== null
            && part.getBoundingClientRect().right > box.getBoundingClientRect().right + 1)
            .map(part => part.outerHTML)"""
    )
    assert out == []


def saved(folder):
    return from_json((folder / "trainmem_progress.json").read_text())


def shot(box, name):
    """A picture for whoever wants to look: TRAINMEM_SHOTS names a folder."""
    if folder := os.environ.get("TRAINMEM_SHOTS"):
        box.screenshot(path=Path(folder) / f"review-{name}.png")
