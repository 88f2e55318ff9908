"""The audit log: a reader, checker and writer of the journal in ``site.sqlite``. Never contains a question or record.

A change that becomes a new generation has two rows: ``BEGUN`` before it, and its outcome, which names the first. An
intent without outcome was cut off (``unfinished``). ``verify`` checks both chains (``library/journal.py``). The file
alone cannot show a lost tail, so each generation's manifest states the newest row of its time, and a ``Head`` stored
elsewhere the newest mac.

``erase`` removes who did what to which object and keeps time, outcome, effect and both chains. The erased rows are
listed in an entry of their own; without it an erased row is a fault.

Answers do not depend on the log. An entry that cannot be made (locked file, full disk) waits in ``audit.pending``, a
file of fixed size, and is entered before the next one, with both times. A crash after
entering it and before clearing the file enters it twice.
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
NEWEST = 2_000  # entries that ``verify_newest`` checks: tens of milliseconds
ANEW = "began anew; an earlier journal is missing"
PATIENCE = 2.0  # seconds to wait for another process's entry, which takes milliseconds
PENDING = layout.AUDIT_PENDING  # entries as lines, padded with zeros
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
    """A new entry by ``user``, else by the account of this process; not yet in the log.

    ``answer`` supplies generation, models and prompts, not its text; ``intent`` is the entry that this is the outcome
    of.
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
        """Open it; raise ``LocalmedError`` or ``OSError`` on failure."""
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
        """Add ``entry`` after those that are waiting, durably; return it as it is in the chain."""
        with self._translated(), _pending_entries(self._pending) as waiting:
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
        return [entry for _, entry in self.numbered()]

    def numbered(self, after: int = 0) -> Iterator[tuple[int, Entry]]:
        """The entries after number ``after``, each with its number."""
        query = "SELECT id, entry FROM journal WHERE id > ? ORDER BY id"
        return ((number, entry_from(text)) for number, text in self._database.execute(query, (after,)))

    def knows(self, stated: str) -> bool:
        """Whether an entry has, or had before erasure, the digest ``stated``."""
        query = "SELECT 1 FROM journal WHERE digest = ? LIMIT 1"
        return self._database.execute(query, (stated,)).fetchone() is not None

    def began_anew(self) -> Message | None:
        """The message that the log began anew: an earlier journal is missing though the chain is whole."""
        first = self._database.execute("SELECT entry FROM journal ORDER BY id LIMIT 1").fetchone()
        entry = journal.read_entry(first[0]) if first else None
        return message("doctor.audit_anew", time=entry.time) if entry and entry.outcome == ANEW else None

    def cut_off(self) -> Message | None:
        """The message that the log lacks an entry that existed when the generation in use was built."""
        with suppress(NoLibrary, Damaged):
            manifest = generations.served_manifest(self._data)
            stated = manifest.journal.partition(" ")[2] or manifest.audit
            return message("doctor.audit_cut") if stated and not self.knows(stated) else None
        return None

    def unfinished(self) -> list[Entry]:
        """The intents without outcome: changes in progress, or cut off."""
        rows = self._database.execute("SELECT entry, digest FROM journal ORDER BY id")
        entries = [(entry_from(text), recorded) for text, recorded in rows]
        ended = {entry.intent for entry, _ in entries}
        return [entry for entry, recorded in entries if entry.outcome == BEGUN and recorded not in ended]

    def head(self) -> Head | None:
        """The newest row; None if the log is empty."""
        row = self._database.execute("SELECT id, digest, mac FROM journal ORDER BY id DESC LIMIT 1").fetchone()
        return Head(*row) if row else None

    def erase(self, user: str, by: str = "") -> int:
        """Remove ``user`` as actor and subject from all entries; return the number of entries changed."""
        with self._translated(), _pending_entries(self._pending) as waiting, changing(self._data) as change:
            while waiting:  # entered later they would bring the name back
                journal.append(change.state, self._data, replace(waiting.pop(0), entered=now()))
            rows = change.state.execute("SELECT id, entry FROM journal ORDER BY id").fetchall()
            entries = [(number, entry_from(text)) for number, text in rows]
            left = {
                number: _erase_entry(entry, user)
                for number, entry in entries
                if user and (user in (entry.actor, entry.subject) or _blank_user(user, entry.facts) != entry.facts)
            }
            for number, entry in left.items():
                change.state.execute("UPDATE journal SET entry = ? WHERE id = ?", (entry.text(), number))
            if left:
                named = " ".join(f"{number}:{digest(entry.text())}" for number, entry in left.items())
                change.note(entry_of(*ERASED, named, user=by), kind="erasure")
                change.look_again()
        return len(left)

    def verify(self, head: Head | None = None, key_needed: bool = True) -> list[Message]:
        """The faults of the log (empty: none); ``head`` is one stored on another machine."""
        rows, key = self._rows(0), journal.key(self._data)
        forged = journal.mac_faults(rows, key) if key or key_needed else ()
        return [*journal.chain_faults(rows), *forged, *(journal.head_faults(rows, head) if head else ())]

    def verify_newest(self, known: Head | None) -> tuple[list[Message], Head | None]:
        """The faults of at most ``NEWEST`` entries after ``known``, the last verified head; and the new one.

        ``doctor`` and each night verify all entries.
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
        """The head as of row ``number``; None without that row."""
        row = self._database.execute("SELECT id, digest, mac FROM journal WHERE id = ?", (number,)).fetchone()
        return Head(*row) if row else None


def _erase_entry(entry: Entry, user: str) -> Entry:
    """The entry without actor and subject; an erasure keeps its subject, which identifies the erased rows."""
    subject = entry.subject if (entry.action, entry.subject) == ERASED else ""
    return replace(entry, actor="", subject=subject, salt="", erased=True, facts=_blank_user(user, entry.facts))


def _blank_user(user: str, facts: Any) -> Any:
    if isinstance(facts, dict):
        return {
            name: "" if name in ("actor", "user") and value == user else _blank_user(user, value)
            for name, value in facts.items()
        }
    return [_blank_user(user, value) for value in facts] if isinstance(facts, list) else facts


def enter(data: Path, entry: Entry) -> Message | None:
    """Enter ``entry`` now, or store it to be entered later; return what to tell the reader if it is not in the log."""
    try:
        with Audit(data) as log:
            log.add(entry)
    except (LocalmedError, OSError) as error:
        cause = error.messages[0] if isinstance(error, LocalmedError) else reason(error)
        return message("audit.later" if _store_pending(data / PENDING, entry) else "audit.not", reason=cause)
    return None


# --- waiting entries --------------------------------------------------------------------------------------------------


def make_room(data: Path) -> None:
    """Create the file of waiting entries at full size in advance, because a full disk has no room for it."""
    pending = data / PENDING
    if not pending.exists():
        with suppress(OSError):
            files.replace(pending, bytes(PENDING_BYTES))


def _store_pending(pending: Path, entry: Entry) -> bool:
    """Store ``entry`` to be entered later; False without room or the right to write."""
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
def _pending_entries(pending: Path) -> Iterator[list[Entry]]:
    """The waiting entries; the file is cleared after the block if the block has emptied the list."""
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
        waiting: list[Entry] = []
        for line in journal.read(PENDING_BYTES).rstrip(b"\0").split(b"\n"):
            with suppress(*MALFORMED):  # a line torn by a power cut
                waiting.append(entry_from(line.decode()))
        yield waiting
        if not waiting:
            with suppress(OSError):
                journal.seek(0)
                journal.write(bytes(PENDING_BYTES))
                journal.flush()
                os.fsync(journal.fileno())


def actor() -> str:
    """The operating system's account ("unknown" without one)."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
