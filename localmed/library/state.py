"""``site.sqlite``: what belongs to the site, not to a generation: the journal, accounts, logins, history, quarantine.

Reasons never hold document text (readers promise that); what a person asked or wrote is sealed before it comes here.
The tables of accounts and what follows are read and written in ``people/`` and ``site/``, each in one module, through
``rows``.

It is made before the first generation is. Where it is missing beside one (``lost``) that is damage: an empty one would
say that nothing is stopped, that no account was disabled, and that whoever comes first may be the administrator.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from localmed.domain import Message
from localmed.domain.errors import StateLost
from localmed.library import generations, layout, older
from localmed.library.migrations import BUSY_SECONDS, SQLITE_ERRORS, as_ours, open_database, read_rows
from localmed.library.state_migrations import STATE
from localmed.messages import from_text, to_text

FILE = layout.SITE
SETTLED_NS = 100_000_000  # a file's dates go by ticks of up to 10 ms: two writes in one look like one
WHOLE_SECONDS = 1_000_000_000  # a date of a file system that keeps no parts of a second tells too little

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A file (no ``place``) or a part of it that was refused, and why."""

    collection: str
    path: str
    place: Message | None
    sha256: str
    recipe: str
    reason: Message
    time: str = ""


class State:
    """The open file; safe to use from several processes (WAL)."""

    def __init__(self, data: Path, anew: bool = False, patience: float = BUSY_SECONDS) -> None:
        """Open or make ``<data>/site.sqlite``; raise ``Damaged`` for a lost one, unless it is to be made ``anew``.

        ``patience``: seconds to wait for another process's transaction.
        """
        if not anew:
            require(data)
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._database = open_database(data / FILE, STATE, wal=True, patience=patience)

    def __enter__(self) -> Self:
        """The open file itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @property
    def connection(self) -> sqlite3.Connection:
        """The open database; a statement is a transaction unless one was begun."""
        return self._database

    def begin_import(self, collection: str) -> int:
        """Note that an import has begun; it counts as interrupted until ``finish_import``."""
        query = "INSERT INTO imports (started, collection) VALUES (?, ?)"
        return int(self._database.execute(query, (_now(), collection)).lastrowid or 0)

    def finish_import(self, run: int, outcome: str, generation: int, counts: Mapping[str, int]) -> None:
        """Note how an import ended."""
        self._database.execute(
            "UPDATE imports SET finished = ?, outcome = ?, generation = ?, counts = ? WHERE id = ?",
            (_now(), outcome, generation, json.dumps(dict(counts)), run),
        )

    def quarantined(self, collection: str = "") -> list[Quarantined]:
        """Everything in quarantine, of one collection or all."""
        rows = self._database.execute(
            "SELECT collection, path, place, sha256, recipe, reason, time FROM quarantine "
            "WHERE ? = '' OR collection = ? ORDER BY collection, path, place",
            (collection, collection),
        )
        return [_quarantined(*row) for row in rows]

    def requarantine(self, collection: str, path: str, refused: Iterable[Quarantined]) -> None:
        """Replace what is in quarantine of one file."""
        with self._database:
            self._database.execute("BEGIN")
            self._database.execute("DELETE FROM quarantine WHERE collection = ? AND path = ?", (collection, path))
            self._database.executemany(
                "INSERT OR REPLACE INTO quarantine VALUES (?, ?, ?, ?, ?, ?, ?)", [_row(entry) for entry in refused]
            )


def lost(data: Path) -> bool:
    """Whether the file is missing, or empty, though there are generations."""
    with suppress(FileNotFoundError):
        if (data / FILE).stat().st_size:
            return False
    return bool(generations.numbers(data))


def require(data: Path) -> None:
    """Raise ``Damaged`` where the file is lost; the files of before are moved into it first."""
    older.adopt(data)
    if lost(data):
        raise StateLost("state.lost", path=str(data / FILE))


@contextmanager
def rows(data: Path, patience: float = BUSY_SECONDS) -> Iterator[sqlite3.Connection]:
    """The file, open for one short use: a statement is a transaction unless the block begins one.

    Raise ``Damaged`` for a row with a checksum that is not as it was stored (``sound_accounts`` and the like).
    """
    with State(data, patience=patience) as state:
        try:
            yield state.connection
        except SQLITE_ERRORS as error:
            raise as_ours(data / FILE, error) from None


@contextmanager
def transaction(state: sqlite3.Connection) -> Iterator[None]:
    """One transaction that no other process interleaves; taken back where the block fails."""
    state.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        state.rollback()
        raise
    state.commit()


def selected(data: Path, query: str) -> list[tuple[Any, ...]]:
    """The rows of ``query``, also where nothing may be written; none of a table that this file has not got yet."""
    path = data / FILE
    require(data)
    try:
        return read_rows(path, query) if path.exists() else []
    except SQLITE_ERRORS as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR:  # of the query: the table is not there
            return []
        raise as_ours(path, error) from None


class Remembered(Generic[Value]):
    """What ``read`` has found in ``site.sqlite`` of a data folder, for as long as the file lies there as it did.

    A stat of the file and its log of writes takes the place of reading: every process sees what another has written
    from its next call on. An error is never kept.
    """

    def __init__(self, read: Callable[[Path], Value]) -> None:
        self._read = read
        self._known: dict[Path, tuple[_Stamp, Value]] = {}

    def __call__(self, data: Path) -> Value:
        """What ``read`` finds, or found; raises what it raises."""
        stamp, known = _stamp(data), self._known.get(data)
        if known and stamp == known[0]:
            return known[1]
        value = self._read(data)
        if stamp and _settled(stamp):
            self._known[data] = stamp, value
        return value


_Stamp = tuple[tuple[int, ...], ...]  # of the file and its log: inode, size, dates of content and inode
SHARED_HEADER = 96  # bytes of SQLite's index of its log, which change when a transaction becomes visible


def _stamp(data: Path) -> _Stamp:
    """What tells that the file was not written to; nothing where there is none."""
    states = stamp_of(data / FILE), stamp_of(data / f"{FILE}-wal")
    visible = b""
    with suppress(OSError), (data / f"{FILE}-shm").open("rb") as shared:
        visible = shared.read(SHARED_HEADER)
    return (*states, tuple(visible)) if states[0] else ()


def stamp_of(path: Path) -> tuple[int, ...]:
    """What tells that a file was not written to (inode, size, dates); nothing of an empty one, or of none."""
    with suppress(OSError):
        state = path.stat()
        if state.st_size:
            return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns
    return ()


def _settled(stamp: _Stamp) -> bool:
    """Whether whatever is written from now on has another stamp."""
    changed = max(max(state[2:]) for state in stamp[:2] if state)
    return bool(changed % WHOLE_SECONDS) and time.time_ns() - changed > SETTLED_NS


def _row(refused: Quarantined) -> tuple[str, ...]:
    place = to_text(refused.place) if refused.place else ""
    return (
        refused.collection, refused.path, place, refused.sha256, refused.recipe, to_text(refused.reason), _now()
    )  # fmt: skip


def _quarantined(
    collection: str, path: str, place: str, sha256: str, recipe: str, reason: str, time: str
) -> Quarantined:
    """A row; what an older version stored is text in one language."""
    where = from_text(place) if place else None
    return Quarantined(collection, path, where, sha256, recipe, from_text(reason), time)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
