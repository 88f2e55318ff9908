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
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Imported:
    """An import by Ray that has ended, and what was seen of it while it ran."""

    data: Path
    out: str
    err: str
    code: int
    killed: int
    workers: frozenset[str]
    listening: tuple[str, ...]
    left: tuple[str, ...]  # in the temporary folder and at home


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    """The starter guidelines imported by two workers, of whom the first to encode was killed."""
    folder = tmp_path_factory.mktemp("by-ray")
    data, signs = folder / "data", folder / "signs"
    signs.mkdir()
    command = [sys.executable, "-m", "tests.ingest.by_ray", str(data), str(STARTER), str(signs)]
    home = Path(tempfile.mkdtemp(prefix="t-"))  # short: Ray's sockets lie there, and a socket's name has 107 bytes
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(home), "HOME": str(home)}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        victim = int(_first(signs, process).name)
        listening = _listening(victim)
        os.kill(victim, signal.SIGKILL)
        (signs / "go").touch()
        out, err = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.wait()
    left = tuple(path.name for path in home.iterdir())
    shutil.rmtree(home)
    workers = frozenset(path.name for path in signs.iterdir()) - {"go"}
    return Imported(data, out, err, process.returncode, victim, workers, listening, left)


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
def test_a_killed_worker_costs_nothing(imported: Imported, tmp_path: Path) -> None:
    assert imported.code == 0, imported.err
    assert not imported.err, "Ray prints nothing"
    assert str(imported.killed) in imported.workers
    assert len(imported.workers) >= 3, "another worker took the place of the one that was killed"
    with opened(by_ray.settings(tmp_path / "alone"), HashedWords()) as session:
        report = importing.import_paths(session, [STARTER], described("starter"))
    made = f"{report.counts['passages']} {report.encoded}\n"
    assert imported.out == made, "nothing lost, nothing twice, and Ray prints nothing"
    assert content(imported.data) == content(tmp_path / "alone")


@RAY
@ALONE
def test_it_listens_to_itself_only_and_leaves_nothing(imported: Imported) -> None:
    assert imported.listening
    assert all(LOOPBACK.match(address) for address in imported.listening)
    assert not imported.left
    folder = str(imported.data.parent)
    assert not [it.pid for it in psutil.process_iter(["cmdline"]) if folder in " ".join(it.info["cmdline"] or ())]


def test_a_cluster_that_is_not_listed_is_not_dialled() -> None:
    with pytest.raises(BadSettings, match=r"ingest\.clusters"), cluster.workers(IngestSettings(), "10.0.0.5:6379"):
        pass


@RAY
def test_a_cluster_that_is_gone_is_told_at_once() -> None:
    with socket.socket() as closed:  # bound, and nobody listens
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        with (
            pytest.raises(LibraryError, match="ray start"),
            cluster.workers(IngestSettings(clusters=(address,)), address),
        ):
            pass


@pytest.mark.parametrize("address", ["head", "head:x", "127.0.0.1:99999"])
@RAY
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(LibraryError, match="ray start"), cluster.workers(IngestSettings(clusters=(address,)), address):
        pass


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"localmed\[ray\]"), cluster.workers(IngestSettings()):
        pass
