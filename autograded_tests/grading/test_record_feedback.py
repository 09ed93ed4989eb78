"""The student's page: whole, safe whatever a submission holds, readable on a phone and by a screen reader."""

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from autograded_tests.notebooks import SOURCE
from trainmem.course.editions import course_config
from trainmem.grading.checks import CheckResult
from trainmem.grading.edition import course_stub, read_edition
from trainmem.grading.feedback import MAX_MESSAGE_CHARACTERS, MAX_SENTENCES, ungraded_page
from trainmem.grading.outcome import Graded, readable
from trainmem.grading.publish import page_of
from trainmem.grading.record import Standing

HOSTILE = "</p></td><script>window.hacked = 1</script><img src=x onerror='window.hacked=1'>{{ 7*7 }}{% raw %}"
VOID = {"meta", "br", "img", "link", "input", "hr"}


@pytest.fixture(scope="module")
def edition():
    return read_edition(SOURCE, course_stub(course_config()))


def graded(edition, message="", student="ann", **lists):
    """A submission of which every second check failed with a message."""
    results = tuple(
        CheckResult(
            check.name,
            check.exercise,
            0.0 if number % 2 else check.points,
            check.points,
            message if number % 2 else "",
            "failed" if number % 2 else "passed",
        )
        for number, check in enumerate(edition.assignment.checks)
    )
    lists = {"notes": (), "repairs": (), "cut": ()} | lists
    return Graded(student, results, unwritten=(), notebook="", **lists)


def made(edition, outcome, comments=None, penalty=0.0):
    scores = {result.check: result.score for result in outcome.results}
    return page_of(outcome, edition, Standing(scores, comments or {}, penalty))


class Tree(HTMLParser):
    """The elements of a page in order, and a failure where they do not nest."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, *tags):
        return [(tag, attributes) for tag, attributes in self.elements if tag in tags]


def test_the_page_has_the_structure_that_a_screen_reader_goes_by(edition):
    text = made(edition, graded(edition, "wrong", repairs=("One.",), cut=("Two.",), notes=("Three.",)), penalty=2.5)
    tree = Tree(text)
    assert text.startswith("<!DOCTYPE html>")
    assert tree.all("html") == [("html", {"lang": "en"})]
    assert len(tree.all("h1", "main")) == 2
    levels = [int(tag[1]) for tag, _ in tree.all("h1", "h2", "h3", "h4")]
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
    assert all(attributes.get("scope") in ("col", "row") for _, attributes in tree.all("th"))
    assert len(tree.all("caption")) == len(tree.all("table")) == 6
    assert not tree.all("script", "img", "link", "iframe", "form")
    assert {attributes["href"] for _, attributes in tree.all("a")} == {f"#exercise-{n}" for n in range(1, 6)}
    assert {attributes["id"] for _, attributes in tree.all("h2") if "id" in attributes} == {
        f"exercise-{n}" for n in range(1, 6)
    }
    assert "Handed in late" in text
    for sentence in ("One.", "Two.", "Three."):
        assert f"<li>{sentence}</li>" in text
    assert len(text) < 15_000


def test_the_marks_are_the_gradebooks(edition):
    outcome = graded(edition, "wrong")
    first = outcome.results[0]
    scores = {result.check: result.score for result in outcome.results} | {first.check: 1.5}
    text = page_of(outcome, edition, Standing(scores, {"best_k": "Try L = 35.", "peak_bytes": "No response."}, 1.0))
    assert f'<td class="marks">1.5 of {first.max_score:g}</td>' in text
    assert f'<td class="marks">{sum(scores.values()) - 1:g} of 50</td>' in text
    assert "On <code>best_k</code>: Try L = 35." in text
    assert "peak_bytes</code>: " not in text


def test_nothing_of_a_submission_is_markup(edition, page):
    text = page_of(
        graded(edition, HOSTILE, f"ann {HOSTILE}", notes=(HOSTILE,), repairs=(HOSTILE,), cut=(HOSTILE,)),
        edition,
        Standing({}, {"best_k": HOSTILE}, 0.0),
    )
    tree = Tree(text)
    assert not tree.all("script", "img")
    assert "{{ 7*7 }}" in text
    for whole in (text, ungraded_page(HOSTILE, "Course", HOSTILE)):
        page.set_content(whole)
        assert page.evaluate("window.hacked") is None
        assert "<script>window.hacked" in page.inner_text("main")


def test_it_can_be_read_on_a_phone(edition, page):
    long = "x" * 300 + "\n" + "check_peak_bytes_parallel(" * 20
    page.set_viewport_size({"width": 320, "height": 640})
    page.set_content(page_of(graded(edition, long, "s" * 200, repairs=(long,)), edition, Standing({}, {}, 0.0)))
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert (
        page.evaluate(
            "Math.min(...[...document.querySelectorAll('main *')].map(e => parseFloat(getComputedStyle(e).fontSize)))"
        )
        >= 14
    )


def luminance(colour):
    digits = colour if len(colour) == 6 else "".join(2 * digit for digit in colour)
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_every_colour_of_text_stands_out(edition):
    text = made(edition, graded(edition))
    dark = re.search(r"@media \(prefers-color-scheme: dark\) \{.*?^\}", text, re.DOTALL | re.MULTILINE)[0]
    for style in (text.replace(dark, ""), dark):
        (ground,) = re.findall(r"background: #([0-9a-f]+)", style)
        colours = re.findall(r"[ {]color: #([0-9a-f]+)", style)
        assert len(colours) >= 4
        for colour in colours:
            low, high = sorted((luminance(colour), luminance(ground)))
            assert (high + 0.05) / (low + 0.05) >= 7, (colour, ground)


def test_it_is_dark_where_the_reader_s_system_is(edition, page):
    page.set_content(made(edition, graded(edition)))
    grounds = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(255, 255, 255)", "rgb(24, 24, 24)"]


def test_what_is_long_is_cut_and_says_so(edition):
    endless = "y" * (MAX_MESSAGE_CHARACTERS + 1234)
    text = made(edition, graded(edition, endless, notes=tuple(f"Note {n}." for n in range(MAX_SENTENCES + 7))))
    assert "… (1,234 more characters)" in text
    assert endless not in text
    assert "… and 7 more." in text
    assert len(text) < 60_000


def test_a_refusal_says_why_and_shows_no_mark():
    text = ungraded_page("ann", "Course", "exercises.ipynb is empty")
    assert "could not be graded, because exercises.ipynb is empty." in text
    assert "of 50" not in text
    assert len(Tree(text).all("h1")) == 1


@pytest.mark.parametrize(
    ("text", "clean"),
    [("a\x00b\x1b[31mc", "ab[31mc"), ("line\n\ttab", "line\n\ttab"), ("\ud800x", "?x"), ("\u202eback", "back")],
)
def test_texts_hold_no_control_characters(text, clean):
    assert readable(text) == clean
