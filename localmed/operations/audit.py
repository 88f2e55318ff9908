"""``audit.sqlite``: who did what, one line an action, chained by digest. Never a question, an answer or a record.

A change has two lines, ``BEGUN`` before it is made and its outcome after it, which names the first: what was cut off in
between shows (``unfinished``). Only appended to. ``verify`` walks the chain: a line altered or removed from the middle
breaks it. A lost tail cannot be seen from the file alone: the manifest of each generation states the newest digest of
its time. A log that is missing beside a library that was changed before begins anew with an entry that says so.
"""

from __future__ import annotations

import getpass
import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from localmed.domain import Answer, Message, digest, message
from localmed.errors import Damaged
from localmed.library import generations
from localmed.library.anchors import AUDIT_FILE, ledger_extent
from localmed.library.migrations import AUDIT, open_database

BEGUN = "begun"  # the outcome of an intent
ANEW = "began anew; an earlier log is missing"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line of the audit log: who did what to which thing, and how it ended. Never holds a question or a record.

    ``subject`` is an id, a count or a name of ours; ``previous`` is the digest of the entry before, so that a removed
    or altered line shows. ``intent`` is the digest of the entry of which this one tells the outcome.
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

    def digest(self) -> str:
        """The digest that the next entry carries as ``previous``."""
        pairs = [f"model {name}={value}" for name, value in self.models]
        pairs += [f"prompt {name}={value}" for name, value in self.prompts]
        pairs += [f"intent {self.intent}"] if self.intent else []  # entries of before had none
        facts = (self.time, self.actor, self.action, self.subject, self.outcome, self.generation)
        return digest(*facts, *pairs, self.previous)


class Audit:
    """The open log."""

    def __init__(self, data: Path) -> None:
        """Open or make ``<data>/audit.sqlite``."""
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        anew = missing(data)
        self._database = open_database(data / AUDIT_FILE, AUDIT, wal=True)
        if anew:
            self.append("audit", "log", ANEW)

    def close(self) -> None:
        """Close the log."""
        self._database.close()

    def append(
        self,
        action: str,
        subject: str,
        outcome: str,
        generation: str = "",
        answer: Answer | None = None,
        user: str = "",
        intent: AuditEntry | None = None,
    ) -> AuditEntry:
        """Add an entry (durable on return) of ``user``, else of the account that runs this process.

        ``answer`` gives the generation, models and prompts, not its text; ``intent`` is what this is the outcome of.
        """
        identity = answer.provenance if answer else None
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")  # two processes may append: the chain needs one at a time
            last = self._database.execute("SELECT digest FROM entries ORDER BY id DESC LIMIT 1").fetchone()
            entry = AuditEntry(
                time=datetime.now(UTC).isoformat(timespec="seconds"),
                actor=user or actor(),
                action=action,
                subject=subject,
                outcome=outcome,
                generation=identity.generation if identity else generation,
                models=identity.models if identity else (),
                prompts=identity.prompts if identity else (),
                previous=last[0] if last else "",
                intent=intent.digest() if intent else "",
            )
            text = json.dumps(asdict(entry), ensure_ascii=False)
            self._database.execute("INSERT INTO entries (entry, digest) VALUES (?, ?)", (text, entry.digest()))
        return entry

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
