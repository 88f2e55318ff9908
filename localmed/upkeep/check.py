"""Checks of everything stored, every byte read, and mending from a backup.

Checked are: generations against their manifests (``generations.check``), originals against their names, the journal's
chains and copy, databases by SQLite, rows of vector caches against their digests, kept answers and manifests by reading
them. Unknown files are reported: LanceDB, for one, serves the newest version in its folder. ``doctor --full``,
``generations verify``, the nightly refresh and ``repair`` use these checks. ``whole_check.json`` records the last
complete one: opening a generation reads only a sample, so decay of ranking data shows only here.

A damaged file of a generation, or an original, is replaced from the newest backup that has its bytes. The replacement
is a separate file: other generations' hard links keep the damaged one until they are mended too. Without a copy it
stays damaged (``repair.py`` rebuilds the served generation), and nothing is answered from it.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
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
from localmed.library.migrations import SQLITE_ERRORS, read_rows
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
    """Time of the last complete check (ISO 8601 with zone), and its number of faults."""

    time: str
    faults: int


def note_whole_check(data: Path, faults: int, time: str = "") -> None:
    """Record a complete check (now, unless ``time`` is given) if the folder is writable."""
    check = WholeCheck(time or now(), faults)
    with suppress(OSError):
        disk.replace(data / layout.WHOLE_CHECK, json.dumps(asdict(check)).encode())


def last_whole_check(data: Path) -> WholeCheck | None:
    """Return the last recorded check, ``None`` if there is none or it is unreadable."""
    try:
        check = WholeCheck(**json.loads(disk.contents(data / layout.WHOLE_CHECK)))
        return check if datetime.fromisoformat(check.time).tzinfo and check.faults >= 0 else None
    except (OSError, LocalmedError, ValueError, TypeError):
        return None


def generation_faults(data: Path, number: int | None, whole: bool = True) -> list[Message]:
    """Return the faults of generation ``number`` (``None``: the served one), every byte read.

    Without ``whole`` only a quick check. Raise ``UnknownName`` if it was pruned.
    """
    try:
        with generations.lease(data, number) as path:
            listed = generations.unlisted(path) if whole else ()
            extra = [message("stored.unlisted", file=str(file)) for file in listed]
            return generations.check(path, whole) + extra
    except Damaged as error:
        return [error.messages[0]]


def all_generation_faults(data: Path, whole: bool = True, hooks: Hooks = SILENT) -> dict[int, Messages]:
    """Return the faults of each generation, by number, oldest first."""
    faults: dict[int, Messages] = {}
    numbers = generations.numbers(data)
    for place, number in enumerate(numbers):
        hooks.cancel.check()
        hooks.progress(place, len(numbers) + 1, f"{number:04d}")
        with suppress(UnknownName):  # pruned meanwhile, which is no damage
            faults[number] = tuple(generation_faults(data, number, whole))
    return faults


def faults_beside(data: Path) -> list[LocalmedError]:
    """Return the faults of everything else."""
    return [fault for check in CHECKS for fault in _faults(data, check)]


def _faults(data: Path, check: Callable[[Path], Iterator[LocalmedError]]) -> Iterator[LocalmedError]:
    """Yield the faults that ``check`` finds; an error that ends it is one too."""
    try:
        yield from check(data)
    except LocalmedError as error:
        yield error
    except (OSError, sqlite3.Error, ValueError, TypeError) as error:
        yield Damaged("stored.unseen", check=check.__name__, kind=type(error).__name__)


def files(data: Path) -> Iterator[LocalmedError]:
    """Check that every needed original exists and every original matches its name."""
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
    folder = data / layout.FILES
    for sha256 in sorted(needed | {path.name for path in layout.entries(folder) if ORIGINAL.fullmatch(path.name)}):
        if sha256_of(folder / sha256) != sha256:
            yield folder / sha256


def vector_caches(data: Path) -> Iterator[LocalmedError]:
    """Check for rows that would be encoded again."""
    for path in layout.entries(data / layout.VECTORS):
        if path.suffix == ".sqlite":
            if damaged := vectors.count_damaged(path):
                yield Damaged("stored.vectors", file=str(path), count=damaged)
        elif not path.name.endswith((".sqlite-wal", ".sqlite-shm")):
            yield Damaged("stored.extra", file=str(path))


def databases(data: Path) -> Iterator[LocalmedError]:
    """Check ``site.sqlite`` by SQLite."""
    path = data / STATE_FILE
    if not path.exists():
        return
    try:
        ((problem,),) = read_rows(path, "PRAGMA integrity_check(1)")
    except SQLITE_ERRORS as error:
        problem = str(error)
    if problem != "ok":
        yield Damaged("library.database", path=str(path), error=problem)


def state(data: Path) -> Iterator[LocalmedError]:
    """Check the journal's chain, the accounts, and that sealed data can be opened."""
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
    """Check the history of served generations, and for unknown files."""
    folder = generations.folder(data)
    for path in layout.entries(folder):
        if not re.fullmatch(rf"\d{{4,}}({re.escape(generations.GOING)})?|building|served\.json", path.name):
            yield Damaged("stored.extra", file=str(path))
    generations.swaps(data)


def texts(data: Path) -> Iterator[LocalmedError]:
    """Check that kept answers and collections' manifests are readable."""
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


def find_all_faults(session: Session, number: int | None) -> dict[int, Messages]:
    """Return the faults of generation ``number`` (``None``: each), every byte read.

    With ``None`` the key 0 has the faults beside the generations.
    """
    data = session.data
    generations.served_number(data)  # says so if there is no library
    if number is not None:
        return {number: tuple(generation_faults(data, number))}
    results = all_generation_faults(data)
    results[0] = tuple(fault.full_message for fault in faults_beside(data))
    if session.caller.groups is None:
        note_whole_check(data, sum(map(len, results.values())))
    return results


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged file, its hash, and its name for people."""

    path: Path
    sha256: str
    name: str


def find_damage(data: Path) -> Iterator[Damage]:
    """Yield the missing or altered files of generations, and originals."""
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


def find_mendable(session: Session) -> list[Damage]:
    """Return the damaged files that one of the site's backups has intact."""
    folder = backup.folder_of(session.settings)
    if folder is None or not folder.is_dir():
        return []
    with backup.keeping_backups(folder):
        return [one for one in find_damage(session.data) if backup.find_newest(folder, one.sha256)]


def mend(session: Session, damaged: Damage) -> bool:
    """Restore the file from the site's backups; return whether that succeeded."""
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
    """Read everything and mend what backups have; return faults found, mended, and remaining."""
    left = found = _stored(session.data, hooks)
    mended = [one for one in find_damage(session.data) if mend(session, one)] if found else []
    if mended:
        left = _stored(session.data, hooks)
    registry = session.site.registry
    models = tuple(
        message("model.not_loaded", name=name, problem=problem)
        for name in registry.registrations.models
        for problem in registry.problems(name, full=True)
    )
    note_whole_check(session.data, len(left) + len(models))
    said = tuple(message("integrity.mended", file=one.name) for one in mended)
    return (*found, *models), said, (*left, *models)


def _stored(data: Path, hooks: Hooks) -> Messages:
    """Return the faults of the generations, newest first, and of everything else."""
    found = all_generation_faults(data, hooks=hooks)
    hooks.progress(len(found), len(found) + 1, "")
    return (*chain.from_iterable(reversed(found.values())), *(fault.full_message for fault in faults_beside(data)))
