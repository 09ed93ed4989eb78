"""One submission's cells in a sandbox, and calls of what they define, through every loss of the sandbox."""

import linecache
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from trainmem.grading.assignment import Assignment
from trainmem.grading.inside import wire
from trainmem.grading.limits import Limits
from trainmem.grading.references import References
from trainmem.grading.sandbox import Channel, Lost, Sandbox


@dataclass(frozen=True)
class StudentCell:
    """A code cell of a submission: its source, the exercise it belongs to, and the answer whose place it takes."""

    source: str
    exercise: int
    answer: str | None = None


@dataclass(frozen=True)
class Reply:
    """What came of a call: plain data, or the student's exception."""

    value: Any = None
    error: Exception | None = None

    def result(self) -> Any:
        """Return the value, or raise the exception."""
        if self.error is not None:
            _raise_as_there(self.error)
        return self.value


class Stopped(BaseException):
    """The sandbox was lost during a call. No Exception: a check's own handlers are not to see it."""


class Patience:
    """How long one submission is waited for; see `Limits` for the rule."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._used: Counter[str] = Counter()
        self._hung: Counter[str] = Counter()
        self._spent = 0.0
        self._end = time.monotonic() + limits.total_seconds

    def left(self) -> float:
        """Seconds until the submission is over."""
        return self._end - time.monotonic()

    def allowance(self, what: str, full: float) -> float:
        """Seconds to wait for `what` now, of at most `full`."""
        share = full / 4 ** self._hung[what] if self._hung[what] < 2 else 0.0
        share = min(share, 2 * full - self._used[what], self._limits.patience_seconds - self._spent)
        return min(max(share, min(full, self._limits.least_seconds)), self.left())

    def spend(self, what: str, seconds: float, *, hung: bool) -> None:
        self._used[what] += seconds
        self._spent += seconds
        self._hung[what] += hung

    def hangs(self, what: str) -> int:
        return self._hung[what]


@dataclass
class Step:
    """A cell as it is sent, with what is to be bound and kept after it; `answer` is the one whose place it takes."""

    source: str
    label: str
    answer: str | None = None
    bind: dict[str, str] = field(default_factory=dict)
    capture: dict[str, int] = field(default_factory=dict)


def plan(assignment: Assignment, cells: Sequence[StudentCell], bound: Sequence[str]) -> list[Step]:
    """The cells in run order; each exercise's functions are kept after its last cell, right ones bound on the way."""
    steps = [Step("", "")] + [Step(cell.source, f"cell {place}", cell.answer) for place, cell in enumerate(cells, 1)]
    last = 0
    for exercise in assignment.exercises:
        places = [place for place, cell in enumerate(cells, 1) if cell.exercise == exercise.number]
        last = places[-1] if places else last
        for answer in exercise.answers:
            steps[last].capture[answer.name] = exercise.number
            if answer.name not in bound:
                continue
            labelled = [place for place in places if cells[place - 1].answer == answer.name]
            for place in places:
                steps[place].bind[answer.name] = "if defined"
            for place in labelled or [last]:
                steps[place].bind[answer.name] = "always"
    return steps


class Trial:
    """A submission's functions, to be called by name; started at the first call and again whenever it was lost.

    `no_python` says of an answer whose cell cannot be read where that is. With `bound`, those functions are right ones,
    by call-back. A cell that hangs or kills its process is left out when
    the cells are run again, and never waited for more than twice.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        steps: Sequence[Step],
        patience: Patience,
        notes: list[str],
        references: References | None = None,
        bound: Sequence[str] = (),
    ) -> None:
        self._sandbox = sandbox
        self._steps = steps
        self._patience = patience
        self._notes = notes
        self._references = references
        self._bound = frozenset(bound)
        self._channel: Channel | None = None
        self._left_out: set[int] = set()
        self._told: set[str] = set()
        self.no_python: dict[str, str] = {}

    def close(self) -> None:
        if self._channel is not None:
            self._sandbox.stop()
            self._channel = None

    def call(self, name: str, arguments: Sequence[Any], keywords: dict[str, Any]) -> Reply:
        """What the student's function gives. Raises Stopped where the sandbox is lost."""
        self._start()
        assert self._channel is not None
        try:
            self._channel.expect_silence()
        except Lost as lost:
            # An earlier call's doing; this one gets a sandbox that nothing has happened in.
            self._lose("an earlier call", lost)
            self._start()
        message = {"do": "call", "name": name}
        message |= {"arguments": wire.encode(list(arguments)), "keywords": wire.encode(keywords)}
        try:
            counted = f"{name} again" if self._bound else name
            reply = self._request(message, counted, self._sandbox.limits.call_seconds)
        except Lost as lost:
            raise Stopped(self._lose(name, lost)) from None
        return reply

    def _start(self) -> None:
        """Run the cells in a new sandbox unless one is there."""
        while self._channel is None:
            if self._patience.left() <= 0:
                raise Stopped(f"the submission took more than {self._sandbox.limits.total_seconds:g} s in all")
            self._channel = self._sandbox.spawn()
            for place, step in enumerate(self._steps):
                source = "" if place in self._left_out or self._patience.hangs(step.label) > 1 else step.source
                if not (source or step.bind or step.capture):
                    continue
                message = {"do": "cell", "source": source, "bind": step.bind, "capture": step.capture}
                try:
                    reply = self._request(message, step.label, self._sandbox.limits.cell_seconds)
                except Lost as lost:
                    reason = self._lose(step.label, lost)
                    if place in self._left_out or not step.source:
                        raise Stopped(reason) from None
                    self._left_out.add(place)
                    break
                except OverflowError:
                    self._note(f"{step.label} is longer than {wire.MAX_FRAME_BYTES} bytes and was left out")
                    self._left_out.add(place)
                    self.close()
                    break
                if reply.error is not None:
                    where = f" in line {reply.error.line}: {reply.error.source}" if reply.error.source else ""
                    self._note(f"{step.label} raised {type(reply.error).__name__}{where}")
                    if isinstance(reply.error, SyntaxError) and step.answer is not None:
                        self.no_python[step.answer] = where

    def _lose(self, what: str, lost: Lost) -> str:
        """Give the sandbox up; a sentence on what happened."""
        cause = self._sandbox.stop(ending=str(lost) == "its process ended")
        self._channel = None
        if cause == "memory":
            reason = "needed more memory than a submission may use"
        elif str(lost) == "timeout":
            reason = "did not end in time"
        elif cause:
            reason = f"ended its process ({cause})"
        else:
            reason = str(lost).replace("its process ended", "ended its process").replace("it wrote", "wrote")
        self._note(f"{what} {reason}; the sandbox was started again")
        return f"{what} {reason}"

    def _note(self, text: str) -> None:
        if text not in self._told and len(self._told) < 50:
            self._told.add(text)
            self._notes.append(text)

    def _request(self, message: dict[str, Any], what: str, full: float) -> Reply:
        """Ask and wait. Raises Lost."""
        channel = self._channel
        assert channel is not None
        channel.expect_silence()
        # Nobody can have an answer ready for a number that has not been drawn yet.
        number = secrets.token_hex(8)
        started = time.monotonic()
        deadline = started + self._patience.allowance(what, full)
        hung = False
        try:
            channel.send(message | {"id": number}, deadline)
            while True:
                reply = channel.receive(deadline)
                if "ask" in reply:
                    channel.send(self._right_value(reply, deadline), deadline)
                    continue
                if reply.get("id") != number or set(reply) not in ({"id", "value"}, {"id", "error"}):
                    raise Lost("it wrote to the grader unasked")
                if "error" in reply:
                    return Reply(error=wire.decode_error(reply["error"]))
                return Reply(wire.decode(reply["value"]))
        except wire.Malformed as error:
            raise Lost(f"it wrote to the grader what no answer is ({error})") from None
        except Lost as lost:
            hung = str(lost) == "timeout"
            raise
        finally:
            self._patience.spend(what, time.monotonic() - started, hung=hung)

    def _right_value(self, asked: dict[str, Any], deadline: float) -> dict[str, Any]:
        if set(asked) != {"ask", "arguments", "keywords"} or type(asked["ask"]) is not str:
            raise wire.Malformed("an unknown question")
        if self._references is None or asked["ask"] not in self._bound:
            raise wire.Malformed("a question that is not open")
        arguments, keywords = wire.decode(asked["arguments"]), wire.decode(asked["keywords"])
        if type(arguments) is not list or type(keywords) is not dict or any(type(key) is not str for key in keywords):
            raise wire.Malformed("an unknown question")
        return self._references.answer(asked["ask"], arguments, keywords, deadline)


def _raise_as_there(error: Exception) -> NoReturn:
    """Raise a student's exception so that its innermost frame is the student's: a check shows that line."""
    name, line = "<answer>", max(1, error.line)
    linecache.cache[name] = (0, None, [""] * (line - 1) + [error.source], name)
    code = compile("raise error", name, "exec").replace(co_name=error.function, co_firstlineno=line)
    try:
        exec(code, {"error": error})
    finally:
        del error
    raise AssertionError("the line above raises")


def proxy(name: str, call: Callable[[str, Sequence[Any], dict[str, Any]], Any]) -> Callable[..., Any]:
    """A function of ours that stands for the student's: arguments go out, plain data comes back."""

    def function(*arguments: Any, **keywords: Any) -> Any:
        return call(name, arguments, keywords)

    function.__name__ = function.__qualname__ = name
    return function
