"""The questions as data: names, sections, choices, and that no number in them can drift."""

import doctest
import math
import re

import pytest

from autograded_tests.lesson.prose import SOURCE, headings, typed_numbers
from trainmem import review
from trainmem.review import CARDS, CHECK_YOURSELF, INTERVIEW, QUICK_CHECKS, quantities, quick_checks, records
from trainmem.review.records import filled

QUESTIONS = {**CARDS, **CHECK_YOURSELF, **INTERVIEW}
EVERYTHING = {**QUESTIONS, **QUICK_CHECKS}

#: Answers worked out apart from the course's code: from its published table of facts, or from plain arithmetic.
VALUES = {
    "double-the-micro-batch": 2,
    "states-of-13b": 208e9,
    "where-the-core-overtakes": 871,
    "what-to-recompute": 2048 / (18 * 12288 + 3 * 2048),
    "bytes-at-the-loss": 12,
    "cheapest-fix-of-the-example": 51_658_522_624,
    "count-for-a-llama-layer": 37.5,
    "parameters-at-1024": 12_596_224,
    "gpus-for-70b": 14,
    "ten-that-stay": 10,
    "without-dropout": 32,
    "selective-against-flash": 2048 / (18 * 12288 + 3 * 2048),
    "every-sixth-layer": 212,
    "memory-for-7b": 112e9,
    "price-of-checkpointing": 1 / 3,
    "seven-b-on-one-gpu": 112e9,
    "weather-tokens": 721 * 1440 / 64,
    "long-or-many": 2,
    "linear-layer-bytes": 8_388_608,
    "dropout-mask": 1,
    "unit-sbh": 2,
    "gb-or-gib": 0.073741824,
    "twelve-is-not-for-all": 12.75 + 2 * 8192 / 8192**2,
    "share-of-the-layers": 12 * 24 * 2048**2 / 1_311_528_960,
    "bytes-per-parameter": 16,
    "fp32-gradient-buffers": 18,
    "core-of-gpt3": 80 / 114,
    "what-full-checkpointing-does": 1 / 3,
    "interval-at-80-layers": 148,
    "logits-bytes": 3_293_642_752,
    "loss-peak-bytes": 12,
    "total-of-the-example": 51_658_522_624,
    "largest-micro-batch": 62,
    "count-of-a-llama-layer": 37.5,
}

#: What the texts may say with a typed number: a given of the question, or a published value.
GIVEN = {"80 GB", "15%", "11008", "20%", "30%", "4,096", "12,582,912", "13,312", "1,120", "1,120 GB", "21.5"}


def texts(item):
    parts = [item.question]
    if isinstance(item, review.QuickCheck):
        return parts + [text for choice in item.choices for text in (choice.text, choice.why)]
    return [*parts, item.answer]


def test_names_are_slugs_and_no_two_are_the_same():
    groups = (CARDS, CHECK_YOURSELF, INTERVIEW, QUICK_CHECKS)
    assert len(EVERYTHING) == sum(len(group) for group in groups)
    for group in groups:
        for name, item in group.items():
            assert item.name == name
            assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)


def test_records_cannot_be_changed():
    with pytest.raises(AttributeError):
        CARDS["m-of-k"].answer = "another"


def test_how_many_there_are():
    assert len(CARDS) >= 30
    assert len(QUICK_CHECKS) >= 5
    assert len(CHECK_YOURSELF) == 6
    assert len(INTERVIEW) == 4


def test_every_section_of_the_lesson_has_cards_and_every_record_its_section():
    sections = re.findall(r"^## (.+)$", SOURCE.read_text("utf-8"), re.MULTILINE)
    without = {"Check yourself", "Interview questions", "Practice", "Sources", "Watch and read"}
    assert {card.section for card in CARDS.values()} == set(sections) - without
    assert {item.section for item in EVERYTHING.values()} <= set(headings())
    order = [sections.index(card.section) for card in CARDS.values()]
    assert order == sorted(order), "cards stand in the order of the lesson"


@pytest.mark.parametrize("name", QUICK_CHECKS)
def test_a_quick_check_has_one_right_choice_and_explains_each(name):
    check = QUICK_CHECKS[name]
    assert sum(choice.right for choice in check.choices) == 1
    assert len(check.choices) >= 3
    shown = [check.filled(choice.text) for choice in check.choices]
    assert len(set(shown)) == len(shown)
    for choice in check.choices:
        assert len(check.filled(choice.why)) > 40
    assert check.answer.right


@pytest.mark.parametrize("name", [name for name, item in EVERYTHING.items() if item.value])
def test_the_function_computes_the_answer_and_the_text_shows_it(name):
    item = EVERYTHING[name]
    assert math.isclose(item.value(), VALUES[name], rel_tol=1e-9)
    answer = item.answer.text + item.answer.why if isinstance(item, review.QuickCheck) else item.answer
    if name in ("double-the-micro-batch", "without-dropout", "ten-that-stay"):
        return  # the value stands in the question or behind a name of its own
    assert "[[value" in answer, "an answer with a function shows what it computes"
    other = re.sub(r"\[\[value.*?\]\]", "", answer)
    assert item.filled(answer) != item.filled(other)


def test_every_expected_value_belongs_to_a_question():
    assert set(VALUES) == {name for name, item in EVERYTHING.items() if item.value}


def test_no_number_that_looks_computed_is_typed():
    typed = {number for item in EVERYTHING.values() for text in texts(item) for number in typed_numbers(text)}
    assert typed - GIVEN == set()
    assert GIVEN - typed == set(), "a given that is gone from the texts"


def test_what_is_given_by_hand_is_right():
    assert 12 * 1024**2 == 12_582_912
    assert 13 * 1024 == 13_312
    assert 16 * 70 == 1_120
    assert 8 * 11008 / 4096 == 21.5
    assert round(100 * (1 - 34 / quantities.sbh(quantities.llama7.layer(4096, 1)))) == 9, "about a tenth short"


def test_every_text_can_be_filled_and_leaves_no_bracket():
    for item in EVERYTHING.values():
        for text in texts(item):
            assert "[[" not in item.filled(text)


def test_texts_read_the_same_as_markdown_html_and_plain():
    for item in EVERYTHING.values():
        for text in texts(item):
            shown = item.filled(text)
            assert "$" not in shown, "formulas in plain characters"
            assert shown.count("*") % 2 == 0, f"{item.name}: a lone star would be read as emphasis"
            assert "<" not in shown


def test_an_expression_that_fails_is_named():
    with pytest.raises(ValueError, match=r"\[\[no_such_name:.1f\]\] cannot be computed: NameError"):
        filled("[[no_such_name:.1f]]")
    with pytest.raises(ValueError, match=r"1 / 0"):
        filled("[[1 / 0]]")


def test_brackets_inside_an_expression_and_a_format():
    assert filled("[[coefficients()[0]]] and [[[7, 8][1]:.2f]]") == "34 and 8.00"


def test_a_changed_quantity_changes_the_text(monkeypatch):
    before = CARDS["total-of-the-example"].filled(CARDS["total-of-the-example"].answer)
    other = quantities.Run(quantities.example.model, s=2048, b=16)
    monkeypatch.setattr(quantities, "example", other)
    assert CARDS["total-of-the-example"].filled(CARDS["total-of-the-example"].answer) != before


@pytest.mark.parametrize("module", [records, review, quantities, quick_checks])
def test_examples_in_docstrings(module):
    assert doctest.testmod(module).failed == 0


def test_folded_text_counts_and_folds_every_answer():
    text = review.questions_markdown(CHECK_YOURSELF.values())
    assert text.count("<details>") == text.count("</details>") == 6
    assert "**6.**" in text
    folded = review.check_markdown(QUICK_CHECKS["states-of-13b"])
    before, after = folded.split("<summary>Answer</summary>")
    assert "208 GB" in before
    assert "**D** is right." in after
    assert "right" not in before
