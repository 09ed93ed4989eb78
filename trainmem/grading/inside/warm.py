"""The warm process: imports once what students import, then forks for each submission.

It is started inside bubblewrap with one socket, knows no check, no answer and no secret, and never runs a student's
code itself. A request comes as a frame on that socket:

``prepare``  compile the course's helper cell, keep the shapes of the stubs;
``spawn``    fork for one submission, whose own channel comes with the request;
``stop``     kill it with all that it started, and say how it ended.

Between requests it watches the memory that the submission's processes hold together.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from typing import Any

START = json.loads(sys.argv[1])
sys.path[:0] = [START["inside"]]
sys.path += START["site"]

import cells  # noqa: E402
import isolation  # noqa: E402
import wire  # noqa: E402

sys.path.remove(START["inside"])


def read(channel: socket.socket) -> dict[str, Any] | None:
    """The next message, or None where the other end is gone."""

    def exactly(count: int) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            part = channel.recv(count - len(parts))
            if not part:
                raise EOFError
            parts += part
        return bytes(parts)

    try:
        return wire.unpack(exactly(wire.body_size(exactly(4))))
    except (EOFError, ConnectionError):
        return None


def serve(channel: socket.socket, prepared: dict[str, Any]) -> None:
    """Run one submission: answer the grader's requests until it hangs up."""

    def ask(name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        channel.sendall(
            wire.pack({"ask": name, "arguments": wire.encode(list(arguments)), "keywords": wire.encode(keywords)})
        )
        told = read(channel)
        if told is None:
            os._exit(0)
        if "error" in told:
            raise wire.decode_error(told["error"])
        return wire.decode(told["value"])

    leader = os.getpid()
    notebook = cells.Notebook(prepared["helpers"], prepared["stubs"], prepared["checks"], ask)
    while (message := read(channel)) is not None:
        reply: dict[str, Any] = {"id": message["id"]}
        try:
            if message["do"] == "cell":
                notebook.cell(message["source"], message["bind"], message["capture"])
                reply["value"] = None
            elif message["do"] == "call":
                arguments, keywords = wire.decode(message["arguments"]), wire.decode(message["keywords"])
                reply["value"] = wire.encode(notebook.call(message["name"], tuple(arguments), keywords))
            frame = wire.pack(reply)
        except BaseException as error:
            frame = wire.pack({"id": message["id"], "error": wire.encode_error(error)})
        # A cell that forks comes back here twice.
        if os.getpid() != leader:
            os._exit(0)
        channel.sendall(frame)


def keep_only(channel: socket.socket) -> socket.socket:
    """Close every descriptor but this one; the standard ones lead nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    number = channel.detach()
    for target in (0, 1, 2):
        os.dup2(nowhere, target)
    if number != 3:
        os.dup2(number, 3)
    os.closerange(4, 1 << 20)
    return socket.socket(fileno=3)


def begin(channel: socket.socket, limits: dict[str, int], scratch: str, prepared: dict[str, Any]) -> None:
    """The last steps of a new submission's process before the student's code runs in it."""
    channel = keep_only(channel)
    os.chdir(scratch)
    os.environ.update(HOME=scratch, TMPDIR=scratch)
    tempfile.tempdir = None
    isolated = START["isolated"]
    isolation.limit(limits, count_processes=isolated)
    if isolated:
        isolation.drop_capabilities()
        isolation.forbid_system_calls()
    for name in ("cells", "isolation", "wire"):
        sys.modules.pop(name, None)
    try:
        serve(channel, prepared)
    finally:
        os._exit(0)


class Submission:
    """The processes of one submission, seen from outside."""

    def __init__(self, channel: socket.socket, limits: dict[str, int], prepared: dict[str, Any]) -> None:
        self.limits = limits
        self.cause: str | None = None
        self.scratch = "/tmp" if START["isolated"] else tempfile.mkdtemp(prefix="scratch-")
        reader, writer = os.pipe()
        self.keeper = os.fork()
        if self.keeper == 0:
            self._keep(channel, writer, prepared)
        os.close(writer)
        channel.close()
        with open(reader, "rb") as pipe:
            said = pipe.read().decode()
        self.leader = int(said) if said.isdigit() else 0
        self.failure = "" if self.leader else said or "the process ended early"

    def _keep(self, channel: socket.socket, writer: int, prepared: dict[str, Any]) -> None:
        """In the forked process: make the namespaces, fork their first process, and wait for its end."""
        try:
            if START["isolated"]:
                isolation.die_with_parent()
                isolation.new_namespaces(self.scratch, self.limits["scratch_bytes"])
            leader = os.fork()
            if leader == 0:
                os.setsid()
                begin(channel, self.limits, self.scratch, prepared)
            os.write(writer, str(leader).encode())
            os.close(writer)
            channel.close()
            _, status = os.waitpid(leader, 0)
            os._exit(min(255, 128 - code if (code := os.waitstatus_to_exitcode(status)) < 0 else code))
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.write(writer, (str(error) or repr(error)).encode())
        finally:
            os._exit(70)

    def stop(self, ending: bool) -> int | None:
        """Kill everything of this submission; its exit status (128 + n: signal n), None where it was still there.

        `ending`: it has let go of its channel, so it is given a moment to end by itself.
        """
        ended, status = os.waitpid(self.keeper, os.WNOHANG)
        for _ in range(20 if ending else 0):
            if ended:
                break
            time.sleep(0.002)
            ended, status = os.waitpid(self.keeper, os.WNOHANG)
        if not ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.leader or self.keeper, signal.SIGKILL)
            os.waitpid(self.keeper, 0)
        if not START["isolated"]:
            _end_descendants()
            shutil.rmtree(self.scratch, ignore_errors=True)
        self.leader = 0
        return os.waitstatus_to_exitcode(status) if ended else None

    def watch(self, base_pages: int) -> None:
        """Kill the submission where its processes hold more memory together than one may."""
        held = 0
        for process in _descendants() - {self.keeper}:
            with contextlib.suppress(OSError, ValueError):
                held += max(0, _resident_pages(process) - base_pages)
        if held * os.sysconf("SC_PAGE_SIZE") > self.limits["resident_bytes"] and self.leader:
            self.cause = "memory"
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.leader, signal.SIGKILL)


def _resident_pages(process: int | str) -> int:
    with open(f"/proc/{process}/statm") as file:
        return int(file.read().split()[1])


def _descendants() -> set[int]:
    """Every process that we started, and those that they did; Linux hands us the orphans among them."""
    parents: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as file:
            parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
    found = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {os.getpid()}


def _end_descendants() -> None:
    """Without namespaces: kill what the submission started and left behind."""
    while sys.platform.startswith("linux") and (left := _descendants()):
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def main() -> None:
    control = socket.socket(fileno=START["control"])
    linux = sys.platform.startswith("linux")
    if START["user"] is not None:
        os.chmod("/tmp", 0o1777)
        isolation.become(START["user"])
    if linux:
        isolation.hide_memory()
        isolation.adopt_orphans()
    for name in START["preload"]:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    prepared: dict[str, Any] = {"helpers": None, "stubs": set(), "checks": []}
    submission: Submission | None = None
    gc.collect()
    gc.freeze()
    base_pages = _resident_pages("self") if linux else 0
    control.sendall(wire.pack({"ready": True}))
    while True:
        if submission is not None and linux and not select.select([control], [], [], 0.1)[0]:
            submission.watch(base_pages)
            continue
        header, descriptors, _, _ = socket.recv_fds(control, 4, 1)
        if len(header) < 4:
            break
        message = wire.unpack(control.recv(wire.body_size(header), socket.MSG_WAITALL))
        if message["do"] == "prepare":
            prepared = {
                "helpers": compile(message["helpers"], "<helpers>", "exec", dont_inherit=True),
                "stubs": {cells.shape(stub) for stub in message["stubs"]},
                "checks": message["checks"],
            }
            gc.freeze()
            reply: dict[str, Any] = {}
        elif message["do"] == "spawn":
            submission = Submission(socket.socket(fileno=descriptors[0]), message["limits"], prepared)
            reply = {"failure": submission.failure}
        else:
            status = submission.stop(message["ending"]) if submission else None
            reply = {"status": status, "cause": submission.cause if submission else None}
            submission = None
        control.sendall(wire.pack(reply))
    if submission is not None:
        submission.stop(False)


if __name__ == "__main__":
    main()
