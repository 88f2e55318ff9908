"""The audit log: the journal in ``site.sqlite`` as it is read, checked and added to. Never a question or a record.

A change that becomes a new generation has two rows, ``BEGUN`` before it is made and its outcome after it, which names
the first: what was cut off in between shows (``unfinished``). ``verify`` walks both chains (``library/journal.py``). A
lost tail cannot be seen from the file alone: the manifest of each generation states the newest row of its time, and a
``Head`` taken off the machine the newest mac.

``erase`` takes out who did what to which thing, and leaves when, the outcome, what is in force by it and both chains;
which rows it was is an entry itself, without which an erased row is a fault.

An answer does not depend on the log. What cannot be entered (the file is locked, the disk full) waits in
``audit.pending``, whose room was made beforehand, and is entered before the next entry, with the time of both. Cut off
between the two it is entered twice rather than not at all.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from localmed.domain import Answer, Message, digest, message
from localmed.domain.errors import Damaged, LocalmedError, NoLibrary, reason
from localmed.library import generations, journal, layout
from localmed.library.in_force import changing
from localmed.library.journal import ERASED, MALFORMED, START, entry_from, now
from localmed.library.journal import Entry as Entry
from localmed.library.journal import Head as Head  # for pages and commands
from localmed.library.journal import head_of as head_of
from localmed.library.migrations import SQLITE_ERRORS, translate_error
from localmed.library.state import FILE, connect, transaction
from localmed.process import files

BEGUN = "begun"  # the outcome of an intent
NEWEST = 2_000  # entries that ``verify_newest`` looks at: tens of milliseconds
ANEW = "began anew; an earlier journal is missing"
PATIENCE = 2.0  # seconds for another process's entry, which takes milliseconds
PENDING = layout.AUDIT_PENDING  # entries as lines, then zeros
PENDING_BYTES = 64 * 2**10  # some 150 entries


def entry_of(
    action: str,
    subject: str,
    outcome: str,
    generation: str = "",
    answer: Answer | None = None,
    user: str = "",
    intent: Entry | None = None,
) -> Entry:
    """An entry of now, by ``user``, else by the account that runs this process; not yet in the log.

    ``answer`` gives the generation, models and prompts, not its text; ``intent`` is what this is the outcome of.
    """
    identity = answer.provenance if answer else None
    return Entry(
        time=now(),
        actor=user or actor(),
        action=action,
        subject=subject,
        outcome=outcome,
        generation=identity.generation if identity else generation,
        models=identity.models if identity else (),
        prompts=identity.prompts if identity else (),
        intent=intent.digest() if intent else "",
    )


class Audit(AbstractContextManager["Audit"]):
    """The open log."""

    def __init__(self, data: Path) -> None:
        """Open it; raise ``LocalmedError`` or ``OSError`` where that cannot be done."""
        self._data, self._pending = data, data / PENDING
        self._database = connect(data, patience=PATIENCE)
        make_room(self._data)

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the log."""
        self._database.close()

    def add(self, entry: Entry) -> Entry:
        """Add ``entry`` (durable on return), after those that are waiting; return it as it stands in the chain."""
        with self._translated(), _waiting(self._pending) as waiting:
            with transaction(self._database):  # two processes may append: the chain needs one at a time
                for late in waiting:
                    journal.append(self._database, self._data, replace(late, entered=now()))
                _, added = journal.append(self._database, self._data, entry)
            waiting.clear()
        return added

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except SQLITE_ERRORS as error:
            raise translate_error(self._data / FILE, error) from None

    def entries(self) -> list[Entry]:
        """All entries, oldest first."""
        return [entry_from(text) for (text,) in self._database.execute("SELECT entry FROM journal ORDER BY id")]

    def numbered(self, after: int = 0) -> Iterator[tuple[int, Entry]]:
        """The entries after number ``after``, each with its number."""
        query = "SELECT id, entry FROM journal WHERE id > ? ORDER BY id"
        return ((number, entry_from(text)) for number, text in self._database.execute(query, (after,)))

    def knows(self, stated: str) -> bool:
        """Whether an entry has, or before it was erased had, the digest ``stated``."""
        query = "SELECT 1 FROM journal WHERE digest = ? LIMIT 1"
        return self._database.execute(query, (stated,)).fetchone() is not None

    def began_anew(self) -> Message | None:
        """That the log began anew: what was before is missing though the chain is whole."""
        first = self._database.execute("SELECT entry FROM journal ORDER BY id LIMIT 1").fetchone()
        entry = journal.read_entry(first[0]) if first else None
        return message("doctor.audit_anew", time=entry.time) if entry and entry.outcome == ANEW else None

    def cut_off(self) -> Message | None:
        """That the log lacks an entry which was there when what is served was built."""
        with suppress(NoLibrary, Damaged):
            manifest = generations.served_manifest(self._data)
            stated = manifest.journal.partition(" ")[2] or manifest.audit
            return message("doctor.audit_cut") if stated and not self.knows(stated) else None
        return None

    def unfinished(self) -> list[Entry]:
        """The changes that were begun and of which no outcome was noted: at work now, or cut off."""
        rows = self._database.execute("SELECT entry, digest FROM journal ORDER BY id")
        entries = [(entry_from(text), recorded) for text, recorded in rows]
        ended = {entry.intent for entry, _ in entries}
        return [entry for entry, recorded in entries if entry.outcome == BEGUN and recorded not in ended]

    def head(self) -> Head | None:
        """The newest row; None of an empty log."""
        row = self._database.execute("SELECT id, digest, mac FROM journal ORDER BY id DESC LIMIT 1").fetchone()
        return Head(*row) if row else None

    def erase(self, user: str, by: str = "") -> int:
        """Take out what says that ``user`` did something or was its subject; return how many entries that was."""
        with self._translated(), _waiting(self._pending) as waiting, changing(self._data) as change:
            while waiting:  # what comes later would bring the name back
                journal.append(change.state, self._data, replace(waiting.pop(0), entered=now()))
            rows = change.state.execute("SELECT id, entry FROM journal ORDER BY id").fetchall()
            entries = [(number, entry_from(text)) for number, text in rows]
            left = {
                number: _erased(entry, user)
                for number, entry in entries
                if user and (user in (entry.actor, entry.subject) or _without(user, entry.facts) != entry.facts)
            }
            for number, entry in left.items():
                change.state.execute("UPDATE journal SET entry = ? WHERE id = ?", (entry.text(), number))
            if left:
                named = " ".join(f"{number}:{digest(entry.text())}" for number, entry in left.items())
                change.note(entry_of(*ERASED, named, user=by), kind="erasure")
                change.look_again()
        return len(left)

    def verify(self, head: Head | None = None, key_needed: bool = True) -> list[Message]:
        """What is wrong with the log (empty: nothing); ``head`` is one that was taken off the machine."""
        rows, key = self._rows(0), journal.key(self._data)
        forged = journal.mac_faults(rows, key) if key or key_needed else ()
        return [*journal.chain_faults(rows), *forged, *(journal.head_faults(rows, head) if head else ())]

    def verify_newest(self, known: Head | None) -> tuple[list[Message], Head | None]:
        """What is wrong with the entries after ``known``, the newest that was verified before; which is that now.

        At most the ``NEWEST`` are looked at: ``doctor`` and each night verify all.
        """
        newest = self.head()
        if newest is None or (known and self.row_at(known.number) != known):
            return [message("doctor.audit_head", number=known.number)] if known else [], known
        first = self.row_at(newest.number - NEWEST)
        begin = max(filter(None, (known, first)), key=lambda head: head.number, default=START)
        rows = self._rows(begin.number)
        faults = [*journal.chain_faults(rows, begin), *journal.mac_faults(rows, journal.key(self._data), begin)]
        return faults, known if faults else newest

    def _rows(self, after: int) -> list[journal.Row]:
        query = "SELECT id, entry, digest, mac FROM journal WHERE id > ? ORDER BY id"
        return list(self._database.execute(query, (after,)))

    def row_at(self, number: int) -> Head | None:
        """What the row of this number says of itself; None where there is none."""
        row = self._database.execute("SELECT id, digest, mac FROM journal WHERE id = ?", (number,)).fetchone()
        return Head(*row) if row else None


def _erased(entry: Entry, user: str) -> Entry:
    """What is left of an entry; of one that names erased rows its subject too, by which it is known."""
    subject = entry.subject if (entry.action, entry.subject) == ERASED else ""
    return replace(entry, actor="", subject=subject, salt="", erased=True, facts=_without(user, entry.facts))


def _without(user: str, facts: Any) -> Any:
    """``facts`` in which nobody called ``user`` did anything."""
    if isinstance(facts, dict):
        return {
            name: "" if name in ("actor", "user") and value == user else _without(user, value)
            for name, value in facts.items()
        }
    return [_without(user, value) for value in facts] if isinstance(facts, list) else facts


def enter(data: Path, entry: Entry) -> Message | None:
    """Enter ``entry`` now, else when it can be; what the reader is told where it is not in the log yet."""
    try:
        with Audit(data) as log:
            log.add(entry)
    except (LocalmedError, OSError) as error:
        cause = error.messages[0] if isinstance(error, LocalmedError) else reason(error)
        return message("audit.later" if _kept(data / PENDING, entry) else "audit.not", reason=cause)
    return None


# --- what waits -------------------------------------------------------------------------------------------------------


def make_room(data: Path) -> None:
    """The file for what waits, whole, before it is needed: a full disk has no room for it."""
    pending = data / PENDING
    if not pending.exists():
        with suppress(OSError):
            files.replace(pending, bytes(PENDING_BYTES))


def _kept(pending: Path, entry: Entry) -> bool:
    """Whether ``entry`` was written down to be entered later: there is room, and the folder may be written to."""
    line = entry.text().encode() + b"\n"
    make_room(pending.parent)
    try:
        with pending.open("r+b") as journal:
            files.lock(journal, wait=True)
            used = len(journal.read(PENDING_BYTES).rstrip(b"\0"))
            if used + len(line) > PENDING_BYTES:
                return False
            journal.seek(used)
            journal.write(line)
            journal.flush()
            os.fsync(journal.fileno())
    except OSError:
        return False
    return True


@contextmanager
def _waiting(pending: Path) -> Iterator[list[Entry]]:
    """The entries that wait, for the length of the block; they are gone after it if it has emptied the list."""
    try:
        journal = pending.open("r+b")
    except OSError:
        yield []
        return
    with journal:
        content = journal.read(PENDING_BYTES)
        if not content.rstrip(b"\0"):
            yield []
            return
        files.lock(journal, wait=True)
        journal.seek(0)
        waiting = list(_legible(journal.read(PENDING_BYTES).rstrip(b"\0")))
        yield waiting
        if not waiting:
            with suppress(OSError):
                journal.seek(0)
                journal.write(bytes(PENDING_BYTES))
                journal.flush()
                os.fsync(journal.fileno())


def _legible(content: bytes) -> Iterator[Entry]:
    """The entries of whole lines; one that a power cut tore is left out."""
    for line in content.split(b"\n"):
        with suppress(*MALFORMED):
            yield entry_from(line.decode())


def actor() -> str:
    """The account that runs the command ("unknown" where there is none)."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
