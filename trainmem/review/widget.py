"""A quick check as a widget: one button for each choice, and below them why the pressed one is right or wrong.

Buttons and HTML alone, so that it works in JupyterLab and in Colab's ipywidgets 7.7, by mouse, touch and keyboard.
"""

import ipywidgets as widgets

from trainmem.review.folded import lettered
from trainmem.review.markup import as_html, as_text
from trainmem.review.records import Choice, QuickCheck

#: What is said of a choice, by whether it is right.
VERDICTS = {True: "✓ Right.", False: "✗ Not this one."}

# A button's text is one line of fixed height unless told otherwise. Colours follow the page's theme; right and wrong
# are told apart by words and signs too.
_STYLE = """<style>
.trainmem-check {max-width: 760px}
.trainmem-check .trainmem-choice {white-space: normal; height: auto; min-height: 36px; width: 100%; margin: 2px 0;
 padding: 6px 12px; line-height: 1.45; text-align: left; font-size: 14px; overflow: visible;
 color: inherit; background: transparent; border: 1px solid #767676; border-radius: 4px}
.trainmem-check .trainmem-choice:hover {border-color: #0072b2; box-shadow: inset 3px 0 #0072b2}
.trainmem-check .trainmem-choice:focus {outline: 2px solid #0072b2 !important; outline-offset: 1px}
.trainmem-check .widget-html-content, .trainmem-check .jupyter-widgets-html-content
 {white-space: normal; line-height: 1.5; font-size: 14px}
.trainmem-check .trainmem-said {border-left: 4px solid; padding: 2px 0 2px 10px; margin: 4px 0}
</style>"""


class Check(widgets.VBox):
    """The box of a quick check. Its plain text stands in the committed notebook."""

    def __init__(self, check: QuickCheck, children: list[widgets.Widget]) -> None:
        self.check = check
        super().__init__(children)

    def __repr__(self) -> str:
        return f"Quick check {self.check.name}: {len(self.check.choices)} choices (its text is folded below)"


def shown(check: QuickCheck) -> Check:
    """Return the widget; every button may be pressed, in any order and more than once."""
    question = widgets.HTML(f"{_STYLE}<b>Quick check.</b> {as_html(check.filled(check.question))}")
    said = widgets.HTML(_said(""))
    buttons = []
    for letter, choice in lettered(check):
        text = as_text(check.filled(choice.text))
        button = widgets.Button(description=f"{letter} · {text}", layout=widgets.Layout(width="auto", height="auto"))
        button.add_class("trainmem-choice")
        button.on_click(lambda _, letter=letter, choice=choice: setattr(said, "value", _verdict(check, letter, choice)))
        buttons.append(button)
    box = Check(check, [question, *buttons, said])
    box.add_class("trainmem-check")
    return box


def _verdict(check: QuickCheck, letter: str, choice: Choice) -> str:
    colour = "#009e73" if choice.right else "#d55e00"
    text = f"<b>{letter}: {VERDICTS[choice.right]}</b> {as_html(check.filled(choice.why))}"
    return _said(f'<div class="trainmem-said" style="border-color: {colour}">{text}</div>')


def _said(text: str) -> str:
    # The region comes into the page anew with each answer; as an alert it is read out all the same.
    return f'<div role="alert" aria-live="polite">{text}</div>'
