"""Repair of damage from intact data. Nothing is guessed; data without an intact copy comes from a backup.

If the journal was altered or is an older one, a checkpoint puts in force what its copy says, and the rows added since.

A damaged generation without intact copies of its files is rebuilt from its catalogue and the originals. Hard links
share their bytes, so a flipped bit in an index is in every generation that has the file; each catalogue is a file of
its own. If the catalogue and all its originals are intact, every file is read again like a new import, and only the
catalogue's decisions (titles by hand, marks, dates, owners) are taken over. Vectors come from the cache or are encoded.
The canaries are asked before the result is served.

Not covered: a damaged catalogue or original, which a backup mends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from localmed.domain import Kind, Message, message
from localmed.domain.accounts import Account
from localmed.domain.errors import AccountsAltered, AnotherKey, Damaged, LibraryError, NoLibrary, StateLost, UnknownName
from localmed.ingest import manifest as manifests
from localmed.ingest.reading import UNSETTLED, strip_mark
from localmed.ingest.sources import Source
from localmed.library import generations, journal, layout, originals
from localmed.library.catalogue import FILE as CATALOGUE
from localmed.library.catalogue import Catalogue, ImportedFile, originals_of
from localmed.library.generations import AT_ONCE, Patience
from localmed.library.graph import FILE as GRAPH
from localmed.library.in_force import COPY, copy_of, in_force
from localmed.library.intact import sha256_of
from localmed.library.journal import (
    ACCOUNTS,
    HALF,
    ROWS_WITH_FACTS,
    SINCE_CHECKPOINT,
    WITH_ANOTHER_KEY,
    InForce,
    accounts_digest,
    apply_readable,
    replay,
)
from localmed.library.library import Builder, building
from localmed.library.state import State, connect, selected
from localmed.messages import from_text
from localmed.people import noted_accounts
from localmed.people.accounts import require_accounts
from localmed.process.files import open_regular
from localmed.process.hooks import SILENT, Hooks, following
from localmed.site.audit import ANEW
from localmed.site.importing import importer_of

if TYPE_CHECKING:
    from localmed.ingest.pipeline import Progress
    from localmed.site.session import Session


@dataclass(frozen=True, slots=True)
class Step:
    """The ``fault``, and the generation to serve instead; ``lost`` describes the generations that are given up.

    The generation is intact, or is rebuilt (``anew``).
    """

    fault: Message
    number: int
    lost: tuple[Message, ...] = ()
    anew: bool = False

    @property
    def shown(self) -> tuple[Message, ...]:
        """The effects and losses of this step."""
        code = "generation.repair_anew" if self.anew else "generation.repair_step"
        return (*self.lost, message(code, number=self.number))


def plan(data: Path) -> Step | None:
    """Return the repair of the served generation, ``None`` if it is intact. Reads every byte of it.

    The step serves the last served generation, else the newest, that is intact or can be rebuilt; raise ``Damaged`` if
    there is none.
    """
    try:
        number = generations.served_number(data)
        fault = _find_fault(data, number)
        if fault is None and not generations.has_lease(data, number):
            fault = message("generation.incomplete.what", name=f"{number:04d}")
        if fault is None:
            return None
    except NoLibrary:
        return None
    except Damaged as error:
        fault = error.messages[0]
    lost: list[Message] = []
    for number in _candidates(data):
        problem = _find_fault(data, number)
        if problem is None or can_rebuild(data, number):
            return Step(fault, number, tuple(loss for loss in lost if loss != fault), problem is not None)
        lost += [problem, _describe_loss(data, number)]
    raise Damaged("generation.none_whole", data=str(data))


def _describe_loss(data: Path, number: int) -> Message:
    try:
        manifest = generations.manifest_of(data, number)
    except Damaged:
        return message("generation.repair_undoes_unknown", number=number)
    day, why = manifest.created[:10], from_text(manifest.reason)
    return message("generation.repair_undoes", number=number, day=day, reason=why)


@dataclass(frozen=True, slots=True)
class JournalStep:
    """The ``fault`` of the journal or of the accounts, and the state to put in force instead.

    ``listed`` are the accounts whose rights are reset to the journal's. ``lost``: the file is missing and created anew.
    """

    fault: Message
    state: InForce
    listed: tuple[Account, ...] = ()
    passwords: bool = True
    lost: bool = False
    outcome: str = "in force"

    @property
    def shown(self) -> tuple[Message, ...]:
        """The effects and losses of this step."""
        state = self.state
        withdrawn = sum(one.withdrawn for one in state.withdrawals.values())
        shown = [message("state.repair", withdrawn=withdrawn, restricted=len(state.access), stopped=len(state.stops))]
        if self.listed or not self.passwords:
            names = tuple(f"{one.user}: {noted_accounts.rights_of(one)}".rstrip(": ") for one in self.listed)
            shown.append(message("account.repair", count=len(names), names=names))
        shown += [] if self.passwords else [message("account.repair_passwords")]
        return (*shown, message("state.repair_lost")) if self.lost else tuple(shown)

    def do(self, session: Session) -> None:
        """Put the state in force by a checkpoint."""
        if self.lost:
            connect(session.data, anew=True).close()
        if (copy := session.data / COPY).is_dir():
            copy.rename(copy.with_name(f"{COPY}.damaged"))
        if journal.key(session.data) is None:
            journal.make_key(session.data)
        outcome = ANEW if self.lost else self.outcome
        with session.changing("repair", "journal", outcome, before=self.state) as (change, entry):
            if self.listed or not self.passwords:
                noted_accounts.restore(change.state, self.listed, self.passwords)
            accounts = change.state.execute(ACCOUNTS).fetchall()
            change.note(entry, **replace(self.state, accounts=accounts_digest(accounts)).facts())


def plan_records(data: Path) -> list[JournalStep]:
    """Return the repairs of the journal and the accounts.

    Raise ``Damaged`` if neither the journal nor its copy is readable, and for a file that SQLite cannot read.
    """
    try:
        state = in_force(data)
    except AnotherKey as error:  # the journal continues with the present key
        state = replay(selected(data, SINCE_CHECKPOINT), None)
        return [JournalStep(error.messages[0], state, outcome=WITH_ANOTHER_KEY)]
    except Damaged as error:
        lost, state = isinstance(error, StateLost), _salvage_state(data, error)
        listed, passwords = ((), True) if lost else _wrong_rights(data, state)
        return [JournalStep(error.messages[0], state, listed, passwords, lost)]
    try:
        require_accounts(data)
        noted_accounts.require_noted(data)
    except (AccountsAltered, StateLost) as error:
        return [JournalStep(error.messages[0], state, *_wrong_rights(data, state))]
    if journal.key(data) is None and selected(data, "SELECT 1 FROM journal WHERE mac <> '' LIMIT 1"):
        fault = message("state.no_key.what", path=str(journal.place(data)))
        return [JournalStep(fault, state, outcome=WITH_ANOTHER_KEY)]
    if state.number and copy_of(data) is None:
        return [JournalStep(message("state.copy.what", file=str(data / COPY)), state)]
    return []


def _salvage_state(data: Path, error: Damaged) -> InForce:
    """Return the state in the copy with the rows added since; raise ``error`` without a copy."""
    state = copy_of(data)
    if state is None:
        raise error
    with suppress(StateLost):
        since = selected(data, ROWS_WITH_FACTS.replace("FIRST", f"{state.number + 1:d}"))
        return apply_readable(state, since, journal.key(data))
    return state


def _wrong_rights(data: Path, state: InForce) -> tuple[tuple[Account, ...], bool]:
    """Return the accounts whose rights differ from the journal's, corrected, and whether the passwords match.

    An account that the journal does not know is disabled.
    """
    now_stored = noted_accounts.stored_digest(data)
    if state.accounts in ("", now_stored):
        return (), True
    stored = noted_accounts.read_unchecked(data)
    now = [noted_accounts.parse_rights(one.user, state.rights.get(one.user, "")) or replace(one, disabled=True)
           for one in stored]  # fmt: skip
    listed = tuple(right for right, one in zip(now, stored, strict=True) if right != one)
    return listed, now_stored[HALF:] == state.accounts[HALF:]


def repair(session: Session, step: Step, hooks: Hooks = SILENT) -> None:
    """Execute a step of ``plan``."""
    if step.anew:
        rebuild(session, step.number, hooks)
        return
    with session.change("repair", f"generation {step.number}") as change:
        with generations.lock_writer(session.data):
            generations.make_lease(session.data, step.number)
            generations.switch(session.data, step.number)
        change.generation, change.outcome = step.number, "served"


def _find_fault(data: Path, number: int) -> Message | None:
    problems = generations.find_faults_in_full(data, number)
    return message("generation.damaged.what", name=f"{number:04d}", problem=problems[0]) if problems else None


def _candidates(data: Path) -> list[int]:
    """Return all generations: the last served one, then the newest first."""
    there, last = generations.numbers(data), 0
    with suppress(Damaged):
        swaps = generations.swaps(data)
        last = swaps[-1].number if swaps else 0
    return sorted(there, key=lambda number: (number != last, -number))


@dataclass(frozen=True, slots=True)
class KeptSource(Source):
    """A file that was imported from ``path``, read from its ``original``."""

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
        """Open the original instead of ``path``."""
        del path
        return open_regular(self.original)


class Salvage(Builder):
    """A builder that starts from the catalogue, and the intact concept graph, of a damaged generation."""

    def __init__(self, session: Session, number: int) -> None:
        """The caller holds the writer lock."""
        self._number = number
        super().__init__(session.data, session.encoder.identity, session.settings.library)

    def begin(self) -> tuple[Path, int]:
        """Create the build folder with the verified catalogue; nothing is shared with other generations."""
        building = generations.abandon_build(self._data)
        building.mkdir(parents=True, mode=0o700)
        with generations.lease(self._data, self._number) as damaged:
            generations.copy_checked(damaged, CATALOGUE, building / CATALOGUE)
            if GRAPH in generations.read_manifest(damaged).files:
                with suppress(Damaged):
                    generations.copy_checked(damaged, GRAPH, building / GRAPH)
        return building, 0


def can_rebuild(data: Path, number: int) -> bool:
    """Whether generation ``number`` can be rebuilt: its catalogue and originals are intact, every byte read."""
    with suppress(LibraryError, UnknownName, OSError), generations.lease(data, number) as generation:
        entry = generations.read_manifest(generation).files[CATALOGUE]
        if sha256_of(generation / CATALOGUE) == entry.sha256:
            return all(sha256_of(data / layout.FILES / sha256) == sha256 for sha256 in originals_of(generation))
    return False


def rebuild(session: Session, number: int, hooks: Hooks = SILENT, patience: Patience = AT_ONCE) -> int:
    """Rebuild generation ``number`` and serve it; return the new generation's number.

    Raise ``Damaged``, with nothing changed, if a document could not be read again.
    """
    with session.change("repair", f"generation {number}") as change, following(hooks.cancel_only()):
        started, advance = hooks.counter()
        begin = partial(Salvage, session, number)
        with building(session.data, begin, patience) as builder, closing(connect(session.data)) as state:
            names = [collection.name for collection in builder.catalogue.collections()]
            listed = {name: list(_marked_unread(builder.catalogue, name)) for name in names}
            started(sum(_kept_source(session.data, file).bytes for files in listed.values() for file in files))
            for name in names:
                _read_again(session, builder, state, name, listed[name], advance)
            change.generation = builder.publish(message("generation.made.rebuild", number=number))
        change.outcome = "served"
    return change.generation


def _marked_unread(catalogue: Catalogue, name: str) -> Iterator[ImportedFile]:
    """Mark the files of collection ``name`` so that each is written though its documents are the same; yield them."""
    for file in catalogue.files(name).values():
        catalogue.put_file(replace(file, recipe=UNSETTLED + strip_mark(file.recipe)))
        yield file


def _kept_source(data: Path, file: ImportedFile) -> KeptSource:
    return KeptSource(Path(file.path), file.root, original=originals.path_of(data, file.sha256))


def _read_again(
    session: Session,
    builder: Salvage,
    state: State,
    name: str,
    files: list[ImportedFile],
    advance: Progress,
) -> None:
    manifest = manifests.chosen(session.data, name, None, lambda: builder.catalogue.collection(name))
    if manifest.collection.kind is Kind.GRAPH and (builder.path / GRAPH).exists():
        return  # the concept graph is whole
    importer = importer_of(session, manifest, advance)
    importer.read_again(builder, state, [_kept_source(session.data, file) for file in files])
