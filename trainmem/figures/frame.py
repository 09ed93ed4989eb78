"""The thin widget around every figure: controls above, the picture, and its numbers as text below.

A control that moves makes the figure compute and draw anew; what changes hands is two strings of HTML.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any
from zlib import crc32

import ipywidgets as widgets

from trainmem.figures.svg import NARROW, WIDE, Layout
from trainmem.figures.yours import YourFunction

#: A part of a picture: its left edge, top, width and height, each as a share of the picture's width or height.
Area = tuple[float, float, float, float]


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
  figure.querySelectorAll('.trainmem-spots').forEach(spots => {
    const all = [...spots.querySelectorAll('button')];
    const now = all.find(spot => spot.classList.contains('trainmem-now'));
    const stop = all.find(spot => spot === document.activeElement) || now || all[0];
    spots.setAttribute('role', 'toolbar');
    spots.setAttribute('aria-orientation', 'vertical');
    say(spots, figure.querySelector('.trainmem-title').textContent);
    all.forEach(spot => {
      spot.tabIndex = spot === stop ? 0 : -1;
      spot.setAttribute('aria-pressed', spot === now);
    });
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
// Among the parts of a picture the arrows go from one to the next; Tab goes past them.
const move = event => {
  const spots = event.target.closest('.trainmem-spots');
  if (!spots || event.ctrlKey || event.metaKey || event.altKey) return;
  const all = [...spots.querySelectorAll('button')];
  const at = all.indexOf(event.target);
  const to = {ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1};
  if (!(event.key in to)) return;
  event.preventDefault();
  all[Math.min(Math.max(to[event.key], 0), all.length - 1)].focus();
};
if (figure) {
  for (const type of ['keydown', 'keyup']) figure.addEventListener(type, held);
  figure.addEventListener('keydown', move);
  figure.addEventListener('focusin', event => { if (event.target.closest('.trainmem-spots')) name(); });
  const changes = {childList: true, subtree: true, attributeFilter: ['class']};
  new MutationObserver(name).observe(figure, changes);
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
.trainmem-figure .trainmem-picture { position: relative; width: 100%; overflow: visible; margin: 0; }
.trainmem-figure .trainmem-spots { position: absolute; inset: 0; overflow: visible; margin: 0; pointer-events: none; }
.trainmem-figure .trainmem-spots button { position: absolute; margin: 0; padding: 0; border: 0; min-width: 0;
  background: none; box-shadow: none; color: transparent; forced-color-adjust: none; font-size: 11px;
  overflow: hidden; cursor: pointer; pointer-events: auto; touch-action: manipulation; }
.trainmem-figure .trainmem-places { display: none; }
.trainmem-figure .trainmem-spots button:hover { background: none; box-shadow: none; }
@media (hover: hover) {
  .trainmem-figure .trainmem-spots button:hover { background: #0072B233; }
}
.trainmem-figure .trainmem-spots button:focus-visible { outline: 3px solid #0072B2; outline-offset: 1px; }
.trainmem-figure .trainmem-spots button:active { background: #0072B266; box-shadow: none; }
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
  .trainmem-figure .trainmem-picture { max-width: 460px; }
  .trainmem-figure .spare { display: none; }
  .trainmem-figure th, .trainmem-figure td { padding: 2px 3px; font-size: 12px; }
  .trainmem-figure .words { overflow-wrap: anywhere; }
}
.trainmem-figure :focus-visible { outline: 2px solid #0072B2; outline-offset: 1px; }
"""


class Figure(widgets.VBox):
    """A figure: ``controls`` (rows of widgets), and what ``picture`` returns for their values.

    ``picture`` is called without arguments each time a control changes; a ValueError that it raises is shown in its
    place. ``before`` says what else to set first when a certain control changes (a preset sets many). ``spots`` are
    parts of the picture that can be clicked. `settings` changes several controls and draws once.
    """

    def __init__(
        self,
        title: str,
        controls: Sequence[Sequence[widgets.Widget]],
        picture: Callable[[], Picture],
        before: Mapping[widgets.Widget, Callable[[], None]] | None = None,
        spots: "Spots | None" = None,
    ) -> None:
        self._compute = picture
        self._before = before or {}
        self._spots = spots
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
        picture = self._picture
        if spots is not None:
            picture = widgets.Box([self._picture, spots, spots.places])
            picture.add_class("trainmem-picture")
        super().__init__([self._head, *rows, picture, self._numbers])
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
            if self._spots is not None:
                self._spots.layout.display = "none"  # no picture, no parts of it
            return
        self._sentence = picture.sentence
        self._picture.value = picture.draw(WIDE) + picture.draw(NARROW)
        self._numbers.value = picture.text
        if self._spots is not None:
            self._spots.layout.display = None


class Spots(widgets.Box):
    """Buttons that lie, unseen, on the parts of a picture: what is drawn there can be clicked, tapped or focused.

    A button for each part carries its name, and one of them the mark of the present one. ``press`` is called with the
    part's index. A style sheet of its own, ``places``, puts them there in both layouts; where a page drops it they are
    ordinary buttons below the picture.
    """

    def __init__(self, press: Callable[[int], None]) -> None:
        super().__init__()
        self.add_class("trainmem-spots")
        self.places = widgets.HTML()
        self.places.add_class("trainmem-places")
        self._press = press
        self._all: list[widgets.Button] = []
        self._marked: widgets.Button | None = None
        self._name = ""
        self._layout, self._style = widgets.Layout(), widgets.ButtonStyle()

    def lay(self, names: Sequence[str], wide: Sequence[Area], narrow: Sequence[Area]) -> None:
        """Put a button with each of these names on its area of the wide and of the narrow picture.

        Buttons that are there are kept: only their number, their names and the style sheet change.
        """
        for i in range(len(self._all), len(names)):
            made = widgets.Button(layout=self._layout, style=self._style)
            made.on_click(lambda _, i=i: self._press(i))
            self._all.append(made)
        for made, name in zip(self._all, names, strict=False):
            made.description = name
        self.children = tuple(self._all[: len(names)])
        # A page may hold several figures: the class says for which places the rules are.
        style = _places(wide), _places(narrow)
        name = f"trainmem-spots-{crc32(repr(style).encode()):08x}"
        if name != self._name:
            self.remove_class(self._name)
            self.add_class(name)
            self._name = name
            large, small = (
                "".join(
                    f".trainmem-figure .{name} button:nth-child({i}) {{ {rule} }}\n" for i, rule in enumerate(rules, 1)
                )
                for rules in style
            )
            self.places.value = f"<style>\n{large}@container (max-width: 600px) {{\n{small}}}\n</style>"

    def mark(self, index: int | None) -> None:
        """Say which part is the present one; None for none."""
        marked = None if index is None else self._all[index]
        if marked is not self._marked:
            if self._marked is not None:
                self._marked.remove_class("trainmem-now")
            if marked is not None:
                marked.add_class("trainmem-now")
            self._marked = marked


def _places(areas: Sequence[Area]) -> list[str]:
    sides = ("left", "top", "width", "height")
    return ["; ".join(f"{side}: {share:.3%}" for side, share in zip(sides, area, strict=True)) for area in areas]


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
