"""A worker: salvages and grades the submissions that it is given, one after the other, with one warm sandbox.

A process of its own (`python -m trainmem.grading.worker DESCRIPTOR CORE`), so that nothing that a submission does to it
reaches the gradebook or another submission.
"""

import os
import pickle
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import trainmem_solutions
from trainmem.grading.checks import CheckResult, Grader
from trainmem.grading.edition import Edition
from trainmem.grading.inside import isolation
from trainmem.grading.limits import Limits
from trainmem.grading.outcome import Graded, Job, Outcome, Ungraded, readable, told
from trainmem.grading.reading import Refused
from trainmem.grading.salvage import Salvaged, notebook_json, salvage
from trainmem.grading.sandbox import Kind, SandboxUnavailable


@dataclass(frozen=True)
class Setup:
    """What a worker is told once. `hidden`: folders that no student's code may see."""

    edition: Edition
    salt: bytes
    sandbox: Kind
    limits: Limits
    hidden: tuple[Path, ...]


def right_functions(edition: Edition) -> dict[str, Callable[..., Any]]:
    """Return the course's own function for each answer."""
    return {name: getattr(trainmem_solutions, name) for name in edition.answers}


def grade(job: Job, edition: Edition, grader: Grader) -> Outcome:
    """Return how one submission ends. Raises SandboxUnavailable where nothing can be graded on this machine."""
    try:
        salvaged = salvage(job.place, edition)
    except Refused as refused:
        return Ungraded(job.student, readable(str(refused)))
    ran = grader.grade(salvaged.code)
    results = tuple(replace(result, message=readable(result.message)) for result in ran.results)
    notes = tuple(readable(_addressed(note, salvaged)) for note in ran.notes)
    repairs, cut = (tuple(map(readable, sentences)) for sentences in (salvaged.repairs, salvaged.cut))
    about = told(results, notes=notes, repairs=repairs, cut=cut)
    outputs = {result.check: _output(result) for result in results}
    notebook = notebook_json(salvaged, edition, outputs, about)
    unwritten = tuple(sorted(edition.answers - salvaged.written))
    return Graded(job.student, results, unwritten, notes, repairs, cut, notebook)


def _addressed(note: str, salvaged: Salvaged) -> str:
    """Name a cell as its author knows it, not by its place in the order of running."""

    def name(match: re.Match[str]) -> str:
        place = int(match[1]) - 1
        return salvaged.called[place] if place < len(salvaged.called) else match[0]

    note = re.sub(r"\bcell (\d+)\b", name, note, count=1)
    return f"{note[:1].upper()}{note[1:]}."


def _output(result: CheckResult) -> list[dict[str, Any]]:
    if result.outcome == "passed":
        text = result.message
        return [{"output_type": "stream", "name": "stdout", "text": text}] if text else []
    lines = result.message.split("\n")
    return [{"output_type": "error", "ename": "CheckFailed", "evalue": lines[0], "traceback": lines}]


def main() -> None:
    """Answer jobs until the other end is closed."""
    if sys.platform.startswith("linux"):
        isolation.die_with_parent()
    connection: Connection = Connection(int(sys.argv[1]))
    setup: Setup = pickle.load(sys.stdin.buffer)
    if hasattr(os, "sched_setaffinity"):
        # With its sandbox on the same core: a question and its answer are two short turns, and waking another core for
        # each would take longer than they do.
        os.sched_setaffinity(0, {int(sys.argv[2])})
    grader = Grader(
        setup.edition.assignment,
        right_functions(setup.edition),
        setup.salt,
        sandbox=setup.sandbox,
        limits=setup.limits,
        hidden=setup.hidden,
    )
    try:
        try:
            grader.__enter__()
            connection.send(None)
        except SandboxUnavailable as unavailable:
            connection.send(unavailable)
            return
        while True:
            job = connection.recv()
            try:
                connection.send(grade(job, setup.edition, grader))
            except SandboxUnavailable as unavailable:
                connection.send(unavailable)
                return
            except Exception as error:  # a fault of ours must cost one submission at most
                reason = f"the grader failed on it: {type(error).__name__}: {error}"
                connection.send(Ungraded(job.student, readable(reason)[:500]))
                raise
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # whoever hands out the work has gone
    finally:
        grader.close()


if __name__ == "__main__":
    main()
