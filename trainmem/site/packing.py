"""Frames as lists of pieces: what frames share (axes, bands, legends, sentences) is stored once.

The script on the page joins the pieces of a frame in order; nothing else is needed to show it.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable

from trainmem.figures.svg import NARROW, WIDE
from trainmem.site.moves import Frame, Moves

# A piece begins at a tag, and what a label says is a piece of its own: both layouts of a picture say the same.
_PIECE = re.compile(r'(?<=aria-label=")([^"]*)|(?=<)')


def sections(frame: Frame) -> tuple[str, str, str]:
    """A frame's HTML: the picture in both layouts, the sentences that are read out, and the tables below."""
    words = frame.picture.text
    told = words.find("<table")
    told = len(words) if told < 0 else told
    return frame.picture.draw(WIDE) + frame.picture.draw(NARROW), words[:told], words[told:]


def packed(moves: Moves) -> dict:
    """Presets and frames with their HTML as indices into ``pieces``."""
    rows = [[[_cut(html) for html in sections(frame)] for frame in preset.frames] for preset in moves.presets]
    together = _runs([row for preset in rows for frame in preset for row in frame])
    pieces: dict[str, int] = {}
    presets = []
    for preset, frames in zip(moves.presets, rows, strict=True):
        listed = [
            {
                "at": frame.at,
                "html": [[pieces.setdefault(run, len(pieces)) for run in together(row)] for row in cut],
            }
            for frame, cut in zip(preset.frames, frames, strict=True)
        ]
        presets.append({"frames": listed, "last": len(listed) - 1, "start": preset.start})
    return {"pieces": list(pieces), "presets": presets}


def script(name: str, moves: Moves) -> str:
    """The data of one figure as a script that puts them where `site.js` finds them (also in a page from a disk)."""
    data = json.dumps(packed(moves), ensure_ascii=False, separators=(",", ":"))
    return f"(globalThis.trainmemFrames ??= {{}}).{name} = {data};\n"


def _cut(html: str) -> list[str]:
    return [piece for piece in _PIECE.split(html) if piece]


def _runs(rows: Iterable[list[str]]):  # noqa: ANN202
    """A function that joins pieces of a row which always follow each other."""
    rows = list(rows)
    after, before = defaultdict(set), defaultdict(set)
    for row in rows:
        for left, right in zip([None, *row], [*row, None], strict=True):
            after[left].add(right)
            before[right].add(left)

    def joined(row: list[str]) -> list[str]:
        runs: list[str] = []
        last = None
        for piece in row:
            if last is not None and after[last] == {piece} and before[piece] == {last}:
                runs[-1] += piece
            else:
                runs.append(piece)
            last = piece
        return runs

    return joined
