"""``audit.sqlite``: who did what, one line an action, chained by digest and key. Never a question, answer or record.

A change has two lines, ``BEGUN`` before it is made and its outcome after it, which names the first: what was cut off in
between shows (``unfinished``). Only appended to. ``verify`` walks both chains, that of digests, and that of macs which
only the key can make (``audit_key.py``): a line altered, removed or moved breaks them. A lost tail cannot be seen from
the file alone: the manifest of each generation states the newest digest of its time, and a ``Head`` taken off the
machine the newest mac. A log of before has no macs: the first row that has one covers it by its digest. A log that is
missing beside a library that was changed before begins anew with an entry that says so.

``erase`` takes out who did what to which thing, and leaves when, the outcome and both chains; which rows it was is an
entry itself, without which an erased row is a fault.

An answer does not depend on the log. What cannot be entered (the log is locked, the disk full) waits in
``audit.pending``, whose room was made beforehand, and is entered before the next entry, with the time of both. Cut off
between the two it is entered twice rather than not at all.
"""

from __future__ import annotations

import getpass
import hmac
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from localmed.domain import Answer, Message, digest, message
from localmed.domain.errors import Damaged, LocalmedError, NoLibrary, UnknownName, reason
from localmed.library import generations, layout
from localmed.library.anchors import AUDIT_FILE, ledger_extent, legible
from localmed.library.migrations import AUDIT, SQLITE_ERRORS, as_ours, open_database
from localmed.process import files
from localmed.site import audit_key
from localmed.site.audit_key import Head

BEGUN = "begun"  # the outcome of an intent
ERASED = ("audit erase", "entries")  # action and subject of the entry that names erased rows
NEWEST = 2_000  # entries that ``verify_newest`` looks at: tens of milliseconds
START = Head(0, "", "")  # what stands before the first entry
ANEW = "began anew; an earlier log is missing"
PATIENCE = 2.0  # seconds for another process's entry, which takes milliseconds
PENDING = layout.AUDIT_PENDING  # entries as lines, then zeros
PENDING_BYTES = 64 * 2**10  # some 150 entries


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line of the audit log: who did what to which thing, and how it ended. Never holds a question or a record.

    ``subject`` is an id, a count or a name of ours; ``previous`` is the digest of the entry before, so that a removed
    or altered line shows. ``intent`` is the digest of the entry of which this one tells the outcome. ``entered`` is
    when it was entered, if that was later than ``time``. ``erased`` ones have lost actor, subject and salt, and so
    have not the digest that they had.
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
    salt: str = ""
    erased: bool = False

    def digest(self) -> str:
        """The digest that the next entry carries as ``previous``."""
        pairs = [f"model {name}={value}" for name, value in self.models]
        pairs += [f"prompt {name}={value}" for name, value in self.prompts]
        pairs += [f"intent {self.intent}"] if self.intent else []  # entries of before had none
        pairs += [f"entered {self.entered}"] if self.entered else []
        pairs += [f"salt {self.salt}"] if self.salt else []
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
        self._data, self._path, self._pending = data, data / AUDIT_FILE, data / PENDING
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
        query = "SELECT id, digest, mac FROM entries ORDER BY id DESC LIMIT 1"
        number, before, mac = self._database.execute(query).fetchone() or (0, "", "")
        entry = replace(entry, previous=before, salt=secrets.token_hex(audit_key.SALT_BYTES))
        if key := self._key():
            mac = audit_key.mac(key, number + 1, entry.digest(), mac)
        values = (number + 1, _text(entry), entry.digest(), mac if key else "")
        self._database.execute("INSERT INTO entries (id, entry, digest, mac) VALUES (?, ?, ?, ?)", values)
        return entry

    def _key(self) -> bytes | None:
        """The key, made where no row was written with one; a lost key is not made up for by another."""
        return audit_key.key(self._data) or (None if self._keyed() else audit_key.make_key(self._data))

    def _keyed(self) -> bool:
        return self._database.execute("SELECT 1 FROM entries WHERE mac <> '' LIMIT 1").fetchone() is not None

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except SQLITE_ERRORS as error:
            raise as_ours(self._path, error) from None

    def entries(self) -> list[AuditEntry]:
        """All entries, oldest first."""
        return [_entry(text) for (text,) in self._database.execute("SELECT entry FROM entries ORDER BY id")]

    def numbered(self, after: int = 0) -> Iterator[tuple[int, AuditEntry]]:
        """The entries after number ``after``, each with its number."""
        query = "SELECT id, entry FROM entries WHERE id > ? ORDER BY id"
        return ((number, _entry(text)) for number, text in self._database.execute(query, (after,)))

    def knows(self, stated: str) -> bool:
        """Whether an entry has, or before it was erased had, the digest ``stated``."""
        query = "SELECT 1 FROM entries WHERE digest = ? LIMIT 1"
        return self._database.execute(query, (stated,)).fetchone() is not None

    def began_anew(self) -> Message | None:
        """That the log began anew: what was before is missing though the chain is whole."""
        first = self._database.execute("SELECT entry FROM entries ORDER BY id LIMIT 1").fetchone()
        entry = _readable(first[0]) if first else None
        return message("doctor.audit_anew", time=entry.time) if entry and entry.outcome == ANEW else None

    def cut_off(self) -> Message | None:
        """That the log lacks an entry which was there when what is served was built."""
        with suppress(NoLibrary, Damaged):
            stated = generations.served_manifest(self._data).audit
            return message("doctor.audit_cut") if stated and not self.knows(stated) else None
        return None

    def unfinished(self) -> list[AuditEntry]:
        """The changes that were begun and of which no outcome was noted: at work now, or cut off."""
        rows = self._database.execute("SELECT entry, digest FROM entries ORDER BY id")
        entries = [(_entry(text), recorded) for text, recorded in rows]
        ended = {entry.intent for entry, _ in entries}
        return [entry for entry, recorded in entries if entry.outcome == BEGUN and recorded not in ended]

    def head(self) -> Head | None:
        """The newest row; None of an empty log."""
        row = self._database.execute("SELECT id, digest, mac FROM entries ORDER BY id DESC LIMIT 1").fetchone()
        return Head(*row) if row else None

    def erase(self, user: str, by: str = "") -> int:
        """Take out what says that ``user`` did something or was its subject; return how many entries that was."""
        with self._translated(), self._database:
            self._database.execute("BEGIN IMMEDIATE")
            rows = self._database.execute("SELECT id, entry FROM entries ORDER BY id").fetchall()
            entries = [(number, _entry(text)) for number, text in rows]
            left = {
                number: replace(entry, actor="", subject="", salt="", erased=True)
                for number, entry in entries
                if user and user in (entry.actor, entry.subject)
            }
            for number, entry in left.items():
                self._database.execute("UPDATE entries SET entry = ? WHERE id = ?", (_text(entry), number))
            if left:
                named = " ".join(f"{number}:{digest(_text(entry))}" for number, entry in left.items())
                self._insert(entry_of(*ERASED, named, user=by))
        return len(left)

    def verify(self, head: Head | None = None, key_needed: bool = True) -> list[Message]:
        """What is wrong with the log (empty: nothing); ``head`` is one that was taken off the machine."""
        rows, key = self._rows(0), audit_key.key(self._data)
        forged = _keyed(rows, key) if key or key_needed else ()
        return [*_chained(rows), *forged, *(_beyond(rows, head) if head else ())]

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
        faults = [*_chained(rows, begin), *_keyed(rows, audit_key.key(self._data), begin)]
        return faults, known if faults else newest

    def _rows(self, after: int) -> list[_Row]:
        query = "SELECT id, entry, digest, mac FROM entries WHERE id > ? ORDER BY id"
        return list(self._database.execute(query, (after,)))

    def row_at(self, number: int) -> Head | None:
        """What the row of this number says of itself; None where there is none."""
        row = self._database.execute("SELECT id, digest, mac FROM entries WHERE id = ?", (number,)).fetchone()
        return Head(*row) if row else None


_Row = tuple[int, str, str, str]  # number, entry, digest, mac


def _chained(rows: Sequence[_Row], after: Head = START) -> Iterator[Message]:
    """Entries that are not as their digests say, and rows that do not follow each other, ``after`` first."""
    announced = {pair for row in rows for pair in _announced(row)}
    previous = after.digest
    for number, text, recorded, _ in rows:
        entry = _readable(text)
        if entry is None or (not entry.erased and entry.digest() != recorded):
            yield message("doctor.audit_altered", number=number)
        elif entry.erased and f"{number}:{digest(text)}" not in announced:
            yield message("doctor.audit_erased", number=number)
        if entry is not None and entry.previous != previous:
            yield message("doctor.audit_before", number=number)
        previous = recorded


def _announced(row: _Row) -> Sequence[str]:
    """The rows that an entry of an erasure names, each with the digest of what was left of it."""
    entry = _readable(row[1])
    return entry.outcome.split() if entry and (entry.action, entry.subject) == ERASED else ()


def _keyed(rows: Sequence[_Row], key: bytes | None, after: Head = START) -> Iterator[Message]:
    """Rows whose mac only somebody without the key can have made, and rows without one after the first that has."""
    begun, previous = bool(after.mac), after.mac
    if key is None and any(row[3] for row in rows):
        yield message("doctor.audit_no_key")
        return
    for number, _, recorded, mac in rows:
        begun = begun or bool(mac)
        if key and begun and not hmac.compare_digest(mac, audit_key.mac(key, number, recorded, previous)):
            yield message("doctor.audit_forged", number=number)
        previous = mac
    if key and rows and not begun:
        yield message("doctor.audit_forged", number=rows[-1][0])


def _beyond(rows: Sequence[_Row], head: Head) -> Iterator[Message]:
    """Whether the row of ``head`` is there as it was."""
    if (head.number, head.digest, head.mac) not in {(number, recorded, mac) for number, _, recorded, mac in rows}:
        yield message("doctor.audit_head", number=head.number)


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
    line = _text(entry).encode() + b"\n"
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
    return any(_noted(data, number) for number in generations.numbers(data))


def _noted(data: Path, number: int) -> str:
    with suppress(Damaged, UnknownName):
        return generations.manifest_of(data, number).audit
    return ""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def actor() -> str:
    """The account that runs the command ("unknown" where there is none)."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _text(entry: AuditEntry) -> str:
    return json.dumps(asdict(entry), ensure_ascii=False)


def _readable(text: str) -> AuditEntry | None:
    with suppress(ValueError, TypeError, AttributeError, LookupError):
        return _entry(text)
    return None


def _entry(text: str) -> AuditEntry:
    values = json.loads(text)
    for name in ("models", "prompts"):
        values[name] = tuple((key, value) for key, value in values[name])
    return AuditEntry(**values)
