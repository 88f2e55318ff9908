"""Reading stored bytes: every engine's report of damage becomes ``Damaged``, which names the file and the repair.

Damage is recognised by the place that reads stored bytes (``reading_stored``), not by the exception's type: an ordinary
program error must not cause a read of the whole library. Code that opens a generation wraps its queries in
``name_damage``, which finds the damaged file by reading everything, once for all concurrent callers.
"""

from __future__ import annotations

import errno
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from threading import Lock
from typing import Any

from localmed.domain import Message, Parameter, message
from localmed.domain.errors import Damaged, LocalmedError, UnreadableIndex, reason
from localmed.library import generations

_ENGINES = (ValueError, RuntimeError, OSError, KeyError, TypeError, IndexError, OverflowError, sqlite3.Error)
_OF_THE_MACHINE = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR)
AGAIN = 60.0  # seconds for which an intact generation is not read again


class _Cursor(sqlite3.Cursor):
    def fetchone(self) -> Any:
        return _or_damaged(super().fetchone)

    def fetchall(self) -> list[Any]:
        rows: list[Any] = _or_damaged(super().fetchall)
        return rows

    def __next__(self) -> Any:
        return _or_damaged(super().__next__)


class Checked(sqlite3.Connection):
    """A connection to a published, unchanging file; errors of SQLite are damage."""

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        """Execute as any connection does."""
        cursor: sqlite3.Cursor = self.cursor(_Cursor)
        _or_damaged(lambda: cursor.execute(*arguments))
        return cursor


def open_immutable(path: Path, factory: type[sqlite3.Connection] = sqlite3.Connection) -> sqlite3.Connection:
    """Open the SQLite file of a published generation, which nobody writes."""
    source = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    return sqlite3.connect(source, uri=True, check_same_thread=False, isolation_level=None, factory=factory)


def open_published(path: Path, migrations: Sequence[str], oldest: int = 1) -> tuple[sqlite3.Connection, int]:
    """Open a published SQLite file read-only, never migrating it; return the connection and its schema number.

    Raise ``Damaged`` if the file cannot be read, or not by this version.
    """
    database = open_immutable(path, Checked)
    try:
        try:
            version = int(database.execute("PRAGMA user_version").fetchone()[0])
        except (Damaged, sqlite3.DatabaseError) as error:
            raise UnreadableIndex("library.unreadable", path=str(path), error=reason(error)) from None
        if not oldest <= version <= len(migrations):
            raise Damaged("library.schema", path=str(path), version=version, known=len(migrations))
    except BaseException:
        database.close()
        raise
    return database, version


def _or_damaged(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except sqlite3.DatabaseError as error:
        raise UnreadableIndex("library.database_damaged", error=reason(error)) from None


@contextmanager
def reading_stored(code: str, /, **parameters: Parameter) -> Iterator[None]:
    """Raise ``UnreadableIndex`` for errors of engines and decoders within the block, which reads stored bytes.

    Some engines raise a panic that is no ``Exception``.
    """
    try:
        yield
    except LocalmedError:
        raise
    except BaseException as error:
        of_engine = isinstance(error, _ENGINES) or type(error).__name__ == "PanicException"
        if not of_engine or (isinstance(error, OSError) and error.errno in _OF_THE_MACHINE):
            raise
        raise UnreadableIndex(code, error=reason(error), **parameters) from error


@contextmanager
def name_damage(generation: Path) -> Iterator[None]:
    """Raise ``Damaged`` with the damaged file in place of an ``UnreadableIndex``; unchanged if every file is intact."""
    try:
        yield
    except UnreadableIndex as error:
        problems = _WHOLE.problems(generation)
        if not problems:
            raise
        raise Damaged("generation.damaged", name=generation.name, problem=problems[0]) from error


class _Whole:
    """The result of the last whole read, shared by concurrent threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._generation, self._ended, self._problems = Path(), -inf, list[Message]()

    def problems(self, generation: Path) -> list[Message]:
        """Return the faults of ``generation`` after reading every byte, unless it was found intact within ``AGAIN``
        seconds.
        """
        asked = time.monotonic()
        with self._lock:
            since = asked if self._problems else asked - AGAIN
            if generation != self._generation or self._ended < since:
                self._problems = generations.check(generation, whole=True)
                self._generation, self._ended = generation, time.monotonic()
            return self._problems


_WHOLE = _Whole()


def missing(generation: Path, what: str) -> Damaged:
    """Return the error for an index that names something that another part of the generation lacks."""
    problems = _WHOLE.problems(generation)
    problem = problems[0] if problems else message("library.disagree", id=what[:12])
    return Damaged("generation.damaged", name=generation.name, problem=problem)


def require_unaltered(generation: Path) -> None:
    """Raise ``Damaged`` if a file of ``generation`` is missing or was altered (``generations.check``)."""
    if problems := generations.check(generation, whole=False):
        raise Damaged("generation.damaged", name=generation.name, problem=problems[0])
