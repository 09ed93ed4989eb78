"""The cards in Anki itself: imported, imported again, and with a changed answer after reviews."""

import csv
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from anki import import_export_pb2
from anki.collection import Collection

from autograded_tests.notebooks import ROOT
from trainmem.review import CARDS
from trainmem.review.export import DECK_ID, NOTE_TYPE_ID, _html, fields, guid, write_csv, write_package
from trainmem.review.progress import Grade

FORMS = {"csv": write_csv, "apkg": write_package}
CHANGED = "m-of-k"
LATER = 1_900_000_000  # a later moment than that of the first package


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """What the command writes, for a reader in a folder of their own."""
    folder = tmp_path_factory.mktemp("anki")
    run = subprocess.run(
        [sys.executable, "-m", "trainmem.review", "export", "cards"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.count(f"{len(CARDS)} cards") == 2
    return {form: folder / "cards" / f"trainmem.{form}" for form in FORMS}


@pytest.fixture
def collection(tmp_path):
    collection = Collection(str(tmp_path / "collection.anki2"))
    yield collection
    collection.close()


def load(collection, path):
    """Import a file as Anki does when nobody changes a setting; returns how many notes met which fate."""
    if path.suffix == ".csv":
        metadata = collection.get_csv_metadata(str(path), None)
        done = collection.import_csv(import_export_pb2.ImportCsvRequest(path=str(path), metadata=metadata))
    else:
        options = import_export_pb2.ImportAnkiPackageOptions()
        request = import_export_pb2.ImportAnkiPackageRequest(package_path=str(path), options=options)
        done = collection.import_anki_package(request)
    fates = ("new", "updated", "duplicate", "conflicting", "first_field_match", "missing_notetype", "empty_first_field")
    counts = {fate: len(getattr(done.log, fate)) for fate in fates}
    return {fate: count for fate, count in counts.items() if count}


def notes(collection):
    return {note.guid: note for note in map(collection.get_note, collection.find_notes(""))}


@pytest.mark.parametrize("form", FORMS)
def test_all_cards_arrive_and_a_second_import_doubles_none(collection, exported, form):
    assert load(collection, exported[form]) == {"new": len(CARDS)}
    assert load(collection, exported[form]) == {"duplicate": len(CARDS)}
    assert collection.note_count() == collection.card_count() == len(CARDS)
    assert set(notes(collection)) == {guid(name) for name in CARDS}
    decks = {collection.decks.name(collection.get_card(card).did) for card in collection.find_cards("")}
    assert decks == {"Training memory"}
    tagged = [card for card in CARDS.values() if card.section == "Activations of one layer"]
    assert len(collection.find_notes("tag:trainmem::activations-of-one-layer")) == len(tagged) > 2


@pytest.mark.parametrize("form", FORMS)
def test_a_new_edition_changes_texts_and_keeps_history(collection, exported, tmp_path, form, monkeypatch):
    load(collection, exported[form])
    reviewed = collection.find_cards(f"nid:{notes(collection)[guid(CHANGED)].id}")[0]
    before = collection.get_card(reviewed)
    for ease in (3, 3):
        card = collection.get_card(reviewed)
        card.start_timer()
        collection.sched.answerCard(card, ease)
    history = collection.db.all("select cid, ease, ivl from revlog")
    after = collection.get_card(reviewed)
    assert len(history) == 2
    assert (after.reps, after.due) != (before.reps, before.due)

    added = replace(CARDS[CHANGED], name="one-more", question="One more?")
    changed = replace(CARDS[CHANGED], answer="A changed answer.")
    edition = {**CARDS, CHANGED: changed, "one-more": added}
    del edition["unit-sbh"]
    # Anki compares whole seconds: the new edition is a later one.
    monkeypatch.setattr("time.time", lambda: LATER)
    FORMS[form](edition, tmp_path / f"new.{form}")
    monkeypatch.undo()
    fates = load(collection, tmp_path / f"new.{form}")
    assert fates["new"] == 1
    assert fates["updated"] + fates.get("duplicate", 0) == len(CARDS) - 1
    assert collection.note_count() == collection.card_count() == len(CARDS) + 1, "what is gone from the edition stays"
    note = notes(collection)[guid(CHANGED)]
    assert note.fields[1] == "A changed answer."
    [card] = note.cards()
    assert (card.id, card.reps, card.due, card.ivl) == (after.id, after.reps, after.due, after.ivl)
    assert collection.db.all("select cid, ease, ivl from revlog") == history


@pytest.mark.parametrize("first", FORMS)
def test_the_other_form_on_top_of_one_doubles_nothing(collection, exported, first):
    other = next(form for form in FORMS if form != first)
    load(collection, exported[first])
    texts = {key: note.fields for key, note in notes(collection).items()}
    assert load(collection, exported[other]) == {"conflicting": len(CARDS)}
    assert collection.note_count() == collection.card_count() == len(CARDS)
    assert {key: note.fields for key, note in notes(collection).items()} == texts


@pytest.mark.parametrize("form", FORMS)
def test_what_anki_shows_is_the_cards_text(collection, exported, form):
    load(collection, exported[form])
    shown = notes(collection)
    for name, card in CARDS.items():
        [made] = shown[guid(name)].cards()
        question, answer, _ = fields(card)
        front, back = made.question(), made.answer()
        assert question in front
        assert card.section in front
        assert answer not in front
        assert answer in back
        assert "{{" not in front + back
        assert "[[" not in front + back
    [made] = shown[guid("activations-of-a-gpt-layer")].cards()
    assert "sbh(34 + 5as/h) bytes, which is 34·sbh + 5·a·s²·b." in made.answer()


def test_formulas_need_nothing_but_a_font(exported):
    """No picture, no TeX left as source, no markup that a phone would show as letters."""
    rows = exported["csv"].read_text("utf-8")
    for sign in ("$", "**", "`", "<img", "\\frac", "_{"):
        assert sign not in rows


def test_tex_gets_the_brackets_of_ankis_mathjax():
    assert _html("*a* $M(k) = \\frac{L}{k} c < b*c*d$ and $x$") == (
        "<i>a</i> \\(M(k) = \\frac{L}{k} c &lt; b*c*d\\) and \\(x\\)"
    )


def test_the_csv_has_ankis_headers_and_a_row_for_each_card(exported):
    lines = exported["csv"].read_text("utf-8").splitlines()
    headers = dict(line[1:].split(":", 1) for line in lines if line.startswith("#"))
    assert headers == {
        "separator": "Comma",
        "html": "true",
        "notetype": "Basic",
        "deck": "Training memory",
        "columns": "guid,Front,Back,tags",
        "guid column": "1",
        "tags column": "4",
    }
    rows = list(csv.reader(line for line in lines if not line.startswith("#")))
    assert [row[0] for row in rows] == [guid(name) for name in CARDS]
    assert {len(row) for row in rows} == {4}


def test_what_anki_knows_the_cards_by_never_changes():
    """Written out a second time on purpose: another number here would cut every reader off from their history."""
    assert (DECK_ID, NOTE_TYPE_ID, guid("m-of-k")) == (1764115201, 1764115202, "trainmem:m-of-k")
    assert [int(grade) for grade in Grade] == [1, 2, 3, 4]


def test_without_genanki_the_csv_is_written_and_the_package_is_named(tmp_path):
    (tmp_path / "genanki.py").write_text("raise ImportError('no genanki here')\n")
    run = subprocess.run(
        [sys.executable, "-m", "trainmem.review", "export"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    assert "no trainmem.apkg: genanki is missing (pip install genanki)" in run.stderr
    assert (tmp_path / "trainmem.csv").exists()
    assert not (tmp_path / "trainmem.apkg").exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "taken").write_text("")
    run = subprocess.run(
        [sys.executable, "-m", "trainmem.review", "export", "taken"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    assert "taken could not be written: File exists" in run.stderr
    assert "Traceback" not in run.stderr
