"""The session as a widget, and its picture."""

import base64
import json
import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta

import pytest

from trainmem.review import CARDS, review_session
from trainmem.review.overview import HEIGHT, WIDTH, overview
from trainmem.review.progress import Grade, Progress, from_json
from trainmem.review.schedule import OnceADay, Spaced
from trainmem.review.session import Session, Standing
from trainmem.review.session_widget import ReviewBox

START = datetime(2026, 3, 2, 12, tzinfo=UTC)
NAMES = list(CARDS)
DAYS = ("Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Mon")


@pytest.fixture
def box(tmp_path):
    return ReviewBox(Session(CARDS, Spaced(3), tmp_path / "progress.json", lambda: START))


def plain(html):
    return re.sub(r"<[^>]+>", " ", html)


def press(box, key):
    box.key_field.value += key


def test_a_card_is_asked_then_shown_then_graded(box, tmp_path):
    card = CARDS[NAMES[0]]
    assert card.question in box.asked.value
    assert plain(box.answer.value).strip() == ""
    assert [button.disabled for button in box.grades] == [True] * 4
    box.grades[2].click()
    assert not (tmp_path / "progress.json").exists(), "nobody grades what was not shown"
    box.show.click()
    assert "112 GB" in box.answer.value
    assert [button.disabled for button in box.grades] == [False] * 4
    assert [button.description.split(" (")[0] for button in box.grades] == [
        "1 · Again",
        "2 · Hard",
        "3 · Good",
        "4 · Easy",
    ]
    assert box.grades[0].description == "1 · Again (10 min)"
    assert re.fullmatch(r"4 · Easy \(\d+ d\)", box.grades[3].description)
    box.grades[2].click()
    assert from_json((tmp_path / "progress.json").read_text()).of(NAMES[0])[0].grade is Grade.GOOD
    assert CARDS[NAMES[1]].question in box.asked.value
    assert plain(box.answer.value).strip() == ""


def test_all_of_it_by_single_keys(box):
    for grade, key in zip(Grade, "1234", strict=True):
        if box.session.current is None:
            break
        name, count = box.session.current, box.session.answers
        press(box, key)
        assert box.session.answers == count, "the first key shows, whichever it is"
        press(box, "x")
        press(box, "9")
        assert box.session.answers == count
        press(box, key)
        assert box.session.answers == count + 1
        assert box.session.progress.of(name)[-1].grade is grade
        assert box.key_field.value == ""


def test_where_nothing_is_due_it_says_when_and_looks_again(tmp_path):
    now = [START]
    box = ReviewBox(Session(CARDS, Spaced(1), tmp_path / "progress.json", lambda: now[0]))
    box.show.click()
    box.grades[2].click()
    assert "Nothing is due now. The next card comes again in 2 d." in box.asked.value
    assert box.show.description == "Look again"
    assert [button.disabled for button in box.grades] == [True] * 4
    press(box, "3")
    box.show.click()
    assert box.session.current is None
    now[0] += timedelta(days=2)
    box.show.click()
    assert box.session.current == NAMES[0]
    assert box.show.description == "Show the answer"


def test_the_download_is_the_file(box, tmp_path):
    box.show.click()
    box.grades[0].click()
    link = re.search(r'<a download="progress.json" href="data:application/json;base64,([^"]+)">', box.download.value)
    assert base64.b64decode(link[1]) == (tmp_path / "progress.json").read_bytes()


def test_an_uploaded_file_is_added_and_can_be_loaded_twice(box):
    text = Progress().with_answer(NAMES[5], START - timedelta(days=3), Grade.GOOD).as_json().encode()
    file = {"name": "mine.json", "type": "application/json", "size": len(text), "content": memoryview(text)}
    file["last_modified"] = START
    for new in ("1 new answer.", "0 new answers."):
        box.upload.value = (file,)
        assert f"mine.json: {new}" in box.said.value
        assert box.upload.value == ()
    assert box.session.progress.of(NAMES[5])
    box.upload.value = ({**file, "content": memoryview(b"{")},)
    assert "mine.json was not loaded: it is not JSON" in box.said.value
    assert box.session.answers == 1


def test_a_shown_answer_stays_only_while_its_question_does(box):
    box.show.click()
    text = Progress().with_answer(NAMES[0], START, Grade.GOOD).as_json().encode()
    box.upload.value = ({"name": "m.json", "type": "", "size": 1, "content": text, "last_modified": START},)
    assert box.session.current == NAMES[1]
    assert plain(box.answer.value).strip() == ""
    assert box.grades[0].disabled


def test_the_plain_text_is_the_same_for_everybody(box, tmp_path):
    before = repr(box)
    box.show.click()
    box.grades[0].click()
    assert repr(box) == before == repr(review_session(str(tmp_path / "other.json")))
    assert len(before) <= 110


def test_words_of_a_file_are_no_markup(tmp_path):
    path = tmp_path / "a<b>&.json"
    path.write_text('{"course": "<script>"}')
    box = ReviewBox(Session(CARDS, OnceADay(), path, lambda: START))
    assert "<script>" not in box.said.value
    assert "<b>" not in box.download.value


def test_no_widgets_that_break_in_colab(box):
    def below(widget):
        yield type(widget).__name__
        for child in getattr(widget, "children", ()):
            yield from below(child)

    assert set(below(box)) == {"ReviewBox", "HTML", "Box", "Button", "Text", "FileUpload"}


# --- the picture ---------------------------------------------------------------------------------------------------


def test_each_card_is_known_due_or_new_and_the_picture_says_so(tmp_path):
    now = [START]
    session = Session(CARDS, Spaced(4), tmp_path / "progress.json", lambda: now[0])
    for grade in (Grade.AGAIN, Grade.GOOD, Grade.GOOD, Grade.EASY):
        session.answer(grade)
    standing = session.standing()
    assert standing.expected == pytest.approx(3), "what was not known is not counted"
    assert (standing.known, standing.due, standing.new) == (3, 1, len(CARDS) - 4)
    assert standing.ahead[1] == 2, "two good ones come in two days"
    assert sum(standing.ahead) == 2, "the easy one comes later than in a week"
    now[0] += timedelta(days=2)
    later = session.standing()
    assert (later.known, later.due, later.ahead[0]) == (1, 3, 0)
    assert later.expected < standing.expected
    label = ET.fromstring(overview(later, DAYS)).get("aria-label")
    assert label == later.sentence
    assert "1 known for now, 3 due" in label


PICTURES = [
    Standing(0, 0, 41, 0.0, (0,) * 7),
    Standing(41, 0, 0, 40.2, (9, 1, 0, 4, 12, 0, 3)),
    Standing(20, 20, 1, 33.3, (20, 0, 0, 0, 0, 0, 0)),
    Standing(333, 333, 334, 600.0, (100, 111, 122, 0, 0, 0, 0)),
    Standing(0, 0, 0, 0.0, (0,) * 7),
]


@pytest.mark.parametrize("standing", PICTURES)
def test_the_picture_shows_its_numbers_inside_its_frame(standing):
    root = ET.fromstring(overview(standing, DAYS))
    assert root.get("role") == "img"
    rects = [element for element in root.iter() if element.tag.endswith("rect")]
    for rect in rects:
        x, y, width, height = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + width <= WIDTH + 0.2
        assert 0 <= y <= y + height <= HEIGHT
    words = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert words[:3] == [f"{standing.known} known", f"{standing.due} due", f"{standing.new} new"]
    assert tuple(int(word) for word in words[4::2]) == standing.ahead
    assert tuple(words[5::2]) == DAYS
    bar = {rect.get("fill"): float(rect.get("width")) for rect in rects if rect.get("height") == "16.0"}
    for fill, count in (("#009E73", standing.known), ("#E69F00", standing.due), ("#999999", standing.new)):
        assert bar.get(fill, 0) == pytest.approx(WIDTH * count / max(1, standing.cards), abs=0.06)


def test_the_file_is_small_after_years(tmp_path):
    progress = Progress()
    for name in NAMES:
        for i in range(25):
            progress = progress.with_answer(name, START + timedelta(days=i * 30), Grade.GOOD)
    assert len(json.dumps(json.loads(progress.as_json()))) < 100_000
