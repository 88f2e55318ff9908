"""A child process confines itself: the kernel ends what goes over."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.strict import needs

MIB = 2**20


def run(script: str) -> subprocess.CompletedProcess[str]:
    lines = ["import os, sys, time, subprocess", "from localmed.process import confined", script]
    command = [sys.executable, "-c", "\n".join(lines)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def interfaces(pid: int) -> set[str]:
    """The network interfaces that the process sees."""
    rows = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
    return {row.partition(":")[0].strip() for row in rows}


def namespace(pid: int) -> str:
    """Which network the process is in."""
    return str(Path(f"/proc/{pid}/ns/net").readlink())


permitted = run("print(confined.leave_network())").stdout == "kernel\n"
needs_namespaces = needs(permitted, "network namespaces")


def test_memory_and_processor_time_and_no_core_dump() -> None:
    script = f"confined.limit({200 * MIB}, 60)\ntry:\n    bytes({300 * MIB})\nexcept MemoryError:\n    print('ended')"
    assert (
        run(f"{script}\nimport resource; print(resource.getrlimit(resource.RLIMIT_CORE))").stdout == "ended\n(0, 0)\n"
    )
    began = time.monotonic()
    assert run(f"confined.limit({500 * MIB}, 1)\nwhile True: pass").returncode == -signal.SIGXCPU
    assert time.monotonic() - began < 50


def test_what_libraries_print_goes_nowhere() -> None:
    done = run("_, replies = confined.take_streams()\nprint('noise'); os.write(2, b'noise')\nreplies.write(b'reply')")
    assert (done.stdout, done.stderr) == ("reply", "")


def test_it_ends_with_its_parent() -> None:
    child = (
        "import sys, time; from localmed.process import confined; confined.die_with_parent(int(sys.argv[1]));"
        "print('up', flush=True); time.sleep(50)"
    )
    script = (
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}, str(os.getpid())], stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\nprint(child.pid, flush=True)\nos._exit(0)"
    )
    pid = int(run(script).stdout)
    deadline = time.monotonic() + 10
    while _running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _running(pid)
    assert run("confined.die_with_parent(1)\nprint('lives')").stdout == "", "a parent that is gone already"


def _running(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        with open(f"/proc/{pid}/stat") as stream:  # noqa: PTH123
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_without_network_nothing_can_be_dialled_or_looked_up() -> None:
    script = (
        "import socket; print(confined.leave_network() in ('kernel', 'interpreter'))\n"
        "for dial in (lambda: socket.socket().connect(('127.0.0.1', 9)), lambda: socket.getaddrinfo('localhost', 9)):\n"
        "    try:\n        dial()\n    except PermissionError:\n        print('refused')"
    )
    assert run(script).stdout == "True\nrefused\nrefused\n"


@needs_namespaces
def test_what_a_process_without_network_starts_has_none_either() -> None:
    """As the OCR child under the parsing child: it may not leave the empty network, and needs not."""
    child = (
        "import os, sys; from localmed.process import confined; confined.leave_network();"
        "confined.die_with_parent(int(sys.argv[1])); print(open('/proc/self/net/dev').read().count(':'))"
    )
    script = (
        "confined.leave_network()\n"
        f"done = subprocess.run([sys.executable, '-c', {child!r}, str(os.getpid())], capture_output=True, text=True)\n"
        "print(done.stdout, done.stderr)"
    )
    assert run(script).stdout.split() == ["1"], "the loopback, which is down"
