"""The protocol between commands and the model host: lines of JSON on a stream socket, bounded in size and time.

Each connection carries one request. The client sends a ``Call``; the host sends ``["token", text]``, ``["progress",
done, total]`` and ``["beat"]`` while it works, then ``["done", value]``, ``["error", {}]`` or ``["other"]`` (its models
or version differ). Closing the connection cancels the request.

The methods of ``PORTS`` can be called. Arguments and results are JSON (vectors: little-endian float32 in base64) and
are validated against the port's type annotations. Nothing in a message is executed.
"""

from __future__ import annotations

import base64
import inspect
import json
import os
import socket
import struct
import time
import typing
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from localmed.domain import SearchFilter, errors
from localmed.domain.codec import field_types
from localmed.domain.errors import LocalmedError, ModelError
from localmed.domain.ports import CountingChat, Embedder, Entailment, Reranker, SparseEncoder
from localmed.process import children

if TYPE_CHECKING:
    from localmed.domain.ports import Vectors

FOLDER = "host"  # in the data folder, for its owner only
SOCKET = "host.sock"
LONGEST_ADDRESS = 107  # bytes of a socket's path, the kernel's limit
MOST_ITEMS = 1024  # items of a list in a request: an encoder's longest turn, some 15 seconds on two cores

_CREDENTIALS = struct.Struct("3i")  # process, user and group, from the kernel


class Nearest(Protocol):
    """Searches the dense index of a generation (``library.dense``), which the caller must keep from being pruned."""

    def search(
        self, generation: str, vector: Vectors, limit: int, filters: SearchFilter
    ) -> list[tuple[str, str, float]]:
        """The nearest passages as ``(id, document, similarity)``."""
        ...

    def similarities(self, generation: str, questions: Vectors, ids: Sequence[str]) -> dict[str, list[float]]:
        """For each passage, the similarity of each sentence to the nearest of ``questions`` (Q, D)."""
        ...


Owner = Literal["small", "chat", "index"]  # a thread each
# What a host may own, by role. ``fitted`` is the encoder on whose vectors the rules' weights were fitted; the index is
# included so that a command that only searches need not open it.
PORTS: dict[str, tuple[Owner, Any]] = {
    "encoder": ("small", SparseEncoder),
    "fitted": ("small", Embedder),
    "reranker": ("small", Reranker),
    "entailment": ("small", Entailment),
    "chat": ("chat", CountingChat),
    "nearest": ("index", Nearest),
}


@dataclass(frozen=True, slots=True)
class Method:
    """The signature of a port's method, with the types of its parameters and result."""

    signature: inspect.Signature
    types: Mapping[str, Any]
    result: Any


@cache
def methods(role: str) -> dict[str, Method]:
    """The methods of a role's port, by name."""
    found = {}
    for name, method in inspect.getmembers(PORTS[role][1], inspect.isfunction):
        if not name.startswith("_"):
            types = _types(method)
            found[name] = Method(inspect.signature(method), types, types.pop("return"))
    return found


@cache
def facts(role: str) -> dict[str, Any]:
    """The properties of a role's port, with their types."""
    properties = inspect.getmembers(PORTS[role][1], lambda member: isinstance(member, property))
    return {name: _types(member.fget)["return"] for name, member in properties}


def _types(function: Any) -> dict[str, Any]:
    return typing.get_type_hints(function, localns={"Vectors": np.ndarray})


@dataclass(frozen=True, slots=True)
class Call:
    """Call ``method`` of the model that serves ``role``; without a role, ``welcome`` or ``status`` of the host.

    ``choices`` are the host's as the client knows them; the host takes turns between ``user`` names. ``heard``: send
    tokens.
    """

    version: str
    user: str
    role: str
    method: str
    arguments: Mapping[str, Any]
    choices: Mapping[str, str]
    low: bool = False
    heard: bool = False


@dataclass(frozen=True, slots=True)
class Welcome:
    """A host's version, the properties of its models by role, and how they were chosen."""

    version: str
    models: Mapping[str, Any]
    choices: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Status:
    """A host's state: requests waiting by owner, served and failed by method; memory in bytes, with its children."""

    process: int
    version: str
    seconds: float
    models: dict[str, str]
    choices: dict[str, str]
    connections: int
    waiting: dict[str, int]
    served: dict[str, int]
    failed: dict[str, int]
    memory: int
    others: list[str] = field(default_factory=list)  # roles where a command's settings choose another model


MALFORMED = (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError)  # what ``read`` raises


# --- values -----------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Convert values that ``json`` cannot write."""
    if is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, np.ndarray):
        exact = np.ascontiguousarray(value, "<f4")
        return {"shape": exact.shape, "float32": base64.b64encode(exact.tobytes()).decode("ascii")}
    return dict(value) if isinstance(value, Mapping) else value.item()  # a numpy number


def read(value: Any, kind: Any, most: int | None = None) -> Any:
    """Validate JSON as a value of type ``kind``, with lists of at most ``most`` items; raise one of ``MALFORMED``."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if kind is np.ndarray:
        numbers = bytearray(base64.b64decode(value["float32"], validate=True))
        return np.frombuffer(numbers, "<f4").reshape(value["shape"])
    if origin in (typing.Union, UnionType):
        return None if value is None else read(value, parts[0], most)
    if origin is Literal and value in parts:
        return value
    if is_dataclass(kind):
        made: Any = kind
        types = field_types(made)
        return made(**{name: read(item, types[name], most) for name, item in value.items()})
    if origin in (tuple, list, Sequence):
        return _read_list(value, origin, parts, most)
    if origin in (dict, Mapping):
        return {parts[0](key): read(item, parts[1], most) for key, item in value.items()}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    if type(value) is not kind and (kind, type(value)) != (float, int):
        raise ValueError
    return kind(value)


def _read_list(value: Any, origin: Any, parts: Sequence[Any], most: int | None) -> Any:
    if not isinstance(value, list) or (most is not None and len(value) > most):
        raise ValueError
    if origin is tuple and parts[-1] is not Ellipsis:
        return tuple(read(item, part, most) for item, part in zip(value, parts, strict=True))
    item_kind = parts[0]
    if item_kind not in (str, int, float) or not all(type(item) is item_kind for item in value):
        value = [read(item, item_kind, most) for item in value]
    return tuple(value) if origin is tuple else value


# --- the socket -------------------------------------------------------------------------------------------------------


class Broken(Exception):
    """The other side has gone, is too slow, or sent no valid message; the connection cannot be used again."""


class Wire:
    """One connection; messages have at most ``most`` bytes and arrive within ``seconds`` of their first byte."""

    def __init__(self, connection: socket.socket, most: int, seconds: float) -> None:
        self._socket, self._most, self._seconds = connection, most, seconds
        self._lines, self._waiting = children.Lines(most), deque[bytes]()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def peer(self) -> tuple[int, int]:
        """The process and user at the other end, from the kernel."""
        credentials = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        process, user, _ = _CREDENTIALS.unpack(credentials)
        return process, user

    def send(self, message: Any) -> None:
        """Send ``message``; raise ``ModelError`` if it is too large, ``Broken`` if it is not accepted in time."""
        line = json.dumps(message, default=plain).encode("ascii") + b"\n"
        if len(line) > self._most:
            raise self._too_large()
        try:
            self._socket.settimeout(self._seconds)
            self._socket.sendall(line)
        except OSError:
            raise Broken from None

    def receive(self, wait: float) -> Any:
        """The next message, None if none begins within ``wait`` seconds.

        Raise ``Broken``, or ``ModelError`` if it is too large; the connection cannot be used after either.
        """
        deadline = 0.0
        while not self._waiting:
            try:
                self._socket.settimeout(max(0.0, deadline - time.monotonic()) if deadline else wait)
                piece = self._socket.recv(children.PIECE)
                self._waiting.extend(self._lines.take(piece))
            except (TimeoutError, BlockingIOError):
                if deadline:
                    raise Broken from None
                return None
            except OSError:
                raise Broken from None
            except children.TooLong:
                raise self._too_large() from None
            if not piece:
                raise Broken
            deadline = deadline or time.monotonic() + self._seconds
        line = self._waiting.popleft()
        if len(line) > self._most:
            raise self._too_large()
        with suppress(ValueError, RecursionError):
            return json.loads(line)
        raise Broken

    def _too_large(self) -> ModelError:
        return ModelError("host.message_bytes", most=self._most)


@contextmanager
def address(folder: Path) -> Iterator[str]:
    """The socket's address: if its path is too long for the kernel, through a descriptor of the open folder."""
    path = str(folder / SOCKET)
    if len(os.fsencode(path)) <= LONGEST_ADDRESS:
        yield path
        return
    opened = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{opened}/{SOCKET}"
    finally:
        os.close(opened)


def failure(error: BaseException) -> list[Any]:
    """``error`` as a message; of foreign exceptions only the class, since their text may quote the request."""
    if not isinstance(error, LocalmedError):
        error = ModelError("host.failed", kind=type(error).__name__)
    return ["error", errors.as_json(error)]


def unexpected_answer() -> ModelError:
    """The error for an answer that does not match the request."""
    return ModelError("host.answered_else")
