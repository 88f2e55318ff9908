"""``site.sqlite``: what belongs to the site, not to a generation: the journal, accounts, logins, history, quarantine.

Reasons never contain document text (readers promise that); questions and comments are sealed before they are stored
here. Modules of ``people/`` and ``site/`` read and write their own tables through ``rows``.

The file is created before the first generation. If it is missing beside one (``is_lost``) that is damage: an empty file
would lift all stops, enable disabled accounts, and let the next visitor become the administrator.
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
from localmed.library.migrations import BUSY_SECONDS, SQLITE_ERRORS, open_database, read_rows, translate_error
from localmed.library.state_migrations import STATE
from localmed.messages import from_text, to_text

FILE = layout.SITE
SETTLED_NS = 20_000_000  # file dates have ticks of up to 10 ms: two writes in one tick look alike
WHOLE_SECONDS = 1_000_000_000  # file systems with dates in whole seconds tell too little

Value = TypeVar("Value")
State = sqlite3.Connection  # the open file


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A refused file (no ``place``) or a refused part of it, and the reason."""

    collection: str
    path: str
    place: Message | None
    sha256: str
    recipe: str
    reason: Message
    time: str = ""


def is_lost(data: Path) -> bool:
    """Whether the file is missing or empty although generations exist."""
    with suppress(FileNotFoundError):
        if (data / FILE).stat().st_size:
            return False
    return bool(generations.numbers(data))


def require(data: Path) -> None:
    """Move an older version's files into it; raise ``Damaged`` if the file is lost."""
    older.adopt(data)
    if is_lost(data):
        raise StateLost("state.lost", path=str(data / FILE))


def connect(data: Path, anew: bool = False, patience: float = BUSY_SECONDS) -> State:
    """Open or create ``<data>/site.sqlite`` (WAL, autocommit).

    Raise ``Damaged`` for a lost one, unless ``anew``. ``patience`` is the number of seconds to wait for another
    process's transaction.
    """
    if not anew:
        require(data)
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    return open_database(data / FILE, STATE, wal=True, patience=patience)


@contextmanager
def rows(data: Path, patience: float = BUSY_SECONDS) -> Iterator[State]:
    """Open the file for one short use (see ``connect``).

    Raise ``Damaged`` for an altered row with a checksum (``sound_accounts`` and other views).
    """
    with closing(connect(data, patience=patience)) as state:
        try:
            yield state
        except SQLITE_ERRORS as error:
            raise translate_error(data / FILE, error) from None


@contextmanager
def transaction(state: State) -> Iterator[None]:
    """Run the block in one write transaction that no other writer interleaves; roll back if it fails."""
    state.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        state.rollback()
        raise
    state.commit()


def selected(data: Path, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of ``query``, also from a read-only folder; none if the file lacks the table."""
    path = data / FILE
    require(data)
    try:
        return read_rows(path, query) if path.exists() else []
    except SQLITE_ERRORS as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR:  # of the query: the table is not there
            return []
        raise translate_error(path, error) from None


class Remembered(Generic[Value]):
    """Caches what ``read`` returns for a data folder while ``site.sqlite`` and its log are unchanged on disk.

    A stat replaces reading: every process sees another's change from its next call on. Errors are not cached.
    """

    def __init__(self, read: Callable[[Path], Value]) -> None:
        self._read = read
        self._known: dict[Path, tuple[_Stamp, Value]] = {}

    def __call__(self, data: Path) -> Value:
        """Return what ``read`` returns now; raise what it raises."""
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
    """Return a stamp that changes when the file is written to; empty if there is none."""
    states = stamp_of(data / FILE), stamp_of(data / f"{FILE}-wal")
    visible = b""
    with suppress(OSError), (data / f"{FILE}-shm").open("rb") as shared:
        visible = shared.read(SHARED_HEADER)
    return (*states, tuple(visible)) if states[0] else ()


def stamp_of(path: Path) -> tuple[int, ...]:
    """Return inode, size and dates of a file; empty for a missing or empty one."""
    with suppress(OSError):
        state = path.stat()
        if state.st_size:
            return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns
    return ()


def _settled(stamp: _Stamp) -> bool:
    """Whether any later write must change the stamp."""
    changed = max(max(state[2:]) for state in stamp[:2] if state)
    return bool(changed % WHOLE_SECONDS) and time.time_ns() - changed > SETTLED_NS


def quarantined(state: State, collection: str = "") -> list[Quarantined]:
    """Return the quarantine of one collection or all; entries of an older version are text."""
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
    """Replace the quarantine entries of one file."""
    values = [
        (it.collection, it.path, to_text(it.place) if it.place else "", it.sha256, it.recipe, to_text(it.reason), now())
        for it in refused
    ]
    with transaction(state):
        state.execute("DELETE FROM quarantine WHERE collection = ? AND path = ?", (collection, path))
        state.executemany("INSERT OR REPLACE INTO quarantine VALUES (?, ?, ?, ?, ?, ?, ?)", values)
