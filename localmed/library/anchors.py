"""What the audit log states of access file, withdrawal ledger, stops and accounts: how far each went, its digest.

Each of them could be rewritten so that it reads well. Every change of one is therefore noted in the audit log with the
``Anchor`` of what it left, at the end of the entry's outcome. Where the log is missing or cannot be read (``legible``),
the manifest of the generation being served still states how far both went when it was built; what came after rests on
the digests within the files, and answers say so.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from localmed.library import layout
from localmed.library.migrations import ANCHORED, SQLITE_ERRORS, read_rows
from localmed.process import files

AUDIT_FILE = layout.AUDIT
NEWEST = 32  # anchors of a kind that are compared; more writers at once there are not
PATIENCE = 1.0  # seconds for a process that holds the whole log
LOOKS = 3  # at both: a change may be written and noted between the two
AGAIN = 10.0  # seconds after which one that was held is waited for again: an answer looks several times
PLANNED, REPAIRED = "planned", "repaired"  # outcomes: about to be written; written anew by ``localmed repair``

_QUERY = "SELECT entry FROM entries WHERE {condition} ORDER BY id DESC LIMIT {most}"
_held: dict[Path, float] = {}  # logs that could not be read, and until when nobody waits for them
Kind = Literal["access", "ledger", "stops", "accounts"]


@dataclass(frozen=True, slots=True)
class Anchor:
    """A state of a file: ``extent`` is the number of changes (of the ledger: of bytes), ``outcome`` the entry's."""

    kind: Kind
    extent: int
    sha256: str
    outcome: str = ""
    time: str = ""

    def __str__(self) -> str:
        """What is appended to the outcome of an audit entry."""
        return f"; anchor {self.kind} {self.extent} {self.sha256}"


def anchors(data: Path, kind: Kind) -> list[Anchor]:
    """The newest anchors of a kind, newest first."""
    rows = _rows(data, _QUERY.format(condition=ANCHORED[kind], most=NEWEST))
    return [anchor for row in rows if (anchor := _anchor(row, kind))]


def as_noted(noted: Sequence[Anchor], changes: int, sha256: str) -> bool:
    """Whether what was changed so often is what ``noted`` (one kind, newest first) says, or was planned since.

    Each change is noted before it is written and again when it was: one that was cut off may stand or not.
    """
    made = max((anchor.extent for anchor in noted if anchor.outcome != PLANNED), default=0)
    stated = {(anchor.extent, anchor.sha256) for anchor in noted}
    return changes >= made and (not stated or not changes or (changes, sha256) in stated)


def known_as(data: Path, kind: Kind, read: Callable[[], tuple[int, str]]) -> bool:
    """Whether what ``read`` returns (changes, digest) is what the log of ``data`` says of that ``kind``."""
    return any(as_noted(anchors(data, kind), *read()) for _ in range(LOOKS))


def extent(content: bytes) -> str:
    """The whole lines of a ledger that holds ``content``: their bytes, and the digest of these."""
    whole = content[: content.rfind(b"\n") + 1]  # of one that is being written
    return f"{len(whole)} {hashlib.sha256(whole).hexdigest()}"


def ledger_extent(data: Path) -> str:
    """How far the withdrawal ledger of ``data`` goes now; "" if there is none."""
    with suppress(FileNotFoundError):
        return extent(files.own_bytes(data / layout.LEDGER))
    return ""


def newest_entry(data: Path) -> str:
    """The digest of the newest entry of the audit log; "" if there is none."""
    return next(iter(_rows(data, "SELECT digest FROM entries ORDER BY id DESC LIMIT 1")), "")


def newest_holding(data: Path, *texts: str) -> str:
    """Which of ``texts`` (without quotes that end a string of SQL) the newest entry with one of them holds; else ""."""
    condition = " OR ".join(f"instr(entry, '{text}') > 0" for text in texts)
    entry = next(iter(_rows(data, _QUERY.format(condition=condition, most=1))), "")
    return next((text for text in texts if text in entry), "")


def access_extent(data: Path) -> str:
    """How often the access file of ``data`` was changed, and its digest; "" if it says neither."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        values = json.loads(files.own_bytes(data / layout.ACCESS))
        return f"{int(values['changes'])} {values['digest']}"
    return ""


def legible(data: Path) -> bool:
    """Whether the log of ``data`` can be read, or there is none."""
    try:
        return not (data / AUDIT_FILE).exists() or _query(data, "SELECT 1 FROM entries LIMIT 1") is not None
    except OSError:
        return False


def _rows(data: Path, query: str) -> list[str]:
    with suppress(OSError):
        if (data / AUDIT_FILE).exists():
            return _query(data, query) or []
    return []


def _query(data: Path, query: str) -> list[str] | None:
    """The first column; None where the log cannot be read."""
    path, now = data / AUDIT_FILE, time.monotonic()
    try:
        values = [row[0] for row in read_rows(path, query, 0.0 if now < _held.get(path, 0.0) else PATIENCE)]
    except SQLITE_ERRORS:
        _held[path] = time.monotonic() + AGAIN
        return None
    _held.pop(path, None)
    return values


def _anchor(entry: str, kind: Kind) -> Anchor | None:
    with suppress(ValueError, KeyError, TypeError):
        values = json.loads(entry)
        outcome, _, stated = values["outcome"].rpartition("; anchor ")
        name, extent, sha256 = stated.split(" ")
        if name == kind:
            return Anchor(kind, int(extent), sha256, outcome, values["time"])
    return None
