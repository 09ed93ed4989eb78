"""The sandbox itself: what is refused, what is cut, what is left behind; and the wire, whatever comes over it."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograded_tests.grading.conftest import SALT, SHORT, marks
from autograded_tests.notebooks import FUNCTIONS, ROOT, SOURCE
from trainmem.grading import sandbox
from trainmem.grading.assignment import load
from trainmem.grading.checks import Grader
from trainmem.grading.inside import wire
from trainmem.grading.limits import Limits
from trainmem.grading.pool import next_core
from trainmem.grading.sandbox import Channel, Lost, Sandbox, SandboxUnavailable, bubblewrap_command
from trainmem.grading.trial import Patience, Stopped, StudentCell, Trial, plan

# -- refusing -------------------------------------------------------------------------------------------------------


def test_without_bubblewrap_it_refuses_and_says_what_to_install(monkeypatch, assignment, references, right_cells):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SandboxUnavailable, match="apt install bubblewrap"):
        Grader(assignment, references, SALT).grade(right_cells)


def test_on_another_system_it_refuses_and_says_what_to_use(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SandboxUnavailable, match="Linux"):
        bubblewrap_command()


def test_without_user_namespaces_it_refuses_and_says_what_to_switch_on(monkeypatch, tmp_path):
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(broken))
    with pytest.raises(SandboxUnavailable, match="No permissions") as caught:
        Sandbox().start()
    assert "user.max_user_namespaces" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("namespaces", [0, 100])
def test_where_forks_cannot_be_isolated_it_refuses(namespaces):
    """Root of a container: bubblewrap needs no user namespace, but each submission does."""
    program = textwrap.dedent("""
        from trainmem.grading.sandbox import Sandbox, SandboxUnavailable
        try:
            with Sandbox():
                print("started")
        except SandboxUnavailable as refusal:
            print("refused:", refusal)
    """)
    inside = f'echo {namespaces} > /proc/sys/user/max_user_namespaces && exec "$0" -c "$1"'
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", inside, sys.executable, program]
    done = subprocess.run(command, capture_output=True, text=True, env=_environment(), timeout=60)
    assert done.stdout.startswith("started" if namespaces else "refused: students' code cannot be run safely"), done
    assert namespaces or "user.max_user_namespaces" in done.stdout


def test_sandboxes_have_names():
    for name in ("None", "off", "", None, False):
        with pytest.raises(ValueError, match="bubblewrap"):
            Sandbox(name)


def _environment():
    return os.environ | {"PYTHONPATH": str(ROOT)}


GRADE = """
import sys
sys.path.insert(0, {root!r})
from autograded_tests.grading import conftest
from autograded_tests.grading.conftest import SALT, SHORT
from autograded_tests.notebooks import RELEASE, SOURCE
from trainmem.grading.assignment import load
from trainmem.grading.checks import Grader
import trainmem_solutions
assignment = load(SOURCE, RELEASE)
references = {{answer.name: getattr(trainmem_solutions, answer.name) for answer in assignment.answers}}
cells = conftest.right_answers(assignment)
"""


def test_it_holds_for_an_ordinary_user_as_for_root():
    """Whose own the files are: nothing but the read-only mounts is in the way."""
    program = GRADE.format(root=str(ROOT)) + textwrap.dedent("""
        import os
        from dataclasses import replace
        from autograded_tests.grading.hostile import HOSTILE, SAYS
        from trainmem.grading.sandbox import Channel
        assert os.getuid() != 0
        said, receive = [], Channel.receive
        def recorded(self, deadline):
            message = receive(self, deadline)
            said.append(repr(message))
            return message
        Channel.receive = recorded
        # What each says is asked here: on a busy machine who reads every file must not run into a limit first.
        slow = replace(SHORT, cell_seconds=30, call_seconds=30, patience_seconds=100, total_seconds=120)
        with Grader(assignment, references, SALT, limits=slow) as grader:
            print(grader.grade(cells).score)
            for hostile in HOSTILE:
                if hostile.name in SAYS:
                    said.clear()
                    print(grader.grade(hostile.alter(cells)).score, any(SAYS[hostile.name] in text for text in said))
    """)
    # Root can become somebody else without losing the files that the interpreter lies in.
    outer = ["unshare", "--user", "--map-user=1234", "--map-group=1234"] if os.getuid() == 0 else []
    done = subprocess.run(
        [*outer, sys.executable, "-c", program], capture_output=True, text=True, env=_environment(), timeout=300
    )
    honest, *hostile = done.stdout.splitlines()
    assert honest == "50.0", done.stderr
    assert hostile == ["44.0 True"] * 14


# -- without a sandbox ----------------------------------------------------------------------------------------------


def test_by_name_the_sandbox_can_be_left_out(assignment, references, changed, marks_without):
    with Grader(assignment, references, SALT, sandbox="none", limits=SHORT) as grader:
        assert marks(grader.grade(changed())) == marks_without()
        for body in (
            "while True: pass",
            "import os; os._exit(1)",
            "kept = []\n    while True: kept.append(b'x' * 2**24)",
        ):
            cells = changed({"params_per_layer": f"def params_per_layer(*a, **k):\n    {body}"})
            assert marks(grader.grade(cells)) == marks_without("params_per_layer")
        cells = changed(
            before={"best_k": ["import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)"]}
        )
        idle = _descendants(os.getpid())
        assert marks(grader.grade(cells)) == marks_without()
        assert _descendants(os.getpid()) == idle
        assert not list(Path("/tmp").glob("scratch-*/mine"))


# -- leaving nothing behind -----------------------------------------------------------------------------------------


def _descendants(process):
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(name)] = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
    found = {process}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {process}


def test_nothing_outlives_a_grader_that_is_killed():
    program = GRADE.format(root=str(ROOT)) + textwrap.dedent("""
        from trainmem.grading.trial import StudentCell
        sleeping = StudentCell("import os, time\\nfor _ in range(4): os.fork()\\nprint('x')\\ntime.sleep(1000)", 1)
        with Grader(assignment, references, SALT) as grader:
            print("ready", flush=True)
            grader.grade([sleeping, *cells])
    """)
    grading = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=_environment())
    assert grading.stdout.readline() == b"ready\n"
    until = time.monotonic() + 10
    while len(started := _descendants(grading.pid)) < 6 and time.monotonic() < until:
        time.sleep(0.05)
    assert len(started) >= 6
    grading.kill()
    grading.wait()
    grading.stdout.close()
    until = time.monotonic() + 10
    while (left := [process for process in started if _alive(process)]) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left


def _alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("prompt", [">>> ", "In [3]: ", "[ins] In [3]: "])
def test_what_is_pasted_from_a_session_means_what_it_means_in_jupyter(grader, right_cells, prompt):
    lines = f"{prompt}best_k = lambda L, c, A: min(range(1, L + 1), key=lambda k: max(memory_timeline(L, c, A, k)))"
    cells = [replace(cell, source=lines) if cell.answer == "best_k" else cell for cell in right_cells]
    assert grader.grade(cells).score == 50


def messages(grade, answer, assignment):
    return [
        result.message
        for result, check in zip(grade.results, assignment.checks, strict=True)
        if check.target == answer and result.message
    ]


def test_an_answer_that_cannot_be_read_is_told_where_and_not_that_it_is_not_written(grader, changed, assignment):
    source = "def params_per_layer(h, mlp_ratio=4, n_kv_ratio=1, style='gpt'):\n    return 12*h**2 +"
    grade = grader.grade(changed({"params_per_layer": source}))
    wanted = "params_per_layer: its cell has a syntax error in line 2: return 12*h**2 +"
    assert messages(grade, "params_per_layer", assignment) == [wanted] * 3
    (note,) = grade.notes
    assert note.endswith("raised SyntaxError in line 2: return 12*h**2 +")


@pytest.mark.parametrize("use", ["ceiling(n)", "int(ceiling(n))", "1 + ceiling(n)", "max(1, ceiling(n))"])
def test_an_answer_that_needs_a_module_that_is_not_there_is_told_which(grader, changed, assignment, use):
    source = "import nowhere.plots\nfrom nowhere import ceiling\nnowhere.plots.show()\n"
    source += "def gpus_for_states(psi, gpu_bytes=80e9, K=12):\n    n = psi * (4 + K) / gpu_bytes\n"
    grade = grader.grade(changed({"gpus_for_states": f"{source}    return {use}"}))
    assert grade.notes == ()
    told = messages(grade, "gpus_for_states", assignment)
    assert told
    assert all("raised ModuleNotFoundError: No module named 'nowhere'" in message for message in told)


def test_a_pool_s_workers_have_cores_of_their_own_and_two_pools_begin_at_different_ones():
    cores, taken = [2, 3, 5, 7], []
    for _ in range(8):
        taken.append(next_core(cores, taken, 1234))
    assert sorted(taken[:4]) == sorted(taken[4:]) == cores
    assert {next_core(cores, (), process) for process in range(1234, 1238)} == set(cores)
    assert next_core([6], [6, 6], 99) == 6


def test_a_warm_process_that_is_lost_is_started_again(grader, right_cells):
    assert grader.grade(right_cells).score == 50
    os.kill(grader._sandbox.warm_pid(), signal.SIGKILL)
    assert grader.grade(right_cells).score == 50


def test_an_interruption_between_question_and_answer_leaves_no_answer_for_the_next(grader, right_cells, monkeypatch):
    hear = Sandbox._hear

    def interrupted(self, seconds):
        monkeypatch.setattr(Sandbox, "_hear", hear)
        raise KeyboardInterrupt

    monkeypatch.setattr(Sandbox, "_hear", interrupted)
    with pytest.raises(KeyboardInterrupt):
        grader.grade(right_cells)
    assert grader.grade(right_cells).score == 50


def test_a_warm_process_that_is_lost_under_a_submission_costs_it_nothing(grader, right_cells, monkeypatch):
    """The same is graded again; where it happens again, nothing is recorded."""
    spawn, times = Sandbox.spawn, []

    def lost(self, **options):
        channel = spawn(self, **options)
        if not options and times:
            times.pop()
            os.kill(self.warm_pid(), signal.SIGKILL)
        return channel

    monkeypatch.setattr(Sandbox, "spawn", lost)
    times[:] = [1]
    assert grader.grade(right_cells).score == 50
    times[:] = [1] * 100
    with pytest.raises(SandboxUnavailable, match="ended from outside"):
        grader.grade(right_cells)
    times.clear()
    assert grader.grade(right_cells).score == 50


# -- time -----------------------------------------------------------------------------------------------------------


def test_waiting_grows_shorter_with_every_hang(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    limits = Limits()
    patience = Patience(limits)
    waits = []
    for _ in range(5):
        waits.append(patience.allowance("best_k", limits.call_seconds))
        clock[0] += waits[-1]
        patience.spend("best_k", waits[-1], hung=True)
    assert waits == [5.0, 1.25, 1.0, 1.0, 1.0]
    assert patience.allowance("peak_bytes", limits.call_seconds) == 5.0


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcdefghi"), st.booleans(), st.floats(0, 1)), max_size=200))
def test_no_way_to_use_time_takes_more_than_the_whole(events):
    clock, limits = [0.0], Limits()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: clock[0])
        patience = Patience(limits)
        for what, hung, share in events:
            if patience.left() <= 0:
                break
            allowance = patience.allowance(what, limits.call_seconds)
            assert 0 < allowance <= limits.call_seconds
            used = allowance if hung else share * allowance
            clock[0] += used
            patience.spend(what, used, hung=hung)
    assert clock[0] <= limits.total_seconds + 1e-6


def test_a_cell_that_hangs_is_left_out_and_not_waited_for_again(assignment, references, changed, marks_without):
    """Twelve restarts do not wait for it twelve times."""
    limits = Limits(cell_seconds=1.0, call_seconds=0.3, least_seconds=0.2, patience_seconds=8.0, total_seconds=15.0)
    cells = changed(
        {"activation_bytes": "import os\ndef activation_bytes(*a, **k): os._exit(3)"},
        before={"params_per_layer": ["while True: pass"]},
    )
    with Grader(assignment, references, SALT, limits=limits) as grader:
        started = time.monotonic()
        grade = grader.grade(cells)
        took = time.monotonic() - started
    assert marks(grade) == marks_without("activation_bytes")
    assert took < 6
    assert "cell 1 did not end in time; the sandbox was started again" in grade.notes


def test_when_the_time_is_up_the_rest_is_lost_and_the_past_kept(assignment, references, changed):
    limits = Limits(cell_seconds=1.0, call_seconds=1.0, least_seconds=1.0, patience_seconds=20.0, total_seconds=3.0)
    hang = {name: f"def {name}(*a, **k):\n    while True: pass" for name in ("best_k", "peak_bytes", "memory_timeline")}
    with Grader(assignment, references, SALT, limits=limits) as grader:
        started = time.monotonic()
        grade = grader.grade(changed(hang))
        assert time.monotonic() - started < 4
    lost = [result for result in grade.results if result.outcome == "lost"]
    assert len(grade.results) == 21
    assert any("more than 3 s" in result.message for result in lost)
    assert all(result.score == result.max_score for result in grade.results if result.outcome == "passed")


@pytest.mark.long
def test_the_worst_that_a_submission_can_do_ends_within_its_limit(assignment, references, right_cells, changed):
    """With the limits that courses use: every cell hangs and every call hangs."""
    from autograded_tests.grading.hostile import HOSTILE

    with Grader(assignment, references, SALT) as grader:
        for hostile in HOSTILE:
            if hostile.name.startswith("hangs"):
                started = time.monotonic()
                assert grader.grade(hostile.alter(right_cells)).score == 0
                assert time.monotonic() - started < Limits().total_seconds + 2


# -- the plan -------------------------------------------------------------------------------------------------------


def test_functions_are_kept_after_their_exercise_s_last_cell(assignment):
    cells = [StudentCell("a", 1, "params_per_layer"), StudentCell("b", 1), StudentCell("c", 3), StudentCell("d", 5)]
    steps = plan(assignment, cells, ())
    kept = {name: place for place, step in enumerate(steps) for name in step.capture}
    assert kept["params_per_layer"] == kept["model_params"] == 2
    assert kept["model_state_bytes"] == 2  # no cell of its own
    assert kept["activation_bytes"] == kept["best_k"] == 3
    assert kept["cheapest_fix"] == 4


def test_right_functions_are_bound_in_their_own_exercise_only(assignment):
    cells = [StudentCell("a", 1, "params_per_layer"), StudentCell("b", 1), StudentCell("c", 4)]
    steps = plan(assignment, cells, ("params_per_layer", "model_state_bytes"))
    assert [step.bind.get("params_per_layer") for step in steps] == [None, "always", "if defined", None]
    assert steps[2].bind["model_state_bytes"] == "always"


def test_the_assignment_is_read_as_it_stands(assignment):
    assert [exercise.number for exercise in assignment.exercises] == [1, 2, 3, 4, 5]
    assert sum(check.points for check in assignment.checks) == 50
    assert len(assignment.answers) == 9
    assert assignment.earlier("model_params") == ("params_per_layer",)
    for check in assignment.checks:
        assert check.name.removeprefix("check_").startswith(check.target)
        assert check.hidden
    for answer in assignment.answers:
        assert "SOLUTION" not in answer.stub
        assert "raise NotImplementedError()" in answer.stub


def test_the_answers_are_those_of_the_course(assignment):
    assert tuple(answer.name for answer in assignment.answers) == FUNCTIONS


def test_stubs_are_the_same_with_and_without_the_release(assignment):
    assert load(SOURCE).answers == assignment.answers


def test_a_notebook_of_another_kind_is_refused_by_name(tmp_path):
    path = tmp_path / "exercises.ipynb"
    for content in ("", "{}", '{"cells": [{}]}', '{"cells": []}'):
        path.write_text(content)
        with pytest.raises(ValueError, match=r"exercises\.ipynb"):
            load(path)


# -- the wire -------------------------------------------------------------------------------------------------------

numbers = st.integers(-(2**1000), 2**1000) | st.floats(allow_nan=False)
numbers |= st.fractions(max_denominator=10**6) | st.decimals(-(10**20), 10**20, allow_nan=False)
scalars = (
    st.none() | st.booleans() | numbers | st.text(st.characters(codec="utf-8", categories=["L", "N"]), max_size=20)
)
plain = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text("abc") | st.integers(), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(plain)
def test_plain_data_comes_back_as_it_was(value):
    back = wire.decode(wire.unpack(wire.pack({"value": wire.encode(value)})[4:])["value"])
    assert back == value
    assert _kinds(back) == _kinds(value)


def _kinds(value):
    if isinstance(value, list | tuple):
        return type(value), [_kinds(item) for item in value]
    if isinstance(value, dict):
        return dict, {key: _kinds(item) for key, item in value.items()}
    return type(value)


json_trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from("tdsqDcx"),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from([*"tdsqDcx", "type", "base"]) | st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=20,
)


@settings(max_examples=300)
@given(json_trees)
def test_any_json_is_plain_data_or_malformed(tree):
    try:
        value = wire.decode(tree)
    except wire.Malformed:
        return
    allowed = (type(None), bool, int, float, complex, str, list, tuple, dict, Fraction, Decimal, wire.Foreign)
    todo = [value]
    while todo:
        item = todo.pop()
        assert type(item) in allowed
        if type(item) in (list, tuple):
            todo += item
        elif type(item) is dict:
            todo += [*item, *item.values()]


@settings(max_examples=300)
@given(st.binary(max_size=200) | json_trees.map(lambda tree: json.dumps(tree).encode()))
def test_any_bytes_are_an_object_or_malformed(body):
    with contextlib.suppress(wire.Malformed):
        assert type(wire.unpack(body)) is dict


@settings(max_examples=200)
@given(
    json_trees
    | st.fixed_dictionaries(dict.fromkeys(["type", "base", "text", "function", "line", "source"], json_trees))
)
def test_any_error_is_an_ordinary_exception_or_malformed(payload):
    with contextlib.suppress(wire.Malformed):
        error = wire.decode_error(payload)
        assert isinstance(error, Exception)
        str(error)


@pytest.mark.parametrize(
    "tree",
    [
        [0] * (wire.MAX_VALUES + 1),
        2**1024,
        {"q": [1, 0]},
        {"q": [1, -2]},
        {"q": [2**2000, 1]},
        {"D": "1E+999999999"},
        {"D": "1E-999999999"},
        {"D": "NaN"},
        {"D": "sNaN"},
        {"D": "1_000"},
        {"D": "٣"},
        {"d": [[[1], 2]]},
        {"d": [[n * (2**61 - 1), 0] for n in range(1_001)]},
        {"t": 3},
        {"t": [], "d": []},
        {},
        "x" * 3_000,
    ],
)
def test_what_is_too_much_or_no_data_is_malformed(tree):
    with pytest.raises(wire.Malformed):
        wire.decode(tree)


def test_depth_is_bounded_on_both_sides():
    deep = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(wire.Malformed):
        wire.decode(deep)
    with pytest.raises(OverflowError):
        wire.encode(deep)
    with pytest.raises(wire.Malformed):
        wire.unpack(b"[" * 100_000)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float64(1.5), 1.5),
        (np.float32(1.5), 1.5),
        (np.longdouble(1.5), 1.5),
        (np.int64(2), 2),
        (np.uint8(2), 2),
        (np.bool_(True), True),
        (np.array(2.5), 2.5),
        (np.array([1, 2]), [1, 2]),
        (np.array([[1.5]]), [[1.5]]),
        (np.array([Fraction(1, 2)], dtype=object), [Fraction(1, 2)]),
        (np.str_("flash"), "flash"),
        (range(3), [0, 1, 2]),
        (iter([1]), [1]),
        ({1}, [1]),
        (Fraction(1, 3), Fraction(1, 3)),
        (Decimal("1.5"), Decimal("1.5")),
        (1 + 2j, 1 + 2j),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_students_return_arrives_as_plain_data(value, plain):
    back = wire.decode(json.loads(json.dumps(wire.encode(value))))
    assert back == plain
    assert type(back) is type(plain)


def test_what_is_no_data_arrives_as_its_type_s_name():
    for value, name in ((object(), "object"), (int, "type"), (len, "builtin_function_or_method"), (b"x", "bytes")):
        back = wire.decode(wire.encode(value))
        assert type(back) is wire.Foreign
        assert back.type_name == name


def test_exceptions_arrive_under_their_name_as_their_builtin_kind():
    class TooNarrow(ValueError):
        pass

    for error, kind, name in (
        (TooNarrow("h"), ValueError, "TooNarrow"),
        (ZeroDivisionError("x"), ZeroDivisionError, "ZeroDivisionError"),
        (NotImplementedError(), NotImplementedError, "NotImplementedError"),
        (KeyError("h"), KeyError, "KeyError"),
        (UnicodeDecodeError("utf-8", b"", 0, 1, "x"), ValueError, "UnicodeDecodeError"),
        (StopIteration(3), Exception, "StopIteration"),
        (SystemExit(3), RuntimeError, "SystemExit"),
        (KeyboardInterrupt(), RuntimeError, "KeyboardInterrupt"),
        (np.exceptions.AxisError("x"), ValueError, "AxisError"),
    ):
        back = wire.decode_error(json.loads(json.dumps(wire.encode_error(error))))
        assert isinstance(back, kind)
        assert not isinstance(back, StopIteration)
        assert type(back).__name__ == name
        assert str(back) == str(error)


# -- the channel ----------------------------------------------------------------------------------------------------


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    yield channel, theirs
    channel.close()
    theirs.close()


def test_what_comes_unasked_is_no_answer(ends):
    channel, theirs = ends
    channel.expect_silence()
    theirs.sendall(b"x")
    with pytest.raises(Lost, match="unasked"):
        channel.expect_silence()


@pytest.mark.parametrize("sent", [b"", b"\0\0", b"\0\0\0\x09{}", b"\xff\xff\xff\xff", b"\0\0\0\x02[]", b"\0\0\0\x01{"])
@pytest.mark.parametrize("closes", [True, False])
def test_half_a_frame_or_a_wrong_one_is_lost_in_time(ends, sent, closes):
    channel, theirs = ends
    theirs.sendall(sent)
    if closes:
        theirs.close()
    started = time.monotonic()
    with pytest.raises(Lost):
        channel.receive(time.monotonic() + 0.2)
    assert time.monotonic() - started < 2


def test_who_does_not_read_is_not_waited_for(ends):
    channel, _ = ends
    sources = ["x" * 500_000] * 2  # more than a socket buffers
    with pytest.raises(Lost, match="timeout"):
        [channel.send({"source": source}, time.monotonic() + 0.2) for source in sources]


class Impostor:
    """In the place of a sandbox: whatever is asked, these replies come."""

    limits = SHORT

    def __init__(self, replies):
        self.replies = replies
        self.spawned = 0

    def spawn(self):
        ours, theirs = socket.socketpair()
        self.spawned += 1

        def serve():
            with contextlib.suppress(OSError):
                for reply in self.replies:
                    size = wire.body_size(theirs.recv(4, socket.MSG_WAITALL))
                    asked = wire.unpack(theirs.recv(size, socket.MSG_WAITALL))
                    theirs.sendall(reply(asked))

        threading.Thread(target=serve, daemon=True).start()
        return Channel(ours)

    def stop(self, **_):
        return None


def _reply(**content):
    return lambda asked: wire.pack({"id": asked["id"]} | content)


def test_an_answer_is_tied_to_its_question():
    trial = Trial(Impostor([_reply(value=3)]), [], Patience(SHORT), [])
    assert trial.call("best_k", [1], {}).value == 3
    for reply in (
        _reply(id="0" * 16, value=3),
        _reply(id=None, value=3),
        lambda asked: wire.pack({"value": 3}),
        _reply(value=3, error=None),
        _reply(value=3, passed=True),
        _reply(value={"z": 3}),
        _reply(error={"type": "E"}),
        _reply(ask="best_k", arguments=[], keywords={"d": []}),
        lambda asked: wire.pack({"ask": "best_k", "arguments": [], "keywords": {"d": []}}),
    ):
        trial = Trial(Impostor([reply]), [], Patience(SHORT), [])
        with pytest.raises(Stopped, match="best_k"):
            trial.call("best_k", [1], {})


def test_noise_of_an_earlier_call_costs_the_next_one_nothing():
    impostor = Impostor([lambda asked: _reply(value=3)(asked) + _reply(value=4)(asked)])
    trial = Trial(impostor, [], Patience(SHORT), [])
    assert trial.call("best_k", [1], {}).value == 3
    assert trial.call("peak_bytes", [1], {}).value == 3
    assert impostor.spawned == 2


def test_the_command_shows_no_home_and_none_of_the_course():
    command = bubblewrap_command([ROOT])
    shown = [target for option, target in zip(command, command[2:], strict=False) if option == "--ro-bind"]
    assert str(ROOT) not in shown
    assert "/home" not in shown
    assert "/" not in shown
    assert not any(path.startswith(str(ROOT)) and ".venv" not in path for path in shown)
    assert "--unshare-net" in command
    assert "--unshare-pid" in command


def test_the_folder_inside_imports_nothing_of_ours():
    for path in sandbox._INSIDE.glob("*.py"):
        lines = [line.strip() for line in path.read_text().splitlines()]
        assert not [line for line in lines if line.startswith(("import trainmem", "from trainmem"))]
