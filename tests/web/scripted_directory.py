"""A directory that answers as a test says, down to LDAP's result codes (RFC 4511); on the loopback, without TLS."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from localmed.config import LdapSettings

BASE = "dc=hospital,dc=example"
LOOKUP = f"cn=lookup,ou=people,{BASE}"
PASSWORD = "a directory's password"
BIND, UNBIND, SEARCH = 0x60, 0x42, 0x63
REPLY_TO_BIND, ENTRY, DONE, REFERENCE = 0x61, 0x64, 0x65, 0x73

Entry = tuple[str, Mapping[str, tuple[str, ...]]]  # DN and attributes


@dataclass
class Script:
    """What the directory answers. Whoever is called ``uid`` has the entry ``uid=...,ou=people`` and ``PASSWORD``."""

    looking: int = 0  # result of the looking account's bind
    binding: int | None = None  # of everybody else's; None: 0 with the right password, else 49
    people: int = 0  # of the search for a person
    groups: int = 0  # of the search for groups
    references: int = 0  # how many continuation references stand among the groups
    memberships: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # attributes of each person
    more: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # when asked for the next range of values
    member_of: tuple[str, ...] = (f"cn=Ward 3,ou=groups,{BASE}",)
    binds: list[str] = field(default_factory=list)  # who tried to bind, in order


def _tlv(tag: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    size = len(body)
    length = bytes([size]) if size < 128 else bytes([0x82, size >> 8, size & 255])
    return bytes([tag]) + length + body


def _text(value: str, tag: int = 0x04) -> bytes:
    return _tlv(tag, value.encode())


def _read(data: bytes, at: int = 0) -> tuple[int, bytes, int]:
    """Tag and content of the element at ``at``, and where the next one begins."""
    tag, length = data[at], data[at + 1]
    at += 2
    if length & 128:
        count = length & 127
        length, at = int.from_bytes(data[at : at + count], "big"), at + count
    return tag, data[at : at + length], at + length


def _result(tag: int, code: int) -> bytes:
    return _tlv(tag, _tlv(0x0A, bytes([code])), _text(""), _text(""))


def _entry(dn: str, attributes: Mapping[str, tuple[str, ...]]) -> bytes:
    listed = [_tlv(0x30, _text(name), _tlv(0x31, *map(_text, values))) for name, values in attributes.items()]
    return _tlv(ENTRY, _text(dn), _tlv(0x30, *listed))


def _answers(script: Script, tag: int, body: bytes) -> Iterator[bytes]:
    if tag == BIND:
        _, _, at = _read(body)  # version
        _, name, at = _read(body, at)
        _, password, _ = _read(body, at)
        dn = name.decode()
        right = 0 if password.decode() == PASSWORD else 49
        first = dn == LOOKUP and not right
        script.binds.append(dn)
        yield _result(REPLY_TO_BIND, script.looking if first else right if script.binding is None else script.binding)
    elif tag == SEARCH and b"ou=groups" in _read(body)[1]:
        for dn in script.member_of:
            yield _entry(dn, {"cn": ("group",)})
        for _ in range(script.references):
            yield _tlv(REFERENCE, _text("ldap://elsewhere.example/ou=groups"))
        yield _result(DONE, script.groups)
    elif tag == SEARCH and b"uid\x04" not in body:
        if script.more:
            yield _entry(_read(body)[1].decode(), script.more)
        yield _result(DONE, 0)
    elif tag == SEARCH:
        uid = body.partition(b"uid\x04")[2]
        user = uid[1 : 1 + uid[0]].decode()
        dn = LOOKUP if user == "lookup" else f"uid={user},ou=people,{BASE}"
        if not script.people and user != "nobody":
            yield _entry(dn, {"uid": (user,), **script.memberships})
        yield _result(DONE, script.people)


@contextmanager
def answering(script: Script, password_file: str = "") -> Iterator[LdapSettings]:
    """The directory of ``script`` until the block ends: its settings."""

    class Line(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            received = b""
            while piece := self.request.recv(65536):
                received += piece
                while received and len(received) >= (end := _read(received)[2] if len(received) > 6 else 1 << 30):
                    _, message, _ = _read(received)
                    received = received[end:]
                    _, number, at = _read(message)
                    tag, body, _ = _read(message, at)
                    if tag == UNBIND:
                        return
                    for answer in _answers(script, tag, body):
                        self.request.sendall(_tlv(0x30, _tlv(0x02, number), answer))

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    with Server(("127.0.0.1", 0), Line) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        serving.start()
        try:
            yield LdapSettings(
                f"ldap://127.0.0.1:{server.server_address[1]}", plain=True, bind_dn=LOOKUP,
                bind_password_file=password_file, base=f"ou=people,{BASE}", group_base=f"ou=groups,{BASE}",
                roles=(f"cn=Ward 3,ou=groups,{BASE} -> reader ward3",), seconds=15.0,
            )  # fmt: skip
        finally:
            server.shutdown()
            serving.join(10)
