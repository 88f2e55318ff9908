"""An import by Ray, started once: a worker is killed with signal 9 meanwhile, and the generation is as without Ray."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from localmed.config import IngestSettings
from localmed.domain.errors import BadSettings, LibraryError, UsageError
from localmed.ingest import cluster
from localmed.process import children
from localmed.site import importing
from tests.fakes import HashedWords, described, opened
from tests.ingest import by_ray
from tests.ingest.test_engine import content
from tests.strict import needs

ROOT = Path(__file__).parents[2]
STARTER = ROOT / "corpora" / "starter" / "guidelines"
SECONDS = 300.0  # at most, for what takes twenty on a quiet machine
RAY = pytest.mark.extra("ray")
ALONE = needs(children.isolation().network, "a network of one's own")
LOOPBACK = re.compile(r"^(0100007F|0000000000000000FFFF00000100007F):")


def _first(signs: Path, process: subprocess.Popen[str]) -> Path:
    """The first sign of a worker."""
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends and process.poll() is None:
        for path in signs.iterdir():
            return path
        time.sleep(0.05)
    raise AssertionError(process.communicate(timeout=10) if process.poll() is not None else "no worker began")


def _listening(pid: int) -> tuple[str, ...]:
    """The local addresses, as the kernel writes them, at which the network of ``pid`` is listened to."""
    lines = [line for name in ("tcp", "tcp6") for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]]
    return tuple(fields[1] for line in lines if (fields := line.split())[3] == "0A")


@RAY
@ALONE
def test_a_killed_worker_costs_nothing_and_nothing_is_heard_or_left(tmp_path: Path) -> None:
    """The starter guidelines imported by two workers, of whom the first to encode was killed."""
    data, signs = tmp_path / "data", tmp_path / "signs"
    signs.mkdir()
    command = [sys.executable, "-m", "tests.ingest.by_ray", str(data), str(STARTER), str(signs)]
    home = Path(tempfile.mkdtemp(prefix="t-"))  # short: Ray's sockets lie there, and a socket's name has 107 bytes
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(home), "HOME": str(home)}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True)
    try:
        victim = int(_first(signs, process).name)
        listening = _listening(victim)
        os.kill(victim, signal.SIGKILL)
        (signs / "go").touch()
        out, err = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.wait()
    left = [path.name for path in home.iterdir()]
    shutil.rmtree(home)
    assert (process.returncode, err) == (0, ""), "Ray prints nothing"
    workers = {path.name for path in signs.iterdir()} - {"go"}
    assert str(victim) in workers
    assert len(workers) >= 3, "another worker took the place of the one that was killed"
    with opened(by_ray.settings(tmp_path / "alone"), HashedWords()) as session:
        report = importing.import_paths(session, [STARTER], described("starter"))
    made = f"{report.counts['passages']} {report.encoded}\n"
    assert out == made, "nothing lost, nothing twice, and Ray prints nothing"
    assert content(data) == content(tmp_path / "alone")
    assert listening
    assert all(LOOPBACK.match(address) for address in listening), "it listens to itself only"
    assert not left
    folder = str(tmp_path)
    assert not [it.pid for it in psutil.process_iter(["cmdline"]) if folder in " ".join(it.info["cmdline"] or ())]


def test_a_cluster_that_is_not_listed_is_not_dialled() -> None:
    with pytest.raises(BadSettings, match=r"ingest\.clusters"), cluster.workers(IngestSettings(), "10.0.0.5:6379"):
        pass


@pytest.mark.parametrize("address", ["", "head", "head:x", "127.0.0.1:99999"])
@RAY
def test_a_cluster_that_is_gone_or_an_address_that_is_none_is_told_at_once(address: str) -> None:
    with socket.socket() as closed:  # bound, and nobody listens
        closed.bind(("127.0.0.1", 0))
        address = address or f"127.0.0.1:{closed.getsockname()[1]}"
        settings = IngestSettings(clusters=(address,))
        with pytest.raises(LibraryError, match="ray start"), cluster.workers(settings, address):
            pass


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"localmed\[ray\]"), cluster.workers(IngestSettings()):
        pass
