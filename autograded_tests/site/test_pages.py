"""Every page as a file: its skeleton, its links, its formulas, and nothing that would be loaded from elsewhere."""

import re
from itertools import pairwise
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

from trainmem.course import place
from trainmem.course.editions import ROOT
from trainmem.course.place import REPOSITORY
from trainmem.review import CARDS, CHECK_YOURSELF, INTERVIEW, QUICK_CHECKS
from trainmem.site.links import SHOWN, leads_to, picture
from trainmem.site.pages import PAGES, in_repository, section

MOST_BYTES = 6_000_000
REPOSITORY_FILE = re.compile(rf"https://github\.com/{REPOSITORY}/(?:blob|tree)/[\w.-]+/(.*)")
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.file)


@pytest.fixture(scope="module")
def soups(folder):
    return {path.name: BeautifulSoup(path.read_text("utf-8"), "html.parser") for path in folder.glob("*.html")}


def prose(page):
    return [cell.source for cell in page.notebook().cells if cell.cell_type == "markdown"]


def without_code(markdown):
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", markdown, flags=re.MULTILINE | re.DOTALL)


def test_the_site_is_small_and_whole(folder, soups):
    assert set(soups) == {page.file for page in PAGES}
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < MOST_BYTES
    kinds = {path.suffix for path in folder.rglob("*") if path.is_file()}
    assert kinds == {".html", ".css", ".js", ".svg", ".txt", ""}


@pages
def test_a_page_has_a_skeleton(soups, page):
    soup = soups[page.file]
    assert soup.html["lang"] == "en"
    assert soup.title.get_text().startswith(page.title)
    assert [len(soup.select(one)) for one in ("h1", "main", "body > header", "body > footer")] == [1, 1, 1, 1]
    assert soup.select_one("body > a.skip")["href"] == "#main"
    assert soup.select_one("main")["id"] == "main"
    current = soup.select("header nav a[aria-current=page]")
    assert [link["href"] for link in current] == [page.file]
    assert {link["href"] for link in soup.select("header nav a")} == {other.file for other in PAGES}
    levels = [int(heading.name[1]) for heading in soup.select("h1, h2, h3, h4")]
    assert levels[0] == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))
    ids = [node["id"] for node in soup.select("[id]")]
    assert len(ids) == len(set(ids))


@pages
def test_every_link_leads_somewhere(soups, page, folder):
    for node in soups[page.file].select("[href]"):
        url = node["href"]
        if url.startswith("data:"):
            continue
        parts = urlsplit(url)
        if parts.scheme:
            assert parts.scheme == "https", url
            named = REPOSITORY_FILE.fullmatch(url.partition("#")[0])
            assert not named or (ROOT / unquote(named[1])).exists(), url
            continue
        target = unquote(parts.path) or page.file
        assert (folder / target).is_file(), url
        if parts.fragment:
            assert soups[target].find(id=unquote(parts.fragment)), f"{page.file}: no {parts.fragment} in {target}"


@pages
def test_nothing_is_loaded_from_elsewhere(soups, page, folder):
    soup = soups[page.file]
    for node in soup.select("[src], link[href]"):
        url = node.get("src") or node["href"]
        assert url.startswith("data:") or (folder / url).is_file(), url
    assert soup.select("script:not([src])") == []
    assert [node for node in soup.find_all() for name in node.attrs if name.startswith("on")] == []
    policy = soup.select_one("meta[http-equiv=Content-Security-Policy]")["content"]
    assert policy.startswith("default-src 'none'; script-src 'self'; ")


def test_style_and_pictures_ask_for_nothing(folder):
    for path in [*folder.rglob("*.css"), *folder.rglob("*.svg"), *folder.rglob("*.js")]:
        text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|@import|url\(|fetch\(|import\(", text), path.name


@pages
def test_every_formula_is_drawn_and_no_dollar_is_left(soups, page):
    tex = without_code("\n\n".join(prose(page)))
    blocks = re.findall(r"\$\$.+?\$\$", tex, re.DOTALL)
    lines = re.findall(r"\$[^$]+?\$", re.sub(r"\$\$.+?\$\$", "", tex, flags=re.DOTALL))
    # A picture's alternative text and a folded widget's have no formulas, so that none is lost with them.
    drawn = soups[page.file].select("math")
    assert len(drawn) == len(blocks) + len(lines)
    assert sum(math["display"] == "block" for math in drawn) == len(blocks)
    assert not [math for math in drawn if not math.get_text(strip=True) or math.find("merror")]
    for name, parts in {"mfrac": 2, "msub": 2, "msup": 2, "mover": 2, "munder": 2, "msubsup": 3, "msqrt": 1}.items():
        assert all(len(list(node.children)) == parts for math in drawn for node in math.select(name)), name
    main = BeautifulSoup(str(soups[page.file].main), "html.parser")
    for code in main.select("code, pre, .highlight"):
        code.decompose()
    assert "$" not in main.get_text()
    assert "\\" not in main.get_text()


@pages
def test_no_paragraph_of_a_source_is_lost(soups, page):
    """Every heading stands on the page, and the first words of every paragraph that is plain text."""
    text = " ".join(soups[page.file].main.get_text(" ").split())
    headings = [heading.get_text() for heading in soups[page.file].select("h1, h2, h3, h4")]
    for markdown in prose(page):
        markdown = re.sub(r"^```.*?^```", "", markdown, flags=re.MULTILINE | re.DOTALL)
        if markdown.startswith("<details><summary>The "):
            continue  # a figure's or a check's text without a kernel
        for block in markdown.split("\n\n"):
            heading = re.match(r"#{1,4} ([^$`]+)$", block)
            if heading:
                assert heading[1] in headings
            elif re.match(r"[A-Z][\w ,]{40,}", block):
                assert " ".join(block[:40].split()) in text


def test_code_and_outputs_of_the_lesson_are_there(soups):
    text = soups["lesson.html"].main.get_text()
    lesson = next(page for page in PAGES if page.file == "lesson.html").notebook()
    shown = [cell for cell in lesson.cells if cell.cell_type == "code"]
    widgets = [cell for cell in shown if cell.id.startswith(("figure-", "check-"))]
    for cell in shown:
        if cell not in widgets:
            assert cell.source in text
            assert all(output.text.strip() in text for output in cell.outputs if output.output_type == "stream")
    assert len(soups["lesson.html"].select("figure.trainmem-figure, .check")) == len(widgets) == 5 + len(QUICK_CHECKS)


def test_every_choice_has_its_explanation(soups):
    checks = soups["lesson.html"].select(".check")
    assert len(checks) == len(QUICK_CHECKS)
    for shown, check in zip(checks, QUICK_CHECKS.values(), strict=True):
        choices = shown.select("details")
        assert len(choices) == len(check.choices)
        assert [choice["class"] == ["right"] for choice in choices] == [choice.right for choice in check.choices]
        assert all(len(choice.p.get_text()) > 40 and "[[" not in choice.get_text() for choice in choices)


def test_every_card_and_question_unfolds(soups):
    asked = [*CARDS.values(), *CHECK_YOURSELF.values(), *INTERVIEW.values()]
    folded = soups["cards.html"].select("details")
    assert len(folded) - len(soups["cards.html"].select("#contents")) == len(asked)
    text = soups["cards.html"].main.get_text()
    for question in asked:
        words = re.split(r"[*`_<>&$]", question.filled(question.question))[0].strip()
        assert " ".join(words.split()) in " ".join(text.split())


def test_a_page_that_needs_a_kernel_says_so(soups):
    main = soups["self_study.html"].main
    assert "need a kernel" in main.get_text()
    cells = next(page for page in PAGES if page.file == "self_study.html").notebook().cells
    own = [cell for cell in cells if cell.cell_type == "code" and "\nfigures." in f"\n{cell.source}"]
    notes = main.select(".note")
    assert len(notes) >= len(own) > 0
    assert all("needs a kernel" in note.get_text() for note in notes)


def test_links_between_sources_become_links_between_pages():
    assert leads_to("self_study.ipynb", "notebooks") == "self_study.html"
    assert leads_to("notebooks/measured/README.md#A", "") == "gpu.html#A"
    assert leads_to("#Does-it-fit", "notebooks") == "#Does-it-fit"
    assert leads_to("../../trainmem/memory", "notebooks/measured") == in_repository("trainmem/memory")
    assert "/tree/" in in_repository("trainmem/memory")
    assert "/blob/" in leads_to("LICENSE", "")
    with pytest.raises(ValueError, match=r"gone\.ipynb'.* leads to notebooks/gone\.ipynb"):
        leads_to("gone.ipynb", "notebooks")
    with pytest.raises(ValueError, match="is not there"):
        picture("figures/gone.svg", "notebooks")
    assert picture("https://example.org/a.png", "") is None


def test_a_source_leads_to_one_page_and_is_there():
    listed = [name for page in PAGES for name in page.shows]
    assert len(listed) == len(set(listed)) == len(SHOWN) > 0
    assert all((ROOT / name).exists() for name in listed)
    for page in PAGES:
        assert all(leads_to(name, "") == page.file for name in page.shows)
    assert leads_to("README.md", "") == "index.html"
    assert leads_to("notebooks/measured", "") == "gpu.html"
    assert leads_to("review.ipynb", "notebooks") == "cards.html"


def test_links_to_the_repository_follow_the_setting(monkeypatch):
    monkeypatch.setattr(place, "REPOSITORY", "somebody/else")
    monkeypatch.setattr(place, "VERSION", "v7")
    assert leads_to("LICENSE", "") == "https://github.com/somebody/else/blob/v7/LICENSE"
    assert in_repository("trainmem/memory") == "https://github.com/somebody/else/tree/v7/trainmem/memory"


def test_a_section_that_was_renamed_is_missed():
    assert section("# a\n\n## b\n\nc\n\n## d\n\ne\n", "b") == "c"
    with pytest.raises(ValueError, match="no section 'x'"):
        section("# a\n\n## b\n", "x")
