"""The site in Chromium, everything outside blocked: figures moved by mouse and keys, checks answered, axe, print."""

import json
import re

import pytest

from autograded_tests.figures.oracles import (
    EXAMPLE,
    LLAMA_7B,
    agrees,
    climb,
    equal_units,
    held_by_layers,
    layer_parameters,
    one_gpu,
)
from trainmem.site.pages import PAGES

PHONE, DESKTOP = {"width": 400, "height": 900}, {"width": 1280, "height": 900}
FILES = [page.file for page in PAGES]
LLAMA = (LLAMA_7B, 32, 4096, 1, 4096, 32, 32000)
LLAMA_SBH = 4096 * 4096


@pytest.fixture(scope="module")
def shots(tmp_path_factory):
    """Where the screenshots lie, to be looked at."""
    return tmp_path_factory.mktemp("shots")


@pytest.fixture
def visit(browser, address):
    """Open a page of the site; whatever is said on the console or asked of others is held against it at the end."""
    said, asked, pages = [], [], []

    def outside(route):
        url = route.request.url
        if url.startswith((address, "data:")):
            route.continue_()
        else:
            asked.append(url)
            route.abort()

    def opened(file, size=DESKTOP, **options):
        page = browser.new_page(viewport=size, **options)
        page.route("**/*", outside)
        page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("requestfailed", lambda request: asked.append(request.url))
        page.on("response", lambda answer: said.append(answer.url) if answer.status >= 400 else None)
        page.goto(f"{address}/{file}")
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.close()
    assert said == []
    assert asked == []


class Figure:
    def __init__(self, page, name):
        self.page, self.root = page, page.locator(f"figure[data-frames={name}]")
        self.slider = self.root.get_by_role("slider")
        self.select = self.root.get_by_role("combobox", name="Example")

    def choose(self, title):
        self.select.select_option(label=title)

    def keys(self, *keys):
        self.slider.focus()
        for key in keys:
            self.page.keyboard.press(key)

    def click(self, part):
        """With the mouse, on a part of the slider's track."""
        self.slider.scroll_into_view_if_needed()
        box = self.slider.bounding_box()
        self.page.mouse.click(box["x"] + part * box["width"], box["y"] + box["height"] / 2)
        return self.at

    @property
    def at(self):
        said = self.slider.get_attribute("aria-valuetext")
        assert self.root.locator("output").inner_text() == said
        return said

    @property
    def text(self):
        return self.root.locator(".trainmem-numbers").inner_text()

    def shows(self, pattern, *values):
        """The text has these numbers, and so has the one picture that can be seen, which is new too."""
        match = re.search(pattern, self.text)
        assert match, f"no {pattern!r} in {self.text!r}"
        assert len(match.groups()) == len(values)
        assert all(agrees(words, value) for words, value in zip(match.groups(), values, strict=True)), match[0]
        picture = self.root.locator("svg:visible")
        assert picture.count() == 1
        if "\t" not in match[0]:
            assert match[0] in picture.get_attribute("aria-label")


@pytest.fixture
def figure(visit, request):
    return Figure(visit("lesson.html"), request.param)


def of(name):
    return pytest.mark.parametrize("figure", [name], indirect=True)


@of("step_timeline")
def test_the_timeline_follows_mouse_and_keys(figure):
    none, selective, full = equal_units(*LLAMA)
    figure.choose("LLaMA 7B")
    figure.shows(r"Peak ([\d.]+) GB at event 33", none / 1e9)
    figure.choose("LLaMA 7B, selective recomputation")
    figure.shows(r"Peak ([\d.]+) GB", selective / 1e9)
    figure.choose("LLaMA 7B, a checkpoint every layer")
    figure.shows(r"Peak ([\d.]+) GB", full / 1e9)
    figure.choose("LLaMA 7B")
    figure.keys("Home")
    for layers in (1, 2, 3):
        held = 14 * LLAMA_7B + layers * 194 * LLAMA_SBH
        figure.shows(rf"Event {layers} of 67, .*; ([\d.]+) GB in all", held / 1e9)
        figure.keys("ArrowRight")
    figure.keys("ArrowLeft", "ArrowLeft")
    assert figure.at.startswith("2, ")
    event = int(figure.click(0.3).split(",")[0])
    assert 10 < event < 30
    figure.shows(rf"Event {event} of 67, .*; ([\d.]+) GB in all", (14 * LLAMA_7B + event * 194 * LLAMA_SBH) / 1e9)
    figure.root.get_by_role("button", name="Next").click()
    figure.shows(
        rf"Event {event + 1} of 67, .* ([\d.]+) GB in all", (14 * LLAMA_7B + (event + 1) * 194 * LLAMA_SBH) / 1e9
    )
    figure.root.get_by_role("button", name="Back").press("Enter")
    figure.shows(rf"Event {event} of 67, .* ([\d.]+) GB in all", (14 * LLAMA_7B + event * 194 * LLAMA_SBH) / 1e9)


@of("layer_parameters")
def test_the_parameters_follow_the_width(figure):
    def holds(style, h, f, kv_share):
        layer = layer_parameters(style, h, f, kv_share)
        assert f"{layer:,} parameters" in figure.text
        figure.shows(r"f = ([\d,]+) has", f)

    holds("gpt", 2048, 8192, 1)
    assert f"{EXAMPLE:,} parameters in 24 layers" in figure.text
    figure.keys("End")
    holds("gpt", 2048, 8 * 2048, 1)
    figure.choose("Llama 2 70B")
    holds("llama", 8192, 28672, 1 / 8)
    figure.keys("Home")
    holds("llama", 8192, 8192, 1 / 8)
    width = int(figure.click(0.7).split()[0].replace(",", ""))
    assert 4 * 8192 < width < 7 * 8192
    holds("llama", 8192, width, 1 / 8)


@of("layer_walk")
def test_the_walk_adds_up_to_the_theorem(figure):
    figure.shows(r"So far ([\d.]+) sbh and ([\d.]+) as²b", 34, 5)
    # The running totals of the proof's table: after the softmax, and after the second LayerNorm.
    figure.keys("Home")
    assert "Nothing has run yet" in figure.text
    while "softmax" not in figure.at:
        figure.keys("ArrowRight")
    figure.shows(r"So far ([\d.]+) sbh and ([\d.]+) as²b", 8, 2)
    while "LayerNorm 2" not in figure.at:
        figure.root.get_by_role("button", name="Next").click()
    figure.shows(r"So far ([\d.]+) sbh and ([\d.]+) as²b", 15, 5)
    for title, sbh, as2b in (
        ("GPT layer, FlashAttention", 34, 0),
        ("GPT layer without dropout", 32, 2),
        ("Llama-style layer, FlashAttention", 16 + 8 * 11008 / 4096, 0),
        ("Llama-style layer", 16 + 8 * 11008 / 4096, 2),
    ):
        figure.choose(title)
        figure.shows(r"So far ([\d.]+) sbh and ([\d.]+) as²b", sbh, as2b)


@of("checkpoint_every_k")
def test_checkpoints_have_the_simulated_peak(figure):
    for L, A, title in ((24, 34, "L = 24, A = 34"), (24, 114, "L = 24, A = 114"), (80, 34, "L = 80, A = 34")):
        figure.choose(next(words for words in figure.select.locator("option").all_inner_texts() if title in words))
        figure.keys("Home")
        figure.shows(r"every layer the peak is ([\d,.]+)\.", max(held_by_layers(L, 2, A, 1)))
        figure.keys("ArrowRight")
        figure.shows(r"every 2 layers the peak is ([\d,.]+)\.", max(held_by_layers(L, 2, A, 2)))
        k = int(figure.click(0.4).split()[-1])
        assert k > 2
        figure.shows(rf"every {k} layers the peak is ([\d,.]+)\.", max(held_by_layers(L, 2, A, k)))
        figure.keys("End")
        figure.shows(rf"every {L} layers the peak is ([\d,.]+)\.", max(held_by_layers(L, 2, A, L)))


@of("does_it_fit")
def test_the_ladder_climbs(figure):
    example = (EXAMPLE, 24, 2048, 8, 2048, 16, 50257)
    figure.shows(r"in all\t([\d.]+)\t[\d.]+", sum(one_gpu(*example).values()) / 1e9)
    figure.keys("End")
    figure.shows(r"FlashAttention: ([\d.]+) GB", sum(one_gpu(*example, mode="flash").values()) / 1e9)
    figure.select.focus()
    figure.page.keyboard.press("ArrowDown")
    assert figure.select.locator("option:checked").inner_text() == "The 1.3B example, 8 × A100 40 GB"
    rungs = climb(*example, 40e9, 8)
    for _, peak in rungs:
        figure.shows(r"in all\t[\d.,]+\t([\d.,]+)", peak / 1e9)
        figure.keys("ArrowRight")
    assert rungs[-1][0] == "micro-batch"
    assert "Fits" in figure.text
    figure.click(0.02)
    figure.shows(r"in all\t[\d.,]+\t([\d.,]+)", rungs[0][1] / 1e9)


def test_a_quick_check_answers_by_mouse_and_by_keys(visit):
    page = visit("lesson.html")
    check = page.locator(".check").first
    assert not check.get_by_text("✓ Right.").is_visible()
    check.locator("summary").nth(0).click()
    assert check.get_by_text("✗ Not this one.").nth(0).is_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert check.get_by_text("✓ Right.").is_visible()
    assert "one row for each token" in check.locator("details[open]").last.inner_text()


# Tokens of code and formulas are thousands of nodes, over which axe takes a minute: some of each kind are left.
FEWER_OF_A_KIND = """() => {
  const seen = new Set();
  for (const token of document.querySelectorAll('.highlight span')) {
    if (seen.has(token.className)) token.replaceWith(...token.childNodes);
    seen.add(token.className);
  }
  for (const formula of [...document.querySelectorAll('math')].slice(20)) formula.replaceWith(formula.textContent);
}"""
# What axe finds serious, and the paragraphs and headings that it passed over, as it does with what is out of its sight.
FINDINGS = """async () => {
  const result = await axe.run();
  const found = [...result.passes, ...result.violations];
  const contrasts = found.filter(one => one.id === 'color-contrast').flatMap(one => one.nodes);
  const seen = new Set(contrasts.map(node => document.querySelector(node.target[0])));
  const unseen = [...document.querySelectorAll('main p, main h1, main h2, main h3')]
    .filter(part => part.checkVisibility() && part.textContent.trim())
    .filter(part => ![part, ...part.querySelectorAll('*')].some(node => seen.has(node)));
  const serious = result.violations.filter(one => ['serious', 'critical'].includes(one.impact));
  return {
    serious: serious.flatMap(one => one.nodes.map(node => [one.id, node.html.slice(0, 160), node.failureSummary])),
    unseen: unseen.map(part => part.outerHTML.slice(0, 120)),
  };
}"""


@pytest.mark.parametrize(("scheme", "size"), [("light", DESKTOP), ("dark", PHONE)], ids=["desktop", "phone"])
def test_axe_finds_nothing_serious_and_nothing_sticks_out(visit, axe_script, shots, size, scheme):
    serious, wide = [], []
    for file in FILES:
        page = visit(file, size, color_scheme=scheme, bypass_csp=True)
        # One of every kind unfolded (with all of them axe takes a minute on the longest page).
        page.locator("details").evaluate_all("all => all.slice(0, 6).forEach(one => { one.open = true; })")
        page.screenshot(path=shots / f"{file} {size['width']} {scheme}.png")
        page.evaluate(FEWER_OF_A_KIND)
        page.evaluate(axe_script)
        findings = page.evaluate(FINDINGS)
        serious += [(file, *finding) for finding in findings["serious"]]
        assert findings["unseen"] == [], f"out of axe's sight on {file}"
        wide += [file] * (page.evaluate("document.documentElement.scrollWidth") > size["width"])
        page.close()
    assert serious == [], json.dumps(serious, indent=1)
    assert wide == []


def test_the_phone_has_the_narrow_picture(visit):
    figure = Figure(visit("lesson.html", PHONE, has_touch=True, is_mobile=True), "checkpoint_every_k")
    picture = figure.root.locator("svg:visible")
    assert picture.get_attribute("class") == "narrow"
    size = picture.evaluate("svg => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width") * 13
    assert size >= 11
    figure.root.get_by_role("button", name="Next").tap()
    figure.shows(r"every 7 layers the peak is ([\d,.]+)\.", max(held_by_layers(24, 2, 34, 7)))


def test_without_a_script_the_figures_stand_still_and_all_else_works(visit):
    page = visit("lesson.html", java_script_enabled=False)
    assert page.locator("figure svg:visible").count() == 5
    assert page.locator("figure form:visible").count() == 0
    page.locator(".check summary").first.click()
    assert page.locator(".check details[open] p").first.is_visible()


def test_on_paper_everything_is_unfolded_and_no_control_is_left(visit):
    page = visit("lesson.html", color_scheme="dark")
    page.emulate_media(media="print")
    assert page.locator("figure form:visible, #contents:visible, header nav:visible").count() == 0
    hidden = page.evaluate(
        """() => [...document.querySelectorAll('details > :not(summary)')]
            .filter(node => !node.closest('#contents') && !node.checkVisibility({contentVisibilityAuto: true}))
            .map(node => node.outerHTML.slice(0, 80))"""
    )
    assert hidden == []
    assert page.locator(".check details > p").first.bounding_box()["height"] > 10
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
