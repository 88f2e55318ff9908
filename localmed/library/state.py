"""``site.sqlite``: what belongs to the site, not to a generation: the journal, accounts, logins, history, quarantine.

Reasons never hold document text (readers promise that); what a person asked or wrote is sealed before it comes here.
The tables of accounts and what follows are read and written in ``people/`` and ``site/``, each in one module, through
``rows``.

It is made before the first generation is. Where it is missing beside one (``lost``) that is damage: an empty one would
say that nothing is stopped, that no account was disabled, and that whoever comes first may be the administrator.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from localmed.domain import Message
from localmed.domain.errors import StateLost
from localmed.library import generations, layout, older
from localmed.library.journal import now
from localmed.library.migrations import BUSY_SECONDS, SQLITE_ERRORS, as_ours, open_database, read_rows
from localmed.library.state_migrations import STATE
from localmed.messages import from_text, to_text

FILE = layout.SITE
SETTLED_NS = 100_000_000  # a file's dates go by ticks of up to 10 ms: two writes in one look like one
WHOLE_SECONDS = 1_000_000_000  # a date of a file system that keeps no parts of a second tells too little

Value = TypeVar("Value")
State = sqlite3.Connection  # the open file


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


def connect(data: Path, anew: bool = False, patience: float = BUSY_SECONDS) -> State:
    """Open or make ``<data>/site.sqlite`` (WAL): a statement is a transaction unless one is begun.

    Raise ``Damaged`` for a lost one, unless it is to be made ``anew``; ``patience``: seconds to wait for another
    process's transaction.
    """
    if not anew:
        require(data)
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    return open_database(data / FILE, STATE, wal=True, patience=patience)


@contextmanager
def rows(data: Path, patience: float = BUSY_SECONDS) -> Iterator[State]:
    """The file, open for one short use (see ``connect``).

    Raise ``Damaged`` for a row with a checksum that is not as it was stored (``sound_accounts`` and the like).
    """
    with closing(connect(data, patience=patience)) as state:
        try:
            yield state
        except SQLITE_ERRORS as error:
            raise as_ours(data / FILE, error) from None


@contextmanager
def transaction(state: State) -> Iterator[None]:
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


# --- what imports refused ---------------------------------------------------------------------------------------------


def quarantined(state: State, collection: str = "") -> list[Quarantined]:
    """Everything in quarantine, of one collection or all; what an older version refused is in its words."""
    stored = state.execute(
        "SELECT collection, path, place, sha256, recipe, reason, time FROM quarantine "
        "WHERE ? = '' OR collection = ? ORDER BY collection, path, place",
        (collection, collection),
    )
    return [
        Quarantined(name, path, from_text(place) if place else None, sha256, recipe, from_text(reason), time_)
        for name, path, place, sha256, recipe, reason, time_ in stored
    ]


def requarantine(state: State, collection: str, path: str, refused: Iterable[Quarantined]) -> None:
    """Replace what is in quarantine of one file."""
    values = [
        (it.collection, it.path, to_text(it.place) if it.place else "", it.sha256, it.recipe, to_text(it.reason), now())
        for it in refused
    ]
    with transaction(state):
        state.execute("DELETE FROM quarantine WHERE collection = ? AND path = ?", (collection, path))
        state.executemany("INSERT OR REPLACE INTO quarantine VALUES (?, ?, ?, ?, ?, ?, ?)", values)
