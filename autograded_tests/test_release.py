"""What students get: nothing of the answers, nothing but NumPy, and checks that no name of theirs can break."""

import ast
import builtins
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from autograded_tests.answers import NAMES, notebook_cells
from autograded_tests.locked_cells import CELLS, CHECKS, checks_of, code, right_functions, run
from trainmem.course import build, editions
from trainmem.course.regions import (
    BEGIN_HIDDEN,
    BEGIN_SOLUTION,
    END_HIDDEN,
    END_SOLUTION,
    hidden_regions,
    without_hidden,
    without_solution,
)

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path("source/training_memory/exercises.ipynb")
RELEASE = Path("release/training_memory/exercises.ipynb")
SELF_STUDY = Path("notebooks/self_study.ipynb")
HIDDEN_REGION = re.compile(rf"^ *{BEGIN_HIDDEN}\n(.*?)^ *{END_HIDDEN}\n?", re.DOTALL | re.MULTILINE)
SOLUTION_REGION = re.compile(rf"^ *{BEGIN_SOLUTION}\n(.*?)^ *{END_SOLUTION}\n?", re.DOTALL | re.MULTILINE)


def cells_of(path, root=ROOT):
    return {cell.id: cell for cell in nbformat.read(root / path, as_version=4).cells}


SOURCE_CELLS, RELEASE_CELLS = cells_of(SOURCE), cells_of(RELEASE)
RELEASED_CODE = {name: cell.source for name, cell in RELEASE_CELLS.items() if cell.cell_type == "code"}


def removed_regions():
    """Every solution and hidden region of the source notebook."""
    sources = [cell.source + "\n" for cell in SOURCE_CELLS.values() if cell.cell_type == "code"]
    return [
        text for source in sources for region in (SOLUTION_REGION, HIDDEN_REGION) for text in region.findall(source)
    ]


def statements(text):
    """Every statement of a piece of code by its dump, imports apart."""
    lines = text.split("\n")
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    tree = ast.parse("def region():\n" + "\n".join("    " + line[indent:] for line in lines))
    nodes = [node for node in ast.walk(tree.body[0]) if isinstance(node, ast.stmt) and node is not tree.body[0]]
    return {ast.dump(node): node for node in nodes if not isinstance(node, (ast.Import, ast.ImportFrom))}


def is_import(line):
    return line.startswith(("import ", "from "))


def test_the_regions_are_found():
    assert len(removed_regions()) == 9 + len(CHECKS)


def test_the_release_holds_no_line_of_an_answer_or_a_hidden_check():
    released = {line.strip() for cell in RELEASE_CELLS.values() for line in cell.source.split("\n")}
    removed = {line.strip() for region in removed_regions() for line in region.split("\n")}
    kept = {line for line in removed & released if len(line) >= 20 and not is_import(line)}
    assert kept == set()


def test_the_release_holds_no_statement_of_an_answer_or_a_hidden_check():
    released = {dump for source in RELEASED_CODE.values() for dump in statements(source)}
    for region in removed_regions():
        kept = [ast.unparse(node) for dump, node in statements(region).items() if dump in released]
        assert kept == []


def test_the_release_is_what_nbgrader_makes_of_the_source():
    assert not any("### BEGIN" in cell.source or "### END" in cell.source for cell in RELEASE_CELLS.values())
    for name, cell in RELEASE_CELLS.items():
        if cell.metadata.nbgrader.solution:
            assert "raise NotImplementedError()" in cell.source
        elif cell.cell_type == "code":
            assert cell.source.split() == HIDDEN_REGION.sub("", SOURCE_CELLS[name].source + "\n").split()


@pytest.mark.parametrize(
    ("begin", "end"),
    [("    {} ", "    {}"), ("\t{}", "\t{} # here"), ("    #{}", "  {}"), ("    {}", "  pass  {}\t")],
)
def test_a_marker_is_one_wherever_it_stands_in_its_line(begin, end):
    source = f"def check():\n    shown()\n{begin.format(BEGIN_HIDDEN)}\n    secret()\n{end.format(END_HIDDEN)}"
    assert without_hidden(source) == "def check():\n    shown()\n"
    assert hidden_regions(source) == ("    secret()\n",)
    source = f"def f():\n{begin.format(BEGIN_SOLUTION)}\n    secret()\n{end.format(END_SOLUTION)}\n# end"
    assert "secret" not in without_solution(source, "raise NotImplementedError()")
    assert without_solution(source, "raise NotImplementedError()").endswith("raise NotImplementedError()\n# end")


def test_a_marker_without_its_partner_stops_everything_rather_than_show_what_is_hidden():
    for line in (BEGIN_HIDDEN, END_HIDDEN):
        with pytest.raises(ValueError, match=r"'def check.*without its partner"):
            without_hidden(f"def check():\n    {line}\n    secret()")
    for line in (BEGIN_SOLUTION, END_SOLUTION):
        with pytest.raises(ValueError, match=r"'def f.*without its partner"):
            without_solution(f"def f():\n    {line}\n    secret()", "pass")


@pytest.mark.parametrize("cells", [SOURCE_CELLS, RELEASE_CELLS])
def test_only_numpy_and_the_standard_library_are_imported(cells):
    allowed = {*sys.stdlib_module_names, "numpy"}
    for cell in cells.values():
        if cell.cell_type == "code":
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.Import):
                    assert {alias.name.split(".")[0] for alias in node.names} <= allowed
                if isinstance(node, ast.ImportFrom):
                    assert node.level == 0
                    assert node.module.split(".")[0] in allowed


def test_signatures_are_annotated_with_builtins():
    for name, cell in RELEASE_CELLS.items():
        if cell.metadata.nbgrader.solution:
            [function] = [node for node in ast.parse(cell.source).body if isinstance(node, ast.FunctionDef)]
            assert function.name == name
            annotations = [argument.annotation for argument in function.args.args] + [function.returns]
            assert all(isinstance(node, ast.Name) and hasattr(builtins, node.id) for node in annotations), name


def test_points_names_and_tags():
    for cells in (SOURCE_CELLS, RELEASE_CELLS):
        points = dict.fromkeys(NAMES, 0)
        for name, cell in cells.items():
            told = cell.metadata.nbgrader
            assert told.grade_id == cell.id == name
            assert told.schema_version == 3
            assert not told.task
            assert told.locked is not told.solution
            if told.grade:
                points[CHECKS[name].module] += told.points
                assert "raises-exception" in cell.metadata.tags
                assert cell.source.endswith(f"\n\n\n{name}()")
        assert points == dict.fromkeys(NAMES, 10)


def scopes(tree):
    """Each function and method at the top of a locked cell, and what stands outside of them."""
    inside = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            inside += [method for method in node.body if isinstance(method, ast.FunctionDef)]
    return inside


@pytest.mark.parametrize("cells", [SOURCE_CELLS, RELEASE_CELLS])
def test_every_builtin_of_a_locked_function_is_imported_in_it(cells):
    names = {name for name in vars(builtins) if not name.startswith("_")}  # gettext adds a `_`
    for name, cell in cells.items():
        if cell.cell_type == "code" and cell.metadata.nbgrader.locked:
            for scope in scopes(ast.parse(cell.source)):
                body = [node for statement in scope.body for node in ast.walk(statement)]
                used = {node.id for node in body if isinstance(node, ast.Name) and node.id in names}
                froms = [node for node in body if isinstance(node, ast.ImportFrom) and node.module == "builtins"]
                imported = {alias.name for node in froms for alias in node.names}
                assert used <= imported, (name, scope.name)


def test_no_name_of_the_student_s_harms_a_check():
    # Every builtin is something else at the top level; the answers themselves live elsewhere.
    def spoil(namespace):
        shadows = {name: 3 for name in vars(builtins) if not name.startswith("__") and name not in ("AssertionError",)}
        namespace.update(
            shadows | {"list": [1], "range": range(3), "print": "text", "ValueError": KeyError, "str": bytes}
        )

    answers = dict.fromkeys(notebook_cells(), "")
    checks = [check for name in NAMES for check in checks_of(name)]
    said = run(answers, checks, bound=right_functions(), prepare=spoil)
    assert said == dict.fromkeys(checks)


def test_wrong_answers_are_told_the_same_beside_spoilt_names():
    def spoil(namespace):
        namespace.update(
            sum=0, max=3, min=1, len=[], list=[2], range=4, any=None, all=None, zip=0, sorted=1, isinstance=2
        )

    namespace: dict = {}
    exec(code("def activation_bytes(s, b, h, a, mode='baseline'):\n    return 34 * s * b * h\n", "wrong"), namespace)
    wrong = right_functions() | {"activation_bytes": namespace["activation_bytes"]}
    answers, checks = dict.fromkeys(notebook_cells(), ""), checks_of("activations")
    told = run(answers, checks, bound=wrong, prepare=spoil)
    assert told == run(answers, checks, bound=wrong)
    assert "the attention core is missing" in told["check_activation_bytes_baseline"]


def test_each_check_leaves_no_value_and_ends_in_its_call():
    for name, check in CHECKS.items():
        last = ast.parse(check.source).body[-1]
        assert ast.unparse(last) == f"{name}()"
        namespace = {}
        for cell in CELLS:
            if cell.kind == "code" and cell.name == "checking":
                exec(code(cell.source, cell.name), namespace)
        namespace.update(right_functions())
        exec(code(check.source.removesuffix(f"{name}()"), name), namespace)
        assert namespace[name]() is None


@pytest.fixture
def copied(tmp_path):
    """The tree that the build reads and writes, somewhere else."""
    for folder in ("trainmem", "trainmem_solutions", "source", "release", "notebooks"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    return tmp_path


def named_in(text):
    return {path for path in (SOURCE, RELEASE, SELF_STUDY) if str(path) in text}


def test_an_edited_module_is_noticed(copied):
    module = copied / "trainmem_solutions" / "model_states.py"
    module.write_text(module.read_text("utf-8").replace("16 MB for its states", "16 MB for all its states"), "utf-8")
    command = [sys.executable, "-m", "trainmem.course.build", "--check"]
    checked = subprocess.run(
        command, cwd=copied, env=os.environ | {"PYTHONPATH": str(copied)}, capture_output=True, text=True
    )
    assert checked.returncode == 1
    assert named_in(checked.stderr) == {SOURCE, RELEASE, SELF_STUDY}


@pytest.fixture(scope="module")
def texts():
    """What the modules give, by path below the root."""
    return {path.relative_to(ROOT): text for path, text in build.built(run=False).items()}


def test_building_again_gives_the_same_bytes(texts):
    assert {path: (ROOT / path).read_bytes() for path in texts} == {path: text.encode() for path, text in texts.items()}
    source = editions.instructor_edition()
    assert (source, editions.student_edition(source)) == (texts[SOURCE], texts[RELEASE])
    assert editions.self_study_edition() == texts[SELF_STUDY]


@pytest.fixture
def checked_copy(copied, texts, monkeypatch):
    monkeypatch.setattr(build, "ROOT", copied)
    monkeypatch.setattr(build, "built", lambda run=True: {copied / path: text for path, text in texts.items()})
    return copied


def test_the_check_is_content_with_what_is_committed(checked_copy, capsys):
    assert build.main(["--check"]) == 0
    assert capsys.readouterr() == ("", "")
    assert build.main([]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("path", [SOURCE, RELEASE, SELF_STUDY])
@pytest.mark.parametrize("deleted", [False, True])
def test_the_check_notices_an_edited_notebook_and_names_it(checked_copy, path, deleted, capsys):
    edited = checked_copy / path
    notebook = json.loads(edited.read_text("utf-8"))
    notebook["cells"][0]["source"][0] += " "
    edited.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
    if deleted:
        edited.unlink()
    assert build.main(["--check"]) == 1
    assert named_in(capsys.readouterr().err) == {path}
    assert build.main([]) == 0
    assert edited.read_bytes() == (ROOT / path).read_bytes()
