"""Everything stored that an answer can rest on, read whole, and what is damaged written anew from a backup.

The generations by their manifests (``generations.check``); beside them the originals by their names, the journal by
its chains and the copy of what is in force, the databases by SQLite's own check, the cache of
vectors by its rows' digests, kept answers and manifests by reading them. Files that nobody of ours writes are named:
LanceDB, for one, serves the newest version that lies in its folder. ``doctor --full``, ``generations verify``, the
night and ``repair`` all look here; when everything was read last is noted (``whole_check.json``): an opening reads a
sample, so decay of what only ranks shows by such a check.

A damaged file of a generation, or an original, is written anew from the newest backup that has its bytes (a file of its
own: hard links of other generations keep the damaged ones until it is their turn). What has no whole copy there stays
damaged (``repair.py`` makes what is served anew), and nothing is answered from it.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.domain import Message, message
from localmed.domain.answers import FORMAT, AlteredAnswer, answer_of
from localmed.domain.errors import Damaged, LibraryError, LocalmedError, OriginalChanged, UnknownName
from localmed.ingest import manifest as manifests
from localmed.library import generations, layout, originals, vectors
from localmed.library.catalogue import FILE as CATALOGUE
from localmed.library.catalogue import originals_of
from localmed.library.in_force import COPY, copy_of, in_force
from localmed.library.intact import sha256_of
from localmed.library.journal import now
from localmed.library.migrations import SQLITE_ERRORS
from localmed.library.state import FILE as STATE_FILE
from localmed.people import history
from localmed.people.noted_accounts import require_noted
from localmed.people.sealing import KEY
from localmed.process import files as disk
from localmed.process.hooks import SILENT, Hooks
from localmed.site.audit import Audit
from localmed.upkeep import backup
from localmed.upkeep.backup import ORIGINAL

if TYPE_CHECKING:
    from localmed.site.session import Session

Messages = tuple[Message, ...]
WHOLE_CHECK_DAYS = 8  # after which ``doctor`` asks for the next: a timer every week, and a day of grace


@dataclass(frozen=True, slots=True)
class WholeCheck:
    """When everything stored was read last (ISO 8601, with its zone), and how many faults there were."""

    time: str
    faults: int


def note_whole_check(data: Path, faults: int, time: str = "") -> None:
    """Keep for ``doctor`` that everything was read (now, unless ``time`` is given), if the folder can be written to."""
    check = WholeCheck(time or now(), faults)
    with suppress(OSError):
        disk.replace(data / layout.WHOLE_CHECK, json.dumps(asdict(check)).encode())


def last_whole_check(data: Path) -> WholeCheck | None:
    """The check that was noted last; None where none was, or its note cannot be read."""
    try:
        check = WholeCheck(**json.loads(disk.contents(data / layout.WHOLE_CHECK)))
        return check if datetime.fromisoformat(check.time).tzinfo and check.faults >= 0 else None
    except (OSError, LocalmedError, ValueError, TypeError):
        return None


def of_generation(data: Path, number: int | None, whole: bool = True) -> list[Message]:
    """What is wrong with the files of generation ``number`` (None: the one that is served), every byte of them read.

    Without ``whole`` only what can be told at a glance. Raise ``UnknownName`` where it was pruned.
    """
    try:
        with generations.lease(data, number) as path:
            listed = generations.unlisted(path) if whole else ()
            extra = [message("stored.unlisted", file=str(file)) for file in listed]
            return generations.check(path, whole) + extra
    except Damaged as error:
        return [error.messages[0]]


def of_generations(data: Path, whole: bool = True, hooks: Hooks = SILENT) -> dict[int, Messages]:
    """What is wrong with each generation that is kept, by its number, oldest first."""
    faults: dict[int, Messages] = {}
    numbers = generations.numbers(data)
    for place, number in enumerate(numbers):
        hooks.cancel.check()
        hooks.progress(place, len(numbers) + 1, f"{number:04d}")
        with suppress(UnknownName):  # pruned meanwhile, which is no damage
            faults[number] = tuple(of_generation(data, number, whole))
    return faults


def beside(data: Path) -> list[LocalmedError]:
    """What is wrong with everything else, each with what to do about it."""
    return [fault for check in CHECKS for fault in _faults(data, check)]


def _faults(data: Path, check: Callable[[Path], Iterator[LocalmedError]]) -> Iterator[LocalmedError]:
    """The faults that ``check`` finds; one that ends it is one itself."""
    try:
        yield from check(data)
    except LocalmedError as error:
        yield error
    except (OSError, sqlite3.Error, ValueError, TypeError) as error:
        yield Damaged("stored.unseen", check=check.__name__, kind=type(error).__name__)


def files(data: Path) -> Iterator[LocalmedError]:
    """Every original that a kept generation was made from is there, and each is what its name says."""
    for path in layout.entries(data / layout.FILES):
        if not ORIGINAL.fullmatch(path.name) and path.suffix != originals.PARTIAL:
            yield Damaged("stored.extra", file=str(path))
    needed: set[str] = set()
    for number in generations.numbers(data):
        with suppress(UnknownName), generations.lease(data, number) as generation:
            needed |= originals_of(generation)
    for path in _altered_originals(data, needed):
        if path.exists():
            yield OriginalChanged("library.original_changed", file=str(path))
        else:
            yield Damaged("library.original_missing", sha256=path.name[:12], folder=str(data / layout.FILES))


def _altered_originals(data: Path, needed: set[str]) -> Iterator[Path]:
    """The places of originals, those ``needed`` and others that are there, that do not hold what their name says."""
    folder = data / layout.FILES
    for sha256 in sorted(needed | {path.name for path in layout.entries(folder) if ORIGINAL.fullmatch(path.name)}):
        if sha256_of(folder / sha256) != sha256:
            yield folder / sha256


def vector_caches(data: Path) -> Iterator[LocalmedError]:
    """Rows that would be encoded again."""
    for path in layout.entries(data / layout.VECTORS):
        if path.suffix == ".sqlite":
            if damaged := vectors.count_damaged(path):
                yield Damaged("stored.vectors", file=str(path), count=damaged)
        elif not path.name.endswith((".sqlite-wal", ".sqlite-shm")):
            yield Damaged("stored.extra", file=str(path))


def databases(data: Path) -> Iterator[LocalmedError]:
    """What SQLite finds in the file that belongs to no generation."""
    path = data / STATE_FILE
    if path.exists() and (problem := _integrity(path)):
        yield Damaged("library.database", path=str(path), error=problem)


def _integrity(path: Path) -> str:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            problem = str(database.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except SQLITE_ERRORS as error:
        return str(error)
    return "" if problem == "ok" else problem


def state(data: Path) -> Iterator[LocalmedError]:
    """The journal's chain is whole, accounts are as it knows them, what was sealed can be opened."""
    in_force(data)
    require_noted(data)
    if not (data / STATE_FILE).exists():
        return
    with Audit(data) as log:
        faults = log.verify()
    if faults:
        yield Damaged("stored.audit", file=str(data / STATE_FILE), fault=faults[0], count=len(faults))
    if in_force(data).number and copy_of(data) is None:
        yield Damaged("state.copy", file=str(data / COPY))
    if count := history.count_unopened(data):
        yield Damaged("stored.unopened", file=str(data / KEY), count=count)


def folder_of_generations(data: Path) -> Iterator[LocalmedError]:
    """What was served when can be read, and nothing else lies there."""
    folder = generations.folder(data)
    for path in layout.entries(folder):
        if not re.fullmatch(rf"\d{{4,}}({re.escape(generations.GOING)})?|building|served\.json", path.name):
            yield Damaged("stored.extra", file=str(path))
    generations.swaps(data)


def texts(data: Path) -> Iterator[LocalmedError]:
    """Kept answers and the manifests of collections can be read."""
    for path in layout.entries(data / originals.KEPT):
        try:
            answer_of(json.loads(disk.own_bytes(path)))
        except AlteredAnswer:
            yield Damaged("kept.altered", name=str(path))
        except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
            yield Damaged("kept.none", name=str(path), format=FORMAT)
    for path in layout.entries(data / layout.CORPORA):
        try:
            manifests.load(path)
        except LocalmedError as error:
            yield error


CHECKS = (files, vector_caches, databases, state, folder_of_generations, texts)


def verified(session: Session, number: int | None) -> dict[int, Messages]:
    """What is wrong with every file of generation ``number`` (None: of each), every byte read.

    Of all generations together with what is stored beside them, which has the number 0.
    """
    data = session.data
    generations.served_number(data)  # says so if there is no library
    if number is not None:
        return {number: tuple(of_generation(data, number))}
    results = of_generations(data)
    results[0] = tuple(fault.full_message for fault in beside(data))
    if session.caller.groups is None:
        note_whole_check(data, sum(map(len, results.values())))
    return results


# --- mending ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Damage:
    """A file that is not what it was, its hash, and what it is called to people."""

    path: Path
    sha256: str
    name: str


def damage(data: Path) -> Iterator[Damage]:
    """The files of generations, and the originals, that are missing or not as their hash says."""
    needed: set[str] = set()
    for number in generations.numbers(data):
        with suppress(UnknownName, LibraryError), generations.lease(data, number) as generation:
            entries = generations.read_manifest(generation).files
            altered = [name for name, entry in entries.items() if sha256_of(generation / name) != entry.sha256]
            for name in altered:
                yield Damage(generation / name, entries[name].sha256, f"{generation.name}/{name}")
            needed |= set() if CATALOGUE in altered else originals_of(generation)
    for path in _altered_originals(data, needed):
        yield Damage(path, path.name, path.name[:12])


def mendable(session: Session) -> list[Damage]:
    """What is damaged and whole in one of the site's backups."""
    folder = backup.folder_of(session.settings)
    if folder is None or not folder.is_dir():
        return []
    with backup.reading(folder):
        return [one for one in damage(session.data) if backup.newest_with(folder, one.sha256)]


def mend(session: Session, damaged: Damage) -> bool:
    """Whether the file could be written anew from the site's backups."""
    folder = backup.folder_of(session.settings)
    if folder is None:
        return False
    try:
        with session.change("mend", damaged.path.name):
            backup.fetch(folder, damaged.sha256, damaged.path)
    except (LocalmedError, OSError):
        return False
    return True


def verify_and_mend(session: Session, hooks: Hooks) -> tuple[Messages, Messages, Messages]:
    """Read everything, mend what can be; return what was found, what was mended, and what is still damaged."""
    left = found = _stored(session.data, hooks)
    mended = [one for one in damage(session.data) if mend(session, one)] if found else []
    if mended:
        left = _stored(session.data, hooks)
    models = _models(session)
    note_whole_check(session.data, len(left) + len(models))
    said = tuple(message("integrity.mended", file=one.name) for one in mended)
    return (*found, *models), said, (*left, *models)


def _stored(data: Path, hooks: Hooks) -> Messages:
    """What is wrong with the generations, newest first, and with what lies beside them."""
    found = of_generations(data, hooks=hooks)
    hooks.progress(len(found), len(found) + 1, "")
    return (*chain.from_iterable(reversed(found.values())), *(fault.full_message for fault in beside(data)))


def _models(session: Session) -> Messages:
    registry = session.site.registry
    return tuple(
        message("model.not_loaded", name=name, problem=problem)
        for name in registry.registrations.models
        for problem in registry.problems(name, full=True)
    )
