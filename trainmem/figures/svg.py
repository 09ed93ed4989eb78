"""A small drawing board: rectangles, paths and words, out comes one SVG string.

Words and lines take ``currentColor``, so that a picture reads in a light and in a dark theme; fills are the Okabe–Ito
colours, which colour-blind readers can tell apart, and what a fill means is written beside it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import floor, log10

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILLION, PURPLE, GREY = "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#999999"

#: Category of memory → its fill (categories of `trainmem.memory.CATEGORIES`).
FILLS = {
    "weights": BLUE,
    "optimizer": PURPLE,
    "gradients": YELLOW,
    "checkpoints": GREEN,
    "activations": ORANGE,
    "rebuilt": SKY,
    "logits": VERMILLION,
    "working": GREY,
}


@dataclass(frozen=True)
class Layout:
    """How wide a picture is in its own units, and how large its words are."""

    width: int
    size: int = 13

    @property
    def narrow(self) -> bool:
        """Whether it is the one for a small screen."""
        return self.width < 500


WIDE = Layout(720)
NARROW = Layout(300)


def on(fill: str) -> str:
    """Black or white: the one that reads on ``fill``."""
    return "#ffffff" if fill in (BLUE, BLACK) else "#000000"


def length_of(words: str, size: float) -> float:
    """About how long words are in a sans-serif font; on the safe side."""
    return 0.6 * size * len(words)


def ticks(high: float, about: int = 5) -> list[float]:
    """Round numbers from 0 up to ``high``, about so many."""
    if high <= 0:
        return [0]
    rough = high / about
    power = 10 ** floor(log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
    return [i * step for i in range(int(high / step + 1e-9) + 1)]


def plain(value: float) -> str:
    """A tick's number: no point where none is needed."""
    return f"{value:,.10g}"


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _steps(points: Iterable[tuple[float, float]]) -> str:
    """The points as a path's steps, by the short forms for a level and an upright one: most of a staircase is these."""
    steps, before = [], None
    for point in points:
        x, y = map(_n, point)
        if before is None:
            steps.append(f"M{x} {y}")
        elif y == before[1]:
            steps.append(f"H{x}")
        elif x == before[0]:
            steps.append(f"V{y}")
        else:
            steps.append(f"L{x} {y}")
        before = x, y
    return "".join(steps)


class Drawing:
    """Collects shapes; `svg` closes the picture. Coordinates are those of the layout, y downwards."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.parts: list[str] = []

    def text(
        self, x: float, y: float, words: str, anchor: str = "start", *, bold: bool = False, fill: str = "currentColor"
    ) -> None:
        if not words:
            return
        more = (' font-weight="bold"' if bold else "") + ("" if anchor == "start" else f' text-anchor="{anchor}"')
        more += "" if fill == "currentColor" else f' fill="{fill}"'
        self.parts.append(f'<text x="{_n(x)}" y="{_n(y)}"{more}>{escape(words)}</text>')

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, *, outline: bool = True, opacity: float = 1
    ) -> None:
        edge = ' stroke="currentColor" stroke-width="0.7"' if outline else ""
        faint = "" if opacity == 1 else f' fill-opacity="{opacity}"'
        self.parts.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(max(width, 0))}" height="{_n(max(height, 0))}" '
            f'fill="{fill}"{faint}{edge}/>'
        )

    def line(
        self, x1: float, y1: float, x2: float, y2: float, *, dash: str = "", width: float = 1, stroke: str = ""
    ) -> None:
        self.path([(x1, y1), (x2, y2)], dash=dash, width=width, stroke=stroke or "currentColor")

    def path(
        self,
        points: Iterable[tuple[float, float]],
        *,
        fill: str = "none",
        stroke: str = "none",
        width: float = 1,
        dash: str = "",
        close: bool = False,
    ) -> None:
        steps = _steps(points)
        edge = "" if stroke == "none" else f' stroke="{stroke}" stroke-width="{width}"'
        edge += f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<path d="{steps}{"Z" if close else ""}" fill="{fill}"{edge}/>')

    def faint(self, x: float, y: float, width: float) -> None:
        """A faint line across."""
        self.parts.append(
            f'<path d="M{_n(x)} {_n(y)}h{_n(width)}" stroke="currentColor" stroke-opacity="0.25" fill="none"/>'
        )

    def dot(self, x: float, y: float, radius: float, fill: str) -> None:
        self.parts.append(
            f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" fill="{fill}" stroke="currentColor" '
            'stroke-width="0.7"/>'
        )

    def key(self, x: float, y: float, fill: str, words: str) -> None:
        """A small square of a fill, and what it stands for."""
        self.rect(x, y - 10, 11, 11, fill)
        self.text(x + 16, y, words)

    def upright(self, x: float, y: float, height: float, high: float, width: float, unit: str) -> None:
        """A vertical axis at ``x`` from 0 at y + height up to ``high`` at y, with faint lines across."""
        for tick in ticks(high):
            level = y + height * (1 - tick / high)
            self.faint(x, level, width)
            self.text(x - 5, level + 4, plain(tick), "end")
        self.text(x, y - 8, unit)

    def svg(self, label: str, height: float, name: str = "") -> str:
        """The picture as an ``<svg>`` element; ``label`` is read out, ``name`` becomes a class."""
        size = self.layout.size
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{name}" role="img" aria-label="{escape(label)}" '
            f'viewBox="0 0 {self.layout.width} {_n(height)}" width="100%" font-size="{size}" fill="currentColor" '
            f'font-family="var(--jp-ui-font-family, sans-serif)">' + "".join(self.parts) + "</svg>"
        )


def stairs(
    lower: Sequence[float], upper: Sequence[float], x: Sequence[float], y0: float, scale: float
) -> list[tuple[float, float]]:
    """The outline of a band between two rows of levels, one column from x[i] to x[i + 1] each."""

    def side(levels: Sequence[float]) -> list[tuple[float, float]]:
        points = []
        for i, level in enumerate(levels):
            if i and level == levels[i - 1]:
                points.pop()
            else:
                points.append((x[i], y0 - level * scale))
            points.append((x[i + 1], y0 - level * scale))
        return points

    return side(upper) + side(lower)[::-1]


def standalone(svg: str, title: str, height_above: int = 34) -> str:
    """A picture as a file of its own: title, white ground, dark words whatever the reader's theme."""
    start, rest = svg.split(">", 1)
    box = start.split('viewBox="0 0 ')[1].split('"')[0].split()
    width, height = float(box[0]), float(box[1])
    start = start.replace(
        f'viewBox="0 0 {box[0]} {box[1]}"',
        f'viewBox="-8 -{height_above} {_n(width + 16)} {_n(height + height_above + 8)}"',
    )
    start = start.replace(
        'font-family="var(--jp-ui-font-family, sans-serif)"', 'font-family="sans-serif" color="#1a1a1a"'
    )
    start = start.replace(' class=""', "").replace('width="100%"', f'width="{_n(width + 16)}"')
    ground = f'<rect x="-8" y="-{height_above}" width="100%" height="100%" fill="#ffffff"/>'
    name = f'<text x="0" y="{12 - height_above + 8}" font-size="16" font-weight="bold">{escape(title)}</text>'
    return f"{start}><title>{escape(title)}</title>{ground}{name}{rest}\n"
