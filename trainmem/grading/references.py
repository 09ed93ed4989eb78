"""Values of the right functions for a sandbox that asks: called in a process of their own.

The arguments come from a student's process. A right function given a length of 10^12 would take this process with it,
so a fork of it computes, under limits of its own, and is replaced when it is lost.
"""

import contextlib
import functools
import inspect
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from trainmem.grading.inside import isolation, wire
from trainmem.grading.sandbox import Channel, Lost

_CALL_SECONDS = 2.0
_MEMORY_BYTES = 1 << 30


class References:
    """The right functions by name, each call bounded by `_CALL_SECONDS` and `_MEMORY_BYTES` above what we hold."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        self._functions = dict(functions)
        self._process: int | None = None
        self._channel: Channel | None = None

    def answer(self, name: str, arguments: list[Any], keywords: dict[str, Any], deadline: float) -> dict[str, Any]:
        """``{"value": …}`` or ``{"error": …}`` as it goes over the wire, for decoded plain arguments."""
        if self._channel is None:
            self._start()
        assert self._channel is not None
        deadline = min(deadline, time.monotonic() + _CALL_SECONDS)
        try:
            asked = {"name": name, "arguments": wire.encode(arguments), "keywords": wire.encode(keywords)}
            self._channel.send(asked, deadline)
            return self._channel.receive(deadline)
        except (Lost, OverflowError):
            self.close()
            return {"error": wire.encode_error(OverflowError(f"{name} was asked for too much"))}

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
        if self._channel is not None:
            self._channel.close()
        self._process = self._channel = None

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        self._process = os.fork()
        if self._process == 0:
            try:
                ours.close()
                self._serve(theirs)
            finally:
                os._exit(0)
        theirs.close()
        self._channel = Channel(ours)

    def _serve(self, end: socket.socket) -> None:
        if sys.platform.startswith("linux"):
            isolation.die_with_parent()
            with open("/proc/self/statm") as file:
                held = int(file.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (held + _MEMORY_BYTES,) * 2)
        while True:
            header = end.recv(4, socket.MSG_WAITALL)
            if len(header) < 4:
                return
            asked = wire.unpack(end.recv(wire.body_size(header), socket.MSG_WAITALL))
            try:
                function = self._functions[asked["name"]]
                arguments, keywords = fitting(function, wire.decode(asked["arguments"]), wire.decode(asked["keywords"]))
                frame = wire.pack({"value": wire.encode(function(*arguments, **keywords))})
            except Exception as error:
                frame = wire.pack({"error": wire.encode_error(error)})
            end.sendall(frame)


@functools.cache
def _parameters(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


def fitting(
    function: Callable[..., Any], arguments: list[Any], keywords: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The part of a call that `function` knows: a student's own version may take more, and pass it on."""
    parameters = _parameters(function)
    kept = arguments[: len(parameters)]
    taken = parameters[: len(kept)]
    named = {name: value for name, value in keywords.items() if name in parameters and name not in taken}
    return kept, named
