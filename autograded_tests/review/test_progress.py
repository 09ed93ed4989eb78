"""The reader's file: saved whole, loaded from any edition, never lost."""

import errno
import json
import multiprocessing
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmem.review import CARDS, progress
from trainmem.review.progress import VERSION, Grade, Progress, from_json, load, save, uploaded
from trainmem.review.schedule import OnceADay, Spaced
from trainmem.review.session import Session

NOW = datetime(2026, 3, 1, 18, 30, tzinfo=UTC)
NAMES = list(CARDS)


def clock():
    return NOW


def some(*names):
    answers = Progress()
    for i, name in enumerate(names):
        answers = answers.with_answer(name, NOW - timedelta(days=9, minutes=-i), Grade(i % 4 + 1))
    return answers


answers_of_any_kind = st.dictionaries(
    st.text(min_size=1),
    st.lists(st.tuples(st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)), st.sampled_from(Grade)), min_size=1),
    max_size=6,
)


def progress_of(rows):
    made = Progress()
    for name, answers in rows.items():
        for at, grade in answers:
            made = made.with_answer(name, at.replace(tzinfo=UTC), grade)
    return made


@settings(max_examples=30, deadline=None)
@given(answers_of_any_kind)
def test_what_is_written_is_read_again(rows):
    whole = progress_of(rows)
    assert from_json(whole.as_json()) == whole


@settings(max_examples=30, deadline=None)
@given(answers_of_any_kind, answers_of_any_kind)
def test_merging_loses_nothing_and_doubles_nothing(one, other):
    a, b = progress_of(one), progress_of(other)
    both = a.merged(b)
    assert both == b.merged(a)
    assert both.merged(a) == both
    for name in {*one, *other}:
        assert set(both.of(name)) == {*a.of(name), *b.of(name)}


def test_every_answer_is_in_the_file_at_once(tmp_path):
    path = tmp_path / "new folder" / "progress.json"
    session = Session(CARDS, OnceADay(), path, clock)
    assert not path.exists(), "nothing is written before an answer"
    session.answer(Grade.GOOD)
    data = json.loads(path.read_text())
    assert data == {
        "course": "trainmem",
        "version": VERSION,
        "answers": {NAMES[0]: [{"at": "2026-03-01T18:30:00+00:00", "grade": 3}]},
    }
    session.answer(Grade.AGAIN)
    assert from_json(path.read_text()) == session.progress
    assert session.said == ""
    assert [file.name for file in path.parent.iterdir()] == ["progress.json"]


def _saved_for_ever(path):
    answers = some(*NAMES)
    for i in range(10**6):
        save(path, answers.with_answer(NAMES[i % 40], NOW + timedelta(seconds=i % 50), Grade.GOOD))


def test_a_kernel_that_is_killed_leaves_a_whole_file(tmp_path):
    path = tmp_path / "progress.json"
    save(path, some(*NAMES))
    for pause in (0.2, 0.23, 0.27, 0.31):
        writer = multiprocessing.get_context("fork").Process(target=_saved_for_ever, args=(path,))
        writer.start()
        writer.join(pause)
        writer.kill()
        writer.join()
        read = from_json(path.read_text())
        assert set(read.answers) == set(NAMES)
        assert read.left_out == 0


def test_a_full_disk_keeps_the_old_file_and_the_session(tmp_path, monkeypatch):
    path = tmp_path / "progress.json"
    session = Session(CARDS, OnceADay(), path, clock)
    session.answer(Grade.GOOD)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(progress.os, "fsync", full)
    session.answer(Grade.EASY)
    assert "No space left on device" in session.said
    assert "Download your progress" in session.said
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1
    monkeypatch.undo()
    session.answer(Grade.GOOD)
    assert session.said == ""
    assert len(from_json(path.read_text()).answers) == 3, "what could not be written is made up for"


def test_two_sessions_on_one_file_do_not_undo_each_other(tmp_path):
    path = tmp_path / "progress.json"
    one, two = (Session(CARDS, OnceADay(), path, clock) for _ in "ab")
    one.answer(Grade.GOOD)
    two.answer(Grade.HARD)
    one.answer(Grade.GOOD)
    assert {int(answer.grade) for answer in from_json(path.read_text()).of(NAMES[0])} == {2, 3}
    assert len(from_json(path.read_text()).answers) == 2


# --- older editions ------------------------------------------------------------------------------------------------


def test_a_file_of_an_older_edition_loads_and_keeps_what_this_edition_lacks(tmp_path):
    path = tmp_path / "progress.json"
    gone = {"at": "2025-06-01T10:00:00+02:00", "grade": 2}
    # No course, no version; one card is gone since, most are new; a moment without a zone is UTC.
    path.write_text(
        json.dumps({"answers": {"a-card-of-old": [gone], NAMES[1]: [{"at": "2025-06-02T10:00:00", "grade": 3}]}})
    )
    for plan in (Spaced(), OnceADay()):
        session = Session(CARDS, plan, path, clock)
        assert session.said == ""
        standing = session.standing()
        assert (standing.cards, standing.new) == (len(CARDS), len(CARDS) - 1)
        assert session.progress.of(NAMES[1])[0].at == datetime(2025, 6, 2, 10, tzinfo=UTC)
    session.answer(Grade.GOOD)
    data = json.loads(path.read_text())
    assert data["version"] == VERSION
    assert data["answers"]["a-card-of-old"] == [{"at": "2025-06-01T08:00:00+00:00", "grade": 2}]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"version": 0}',
        '{"version": 0, "answers": null}',
        '{"answers": {}, "theme": "dark"}',
        '{"course": "trainmem"}',
    ],
)
def test_missing_and_unknown_fields_are_no_error(tmp_path, text):
    (tmp_path / "p.json").write_text(text)
    assert load(tmp_path / "p.json") == (Progress(), "")


def test_single_answers_that_cannot_be_read_are_left_out_and_the_file_kept(tmp_path):
    path = tmp_path / "progress.json"
    good = {"at": "2026-02-01T10:00:00+00:00", "grade": 3}
    bad = [{"at": "yesterday", "grade": 3}, {"grade": 3}, {"at": good["at"]}, {"at": good["at"], "grade": 9}, 7]
    text = json.dumps({"version": 1, "answers": {NAMES[0]: [*bad, good], NAMES[1]: "often", NAMES[2]: [good]}})
    path.write_text(text)
    session = Session(CARDS, Spaced(), path, clock)
    assert session.said == "6 answers in progress.json could not be read. The file is kept as progress.unread-1.json."
    assert (tmp_path / "progress.unread-1.json").read_text() == text
    assert session.answers == 2
    assert from_json(path.read_text()).left_out == 0
    assert Session(CARDS, Spaced(), path, clock).said == "", "told once"


# --- broken files --------------------------------------------------------------------------------------------------

BROKEN = {
    "": "it is not JSON",
    '{"version": 1, "answers": {"m-of-k": [{"at": "2026': "it is not JSON",
    "[1, 2]": "not an object",
    '"text"': "not an object",
    '{"version": 1, "answers": [1]}': "not listed by card",
    '{"version": "one"}': "its version is 'one'",
    '{"version": 99, "answers": {}}': "a newer edition of the course wrote it (version 99; this one reads up to 1)",
    '{"course": "chess"}': "another course ('chess')",
    "[" * 100_000: "it is not JSON",
}


@pytest.mark.parametrize(("text", "said"), BROKEN.items(), ids=range(len(BROKEN)))
def test_a_broken_file_is_named_and_kept(tmp_path, text, said):
    path = tmp_path / "progress.json"
    for number in (1, 2):
        path.write_text(text)
        session = Session(CARDS, OnceADay(), path, clock)
        assert said in session.said
        assert f"kept as progress.unread-{number}.json" in session.said
        session.answer(Grade.GOOD)
        assert from_json(path.read_text()) == session.progress
        path.unlink()
    assert [(tmp_path / f"progress.unread-{number}.json").read_text() for number in (1, 2)] == [text] * 2


def test_a_file_that_is_no_text_is_kept_too(tmp_path):
    path = tmp_path / "progress.json"
    path.write_bytes(b"\x80\xff\x00PK")
    assert "could not be read" in load(path)[1]
    assert (tmp_path / "progress.unread-1.json").read_bytes() == b"\x80\xff\x00PK"


def test_a_file_that_breaks_during_the_session_is_kept_and_nothing_is_lost(tmp_path):
    path = tmp_path / "progress.json"
    session = Session(CARDS, OnceADay(), path, clock)
    session.answer(Grade.GOOD)
    path.write_text("half a fi")
    session.answer(Grade.GOOD)
    assert "kept as progress.unread-1.json" in session.said
    assert (tmp_path / "progress.unread-1.json").read_text() == "half a fi"
    assert len(from_json(path.read_text()).answers) == 2


def test_a_broken_file_that_cannot_be_renamed_is_not_overwritten(tmp_path, monkeypatch):
    path = tmp_path / "progress.json"
    path.write_text("half a fi")

    def denied(self, target):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "rename", denied)
    session = Session(CARDS, OnceADay(), path, clock)
    assert "Permission denied" in session.said
    session.answer(Grade.GOOD)
    assert "could not be written" in session.said
    assert path.read_text() == "half a fi"
    assert session.answers == 1


def test_a_folder_in_the_files_place_is_told(tmp_path):
    path = tmp_path / "progress.json"
    path.mkdir()
    session = Session(CARDS, OnceADay(), path, clock)
    assert "could not be opened" in session.said
    session.answer(Grade.GOOD)
    assert "could not be written" in session.said
    assert stat.S_ISDIR(path.stat().st_mode)


# --- loading -------------------------------------------------------------------------------------------------------


def test_a_loaded_file_is_added_to_what_is_there(tmp_path):
    session = Session(CARDS, OnceADay(), tmp_path / "progress.json", clock)
    session.answer(Grade.GOOD)
    text = some(NAMES[3], NAMES[4]).as_json().encode()
    session.add_file("mine.json", text)
    assert session.said == "mine.json: 2 new answers."
    assert set(from_json((tmp_path / "progress.json").read_text()).answers) == {NAMES[0], NAMES[3], NAMES[4]}
    session.add_file("mine.json", text)
    assert session.said == "mine.json: 0 new answers."
    assert session.answers == 3


@pytest.mark.parametrize(("text", "said"), BROKEN.items(), ids=range(len(BROKEN)))
def test_a_broken_upload_changes_nothing(tmp_path, text, said):
    session = Session(CARDS, OnceADay(), tmp_path / "progress.json", clock)
    session.answer(Grade.GOOD)
    before = (tmp_path / "progress.json").read_bytes()
    session.add_file("mine.json", text.encode())
    assert "mine.json was not loaded" in session.said
    assert said in session.said
    assert (tmp_path / "progress.json").read_bytes() == before


def test_an_upload_in_the_form_of_ipywidgets_7_and_8():
    seven = {"mine.json": {"metadata": {"name": "mine.json", "size": 2}, "content": b"{}"}}
    eight = ({"name": "mine.json", "type": "application/json", "size": 2, "content": memoryview(b"{}")},)
    assert uploaded(seven) == uploaded(eight) == ("mine.json", b"{}")
    assert uploaded({}) is uploaded(()) is None
