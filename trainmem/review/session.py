"""A review session without a screen: which card is asked now, and what an answer changes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from trainmem.review import progress as file
from trainmem.review.progress import Grade
from trainmem.review.records import Question
from trainmem.review.schedule import Schedule, until

AHEAD_DAYS = 7


@dataclass(frozen=True)
class Standing:
    """How the cards of this edition stand at a moment: each is in exactly one of ``known``, ``due`` and ``new``.

    ``expected`` is the number of cards that would be recalled now; ``ahead[i]`` counts those that fall due i + 1 days
    from now, on that day alone.
    """

    known: int
    due: int
    new: int
    expected: float
    ahead: tuple[int, ...]

    @property
    def cards(self) -> int:
        """All cards."""
        return self.known + self.due + self.new

    @property
    def sentence(self) -> str:
        """The same in words."""
        return (
            f"{self.cards} cards: {self.known} known for now, {self.due} due, {self.new} new. "
            f"You would recall about {self.expected:.0f} of them. "
            f"Due on the next {AHEAD_DAYS} days: {', '.join(map(str, self.ahead))}."
        )


class Session:
    """The cards, a reader's progress in a file, and the schedule.

    ``said`` is what the reader has to be told of the file (often nothing). ``clock`` gives the
    moment, with a time zone.
    """

    def __init__(
        self,
        cards: Mapping[str, Question],
        schedule: Schedule,
        path: Path | str,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.cards = cards
        self.schedule = schedule
        self.path = Path(path)
        self._clock = clock
        self.progress, self.said = file.load(self.path)
        self.current: str | None = None
        self.look()

    def look(self) -> None:
        """Choose the card that is to be asked now; none where nothing is due."""
        queue = self.schedule.queue(self.cards, self.progress, self._clock())
        # The card that was just answered comes at once again only where it is the last one left.
        others = [name for name in queue if name != self.current]
        self.current = next(iter(others or queue), None)

    def answer(self, grade: Grade) -> None:
        """Write down how well the current card was known, save, and go on to the next."""
        if self.current is None:
            raise ValueError("nothing is due: there is no card to answer")
        self.progress, self.said = file.save(
            self.path, self.progress.with_answer(self.current, self._clock(), Grade(grade))
        )
        self.look()

    def add_file(self, name: str, content: bytes) -> None:
        """Add the answers of a file that was downloaded earlier to those that are here, and save."""
        try:
            other = file.from_json(content.decode("utf-8"))
        except ValueError as error:
            self.said = f"{name} was not loaded: {error}. Your answers here are as they were."
            return
        before = self.answers
        self.progress, self.said = file.save(self.path, self.progress.merged(other))
        more = self.answers - before
        left_out = f" {other.left_out} could not be read." if other.left_out else ""
        self.said = f"{name}: {more} new {'answer' if more == 1 else 'answers'}.{left_out} {self.said}".strip()
        self.look()

    @property
    def answers(self) -> int:
        """How many answers there are, to cards of all editions."""
        return sum(map(len, self.progress.answers.values()))

    def preview(self, grade: Grade) -> str:
        """When the current card would come again after this grade, in a few letters."""
        now = self._clock()
        return until(self.schedule.due(self.progress.with_answer(self.current, now, grade).of(self.current)), now)

    def next_due(self) -> str:
        """When the first card falls due, in a few letters; empty where none was ever answered."""
        dues = [self.schedule.due(self.progress.of(name)) for name in self.cards if self.progress.of(name)]
        return until(min(dues), self._clock()) if dues else ""

    def standing(self) -> Standing:
        """How the cards stand now."""
        now = self._clock()
        met = {name: self.progress.of(name) for name in self.cards if self.progress.of(name)}
        queued = {name for name in self.schedule.queue(self.cards, self.progress, now) if name in met}
        today = now.astimezone().date()
        days = [(self.schedule.due(met[name]).astimezone().date() - today).days for name in met if name not in queued]
        return Standing(
            known=len(met) - len(queued),
            due=len(queued),
            new=len(self.cards) - len(met),
            expected=sum(self.schedule.recall(answers, now) for answers in met.values()),
            ahead=tuple(days.count(ahead) for ahead in range(1, AHEAD_DAYS + 1)),
        )

    def day(self, ahead: int) -> str:
        """Name of the day so many days from now, short."""
        return (self._clock().astimezone() + timedelta(days=ahead)).strftime("%a")
