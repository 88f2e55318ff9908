"""The tests themselves cannot reach a network."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest


def test_no_test_reaches_a_network() -> None:
    with socket.socket() as stream, pytest.raises(RuntimeError, match="tried to reach"):
        stream.connect(("192.0.2.1", 80))
    with pytest.raises(RuntimeError, match="look up"):
        socket.getaddrinfo("example.org", 443)
    with pytest.raises(RuntimeError, match="tried to reach"), socket.socket(type=socket.SOCK_DGRAM) as packets:
        packets.sendto(b"x", ("192.0.2.1", 53))


def test_local_sockets_are_allowed(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as local:
        local.bind(str(tmp_path / "s"))
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
