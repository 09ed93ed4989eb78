"""The lesson in JupyterLab in a real browser: it runs quietly, its links lead, its quick checks answer by keyboard."""

import os
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

from autograded_tests.lab import choose_theme, open_notebook, run_all
from autograded_tests.lesson.prose import LESSON, prose
from trainmem.review import QUICK_CHECKS


@pytest.fixture(scope="module")
def lesson(lab, lab_folder, browser):
    """The page after all cells ran, with what its console said and what it asked for outside this machine."""
    for name in ("lesson.ipynb", "self_study.ipynb", "open_in_colab.svg"):
        shutil.copy(LESSON.parent / name, lab_folder / name)
    shutil.copytree(LESSON.parent / "figures", lab_folder / "figures", dirs_exist_ok=True)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(200_000)
    page.said, page.asked = [], []
    page.on("console", lambda message: page.said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    open_notebook(page, lab, "lesson.ipynb")
    run_all(page, timeout_s=200)
    page.wait_for_function(f"document.querySelectorAll('.trainmem-check').length === {len(QUICK_CHECKS)}")
    yield page
    page.close()


def test_no_cell_fails_nothing_is_said_and_nothing_is_asked_outside(lesson):
    assert lesson.locator(".jp-Notebook [data-mime-type='application/vnd.jupyter.error']").count() == 0
    assert lesson.locator(".jp-Notebook [data-mime-type='application/vnd.jupyter.stderr']").count() == 0
    assert lesson.locator(".trainmem-figure").count() == 5
    assert lesson.said == []
    local = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")
    assert [address for address in lesson.asked if not address.startswith(local)] == []


def test_pictures_load_and_formulas_are_set(lesson):
    pictures = lesson.locator(".jp-MarkdownOutput img")
    assert pictures.count() == 7
    assert pictures.evaluate_all("all => all.every(picture => picture.naturalWidth > 0)")
    assert lesson.locator(".jp-MarkdownOutput mjx-container").count() > 200
    shown = " ".join(lesson.locator(".jp-MarkdownOutput").all_inner_texts())
    assert "[[" not in shown
    assert "$" not in shown


def test_an_internal_link_leads_to_its_heading(lesson):
    assert "[Does it fit](#Does-it-fit)" in prose()
    lesson.locator(".jp-Notebook a", has_text="Does it fit").first.click()
    expect(lesson.locator(".jp-Notebook h2", has_text="Does it fit")).to_be_in_viewport()


@pytest.mark.parametrize("name", ["double-the-micro-batch", "bytes-at-the-loss"])
def test_a_quick_check_is_answered_by_keyboard(lesson, name):
    check = QUICK_CHECKS[name]
    box = lesson.locator(".trainmem-check").nth([*QUICK_CHECKS].index(name))
    said, choices = box.locator("[role=alert]"), box.locator(".trainmem-choice")
    assert said.get_attribute("aria-live") == "polite"
    assert said.inner_text() == ""
    choices.first.focus()
    for number, choice in enumerate(check.choices):
        if number:
            lesson.keyboard.press("Tab")
        assert choices.nth(number).evaluate("button => button === document.activeElement")
        lesson.keyboard.press("Enter" if number % 2 else "Space")
        said.get_by_text(f"{'ABCD'[number]}: {'✓ Right.' if choice.right else '✗ Not this one.'}").wait_for()
        assert check.filled(choice.why).replace("*", "") in said.inner_text()


def test_axe_finds_nothing_serious_in_the_quick_checks(lesson, axe):
    # All are answered, rightly and wrongly in turn, and one choice is being pointed at.
    for number, check in enumerate(QUICK_CHECKS.values()):
        box, right = lesson.locator(".trainmem-check").nth(number), number % 2 == 0
        choice = [choice.right for choice in check.choices].index(right)
        box.locator(".trainmem-choice").nth(choice).click()
        box.get_by_text(f"{'ABCD'[choice]}: {'✓ Right.' if right else '✗ Not this one.'}").wait_for()
    for theme in ("dark", "light"):
        choose_theme(lesson, theme)
        lesson.locator(".trainmem-check .trainmem-choice").first.hover()
        if folder := os.environ.get("TRAINMEM_SHOTS"):
            for number in (0, 3):
                picture = Path(folder) / f"check {number} {theme}.png"
                lesson.locator(".trainmem-check").nth(number).screenshot(path=picture)
        assert axe(lesson, ".trainmem-check") == [], theme


def test_quick_checks_are_readable_on_a_phone(lesson):
    buttons = lesson.evaluate(
        """() => [...document.querySelectorAll('.trainmem-check')].flatMap(box => {
            box.style.width = '340px';
            return [...box.querySelectorAll('.trainmem-choice')].map(
                button => [button.clientWidth, button.scrollWidth - button.clientWidth,
                           button.scrollHeight - button.clientHeight]);
        })"""
    )
    assert len(buttons) == sum(len(check.choices) for check in QUICK_CHECKS.values())
    assert all(width > 300 and beyond <= 1 and below <= 1 for width, beyond, below in buttons)
