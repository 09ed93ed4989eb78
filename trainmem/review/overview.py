"""What is known, due and new, and what the next days bring, as one small SVG picture.

Drawn as the course's figures are: words in ``currentColor``, Okabe–Ito fills, every fill's meaning beside it.
"""

from collections.abc import Sequence
from html import escape

from trainmem.review.session import Standing

WIDTH, HEIGHT = 300, 142
_BASE, _TALL = 122, 34  # the columns of the days: where they stand, how high the highest is


def overview(standing: Standing, days: Sequence[str]) -> str:
    """The picture as an ``<svg>`` element, always the same for the same numbers; ``days`` are the columns' names."""
    parts, x = [], 0.0
    shares = (("known", standing.known, "#009E73"), ("due", standing.due, "#E69F00"), ("new", standing.new, "#999999"))
    for _, count, fill in shares:
        width = WIDTH * count / max(1, standing.cards)
        if count:
            parts.append(_rect(x, 4, width, 16, fill))
        x += width
    for place, (word, count, fill) in zip((0, 110, 205), shares, strict=True):
        parts.append(_rect(place, 29, 11, 11, fill))
        parts.append(_text(place + 16, 39, f"{count} {word}"))
    parts.append(_text(0, 68, "Due on the next days"))
    step, most = WIDTH / len(days), max(1, *standing.ahead)
    for i, (day, count) in enumerate(zip(days, standing.ahead, strict=True)):
        high = _TALL * count / most
        parts.append(_rect(step * i + 8, _BASE - high, step - 16, high, "#E69F00") if count else "")
        parts.append(_text(step * (i + 0.5), _BASE - high - 4, str(count), "middle"))
        parts.append(_text(step * (i + 0.5), _BASE + 16, day, "middle"))
    parts.append(f'<path d="M0 {_BASE}h{WIDTH}" stroke="currentColor" fill="none"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(standing.sentence)}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" width="100%" style="max-width: 300px" font-size="13" fill="currentColor" '
        'font-family="var(--jp-ui-font-family, sans-serif)">' + "".join(parts) + "</svg>"
    )


def _rect(x: float, y: float, width: float, height: float, fill: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}" '
        'stroke="currentColor" stroke-width="0.7"/>'
    )


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
