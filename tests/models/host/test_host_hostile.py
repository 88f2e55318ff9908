"""What is no client harms nobody else, and a host that is none, hangs or lies is a clean error in bounded time."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from localmed import __version__
from localmed.config import HostSettings
from localmed.domain.errors import Busy, ModelError
from localmed.domain.ports import encode_both
from localmed.models.host.client import NOTHING, Client, Hosted, connect, listens, status
from localmed.models.host.protocol import FOLDER, SOCKET, Broken, Call, Welcome, Wire
from tests.models.host.conftest import Start
from tests.models.host.house import CHOICES, House, there, until

SHORT = HostSettings(connect_seconds=0.5, silent_seconds=0.6)


def line(**changes: Any) -> bytes:
    """A request as it is sent."""
    arguments = {"texts": ["a"], "kind": "query"}
    asked = Call(__version__, "", "encoder", "encode", arguments, CHOICES)
    return json.dumps({**asdict(asked), **changes}).encode() + b"\n"


GARBAGE = {
    "nothing of ours": b"GET / HTTP/1.1\r\n\r\n",
    "zeros": bytes(4096),
    "too large": b"1" * 3000,
    "no JSON": b"{{{{{\n",
    "nested": b"[" * 1900 + b"\n",
    "no object": b'["encode"]\n',
    "a name is a number": line(role=1),
    "a field too many": line(password=""),
    "a field missing": b'{"version": "1"}\n',
    "other version": line(version="9"),
    "other models": line(choices={}),
    "half a line": line()[:-9],
    "asked and gone": line(),
}


@pytest.fixture
def patient(start: Start) -> House:
    """A host that waits for a third of a second."""
    return start(settings=HostSettings(message_seconds=0.3, message_bytes=2000))


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_ends_its_own_connection_only(patient: House, name: str) -> None:
    encoder = there(patient.hosted().encoder)
    with patient.dialled() as bad:
        bad.sendall(GARBAGE[name])
        if name.endswith("gone"):
            bad.shutdown(socket.SHUT_WR)
        ended(bad)
    assert len(encoder.encode(["others go on"], "query")) == 1
    until(lambda: not patient.host.status().connections)


def ended(connection: socket.socket) -> None:
    """The host closes ``connection``, before the test's own bound of ten seconds."""
    with suppress(ConnectionResetError):  # of what it had not read yet
        while connection.recv(65536):
            continue


def test_silent_connections_are_closed_and_a_slow_one_waits_alone(start: Start) -> None:
    house = start(settings=HostSettings(message_seconds=3.0))
    with house.dialled() as silent, house.dialled() as slow:
        slow.sendall(line()[:3])
        began = time.monotonic()
        assert len(there(house.hosted().encoder).encode(["others go on"], "query")) == 1
        assert time.monotonic() - began < 3
        assert silent.recv(1) == slow.recv(1) == b""


def test_a_message_that_comes_byte_by_byte_is_given_up_in_time() -> None:
    ours, theirs = socket.socketpair()

    def drip() -> None:
        with suppress(OSError):
            for _ in range(40):
                theirs.send(b"1")
                time.sleep(0.05)

    with theirs, closing(Wire(ours, 1000, 0.3)) as wire:
        threading.Thread(target=drip, daemon=True).start()
        began = time.monotonic()
        with pytest.raises(Broken):
            wire.receive(1)
        assert time.monotonic() - began < 1.5


USER = {"role": "user", "content": "a"}
ASKED = {"max_tokens": 1, "schema": None, "temperature": 0.0, "seed": 0}


@pytest.mark.parametrize(
    ("role", "method", "arguments"),
    [
        ("dancer", "dance", {}), ("encoder", "dance", {}), ("encoder", "identity", {}), ("encoder", "__init__", {}),
        ("encoder", "encode", {}), ("encoder", "encode", {"texts": ["a", 1], "kind": "query"}),
        ("encoder", "encode", {"texts": ["a"] * 1025, "kind": "query"}),
        ("encoder", "encode", {"texts": ["a"], "kind": "another"}),
        ("encoder", "encode", {"texts": ["a"], "kind": "query", "low": True}),
        ("fitted", "encode_both", {"texts": ["a"], "kind": "query"}),
        ("reranker", "score", {"question": 1, "passages": [], "keep": False}),
        ("chat", "complete", {"request": ASKED | {"messages": [{**USER, "role": "judge"}]}}),
        ("chat", "complete", {"request": ASKED | {"messages": [USER], "temperature": "hot"}}),
        ("chat", "complete", {"request": ASKED | {"messages": [USER], "temperature": 10**400}}),
        ("nearest", "search", {"generation": "1", "vector": {"shape": [3], "float32": "AAAA"}, "limit": 1,
                               "filters": {}}),
        ("nearest", "warm", {}),
    ],
)  # fmt: skip
def test_a_request_that_is_none_is_refused_and_the_next_one_served(
    house: House, role: str, method: str, arguments: Any
) -> None:
    client = Client(house.data / FOLDER, house.settings, "")
    client.greet()
    with pytest.raises(ModelError, match="cannot serve"):
        client.ask(role, method, arguments, Any)
    assert client.ask("chat", "count", {"texts": ["a b"]}, list[int]) == [2]
    assert set(house.host.status().failed) <= {method, "unknown"} - {"dance"}


def test_connections_are_bounded(start: Start) -> None:
    running = start(settings=HostSettings(connections=2))
    with running.dialled(), running.dialled():
        with pytest.raises(Busy, match=r"host\.connections"):
            Client(running.data / FOLDER, running.settings, "").greet()
        assert connect(running.data, running.settings, CHOICES).encoder is None  # the command loads its own


def test_a_client_that_asks_while_it_is_answered_is_dropped(house: House) -> None:
    wire = house.asked("encoder", "encode", {"texts": ["wait"], "kind": "query"})
    assert house.encoder.reached.wait(10)
    wire.send("more")
    with pytest.raises(Broken):
        wire.receive(10)
    house.encoder.go_on.set()
    wire.close()


def test_a_client_that_never_reads_harms_nobody(start: Start) -> None:
    patient = start(settings=HostSettings(message_seconds=0.3))
    wire = patient.asked("encoder", "encode_both", {"texts": ["many different words here"] * 1000, "kind": "query"})
    encoder = there(patient.hosted().encoder)
    for number in range(5):
        assert len(encoder.encode([f"others go on {number}"], "query")) == 1
    wire.close()


STRANGER = """
import os, socket, sys
os.chdir(sys.argv[1])
os.setuid(65534)
with socket.socket(socket.AF_UNIX) as other:
    other.settimeout(10)
    try:
        other.connect("host.sock")
        other.sendall(bytes.fromhex(sys.argv[2]))
        print("heard", len(other.recv(1000)))
    except OSError as error:
        print(type(error).__name__)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_another_user_is_not_answered(house: House) -> None:
    folder = house.data / FOLDER

    def stranger() -> str:
        command = [sys.executable, "-c", STRANGER, str(folder), line().hex()]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()

    folder.chmod(0o711)
    assert stranger() == "PermissionError"  # by the rights of the socket
    (folder / SOCKET).chmod(0o666)
    assert stranger() in ("heard 0", "ConnectionResetError", "BrokenPipeError")  # by what the kernel says of it


def test_the_socket_is_its_owners(house: House) -> None:
    folder = house.data / FOLDER
    for path in (house.data, folder):  # the host made both
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / SOCKET).stat().st_mode) == 0o600


# --- hosts that are none ---------------------------------------------------------------------------------------


@contextmanager
def impostor(data: Path, behave: Callable[[Wire], object]) -> Iterator[Hosted]:
    """Something that listens where a host would, and greets as one, and then does as it likes, as a command sees it."""
    identity = {"name": "x", "version": "1", "dimensions": 2, "languages": ["en"], "sparse": True}
    greeting = Welcome(__version__, {"encoder": {"identity": identity}}, CHOICES)

    def serve(listener: socket.socket) -> None:
        for act in (lambda wire: wire.send(["done", greeting]), behave):
            wire = Wire(listener.accept()[0], 10**6, 10)
            wire.receive(10)
            with suppress(Broken):  # the client has given up
                act(wire)
            wire.close()

    folder = data / FOLDER
    folder.mkdir(parents=True, mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / SOCKET))
        listener.listen(1)
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        yield connect(data, SHORT, CHOICES)
        thread.join(10)


ONE = {"shape": [1, 2], "float32": "AAAAAAAAAAA="}
ANSWERS: list[Any] = [
    ["done", [{"shape": [1, 2], "float32": "AAAA"}, [{}]]], ["done", [{**ONE, "shape": [2, 2]}, [{}]]],
    ["done", [{"shape": [1, 2], "float32": "?"}, [{}]]], ["done", [ONE, [{}, {}]]], ["done", [ONE, [{"a": 1.0}]]],
    ["done", [1.0]], ["done"], ["error", {}], ["dance"], {}, 7,
]  # fmt: skip


@pytest.mark.parametrize("answer", ["hangs", "ends", ["other"], *ANSWERS], ids=str)
def test_a_host_that_hangs_ends_or_lies_is_an_error_in_time(tmp_path: Path, answer: Any) -> None:
    def behave(wire: Wire) -> None:
        if answer == "hangs":
            wire.receive(10)
        elif answer != "ends":
            wire.send(answer)

    codes = {"hangs": "host.silent", "ends": "host.ended", "['other']": "host.restarted"}
    began = time.monotonic()
    with impostor(tmp_path / "data", behave) as hosted:
        with pytest.raises(ModelError) as caught:
            encode_both(there(hosted.encoder), ["a"], "query")
        assert caught.value.message.code == codes.get(str(answer), "host.answered_else")
        assert hosted.lost == (answer == ["other"]), "one that came back with other models"
    assert time.monotonic() - began < 5


def test_a_host_that_never_greets_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / SOCKET))
        listener.listen(5)
        began = time.monotonic()
        assert connect(tmp_path, SHORT, CHOICES).encoder is None
        assert time.monotonic() - began < 3
        assert listens(tmp_path)
        with pytest.raises(ModelError, match=r"within 0\.5 seconds"):
            status(tmp_path, SHORT, CHOICES)
    assert not listens(tmp_path)  # what a killed host leaves behind
    assert status(tmp_path, SHORT, CHOICES) is None
    assert connect(tmp_path, SHORT, CHOICES) is NOTHING


def test_a_path_too_long_for_a_socket(tmp_path: Path, start: Start) -> None:
    running = start(tmp_path / ("long" * 30) / "data")
    assert len(there(running.hosted().encoder).encode(["well"], "query")) == 1
    running.stop()
    assert not (running.data / FOLDER / SOCKET).exists()


def test_a_full_backlog_is_waited_for(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel refuses at once, however long the time that is given."""
    refused, connects = [BlockingIOError()] * 3, socket.socket.connect

    class Refusing(socket.socket):
        def connect(self, address: Any) -> None:
            if refused:
                raise refused.pop()
            connects(self, address)

    monkeypatch.setattr("localmed.models.host.client.socket.socket", Refusing)
    assert Client(house.data / FOLDER, house.settings, "").greet().choices == CHOICES
    assert not refused
