"""Workers on this machine's cores, and how what happens to one of them stays with the submission that it had."""

import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Self

import trainmem
from trainmem.grading.outcome import Job, Outcome, Ungraded
from trainmem.grading.sandbox import SandboxUnavailable
from trainmem.grading.worker import Setup

_START_SECONDS = 120.0
_ATTEMPTS = 2
_PATH = os.pathsep.join([str(Path(trainmem.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])


def cores() -> list[int]:
    """The processor cores that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def next_core(free: Sequence[int], taken: Sequence[int], process: int) -> int:
    """The core for a pool's next worker: one with the fewest of its workers. Each pool begins at a core of its own, by
    its process's number: two that grade at the same time are not to sit on the same ones while others idle.
    """
    first = process % len(free)
    workers = Counter(taken)
    return min([*free[first:], *free[:first]], key=lambda core: workers[core])


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    connection: Connection
    core: int
    deadline: float
    ready: bool = False
    job: Job | None = None


class Workers:
    """Grades submissions with `count` processes; use it in a with statement.

    A submission on which a worker is lost is given to a new one once more, and is then one that could not be graded.
    """

    def __init__(self, setup: Setup, count: int) -> None:
        self._setup = setup
        # Twice what a submission may take, and what reading a large file may: then the fault is ours.
        self._patience = 2 * setup.limits.total_seconds + 60
        self._workers: list[_Worker] = []
        for _ in range(count):
            self._workers.append(self._start())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.connection.close()
        for worker in self._workers:
            try:
                worker.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
        self._workers = []

    def grade(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Yield how each submission ends, as they end. Raises SandboxUnavailable where none can be graded here."""
        queue = deque(jobs)
        attempts: Counter[str] = Counter()
        while queue or any(worker.job for worker in self._workers):
            for worker in self._workers:
                if queue and worker.ready and worker.job is None:
                    self._give(worker, queue.popleft())
            watched = [worker for worker in self._workers if worker.job is not None or not worker.ready]
            first = min(worker.deadline for worker in watched)
            heard = wait([worker.connection for worker in watched], max(0.0, first - time.monotonic()))
            for worker in watched:
                if worker.connection not in heard and time.monotonic() < worker.deadline:
                    continue
                job, outcome = self._hear(worker, worker.connection in heard)
                if job is not None and outcome is None:
                    attempts[job.student] += 1
                    if attempts[job.student] < _ATTEMPTS:
                        queue.appendleft(job)
                    else:
                        outcome = Ungraded(job.student, "the grader's own process ended while it was at it")
                if outcome is not None:
                    yield outcome

    def _start(self) -> _Worker:
        ours, theirs = Pipe()
        core = next_core(cores(), [worker.core for worker in self._workers], os.getpid())
        command = [sys.executable, "-m", "trainmem.grading.worker", str(theirs.fileno()), str(core)]
        with tempfile.TemporaryFile() as told:
            # By way of a file: a pipe would make us wait until each worker has started.
            pickle.dump(self._setup, told)
            told.seek(0)
            process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stdin=told,
                env=os.environ | {"PYTHONPATH": _PATH},
                start_new_session=True,  # Ctrl-C is for the one that hands out the work
            )
        theirs.close()
        return _Worker(process, ours, core, time.monotonic() + _START_SECONDS)

    def _give(self, worker: _Worker, job: Job) -> None:
        worker.job = job
        worker.deadline = time.monotonic() + self._patience
        with contextlib.suppress(OSError):  # it has died: that is heard at once
            worker.connection.send(job)

    def _hear(self, worker: _Worker, spoke: bool) -> tuple[Job | None, Outcome | None]:
        """Return the job that a worker had and its outcome, or None where the worker was lost."""
        job, worker.job = worker.job, None
        try:
            message = worker.connection.recv() if spoke else None
            if not spoke:
                raise EOFError
        except (EOFError, OSError):
            if not worker.ready:
                self._replace(worker, start=False)
                raise SandboxUnavailable("a worker of the grader did not start; its own words stand above") from None
            self._replace(worker)
            return job, None
        if isinstance(message, SandboxUnavailable):
            if not worker.ready:
                raise message
            self._replace(worker)
            return job, None
        worker.ready = True
        return job, message

    def _replace(self, worker: _Worker, *, start: bool = True) -> None:
        worker.connection.close()
        worker.process.kill()
        worker.process.wait()
        self._workers.remove(worker)
        if start:
            self._workers.append(self._start())
