"""Putting right what is damaged, from what is whole. Nothing is guessed: what has no whole copy comes from a backup.

Where the journal is not as it was written, or an older one, what its copy knows is put in force by a checkpoint, and so
is what rows added since say.

A damaged generation is made anew from its catalogue and the originals, where no copy of what is damaged is whole. Hard
links share their bytes, so a flipped bit in an index is in every generation that has the file. The catalogue of each is
a file of its own: where that is whole, and every original that it names is what its name says, every file is read again
as if it had just been imported, and only what the catalogue already says (titles by hand, marks, dates, owners) is
taken over. Vectors come from the cache beside the generations; what it lacks is encoded. The canaries are asked before
it is served.

Not covered: a catalogue or an original that is damaged, which a backup mends.
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
    ROWS_WITH_FACTS,
    SINCE_CHECKPOINT,
    WITH_ANOTHER_KEY,
    InForce,
    accounts_digest,
    go_on,
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
    day, why = manifest.created[:10], from_text(manifest.reason)
    return message("generation.repair_undoes", number=number, day=day, reason=why)


@dataclass(frozen=True, slots=True)
class JournalStep:
    """The ``fault`` of the journal or of the accounts, and what is to be in force instead.

    ``listed`` are the accounts that get the rights the journal knows. ``lost``: there is no file, and it is made anew.
    """

    fault: Message
    state: InForce
    listed: tuple[Account, ...] = ()
    passwords: bool = True
    lost: bool = False
    outcome: str = "in force"

    @property
    def shown(self) -> tuple[Message, ...]:
        """What it would do, and what is lost."""
        state = self.state
        withdrawn = sum(one.withdrawn for one in state.withdrawals.values())
        shown = [message("state.repair", withdrawn=withdrawn, restricted=len(state.access), stopped=len(state.stops))]
        if self.listed or not self.passwords:
            names = tuple(f"{one.user}: {noted_accounts.rights_of(one)}".rstrip(": ") for one in self.listed)
            shown.append(message("account.repair", count=len(names), names=names))
        shown += [] if self.passwords else [message("account.repair_passwords")]
        return (*shown, message("state.repair_lost")) if self.lost else tuple(shown)

    def do(self, session: Session) -> None:
        """Do it: the journal goes on from a checkpoint."""
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


def records(data: Path) -> list[JournalStep]:
    """What can be put right of what is in force, and of the accounts.

    Raise ``Damaged`` where neither the journal nor its copy can tell, and for a file that SQLite cannot read.
    """
    try:
        state = in_force(data)
    except AnotherKey as error:  # the journal goes on with the key at hand
        state = replay(selected(data, SINCE_CHECKPOINT), None)
        return [JournalStep(error.messages[0], state, outcome=WITH_ANOTHER_KEY)]
    except Damaged as error:
        lost, state = isinstance(error, StateLost), _salvaged(data, error)
        listed, passwords = ((), True) if lost else _rights(data, state)
        return [JournalStep(error.messages[0], state, listed, passwords, lost)]
    try:
        require_accounts(data)
        noted_accounts.require_noted(data)
    except (AccountsAltered, StateLost) as error:
        return [JournalStep(error.messages[0], state, *_rights(data, state))]
    if journal.key(data) is None and selected(data, "SELECT 1 FROM journal WHERE mac <> '' LIMIT 1"):
        fault = message("state.no_key.what", path=str(journal.place(data)))
        return [JournalStep(fault, state, outcome=WITH_ANOTHER_KEY)]
    if state.number and copy_of(data) is None:
        return [JournalStep(message("state.copy.what", file=str(data / COPY)), state)]
    return []


def _salvaged(data: Path, error: Damaged) -> InForce:
    """What is in force by the copy and the rows that were added since; without a copy there is no telling."""
    state = copy_of(data)
    if state is None:
        raise error
    with suppress(StateLost):
        since = selected(data, ROWS_WITH_FACTS.replace("FIRST", f"{state.number + 1:d}"))
        return go_on(state, since, journal.key(data))
    return state


def _rights(data: Path, state: InForce) -> tuple[tuple[Account, ...], bool]:
    """The accounts with other rights than the journal knows, with those; and whether the passwords can stay.

    One that it does not know is disabled.
    """
    if state.accounts in ("", noted_accounts.stored_digest(data)):
        return (), True
    stored = noted_accounts.readable(data)
    now = [noted_accounts.rights_read(one.user, state.rights.get(one.user, "")) or replace(one, disabled=True)
           for one in stored]  # fmt: skip
    listed = tuple(right for right, one in zip(now, stored, strict=True) if right != one)
    return listed, noted_accounts.passwords_as_noted(data, state.accounts)


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
        swaps = generations.swaps(data)
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
            generations.copy_checked(damaged, CATALOGUE, building / CATALOGUE)
            if GRAPH in generations.read_manifest(damaged).files:
                with suppress(Damaged):
                    generations.copy_checked(damaged, GRAPH, building / GRAPH)
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
        begin = partial(Salvage, session, number)
        with building(session.data, begin, patience) as builder, closing(connect(session.data)) as state:
            names = [collection.name for collection in builder.catalogue.collections()]
            listed = {name: list(_marked_unread(builder.catalogue, name)) for name in names}
            started(sum(_kept(session.data, file).bytes for files in listed.values() for file in files))
            for name in names:
                _read_again(session, builder, state, name, listed[name], advance)
            change.generation = builder.publish(message("generation.made.rebuild", number=number))
        change.outcome = "served"
    return change.generation


def _marked_unread(catalogue: Catalogue, name: str) -> Iterator[ImportedFile]:
    """The files of collection ``name``, so marked that each is written though its documents are the same."""
    for file in catalogue.files(name).values():
        catalogue.put_file(replace(file, recipe=UNSETTLED + strip_mark(file.recipe)))
        yield file


def _kept(data: Path, file: ImportedFile) -> KeptSource:
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
    importer.read_again(builder, state, [_kept(session.data, file) for file in files])
