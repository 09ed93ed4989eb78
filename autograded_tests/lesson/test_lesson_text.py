"""The lesson's text: its sections, links, tables and numbers."""

import re
from itertools import pairwise
from urllib.parse import urlsplit

import pytest

from autograded_tests.lesson.prose import LESSON, SOURCE, cells, headings, prose, rows, section, typed_numbers
from autograded_tests.notebooks import read
from trainmem.course import place
from trainmem.course.lesson import UNCHECKED, lesson_cells, lesson_edition
from trainmem.memory import MODELS, RULES, gpt_layer, llama_layer
from trainmem.review import QUICK_CHECKS
from trainmem.review.quantities import exact_micro_batch, exact_peak

SECTIONS = [
    "Why it matters",
    "Predict first",
    "One linear layer",
    "What each operation keeps",
    "Memory over one step",
    "Notation",
    "Parameters",
    "Model states",
    "Activations of one layer",
    "What changes the count",
    "A checkpoint every k layers",
    "The logits and the loss",
    "Does it fit",
    "Worked example",
    "In NumPy",
    "In PyTorch",
    "Llama-style layers",
    "Where it shows up",
    "Common mistakes",
    "Check yourself",
    "Interview questions",
    "Practice",
    "Sources",
    "Watch and read",
]
FIGURES = ["step_timeline", "layer_parameters", "layer_walk", "checkpoint_every_k", "does_it_fit"]


def test_the_committed_notebook_is_what_the_source_gives():
    assert lesson_edition(LESSON, run=False).encode() == LESSON.read_bytes()


def test_sections_stand_in_their_order():
    assert re.findall(r"^## (.+)$", prose(), re.MULTILINE) == SECTIONS
    steps = [heading for heading in headings() if heading.startswith("Step ")]
    assert [step.split(" · ")[0] for step in steps] == [f"Step {n}" for n in range(1, 10)]


def test_cell_ids_are_names_and_say_nothing_of_positions():
    ids = [cell.id for cell in read(LESSON).cells]
    assert len(set(ids)) == len(ids)
    assert [name for name in ids if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)] == []
    changed = SOURCE.read_text("utf-8").replace("## Notation", "## A new section\n\nText.\n\n## Notation")
    assert {cell.id for cell in lesson_cells(changed)} == {*ids, "a-new-section"}


def test_two_cells_of_one_name_are_refused_by_name():
    with pytest.raises(ValueError, match="notation"):
        lesson_cells("## Notation\n\n## Notation\n")


def test_every_internal_link_has_its_heading():
    anchors = {heading.replace(" ", "-") for heading in headings()}
    links = re.findall(r"\]\(#([^)]+)\)", prose())
    assert len(links) >= 5
    assert [link for link in links if link not in anchors] == []


def test_every_file_that_it_shows_or_links_is_there():
    links = re.findall(r"\]\((?!#|https?:)([^)]+)\)", prose())
    assert {f"figures/{name}.svg" for name in FIGURES} <= set(links)
    assert [link for link in links if not (LESSON.parent / link).is_file()] == []


def test_links_out_are_references_and_not_embedded():
    hosts = {urlsplit(link).hostname for link in re.findall(r"\]\((https?:[^)]+)\)", prose())}
    assert hosts <= {
        "arxiv.org",
        "pytorch.org",
        "blog.eleuther.ai",
        "stanford-cs336.github.io",
        "colab.research.google.com",
    }
    assert "<iframe" not in prose()
    for paper in ("1910.02054", "2205.05198", "1604.06174", "2205.14135", "2302.13971", "2307.09288", "2305.13245"):
        assert f"https://arxiv.org/abs/{paper}" in section("Sources")
    for label, target in re.findall(r"\[arXiv ([\d.]+)\]\(https://arxiv.org/abs/([\d.]+)\)", prose()):
        assert label == target


def test_the_badge_and_the_first_cell_come_from_one_setting(monkeypatch):
    repository = place.REPOSITORY
    monkeypatch.setattr(place, "REPOSITORY", "somebody/else")
    monkeypatch.setattr(place, "VERSION", "v7")
    made = {cell.id: cell.source for cell in lesson_cells()}
    title = made["training-memory-how-much-and-the-cheapest-way-to-make-it-fit"]
    assert "colab.research.google.com/github/somebody/else/blob/v7/notebooks/lesson.ipynb" in title
    assert "https://github.com/somebody/else/archive/v7.zip" in made["setup"]
    text = "\n".join(made.values())
    committed = "\n".join(cell.source for cell in read(LESSON).cells)
    assert repository not in text
    assert committed.count(repository) == text.count("somebody/else") == 2


def test_figures_and_quick_checks_have_their_text_beneath_them():
    notebook = read(LESSON).cells
    after = {cell.source: following for cell, following in pairwise(notebook)}
    for figure in FIGURES:
        still = after[f"figures.{figure}()"]
        alt, picture = re.search(r"!\[(.+)\]\((.+)\)", still.source).groups()
        assert still.source.startswith("<details>")
        assert picture == f"figures/{figure}.svg"
        assert len(alt) > 60
        assert re.search(r"\d", still.source.split(")", 1)[1]), "the numbers in a sentence"
    for name, check in QUICK_CHECKS.items():
        folded = after[f'quick_check("{name}")'].source
        for choice in check.choices:
            assert check.filled(choice.text) in folded
            assert check.filled(choice.why) in folded


def test_at_least_five_quick_checks_stand_in_their_sections():
    shown = re.findall(r"<!-- quick check ([\w-]+) -->", SOURCE.read_text("utf-8"))
    assert sorted(shown) == sorted(QUICK_CHECKS)
    assert len(shown) >= 5
    for name, check in QUICK_CHECKS.items():
        from_section = SOURCE.read_text("utf-8").split(f"## {check.section}\n", 1)[1]
        part = re.split(r"^## ", from_section, flags=re.MULTILINE)[0]
        assert f"<!-- quick check {name} -->" in part


def test_no_widget_state_and_no_unchecked_cell():
    notebook = read(LESSON)
    assert "widgets" not in notebook.metadata
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.id for cell in code if UNCHECKED in cell.metadata.get("tags", [])] == []
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    mimes = {mime for cell in code for output in cell.outputs for mime in output.get("data", {})}
    assert mimes == {"text/plain"}


# --- tables against the lists -----------------------------------------------------------------------------------------

LAYER = gpt_layer(16, 2, 32, 4)


def units(text: str) -> tuple[float, float]:
    """(sbh, as²b) of an expression such as $2\\,as^2b + 2\\,sbh$."""
    core = sum(int(n) for n in re.findall(r"(\d+)\\,as\^2b", text))
    return sum(int(n) for n in re.findall(r"(\d+)\\,sbh", text)), core


def of_tensor(tensor) -> tuple[float, float]:
    if tensor.part == "core":
        return 0, tensor.nbytes / LAYER.as2b
    return tensor.nbytes / LAYER.sbh, 0


def test_the_proof_adds_up_row_by_row_and_names_every_tensor_once():
    proof = section("Activations of one layer").split("**Proof.**")[1].split("$\\blacksquare$")[0]
    total = (0, 0)
    steps = rows(proof)
    assert [row[0] for row in steps] == [str(n) for n in range(1, 16)]
    kept = []
    for _, operation, what, nbytes, sum_so_far in steps:
        if what == "nothing":
            assert "addition" in operation
            continue
        kept.append(units(nbytes))
        total = tuple(x + y for x, y in zip(total, units(nbytes), strict=True))
        assert units(sum_so_far) == total
    assert total == (34, 5)
    # In forward order: Q and K stand in one row, the dropped weights and V in one.
    tensors = [of_tensor(tensor) for tensor in LAYER.kept]
    joined = []
    for tensor, (x, y) in zip(LAYER.kept, tensors, strict=True):
        if tensor.name in ("K", "V"):
            joined[-1] = (joined[-1][0] + x, joined[-1][1] + y)
        else:
            joined.append((x, y))
    assert kept == joined


def test_the_table_by_parts_gives_the_sums_of_the_list():
    by_parts = section("Activations of one layer").split("The same by parts")[1]
    parts = {row[0]: units(row[2]) for row in rows(by_parts)[:5]}
    norms = sum(of_tensor(t)[0] for t in LAYER.kept if t.kept_by in ("ln1", "ln2"))
    mlp = sum(of_tensor(t)[0] for t in LAYER.kept if t.part == "mlp" and t.kept_by != "ln2")
    assert parts["both LayerNorms"] == (norms, 0)
    assert parts["MLP"] == (mlp, 0)
    assert parts["attention core, quadratic in $s$"] == (0, 5)
    assert parts["attention, linear in $s$"] == (34 - norms - mlp, 0)
    assert parts["**together**"] == (34, 5)
    for row in rows(by_parts)[:4]:
        numbers = [int(n) for n in re.findall(r" (\d)(?:,|$)", row[1])]
        assert not numbers or sum(numbers) == sum(units(row[2]))


def test_the_table_of_operations_says_what_the_rules_say():
    table = {row[0].split(",")[0].split(" (")[0]: row[1] for row in rows(section("What each operation keeps"))}
    for operation, kind in {
        "linear": "linear",
        "GeLU": "gelu",
        "softmax": "softmax",
        "dropout": "dropout",
        "product of two activations": "product",
        "residual addition": "add",
    }.items():
        words = RULES[kind][0].split(",")[0].split()
        assert all(word in table[operation].replace("*", "") for word in words), operation


def test_the_llama_table_adds_up_to_its_formula():
    table = rows(section("Llama-style layers"))[:9]
    g, s, b, h, f = 2, 16, 1, 64, 160
    total = 0
    for _, _, nbytes in table:
        for expression in re.findall(r"\$(.+?)\$", nbytes):
            python = expression.replace(r"\left(", "(").replace(r"\right)", ")").replace(r"\tfrac{4}{g}", "4/g")
            python = re.sub(r"\\,|(?<=\)) ", "*", python).replace("sbh", "s*b*h").replace("sbf", "s*b*f")
            total += eval(python, {}, {"g": g, "s": s, "b": b, "h": h, "f": f})
    assert total == llama_layer(s, b, h, 8, f=f, kv=4).kept_bytes == s * b * h * (12 + 4 / g + 8 * f / h)


def test_the_largest_micro_batch_at_the_losss_true_peak():
    """14Ψ (no gradients yet), the layers, the inputs of the last norm and of the head, and 12 bytes a logit."""
    psi, L, s, h, V = 1_311_528_960, 24, 2048, 2048, 50257

    def peak(b, layers):
        return 14 * psi + (layers + 4) * s * b * h + 12 * s * b * V

    for recompute, layers, sums, exact in (("none", 34 * L, 12, 10), ("full", 2 * L, 62, 34)):
        for b in (exact, sums):
            assert exact_peak(b, recompute) == pytest.approx(peak(b, layers), rel=0.001)
        assert peak(exact, layers) <= 0.85 * 80e9 < peak(exact + 1, layers)
        assert exact_micro_batch(recompute) == exact
        assert f"$b = $ {exact}" in section("Step 8 · The largest micro-batch")
    assert peak(12, 34 * L) > 0.85 * 80e9
    assert peak(62, 2 * L) > 80e9


def test_the_settings_table_is_what_the_layers_keep():
    keeps = {row[0]: row[1] for row in rows(section("What changes the count"))}
    assert units(keeps["FlashAttention"])[0] == gpt_layer(16, 2, 32, 4, attention="fused").kept_bytes / LAYER.sbh
    assert units(keeps["selective recomputation"])[0] == gpt_layer(16, 2, 32, 4, recompute="selective").kept_bytes / (
        LAYER.sbh
    )
    assert units(keeps["full checkpointing"])[0] == gpt_layer(16, 2, 32, 4, recompute="full").kept_bytes / LAYER.sbh
    for t in (2, 4):
        sbh, ash = LAYER.sbh, 4 * 16 / 32
        assert gpt_layer(16, 2, 32, 4, t=t).kept_bytes == sbh * (10 + 24 / t + 5 * ash / t)
        assert gpt_layer(16, 2, 32, 4, t=t, sequence_parallel=True).kept_bytes == sbh * (34 + 5 * ash) / t
    assert keeps["tensor parallelism, degree $t$"] == r"$sbh\left(10 + 24/t + 5as/(ht)\right)$"
    assert keeps["tensor and sequence parallelism"] == "$sbh(34 + 5as/h)/t$"


# --- numbers ----------------------------------------------------------------------------------------------------------

#: Published or measured values that the text must show, with where. Written out here, not taken from the course's code.
SHOWN = {
    "Why it matters": ["112 GB", "1,038,240", "16,000"],
    "One linear layer": ["16,777,216", "8,388,608", "16.8 MB", "8.4 MB"],
    "Notation": ["1,311,528,960", "7.4%"],
    "Parameters": ["12,596,224", "50,358,272", "6,738,415,616", "12.75 $h^2$", "92.1%"],
    "Model states": ["107.8 GB", "112 GB", "**16**", "4.9 GB", "$2 + 18/d$", "21.0 GB"],
    "Activations of one layer": ["870.4", "871st", "80 of 114", "70%", "352 bytes", r"$32\,sbh + 2\,as^2b$"],
    "What changes the count": ["0.90%", "4.8%", "2.78%", "33%", "13 sbh", "4.25 sbh", r"$8\Psi$", r"$6\Psi$"],
    "A checkpoint every k layers": ["82", "212", "194", "148", "1.2", "179.6", "178", "58", "110", "408"],
    "The logits and the loss": ["3,293,642,752", "3.29 GB", "9.9 GB", "| 12 |", "| 4 |", "is 6.", "is 16."],
    "Does it fit": [
        "104.15 GB",
        "110.0 GB",
        "212.5",
        "199.5",
        "116.1",
        "110.7",
        "115.9",
        "110.8",
        "194 $sbh$",
        "51.7 GB",
        "68 GB",
    ],
    "Worked example": [
        "50,331,648 + 26,624 = 50,358,272",
        "1,208,598,528",
        "102,926,336",
        "4,096",
        "1,311,528,960",
        "**21.0 GB**",
        "33,554,432",
        "3,825,205,248",
        "**91.8 GB**",
        "70%",
        "3,293,642,752",
        "**116.1 GB**",
        "27.4 GB",
        "**51.7 GB**",
        "28.3 GB (35%)",
        "**27.0 GB**",
        "47.0 GB are left",
        "0.756 GB",
        "**12**",
        "**62**",
        "4.92 GB",
        "**35.6 GB**",
        "11%",
        "**20.3 GB**",
    ],
    "In PyTorch": ["says 54", "0.031", "0.0625"],
    "Llama-style layers": ["37.5", "32.1", "101.5", "194 $sbh$", "199.5 GB", "2,496", "2,320", "28.75"],
    "Where it shows up": ["1,280", "4.56 GB", "146 GB", "become 22"],
    "Common mistakes": ["74.5 GiB"],
    "Check yourself": ["12,596,224", "**14**", "32·sbh + 2·a·s²·b", "212 sbh", "82 sbh", "0.9%"],
    "Interview questions": ["112 GB", "33%"],
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_text_shows_the_published_numbers(name):
    text = section(name)
    missing = [number for number in SHOWN[name] if not re.search(rf"(?<![\d.,]){re.escape(number)}(?!\d)", text)]
    assert missing == []


#: Typed numbers that the source may have: a given of the text, a published or measured value, a section of a paper.
GIVEN = {
    **dict.fromkeys(
        ["80 GB", "40 GB", "1 GB", "1 GiB", "15%", "20%", "30%"], "a GPU, a unit, a margin: chosen, not computed"
    ),
    **dict.fromkeys(["50257", "11008", "32000", "12288"], "the shape of a model"),
    "1.3": "the name of an example",
    **dict.fromkeys(["3.1", "3.2", "4.1", "4.2", "4.3"], "a section of a paper"),
    **dict.fromkeys(["54.03", "34.09", "2.00"], "measured; test_lesson_runs holds them against the cell's output"),
    **dict.fromkeys(["50,331,648", "26,624"], "asserted in the cell of step 1"),
    **dict.fromkeys(["0.85", "68 GB", "0.76"], "asserted below"),
    "20 GB": "a guess that the text offers, and its answer in round words",
    "1%": "about 1%: asserted below",
    "2.7%": "printed by the paper",
    "28.75": "published: a report that counts two wide tensors",
    "4.8": "24/5",
}


def test_no_number_that_looks_computed_is_typed():
    typed = typed_numbers(SOURCE.read_text("utf-8"))
    assert sorted(set(typed) - set(GIVEN)) == []
    assert sorted(set(GIVEN) - set(typed)) == [], "a given that is gone from the text"


def test_typed_numbers_would_be_noticed():
    assert typed_numbers("it is 27.0 GB, 1,234 tokens, 12.5, 33% and [[x:.1f]] GB") == [
        "27.0 GB",
        "1,234",
        "12.5",
        "33%",
    ]


def test_what_is_rounded_by_hand_is_right():
    from trainmem.review import quantities as q

    assert round(q.extra_flops(2048, 12288, 96) * 100) == 1
    assert 0.85 * 80 == 68
    assert round(q.example.per_sequence("full") / 1e9, 2) == 0.76
    assert int(47 / 0.76) == 61
    assert round(q.example.states / 1e9) == 21
    assert MODELS["llama2-70b"].f / MODELS["llama2-70b"].h == 3.5
    assert q.best_intervals(32) == [1]
    assert q.best_intervals(33) == [1, 2]
    assert q.best_intervals(35) == [2]


def test_code_cells_hold_the_worked_example_to_its_numbers():
    code = cells("code")
    for number in range(1, 10):
        assert "assert " in code[f"step-{number}"], f"step {number}"


def test_three_different_quantities_are_116_1_by_chance():
    from trainmem.review import quantities as q

    three = (q.llama_peak(attention="fused"), q.example.total(), q.calculator_peak("selective"))
    assert [f"{peak / 1e9:.1f}" for peak in three] == ["116.1"] * 3
    assert len(set(three)) == 3
