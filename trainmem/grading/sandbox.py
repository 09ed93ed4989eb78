"""A sandbox for students' code: bubblewrap around a warm process that forks for each submission.

Bubblewrap gives the warm process a read-only system (``/usr``, the interpreter, the installed packages without the
course's own), no network, no environment, no home, and namespaces of its own. For each submission the warm process
forks, and the fork takes further namespaces (user, mount, PID, IPC), an empty scratch folder, resource limits and one
socket (`trainmem.grading.inside`). Killing the first process of that PID namespace ends all that it started.

Root's processes are counted against no limit, so where we are root the warm process becomes nobody first.
"""

import contextlib
import functools
import importlib.util
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

from trainmem.grading.inside import wire
from trainmem.grading.limits import Limits

Kind = Literal["bubblewrap", "none"]

_INSIDE = Path(__file__).with_name("inside")
_NOBODY = 65534
_PACKAGES = "*trainmem*"  # the course as installed: its folders, metadata and links to the repository
_SYSTEM_FILES = ("alternatives", "fonts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "nsswitch.conf")
_PRELOAD = ("numpy", "IPython", "IPython.display", "matplotlib.pyplot", "matplotlib_inline.backend_inline")
_ENVIRONMENT = {
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "MPLBACKEND": "Agg",
    "MPLCONFIGDIR": "/tmp/matplotlib",
    "IPYTHONDIR": "/tmp/ipython",
    # More threads than one would count as processes, and a fork must be single-threaded.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
_START_SECONDS = 60.0
_ANSWER_SECONDS = 15.0


class SandboxUnavailable(RuntimeError):
    """A sandbox cannot be had on this machine; the message says in one sentence what to install or switch on."""


class WarmProcessLost(SandboxUnavailable):
    """The warm process was ended from outside while a submission was in it: not the submission's fault."""


class Lost(Exception):
    """A submission's process has died, hung, or written what it was not asked for. The message says which."""


def _unavailable(detail: str) -> SandboxUnavailable:
    detail = " ".join(detail.split())[-300:] or "it ended without a word"
    return SandboxUnavailable(
        "students' code cannot be run safely here, so nothing was graded: bubblewrap could not make its namespaces "
        f"({detail}); allow unprivileged user namespaces (sysctl user.max_user_namespaces, "
        "kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0; in a container a runtime "
        'that permits them), or, on a machine made for one submission only, set sandbox = "none"'
    )


@functools.cache
def _package_folders() -> tuple[Path, ...]:
    """Folders with installed packages that a student may import."""
    found = [Path(entry) for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
    for module in ("numpy", "IPython"):
        spec = importlib.util.find_spec(module)
        if spec is None or spec.origin is None:
            raise SandboxUnavailable(f"students' cells cannot be run without {module}: install trainmem[grade]")
        found.append(Path(spec.origin).parent.parent)
    return tuple(dict.fromkeys(path.resolve() for path in found if path.is_dir()))


def _exists(user: int) -> bool:
    """Whether root can become this user. In a container's user namespace there may be none but root, who is no root."""
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        first, _, count = map(int, line.split())
        if first <= user < first + count:
            return True
    return False


def _course_folders() -> list[Path]:
    """The repository that this module lies in, where it was not installed among other packages."""
    folder = Path(__file__).resolve().parents[2]
    return [] if folder in _package_folders() else [folder]


def bubblewrap_command(hidden: Sequence[Path] = ()) -> list[str]:
    """The command line in front of the warm process's own. `hidden` folders are emptied where they would be seen.

    Raises SandboxUnavailable where bubblewrap is not installed.
    """
    program = shutil.which("bwrap")
    if not sys.platform.startswith("linux") or program is None:
        how = (
            "install bubblewrap (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap)"
            if sys.platform.startswith("linux")
            else "use a Linux machine or virtual machine with bubblewrap"
        )
        raise SandboxUnavailable(
            f"students' code cannot be run safely here, so nothing was graded: {how}, or, on a machine made for one "
            'submission only, set sandbox = "none"'
        )
    command = [program, "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    if os.getuid() == 0:
        # To become nobody; or, where there is no nobody, to give root another name in a submission's namespace.
        command += ["--cap-drop", "ALL"]
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETFCAP"):
            command += ["--cap-add", capability]
    else:
        command += ["--unshare-user"]
    command += ["--die-with-parent", "--new-session", "--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/") / name
        if path.is_symlink():
            command += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            command += ["--ro-bind", str(path), str(path)]
    for name in _SYSTEM_FILES:
        command += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    seen = [Path(f"/{name}") for name in ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")]
    hidden = [path.resolve() for path in (*hidden, *_course_folders()) if path.is_dir()]
    covered = [path for path in hidden if any(path.is_relative_to(root) for root in seen)]
    for path in covered:
        command += ["--tmpfs", str(path)]
    base = Path(sys.base_prefix).resolve()
    shown = [base / "bin", base / "lib", *_package_folders()]
    for path in shown:
        # What lies in a folder that has just been emptied is shown again.
        there = any(path.is_relative_to(root) for root in seen) and not any(map(path.is_relative_to, covered))
        if path.is_dir() and not there:
            # Made by the way, these would be closed to everybody but their owner.
            for parent in reversed(path.parents[:-1]):
                command += ["--dir", str(parent)]
            command += ["--ro-bind", str(path), str(path)]
            seen.append(path)
    for folder in dict.fromkeys([*_package_folders(), *map(Path, sys.path)]):
        if any(folder.resolve().is_relative_to(root) for root in seen):
            for path in sorted(folder.resolve().glob(_PACKAGES)):
                command += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", os.devnull, str(path)]
    for path in hidden:
        if path not in covered and any(path.is_relative_to(root) for root in seen):
            command += ["--tmpfs", str(path)]
    command += ["--ro-bind", str(_INSIDE), "/grader", "--chdir", "/tmp"]
    return [*command, "--remount-ro", "/dev", "--remount-ro", "/", "--"]


class Channel:
    """The grader's end of one submission's socket. Whatever comes from it is bounded, and tied to what was asked."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        end.setblocking(False)

    def close(self) -> None:
        self._end.close()

    def expect_silence(self) -> None:
        """Raise Lost where something has come that nobody asked for."""
        try:
            unasked = self._end.recv(1)
        except BlockingIOError:
            return
        except OSError as error:
            raise Lost("its process ended") from error
        raise Lost("it wrote to the grader unasked" if unasked else "its process ended")

    def send(self, message: dict[str, Any], deadline: float) -> None:
        """Send a frame before `deadline` (on the monotonic clock), or raise Lost."""
        rest = memoryview(wire.pack(message))
        while rest:
            try:
                rest = rest[self._end.send(rest) :]
            except BlockingIOError:
                self._wait(deadline, select.POLLOUT)
            except OSError as error:
                raise Lost("its process ended") from error

    def receive(self, deadline: float) -> dict[str, Any]:
        """The next frame before `deadline`, or raise Lost."""
        try:
            return wire.unpack(self._exactly(wire.body_size(self._exactly(4, deadline)), deadline))
        except wire.Malformed as error:
            raise Lost(f"it wrote to the grader what no answer is ({error})") from error

    def _exactly(self, count: int, deadline: float) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            try:
                part = self._end.recv(min(count - len(parts), 1 << 16))
            except BlockingIOError:
                self._wait(deadline, select.POLLIN)
                continue
            except OSError as error:
                raise Lost("its process ended") from error
            if not part:
                raise Lost("its process ended")
            parts += part
            # A trickle must not outlast the deadline either.
            if time.monotonic() > deadline and len(parts) < count:
                raise Lost("timeout")
        return bytes(parts)

    def _wait(self, deadline: float, event: int) -> None:
        left = deadline - time.monotonic()
        poll = select.poll()
        poll.register(self._end, event)
        if left <= 0 or not poll.poll(max(1, left * 1000)):
            raise Lost("timeout")


class Sandbox:
    """A warm process, and one submission at a time in a fork of it. Start and use it in one thread.

    `helpers`, `stubs` and `check_names` are what every student has been given: the notebook's first cell, the unsolved
    answers, and the names of the checks. Raises SandboxUnavailable where `kind` cannot be had on this machine.
    """

    def __init__(
        self,
        kind: Kind = "bubblewrap",
        limits: Limits | None = None,
        *,
        helpers: str = "",
        stubs: Sequence[str] = (),
        check_names: Sequence[str] = (),
        hidden: Sequence[Path] = (),
    ) -> None:
        if kind not in ("bubblewrap", "none"):
            raise ValueError(f'sandbox is "bubblewrap" or "none", not {kind!r}')
        self.kind: Kind = kind
        self.limits = limits or Limits()
        self._prepare = {"do": "prepare", "helpers": helpers, "stubs": list(stubs), "checks": list(check_names)}
        self._hidden = tuple(hidden)
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._channel: Channel | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the warm process unless it is there already."""
        if self._process is not None:
            return
        isolated = self.kind == "bubblewrap"
        ours, theirs = socket.socketpair()
        start = {
            "inside": "/grader" if isolated else str(_INSIDE),
            "site": [str(path) for path in _package_folders()],
            "control": theirs.fileno(),
            "isolated": isolated,
            "user": _NOBODY if isolated and os.getuid() == 0 and _exists(_NOBODY) else None,
            "preload": _PRELOAD,
        }
        # The interpreter itself, not a virtual environment's link to it, which may lie in a folder that is not shown.
        python = os.path.realpath(sys.executable)
        command = [python, "-I", "-S", "-B", f"{start['inside']}/warm.py", json.dumps(start)]
        if isolated:
            command = bubblewrap_command(self._hidden) + command
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
            env=_ENVIRONMENT,
            start_new_session=True,
        )
        theirs.close()
        self._control = ours
        try:
            self._hear(_START_SECONDS)
            self._tell(self._prepare)
            # A trial shows at once, and in one sentence, that forks cannot be isolated here.
            self.spawn(starting=True)
            self.stop()
        except (OSError, EOFError, wire.Malformed) as error:
            said = self._end()
            raise _unavailable(said or str(error)) from error
        except BaseException:
            self._end()
            raise

    def _hear(self, seconds: float) -> dict[str, Any]:
        assert self._control is not None
        self._control.settimeout(seconds)
        frame = self._control.recv(4, socket.MSG_WAITALL)
        if len(frame) < 4:
            raise EOFError("the warm process ended")
        return wire.unpack(self._control.recv(wire.body_size(frame), socket.MSG_WAITALL))

    def _tell(self, message: dict[str, Any], descriptor: int | None = None) -> dict[str, Any]:
        assert self._control is not None
        self._control.settimeout(_ANSWER_SECONDS)
        frame = wire.pack(message)
        answered = False
        try:
            if descriptor is None:
                self._control.sendall(frame)
            else:
                sent = socket.send_fds(self._control, [frame], [descriptor])
                self._control.sendall(frame[sent:])
            reply = self._hear(_ANSWER_SECONDS)
            answered = True
        finally:
            # Also where Ctrl-C or an alarm comes between: the next one to ask would get this one's answer.
            if not answered:
                self._control.close()
        return reply

    def spawn(self, *, starting: bool = False) -> Channel:
        """Fork for a submission; its channel. Raises SandboxUnavailable where its namespaces cannot be made."""
        if not starting:
            self.start()
        if self._channel is not None:
            self.stop()
        ours, theirs = socket.socketpair()
        with theirs:
            request = {"do": "spawn", "limits": self.limits.inside()}
            try:
                reply = self._tell(request, theirs.fileno())
            except (OSError, EOFError, wire.Malformed):
                if starting:
                    raise
                self._end()
                self.start()
                reply = self._tell(request, theirs.fileno())
        if reply["failure"]:
            ours.close()
            raise _unavailable(reply["failure"])
        self._channel = Channel(ours)
        return self._channel

    def stop(self, *, ending: bool = False) -> str | None:
        """Kill the submission's processes and scratch; ``"memory"`` where that had ended it, or ``"signal n"``.

        Raises WarmProcessLost where there is no warm process any more; the next `spawn` starts another.

        `ending`: its end of the channel is closed already, so its own end is worth a moment's waiting.
        """
        if self._channel is None:
            return None
        self._channel.close()
        self._channel = None
        try:
            reply = self._tell({"do": "stop", "ending": ending})
        except (OSError, EOFError, wire.Malformed):
            # Killing the warm process ends its PID namespace, and all submissions in it; the next spawn starts anew.
            self._end()
            raise WarmProcessLost(
                "the process that runs students' code was ended from outside; is there memory enough?"
            ) from None
        if reply["cause"]:
            return str(reply["cause"])
        status = reply["status"]
        return f"signal {status - 128}" if status and 128 < status < 193 else None

    def close(self) -> None:
        """End the warm process and everything in it."""
        self._end()

    def _end(self) -> str:
        """End the warm process; the last that it said on stderr."""
        process, self._process = self._process, None
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._control is not None:
            self._control.close()
            self._control = None
        if process is None:
            return ""
        said = b""
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL) if self.kind == "none" else process.kill()
            process.wait()
        if process.stderr is not None:
            os.set_blocking(process.stderr.fileno(), False)
            said = process.stderr.read() or b""
            process.stderr.close()
        return said.decode(errors="replace")

    def warm_pid(self) -> int | None:
        """The process id of bubblewrap, or of the warm process itself without it."""
        return self._process.pid if self._process else None
