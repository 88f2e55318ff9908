"""What is stored, read: whatever an engine says of damage becomes ``Damaged``, which names the file and the repair.

Damage is told by what reads stored bytes (``stored_bytes``), not by the kind of an exception: a fault of the program in
a question is no reason to read the whole library. Whoever opens a generation has ``named`` around what it is asked,
which finds the damaged file by reading everything, once for all who ask at that time.
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
AGAIN = 60.0  # seconds for which a generation that was read whole and is sound is not read again


class _Cursor(sqlite3.Cursor):
    """Rows of a published file, or ``Damaged``."""

    def fetchone(self) -> Any:
        return _sound(super().fetchone)

    def fetchall(self) -> list[Any]:
        rows: list[Any] = _sound(super().fetchall)
        return rows

    def __next__(self) -> Any:
        return _sound(super().__next__)


class Checked(sqlite3.Connection):
    """A connection to a published file that nobody writes: what SQLite finds wrong with it is damage."""

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        """As of any connection."""
        cursor: sqlite3.Cursor = self.cursor(_Cursor)
        _sound(lambda: cursor.execute(*arguments))
        return cursor


def unchanging(path: Path, factory: type[sqlite3.Connection] = sqlite3.Connection) -> sqlite3.Connection:
    """The SQLite file of a published generation, which nobody writes, to be read."""
    source = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    return sqlite3.connect(source, uri=True, check_same_thread=False, isolation_level=None, factory=factory)


def open_published(path: Path, migrations: Sequence[str], oldest: int = 1) -> tuple[sqlite3.Connection, int]:
    """The same, and its schema's number; raise ``Damaged`` for one that cannot be read, or not by this version.

    It is never written, not even to migrate it.
    """
    database = unchanging(path, Checked)
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


def _sound(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except sqlite3.DatabaseError as error:
        raise UnreadableIndex("library.database_damaged", error=reason(error)) from None


@contextmanager
def stored_bytes(code: str, /, **parameters: Parameter) -> Iterator[None]:
    """What the block does is read stored bytes: raise ``UnreadableIndex`` for what engines and decoders say of them.

    They say it in many ways, down to a panic, which is no ``Exception``.
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
def named(generation: Path) -> Iterator[None]:
    """Name the damaged file of ``generation`` in an error that does not; where none is found it is raised as it is."""
    try:
        yield
    except UnreadableIndex as error:
        problems = _WHOLE.problems(generation)
        if not problems:
            raise
        raise Damaged("generation.damaged", name=generation.name, problem=problems[0]) from error


class _Whole:
    """What reading generations whole came to: one reading for all threads that ask meanwhile."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._generation, self._ended, self._problems = Path(), -inf, list[Message]()

    def problems(self, generation: Path) -> list[Message]:
        """What is wrong with the files of ``generation``, every byte read since this was asked.

        Of one that was sound up to ``AGAIN`` seconds ago nothing is read.
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
    """An index names what another part of the generation does not hold."""
    problems = _WHOLE.problems(generation)
    problem = problems[0] if problems else message("library.disagree", id=what[:12])
    return Damaged("generation.damaged", name=generation.name, problem=problem)


def unaltered(generation: Path) -> None:
    """Raise ``Damaged`` if a file of ``generation`` is missing or was altered (``generations.check``)."""
    if problems := generations.check(generation, whole=False):
        raise Damaged("generation.damaged", name=generation.name, problem=problems[0])
