"""No network: everything works in an empty network namespace, and no system call reaches for an address."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from localmed.domain.errors import UsageError
from localmed.upkeep import egress
from tests.cli.conftest import Localmed
from tests.strict import cannot
from tests.words import phrase

DIALS = (
    "import socket; socket.socket().connect_ex(('192.0.2.1', 9)); socket.socket(2, 2).sendto(b'x', ('192.0.2.1', 53))"
)


def possible() -> None:
    try:
        egress.namespace_command()
        egress.strace_version()
    except UsageError as error:
        cannot(str(error))


@pytest.mark.slow
@pytest.mark.timeout(900)  # strace makes everything several times slower
def test_the_proof_holds_and_is_kept(tmp_path: Path) -> None:
    """An import with the parsers, a question with encoder and indexes, the server with its model host and a client."""
    possible()
    done = Localmed(tmp_path / "data")("doctor", "--egress", str(tmp_path / "egress.html"), "--json")
    assert done.code == 0, done
    proof = done.json
    assert proof["holds"]
    assert proof["beyond"] == 0
    assert [step["exit_code"] for step in proof["steps"]] == [0, 0, 0]
    served = [call for call, _ in proof["steps"][2]["calls"] if call["name"] == "bind" and call["port"] == 8765]
    assert [call["address"] for call in served] == ["127.0.0.1"]
    assert json.loads((tmp_path / "egress.json").read_text()) == proof
    page = (tmp_path / "egress.html").read_text()
    assert phrase("egress.holds") in page
    assert "8765" in page
    assert not (tmp_path / "data" / "generations").exists()  # the site's own library is left alone


@pytest.mark.slow
def test_what_reaches_beyond_is_seen(tmp_path: Path) -> None:
    """The control: a process that dials out, in the same namespace under the same strace."""
    possible()
    trace = tmp_path / "trace"
    watched = egress.traced_command(trace)
    subprocess.run([*egress.namespace_command(), *watched, sys.executable, "-c", DIALS], check=False, timeout=60)
    beyond = {
        (call.name, call.address, call.port)
        for call in egress.parse_calls(trace.read_text().splitlines())
        if call.beyond
    }
    assert beyond == {("connect", "192.0.2.1", 9), ("sendto", "192.0.2.1", 53)}


@pytest.mark.parametrize(
    ("line", "beyond"),
    [
        ('7 connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("10.0.0.1")}, 16) = -1', True),
        ('7 connect(3, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}, 16) = 0', False),
        ('7 sendto(3, ""..., 9, 0, {sa_family=AF_INET6, sin6_port=htons(53), sin6_flowinfo=htonl(0), '
         'inet_pton(AF_INET6, "2001:db8::1", &sin6_addr), sin6_scope_id=0}, 28) = 9', True),
        ('7 bind(4, {sa_family=AF_INET6, sin6_port=htons(0), inet_pton(AF_INET6, "::1", &sin6_addr)}, 28) = 0', False),
        ('7 bind(4, {sa_family=AF_INET, sin_port=htons(8765), sin_addr=inet_addr("0.0.0.0")}, 16) = 0', True),
        ('7 connect(3, {sa_family=AF_UNIX, sun_path="/run/x"}, 110) = -1 ENOENT', False),
        ('7 sendto(5, ""..., 20, 0, NULL, 0) = 20', False),
        ("7 connect(3, {sa_family=AF_VSOCK, svm_cid=2}, 16 <unfinished ...>", True),
        ("7 connect(3, {sa_family=0x2d, sa_data=\"\"}, 16) = 0", True),
    ],
)  # fmt: skip
def test_a_call_is_read_as_strace_writes_it(line: str, beyond: bool) -> None:
    (call,) = egress.parse_calls([line])
    assert call.beyond is beyond


def test_without_strace_nothing_is_proved(localmed: Localmed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(egress, "TRACER", ("no-strace-here",))
    if not shutil.which("unshare"):
        cannot("unshare is not here")
    assert phrase("egress.no_strace") in localmed("doctor", "--egress", str(tmp_path / "egress.html")).failed(2)
    assert not (tmp_path / "egress.html").exists()
