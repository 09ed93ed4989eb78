"""Where the site is written: what an earlier run wrote is replaced, what others put there is never touched."""

import subprocess
import sys
from pathlib import Path

import pytest

from trainmem.site import build as building
from trainmem.site.folder import LISTING, replace

OLD = {".nojekyll": b"", "index.html": b"old", "gone.html": b"", "frames/a.js": b"", "pictures/b.svg": b""}
NEW = {".nojekyll": b"", "index.html": b"new", "frames/c.js": b""}


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def checkout(tmp_path):
    """Somebody's branch of pages: no site of ours, though GitHub's own mark is there."""
    folder = tmp_path / "checkout"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/gh-pages\n")
    (folder / "thesis.txt").write_text("mine")
    (folder / ".nojekyll").write_text("")
    return folder


def run(path):
    return subprocess.run([sys.executable, "-m", "trainmem.site", path], capture_output=True, text=True)


def test_a_folder_with_other_files_is_left_alone(checkout):
    before = tree(checkout)
    with pytest.raises(ValueError, match=r"not empty and has no list.*holds \.nojekyll, thesis\.txt.*name an empty"):
        building.build(checkout)
    assert tree(checkout) == before


def test_other_files_beside_a_site_stay(checkout, monkeypatch):
    (checkout / LISTING).write_bytes(listing_of({}, checkout.parent / "empty"))
    mine = {name: content for name, content in tree(checkout).items() if name not in (LISTING, ".nojekyll")}
    (checkout / ".nojekyll").unlink()
    for files in (OLD, NEW):
        monkeypatch.setattr(building, "_files", lambda files=files: files)
        assert building.build(checkout) == sum(map(len, files.values()))
        after = tree(checkout)
        del after[LISTING]
        assert after == mine | files


def listing_of(files, folder):
    replace(folder, files)
    return (folder / LISTING).read_bytes()


def test_a_checkout_with_nothing_in_it_yet_is_as_good_as_empty(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/gh-pages\n")
    for _ in range(2):
        replace(tmp_path, {"index.html": b"site"})
        assert (tmp_path / "index.html").read_bytes() == b"site"
        assert (tmp_path / ".git" / "HEAD").read_text() == "ref: refs/heads/gh-pages\n"


def test_what_the_site_has_no_more_goes_and_so_does_its_folder(tmp_path):
    replace(tmp_path, OLD)
    replace(tmp_path, NEW)
    assert set(tree(tmp_path)) == {*NEW, LISTING}
    assert not (tmp_path / "pictures").exists()
    assert (tmp_path / "index.html").read_bytes() == b"new"


def test_a_folder_with_a_file_of_somebody_else_stays(tmp_path):
    replace(tmp_path, OLD)
    (tmp_path / "pictures" / "cat.jpg").write_text("mine")
    replace(tmp_path, NEW)
    assert set(tree(tmp_path)) == {*NEW, LISTING, "pictures/cat.jpg"}


@pytest.mark.parametrize(
    ("name", "named"),
    [("new.html", r"new\.html"), ("frames/new.js", "frames/new.js"), ("new", "new"), ("new.html/x", r"new\.html")],
)
def test_a_file_in_the_way_is_named_and_nothing_changes(name, named, tmp_path):
    replace(tmp_path, OLD)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    before = tree(tmp_path)
    coming = {**NEW, "new.html": b"", "frames/new.js": b"", "new/a.js": b""}
    with pytest.raises(ValueError, match=rf"would overwrite: {named}\. Nothing was changed: move it away"):
        replace(tmp_path, coming)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", ["../x", "{tmp}/x", "frames/../../x", "out/x", ".", "", "pictures", "a\0b", LISTING])
def test_a_listing_leads_nowhere_else(name, tmp_path):
    (tmp_path / "x").write_text("mine")
    folder = tmp_path / "site"
    replace(folder, OLD)
    (folder / "out").symlink_to(tmp_path)
    with (folder / LISTING).open("a") as listing:
        listing.write(name.replace("{tmp}", str(tmp_path)) + "\n")
    replace(folder, NEW)
    assert (tmp_path / "x").read_text() == "mine"
    assert set(tree(folder)) == {*NEW, LISTING}


def test_nothing_is_written_through_a_link(tmp_path):
    folder, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    replace(folder, {"index.html": b""})
    (folder / "frames").symlink_to(elsewhere)
    with pytest.raises(ValueError, match="overwrite: frames"):
        replace(folder, NEW)
    assert not tree(elsewhere)


def test_somebody_elses_file_of_the_listings_name_is_no_listing(tmp_path):
    theirs = tmp_path / "theirs.txt"
    theirs.write_bytes(listing_of(OLD, tmp_path / "other"))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "index.html").write_text("mine")
    for made in (lambda path: path.write_bytes(b"\xff\n"), lambda path: path.symlink_to(theirs), lambda p: p.mkdir()):
        made(folder / LISTING)
        with pytest.raises(ValueError, match="has no list"):
            replace(folder, NEW)
        assert (folder / "index.html").read_text() == "mine"
        if not (folder / LISTING).is_dir():
            (folder / LISTING).unlink()


def test_what_a_failed_run_left_can_be_replaced(tmp_path, monkeypatch):
    replace(tmp_path, OLD)
    write = Path.write_bytes

    def full(path, content):
        if path.name == "late.js":
            raise OSError("no space left")
        return write(path, content)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="no space left"):
            replace(tmp_path, {"early.html": b"", "index.html": b"", "late.js": b""})
    assert (tmp_path / "early.html").exists()
    replace(tmp_path, NEW)
    assert set(tree(tmp_path)) == {*NEW, LISTING}


def test_a_source_that_cannot_be_shown_leaves_the_site_as_it_is(tmp_path, monkeypatch):
    def fail():
        raise ValueError("no such formula")

    replace(tmp_path, OLD)
    before = tree(tmp_path)
    monkeypatch.setattr(building, "_files", fail)
    with pytest.raises(ValueError, match="no such formula"):
        building.build(tmp_path)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(("path", "said"), [("afile", "is a file: name a folder"), ("other", "has no list")])
def test_the_command_answers_with_a_sentence(path, said, tmp_path):
    (tmp_path / "afile").write_text("mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    done = run(tmp_path / path)
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.startswith("no site was made: ")
    assert "Traceback" not in done.stderr
    assert (tmp_path / "afile").read_text() == (tmp_path / "other" / "thesis.txt").read_text() == "mine"
