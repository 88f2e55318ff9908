"""What is no client harms nobody else, and a host that is none, hangs or lies is a clean error in bounded time."""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from localmed import __version__
from localmed.config import HostSettings
from localmed.domain.errors import Busy, ModelError
from localmed.models.host import hosting, protocol
from localmed.models.host.adapters import NOTHING, Hosted, connect
from localmed.models.host.client import Client, listens
from localmed.models.host.protocol import FOLDER, SOCKET, VERSION, Broken, Frame, Wire
from tests.models.host.conftest import Start
from tests.models.host.house import CHOICES, House

SHORT = HostSettings(connect_seconds=0.5, silent_seconds=0.6)


def head(body: int, blob: int, magic: bytes = b"LMh1") -> bytes:
    return struct.pack(">4sII", magic, body, blob)


def framed(message: Any) -> bytes:
    body = json.dumps(message).encode()
    return head(len(body), 0) + body


HELLO = framed({"kind": "hello", "values": {"protocol": VERSION, "version": __version__}})
GARBAGE = {
    "nothing of ours": b"GET / HTTP/1.1\r\n\r\n",
    "zeros": bytes(4096),
    "too large": head(2**31, 2**31),
    "large after hello": HELLO + head(2**30, 2**30),
    "no JSON": head(5, 0) + b"{{{{{",
    "nested": head(200_000, 0) + b"[" * 200_000,
    "no object": framed(["hello"]),
    "kind is a number": framed({"kind": 1, "values": {}}),
    "no hello": framed({"kind": "encode", "values": {"texts": ["a"], "kind": "query", "sparse": False, "fitted": ""}}),
    "other protocol": framed({"kind": "hello", "values": {"protocol": 99, "version": __version__}}),
    "other version": framed({"kind": "hello", "values": {"protocol": VERSION, "version": "9"}}),
    "half a frame": HELLO + head(100, 0) + b"{",
    "hello and gone": HELLO,
}


@pytest.fixture
def patient(start: Start) -> House:
    """A host that waits for a third of a second."""
    return start(settings=HostSettings(message_seconds=0.3))


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_ends_its_own_connection_only(patient: House, name: str) -> None:
    hosted = patient.hosted()
    with patient.dialled() as bad:
        bad.sendall(GARBAGE[name])
        if name.endswith("gone"):
            bad.shutdown(socket.SHUT_WR)
        ended(bad)
    assert hosted.encoder is not None
    assert len(hosted.encoder.encode(["others go on"], "query")) == 1
    assert patient.host.status().connections == 1
    hosted.close()


def ended(connection: socket.socket) -> None:
    """The host closes ``connection``, before the test's own bound of ten seconds."""
    with suppress(ConnectionResetError):  # of what it had not read yet
        while connection.recv(65536):
            continue


def test_silent_connections_are_closed_and_a_slow_one_waits_alone(start: Start) -> None:
    house = start(settings=HostSettings(message_seconds=3.0))
    with house.dialled() as silent, house.dialled() as slow:
        slow.sendall(HELLO[:3])
        began = time.monotonic()
        hosted = house.hosted()
        assert hosted.encoder is not None
        assert len(hosted.encoder.encode(["others go on"], "query")) == 1
        assert time.monotonic() - began < 3
        assert silent.recv(1) == slow.recv(1) == b""
        hosted.close()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("dance", {}), ("encode", {}), ("encode", {"texts": ["a", 1], "kind": "query", "sparse": False, "fitted": ""}),
        ("encode", {"texts": ["a"] * 1025, "kind": "query", "sparse": False, "fitted": ""}),
        ("encode", {"texts": ["a"], "kind": "query", "sparse": False, "fitted": "another"}),
        ("score", {"question": 1, "passages": []}), ("complete", {"roles": ["judge"], "contents": ["a"]}),
        ("complete", {"roles": ["user"], "contents": ["a"], "max_tokens": 1, "temperature": "hot", "seed": 0}),
        ("nearest", {"generation": "1", "limit": 0})
    ],
)  # fmt: skip
def test_a_request_that_is_none_is_refused_and_the_next_one_served(house: House, kind: str, values: Any) -> None:
    client = Client(house.data / FOLDER, house.settings, "")
    with pytest.raises(ModelError, match=r"cannot serve|unexpected reply"):
        client.ask(kind, values)
    assert client.ask("count", {"texts": ["a b"]}).values == {"counts": [2]}
    assert set(house.host.status().failed) <= {kind, "unknown"} - {"dance"}
    client.close()


def test_connections_are_bounded(start: Start) -> None:
    running = start(settings=HostSettings(connections=2))
    first, second = running.wire(__version__), running.wire(__version__)
    with pytest.raises(Busy, match=r"host\.connections"):
        Client(running.data / FOLDER, running.settings, "").greet()
    assert connect(running.data, running.settings, CHOICES) is NOTHING  # and the command loads its own
    for wire in (first, second):
        wire.close()
    running.stop()


def _all_of(wire: Wire) -> None:
    while wire.receive(10):
        continue


def test_a_client_that_asks_while_it_is_answered_is_dropped(house: House) -> None:
    wire = house.wire(__version__)
    wire.send(Frame("encode", {"texts": ["wait"], "kind": "query", "sparse": False, "fitted": ""}))
    assert house.encoder.reached.wait(10)
    wire.send(Frame("encode", {"texts": ["more"], "kind": "query", "sparse": False, "fitted": ""}))
    house.encoder.go_on.set()
    with pytest.raises(Broken):
        _all_of(wire)
    assert "more" not in house.encoder.encoded
    wire.close()


def test_a_client_that_never_reads_harms_nobody(patient: House) -> None:
    wire = patient.wire(__version__)
    wire.send(Frame("encode", {"texts": ["many different words here"] * 1000, "kind": "query", "sparse": True}))
    hosted = patient.hosted()
    assert hosted.encoder is not None
    for number in range(5):
        assert len(hosted.encoder.encode([f"others go on {number}"], "query")) == 1
    hosted.close()
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
        command = [sys.executable, "-c", STRANGER, str(folder), HELLO.hex()]
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
def impostor(data: Path, behave: Callable[[Wire], object]) -> Iterator[Client]:
    """A client of something that listens where a host would, and greets as one, and then does as it likes."""
    models = {"encoder": {"name": "x", "version": "1", "dimensions": 2, "languages": ["en"]}}
    greeting = {
        "protocol": VERSION,
        "version": __version__,
        "models": models,
        "choices": CHOICES,
        "searches": True,
        "fitted": {},
    }

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        wire = Wire(connection, 10**6, 10)
        wire.receive(10)
        wire.send(Frame("welcome", greeting))
        with suppress(Broken):  # the client has given up
            behave(wire)
        wire.close()

    folder = data / FOLDER
    folder.mkdir(parents=True, mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / SOCKET))
        listener.listen(1)
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        client = Client(folder, SHORT, "")
        yield client
        client.close()
        thread.join(10)


def hang(wire: Wire) -> None:
    wire.receive(10)
    wire.receive(10)  # until the client gives up


def lie(answer: Frame) -> Callable[[Wire], object]:
    def behave(wire: Wire) -> None:
        wire.receive(10)
        wire.send(answer)
        wire.receive(10)

    return behave


@pytest.mark.parametrize("behave", [hang, lambda wire: wire.receive(10)], ids=["hangs", "ends"])
def test_a_host_that_does_not_answer_is_an_error_in_time(tmp_path: Path, behave: Callable[[Wire], object]) -> None:
    began = time.monotonic()
    with impostor(tmp_path / "data", behave) as client, pytest.raises(ModelError, match=r"no activity|in the middle"):
        client.ask("encode", {"texts": ["a"]})
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "answer",
    [
        Frame("vectors", {"shape": [1, 2]}, b"abc"),
        Frame("vectors", {"shape": [1, 2], "weights": [[], []]}, bytes(8)),
        Frame("vectors", {"shape": [1, 2], "weights": ["ab"]}, bytes(8)),
        Frame("scores", {"scores": [1.0]}),
        Frame("error", {}),
        Frame("dance", {}),
    ],
)
def test_an_answer_that_is_none_is_an_error(tmp_path: Path, answer: Frame) -> None:
    with impostor(tmp_path / "data", lie(answer)) as client:
        with pytest.raises(ModelError):
            protocol.vectors_of(client.ask("encode", {"texts": ["a"]}), 1, 2)
        client.close()


def test_a_host_that_never_greets_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / SOCKET))
        listener.listen(5)
        began = time.monotonic()
        assert connect(tmp_path, SHORT, CHOICES) is NOTHING
        assert time.monotonic() - began < 3
        assert listens(tmp_path)
        with pytest.raises(ModelError, match=r"within 0\.5 seconds"):
            hosting.status(tmp_path, SHORT, CHOICES)
    assert not listens(tmp_path)  # what a killed host leaves behind
    assert hosting.status(tmp_path, SHORT, CHOICES) is None
    assert connect(tmp_path, SHORT, CHOICES) is NOTHING


def test_a_path_too_long_for_a_socket(tmp_path: Path, start: Start) -> None:
    running = start(tmp_path / ("long" * 30) / "data")
    hosted: Hosted = running.hosted()
    assert hosted.encoder is not None
    assert len(hosted.encoder.encode(["well"], "query")) == 1
    hosted.close()
    running.stop()
    assert not (running.data / FOLDER / SOCKET).exists()
