"""The self-study edition: what it holds beyond the exercises, and a reader's Run All, with and without answers."""

import ast
import re
import subprocess
import sys
import types
from itertools import pairwise

import nbformat
import pytest
from playwright.sync_api import expect

from autograded_tests.lab import open_notebook, run_all
from autograded_tests.notebooks import FUNCTIONS, ROOT, SOURCE, errors, execute, nbval, read, reference_answers
from autograded_tests.test_release import RELEASE_CELLS, SOURCE_CELLS
from trainmem.course.cells import SELF_STUDY_ONLY, course_cells, module_cells, self_study_cells, without_marks
from trainmem.figures import checkpoint_every_k, does_it_fit, layer_parameters, layer_walk, step_timeline

SELF_STUDY = ROOT / "notebooks" / "self_study.ipynb"
CELLS = self_study_cells()
STRETCH = {
    "llama_activation_bytes": "llama_activations",
    "loss_peak_bytes": "loss_peak",
    "largest_micro_batch": "largest_micro_batch",
}
CHECKS = [cell.name for cell in CELLS if cell.kind == "check"]
FIGURES = {cell.name: cell.source for cell in CELLS if cell.kind == "figure"}

#: Figure's cell → the function whose stub it meets first, and what it says of the reference.
DRAWN = {
    "your_parameters": ("params_per_layer", "yours 50,358,272"),
    "your_activations": ("activation_bytes", "yours 3.83 GB of 3.83 GB"),
    "your_step": ("memory_timeline", "peak 116.1 GB"),
    "your_checkpoints": ("memory_timeline", "every 6: peak 212 sbh; lowest 82 at k = 1"),
    "your_fix": ("cheapest_fix", "Yours: flash, 51.7 GB."),
}


def answers():
    """The reference answers of the five exercises and of the stretch exercises, by cell."""
    stretch = {cell.name: cell.source for cell in CELLS if cell.name in STRETCH}
    return {name: without_marks(source) for name, source in (reference_answers() | stretch).items()}


def function_of(check):
    """The function that a check asks: the longest name that its own name contains."""
    return max((name for name in answers() if check.startswith(f"check_{name}")), key=len)


def filled_in(sources):
    notebook = read(SELF_STUDY)
    for cell in notebook.cells:
        cell.source = sources.get(cell.id, cell.source)
    return notebook


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    return execute(read(SELF_STUDY), tmp_path_factory.mktemp("untouched"))


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    return execute(filled_in(answers()), tmp_path_factory.mktemp("solved"))


def said_by(notebook, name):
    """The plain text of a figure's output."""
    [output] = next(cell.outputs for cell in notebook.cells if cell.id == name)
    return output.data["text/plain"]


# --- Run All -------------------------------------------------------------------------------------------------------


def test_untouched_it_runs_to_the_end_changes_no_cell_and_says_not_written_yet_for_each(untouched):
    code = [cell for cell in untouched.cells if cell.cell_type == "code"]
    assert [cell.id for cell in code if not cell.execution_count] == []
    assert {cell.id: cell.source for cell in untouched.cells} == {c.id: c.source for c in read(SELF_STUDY).cells}
    assert errors(untouched) == {check: ("NotWritten", f"{function_of(check)}: not written yet") for check in CHECKS}
    for name, (function, _) in DRAWN.items():
        assert said_by(untouched, name) == f"{function}: not written yet"


def test_with_the_reference_every_check_passes_and_the_figures_draw_it(solved):
    assert errors(solved) == {}
    for name, (_, said) in DRAWN.items():
        assert said in said_by(solved, name)


def test_the_figures_are_all_five_and_each_is_driven(solved):
    assert set(FIGURES) == set(DRAWN)
    called = {re.match(r"figures\.(\w+)\(", source)[1] for source in FIGURES.values()}
    figures = (checkpoint_every_k, does_it_fit, layer_parameters, layer_walk, step_timeline)
    assert called == {figure.__name__ for figure in figures}


def test_a_wrong_answer_is_drawn_as_it_is(tmp_path):
    wrong = answers() | {
        "params_per_layer": "def params_per_layer(h, **options):\n    return 12 * h * h",
        "activation_bytes": "def activation_bytes(s, b, h, a, mode='baseline'):\n    return 34 * s * b * h",
        "memory_timeline": "def memory_timeline(L, c, A, k=None):\n    return [A] * (3 * L if k else 2 * L)",
        "cheapest_fix": "def cheapest_fix(*shape, **options):\n    return 'offload', 9e9",
    }
    executed = execute(filled_in(wrong), tmp_path)
    assert "yours 50,331,648" in said_by(executed, "your_parameters")
    assert "yours 1.14 GB of 3.83 GB" in said_by(executed, "your_activations")
    assert "peak 28.1 GB" in said_by(executed, "your_step"), "states, one layer and the logits"
    assert "every 6: peak 34 sbh" in said_by(executed, "your_checkpoints")
    assert "Yours: offload, 9.00 GB." in said_by(executed, "your_fix")


def test_a_later_stub_is_named_by_an_answer_that_calls_it(tmp_path):
    sources = {name: source for name, source in answers().items() if name != "peak_bytes"}
    assert said_by(execute(filled_in(sources), tmp_path), "your_fix") == "peak_bytes: not written yet"


def test_without_the_package_it_says_what_to_do_and_the_exercises_work(tmp_path):
    notebook = filled_in(answers())
    missing = "import subprocess, sys\nsys.modules['trainmem'] = None\nsubprocess.run = lambda *_, **__: print('pip')"
    notebook.cells.insert(0, nbformat.v4.new_code_cell(missing, id="missing"))
    executed = execute(notebook, tmp_path)
    [said] = next(cell.outputs for cell in executed.cells if cell.id == "setup")
    assert said.text.startswith("pip\n")
    assert re.search(
        r"The exercises work all the same; only the figures .* pip install https://github\.com/", said.text
    )
    assert {name: kind for name, (kind, _) in errors(executed).items()} == dict.fromkeys(FIGURES, "NameError")


def test_its_first_cell_installs_the_course_alone(tmp_path):
    setup = next(cell.source for cell in read(SELF_STUDY).cells if cell.id == "setup")
    script = "import sys, subprocess\nsys.modules['trainmem'] = None\n"
    script += "subprocess.run = lambda command, **_: print(command[1:])\n" + setup
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    archive = re.search(r'ARCHIVE = "(.+)"', setup)[1]
    assert done.stdout.startswith(
        str(["-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-deps", archive])
    )


@pytest.mark.parametrize("edition", ["solved", "untouched"])
def test_nbval_passes_on_the_executed_twin(edition, request, tmp_path):
    notebook = request.getfixturevalue(edition)
    said = nbval(notebook, tmp_path)
    assert said.returncode == 0, said.stdout[-3000:]
    assert f"{sum(cell.cell_type == 'code' for cell in notebook.cells)} passed" in said.stdout


def figure_in(page, name):
    """The output of a figure's cell in the page."""
    at = [cell.id for cell in read(SELF_STUDY).cells].index(name)
    return page.locator(".jp-Notebook .jp-Cell").nth(at).locator(".trainmem-figure")


def test_in_jupyterlab_an_untouched_figure_says_one_line_and_a_written_one_draws_and_climbs(lab, lab_folder, page):
    nbformat.write(read(SELF_STUDY), lab_folder / "untouched_self_study.ipynb")
    nbformat.write(filled_in(answers()), lab_folder / "solved_self_study.ipynb")
    open_notebook(page, lab, "untouched_self_study.ipynb")
    run_all(page)
    for name, (function, _) in DRAWN.items():
        figure = figure_in(page, name)
        expect(figure.locator(".trainmem-numbers")).to_have_text(f"{function}: not written yet")
        expect(figure.locator("svg[role=img]")).to_have_count(0)
    open_notebook(page, lab, "solved_self_study.ipynb")
    run_all(page)
    for name in DRAWN:
        expect(figure_in(page, name).locator("svg.wide")).to_be_visible()
    figure = figure_in(page, "your_fix")
    expect(figure.locator("svg.wide")).to_contain_text("your cheapest_fix: flash, 51.7 GB")
    expect(figure.locator("svg.wide")).to_contain_text("with the fixes: 116.1 GB")
    figure.get_by_role("button", name="Climb one rung").click()
    figure.get_by_role("button", name="Climb one rung").click()
    expect(figure.locator("svg.wide")).to_contain_text("with the fixes: 51.7 GB")


# --- what it holds -------------------------------------------------------------------------------------------------


def test_answers_are_folded_in_prose_and_stand_in_no_cell_that_runs():
    notebook = {cell.id: cell for cell in read(SELF_STUDY).cells}
    code = "\n".join(cell.source for cell in notebook.values() if cell.cell_type == "code")
    for name, source in answers().items():
        assert "raise NotImplementedError()" in notebook[name].source
        assert source not in code
        answer = notebook[f"answer-{name}"]
        assert answer.cell_type == "markdown"
        assert answer.source.startswith("<details><summary>Answer, and why</summary>\n\n```python\n" + source)
        assert answer.source.endswith("\n\n</details>")
        reasoning = answer.source.split("```")[-1]
        assert len(reasoning.split()) > 80, "the reasoning, not only the code"
        assert re.search(r"\d{2}", reasoning), "with numbers"


def test_an_answer_comes_after_its_checks_and_mistakes_after_the_exercise():
    ids = [cell.id for cell in read(SELF_STUDY).cells]
    for check in CHECKS:
        function = function_of(check)
        assert ids.index(function) < ids.index(check) < ids.index(f"answer-{function}")
    for before, cell in pairwise(CELLS):
        assert cell.kind != "mistakes" or before.kind == "reasoning"


def test_checks_and_machinery_stand_folded_and_what_a_reader_writes_does_not():
    kinds = {cell.name: cell.kind for cell in CELLS}
    for cell in read(SELF_STUDY).cells:
        if cell.cell_type == "code":
            folded = cell.metadata.get("jupyter", {}).get("source_hidden", False)
            assert folded == (kinds[cell.id] in ("check", "code")), cell.id


def said_in(module, package):
    """All text of a module's checks, and of what every check uses."""
    sources = [c.source for c in module_cells(module, package) if c.kind == "check"]
    sources += [cell.source for cell in course_cells() if cell.name == "checking"]
    constants = [node for text in sources for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    return {node.value for node in constants if isinstance(node.value, str)}


@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell.kind == "mistakes"], ids=lambda cell: cell.module)
def test_mistakes_are_called_as_the_checks_call_them(cell):
    import trainmem_solutions
    from trainmem.course import self_study

    package = self_study if cell.module in self_study.MODULES else trainmem_solutions
    known = said_in(cell.module, package)
    names = re.findall(r"^- \*\*(.+?)\*\*: ", cell.source, re.MULTILINE)
    assert 3 <= len(names) <= 6
    assert len(names) == len(re.findall(r"^- ", cell.source, re.MULTILINE))
    assert [name for name in names if name not in known] == []


def test_every_exercise_has_its_mistakes():
    modules = {cell.module for cell in CELLS if cell.kind == "answer"}
    assert {cell.module for cell in CELLS if cell.kind == "mistakes"} == modules
    assert len(modules) == 8


def test_nothing_that_it_adds_reaches_the_source_or_the_release():
    """No line of reasoning, of mistakes or of a stretch exercise, as written or as filled in."""
    stretch = [c for c in CELLS if c.module in {*STRETCH.values(), "welcome"} and c.kind not in ("check", "code")]
    added = [cell for cell in CELLS if cell.kind in SELF_STUDY_ONLY] + stretch
    names = {name for cell in added for name in (cell.name, f"answer-{cell.name}")}
    lines = {line.strip() for cell in added for line in cell.source.split("\n")}
    prose = [cell for cell in read(SELF_STUDY).cells if cell.cell_type == "markdown" and cell.id in names]
    lines |= {line.strip() for cell in prose for line in cell.source.split("\n")}
    for cells in (SOURCE_CELLS, RELEASE_CELLS):
        given = {line.strip() for cell in cells.values() for line in cell.source.split("\n")}
        # A folded answer is the source's own.
        shared = {line for line in lines & given if line not in "\n".join(reference_answers().values())}
        assert {line for line in shared if len(line) >= 20} == set()
        assert names & set(cells) == set()


def test_no_number_is_left_to_be_filled_in():
    for path in (SELF_STUDY, SOURCE, ROOT / "release" / "training_memory" / "exercises.ipynb"):
        text = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
        assert "[[" not in text
        assert "{{" not in text


def test_links_within_it_lead_to_headings():
    text = "\n".join(cell.source for cell in read(SELF_STUDY).cells if cell.cell_type == "markdown")
    headings = {heading.replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
    for target in re.findall(r"\]\(#([^)]+)\)", text):
        assert target in headings
    for target in re.findall(r"\]\((?!https?:|#)([^)]+)\)", text):
        assert (SELF_STUDY.parent / target).exists()


def test_the_functions_are_the_nine_and_the_three():
    assert list(answers()) == [*FUNCTIONS, *STRETCH]


# --- how its cells are written -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# %% reasoning [markdown]\n# Because.\n", "reasoning without an answer above it: 'Because.'"),
        ("# %% musings [markdown]\n# ### Well\n", "not 'musings'"),
        ("# %% mistakes [markdown]\n# no heading\n", "prose must begin with a heading"),
    ],
)
def test_a_cell_that_means_nothing_is_refused_with_its_reason(text, said, tmp_path, monkeypatch):
    package = types.ModuleType("package")
    (tmp_path / "module.py").write_text(text)
    monkeypatch.setattr("trainmem.course.cells.resources.files", lambda _: tmp_path)
    with pytest.raises(ValueError, match=re.escape(said)):
        module_cells("module", package)
