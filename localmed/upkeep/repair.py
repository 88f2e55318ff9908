"""Putting right what is damaged, from what is whole. Nothing is guessed: what has no whole copy comes from a backup.

The withdrawal ledger and the access file are written anew from what can still be read of them and from the audit log,
whose chain must be whole. Where the two differ the log holds; what only the file says is kept.

A damaged generation is made anew from its catalogue and the originals, where no copy of what is damaged is whole. Hard
links share their bytes, so a flipped bit in an index is in every generation that has the file. The catalogue of each is
a file of its own: where that is whole, and every original that it names is what its name says, every file is read again
as if it had just been imported, and only what the catalogue already says (titles by hand, marks, dates, owners) is
taken over. Vectors come from the cache beside the generations; what it lacks is encoded. The canaries are asked before
it is served.

Not covered: a catalogue or an original that is damaged, which a backup mends.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from localmed.domain import Document, Kind, Message, message
from localmed.domain.accounts import Account
from localmed.domain.errors import (
    AccessUndecided,
    AccountsAltered,
    Damaged,
    LibraryError,
    LocalmedError,
    NoLibrary,
    StateLost,
    StopsAltered,
    UnknownName,
)
from localmed.ingest import manifest as manifests
from localmed.ingest.reading import UNSETTLED, unmarked
from localmed.ingest.sources import Source
from localmed.library import generations, layout, originals, served
from localmed.library.access import Access
from localmed.library.anchors import AUDIT_FILE, PLANNED, REPAIRED, anchors
from localmed.library.catalogue import FILE as CATALOGUE
from localmed.library.catalogue import Catalogue, ImportedFile, originals_of
from localmed.library.generations import AT_ONCE, Patience
from localmed.library.graph import FILE as GRAPH
from localmed.library.intact import sha256_of
from localmed.library.library import Builder
from localmed.library.state import State
from localmed.library.withdrawals import Entry, Withdrawals
from localmed.messages import from_text
from localmed.people import noted_accounts
from localmed.people.accounts import CHANGE, CREATE, STATE_REPAIR, require_accounts
from localmed.people.sign_on import SIGN_ON
from localmed.process.files import open_regular, told_if_full
from localmed.process.hooks import SILENT, Hooks, following
from localmed.site import stops
from localmed.site.audit import BEGUN, Audit, AuditEntry
from localmed.site.changes import EVERYBODY
from localmed.site.importing import importer_of
from localmed.site.stops import Stop

if TYPE_CHECKING:
    from localmed.ingest.pipeline import Progress
    from localmed.site.session import Session


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

    Served is then what was served last and is whole, or can be made anew (``rebuild``). Raise
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
        if problem is None or possible(data, number):
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
    except AccessUndecided:
        raise
    except Damaged as error:
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
    except AccountsAltered as error:
        listed = _rights(noted_accounts.readable(data), _audited(data))
        yield AccountsStep(error.messages[0], listed, noted_accounts.passwords_as_noted(data))
    except (StateLost, StopsAltered) as error:
        changes = max((anchor.extent for anchor in anchors(data, "stops")), default=0)
        stopped = _stopped(stops.readable(data), _audited(data))
        yield StateStep(error.messages[0], stopped, changes, isinstance(error, StateLost))


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
        if log.verify(key_needed=False):
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
        rebuild(session, step.number, hooks)
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


@dataclass(frozen=True, slots=True)
class KeptSource(Source):
    """A file that was imported from ``path``, of which the ``original`` is read."""

    original: Path = Path()

    @property
    def content(self) -> Path:
        """The original."""
        return self.original

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.original.stat().st_size

    def opened(self, path: Path) -> BinaryIO:
        """The original, whatever lies at ``path`` now."""
        del path
        return open_regular(self.original)


class Salvage(Builder):
    """A builder that begins with the catalogue (and the concept graph, where it is whole) of a damaged generation."""

    def __init__(self, session: Session, number: int) -> None:
        """The caller holds the writer lock."""
        self._number = number
        super().__init__(session.data, session.encoder.identity, session.settings.library)

    def begin(self) -> tuple[Path, int]:
        """The folder with that catalogue alone; nothing else is shared with any other generation."""
        building = generations.abandon_build(self._data)
        building.mkdir(parents=True, mode=0o700)
        with generations.lease(self._data, self._number) as damaged:
            generations.copy_checked(damaged, CATALOGUE, building)
            if GRAPH in generations.read_manifest(damaged).files:
                with suppress(Damaged):
                    generations.copy_checked(damaged, GRAPH, building)
        return building, 0


def possible(data: Path, number: int) -> bool:
    """Whether generation ``number`` can be made anew: every byte of its catalogue and its originals is read."""
    with suppress(LibraryError, UnknownName, OSError), generations.lease(data, number) as generation:
        entry = generations.read_manifest(generation).files[CATALOGUE]
        if sha256_of(generation / CATALOGUE) == entry.sha256:
            return all(sha256_of(data / layout.FILES / sha256) == sha256 for sha256 in originals_of(generation))
    return False


def rebuild(session: Session, number: int, hooks: Hooks = SILENT, patience: Patience = AT_ONCE) -> int:
    """Make generation ``number`` anew and serve it; return the new generation's number.

    Raise ``Damaged``, with nothing changed, where not every document could be read again.
    """
    with session.change("repair", f"generation {number}") as change, following(hooks.cancel_only()):
        started, advance = hooks.counter()
        with _salvaging(session, number, patience) as builder, State(session.data) as state:
            names = [collection.name for collection in builder.catalogue.collections()]
            listed = {name: list(_marked_unread(builder.catalogue, name)) for name in names}
            started(sum(_kept(session.data, file).bytes for files in listed.values() for file in files))
            for name in names:
                _read_again(session, builder, state, name, listed[name], advance)
            change.generation = builder.publish(message("generation.made.rebuild", number=number))
        change.outcome = "served"
    return change.generation


@contextmanager
def _salvaging(session: Session, number: int, patience: Patience) -> Iterator[Salvage]:
    with told_if_full(session.data), closing(generations.lock_writer(session.data, patience)):
        try:
            builder = Salvage(session, number)
        except BaseException:
            generations.abandon_build(session.data)
            raise
        try:
            yield builder
        finally:
            builder.discard()


def _marked_unread(catalogue: Catalogue, name: str) -> Iterator[ImportedFile]:
    """The files of collection ``name``, so marked that each is written though its documents are the same."""
    for file in catalogue.files(name).values():
        catalogue.put_file(replace(file, recipe=UNSETTLED + unmarked(file.recipe)))
        yield file


def _kept(data: Path, file: ImportedFile) -> KeptSource:
    return KeptSource(Path(file.path), file.root, original=originals.path_of(data, file.sha256))


def _read_again(
    session: Session, builder: Salvage, state: State, name: str, files: list[ImportedFile], advance: Progress
) -> None:
    manifest = manifests.chosen(session.data, name, None, lambda: builder.catalogue.collection(name))
    if manifest.collection.kind is Kind.GRAPH and (builder.path / GRAPH).exists():
        return  # the concept graph is whole
    importer = importer_of(session, manifest, advance)
    importer.read_again(builder, state, [_kept(session.data, file) for file in files])
