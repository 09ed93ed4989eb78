"""What the reader is asked: quick checks in the lesson, questions to check oneself, for interviews, and to recall.

All of it is data with stable names, kept once, with its numbers computed; `quick_check` shows a check as a widget.

============== =======================================================================================================
module         what is in it
============== =======================================================================================================
records        `QuickCheck`, `Choice`, `Question`, and `filled`, which puts computed numbers into a text
quantities     the quantities that the texts speak of, computed by the course's functions
quick_checks   `QUICK_CHECKS`: name → `QuickCheck`
questions      `CHECK_YOURSELF`, `INTERVIEW`: name → `Question`
cards          `CARDS`: name → `Question`, the recall cards
folded         the same as Markdown with folded answers, for readers without a kernel
widget         `quick_check(name)`: buttons and an explanation for every choice
progress       a reader's answers and the file that keeps them
schedule       when a card comes again
session        which card is asked now; `session_widget` and `overview` are its buttons and its picture
export         the cards for Anki: ``python -m trainmem.review export``
============== =======================================================================================================

>>> from trainmem.review import CARDS
>>> card = CARDS["bytes-per-parameter"]
>>> card.value()
16
"""

from typing import TYPE_CHECKING

from trainmem.review.cards import CARDS
from trainmem.review.folded import check_markdown, questions_markdown
from trainmem.review.questions import CHECK_YOURSELF, INTERVIEW
from trainmem.review.quick_checks import QUICK_CHECKS
from trainmem.review.records import Choice, Question, QuickCheck, filled

if TYPE_CHECKING:
    import ipywidgets

    from trainmem.review.session_widget import ReviewBox

__all__ = [
    "CARDS",
    "CHECK_YOURSELF",
    "INTERVIEW",
    "QUICK_CHECKS",
    "Choice",
    "Question",
    "QuickCheck",
    "check_markdown",
    "filled",
    "questions_markdown",
    "quick_check",
    "review_session",
]


def quick_check(name: str) -> "ipywidgets.VBox":
    """Show a quick check of the lesson: press a choice, read why it is right or wrong, try another.

    Raises ``ValueError`` with the known names where there is none of this name.
    """
    from trainmem.review.widget import shown

    if name not in QUICK_CHECKS:
        raise ValueError(f"no quick check is called {name!r}; there are {', '.join(QUICK_CHECKS)}")
    return shown(QUICK_CHECKS[name])


def review_session(path: str = "trainmem_progress.json", new_a_day: int = 15) -> "ReviewBox":
    """Show the recall cards that are due; every answer is saved in the file at ``path``.

    ``new_a_day`` limits the cards that are begun on one day (with the `fsrs` library; without it every card comes).
    """
    from trainmem.review.schedule import best_schedule
    from trainmem.review.session import Session
    from trainmem.review.session_widget import ReviewBox

    return ReviewBox(Session(CARDS, best_schedule(new_a_day), path))
