"""The recall cards for Anki: a package (`.apkg`) and a text file (`.csv`) with Anki's own headers.

What Anki knows a note, a deck and a note type by is fixed here for ever: importing a later edition changes texts, adds
cards, and leaves every reader's history as it is. Formulas are plain characters, which every screen shows; where a text
has TeX between dollar signs, it gets the brackets that Anki's own MathJax reads on phone and desktop.
"""

import csv
import html
import re
from collections.abc import Mapping
from pathlib import Path

from trainmem.review.markup import as_html
from trainmem.review.records import Question

DECK, NOTE_TYPE = "Training memory", "Training memory card"
DECK_ID, NOTE_TYPE_ID = 1_764_115_201, 1_764_115_202
FIELDS = ("Question", "Answer", "Section")

_STYLE = """.card {font-family: sans-serif; font-size: 20px; line-height: 1.5; text-align: left; max-width: 40em;
 margin: 0 auto; padding: 0 8px}
.section {font-size: 14px; opacity: 0.7}"""
_FRONT = '<div class="section">{{Section}}</div>{{Question}}'
_BACK = '{{FrontSide}}<hr id="answer">{{Answer}}'


def guid(name: str) -> str:
    """What Anki knows the note of a card by."""
    return f"trainmem:{name}"


def tag(card: Question) -> str:
    """The tag of a card's section."""
    return "trainmem::" + re.sub(r"[^a-z0-9]+", "-", card.section.lower()).strip("-")


def fields(card: Question) -> tuple[str, str, str]:
    """Question, answer and section as HTML."""
    return _html(card.filled(card.question)), _html(card.filled(card.answer)), _html(card.section)


def _html(text: str) -> str:
    r"""HTML whose formulas Anki's MathJax reads.

    >>> print(_html("from $a < b$ and *c*"))
    from \(a &lt; b\) and <i>c</i>
    """
    # What stands between dollar signs is every second part; a star in it is no emphasis.
    parts = re.split(r"\$(.+?)\$", text)
    return "".join(rf"\({html.escape(part)}\)" if i % 2 else as_html(part) for i, part in enumerate(parts))


def write_csv(cards: Mapping[str, Question], path: Path) -> None:
    """Write the cards as a text file that Anki imports without a question; its headers name deck, columns and ids.

    The note type is Anki's own *Basic*, which is there without the package.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write("#separator:Comma\n#html:true\n#notetype:Basic\n")
        file.write(f"#deck:{DECK}\n#columns:guid,Front,Back,tags\n#guid column:1\n#tags column:4\n")
        rows = csv.writer(file, lineterminator="\n")
        for name, card in cards.items():
            question, answer, section = fields(card)
            rows.writerow((guid(name), f"<small>{section}</small><br>{question}", answer, tag(card)))


def write_package(cards: Mapping[str, Question], path: Path) -> None:
    """Write the cards as an Anki package. Needs `genanki`; raises ``ImportError`` where it is not installed."""
    import genanki

    kind = genanki.Model(
        NOTE_TYPE_ID,
        NOTE_TYPE,
        fields=[{"name": name} for name in FIELDS],
        templates=[{"name": "Recall", "qfmt": _FRONT, "afmt": _BACK}],
        css=_STYLE,
    )
    deck = genanki.Deck(DECK_ID, DECK)
    for place, (name, card) in enumerate(cards.items()):
        note = genanki.Note(model=kind, fields=list(fields(card)), guid=guid(name), tags=[tag(card)], due=place)
        deck.add_note(note)
    genanki.Package(deck).write_to_file(path)
