"""``audit.sqlite``: who did what, one line an action, chained by digest. Never a question, an answer or a record.

A change has two lines, ``BEGUN`` before it is made and its outcome after it, which names the first: what was cut off in
between shows (``unfinished``). Only appended to. ``verify`` walks the chain: a line altered or removed from the middle
breaks it. A lost tail cannot be seen from the file alone: the manifest of each generation states the newest digest of
its time. A log that is missing beside a library that was changed before begins anew with an entry that says so.

An answer does not depend on the log. What cannot be entered (the log is locked, the disk full) waits in
``audit.pending``, whose room was made beforehand, and is entered before the next entry, with the time of both. Cut off
between the two it is entered twice rather than not at all.
"""

from __future__ import annotations

import getpass
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from localmed import files
from localmed.domain import Answer, Message, digest, message
from localmed.errors import Damaged, LocalmedError, reason
from localmed.library import generations
from localmed.library.anchors import AUDIT_FILE, ledger_extent, legible
from localmed.library.migrations import AUDIT, as_ours, open_database

BEGUN = "begun"  # the outcome of an intent
ANEW = "began anew; an earlier log is missing"
PATIENCE = 2.0  # seconds for another process's entry, which takes milliseconds
PENDING = "audit.pending"  # entries as lines, then zeros
PENDING_BYTES = 64 * 2**10  # some 150 entries


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line of the audit log: who did what to which thing, and how it ended. Never holds a question or a record.

    ``subject`` is an id, a count or a name of ours; ``previous`` is the digest of the entry before, so that a removed
    or altered line shows. ``intent`` is the digest of the entry of which this one tells the outcome. ``entered`` is
    when it was entered, if that was later than ``time``.
    """

    time: str
    actor: str
    action: str
    subject: str
    outcome: str
    generation: str = ""
    models: tuple[tuple[str, str], ...] = ()
    prompts: tuple[tuple[str, str], ...] = ()
    previous: str = ""
    intent: str = ""
    entered: str = ""

    def digest(self) -> str:
        """The digest that the next entry carries as ``previous``."""
        pairs = [f"model {name}={value}" for name, value in self.models]
        pairs += [f"prompt {name}={value}" for name, value in self.prompts]
        pairs += [f"intent {self.intent}"] if self.intent else []  # entries of before had none
        pairs += [f"entered {self.entered}"] if self.entered else []
        facts = (self.time, self.actor, self.action, self.subject, self.outcome, self.generation)
        return digest(*facts, *pairs, self.previous)


def entry_of(
    action: str,
    subject: str,
    outcome: str,
    generation: str = "",
    answer: Answer | None = None,
    user: str = "",
    intent: AuditEntry | None = None,
) -> AuditEntry:
    """An entry of now, by ``user``, else by the account that runs this process; not yet in the log.

    ``answer`` gives the generation, models and prompts, not its text; ``intent`` is what this is the outcome of.
    """
    identity = answer.provenance if answer else None
    return AuditEntry(
        time=_now(),
        actor=user or actor(),
        action=action,
        subject=subject,
        outcome=outcome,
        generation=identity.generation if identity else generation,
        models=identity.models if identity else (),
        prompts=identity.prompts if identity else (),
        intent=intent.digest() if intent else "",
    )


class Audit:
    """The open log."""

    def __init__(self, data: Path) -> None:
        """Open or make ``<data>/audit.sqlite``; raise ``LocalmedError`` or ``OSError`` where that cannot be done."""
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        anew = missing(data)
        self._path, self._pending = data / AUDIT_FILE, data / PENDING
        self._database = open_database(self._path, AUDIT, wal=True, patience=PATIENCE)
        if anew:
            self.append("audit", "log", ANEW)
        _make_room(self._pending)

    def close(self) -> None:
        """Close the log."""
        self._database.close()

    def append(self, action: str, subject: str, outcome: str, generation: str = "") -> AuditEntry:
        """Add an entry of this process's account."""
        return self.add(entry_of(action, subject, outcome, generation))

    def add(self, entry: AuditEntry) -> AuditEntry:
        """Add ``entry`` (durable on return), after those that are waiting; return it as it stands in the chain."""
        with self._translated(), _waiting(self._pending) as waiting:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")  # two processes may append: the chain needs one at a time
                for late in waiting:
                    self._insert(replace(late, entered=_now()))
                added = self._insert(entry)
            waiting.clear()
        return added

    def _insert(self, entry: AuditEntry) -> AuditEntry:
        last = self._database.execute("SELECT digest FROM entries ORDER BY id DESC LIMIT 1").fetchone()
        entry = replace(entry, previous=last[0] if last else "")
        text = json.dumps(asdict(entry), ensure_ascii=False)
        self._database.execute("INSERT INTO entries (entry, digest) VALUES (?, ?)", (text, entry.digest()))
        return entry

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise as_ours(self._path, error) from None

    def entries(self) -> list[AuditEntry]:
        """All entries, oldest first."""
        return [_entry(text) for (text,) in self._database.execute("SELECT entry FROM entries ORDER BY id")]

    def unfinished(self) -> list[AuditEntry]:
        """The changes that were begun and of which no outcome was noted: at work now, or cut off."""
        entries = self.entries()
        ended = {entry.intent for entry in entries}
        return [entry for entry in entries if entry.outcome == BEGUN and entry.digest() not in ended]

    def verify(self) -> list[Message]:
        """What is wrong with the chain (empty: nothing)."""
        problems: list[Message] = []
        previous = ""
        for number, text, recorded in self._database.execute("SELECT id, entry, digest FROM entries ORDER BY id"):
            try:
                entry = _entry(text)
            except (ValueError, TypeError, AttributeError):
                entry = None
            if entry is None or entry.digest() != recorded:
                problems.append(message("doctor.audit_altered", number=number))
            if entry is not None and entry.previous != previous:
                problems.append(message("doctor.audit_before", number=number))
            previous = recorded
        return problems


def enter(data: Path, entry: AuditEntry) -> Message | None:
    """Enter ``entry`` now, else when it can be; what the reader is told where it is not in the log yet."""
    try:
        with closing(Audit(data)) as log:
            log.add(entry)
    except (LocalmedError, OSError) as error:
        cause = error.messages[0] if isinstance(error, LocalmedError) else reason(error)
        return message("audit.later" if _kept(data / PENDING, entry) else "audit.not", reason=cause)
    return None


def unchecked(data: Path) -> tuple[Message, ...]:
    """What an answer could not be held against: the log, where it is there and cannot be read."""
    return () if legible(data) else (message("audit.unread"),)


# --- what waits -------------------------------------------------------------------------------------------------------


def _make_room(pending: Path) -> None:
    """The file, whole, before it is needed: a full disk has no room for it."""
    if not pending.exists():
        with suppress(OSError):
            files.replace(pending, bytes(PENDING_BYTES))


def _kept(pending: Path, entry: AuditEntry) -> bool:
    """Whether ``entry`` was written down to be entered later: there is room, and the folder may be written to."""
    line = json.dumps(asdict(entry), ensure_ascii=False).encode() + b"\n"
    _make_room(pending)
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
def _waiting(pending: Path) -> Iterator[list[AuditEntry]]:
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


def _legible(content: bytes) -> Iterator[AuditEntry]:
    """The entries of whole lines; one that a power cut tore is left out."""
    for line in content.split(b"\n"):
        with suppress(ValueError, TypeError, AttributeError):
            yield _entry(line.decode())


def missing(data: Path) -> bool:
    """Whether there is no log though the library was changed before, as the ledger or a manifest says."""
    if (data / AUDIT_FILE).exists():
        return False
    if ledger_extent(data).partition(" ")[0] not in ("", "0"):
        return True
    return any(_noted(generations.path_of(data, number)) for number in generations.numbers(data))


def _noted(generation: Path) -> str:
    with suppress(Damaged):
        return generations.read_manifest(generation).audit
    return ""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def actor() -> str:
    """The account that runs the command ("unknown" where there is none)."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _entry(text: str) -> AuditEntry:
    values = json.loads(text)
    for name in ("models", "prompts"):
        values[name] = tuple((key, value) for key, value in values[name])
    return AuditEntry(**values)
