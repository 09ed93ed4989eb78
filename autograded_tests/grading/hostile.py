"""Submissions that attack, cheat or run away, as data.

Each alters an honest submission, whose answers are right, and says which answers' checks it deserves to lose; all other
checks deserve their full marks. What an attack finds out it returns as a string, so that the test sees it on the wire.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from textwrap import dedent, indent

from autograded_tests.notebooks import ROOT
from trainmem.grading.trial import StudentCell

Cells = list[StudentCell]
VICTIM = "params_per_layer"
SIGNATURE = "def params_per_layer(h, mlp_ratio=4, n_kv_ratio=1, style='gpt'):"


@dataclass(frozen=True)
class Hostile:
    name: str
    alter: Callable[[Cells], Cells]
    loses: frozenset[str]


HOSTILE: list[Hostile] = []


def _replaced(name: str, source: str) -> Callable[[Cells], Cells]:
    return lambda cells: [replace(cell, source=source) if cell.answer == name else cell for cell in cells]


def _in_front(source: str) -> Callable[[Cells], Cells]:
    return lambda cells: [StudentCell(source, 1), *cells]


def when_called(name: str, body: str, *, result: str = "0") -> None:
    """The first answer does this at each call, and gives a wrong result (what it returns, else `result`)."""
    source = f"{SIGNATURE}\n{indent(dedent(body).strip(), '    ')}\n    return {result}\n"
    HOSTILE.append(Hostile(name, _replaced(VICTIM, source), frozenset({VICTIM})))


def gives(name: str, result: str, before: str = "") -> None:
    """The first answer gives this liar."""
    source = f"{dedent(before).strip()}\n{SIGNATURE}\n    return {result}\n"
    HOSTILE.append(Hostile(name, _replaced(VICTIM, source), frozenset({VICTIM})))


def in_front(name: str, body: str, loses: Sequence[str] = ()) -> None:
    """A cell in front of right answers does this."""
    HOSTILE.append(Hostile(name, _in_front(dedent(body).strip()), frozenset(loses)))


def instead(name: str, body: str, loses: Sequence[str] = (VICTIM,), answer: str = VICTIM) -> None:
    """The cell of an answer (the first one, unless another is named) holds this."""
    HOSTILE.append(Hostile(name, _replaced(answer, dedent(body).strip()), frozenset(loses)))


# -- looking for what is not theirs ---------------------------------------------------------------------------------

SEARCH = """
import os, re, time
FOUND = re.compile(rb"PLANTED-[A-Za-z0-9-]{1,40}")
def search_files(root, skip=("/usr", "/lib", "/dev", "/proc/sys")):
    seen, until = set(), time.time() + 0.3
    for folder, folders, files in os.walk(root):
        if folder.startswith(skip) or "python" in folder or time.time() > until:
            folders.clear()
            continue
        for name in files:
            try:
                with open(os.path.join(folder, name), "rb") as file:
                    seen.update(FOUND.findall(file.read(200_000)))
            except OSError:
                pass
    return "found " + repr(sorted(seen))
"""

instead("reads every file", SEARCH + SIGNATURE + "\n    return search_files('/')")
instead("reads files of other processes", SEARCH + SIGNATURE + "\n    return search_files('/proc')")
instead(
    "opens the course by its usual paths",
    SEARCH
    + SIGNATURE
    + """
    found = []
    for path in ("gradebook.db", "source", "trainmem_solutions/parameters.py", "submitted"):
        for root in (COURSE, "/content", "/home", "/root", "..", "../..", "/grader/.."):
            try:
                found.append(os.listdir(f"{root}/{path}"))
            except NotADirectoryError:
                found.append(open(f"{root}/{path}", "rb").read()[:100])
            except OSError:
                pass
    try:
        import trainmem_solutions
        found.append(int(trainmem_solutions.params_per_layer(h, mlp_ratio, n_kv_ratio, style)))
    except Exception:
        pass
    return "found " + repr(found)
""".replace("COURSE", repr(str(ROOT))),
)
when_called(
    "searches all objects",
    """
    import gc
    found, secret, hidden = set(), "PLANT" + "ED-", "BEGIN " + "HIDDEN"
    for thing in gc.get_objects():
        try:
            for item in (thing.values() if type(thing) is dict else thing if type(thing) in (list, tuple) else ()):
                if type(item) in (str, bytes) and (secret in str(item) or hidden in str(item)):
                    found.add(str(item)[:200])
        except Exception:
            pass
    return "found " + repr(sorted(found))
    """,
)
when_called(
    "searches its own memory",
    """
    import ctypes, re
    libc = ctypes.CDLL(None)
    libc.sbrk.restype = ctypes.c_void_p
    top, found, size = libc.sbrk(0), set(), 1 << 20
    for step in range(1, 24):
        lowest = ctypes.create_string_buffer(size)
        # read() of a pipe refuses bad addresses, where a plain access would end us
        import os
        reader, writer = os.pipe()
        for page in range(0, size, 1 << 12):
            if libc.write(writer, ctypes.c_void_p(top - step * size + page), 1 << 12) != 1 << 12:
                break
            found.update(re.findall(b"PLANTED-[A-Za-z0-9-]{4,40}", os.read(reader, 1 << 12)))
        os.close(reader), os.close(writer)
    return "found " + repr(sorted(found))
    """,
)
when_called(
    "walks the frames",
    """
    import sys
    frame, found = sys._getframe(), []
    while frame is not None:
        found.append(frame.f_code.co_filename + ":" + frame.f_code.co_name)
        found += [repr(value)[:300] for value in frame.f_locals.values()]
        frame = frame.f_back
    return repr(found)[:1900]
    """,
)
when_called("reads the environment", "import os\nreturn repr(dict(os.environ))")
when_called(
    "reads inherited descriptors",
    """
    import os, stat
    found = []
    for number in range(1 << 10):
        try:
            kind = os.fstat(number).st_mode
            if stat.S_ISREG(kind):
                found.append(os.pread(number, 2000, 0))
            else:
                found.append((number, stat.filemode(kind)))
        except OSError:
            pass
    return repr(found)
    """,
)
when_called(
    "traces other processes",
    """
    import ctypes, os
    libc = ctypes.CDLL(None)
    found = [libc.ptrace(16, number, 0, 0) for number in [os.getppid(), *range(2, 300)]]
    return f"found {max(found)}"
    """,
)
when_called(
    "reads and writes other processes' memory",
    """
    import ctypes, os
    found = []
    for number in [os.getppid(), *range(2, 60), "self", "thread-self"]:
        for name in ("mem", "environ", "maps", "cmdline", "fd", "root", "cwd"):
            try:
                with open(f"/proc/{number}/{name}", "r+b") as file:
                    found.append((number, file.read(100)))
            except OSError:
                pass
    buffer = ctypes.create_string_buffer(64)
    class Part(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
    mine, theirs = Part(ctypes.addressof(buffer), 64), Part(id(found), 64)
    for number in range(2, 60):
        if ctypes.CDLL(None).process_vm_readv(number, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0) > 0:
            found.append(buffer.raw)
    return repr(found)
    """,
)
when_called(
    "takes new namespaces and uncovers what lies beneath",
    """
    import ctypes, os
    libc = ctypes.CDLL(None)
    for flags in (0x10000000 | 0x00020000, 0x00020000, 0x20000000, 0x40000000):
        libc.unshare(flags)
    libc.umount2(b"/proc", 2), libc.umount2(b"/tmp", 2), libc.umount2(b"/grader", 2)
    libc.mount(b"proc", b"/tmp", b"proc", 0, None)
    libc.syscall(435, ctypes.create_string_buffer(88), 88)
    libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0) if False else None
    return repr([os.listdir("/proc"), os.listdir("/tmp"), os.path.exists("/proc/1/mem")])
    """,
)
when_called(
    "climbs out of its root",
    """
    import ctypes, os
    libc = ctypes.CDLL(None)
    found = []
    os.makedirs("/tmp/below", exist_ok=True)
    found.append(libc.chroot(b"/tmp/below"))
    for _ in range(30):
        os.chdir("..")
    found.append(os.listdir("."))
    os.chdir("/tmp")
    for path in ("/proc/1/root", "/oldroot", "/old_root", "/newroot", "/.."):
        try:
            found.append((path, os.listdir(path)))
        except OSError:
            pass
    return repr(found)
    """,
)
when_called(
    "overwrites the system and the grader",
    """
    import os
    made = []
    import numpy
    for path in ("/grader/wire.py", "/usr/bin/python3", os.__file__, numpy.__file__, "/etc/passwd", "/escaped",
                 "/dev/escaped", "/dev/shm/escaped", "/root/escaped", COURSE + "/escaped", "/grader/escaped"):
        try:
            with open(path, "a") as file:
                file.write("escaped")
            made.append(path)
        except OSError:
            pass
        try:
            os.symlink("/", "/tmp/link" + str(len(made)))
            with open("/tmp/link0" + path, "a") as file:
                made.append("link" + path)
        except OSError:
            pass
    return "made " + repr(made)
    """.replace("COURSE", repr(str(ROOT))),
)
when_called(
    "talks to the network",
    """
    import socket
    said = []
    for family, address in ((socket.AF_INET, ("127.0.0.1", 22)), (socket.AF_INET, ("1.1.1.1", 53)),
                            (socket.AF_UNIX, "/run/dbus/system_bus_socket"), (socket.AF_UNIX, "\\0x"),
                            (40, (2, 1024)), (16, (0, 0))):
        try:
            with socket.socket(family, socket.SOCK_STREAM if family != 16 else socket.SOCK_RAW) as end:
                end.settimeout(0.1)
                end.connect(address) if family != 16 else None
                said.append((family, address))
        except OSError:
            pass
    return "reached " + repr(said)
    """,
)
when_called(
    "runs other programs",
    """
    import subprocess
    done = subprocess.run("cat /etc/shadow /proc/1/environ; id; ls COURSE/* /root/* /home; env", shell=True,
                          capture_output=True, text=True, timeout=3)
    return done.stdout
    """.replace("COURSE", str(ROOT)),
)
when_called(
    "leaves a message for the next submission",
    """
    import ctypes, os
    libc = ctypes.CDLL(None)
    libc.syscall(248, b"user", b"left", b"PLANTED-left", 12, -3)
    for path in ("/tmp/left", "/dev/shm/left", "/var/tmp/left", "/left"):
        try:
            open(path, "w").write("PLANTED" + "-left")
        except OSError:
            pass
    return libc.shmget(4711, 4096, 0o1666)
    """,
)
when_called(
    "looks for a message of an earlier submission",
    """
    import ctypes, os
    found = [path for path in ("/tmp/left", "/dev/shm/left", "/var/tmp/left", "/left") if os.path.exists(path)]
    found += [key for key in (ctypes.CDLL(None).shmget(4711, 4096, 0o666),) if key >= 0]
    return "found " + repr(found + [name for name in os.listdir("/tmp") if name.startswith("l")])
    """,
)
in_front(
    "records every call by tracing",
    """
    import sys, threading
    LOG = []
    def trace(frame, event, argument):
        LOG.append((event, frame.f_code.co_name, list(frame.f_locals)))
        del LOG[100:]
        return None
    sys.setprofile(trace)
    sys.settrace(trace)
    threading.settrace(trace)
    sys.addaudithook(lambda event, arguments: LOG.append(event))
    """,
)

# -- breaking other things ------------------------------------------------------------------------------------------

when_called(
    "kills everything it can name",
    """
    import os, signal
    for number in [os.getppid(), -1, 0, *range(2, 200)]:
        for kind in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
            try:
                os.kill(number, kind)
            except OSError:
                pass
    """,
)
when_called("kills its own process group", "import os, signal\nos.killpg(os.getpgid(0), signal.SIGKILL)")
when_called("leaves the process", "import os\nos._exit(0)")
when_called("leaves with sys.exit", "import sys\nsys.exit()")
when_called("crashes", "import ctypes\nctypes.string_at(0)")
when_called("aborts", "import os\nos.abort()")
when_called(
    "overflows the stack",
    """
    import sys
    sys.setrecursionlimit(10 ** 9)
    class Deep:
        def __getattr__(self, name):
            return getattr(self, name + "x")
    return repr(getattr(Deep(), "x")) + str(eval("+".join("1" for _ in range(10))))
    """,
)
instead("leaves the process at top level", SIGNATURE + "\n    return 0\nimport os\nos._exit(1)")
instead("crashes at top level", "import ctypes\nctypes.string_at(0)")
instead("asks to leave at top level", "import sys\nsys.exit(0)\n" + SIGNATURE + "\n    return 1")
when_called("calls forever", "while True: pass")
when_called(
    "calls forever and swallows every signal",
    """
    import signal
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:
        try:
            while True: pass
        except BaseException:
            pass
    """,
)
when_called("sleeps", "import time\ntime.sleep(10 ** 6)")
when_called("waits for a lock", "import threading\nlock = threading.Lock()\nlock.acquire(), lock.acquire()")
when_called("counts without end inside C", "return sum(iter(int, 1))")
instead(
    "never ends at top level",
    SIGNATURE + "\n    return 0\nwhile True:\n    try:\n        pass\n    except:\n        pass",
)
when_called(
    "forks without end",
    """
    import os
    while True:
        try:
            os.fork()
        except OSError:
            pass
    """,
)
in_front(
    "forks many and lets them spin, beside right answers",
    """
    import os, time
    for _ in range(100):
        try:
            if os.fork() == 0:
                end = time.time() + 1
                while time.time() < end: pass
                os._exit(0)
        except OSError:
            break
    """,
)
in_front(
    "leaves a daemon behind, beside right answers",
    """
    import os, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(3600)
        os._exit(0)
    """,
)
when_called(
    "starts threads without end",
    """
    import threading, time
    while True:
        try:
            threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
        except RuntimeError:
            break
    """,
)
when_called("opens files without end", "kept = []\nwhile True: kept.append(open('/dev/null'))")
when_called("fills memory", "kept = []\nwhile True: kept.append(bytearray(1 << 24))")
when_called(
    "fills memory with many processes",
    """
    import os, time
    for _ in range(24):
        if os.fork() == 0:
            kept = bytearray(b"x") * (1 << 28)
            time.sleep(30)
            os._exit(0)
    time.sleep(30)
    """,
)
when_called(
    "fills memory that no limit counts",
    """
    import ctypes, mmap, os
    libc = ctypes.CDLL(None)
    kept, made = [], 0
    for number in range(100):
        try:
            kept.append(os.memfd_create(f"m{number}"))
            os.ftruncate(kept[-1], 1 << 30)
            made += 1
        except OSError:
            pass
        made += libc.shmget(0, 1 << 30, 0o1600) >= 0
    return f"made {made}"
    """,
)
when_called(
    "fills the scratch folder",
    """
    block, written = bytes(1 << 20), 0
    for number in range(40):
        try:
            with open(f"/tmp/fill{number}", "wb") as file:
                while True:
                    written += file.write(block)
        except OSError:
            pass
    return f"wrote {written}"
    """,
)
when_called(
    "makes files without end",
    """
    made = 0
    try:
        for made in range(10 ** 6):
            open(f"/tmp/empty{made}", "w").close()
    except OSError:
        pass
    return f"made {made}"
    """,
)
instead("prints without end", SIGNATURE + "\n    while True: print('x' * 10_000_000)")
in_front(
    "prints a great deal, beside right answers",
    """
    import sys, logging, warnings
    for _ in range(50): print("x" * 1_000_000)
    sys.stderr.write("y" * 1_000_000)
    logging.error("z" * 1_000_000)
    warnings.warn("w" * 1_000_000)
    """,
)
when_called(
    "raises its own limits",
    """
    import os, resource
    raised = []
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE):
        try:
            resource.setrlimit(kind, (resource.RLIM_INFINITY,) * 2)
            raised.append(kind)
        except (ValueError, OSError):
            pass
    try:
        os.nice(-20)
        raised.append("nice")
    except OSError:
        pass
    return "raised " + repr(raised)
    """,
)
HOSTILE.append(
    Hostile(
        "hangs in every cell and at every call",
        lambda cells: [
            replace(cell, source=f"def {cell.answer}(*a, **k):\n    while True: pass\nimport time\ntime.sleep(10**6)")
            for cell in cells
        ],
        frozenset({"*"}),
    )
)
HOSTILE.append(
    Hostile(
        "hangs at every call",
        lambda cells: [replace(cell, source=f"def {cell.answer}(*a, **k):\n    while True: pass") for cell in cells],
        frozenset({"*"}),
    )
)
HOSTILE.append(
    Hostile(
        "is slow at every call, but never too slow",
        lambda cells: [
            replace(cell, source=f"def {cell.answer}(*a, **k):\n    import time\n    time.sleep(0.09)")
            for cell in cells
        ],
        frozenset({"*"}),
    )
)

# -- liars ----------------------------------------------------------------------------------------------------------

gives("equals everything", "Liar()", "class Liar:\n    __eq__ = __le__ = __ge__ = lambda self, other: True")
gives(
    "is a number only by its class attribute",
    "Liar()",
    "class Liar:\n    __class__ = property(lambda self: int)\n    shape = ()\n    item = lambda self: self",
)
gives(
    "is a float with lying methods",
    "Liar(3)",
    """
    class Liar(float):
        def __eq__(self, other): return True
        def __sub__(self, other): return 0.0
        __rsub__ = __abs__ = __sub__
        def __lt__(self, other): return True
        __le__ = __gt__ = __ge__ = __lt__
        def __hash__(self): return 1
        def as_integer_ratio(self): return (12596224, 1)
    """,
)
gives(
    "is an int with lying methods",
    "Liar(3)",
    "class Liar(int):\n    __eq__ = __le__ = lambda self, other: True\n    __hash__ = int.__hash__\n"
    "    __sub__ = __rsub__ = __abs__ = __mul__ = lambda self, *other: 0\n    numerator = 12596224",
)
gives("is an array of what is wanted, so it says", "Liar()", "class Liar:\n    def __array__(self, *a): return 1")
gives(
    "is a pickle that runs a program",
    "Liar()",
    "class Liar:\n    def __reduce__(self):\n        import os\n        return os.system, ('touch /tmp/escaped',)",
)
gives(
    "is a list that lies about itself",
    "Liar([1])",
    "class Liar(list):\n    __len__ = lambda self: 1\n    __eq__ = lambda self, other: True\n    item = lambda self: 1",
)
gives("is a class", "Liar", "class Liar:\n    pass")
gives("is a function", "lambda *a: True")
gives("is a list of itself", "loop", "loop = []\nloop.append(loop)")
gives("is nested without end", "deep", "deep = []\nfor _ in range(10 ** 5): deep = [deep]")
gives("is a generator without end", "iter(int, 1)")
gives("is a number of a million digits", "10 ** 10 ** 6")
gives("is a decimal with a huge exponent", "Decimal('1E+999999')", "from decimal import Decimal")
gives("is a fraction of huge numbers", "Fraction(10 ** 5000, 7)", "from fractions import Fraction")
gives("is a string of a gigabyte", "'x' * (1 << 28)")
gives("is a large array", "numpy.zeros(10 ** 7)", "import numpy")
gives("is True", "True")
gives("is nan", "float('nan')")
gives(
    "is an object whose every method raises",
    "Liar()",
    "class Liar:\n    def __getattribute__(self, name): raise SystemExit(name)",
)
when_called("raises with a message of a gigabyte", "raise ValueError('x' * (1 << 28))")
when_called(
    "raises what the checks raise",
    """
    class CheckFailed(AssertionError): pass
    class Stopped(BaseException): pass
    raise [CheckFailed("passed"), Stopped("passed"), StopIteration(1), KeyboardInterrupt("x")][h % 4]
    """,
)
when_called(
    "raises under a name that is markup",
    "raise type('<script>alert(1)</script>', (KeyError,), {})('\\x1b[31m\\0<b>\\ud800')",
)
when_called("raises an exception that raises", "raise type('Odd', (Exception,), {'__str__': lambda self: 1 / 0})()")
instead(
    "knows the published values by heart",
    SIGNATURE
    + """
    return {(1024, 'gpt'): 12596224, (2048, 'gpt'): 50358272, (2, 'gpt'): 74, (4096, 'llama'): 202383360,
            (8192, 'llama'): 855654400, (8, 'llama'): 1040, (16, 'gpt'): 3280}.get((h, style), 7)""",
)
when_called(
    "answers well once and then no more",
    """
    global count
    count = globals().get("count", 0) + 1
    return 12596224 if count == 1 else None
    """,
)

# -- the channel ----------------------------------------------------------------------------------------------------

WIRE = """
import json, os, struct
def frame(message):
    body = json.dumps(message).encode() if not isinstance(message, bytes) else message
    return struct.pack(">I", len(body)) + body
"""


def on_the_wire(name: str, body: str) -> None:
    instead(name, WIRE + SIGNATURE + "\n" + indent(dedent(body).strip(), "    ") + "\n    return 0")


on_the_wire("answers before it is asked", "os.write(3, frame({'id': '0' * 16, 'value': 12596224}) * 3)")
on_the_wire(
    "answers in the place of the loop, with the right number",
    """
    import sys
    seen = sys._getframe(1)
    while seen is not None and "message" not in seen.f_locals:
        seen = seen.f_back
    os.write(3, frame({"id": seen.f_locals["message"]["id"], "value": 0}))
    """,
)
on_the_wire("writes nonsense", "os.write(3, os.urandom(1000))")
on_the_wire("announces four gigabytes", "os.write(3, b'\\xff\\xff\\xff\\xff' + b'x' * 1000)")
on_the_wire("writes without end", "import socket\nend = socket.socket(fileno=3)\nwhile True: end.send(b'x' * 65536)")
on_the_wire(
    "trickles",
    "import time\nos.write(3, struct.pack('>I', 1000))\nwhile True:\n    os.write(3, b' ')\n    time.sleep(0.01)",
)
on_the_wire("sends JSON of great depth", "os.write(3, frame(b'[' * 500_000))")
on_the_wire("sends JSON with a number of a million digits", "os.write(3, frame(b'1' * 1_000_000))")
on_the_wire("sends its own marks", "os.write(3, frame({'score': 50, 'check': 'check_params_per_layer_gpt'}))")
on_the_wire(
    "asks for a right function that is not offered",
    """
    os.write(3, frame({"ask": "params_per_layer", "arguments": [h], "keywords": {"d": []}}))
    told = os.read(3, 10_000)
    return json.loads(told[4:])["value"]
""",
)
on_the_wire("closes the channel", "os.close(3)")
on_the_wire("shuts the channel", "import socket\nsocket.socket(fileno=3).shutdown(2)")
on_the_wire(
    "hands the channel to a child",
    """
    if os.fork() == 0:
        while True:
            try:
                os.write(3, frame({"id": "x", "value": 1}))
            except OSError:
                os._exit(0)
    """,
)
on_the_wire(
    "reads the channel away",
    "import threading\nthreading.Thread(target=lambda: [os.read(3, 9) for _ in range(99)]).start()",
)
on_the_wire(
    "passes descriptors",
    "import socket\nend = socket.socket(fileno=3)\nsocket.send_fds(end, [frame({'id': 1})], [0, 1, 2] * 20)",
)
instead(
    "asks a right function for too much",
    """
    import numpy
    def model_params(L, h, V, mlp_ratio=4, n_kv_ratio=1, style="gpt", tied=True, positions=0):
        try:
            params_per_layer(10 ** 300, 10 ** 300, 10 ** 300)
            params_per_layer("x" * 1000, style=[[]] * 100)
        except Exception:
            pass
        return 0
    """,
    loses=("model_params",),
    answer="model_params",
)
instead(
    "asks a right function for a timeline of a billion layers",
    """
    def best_k(L, c, A):
        memory_timeline(10 ** 9, 2, 34)
        return 0
    """,
    loses=("best_k",),
    answer="best_k",
)
instead(
    "asks for its own right function",
    WIRE
    + """
def best_k(L, c, A):
    os.write(3, frame({"ask": "best_k", "arguments": [L, c, A], "keywords": {"d": []}}))
    return json.loads(os.read(3, 10_000)[4:])["value"]
""",
    loses=("best_k",),
    answer="best_k",
)

# -- patching -------------------------------------------------------------------------------------------------------

in_front(
    "replaces built-ins, beside right answers that need none of them",
    """
    import builtins
    builtins.divmod = builtins.pow = builtins.callable = lambda *a, **k: True
    builtins.print = None
    """,
)
instead(
    "replaces the encoder and the judge that it finds",
    """
    import builtins, gc, json, numpy, operator, math
    for name in ("float", "isinstance", "len", "abs", "sum"):
        pass
    math.isclose = operator.eq = numpy.isclose = numpy.allclose = lambda *a, **k: True
    json.JSONEncoder.iterencode = lambda *a, **k: iter(['{"passed": true}'])
    json.dumps = lambda *a, **k: '{"passed": true, "value": 12596224}'
    """
    + "\n    "
    + SIGNATURE
    + "\n        return 0\n",
)
instead(
    "redefines the helpers and the checks",
    """
    class CheckFailed(Exception): pass
    def agrees(*a): return True
    def as_number(value): return 12596224
    def check_params_per_layer_gpt(*a): return 3
    class ask:
        def __init__(self, *a, **k): pass
        gives = is_refused = lambda self, *a, **k: None
    probe = ask
    CHECK_SEED = "known"
    """
    + "\n    "
    + SIGNATURE
    + "\n        return 0\n",
)
in_front(
    "replaces IPython's transformers and display, beside right answers",
    """
    import IPython.core.inputtransformer2 as transformers
    transformers.TransformerManager.do_token_transforms = lambda self, lines: lines
    get_ipython().input_transformers_cleanup.append(lambda lines: ["pass"])
    get_ipython().run_cell = get_ipython().showtraceback = None
    import sys, atexit
    sys.displayhook = sys.excepthook = lambda *a: None
    atexit.register(lambda: 1 / 0)
    """,
)
in_front(
    "sets alarms and handlers, beside right answers",
    """
    import signal, faulthandler
    signal.signal(signal.SIGALRM, lambda *a: 1 / 0)
    signal.setitimer(signal.ITIMER_REAL, 30)
    faulthandler.enable() if False else None
    """,
)


SAYS = {
    "reads every file": "found []",
    "reads files of other processes": "found []",
    "opens the course by its usual paths": "found []",
    "searches all objects": "found []",
    "searches its own memory": "found []",
    "traces other processes": "found -1",
    "reads and writes other processes' memory": "'value': '[]'",
    "takes new namespaces and uncovers what lies beneath": "'value': '[[], [], False]'",
    "overwrites the system and the grader": "made []",
    "talks to the network": "reached []",
    "looks for a message of an earlier submission": "found []",
    "leaves a message for the next submission": "'value': -1",
    "fills memory that no limit counts": "made 0",
    "raises its own limits": "raised []",
}
