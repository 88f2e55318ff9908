"""Proof that nothing leaves the machine: every socket call of an import, a question and the pages, recorded by strace.

Every step runs in a network namespace with only a loopback, under strace, which follows all its processes, in any
language. The report lists each ``connect``, ``sendto``, ``sendmsg``, ``sendmmsg`` and ``bind`` for the security office.
Unix sockets are local and counted apart. An address other than the loopback's is *beyond*, even if the namespace would
block it.

Not covered: a kernel or strace that lies; later changes of the site; browsers on other machines.
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
    """A system call on a socket and its address."""

    name: str
    family: str
    address: str = ""
    port: int = 0

    @property
    def beyond(self) -> bool:
        """Whether it addresses anything but this machine; an unknown family counts as that."""
        if self.family in WITHIN or not self.family:
            return False
        return not self.address.startswith(LOOPBACK)


@dataclass(frozen=True, slots=True)
class Step:
    """One step, its exit code, and its calls with their counts."""

    name: str
    exit_code: int
    seconds: float
    processes: int
    calls: tuple[tuple[Call, int], ...]

    @property
    def beyond(self) -> int:
        """The number of calls beyond this machine."""
        return sum(count for call, count in self.calls if call.beyond)


@dataclass(frozen=True, slots=True)
class Proof:
    """The report for the security office."""

    created: str
    version: str
    kernel: str
    strace: str
    steps: tuple[Step, ...]

    @property
    def beyond(self) -> int:
        """The number of calls beyond this machine in all steps."""
        return sum(step.beyond for step in self.steps)

    @property
    def holds(self) -> bool:
        """Whether every step completed and no call went beyond."""
        return not self.beyond and all(step.exit_code == 0 and step.processes for step in self.steps)


def prove(hooks: Hooks = SILENT) -> Proof:
    """Run every step; raise ``UsageError`` if strace or the namespace is unavailable."""
    import platform

    alone, version = namespace_command(), strace_version()
    steps = []
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(STEPS):
            hooks.cancel.check()
            hooks.progress(number, len(STEPS), name)
            steps.append(_step(name, alone, Path(folder)))
    return Proof(now(), __version__, platform.release(), version, tuple(steps))


def _step(name: str, alone: list[str], folder: Path) -> Step:
    trace = folder / f"{name}.trace"
    command = [*alone, *traced_command(trace), sys.executable, "-P", "-m", MODULE, name, str(folder)]
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False, env=scrubbed())
        code = done.returncode
    except subprocess.TimeoutExpired:
        code = -1
    lines = trace.read_text("utf-8", "replace").splitlines() if trace.exists() else []
    pids = {line.split(" ", 1)[0] for line in lines}
    return Step(
        name, code, round(time.monotonic() - began, 1), len(pids), tuple(Counter(parse_calls(lines)).most_common())
    )


def traced_command(trace: Path) -> list[str]:
    """Return the command prefix of strace, which writes to ``trace``."""
    options = f"-f --seccomp-bpf -qq -s 0 -e trace={','.join(CALLS)} -e signal=none -o"
    return [*TRACER, *options.split(), str(trace)]


def parse_calls(lines: Iterable[str]) -> Iterator[Call]:
    """Yield the calls in strace's output. A call without an address (on a connected socket) has no family."""
    for line in lines:
        if match := _CALL.match(line):
            found = (_FAMILY.search(match[3]), _IPV4.search(match[3]) or _IPV6.search(match[3]), _PORT.search(match[3]))
            family, address, port = (one[1] if one else "" for one in found)
            yield Call(match[2], family, address, int(port or 0))


def namespace_command() -> list[str]:
    """Return the command prefix for an empty network; raise ``UsageError`` if the kernel forbids it."""
    for options in ("-rn", "-n") if shutil.which("unshare") else ():
        command = ["unshare", options, "--"]
        if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
            return command
    raise UsageError("egress.no_namespace")


def strace_version() -> str:
    """Return strace's version; raise ``UsageError`` if it is missing or may not trace."""
    try:
        works = subprocess.run([*TRACER, "-qq", "-o", "/dev/null", "true"], capture_output=True, check=False)
        if works.returncode == 0:
            version = subprocess.run([*TRACER, "-V"], capture_output=True, text=True, check=False).stdout
            return version.splitlines()[0].rpartition(" ")[2] if version else ""
    except OSError:
        pass
    raise UsageError("egress.no_strace")
