"""What is stored, read: whatever an engine says of damage becomes ``Damaged``, which names the file and the repair."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from localmed.domain import message
from localmed.errors import Damaged, LocalmedError, reason
from localmed.library import generations

_UNNAMED = (
    "library.database_damaged",
    "library.row_changed",
    "library.passage_changed",
    "library.index",
    "library.unreadable",
)
_ENGINES = (ValueError, RuntimeError, OSError, KeyError, TypeError, IndexError, OverflowError, sqlite3.Error)


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


def _sound(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except sqlite3.DatabaseError as error:
        raise Damaged("library.database_damaged", error=reason(error)) from None


@contextmanager
def reading(generation: Path) -> Iterator[None]:
    """Raise ``Damaged`` in place of what the engines say of a damaged file of ``generation``, with its name.

    They say it in many ways, down to a panic, which is no ``Exception``; what is no damage is left as it is.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        if not _of_damage(error):
            raise
        problems = generations.check(generation, whole=True)
        if not problems:
            raise
        raise Damaged("generation.damaged", name=generation.name, problem=problems[0]) from error


def _of_damage(error: BaseException) -> bool:
    """Whether ``error`` may come of damage, and does not name the file yet."""
    if isinstance(error, LocalmedError):
        return error.message.code in _UNNAMED
    return isinstance(error, _ENGINES) or type(error).__name__ == "PanicException"


def missing(generation: Path, what: str) -> Damaged:
    """An index names what another part of the generation does not hold."""
    problems = generations.check(generation, whole=True)
    problem = problems[0] if problems else message("library.disagree", id=what[:12])
    return Damaged("generation.damaged", name=generation.name, problem=problem)


def unaltered(generation: Path) -> None:
    """Raise ``Damaged`` if a file of ``generation`` is missing or was altered (``generations.check``)."""
    if problems := generations.check(generation, whole=False):
        raise Damaged("generation.damaged", name=generation.name, problem=problems[0])
