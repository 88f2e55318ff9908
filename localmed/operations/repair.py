"""Putting right what is damaged, from what is whole. Nothing is guessed: what has no whole copy comes from a backup.

The withdrawal ledger and the access file are written anew from what can still be read of them and from the audit log,
whose chain must be whole. Where the two differ the log holds; what only the file says is kept.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.domain import Document, Message, message
from localmed.domain.accounts import Account
from localmed.errors import Damaged, LocalmedError, NoLibrary
from localmed.hooks import SILENT, Hooks
from localmed.library import generations, served
from localmed.library.access import Access
from localmed.library.anchors import AUDIT_FILE, PLANNED, REPAIRED, anchors
from localmed.library.catalogue import FILE as CATALOGUE
from localmed.library.catalogue import Catalogue
from localmed.library.withdrawals import Entry, Withdrawals
from localmed.messages import from_text
from localmed.operations import noted_accounts, rebuild, stops
from localmed.operations.accounts import CHANGE, CREATE, STATE_REPAIR, require_accounts
from localmed.operations.audit import BEGUN, NO_KEY, Audit, AuditEntry
from localmed.operations.changes import EVERYBODY
from localmed.operations.sign_on import SIGN_ON
from localmed.operations.stops import Stop

if TYPE_CHECKING:
    from localmed.session import Session


@dataclass(frozen=True, slots=True)
class Step:
    """The ``fault``, and the generation to be served in place of what is; ``lost`` is what that leaves behind.

    That one is damaged and made ``anew`` from its originals, or whole.
    """

    fault: Message
    number: int
    lost: tuple[Message, ...] = ()
    anew: bool = False

    @property
    def shown(self) -> tuple[Message, ...]:
        """What it would do, and what it loses."""
        code = "generation.repair_anew" if self.anew else "generation.repair_step"
        return (*self.lost, message(code, number=self.number))


def plan(data: Path) -> Step | None:
    """What can be put right; None if nothing is wrong with what is served. Every byte of it is read.

    Served is then what was served last and is whole, or can be made anew (``rebuild.py``). Raise
    ``Damaged`` where no generation is.
    """
    try:
        number = generations.served_number(data)
        fault = _problem(data, number)
        if fault is None and not generations.leased(data, number):
            fault = message("generation.incomplete.what", name=f"{number:04d}")
        if fault is None:
            return None
    except NoLibrary:
        return None
    except Damaged as error:
        fault = error.messages[0]
    lost: list[Message] = []
    for number in _candidates(data):
        problem = _problem(data, number)
        if problem is None or rebuild.possible(data, number):
            return Step(fault, number, tuple(loss for loss in lost if loss != fault), problem is not None)
        lost += [problem, _undone(data, number)]
    raise Damaged("generation.none_whole", data=str(data))


def _undone(data: Path, number: int) -> Message:
    """What is undone where generation ``number``, which is damaged, is not served."""
    try:
        manifest = generations.manifest_of(data, number)
    except Damaged:
        return message("generation.repair_undoes_unknown", number=number)
    return message(
        "generation.repair_undoes", number=number, day=manifest.created[:10], reason=from_text(manifest.reason)
    )


@dataclass(frozen=True, slots=True)
class LedgerStep:
    """The ``fault``, and the entries to be written in place of the ledger."""

    fault: Message
    entries: tuple[Entry, ...]

    @property
    def shown(self) -> tuple[Message, ...]:
        """What it would do."""
        state = {entry.document: entry.withdrawn for entry in self.entries}
        withdrawn = [document[:12] for document, holds in state.items() if holds]
        return (message("withdrawal.repair", count=len(withdrawn), ids=tuple(withdrawn)),)

    def do(self, session: Session) -> None:
        """Do it."""
        with session.change("repair", "withdrawals") as change:
            anchor = Withdrawals(session.data).restore(
                self.entries, lambda planned: session.note_before("repair", "withdrawals", f"{PLANNED}{planned}")
            )
            change.outcome = f"{REPAIRED}{anchor}"


@dataclass(frozen=True, slots=True)
class AccessStep:
    """The ``fault``, and the groups of each collection that is to be restricted."""

    fault: Message
    groups: Mapping[str, frozenset[str]]
    changes: int

    @property
    def shown(self) -> tuple[Message, ...]:
        """What it would do."""
        lines = [
            message("access.repair_line", name=name, groups=tuple(sorted(groups)))
            for name, groups in sorted(self.groups.items())
        ]
        return (message("access.repair", count=len(lines)), *lines)

    def do(self, session: Session) -> None:
        """Do it."""
        with session.change("repair", "access") as change:
            anchor = session.access.restore(
                self.groups,
                self.changes,
                lambda planned: session.note_before("repair", "access", f"{PLANNED}{planned}"),
            )
            change.outcome = f"{REPAIRED}{anchor}"


@dataclass(frozen=True, slots=True)
class StateStep:
    """The ``fault`` of ``state.sqlite``: it is ``lost``, or its stops or accounts are; what is stopped then."""

    fault: Message
    stopped: tuple[Stop, ...]
    changes: int
    lost: bool

    @property
    def shown(self) -> tuple[Message, ...]:
        """What it would do, and what is lost."""
        names = tuple(f"{one.kind} {one.name}" for one in self.stopped)
        parts = message("state.repair", count=len(names), names=names), message("state.repair_lost")
        return parts if self.lost else parts[:1]

    def do(self, session: Session) -> None:
        """Do it."""
        with session.change(*STATE_REPAIR) as change:
            anchor = stops.restore(
                session.data,
                self.stopped,
                self.changes,
                lambda planned: session.note_before(*STATE_REPAIR, f"{PLANNED}{planned}"),
            )
            change.outcome = f"{REPAIRED}{anchor}"


@dataclass(frozen=True, slots=True)
class AccountsStep:
    """The ``fault``, the accounts whose rights are to be what the audit log knows, and whether passwords can stay."""

    fault: Message
    listed: tuple[Account, ...]
    passwords: bool

    @property
    def shown(self) -> tuple[Message, ...]:
        """What it would do, and what is lost."""
        names = tuple(f"{one.user}: {noted_accounts.rights_of(one)}".rstrip(": ") for one in self.listed)
        parts = message("account.repair", count=len(names), names=names), message("account.repair_passwords")
        return parts[:1] if self.passwords else parts

    def do(self, session: Session) -> None:
        """Do it."""
        with session.change("repair", "accounts") as change:
            anchor = noted_accounts.restore(
                session.data,
                self.listed,
                self.passwords,
                lambda planned: session.note_before("repair", "accounts", f"{PLANNED}{planned}"),
            )
            change.outcome = f"{REPAIRED}{anchor}"


Record = LedgerStep | AccessStep | StateStep | AccountsStep


def records(data: Path) -> list[Record]:
    """What can be put right of the ledger, the access file and ``state.sqlite``.

    Raise ``Damaged`` where one of them is damaged and the audit log is missing or damaged too.
    """
    steps: list[Record] = []
    try:
        Withdrawals(data).changed()
    except Damaged as error:
        steps.append(LedgerStep(error.messages[0], _ledger(data, _audited(data))))
    try:
        Access(data).all()
    except Damaged as error:
        if error.messages[0].code.startswith(("access.two", "access.newer")):
            raise
        access, noted = Access(data), anchors(data, "access")
        changes = max([access.changes(), *(anchor.extent for anchor in noted)]) + 1
        steps.append(AccessStep(error.messages[0], _groups(access.readable(), _audited(data)), changes))
    return [*steps, *_state(data)]


def _state(data: Path) -> Iterator[StateStep | AccountsStep]:
    """Raise ``Damaged`` for a file that SQLite cannot read: that one is restored, or moved away and made anew.

    The accounts are looked at once the rest is whole.
    """
    try:
        stops.stops(data)
        require_accounts(data)
        noted_accounts.require_noted(data)
    except Damaged as error:
        code = error.message.code
        if code == "account.altered":
            listed = _rights(noted_accounts.readable(data), _audited(data))
            yield AccountsStep(error.messages[0], listed, noted_accounts.passwords_as_noted(data))
            return
        if code not in ("state.lost", "stop.altered", "account.lost"):
            raise
        changes = max((anchor.extent for anchor in anchors(data, "stops")), default=0)
        stopped = _stopped(stops.readable(data), _audited(data))
        yield StateStep(error.messages[0], stopped, changes, code != "stop.altered")


def _stopped(kept: Sequence[Stop], log: Sequence[AuditEntry]) -> tuple[Stop, ...]:
    """The stops of the log, and those that only the file knows; one that was cut off counts as made."""
    stopped = {f"{one.kind} {one.name}": one for one in kept}
    for entry in log:
        kind, _, name = entry.subject.partition(" ")
        if entry.action == stops.STOP and kind in stops.KINDS:
            stopped.setdefault(entry.subject, Stop(kind, name, "audit log", entry.actor, entry.time))
        elif entry.action == stops.LIFT and entry.outcome != BEGUN:
            stopped.pop(entry.subject, None)
    return tuple(stopped.values())


def _rights(stored: Sequence[Account], log: Sequence[AuditEntry]) -> tuple[Account, ...]:
    """The accounts with other rights than the log's, with the log's; one that it does not know is disabled."""
    known: dict[str, Account] = {}
    for entry in log:
        if entry.action in (CREATE, CHANGE, SIGN_ON):
            noted = noted_accounts.rights_read(entry.subject, entry.outcome.partition("; anchor ")[0])
            known |= {noted.user: noted} if noted else {}
    now = [known.get(one.user) or replace(one, disabled=True) for one in stored]
    return tuple(right for right, one in zip(now, stored, strict=True) if right != one)


def _audited(data: Path) -> list[AuditEntry]:
    """The changes that the audit log knows to have been made, or cut off; oldest first."""
    if not (data / AUDIT_FILE).exists():
        raise Damaged("generation.no_audit", path=str(data / AUDIT_FILE))
    with closing(Audit(data)) as log:
        if any(problem.code != NO_KEY for problem in log.verify()):
            raise Damaged("generation.no_audit", path=str(data / AUDIT_FILE))
        cut_off = {entry.digest() for entry in log.unfinished()}
        return [
            entry
            for entry in log.entries()
            if not entry.outcome.startswith(("failed: ", PLANNED))
            and (entry.outcome != BEGUN or entry.digest() in cut_off)
        ]


def _ledger(data: Path, log: Sequence[AuditEntry]) -> tuple[Entry, ...]:
    """The lines that can be read, and those that the log knows besides; one that was cut off counts as a withdrawal."""
    kept = Withdrawals(data).readable()
    state = {entry.document: entry.withdrawn for entry in kept}
    noted = {
        entry.subject: entry
        for entry in log
        if entry.action == "withdraw" or (entry.action == "reinstate" and entry.outcome != BEGUN)
    }
    lost = [entry for entry in noted.values() if state.get(entry.subject, False) != (entry.action == "withdraw")]
    documents = _documents(data, [entry.subject for entry in lost])
    return (*kept, *(_entry(entry, documents.get(entry.subject)) for entry in lost))


def _entry(noted: AuditEntry, document: Document | None) -> Entry:
    content, title = (document.content, document.title) if document else ("", "")
    withdrawn = noted.action == "withdraw"
    return Entry(noted.time, noted.subject, content, title, withdrawn, "audit log", noted.actor)


def _documents(data: Path, ids: Sequence[str]) -> dict[str, Document]:
    """The documents of ``ids`` from every generation that can be read."""
    known: dict[str, Document] = {}
    for number in generations.numbers(data):
        with (
            suppress(LocalmedError, sqlite3.Error),
            generations.lease(data, number) as generation,
            closing(Catalogue(generation / CATALOGUE)) as catalogue,
        ):
            known |= catalogue.by_ids(ids)
    return known


def _groups(kept: Mapping[str, frozenset[str]], log: Sequence[AuditEntry]) -> dict[str, frozenset[str]]:
    """The restrictions of the log, and those that only the file knows."""
    groups = dict(kept)
    for entry in log:
        words = entry.outcome.partition("; anchor ")[0]
        if entry.action == "access" and words != BEGUN:
            groups[entry.subject] = frozenset() if words == EVERYBODY else frozenset(words.split())
    return {name: allowed for name, allowed in groups.items() if allowed}


def repair(session: Session, step: Step, hooks: Hooks = SILENT) -> None:
    """Do what ``plan`` has shown."""
    if step.anew:
        rebuild.rebuild(session, step.number, hooks)
        return
    with session.change("repair", f"generation {step.number}") as change:
        with generations.lock_writer(session.data):
            generations.make_lease(session.data, step.number)
            generations.switch(session.data, step.number)
        change.generation, change.outcome = step.number, "served"


def _problem(data: Path, number: int) -> Message | None:
    """What is wrong with generation ``number``, if anything."""
    problems = generations.whole(data, number)
    return message("generation.damaged.what", name=f"{number:04d}", problem=problems[0]) if problems else None


def _candidates(data: Path) -> list[int]:
    """The generations there are: the one that was served last, then the newest first."""
    there, last = generations.numbers(data), 0
    with suppress(Damaged):
        swaps = served.swaps(generations.folder(data))
        last = swaps[-1].number if swaps else 0
    return sorted(there, key=lambda number: (number != last, -number))
