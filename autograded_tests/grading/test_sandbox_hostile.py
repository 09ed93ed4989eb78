"""Every hostile or runaway submission gets what its answers deserve, learns nothing and leaves nothing."""

import contextlib
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from autograded_tests.grading.hostile import HOSTILE, SAYS
from trainmem.grading.assignment import Assignment
from trainmem.grading.checks import Grader
from trainmem.grading.limits import Limits
from trainmem.grading.sandbox import Channel

LIMITS = Limits(
    cell_seconds=1.0,
    call_seconds=0.4,
    patience_seconds=4.0,
    least_seconds=0.3,
    total_seconds=9.0,
    resident_bytes=512 << 20,
    memory_bytes=2 << 30,
    scratch_bytes=16 << 20,
)
SALT = b"PLANTED-salt-that-is-long-enough"
SECRET_VALUE = 424242424242


def planted(assignment):
    """The assignment with a secret in each hidden part: in its source, and among the values it expects."""

    def with_secret(check):
        marker = "### BEGIN HIDDEN TESTS\n"
        secret = f"    planted = ['PLANTED-{check.name}', {SECRET_VALUE}, CHECK_SEED]\n"
        assert marker in check.source
        return replace(check, source=check.source.replace(marker, marker + secret, 1))

    exercises = [
        replace(exercise, checks=tuple(map(with_secret, exercise.checks))) for exercise in assignment.exercises
    ]
    return Assignment(assignment.helpers, tuple(exercises))


class Wire:
    """All that crosses between us and the sandboxes."""

    def __init__(self):
        self.said = []

    def holds(self, secret):
        return any(secret in text for text in self.said)


@pytest.fixture(scope="module")
def wire():
    patch = pytest.MonkeyPatch()
    wire = Wire()
    send, receive = Channel.send, Channel.receive

    def recorded_send(self, message, deadline):
        wire.said.append(repr(message))
        return send(self, message, deadline)

    def recorded_receive(self, deadline):
        message = receive(self, deadline)
        wire.said.append(repr(message))
        return message

    patch.setattr(Channel, "send", recorded_send)
    patch.setattr(Channel, "receive", recorded_receive)
    yield wire
    patch.undo()


@pytest.fixture(scope="module")
def grader(assignment, references, right_cells, tmp_path_factory, wire):
    neighbour = tmp_path_factory.mktemp("course") / "submitted" / "neighbour" / "training_memory" / "exercises.ipynb"
    neighbour.parent.mkdir(parents=True)
    neighbour.write_text("PLANTED-neighbour")
    os.environ["TRAINMEM_PLANTED"] = "PLANTED-environment"
    with Grader(planted(assignment), references, SALT, limits=LIMITS) as grader:
        # One who was graded before, in the same warm process.
        told = [replace(cell, source="# PLANTED-earlier\n" + cell.source) for cell in right_cells]
        grade = grader.grade(told)
        assert grade.score == 50, [result for result in grade.results if result.message]
        yield grader
    os.environ.pop("TRAINMEM_PLANTED")


def descendants(process):
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(name)] = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
    found = {process}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {process}


def traces():
    """Names that attacks leave where they can, and the files they would change."""
    names = {
        f"{folder}/{name}"
        for folder in ("/", "/tmp", "/var/tmp", "/dev", "/dev/shm", "/root", os.getcwd())
        if os.access(folder, os.R_OK)
        for name in os.listdir(folder)
        if name.startswith(("escaped", "left", "fill", "empty", "link"))
    }
    inside = Path(__file__).parents[2] / "trainmem" / "grading" / "inside"
    return names, {path.name: path.read_bytes() for path in inside.glob("*.py")}


@pytest.mark.parametrize("hostile", HOSTILE, ids=[hostile.name for hostile in HOSTILE])
def test_a_hostile_submission_gets_what_it_deserves(hostile, grader, assignment, right_cells, wire):
    wire.said.clear()
    before = traces()
    idle = descendants(os.getpid())
    started = time.monotonic()
    grade = grader.grade(hostile.alter(right_cells))
    took = time.monotonic() - started

    expected = {check.name: 0 if hostile.loses & {check.target, "*"} else check.points for check in assignment.checks}
    marks = {result.check: result.score for result in grade.results}
    assert marks == expected, (grade.notes, [result for result in grade.results if result.message])
    if hostile.name in SAYS:
        assert wire.holds(SAYS[hostile.name]), [text for text in wire.said if "'value': None" not in text][:40]
    assert took < LIMITS.total_seconds + 1

    # What students' own text said is on the wire too; secrets come from nowhere but us.
    secrets = ["PLANTED-check", "PLANTED-salt", "PLANTED-neighbour", "PLANTED-environment", "PLANTED-earlier"]
    secrets += [str(SECRET_VALUE), grader._drawn("shapes", hostile.alter(right_cells)), "BEGIN HIDDEN TESTS"]
    told = "".join(result.message for result in grade.results) + "".join(grade.notes)
    for secret in secrets:
        mine = any(secret in cell.source for cell in hostile.alter(right_cells))
        assert not wire.holds(secret) or mine, secret
        assert secret not in told
    assert traces() == before
    assert descendants(os.getpid()) == idle


def test_the_fixtures_are_of_many_kinds():
    assert len({hostile.name for hostile in HOSTILE}) == len(HOSTILE) >= 45


def test_an_honest_submission_after_all_of_them_is_graded_as_before(grader, right_cells):
    grade = grader.grade(right_cells)
    assert grade.score == 50
    assert grade.notes == ()
