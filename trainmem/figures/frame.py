"""The thin widget around every figure: controls above, the picture, and its numbers as text below.

A control that moves makes the figure compute and draw anew; what changes hands is two strings of HTML.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any

import ipywidgets as widgets

from trainmem.figures.svg import NARROW, WIDE, Layout
from trainmem.figures.yours import YourFunction


@dataclass(frozen=True)
class Picture:
    """What a figure shows. ``sentence`` holds its main numbers in at most 110 characters (Jupyter cuts a longer one);
    ``draw`` makes the SVG for a layout; ``text`` is the HTML below it.
    """

    sentence: str
    draw: Callable[[Layout], str]
    text: str


# The front end gives the handles of its sliders and the buttons of Play no names, and has no way to ask for them from
# Python. These few lines name them after their labels, have changed numbers read out, and keep the notebook's own
# shortcuts (arrows that go to the next cell, letters that delete this one) away from keys that are meant for a control.
# Where a page forbids them, all else works.
_NAMES = """
const figure = this.closest('.trainmem-figure');
const name = () => {
  const say = (node, words) => {
    if (node.getAttribute('aria-label') !== words) node.setAttribute('aria-label', words);
  };
  figure.querySelectorAll('[role=slider], .widget-readout').forEach(node => {
    const label = node.closest('.widget-inline-hbox').querySelector('.widget-label');
    if (!node.hasAttribute('role')) node.setAttribute('role', 'textbox');
    if (label) say(node, label.textContent);
  });
  figure.querySelectorAll('.widget-play').forEach(play => {
    const buttons = play.querySelectorAll('button');
    const names = buttons.length > 3 ? ['Play', 'Pause', 'Stop', 'Repeat'] : ['Play or pause', 'Stop', 'Repeat'];
    buttons.forEach((button, i) => { say(button, names[i]); button.title = names[i]; });
  });
  figure.querySelectorAll('select, input, button, [role=slider], [role=textbox]').forEach(node => {
    node.toggleAttribute('data-lm-suppress-shortcuts', true);
  });
  figure.querySelectorAll('.trainmem-numbers .widget-html-content').forEach(node => {
    node.setAttribute('aria-live', 'polite');
  });
};
// With Control or Command held, a shortcut is meant for the notebook after all.
const held = event => {
  if (event.key === 'Control' || event.key === 'Meta') {
    event.target.toggleAttribute('data-lm-suppress-shortcuts', event.type === 'keyup');
  }
};
if (figure) {
  for (const type of ['keydown', 'keyup']) figure.addEventListener(type, held);
  new MutationObserver(name).observe(figure, {childList: true, subtree: true});
  name();
}
"""

STYLE = """
.trainmem-figure { container-type: inline-size; background: var(--jp-layout-color0, #fff);
  color: var(--jp-content-font-color1, #1a1a1a); border: 1px solid var(--jp-border-color2, #bbb); border-radius: 4px;
  padding: 8px 12px; max-width: 800px; box-sizing: border-box; overflow: hidden; }
.trainmem-figure .widget-html, .trainmem-figure .widget-html-content { width: 100%; min-width: 0; margin: 0;
  line-height: 1.45; }
.trainmem-figure .widget-html-content { white-space: normal; font-size: 14px;
  color: var(--jp-content-font-color1, #1a1a1a); }
.trainmem-figure .trainmem-title { font-weight: bold; font-size: 16px; margin: 0 0 4px; }
.trainmem-figure .widget-label, .trainmem-figure .widget-label-basic span, .trainmem-figure .widget-readout {
  color: var(--jp-content-font-color1, #1a1a1a); }
.trainmem-figure svg { display: block; width: 100%; height: auto; overflow: visible; }
.trainmem-figure svg.narrow { display: none; max-width: 460px; }
.trainmem-figure .widget-play { margin-right: 12px; }
.trainmem-figure p { margin: 4px 0; }
.trainmem-figure table { border-collapse: collapse; margin: 6px 0; font-size: 13px; width: auto; }
.trainmem-figure caption { text-align: left; font-weight: bold; padding: 2px 0; }
.trainmem-figure th, .trainmem-figure td { padding: 2px 8px; text-align: right; border: 0;
  border-bottom: 1px solid var(--jp-border-color2, #bbb); color: inherit; }
.trainmem-figure th { font-weight: 600; }
.trainmem-figure tbody th, .trainmem-figure thead th:first-child, .trainmem-figure .words { text-align: left; }
.trainmem-figure tr, .trainmem-figure thead { background: none !important; }
@container (max-width: 600px) {
  .trainmem-figure svg.wide { display: none; }
  .trainmem-figure svg.narrow { display: block; }
  .trainmem-figure .spare { display: none; }
  .trainmem-figure th, .trainmem-figure td { padding: 2px 3px; font-size: 12px; }
  .trainmem-figure .words { overflow-wrap: anywhere; }
}
.trainmem-figure :focus-visible { outline: 2px solid #0072B2; outline-offset: 1px; }
"""


class Figure(widgets.VBox):
    """A figure: ``controls`` (rows of widgets), and what ``picture`` returns for their values.

    ``picture`` is called without arguments each time a control changes; a ValueError that it raises is shown in its
    place. ``before`` says what else to set first when a certain control changes (a preset sets many). `settings`
    changes several controls and draws once.
    """

    def __init__(
        self,
        title: str,
        controls: Sequence[Sequence[widgets.Widget]],
        picture: Callable[[], Picture],
        before: Mapping[widgets.Widget, Callable[[], None]] | None = None,
    ) -> None:
        self._compute = picture
        self._before = before or {}
        self._held = False
        self._sentence = ""
        self._head = widgets.HTML(
            f'<style onload="{escape(_NAMES)}">{STYLE}</style><div class="trainmem-title">{escape(title)}</div>'
        )
        self._picture = widgets.HTML()
        self._numbers = widgets.HTML()
        self._numbers.add_class("trainmem-numbers")
        rows = []
        for row in controls:
            for control in row:
                if hasattr(control, "value"):
                    control.observe(self._changed, "value")
            rows.append(widgets.Box(row, layout=widgets.Layout(flex_flow="row wrap", align_items="center")))
        super().__init__([self._head, *rows, self._picture, self._numbers])
        self.add_class("trainmem-figure")
        self.redraw()

    def __repr__(self) -> str:
        return self._sentence

    @contextmanager
    def settings(self) -> Iterator[None]:
        """Changes of controls inside are drawn once, at the end, and set nothing else off."""
        if self._held:
            yield
            return
        self._held = True
        try:
            yield
        finally:
            self._held = False
        self.redraw()

    def _changed(self, change: Any) -> None:
        if not self._held:
            with self.settings():
                self._before.get(change["owner"], lambda: None)()

    def redraw(self) -> None:
        """Compute and draw for the controls as they stand."""
        try:
            picture = self._compute()
        except ValueError as wrong:
            yours = isinstance(wrong, YourFunction)
            self._sentence = str(wrong) if yours else f"These numbers do not go together: {wrong}"
            self._picture.value = ""
            self._numbers.value = f"<p>{escape(self._sentence)}</p>"
            return
        self._sentence = picture.sentence
        self._picture.value = picture.draw(WIDE) + picture.draw(NARROW)
        self._numbers.value = picture.text


_LABEL = {"description_width": "initial"}


def _layout(width: str = "300px") -> widgets.Layout:
    return widgets.Layout(width=width, max_width="100%", flex="0 1 auto", margin="2px 12px 2px 0")


def slider(description: str, value: int, low: int, high: int, step: int = 1) -> widgets.IntSlider:
    """A slider with its label and a number that can be typed."""
    return widgets.IntSlider(value, low, high, step, description=description, style=_LABEL, layout=_layout("360px"))


def choice(description: str, options: Sequence[tuple[str, Any]], value: Any) -> widgets.Dropdown:
    """One of several."""
    return widgets.Dropdown(options=options, value=value, description=description, style=_LABEL, layout=_layout("auto"))


def field(description: str, value: int, low: int, high: int, step: int = 1) -> widgets.BoundedIntText:
    """A whole number."""
    return widgets.BoundedIntText(
        value, low, high, step, description=description, style=_LABEL, layout=_layout(f"{102 + 7 * len(description)}px")
    )


def switch(description: str, value: bool) -> widgets.Checkbox:
    """On or off."""
    return widgets.Checkbox(value, description=description, indent=False, layout=_layout("auto"))


def button(description: str, press: Callable[[], None]) -> widgets.Button:
    """Does something."""
    made = widgets.Button(description=description, layout=_layout("auto"))
    made.on_click(lambda _: press())
    return made
