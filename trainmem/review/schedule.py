"""When a card comes again: by FSRS where that library is installed, else each card once a day.

Both are computed from the answers alone. Days begin at local midnight; a card that is due in the afternoon comes in the
morning.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Protocol

from trainmem.review.progress import Answer, Grade, Progress

#: A card that was not known comes once more in the same session, and before this has passed where nothing else is due.
SOON = timedelta(minutes=10)


class Schedule(Protocol):
    """What a session asks."""

    #: What is said of it to the reader.
    description: str

    def due(self, answers: tuple[Answer, ...]) -> datetime:
        """When the card comes again, from its answers, of which there is at least one."""

    def recall(self, answers: tuple[Answer, ...], now: datetime) -> float:
        """How probable it is that the card is known now, between 0 and 1."""

    def queue(self, cards: Iterable[str], progress: Progress, now: datetime) -> list[str]:
        """The names of the cards that are to be asked now, the next one first."""


def best_schedule(new_a_day: int = 15) -> Schedule:
    """FSRS with at most so many new cards a day; without the library each card once a day."""
    return Spaced(new_a_day) if find_spec("fsrs") else OnceADay()


class Spaced:
    """FSRS with its default parameters, 90% recall, one short step, and no chance in the intervals.

    Source: `fsrs`, the Free Spaced Repetition Scheduler in version 6.
    """

    description = "Cards come again when you are about to forget them (FSRS)."

    def __init__(self, new_a_day: int = 15) -> None:
        from fsrs import Scheduler

        self._new_a_day = new_a_day
        self._scheduler = Scheduler(learning_steps=(SOON,), relearning_steps=(SOON,), enable_fuzzing=False)
        # The answers to one card are asked for several times between two of its changes.
        self._replayed = lru_cache(maxsize=4096)(self._replay)

    def _replay(self, answers: tuple[Answer, ...]) -> Any:
        from fsrs import Card, Rating

        card = Card(card_id=1, due=answers[0].at)
        for answer in answers:
            card, _ = self._scheduler.review_card(card, Rating(int(answer.grade)), answer.at)
        return card

    def due(self, answers: tuple[Answer, ...]) -> datetime:
        card = self._replayed(answers)
        return card.due if self._learning(answers) else _midnight(card.due)

    def _learning(self, answers: tuple[Answer, ...]) -> bool:
        """Whether the card is still in its short step."""
        return self._replayed(answers).step is not None

    def recall(self, answers: tuple[Answer, ...], now: datetime) -> float:
        """By FSRS; 0 for a card that was not known a moment ago and has not been asked again."""
        if not answers or (self._learning(answers) and answers[-1].grade is Grade.AGAIN):
            return 0.0
        return self._scheduler.get_card_retrievability(self._replayed(answers), now)

    def queue(self, cards: Iterable[str], progress: Progress, now: datetime) -> list[str]:
        """Due ones, the longest due first; new ones; and at the end those that were not known a moment ago."""
        due, new, soon, begun_today = [], [], [], 0
        for name in cards:
            answers = progress.of(name)
            if not answers:
                new.append(name)
                continue
            begun_today += answers[0].at >= _midnight(now)
            if self._learning(answers):
                soon.append((self.due(answers), name))
            elif self.due(answers) <= now:
                due.append((self.due(answers), name))
        now_new = new[: max(0, self._new_a_day - begun_today)]
        return [name for _, name in sorted(due)] + now_new + [name for at, name in sorted(soon) if at <= now + 2 * SOON]


class OnceADay:
    """Each card once a day, until it is known; the one that was asked least recently comes first."""

    description = (
        "Each card comes once a day; one that you did not know comes again at the end. "
        "To see a card when you are about to forget it, run %pip install fsrs and restart the kernel."
    )

    def due(self, answers: tuple[Answer, ...]) -> datetime:
        last = answers[-1]
        return last.at if last.grade is Grade.AGAIN else _midnight(last.at.astimezone() + timedelta(days=1))

    def recall(self, answers: tuple[Answer, ...], now: datetime) -> float:
        """1 where the last answer was not *again*: nothing is known of forgetting."""
        return float(bool(answers) and answers[-1].grade is not Grade.AGAIN)

    def queue(self, cards: Iterable[str], progress: Progress, now: datetime) -> list[str]:
        cards = list(cards)
        new = [name for name in cards if not progress.of(name)]
        asked = [name for name in cards if progress.of(name) and self.due(progress.of(name)) <= now]
        return new + sorted(asked, key=lambda name: progress.of(name)[-1].at)


def _midnight(moment: datetime) -> datetime:
    """The beginning of the local day in which a moment lies, in UTC."""
    local = moment.astimezone()
    return datetime(local.year, local.month, local.day).astimezone().astimezone(UTC)


def until(due: datetime, now: datetime) -> str:
    """How long until then, in a few letters: *10 min*, *3 d*, *2.5 mo*.

    >>> until(datetime(2026, 3, 4, 12, tzinfo=UTC), datetime(2026, 3, 1, 12, tzinfo=UTC))
    '3 d'
    """
    days = (due.astimezone().date() - now.astimezone().date()).days
    if days < 1:
        return f"{max(1, round((due - now).total_seconds() / 60))} min" if due > now else "today"
    if days < 60:
        return f"{days} d"
    return f"{days / 30.4:.1f} mo" if days < 365 else f"{days / 365.25:.1f} y"
