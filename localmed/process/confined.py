"""How a child process confines itself: memory, processor time, its parent's end, network, files, output.

The kernel enforces it, whatever the child's libraries do, except where it cannot isolate network or files. Not covered:
a kernel without Landlock, where the child can read what its user can read. Run as a module, it prints who can confine a
process here: for the network "kernel" or "interpreter", for files "kernel" or "nobody".
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import signal
import socket
import stat
import struct
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>
PR_SET_DUMPABLE = 4
PR_SET_NO_NEW_PRIVS = 38
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446  # alike on every processor
READS = 0b1101  # execute, read a file, list a folder: of <linux/landlock.h>
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000  # from <linux/sched.h>
SET_FLAGS, UP = 0x8914, 1  # SIOCSIFFLAGS, IFF_UP: of <linux/sockios.h>, <linux/if.h>


def take_streams() -> tuple[BinaryIO, BinaryIO]:
    """The two pipes to the parent; the standard descriptors, which libraries use, get ``/dev/null``."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=65_536)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    return requests, replies


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent's thread ends; end now if it has ended already."""
    prctl: Callable[..., int] = ctypes.CDLL(None, use_errno=True).prctl
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    end_without_parent(parent)


def end_without_parent(parent: int) -> None:
    """End now if the process that started this one has ended."""
    if os.getppid() != parent:
        os._exit(0)


def limit(memory_bytes: int, cpu_seconds: int) -> None:
    """Allow this process ``memory_bytes`` of address space and ``cpu_seconds`` more of processor time; no core dump."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    spent = int(usage.ru_utime + usage.ru_stime) + 1  # the kernel counts whole seconds since the process began
    _lower(resource.RLIMIT_CPU, spent + cpu_seconds)
    limit_memory(memory_bytes)
    no_core_dump()


def limit_memory(size: int) -> None:
    """Allow this process ``size`` bytes of address space."""
    _lower(resource.RLIMIT_AS, size)


def no_core_dump() -> None:
    """Never dump core, which could leave patient text on the disk.

    Programs that keep dumps (systemd-coredump, apport) ignore the limit, so the process is also made undumpable. Other
    processes of this user cannot read its memory then either.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def leave_network() -> str:
    """Leave the network, before any library starts a thread; return who enforces it, "kernel" or "interpreter".

    The kernel does if it allows an empty network, which children share. Otherwise Python's audit hook does, which C
    code bypasses. "interpreter" is also returned if the process may not leave the empty network of its parent.
    """
    sys.addaudithook(_refuse_sockets)
    unshare = ctypes.CDLL(None, use_errno=True).unshare
    if unshare(CLONE_NEWNET) == 0 or unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0:
        return "kernel"
    return "interpreter"


def own_loopback() -> bool:
    """Move this process, before it starts a thread, to a network with only its own loopback.

    Its children share it and reach only each other. False, with nothing changed, if the kernel does not permit it
    (some containers, hardened units).
    """
    unshare = ctypes.CDLL(None, use_errno=True).unshare
    owner, group = os.getuid(), os.getgid()
    if unshare(CLONE_NEWNET):
        if unshare(CLONE_NEWUSER | CLONE_NEWNET):
            return False
        own = {"setgroups": "deny", "uid_map": f"{owner} {owner} 1", "gid_map": f"{group} {group} 1"}
        for name, content in own.items():
            Path(f"/proc/self/{name}").write_text(content, "ascii")  # else files seem to belong to nobody
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sH14x", b"lo", UP))
    return True


@dataclass(frozen=True, slots=True)
class Isolation:
    """Whether the kernel keeps a child from the network, and from files that it does not need."""

    network: bool
    files: bool


def leave_files(readable: Sequence[str], writable: Sequence[str] = ()) -> str:
    """From now on open only ``readable`` and ``writable`` folders and those that Python itself needs.

    Landlock (Linux 5.13 and later) enforces it, for child processes too; from 6.7 on it also refuses TCP. Return who
    enforces it: "kernel" or "nobody".
    """
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(LANDLOCK_CREATE_RULESET, None, 0, 1)
    if version < 1:
        return "nobody"
    handled = (1 << (13, 14, 15)[min(version, 3) - 1]) - 1
    network = struct.pack("Q", 3) if version >= 4 else b""  # to bind and to connect
    attributes = struct.pack("Q", handled) + network
    rules = libc.syscall(LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    if rules < 0:
        return "nobody"
    ours = str(Path(__file__).parents[1])  # the package
    system = (ours, sys.prefix, sys.base_prefix, *sys.path, "/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev")
    for folder in {*system, *readable, *writable}:
        _allow(libc, rules, folder, handled if folder in writable or folder == "/dev" else handled & READS)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    done = libc.syscall(LANDLOCK_RESTRICT_SELF, rules, 0)
    os.close(rules)
    return "nobody" if done else "kernel"


def _allow(libc: ctypes.CDLL, rules: int, folder: str, access: int) -> None:
    """Add a rule for ``folder``, if it exists; for a file only the rights of files."""
    try:
        handle = os.open(folder or ".", os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not stat.S_ISDIR(os.fstat(handle).st_mode):
        access &= 0b100000000000111  # execute, write, read, truncate
    libc.syscall(LANDLOCK_ADD_RULE, rules, 1, struct.pack("=Qi", access, handle), 0)
    os.close(handle)


def _refuse_sockets(event: str, _arguments: Any) -> None:
    if event in ("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo"):
        raise PermissionError("this process has no network")


def place(error: BaseException) -> str:
    """The class of ``error`` and the last line of our code that it passed; never its message (may quote text)."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "localmed" in frame.filename]
    where = f" at {Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    return f"{type(error).__name__}{where}"


def _lower(kind: int, amount: int) -> None:
    hard = resource.getrlimit(kind)[1]
    soft = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
    resource.setrlimit(kind, (soft, hard))


if __name__ == "__main__":
    print(leave_network(), leave_files(()))
