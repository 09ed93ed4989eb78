"""Grade one submission: our checks in our process, the student's functions behind proxies."""

import hashlib
import hmac
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType
from typing import Any, Literal, Self

from trainmem.grading.assignment import Assignment, Check
from trainmem.grading.limits import Limits
from trainmem.grading.references import References
from trainmem.grading.sandbox import Kind, Sandbox, WarmProcessLost
from trainmem.grading.trial import Patience, Stopped, StudentCell, Trial, plan, proxy

Outcome = Literal["passed", "failed", "lost"]
_MAX_MESSAGE = 4_000


@dataclass(frozen=True)
class CheckResult:
    """What one check came to. `message` is for the student; `with_right_functions` says whose mistake it was not."""

    check: str
    exercise: int
    score: float
    max_score: float
    message: str
    outcome: Outcome
    with_right_functions: bool = False


@dataclass(frozen=True)
class Grade:
    """A submission's results in the notebook's order, and what was cut, timed out or was started again."""

    results: tuple[CheckResult, ...]
    notes: tuple[str, ...]

    @property
    def score(self) -> float:
        return sum(result.score for result in self.results)


class Grader:
    """Grades submissions one after the other with one warm sandbox. One grader a worker, used in one thread.

    `references` gives the right function of each answer's name; `salt` is private to the course and seeds what hidden
    checks draw, together with the submission, so that grading twice agrees. `hidden` folders (the repository, the
    gradebook) are emptied where the sandbox's read-only system would show them.

    A check that fails and whose answer has earlier ones is run again with right ones in their place, in a fresh sandbox
    and after all others have been recorded; the better result counts. A right function is never bound for the answer
    that the check is about.
    """

    def __init__(
        self,
        assignment: Assignment,
        references: Mapping[str, Callable[..., Any]],
        salt: bytes,
        *,
        sandbox: Kind = "bubblewrap",
        limits: Limits | None = None,
        hidden: Sequence[Path] = (),
    ) -> None:
        missing = [answer.name for answer in assignment.answers if answer.name not in references]
        if missing:
            raise ValueError(f"no right function is given for {', '.join(missing)}")
        if len(salt) < 16:
            raise ValueError("the salt has less than 16 bytes; take secrets.token_bytes(32), once for a course")
        self._assignment = assignment
        self._salt = salt
        self._references = References(references)
        self._sandbox = Sandbox(
            sandbox,
            limits,
            helpers=assignment.given_helpers,
            stubs=[answer.stub for answer in assignment.answers],
            check_names=[check.name for check in assignment.checks],
            hidden=hidden,
        )
        self._helpers = compile(assignment.helpers, "<helpers>", "exec", dont_inherit=True)
        self._code: dict[str, CodeType] = {
            check.name: compile(check.source, f"<{check.name}>", "exec", dont_inherit=True)
            for check in assignment.checks
        }

    def __enter__(self) -> Self:
        self._sandbox.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the warm process and the one that answers call-backs."""
        self._references.close()
        self._sandbox.close()

    def grade(self, cells: Sequence[StudentCell]) -> Grade:
        """The submission's results, whatever it does.

        Raises SandboxUnavailable where no student's code can be run, or where the warm process was lost twice under it.
        """
        try:
            return self._grade(cells)
        except WarmProcessLost:
            return self._grade(cells)

    def _grade(self, cells: Sequence[StudentCell]) -> Grade:
        notes: list[str] = []
        patience = Patience(self._sandbox.limits)
        names = [answer.name for answer in self._assignment.answers]
        seed = self._drawn("shapes", cells)
        order = list(self._assignment.checks)
        # The order of the calls must not tell which check is asking.
        random.Random(self._drawn("order", cells)).shuffle(order)

        trial = Trial(self._sandbox, plan(self._assignment, cells, ()), patience, notes)
        results: dict[str, CheckResult] = {}
        hopeless: set[str] = set()
        try:
            bench = _Bench(self._helpers, names, trial, seed)
            for check in order:
                results[check.name] = bench.run(check, self._code[check.name])
                if bench.unwritten == check.target:
                    hopeless.add(check.name)
        finally:
            trial.close()

        failed = [check for check in order if results[check.name].outcome != "passed" and check.name not in hopeless]
        for target in dict.fromkeys(check.target for check in failed):
            bound = self._assignment.earlier(target)
            if not bound or patience.left() <= 0:
                continue
            steps = plan(self._assignment, cells, bound)
            again = Trial(self._sandbox, steps, patience, notes, self._references, bound)
            try:
                bench = _Bench(self._helpers, names, again, seed)
                for check in failed:
                    if check.target == target:
                        second = bench.run(check, self._code[check.name])
                        if second.score > results[check.name].score:
                            results[check.name] = replace(second, with_right_functions=True)
            finally:
                again.close()
        self._references.close()
        return Grade(tuple(results[check.name] for check in self._assignment.checks), tuple(dict.fromkeys(notes)))

    def _drawn(self, purpose: str, cells: Sequence[StudentCell]) -> str:
        """A number that only the salt's owner knows, the same for the same submission."""
        told = json.dumps([purpose, [[cell.exercise, cell.answer, cell.source] for cell in cells]]).encode()
        return hmac.new(self._salt, told, hashlib.sha256).hexdigest()


class _Bench:
    """The namespace in which our checks run against one trial."""

    def __init__(self, helpers: CodeType, names: Sequence[str], trial: Trial, seed: str) -> None:
        self._trial = trial
        self._stopped: str | None = None
        self._broken: Exception | None = None
        self.unwritten: str | None = None
        self._namespace: dict[str, Any] = {"__name__": "checks"}
        exec(helpers, self._namespace)
        self._namespace["CHECK_SEED"] = seed
        self._namespace.update({name: proxy(name, self._call) for name in names})
        self._failed: type[BaseException] = self._namespace["CheckFailed"]
        self._remarks: list[str] = self._namespace.get("REMARKS", [])

    def _call(self, name: str, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
        # Once its sandbox was lost a check is lost, whatever it goes on to do.
        if self._stopped is not None:
            raise Stopped(self._stopped)
        try:
            reply = self._trial.call(name, arguments, keywords)
        except Stopped as stopped:
            self._stopped = str(stopped)
            raise
        except Exception as error:
            # Ours, not the student's, so no check may take it for an answer.
            self._broken, self._stopped = error, "the grader failed"
            raise Stopped(self._stopped) from error
        if isinstance(reply.error, NotImplementedError):
            self.unwritten = getattr(reply.error, "function", None)
        return reply.result()

    def run(self, check: Check, code: CodeType) -> CheckResult:
        """Run one check's cell to its end."""
        self._stopped = self.unwritten = None
        self._remarks.clear()
        score, outcome, message = 0.0, "failed", ""
        try:
            exec(code, self._namespace)
        except Stopped:
            pass
        except self._failed as failure:
            message = str(failure)[:_MAX_MESSAGE]
            if self.unwritten in self._trial.no_python:
                # To the checks it is not written; its author sees that it is.
                message = f"{self.unwritten}: its cell has a syntax error{self._trial.no_python[self.unwritten]}"
        except Exception as error:
            # Not the student's text: it may carry a hidden check's arguments.
            message = f"the check could not be finished: {type(error).__name__}"
        else:
            score, outcome, message = check.points, "passed", "\n".join(self._remarks)[:_MAX_MESSAGE]
        if self._broken is not None:
            raise self._broken
        if self._stopped is not None:
            score, outcome, message = 0.0, "lost", self._stopped
        return CheckResult(check.name, check.exercise, score, check.points, message, outcome)
