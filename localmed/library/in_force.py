"""What is in force at a site: read from the journal, changed with it in one transaction, a copy kept beside.

The copy (``in_force.json``) holds the same as the newest row with facts, and names that row. A journal that lacks the
row it names, or the row that the manifest of the generation being served names, is an older one or was cut off: that
is damage, and nothing is answered until ``repair`` has put in force what either of them knows.
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
from localmed.library.journal import Entry, InForce, as_copy, from_copy
from localmed.library.state import FILE, Remembered, rows, selected, stamp_of, transaction
from localmed.process import files
from localmed.process.files import told_if_full

if TYPE_CHECKING:
    import sqlite3

COPY = layout.IN_FORCE
PATIENCE = 5.0  # seconds for another process's transaction, which takes milliseconds
_KNOWN: dict[Path, tuple[tuple[int, ...], InForce]] = {}  # read before, beside this copy: most rows have no facts


def _read(data: Path) -> InForce:
    newest, stamp = selected(data, journal.NEWEST_FACTS), stamp_of(data / COPY)
    beside, known = _KNOWN.get(data, ((), InForce()))
    if data in _KNOWN and beside == stamp and newest == ([(known.number, known.digest)] if known.number else []):
        return known
    kept = copy_of(data)  # before the rows: a change made meanwhile has written it after them
    entered, key = selected(data, journal.SINCE_CHECKPOINT), journal.key(data)
    try:
        found = journal.replay(entered, key)
    except ValueError as error:
        if journal.another_key(entered, selected(data, journal.NEWEST_ROWS), key):
            raise AnotherKey("state.another_key", path=str(data / FILE)) from None
        raise Damaged("state.altered", path=str(data / FILE), number=error.args[0]) from None
    _compare(data, found, kept)
    _KNOWN[data] = stamp, found
    return found


in_force = Remembered(_read)
"""What is in force now at the site of a data folder; raise ``Damaged`` where that cannot be told for certain."""


def _compare(data: Path, found: InForce, kept: InForce | None) -> None:
    """Raise ``Damaged`` for a journal that lacks a row which the copy or the served manifest names."""
    stated: list[tuple[int, str]] = []
    if kept:
        if kept.number > found.number:
            raise Damaged("state.cut", path=str(data / FILE), number=kept.number)
        stated.append((kept.number, kept.digest))
    with suppress(LocalmedError, ValueError):  # told where the generation is opened
        manifest = generations.served_manifest(data)
        number, _, recorded = manifest.journal.partition(" ")
        if number and manifest.number > found.generation:  # what a repair knew is in force by its checkpoint
            stated.append((int(number), recorded))
    for row, recorded in stated:
        query = f"SELECT digest FROM journal WHERE id = {row:d}"  # noqa: S608  (a number)
        if row and selected(data, query) != [(recorded,)]:
            raise Damaged("state.cut", path=str(data / FILE), number=row)


def copy_of(data: Path) -> InForce | None:
    """What the copy says; None where there is none, or it is not as it was written."""
    with suppress(OSError):
        return from_copy(files.own_bytes(data / COPY))
    return None


def have_copy(data: Path) -> None:
    """Write the copy where there is none, so that a journal that is lost later has not taken all with it."""
    with _alone(data):
        if copy_of(data) is None:
            fresh = _fresh(data)
            _write(fresh, as_copy(in_force(data)))
            fresh.replace(data / COPY)
            files.sync(data)


@dataclass(slots=True)
class Changing:
    """A change of what is in force, within one transaction of ``state``."""

    data: Path
    state: sqlite3.Connection
    after: InForce

    def note(self, entry: Entry, **facts: Any) -> None:
        """Add ``entry`` to the journal with these ``facts`` (``kind``: see ``InForce.after``)."""
        stated = {"kind": facts.pop("kind"), "before": self.after.digest, **facts}
        if stated["kind"] == "checkpoint":
            with suppress(LocalmedError):  # nothing is served yet
                stated["generation"] = generations.served_number(self.data)
        number, made = journal.append(self.state, self.data, replace(entry, facts=stated))
        self.after = self.after.after(number, made, made.digest())

    def withdraw(self, entry: Entry, document: Document, withdrawn: bool, reason: str, sketch: str = "") -> None:
        """Withdraw ``document``, or take that back; ``sketch`` is that of its text (``sketches.py``)."""
        of_document = {"document": document.id, "content": document.content, "title": document.title}
        self.note(entry, kind="withdrawal", **of_document, withdrawn=withdrawn, reason=reason, sketch=sketch)

    def look_again(self) -> None:
        """Read what is in force from the rows as they stand now: an erasure has altered some."""
        rows = self.state.execute(journal.SINCE_CHECKPOINT).fetchall()
        self.after = journal.replay(rows, journal.key(self.data))


@contextmanager
def changing(data: Path, before: InForce | None = None) -> Iterator[Changing]:
    """Change what is in force: in force for everybody when the block has ended, whatever happens then; or not at all.

    ``before`` is what is in force now, where the journal cannot tell (``repair``). Raise ``LibraryError`` for a full
    disk, ``Damaged`` where what is in force cannot be told.
    """
    with _alone(data):
        now = before or in_force(data)
        fresh = _fresh(data)
        with told_if_full(data), rows(data, PATIENCE) as state:
            with transaction(state):
                change = Changing(data, state, now)
                yield change
                if change.after is not now:
                    _write(fresh, as_copy(change.after))  # it needs room: before the change, not after it
            if change.after is not now:
                fresh.replace(data / COPY)
                files.sync(data)


def _fresh(data: Path) -> Path:
    """Where the next copy is written; raise ``LibraryError`` where it could not take its place then."""
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
    """One change at a time: the copy is of the newest."""
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    with told_if_full(data), (data / layout.SITE_LOCK).open("a") as lock:
        files.lock(lock, wait=True)  # a change takes milliseconds
        yield


def newest(data: Path) -> str:
    """Number and digest of the newest row of the journal, for a manifest; "" if there is none."""
    found = selected(data, "SELECT id, digest FROM journal ORDER BY id DESC LIMIT 1")
    return f"{found[0][0]} {found[0][1]}" if found else ""
