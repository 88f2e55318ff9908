"""Messages between a command and the model host: frames on a stream socket, bounded in size and time.

A frame is ``LMh1``, the length of a JSON object and the length of what follows it (4 bytes each, the first byte most
significant), the object in ASCII, and raw bytes: vectors as float32, little endian. The object has the keys ``kind``
(text) and ``values`` (object). Nothing in a frame is ever executed, and its length costs no memory before it came.

The first frame of each side says who it is. Then a client asks one thing at a time; while it waits the host sends
``token``, ``progress`` and ``beat`` frames, and at last one other frame, which is the answer or an ``error``.
``cancel`` is the only thing that a client may send meanwhile.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from localmed.domain import errors
from localmed.domain.errors import LocalmedError, ModelError

if TYPE_CHECKING:
    from localmed.domain.ports import Vectors, Weights

VERSION = 3  # of the messages; both sides must have the same, and the same version of localmed
MAGIC = b"LMh1"
FOLDER = "host"  # in the data folder, for its owner only
SOCKET = "host.sock"
LONGEST_ADDRESS = 107  # bytes that the kernel takes as the path of a socket

_HEAD = struct.Struct(">4sII")
_READ = 2**20  # bytes taken at a time
_CREDENTIALS = struct.Struct("3i")  # process, user and group, as the kernel gives them


class Broken(Exception):
    """The other side has gone, is too slow, or sent what is no frame; the connection is of no more use."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message."""

    kind: str
    values: Mapping[str, Any]
    blob: bytes | bytearray = b""


class Wire:
    """One connection. ``most`` bounds a frame in bytes; ``seconds`` is how long one may take from its first byte."""

    def __init__(self, connection: socket.socket, most: int, seconds: float) -> None:
        self._socket, self._most, self._seconds = connection, most, seconds

    def fileno(self) -> int:
        """For ``poll``; nothing is buffered here between two frames."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def end(self) -> None:
        """Wake whoever waits at this connection, on both sides."""
        with suppress(OSError):  # it is closed already
            self._socket.shutdown(socket.SHUT_RDWR)

    def peer(self) -> tuple[int, int]:
        """The process and the user at the other end, as the kernel knows them."""
        credentials = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        process, user, _ = _CREDENTIALS.unpack(credentials)
        return process, user

    def send(self, frame: Frame) -> None:
        """Send ``frame``; raise ``ModelError`` if it is too large, ``Broken`` if it is not taken in time."""
        body = json.dumps({"kind": frame.kind, "values": frame.values}).encode("ascii")
        if len(body) + len(frame.blob) > self._most:
            raise self._too_large()
        deadline = time.monotonic() + self._seconds
        for part in (_HEAD.pack(MAGIC, len(body), len(frame.blob)) + body, frame.blob):
            self._put(memoryview(part), deadline)

    def _put(self, left: memoryview, deadline: float) -> None:
        while left:
            try:
                self._socket.settimeout(_left(deadline))
                left = left[self._socket.send(left) :]
            except OSError:
                raise Broken from None

    def receive(self, wait: float | None) -> Frame | None:
        """The next frame, None if none begins within ``wait`` seconds (None: for ever).

        Raise ``Broken``, or ``ModelError`` if it is too large; the connection is of no more use after either.
        """
        try:
            self._socket.settimeout(wait)
            first = self._socket.recv(1)
        except (TimeoutError, BlockingIOError):
            return None
        except OSError:
            raise Broken from None
        if not first:
            raise Broken
        deadline = time.monotonic() + self._seconds
        magic, body, blob = _HEAD.unpack(first + self._take(_HEAD.size - 1, deadline))
        if magic != MAGIC:
            raise Broken
        if body + blob > self._most:
            raise self._too_large()
        return _frame(self._take(body, deadline), self._take(blob, deadline))

    def _too_large(self) -> ModelError:
        return ModelError("host.message_bytes", most=self._most)

    def _take(self, count: int, deadline: float) -> bytearray:
        """Exactly ``count`` bytes; memory grows with what has come, not with what was announced."""
        taken = bytearray()
        while len(taken) < count:
            try:
                self._socket.settimeout(_left(deadline))
                piece = self._socket.recv(min(_READ, count - len(taken)))
            except OSError:
                raise Broken from None
            if not piece:
                raise Broken
            taken += piece
        return taken


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _frame(body: bytearray, blob: bytearray) -> Frame:
    try:
        message = json.loads(body)
        kind, values = message["kind"], message["values"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Broken from None
    if not isinstance(kind, str) or not isinstance(values, dict):
        raise Broken
    return Frame(kind, values, blob)


# --- where ---------------------------------------------------------------------------------------------------------


@contextmanager
def address(folder: Path) -> Iterator[str]:
    """The socket in ``folder`` as the kernel takes it: where its path is too long, by the number of the open folder."""
    path = str(folder / SOCKET)
    if len(os.fsencode(path)) <= LONGEST_ADDRESS:
        yield path
        return
    opened = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{opened}/{SOCKET}"
    finally:
        os.close(opened)


# --- what is sent --------------------------------------------------------------------------------------------------


def error_frame(error: BaseException) -> Frame:
    """``error`` as a frame: of ours its messages, of any other its class only, since its words may quote a text."""
    if not isinstance(error, LocalmedError):
        error = ModelError("host.failed", kind=type(error).__name__)
    return Frame("error", errors.as_json(error))


def raise_error(frame: Frame) -> NoReturn:
    """Raise what an ``error`` frame says, as the class that it was."""
    try:
        error = errors.from_json(frame.values, ModelError, LocalmedError)
    except ValueError:
        error = unexpected()
    raise error


def vectors_frame(vectors: Vectors, weights: Sequence[Weights] | None) -> Frame:
    """Vectors (N, D), and each text's token weights where there are any."""
    exact = np.ascontiguousarray(vectors, "<f4")
    values: dict[str, Any] = {"shape": list(exact.shape)}
    if weights is not None:  # numbers of the model's own kind become Python's, without loss
        values["weights"] = [[[int(key), float(value)] for key, value in weight.items()] for weight in weights]
    return Frame("vectors", values, exact.tobytes())


def vectors_of(frame: Frame, count: int, dimensions: int) -> tuple[Vectors, list[Weights]]:
    """What ``vectors_frame`` made of ``count`` texts; raise ``ModelError`` for anything else."""
    try:
        if frame.kind != "vectors" or len(frame.blob) != 4 * count * dimensions:
            raise ValueError
        vectors = np.frombuffer(frame.blob, "<f4").reshape(count, dimensions)
        rows = frame.values.get("weights", [[]] * count)
        weights: list[Weights] = [{int(key): float(value) for key, value in pairs} for pairs in rows]
        if len(weights) != count:
            raise ValueError
    except (ValueError, TypeError):
        raise unexpected() from None
    return vectors, weights


def vector_of(frame: Frame) -> Vectors:
    """The vector (D,) that comes with a search, or several in a row; raise ``ModelError`` where there is none."""
    if not frame.blob or len(frame.blob) % 4:
        raise unexpected()
    return np.frombuffer(frame.blob, "<f4")


def unexpected() -> ModelError:
    """The host sent something else than an answer to what was asked."""
    return ModelError("host.answered_else")
