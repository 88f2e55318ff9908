"""The state in force at a site: read from the journal, changed with it in one transaction, with a copy beside it.

The copy (``in_force.json``) equals the newest row with facts and names that row. A journal without the row that the
copy or the served generation's manifest names is older or was cut off. That is damage: nothing is answered until
``repair`` has put in force everything that either of them knows.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localmed.domain import Document
from localmed.domain.errors import AnotherKey, Damaged, LibraryError, LocalmedError
from localmed.library import generations, journal, layout
from localmed.library.journal import Entry, InForce, copy_bytes, read_copy
from localmed.library.state import FILE, Remembered, rows, selected, stamp_of, transaction
from localmed.process import files
from localmed.process.files import told_if_full

if TYPE_CHECKING:
    import sqlite3

COPY = layout.IN_FORCE
PATIENCE = 5.0  # seconds for another process's transaction, which takes milliseconds
_KNOWN: dict[Path, tuple[tuple[int, ...], InForce]] = {}  # the copy's stamp and the state: most rows have no facts


def _read(data: Path) -> InForce:
    newest, stamp = selected(data, journal.NEWEST_FACTS), stamp_of(data / COPY)
    beside, known = _KNOWN.get(data, ((), InForce()))
    if data in _KNOWN and beside == stamp and newest == ([(known.number, known.digest)] if known.number else []):
        return known
    kept = copy_of(data)  # before the rows: a concurrent change writes it after them
    entered, key = selected(data, journal.SINCE_CHECKPOINT), journal.key(data)
    try:
        found = journal.replay(entered, key)
    except ValueError as error:
        if journal.has_other_key(entered, selected(data, journal.NEWEST_ROWS), key):
            raise AnotherKey("state.another_key", path=str(data / FILE)) from None
        raise Damaged("state.altered", path=str(data / FILE), number=error.args[0]) from None
    _compare(data, found, kept)
    _KNOWN[data] = stamp, found
    return found


in_force = Remembered(_read)
"""Return the state in force at the site of a data folder; raise ``Damaged`` if it cannot be read for certain."""


def _compare(data: Path, found: InForce, kept: InForce | None) -> None:
    """Raise ``Damaged`` if the journal lacks a row that the copy or the served manifest names."""
    stated: list[tuple[int, str]] = []
    if kept:
        if kept.number > found.number:
            raise Damaged("state.cut", path=str(data / FILE), number=kept.number)
        stated.append((kept.number, kept.digest))
    with suppress(LocalmedError, ValueError):  # reported when the generation is opened
        manifest = generations.served_manifest(data)
        number, _, recorded = manifest.journal.partition(" ")
        if number and manifest.number > found.generation:  # a repair's checkpoint covers older generations
            stated.append((int(number), recorded))
    for row, recorded in stated:
        query = f"SELECT digest FROM journal WHERE id = {row:d}"  # noqa: S608  (a number)
        if row and selected(data, query) != [(recorded,)]:
            raise Damaged("state.cut", path=str(data / FILE), number=row)


def copy_of(data: Path) -> InForce | None:
    """Return the state in the copy, ``None`` if it is missing or altered."""
    with suppress(OSError):
        return read_copy(files.own_bytes(data / COPY))
    return None


def have_copy(data: Path) -> None:
    """Write the copy if there is none, so that a journal that is lost later does not take the state with it."""
    with _alone(data):
        if copy_of(data) is None:
            fresh = _fresh(data)
            _write(fresh, copy_bytes(in_force(data)))
            fresh.replace(data / COPY)
            files.sync(data)


@dataclass(slots=True)
class Changing:
    """A change of the state in force, within one transaction of ``state``."""

    data: Path
    state: sqlite3.Connection
    after: InForce

    def note(self, entry: Entry, **facts: Any) -> None:
        """Add ``entry`` to the journal with these ``facts`` (for ``kind`` see ``InForce.after``)."""
        stated = {"kind": facts.pop("kind"), "before": self.after.digest, **facts}
        if stated["kind"] == "checkpoint":
            with suppress(LocalmedError):  # nothing is served yet
                stated["generation"] = generations.served_number(self.data)
        number, made = journal.append(self.state, self.data, replace(entry, facts=stated))
        self.after = self.after.after(number, made, made.digest())

    def withdraw(self, entry: Entry, document: Document, withdrawn: bool, reason: str, sketch: str = "") -> None:
        """Withdraw ``document``, or reverse that; ``sketch`` is that of its text (``sketches.py``)."""
        of_document = {"document": document.id, "content": document.content, "title": document.title}
        self.note(entry, kind="withdrawal", **of_document, withdrawn=withdrawn, reason=reason, sketch=sketch)

    def look_again(self) -> None:
        """Read the state from the rows as they are now, after an erasure has altered some."""
        rows = self.state.execute(journal.SINCE_CHECKPOINT).fetchall()
        self.after = journal.replay(rows, journal.key(self.data))


@contextmanager
def changing(data: Path, before: InForce | None = None) -> Iterator[Changing]:
    """Change the state in force: completely for everybody when the block ends, or not at all.

    ``before`` is the state now if the journal cannot tell (``repair``). Raise ``LibraryError`` for a full disk,
    ``Damaged`` if the state cannot be read.
    """
    with _alone(data):
        now = before or in_force(data)
        fresh = _fresh(data)
        with told_if_full(data), rows(data, PATIENCE) as state:
            with transaction(state):
                change = Changing(data, state, now)
                yield change
                if change.after is not now:
                    _write(fresh, copy_bytes(change.after))  # before the commit, because it needs space
            if change.after is not now:
                fresh.replace(data / COPY)
                files.sync(data)


def _fresh(data: Path) -> Path:
    """Return the path of the next copy; raise ``LibraryError`` if it could not replace the present one."""
    if (data / COPY).is_dir():
        raise LibraryError("library.unwritable", path=str(data / COPY), error=os.strerror(errno.EISDIR))
    return data / f"{COPY}.new"


def _write(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def _alone(data: Path) -> Iterator[None]:
    """Allow one change at a time, so that the copy is of the newest row."""
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    with told_if_full(data), (data / layout.SITE_LOCK).open("a") as lock:
        files.lock(lock, wait=True)  # a change takes milliseconds
        yield


def newest(data: Path) -> str:
    """Return number and digest of the journal's newest row, for a manifest; "" if there is none."""
    found = selected(data, "SELECT id, digest FROM journal ORDER BY id DESC LIMIT 1")
    return f"{found[0][0]} {found[0][1]}" if found else ""
