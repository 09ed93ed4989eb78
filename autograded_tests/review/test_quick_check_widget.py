"""The quick check as a widget: in Python, and in JupyterLab by keyboard."""

import nbformat
import pytest
from playwright.sync_api import TimeoutError

from autograded_tests.lab import open_notebook, run_all
from trainmem.course.editions import KERNEL
from trainmem.review import QUICK_CHECKS, quick_check


def buttons(box):
    return [child for child in box.children if hasattr(child, "click")]


@pytest.mark.parametrize("name", QUICK_CHECKS)
def test_every_button_says_why(name):
    check, box = QUICK_CHECKS[name], quick_check(name)
    said = box.children[-1]
    assert len(buttons(box)) == len(check.choices)
    for button, choice in zip(buttons(box), check.choices, strict=True):
        button.click()
        assert ("✓ Right." in said.value) == choice.right
        assert ("✗ Not this one." in said.value) != choice.right
        plain = check.filled(choice.why).split("*")[0][:30]
        assert plain.replace("<", "&lt;") in said.value
        assert 'aria-live="polite"' in said.value
    assert len(repr(box)) <= 110, "ipywidgets cuts a longer plain text"


def test_two_boxes_of_one_check_do_not_share_their_answers():
    first, second = quick_check("states-of-13b"), quick_check("states-of-13b")
    buttons(first)[0].click()
    assert "A:" in first.children[-1].value
    assert "A:" not in second.children[-1].value


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="double-the-micro-batch"):
        quick_check("double-the-batch")


def run_until_shown(page, selector):
    """Run all cells; once more where the first time came before the kernel was connected, and was lost."""
    try:
        run_all(page, timeout_s=8)
    except TimeoutError:
        run_all(page)
    page.wait_for_selector(selector)


def test_answered_by_keyboard_in_jupyterlab_and_readable_on_a_phone(lab, lab_folder, page):
    cell = nbformat.v4.new_code_cell(
        "from trainmem.review import quick_check\nquick_check('cheapest-fix-of-the-example')"
    )
    nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata=KERNEL), lab_folder / "check.ipynb")
    open_notebook(page, lab, "check.ipynb")
    run_until_shown(page, ".trainmem-check .trainmem-choice")
    said = page.locator(".trainmem-check [role=alert]")
    choices = page.locator(".trainmem-check .trainmem-choice")
    assert said.inner_text() == ""
    choices.nth(0).focus()
    page.keyboard.press("Tab")
    assert choices.nth(1).evaluate("button => button === document.activeElement")
    page.keyboard.press("Enter")
    said.get_by_text("Not this one").wait_for()
    assert "nobody to share" in said.inner_text()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    said.get_by_text("Right.").wait_for()
    assert "51.7 GB" in said.inner_text()
    assert said.get_attribute("aria-live") == "polite"
    page.locator(".trainmem-check").evaluate("box => box.style.width = '340px'")
    for button in choices.all():
        assert button.bounding_box()["width"] > 300
        assert button.evaluate("b => b.scrollWidth <= b.clientWidth + 1 && b.scrollHeight <= b.clientHeight + 1")
