"""No network: everything works in an empty network namespace, and no system call reaches for an address."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, MANIFEST, environment, write_files
from tests.strict import cannot

QUESTION = "What is the loading dose of vancomycin?"
IPV6_PROBE = re.compile(r' bind\(.*htons\(0\).*"::1"')  # urllib3 asks at import whether there is IPv6; nothing is sent
pytestmark = pytest.mark.slow


def commands(tmp_path: Path) -> list[list[str]]:
    """An import and a question, each with everything that loads: parser, encoder, both indexes."""
    folder = write_files(tmp_path / "documents")
    (tmp_path / "ward.toml").write_text(MANIFEST, "utf-8")
    data = ["--data", str(tmp_path / "data")]
    return [
        [*COMMAND, *data, "import", str(folder), "-c", "ward", "--manifest", str(tmp_path / "ward.toml")],
        [*COMMAND, *data, "ask", QUESTION],
    ]


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=170, check=False, env=environment())


def test_works_without_any_network(tmp_path: Path) -> None:
    alone = ["unshare", "-rn", "--"]
    if not shutil.which("unshare") or run([*alone, "true"]).returncode:
        cannot("network namespaces are not permitted here")
    for command in commands(tmp_path):
        done = run([*alone, *command])
        assert done.returncode == 0, done.stderr
    assert "25 mg/kg" in done.stdout


def test_no_system_call_reaches_for_an_address(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    watched = ["strace", "-f", "-qq", "-e", "trace=connect,sendto,sendmsg,sendmmsg,bind", "-o", str(trace)]
    if not shutil.which("strace") or run([*watched, "true"]).returncode:
        cannot("strace is not permitted here")
    for command in commands(tmp_path):
        done = run([*watched, *command])
        assert done.returncode == 0, done.stderr
        called = [line for line in trace.read_text().splitlines() if re.search(r"AF_INET6?\b", line)]
        dialled = [line for line in called if not IPV6_PROBE.search(line)]
        assert not dialled
