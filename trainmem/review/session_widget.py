"""A review session on the screen: a question, its answer on demand, four buttons, and the reader's file.

Buttons, text and HTML alone, so that it works in JupyterLab and in Colab's ipywidgets 7.7. By keyboard in two ways:
every button by Tab and Enter, or all of it by single keys in the field beside them.
"""

import base64
from html import escape
from typing import Any

import ipywidgets as widgets

from trainmem.review.markup import as_html
from trainmem.review.overview import overview
from trainmem.review.progress import Grade, uploaded
from trainmem.review.session import AHEAD_DAYS, Session

_STYLE = """<style>
.trainmem-review {max-width: 760px; padding: 8px 12px; border: 1px solid var(--jp-border-color2, #bbb);
 border-radius: 4px; box-sizing: border-box; overflow: hidden}
.trainmem-review .widget-html, .trainmem-review .widget-html-content, .trainmem-review .jupyter-widgets-html-content
 {width: 100%; min-width: 0; margin: 0; white-space: normal; font-size: 14px; line-height: 1.5;
 color: var(--jp-content-font-color1, inherit)}
.trainmem-review .trainmem-title {font-weight: bold; font-size: 16px}
.trainmem-review .trainmem-asked {font-size: 17px; padding: 6px 0}
.trainmem-review .trainmem-answer {font-size: 17px; border-left: 4px solid #0072b2; padding: 2px 0 2px 10px;
 margin: 0 0 6px}
.trainmem-review .trainmem-said {border-left: 4px solid #d55e00; padding: 2px 0 2px 10px; margin: 6px 0}
.trainmem-review button {min-height: 36px; font-size: 14px; margin: 2px 6px 2px 0; border-radius: 4px;
 color: var(--jp-content-font-color1, inherit); background: transparent; border: 1px solid #767676}
.trainmem-review button:disabled {opacity: 0.5}
.trainmem-review button:focus, .trainmem-review input:focus, .trainmem-review a:focus
 {outline: 2px solid #0072b2 !important; outline-offset: -2px}
.trainmem-review .widget-label {color: inherit}
.trainmem-review .trainmem-small {font-size: 13px}
.trainmem-review svg {display: block; margin: 14px 0 2px}
.trainmem-review a {color: var(--jp-content-link-color, #0072b2); text-decoration: underline}
</style>"""

_GRADES = ((Grade.AGAIN, "Again"), (Grade.HARD, "Hard"), (Grade.GOOD, "Good"), (Grade.EASY, "Easy"))


class ReviewBox(widgets.VBox):
    """The box of a session. Its plain text, the same for every reader, stands in the committed notebook."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.picture, self.asked, self.answer, self.said, self.download = (widgets.HTML() for _ in range(5))
        self.show = widgets.Button(description="Show the answer", layout=_auto())
        self.show.on_click(lambda _: self.reveal())
        self.grades = [widgets.Button(layout=_auto()) for _ in _GRADES]
        for button, (grade, _) in zip(self.grades, _GRADES, strict=True):
            button.on_click(lambda _, grade=grade: self._pressed(grade))
        self.key_field = widgets.Text(
            description="By keys",
            placeholder="here: space shows the answer, 1 to 4 say how well",
            continuous_update=True,
            style={"description_width": "initial"},
            layout=widgets.Layout(width="430px", max_width="100%"),
        )
        self.key_field.observe(self._key, "value")
        self.upload = widgets.FileUpload(description="Load progress", accept=".json", multiple=False, layout=_auto())
        self.upload.observe(self._uploaded, "value")
        self._shown = False
        head = widgets.HTML(
            f'{_STYLE}<div class="trainmem-title">Recall cards</div>'
            f'<div class="trainmem-small">{escape(session.schedule.description)}</div>'
        )
        row = widgets.Box([self.show, *self.grades], layout=_wrapping())
        files = widgets.Box([self.download, self.upload], layout=_wrapping())
        super().__init__([head, self.asked, self.answer, row, self.key_field, self.said, self.picture, files])
        self.add_class("trainmem-review")
        self._draw()

    def __repr__(self) -> str:
        return "A session with the recall cards (run this cell to answer them)"

    def reveal(self) -> None:
        """Show the answer; where nothing was due, look whether something is now."""
        if self.session.current is None:
            self.session.look()
        else:
            self._shown = True
        self._draw()

    def grade(self, grade: Grade) -> None:
        """Write down how well the card was known, and show the next question."""
        if self._shown:
            self._shown = False
            self.session.answer(grade)
            self._draw()

    def _pressed(self, grade: Grade) -> None:
        self.grade(grade)
        # The pressed button is disabled now; ipywidgets 7 cannot move the focus, there Shift+Tab leads back.
        if hasattr(self.show, "focus"):
            self.show.focus()

    def _key(self, change: Any) -> None:
        key = change["new"][-1:]
        if not key:
            return
        self.key_field.value = ""
        if not self._shown:
            self.reveal()
        elif key in "1234":
            self.grade(Grade(int(key)))

    def _uploaded(self, change: Any) -> None:
        file = uploaded(change["new"])
        if file is None:
            return
        # Emptied, so that the same file can be loaded again; in ipywidgets 7 the trait is read-only.
        self.upload.set_trait("value", type(change["new"])())
        before = self.session.current
        self.session.add_file(*file)
        self._shown = self._shown and self.session.current == before
        self._draw()

    def _draw(self) -> None:
        session = self.session
        standing = session.standing()
        days = [session.day(ahead) for ahead in range(1, AHEAD_DAYS + 1)]
        self.picture.value = overview(standing, days) + f'<div class="trainmem-small">{escape(standing.sentence)}</div>'
        card = session.cards[session.current] if session.current else None
        self.show.description = "Show the answer" if card else "Look again"
        for button, (grade, word) in zip(self.grades, _GRADES, strict=True):
            button.disabled = not self._shown
            button.description = f"{int(grade)} · {word}"
            if self._shown:
                button.description += f" ({session.preview(grade)})"
        if card:
            asked = f'<div class="trainmem-small">{escape(card.section)}</div>{as_html(card.filled(card.question))}'
        else:
            asked = f"Nothing is due now. The next card comes again in {session.next_due()}."
        # As alerts the changed places are read out, although they come into the page anew.
        self.asked.value = f'<div role="alert" aria-live="polite" class="trainmem-asked">{asked}</div>'
        answer = as_html(card.filled(card.answer)) if self._shown else ""
        answer = f'<div class="trainmem-answer">{answer}</div>' if answer else ""
        self.answer.value = f'<div role="alert" aria-live="polite">{answer}</div>'
        said = f'<div class="trainmem-said">{escape(session.said)}</div>' if session.said else ""
        self.said.value = f'<div role="alert" aria-live="polite">{said}</div>'
        content = base64.b64encode(session.progress.as_json().encode()).decode()
        self.download.value = (
            f'<a download="{escape(session.path.name)}" href="data:application/json;base64,{content}">'
            f"Download progress</a> (answers: {session.answers}, saved in {escape(str(session.path))})"
        )


def _auto() -> widgets.Layout:
    return widgets.Layout(width="auto", height="auto")


def _wrapping() -> widgets.Layout:
    return widgets.Layout(flex_flow="row wrap", align_items="center")
