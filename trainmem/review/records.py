"""What the reader is asked, as data: quick checks and questions, with texts whose numbers are computed.

A text may hold ``[[expression]]`` or ``[[expression:format]]``; `filled` puts the value there. The expression sees the
names of `trainmem.review.quantities` and, in the texts of a record, ``value``: what the record's own function returns.
Formulas are written in plain characters (34·sbh + 5·a·s²·b), which read the same in a notebook, a widget and on a card.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainmem.review import quantities

_PLACE = re.compile(r"\[\[(.+?)(?::([^\[\]:()'\"]*))?\]\](?!\])", re.DOTALL)


def filled(text: str, **names: Any) -> str:
    """Return the text with each ``[[expression:format]]`` replaced by the formatted value of the expression.

    Raises ``ValueError`` that names the expression where it cannot be computed.

    >>> filled("[[example.states / GB:.1f]] GB for [[example.model.parameters:,]] parameters")
    '21.0 GB for 1,311,528,960 parameters'
    """

    def value(match: re.Match) -> str:
        expression, form = match[1], match[2] or ""
        try:
            return format(eval(expression, {**vars(quantities), **names}), form)
        except Exception as error:
            raise ValueError(f"[[{match[0][2:-2]}]] cannot be computed: {type(error).__name__}: {error}") from error

    return _PLACE.sub(value, text)


@dataclass(frozen=True)
class Choice:
    """One choice of a quick check: its text, why it is right or wrong, and which of the two it is."""

    text: str
    why: str
    right: bool = False


@dataclass(frozen=True)
class QuickCheck:
    """A question with choices, exactly one of them right.

    ``name`` never changes once published; ``section`` is a heading of the lesson. ``value`` computes the answer where
    it is a number.
    """

    name: str
    section: str
    question: str
    choices: tuple[Choice, ...]
    value: Callable[[], float] | None = None

    def filled(self, text: str) -> str:
        """One of its texts with the numbers in place."""
        return filled(text, **({"value": self.value()} if self.value else {}))

    @property
    def answer(self) -> Choice:
        """The right choice."""
        return next(choice for choice in self.choices if choice.right)


@dataclass(frozen=True)
class Question:
    """A question with one answer: a recall card, a question to check oneself, or one from an interview.

    ``name`` never changes once published; ``section`` is a heading of the lesson. ``value`` computes the answer where
    it is a number; ``[[value]]`` puts it into ``answer``.
    """

    name: str
    section: str
    question: str
    answer: str
    value: Callable[[], float] | None = None

    def filled(self, text: str) -> str:
        """One of its texts with the numbers in place."""
        return filled(text, **({"value": self.value()} if self.value else {}))
