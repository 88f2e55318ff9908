"""Nothing leaves: an import, a question and the pages in a browser's place, each system call on a socket written down.

Every step runs in a network namespace of its own, which has a loopback and nothing else, under strace, which sees every
process that the step starts. A report of each ``connect``, ``sendto``, ``sendmsg``, ``sendmmsg`` and ``bind`` is what
the security office keeps. What Python or a library says of itself is no part of it: Rust and C code are seen alike.

Unix sockets are calls within the machine and counted apart. An address that is not the loopback's is *beyond*, whether
or not the namespace would have let it through. Not covered: a kernel or an strace that lies; what a site changes
afterwards; the browsers on other machines.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from localmed import __version__
from localmed.domain.errors import UsageError
from localmed.library.journal import now
from localmed.process.environment import scrubbed
from localmed.process.hooks import SILENT, Hooks

CALLS = ("connect", "sendto", "sendmsg", "sendmmsg", "bind")
STEPS = ("import", "ask", "serve")
TRACER = ("strace",)
SECONDS = 600  # for one step, which strace slows down
MODULE = "localmed.cli.egress_steps"  # what runs within the namespace
_CALL = re.compile(rf"^(\d+) +({'|'.join(CALLS)})\((.*)$")
_FAMILY = re.compile(r"sa_family=(\w+)")
_IPV4 = re.compile(r'inet_addr\("([^"]*)"\)')
_IPV6 = re.compile(r'inet_pton\(AF_INET6, "([^"]*)"')
_PORT = re.compile(r"htons\((\d+)\)")
LOOPBACK = ("127.", "::1", "::ffff:127.")
WITHIN = ("AF_UNIX", "AF_LOCAL", "AF_NETLINK", "AF_ALG", "AF_UNSPEC")  # families that lead out of no machine


@dataclass(frozen=True, slots=True)
class Call:
    """A system call on a socket: where it went, and whether that is beyond this machine."""

    name: str
    family: str
    address: str = ""
    port: int = 0

    @property
    def beyond(self) -> bool:
        """Whether it reaches for anything but this machine; a family that is not known counts as that."""
        if self.family in WITHIN or not self.family:
            return False
        return not self.address.startswith(LOOPBACK)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was done, how it ended, and its calls with how often each was made."""

    name: str
    exit_code: int
    seconds: float
    processes: int
    calls: tuple[tuple[Call, int], ...]

    @property
    def beyond(self) -> int:
        """How many calls reached beyond this machine."""
        return sum(count for call, count in self.calls if call.beyond)


@dataclass(frozen=True, slots=True)
class Proof:
    """What the security office keeps."""

    created: str
    version: str
    kernel: str
    strace: str
    steps: tuple[Step, ...]

    @property
    def beyond(self) -> int:
        """How many calls reached beyond this machine, in all steps."""
        return sum(step.beyond for step in self.steps)

    @property
    def holds(self) -> bool:
        """Whether every step ran to its end and nothing reached beyond."""
        return not self.beyond and all(step.exit_code == 0 and step.processes for step in self.steps)


def prove(hooks: Hooks = SILENT) -> Proof:
    """Run every step; raise ``UsageError`` where strace or the namespace is missing: then nothing is proved."""
    import platform

    alone, version = namespace(), tracer()
    steps = []
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(STEPS):
            hooks.cancel.check()
            hooks.progress(number, len(STEPS), name)
            steps.append(_step(name, alone, Path(folder)))
    return Proof(now(), __version__, platform.release(), version, tuple(steps))


def _step(name: str, alone: list[str], folder: Path) -> Step:
    trace = folder / f"{name}.trace"
    command = [*alone, *watched(trace), sys.executable, "-P", "-m", MODULE, name, str(folder)]
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False, env=scrubbed())
        code = done.returncode
    except subprocess.TimeoutExpired:
        code = -1
    lines = trace.read_text("utf-8", "replace").splitlines() if trace.exists() else []
    pids = {line.split(" ", 1)[0] for line in lines}
    return Step(name, code, round(time.monotonic() - began, 1), len(pids), tuple(Counter(calls(lines)).most_common()))


def watched(trace: Path) -> list[str]:
    """How a command is run under strace, which writes to ``trace``."""
    options = f"-f --seccomp-bpf -qq -s 0 -e trace={','.join(CALLS)} -e signal=none -o"
    return [*TRACER, *options.split(), str(trace)]


def calls(lines: Iterable[str]) -> Iterator[Call]:
    """The calls in what strace wrote. One that names no address (a socket that is connected already) has no family."""
    for line in lines:
        if match := _CALL.match(line):
            found = (_FAMILY.search(match[3]), _IPV4.search(match[3]) or _IPV6.search(match[3]), _PORT.search(match[3]))
            family, address, port = (one[1] if one else "" for one in found)
            yield Call(match[2], family, address, int(port or 0))


def namespace() -> list[str]:
    """How a command is run in an empty network; raise ``UsageError`` where the kernel lets nobody."""
    for options in ("-rn", "-n") if shutil.which("unshare") else ():
        command = ["unshare", options, "--"]
        if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
            return command
    raise UsageError("egress.no_namespace")


def tracer() -> str:
    """Its version; raise ``UsageError`` where it is missing or may not trace."""
    try:
        works = subprocess.run([*TRACER, "-qq", "-o", "/dev/null", "true"], capture_output=True, check=False)
        if works.returncode == 0:
            version = subprocess.run([*TRACER, "-V"], capture_output=True, text=True, check=False).stdout
            return version.splitlines()[0].rpartition(" ")[2] if version else ""
    except OSError:
        pass
    raise UsageError("egress.no_strace")
