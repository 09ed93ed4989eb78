"""One setting says where the course lives: every badge, every first cell, and where the badges lead."""

import json
import re
import subprocess

import pytest

from autograded_tests.notebooks import ROOT, read
from trainmem.course import build, place

BADGE = re.compile(
    r"\[!\[Open in Colab\]\((\S+?)\)\]\(https://colab\.research\.google\.com/github/(\S+?)/blob/(\S+?)/(\S+?)\)"
)
NOTEBOOKS = [
    "notebooks/checkpointing_gpu.ipynb",
    "notebooks/lesson.ipynb",
    "notebooks/review.ipynb",
    "notebooks/self_study.ipynb",
    "release/training_memory/exercises.ipynb",
]
SOURCE = "source/training_memory/exercises.ipynb"


def text_of(path):
    return "\n\n".join(cell.source for cell in read(ROOT / path).cells)


def test_these_are_all_notebooks_of_the_repository():
    listed = subprocess.run(["git", "ls-files", "*.ipynb"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:  # not a checkout
        assert all((ROOT / path).exists() for path in NOTEBOOKS)
    else:
        assert set(listed.stdout.split()) == {*NOTEBOOKS, SOURCE}


@pytest.mark.parametrize("path", [*NOTEBOOKS, SOURCE])
def test_each_has_one_badge_that_leads_to_a_path_of_the_repository(path):
    [(picture, repository, version, target)] = BADGE.findall(text_of(path))
    assert (repository, version) == (place.REPOSITORY, place.VERSION)
    # What an instructor's source shows is what students get.
    assert target == (NOTEBOOKS[-1] if path == SOURCE else path)
    assert (ROOT / target).exists()
    assert (ROOT / path).parent.joinpath(picture).resolve() == ROOT / "notebooks" / "open_in_colab.svg"
    assert BADGE.search(read(ROOT / path).cells[0].source), "below the title"


@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path.startswith("notebooks/")])
def test_each_that_needs_the_course_installs_it_from_there(path):
    [setup] = [cell.source for cell in read(ROOT / path).cells if cell.id == "setup"]
    assert setup.count(f'ARCHIVE = "{place.archive()}"') == 1
    assert "--no-deps" in setup


def test_another_setting_changes_every_notebook_and_nothing_of_the_old_one_is_left(monkeypatch):
    old = re.compile(rf"{place.REPOSITORY}|/blob/{place.VERSION}/|archive/{place.VERSION}\.zip")
    monkeypatch.setattr(place, "REPOSITORY", "somebody/else")
    monkeypatch.setattr(place, "VERSION", "v7")
    texts = {str(path.relative_to(ROOT)): text for path, text in build.built(run=False).items()}
    for path in [*NOTEBOOKS, SOURCE]:
        cells = json.loads(texts[path])["cells"]
        sources = "\n\n".join("".join(cell["source"]) for cell in cells)
        assert f"/github/somebody/else/blob/v7/{NOTEBOOKS[-1] if path == SOURCE else path}" in sources
        assert not old.search(texts[path])
        if path.startswith("notebooks/"):
            assert "https://github.com/somebody/else/archive/v7.zip" in sources


@pytest.mark.parametrize("path", place.WRITTEN)
def test_of_a_written_notebook_only_the_addresses_change(path, monkeypatch):
    text = (ROOT / path).read_text("utf-8")
    assert place.readdressed(text, path) == text
    repository = place.REPOSITORY
    monkeypatch.setattr(place, "REPOSITORY", "somebody/else")
    changed = place.readdressed(text, path)
    assert changed != text
    pairs = zip(text.split("\n"), changed.split("\n"), strict=True)
    differ = [(old, new) for old, new in pairs if old != new]
    assert len(differ) == 2
    assert all(old.replace(repository, "somebody/else") == new for old, new in differ)


@pytest.mark.parametrize("path", place.WRITTEN)
@pytest.mark.parametrize("lost", ["Open in Colab", "ARCHIVE = "])
def test_an_address_that_is_gone_or_doubled_is_noticed(path, lost):
    text = (ROOT / path).read_text("utf-8")
    with pytest.raises(ValueError, match=rf"{path}: 0 times"):
        place.readdressed(text.replace(lost, "gone"), path)
    line = next(line for line in text.split("\n") if lost in line)
    with pytest.raises(ValueError, match=rf"{path}: 2 times"):
        place.readdressed(text.replace(line, f"{line}\n{line}"), path)


@pytest.mark.parametrize("path", place.WRITTEN)
def test_the_check_names_a_written_notebook_with_another_address(path, monkeypatch, tmp_path, capsys):
    edited = tmp_path / path
    edited.parent.mkdir(parents=True)
    text = (ROOT / path).read_text("utf-8")
    edited.write_text(text.replace(f"/blob/{place.VERSION}/", "/blob/v0/"), "utf-8")
    monkeypatch.setattr(build, "ROOT", tmp_path)
    monkeypatch.setattr(build, "built", lambda run=True: {edited: place.readdressed(edited.read_text("utf-8"), path)})
    assert build.main(["--check"]) == 1
    assert f"{path} has other addresses than place.py" in capsys.readouterr().err
    assert build.main([]) == 0
    assert place.archive() in edited.read_text("utf-8")
