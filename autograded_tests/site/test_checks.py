"""Quick checks on the site: the letters and the verdicts that the notebook shows, and no choice is lost."""

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_notebook

from trainmem.course.editions import ROOT
from trainmem.review import QUICK_CHECKS, Choice, QuickCheck, check_markdown
from trainmem.review.folded import LETTERS
from trainmem.review.widget import VERDICTS, shown
from trainmem.site.checks import check_html
from trainmem.site.exporter import SiteExporter


def check_with(number):
    choices = (Choice("right one", "yes", right=True), *(Choice(f"wrong {i}", "no") for i in range(1, number)))
    return QuickCheck("many", "Somewhere", "Which?", choices)


@pytest.mark.parametrize("name", QUICK_CHECKS)
def test_a_choice_has_the_notebooks_letter_and_verdict(name):
    check = QUICK_CHECKS[name]
    choices = BeautifulSoup(check_html(check), "html.parser").select("details")
    _, *buttons, said = shown(check).children
    assert len(choices) == len(buttons) == len(check.choices)
    for folded, button, choice in zip(choices, buttons, check.choices, strict=True):
        button.click()
        assert folded.summary.get_text()[:4] == button.description[:4]
        assert folded.b.get_text() == VERDICTS[choice.right]
        assert folded.b.get_text() in said.value


@pytest.mark.parametrize("show", [check_html, check_markdown, shown])
def test_every_choice_is_shown_or_one_too_many_is_named(show):
    assert show(check_with(len(LETTERS)))
    with pytest.raises(ValueError, match="'many' has 9 choices and there are 8 letters"):
        show(check_with(len(LETTERS) + 1))


def test_the_folded_text_of_a_check_is_left_out():
    lesson = nbformat.read(ROOT / "notebooks" / "lesson.ipynb", as_version=4)
    cells, _ = SiteExporter({})._cells(lesson.cells)
    texts = {check_markdown(check) for check in QUICK_CHECKS.values()}
    assert any(cell.source in texts for cell in lesson.cells)
    assert not any(cell.source in texts for cell in cells)
    assert sum("check" in cell.metadata.get("site", {}) for cell in cells) == len(QUICK_CHECKS)


@pytest.mark.parametrize("resources", [None, {}, {"page": None}])
def test_an_exporter_without_a_page_asks_for_one(resources):
    with pytest.raises(ValueError, match="a page needs resources="):
        SiteExporter({}).from_notebook_node(new_notebook(), resources)
