"""When cards come again: a simulated reader over 60 days, against fsrs itself; and the plain session's rule."""

import doctest
import random
import time
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta

import fsrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmem.review import CARDS, schedule
from trainmem.review.progress import Answer, Grade, Progress
from trainmem.review.schedule import SOON, OnceADay, Spaced, best_schedule
from trainmem.review.session import Session

START = datetime(2026, 3, 1, 18, 30, tzinfo=UTC)


@pytest.fixture(scope="module", autouse=True)
def _time_zone():
    """Days are local: here those of UTC."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


class Clock:
    def __init__(self):
        self.now = START

    def __call__(self):
        return self.now


class Reader:
    """Sits down on most days at other hours; knows cards more often the more often they were asked."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def days(self, count):
        for day in range(count):
            if self.random.random() < 0.85:
                yield datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=day, minutes=self.random.randrange(360, 1380))

    def grade(self, before):
        know = 0.6 + 0.08 * min(before, 4)
        return self.random.choices(list(Grade), (1 - know, 0.1, know - 0.2, 0.1))[0]


def independent_due(answers):
    """By fsrs alone, from the answers: the moment, and whether it is the short step."""
    scheduler = fsrs.Scheduler(
        learning_steps=[timedelta(minutes=10)], relearning_steps=[timedelta(minutes=10)], enable_fuzzing=False
    )
    card = fsrs.Card(card_id=7, due=answers[0][0])
    for at, grade in answers:
        card, _ = scheduler.review_card(card, fsrs.Rating(grade), at)
    return card.due, card.state != fsrs.State.Review


def simulated(make_schedule, path, seed, count=60):
    """So many days, each a session from the file anew. Returns per card its answers, and what each day left over."""
    reader, clock = Reader(seed), Clock()
    asked, days = defaultdict(list), []
    for clock.now in reader.days(count):
        session = Session(CARDS, make_schedule(), path, clock)
        assert session.said == ""
        assert {name: list(row) for name, row in session.progress.answers.items()} == dict(asked)
        opened, today = clock.now, []
        while session.current:
            name = session.current
            grade = reader.grade(len(asked[name]))
            asked[name].append((clock.now, grade))
            today.append((name, grade))
            session.answer(grade)
            clock.now += timedelta(seconds=20)
            assert len(today) < 400, "a session ends"
        days.append((opened, clock.now, today))
    return asked, days


@pytest.fixture(scope="module")
def sixty_days(tmp_path_factory):
    return simulated(lambda: Spaced(new_a_day=10), tmp_path_factory.mktemp("sixty") / "progress.json", seed=1)


def test_a_reader_over_sixty_days_sees_each_card_when_it_is_due(sixty_days):
    asked, days = sixty_days
    assert set(asked) == set(CARDS), "every card was begun"
    intervals = []
    for answers in asked.values():
        for i in range(1, len(answers)):
            due, short = independent_due(answers[:i])
            at = answers[i][0]
            if short:
                assert at >= due - 2 * SOON, "a card that was not known comes after the others, or ahead by minutes"
            else:
                assert at.date() >= due.date(), "never before the day on which it is due"
                # On the first day at the desk on or after that day, it was asked.
                first = next(opened for opened, *_ in days if opened.date() >= due.date())
                assert at.date() == first.date()
                intervals.append((due - answers[i - 1][0]).days)
    assert max(intervals) > 20, "cards that are known stay away longer"
    # What the last day leaves is due later; nothing was forgotten.
    last = days[-1][1].date()
    assert all(independent_due(answers)[0].date() > last for answers in asked.values())


def test_new_cards_come_in_the_lessons_order_and_ten_a_day(sixty_days):
    asked, _ = sixty_days
    begun = sorted(asked, key=lambda name: asked[name][0][0])
    assert begun == list(CARDS)
    per_day = Counter(answers[0][0].date() for answers in asked.values())
    assert list(per_day.values()) == [10] * (len(CARDS) // 10) + [len(CARDS) % 10] * (len(CARDS) % 10 > 0)


@pytest.fixture(scope="module")
def plain_days(tmp_path_factory):
    return simulated(OnceADay, tmp_path_factory.mktemp("plain") / "progress.json", seed=2, count=6)


@pytest.mark.parametrize("which", ["sixty_days", "plain_days"])
def test_what_was_not_known_comes_again_at_the_end_of_the_session(request, which):
    _, days = request.getfixturevalue(which)
    for _, _, today in days:
        known = set()
        first = [name for i, (name, _) in enumerate(today) if name not in [n for n, _ in today[:i]]]
        # First each card once, then those that are left.
        assert [name for name, _ in today[: len(first)]] == first
        for name, grade in today:
            known = known | {name} if grade is not Grade.AGAIN else known - {name}
        assert known == set(first), "nobody leaves with a card that was not known"


def test_a_plain_session_asks_every_card_once_a_day(plain_days):
    _, days = plain_days
    for _, _, today in days:
        known = [name for name, grade in today if grade is not Grade.AGAIN]
        assert sorted(known) == sorted(CARDS)
    assert [name for name, _ in days[0][2]][: len(CARDS)] == list(CARDS)


def test_a_plain_session_that_is_broken_off_goes_on_where_it_was(tmp_path):
    clock = Clock()
    session = Session(CARDS, OnceADay(), tmp_path / "p.json", clock)
    for _ in range(5):
        session.answer(Grade.GOOD)
    assert Session(CARDS, OnceADay(), tmp_path / "p.json", clock).current == list(CARDS)[5]
    clock.now += timedelta(days=1)
    assert Session(CARDS, OnceADay(), tmp_path / "p.json", clock).current == list(CARDS)[5]


@pytest.mark.parametrize("make", [Spaced, OnceADay])
def test_a_card_is_not_asked_twice_in_a_row_while_there_is_another(tmp_path, make):
    two = {name: CARDS[name] for name in list(CARDS)[:2]}
    session = Session(two, make(), tmp_path / "p.json", Clock())
    asked = []
    for _ in range(5):  # all within one second
        asked.append(session.current)
        session.answer(Grade.AGAIN)
    assert asked == [*two, *two, *two][:5]


def test_without_fsrs_the_session_is_the_plain_one_and_says_how_to_get_it(monkeypatch):
    assert isinstance(best_schedule(), Spaced)
    monkeypatch.setattr(schedule, "find_spec", lambda name: None)
    assert isinstance(best_schedule(), OnceADay)
    assert "%pip install fsrs" in best_schedule().description


def test_a_better_grade_keeps_the_card_away_longer_and_a_wait_lowers_recall():
    spaced = Spaced()
    before = (Answer(START, Grade.GOOD), Answer(START + timedelta(days=3), Grade.GOOD))
    now = START + timedelta(days=12)
    dues = [spaced.due((*before, Answer(now, grade))) for grade in Grade]
    assert dues == sorted(set(dues))
    assert now < dues[0] <= now + SOON
    recall = [spaced.recall(before, START + timedelta(days=days)) for days in (3, 5, 10, 40, 400)]
    assert recall == sorted(recall, reverse=True)
    assert 1 >= recall[0] > recall[-1] > 0
    assert spaced.recall((), now) == spaced.recall((*before, Answer(now, Grade.AGAIN)), now) == 0


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(list(CARDS)), st.integers(0, 10**7), st.sampled_from(Grade)), max_size=40),
    st.integers(0, 10**7),
    st.sampled_from([Spaced(5), OnceADay()]),
)
def test_any_history_is_counted_once_and_queued_once(rows, later, plan):
    progress = Progress()
    for name, seconds, grade in rows:
        progress = progress.with_answer(name, START + timedelta(seconds=seconds), grade)
    now = START + timedelta(seconds=later)
    queue = plan.queue(CARDS, progress, now)
    assert len(queue) == len(set(queue))
    assert set(queue) <= set(CARDS)
    met = {name for name, *_ in rows}
    expected = {name for name in met if plan.due(progress.of(name)) <= now}
    assert expected <= set(queue)


def test_examples_in_docstrings():
    assert doctest.testmod(schedule).failed == 0
