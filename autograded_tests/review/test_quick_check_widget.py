"""The quick check as a widget, button by button; test_lesson_in_jupyterlab presses them in a page."""

import pytest

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
