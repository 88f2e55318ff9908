"""``localmed host`` as a process: started, asked, refused a second time, killed, replaced, ended."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from localmed.cli.serve import _stop_signal
from localmed.config import Settings
from localmed.domain.errors import ModelError
from localmed.models.choice import choices
from localmed.models.e5 import E5
from localmed.models.host.client import Remote, connect
from localmed.models.host.protocol import FOLDER, SOCKET
from localmed.models.registry.registration import Registrations
from tests.cli.conftest import COMMAND, Localmed, environment
from tests.strict import cannot
from tests.words import pattern

QUESTION = "What is the maximum dose of paracetamol in adults?"
CHOSEN = {"encoder": "e5", "reranker": "none", "entailment": "starter", "chat": "none"}
pytestmark = pytest.mark.slow


@contextmanager
def host(data: Path, *before: str) -> Iterator[subprocess.Popen[str]]:
    """A host that is ready; killed at the end unless it has ended."""
    command = [*before, *COMMAND, "--data", str(data), "host", "--json"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment(), start_new_session=True)
    assert process.stdout is not None
    try:
        first = process.stdout.readline()
        assert first.startswith("{"), process.stderr and process.stderr.read()
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # what it was started through (strace) included
        process.communicate(timeout=30)


def ended(process: subprocess.Popen[str], number: int) -> tuple[int, str]:
    """The exit code and what was printed on standard error after a signal."""
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    return process.returncode, err


def answer(copied: Localmed, *options: str) -> dict[str, Any]:
    """An answer of a process of its own, without what differs from one asking to the next."""
    done = copied.process(*options, "ask", QUESTION, "--json")
    assert done.returncode == 0, done.stderr
    status: dict[str, Any] = json.loads(done.stdout)
    del status["digest"]  # of the seconds too
    for step in status["trace"]:
        del step["seconds"]
    return status


def test_the_whole_life_of_a_host(copied: Localmed) -> None:
    alone = answer(copied)
    assert alone["receipts"]
    with host(copied.data) as process:
        assert answer(copied) == alone
        status = copied.ok("host", "--status", "--json").json
        assert status["process"] == process.pid
        limits = " ".join(Path(f"/proc/{process.pid}/limits").read_text().split())
        assert "Max core file size 0 0" in limits  # questions would be in it
        assert status["served"]["encode"] > 0
        assert status["served"]["similarities"] > 0
        assert status["served"]["search"] > 0
        assert status["failed"] == {}
        assert status["others"] == []
        assert "multilingual-e5-small-q4" in copied.ok("host", "--status").out
        assert "already" in copied("host").failed(4)
        assert "model host: process" in copied("doctor").out
        assert ended(process, signal.SIGTERM) == (0, "")
    assert not (copied.data / FOLDER / SOCKET).exists()
    assert [path.stat().st_size for path in (copied.data / FOLDER).iterdir()] == [0]  # no text is printed or kept
    assert "no model host is running" in copied("host", "--status").failed(6)


def test_killed_in_the_middle_of_a_request_and_replaced(copied: Localmed) -> None:
    settings = Settings(copied.data)
    with host(copied.data) as process:
        hosted = connect(copied.data, settings.host, choices(CHOSEN, Registrations(), settings.chat))
        assert isinstance(hosted.encoder, Remote)
        texts = ["the dose of the day", "a long night on call " * 30, QUESTION]
        same = E5().encode(texts, "query")
        assert hosted.encoder.encode(texts, "query").tobytes() == same.tobytes()
        os.kill(process.pid, signal.SIGSTOP)  # so that the request is there and not yet answered
        with pytest.raises(ModelError, match=pattern("host.ended.what")):
            _killed_while_asked(process, hosted.encoder)
    assert (copied.data / FOLDER / SOCKET).exists()
    assert copied("host", "--status").failed(6)
    assert answer(copied)["receipts"]  # with its own models
    with host(copied.data) as process:
        assert copied.ok("host", "--status", "--json").json["process"] == process.pid
        assert ended(process, signal.SIGINT) == (0, "")


def _killed_while_asked(process: subprocess.Popen[str], encoder: Remote) -> None:
    timer = threading.Timer(0.3, process.kill)
    timer.start()
    try:
        encoder.encode([QUESTION], "query")
    finally:
        timer.join()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_another_thread_is_given_ends_it(number: int) -> None:
    with _stop_signal() as stop:
        other = threading.Timer(0.2, lambda: signal.pthread_kill(threading.get_ident(), number))
        other.start()
        assert select.select([stop], [], [], 20)[0], "the main thread, which waits, is not woken by it"
        other.join()
    assert signal.set_wakeup_fd(-1) == -1


def test_a_command_does_not_wait_for_a_host_that_hangs(copied: Localmed) -> None:
    with host(copied.data) as process:
        os.kill(process.pid, signal.SIGSTOP)
        began = time.monotonic()
        assert answer(copied)["receipts"]
        assert time.monotonic() - began < 60


def test_nothing_but_the_socket_is_opened(copied: Localmed, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    watched = ["strace", "-f", "-qq", "-e", "trace=connect,sendto,sendmsg,bind,listen", "-o", str(trace)]
    allowed = subprocess.run([*watched, "true"], capture_output=True, check=False) if shutil.which("strace") else None
    if allowed is None or allowed.returncode:
        cannot("strace is not permitted here")
    with host(copied.data, *watched) as traced:
        assert answer(copied)["receipts"]
        status = copied.ok("host", "--status", "--json").json
        os.kill(status["process"], signal.SIGTERM)
        traced.communicate(timeout=60)
    lines = trace.read_text().splitlines()
    assert sum("bind(" in line and SOCKET in line for line in lines) == 1
    # urllib3, which LanceDB imports, asks at import whether there is IPv6; nothing is sent.
    probe = re.compile(r' bind\(.*htons\(0\).*"::1"')
    assert not [line for line in lines if re.search(r"AF_INET6?\b", line) and not probe.search(line)]
