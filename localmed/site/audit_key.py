"""The key of the audit log, the keyed chain over its rows, and the head that is taken off the machine.

Every row carries ``mac``: an HMAC-SHA256 (RFC 2104) over its number, the digest of its entry and the ``mac`` of the row
before. Whoever may write to the log but has not the key can alter, remove or reorder rows and make every digest anew:
the chain of macs shows it. The digest is over a random salt too, so that once an entry was erased nobody can guess what
it said from what is left of it, and the chain stays whole.

The key is ``$LOCALMED_AUDIT_KEY`` (a file; one that the server's account may only read), else ``<data>/audit.key``.
Not covered: who has the key as well, and a tail that was cut off behind the last head that somebody took away.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from localmed.domain.errors import InputError
from localmed.library import layout
from localmed.process import files

KEY, ENVIRONMENT = layout.AUDIT_KEY, "LOCALMED_AUDIT_KEY"
KEY_BYTES = 32
SALT_BYTES = 16
PREFIX = "localmed-audit-head"  # what the line of a head begins with


@dataclass(frozen=True, slots=True)
class Head:
    """The newest row of a log at some time: its number, the digest of its entry, its mac."""

    number: int
    digest: str
    mac: str

    def __str__(self) -> str:
        """The line that is taken off the machine."""
        return f"{PREFIX} {self.number} {self.digest} {self.mac}"


def head_of(line: str) -> Head:
    """The head that ``line`` states; raise ``InputError`` for anything else."""
    fields = line.split()
    if len(fields) != 4 or fields[0] != PREFIX or not fields[1].isdecimal():
        raise InputError("audit.no_head")
    return Head(int(fields[1]), fields[2], fields[3])


def place(data: Path) -> Path:
    """Where the key is."""
    named = os.environ.get(ENVIRONMENT, "")
    return Path(named) if named else data / KEY


def key(data: Path) -> bytes | None:
    """The key; None where it is missing or too short."""
    with suppress(OSError):
        content = files.own_bytes(place(data))
        return content if len(content) >= KEY_BYTES else None
    return None


def make_key(data: Path) -> bytes | None:
    """A new key, where there is none; of two processes at once one makes it. None where it cannot be written."""
    path = place(data)
    with suppress(OSError):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(secrets.token_bytes(KEY_BYTES))
            stream.flush()
            os.fsync(stream.fileno())
    return key(data)


def mac(chosen: bytes, number: int, digest: str, previous: str) -> str:
    """The mac of row ``number``, whose entry has ``digest``, after a row with the mac ``previous``."""
    return hmac.new(chosen, f"{number} {digest} {previous}".encode(), hashlib.sha256).hexdigest()
