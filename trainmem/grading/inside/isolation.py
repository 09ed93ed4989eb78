"""What a process gives up before a student's code runs in it: namespaces, capabilities, system calls, resources.

Linux only, through the C library: Python's own calls for this came with 3.12. Bubblewrap has built the read-only
system around us already; this adds what must be new for each submission.
"""

import ctypes
import os
import platform
import resource
import struct
from typing import Any

_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID = 0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000
_ANY_NAMESPACE = 0x7E020000
_NOSUID, _NODEV, _NOEXEC, _RDONLY, _REC, _PRIVATE = 2, 4, 8, 1, 16384, 1 << 18
_SET_DUMPABLE, _SET_SECCOMP, _SET_SUBREAPER, _SET_NO_NEW_PRIVS, _SET_PDEATHSIG = 4, 22, 36, 38, 1
_EPERM, _ENOSYS, _SIGKILL, _NOBODY = 1, 38, 9, 65534

# Not in the way of any answer; each is a way to memory that no limit counts, to other processes, or to a wider kernel.
# (name: x86_64, aarch64)
_FORBIDDEN = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "sched_setaffinity": (203, 122),
    "semget": (64, 190),
    "setns": (308, 268),
    "shmat": (30, 196),
    "shmget": (29, 194),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
# (audit architecture, column above, clone, clone3, socket)
_ARCHITECTURES = {"x86_64": (0xC000003E, 0, 56, 435, 41), "aarch64": (0xC00000B7, 1, 220, 435, 198)}
_FAMILIES = (1, 2, 10)  # unix, inet, inet6; the network namespace is empty, but vsock and others know no namespace

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _prctl(option: int, value: Any = 0, extra: Any = 0) -> None:
    arguments = [ctypes.c_ulong(value) if isinstance(value, int) else value]
    arguments += [ctypes.c_ulong(extra) if isinstance(extra, int) else extra]
    _checked(_libc.prctl(option, *arguments, ctypes.c_ulong(0), ctypes.c_ulong(0)), f"prctl {option}")


def hide_memory() -> None:
    """Let no process of the same user trace this one or open its memory."""
    _prctl(_SET_DUMPABLE, 0)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent has gone."""
    _prctl(_SET_SUBREAPER, 1)


def die_with_parent() -> None:
    _prctl(_SET_PDEATHSIG, _SIGKILL)


def become(user: int) -> None:
    """Stop being root: root's processes are not counted against any limit."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def _mount_tmpfs(target: str, flags: int, options: str) -> None:
    _checked(_libc.mount(b"tmpfs", target.encode(), b"tmpfs", flags, options.encode()), f"mount {target}")


def new_namespaces(scratch: str, scratch_bytes: int) -> None:
    """Move this process into its own user, mount, IPC and host-name namespaces, and its next child into a new PID one.

    Afterwards `scratch` is empty and holds at most `scratch_bytes`, and ``/proc`` is empty: the one that lies beneath
    shows the parent. (A mount that a less privileged namespace inherits cannot be taken away there.)
    """
    user, group = os.getuid(), os.getgid()
    # The maps below belong to root as long as the memory is hidden.
    _prctl(_SET_DUMPABLE, 1)
    _checked(_libc.unshare(_NEWUSER | _NEWNS | _NEWIPC | _NEWUTS | _NEWPID), "unshare")
    for name, line in (
        ("setgroups", "deny"),
        ("uid_map", f"{user or _NOBODY} {user} 1"),
        ("gid_map", f"{group or _NOBODY} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)
    _checked(_libc.mount(None, b"/", None, _REC | _PRIVATE, None), "mount /")
    _mount_tmpfs(scratch, _NOSUID | _NODEV, f"size={scratch_bytes},nr_inodes=4096,mode=700")
    _mount_tmpfs("/proc", _NOSUID | _NODEV | _NOEXEC | _RDONLY, "size=4k,nr_inodes=4,mode=555")
    hide_memory()


def drop_capabilities() -> None:
    """Give up, for good and for all children, every capability in this user namespace."""
    _prctl(_SET_NO_NEW_PRIVS, 1)
    header = struct.pack("=II", 0x20080522, 0)
    _checked(_libc.capset(header, bytes(24)), "capset")


def limit(limits: dict[str, int], *, count_processes: bool) -> None:
    """Set the resource limits; soft and hard, so that they cannot be raised again.

    `count_processes` is for a user namespace of one's own: elsewhere the number is that of the user's whole machine.
    """
    wanted = {
        "RLIMIT_AS": limits["memory_bytes"],
        "RLIMIT_CPU": limits["cpu_seconds"],
        "RLIMIT_NOFILE": limits["open_files"],
        "RLIMIT_FSIZE": limits["scratch_bytes"],
        "RLIMIT_CORE": 0,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_MEMLOCK": 1 << 16,
    }
    if count_processes:
        wanted["RLIMIT_NPROC"] = limits["processes"]
    for name, value in wanted.items():
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        hard = resource.getrlimit(kind)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(kind, (bound, bound))
        except (ValueError, OSError):  # macOS refuses some; namespaces are the lock, these are the purse
            if count_processes:
                raise


def forbid_system_calls() -> None:
    """Refuse the system calls of `_FORBIDDEN`, new namespaces, and sockets other than unix and internet ones.

    On processors that the tables do not know, nothing happens: the namespaces and limits hold without this.
    """
    if platform.machine() not in _ARCHITECTURES:
        return
    architecture, column, clone, clone3, socket = _ARCHITECTURES[platform.machine()]
    load, equal, at_least, any_bit, give = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, deny, absent = 0x7FFF0000, 0x00050000 | _EPERM, 0x00050000 | _ENOSYS
    filters = [(load, 0, 0, 4), (equal, 1, 0, architecture), (give, 0, 0, deny), (load, 0, 0, 0)]
    filters += [(at_least, 0, 1, 0x40000000), (give, 0, 0, deny)]
    for numbers in _FORBIDDEN.values():
        filters += [(equal, 0, 1, numbers[column]), (give, 0, 0, deny)]
    # clone3's flags lie in memory, out of a filter's sight; without it the C library falls back to clone.
    filters += [(equal, 0, 1, clone3), (give, 0, 0, absent)]
    filters += [(equal, 0, 4, clone), (load, 0, 0, 16), (any_bit, 0, 1, _ANY_NAMESPACE), (give, 0, 0, deny)]
    filters += [(give, 0, 0, allow)]
    filters += [(equal, 0, 2 + len(_FAMILIES), socket), (load, 0, 0, 16)]
    filters += [(equal, len(_FAMILIES) - place, 0, family) for place, family in enumerate(_FAMILIES)]
    filters += [(give, 0, 0, deny), (give, 0, 0, allow)]
    program = b"".join(struct.pack("=HBBI", *instruction) for instruction in filters)
    kept = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HxxxxxxP", len(filters), ctypes.addressof(kept))
    _prctl(_SET_SECCOMP, 2, ctypes.create_string_buffer(header, len(header)))
