"""``localmed backup``: a complete copy of a site, made while it serves.

::

    <folder>/<name>/data/...       the data folder as it was, file by file
    <folder>/<name>/backup.json    every file with its size, hash and mode; the journal's head

The table of the data folder (``library/layout.py``) says what a backup contains; of the generations it is the served
one. A damaged or missing original is replaced by the newest intact copy of earlier backups, if any, and reported.
SQLite files are copied by SQLite's backup API. Files that the previous backup has intact become hard links to it, if
the file system supports them; no file is shared with the data folder, so that a flipped bit is not in both. A backup is
synced before it gets its name. The hospital's own backup program copies the folder, encrypted and with its own
retention. **A backup is not encrypted**: it contains the keys of the history, and belongs on an encrypted disk (LUKS)
and in the safe.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from localmed import __version__, config
from localmed.domain import digest, errors
from localmed.domain.accounts import Right
from localmed.domain.errors import Busy, Damaged, InputError, LibraryError, UnknownName, UsageError, reason
from localmed.library import generations, layout
from localmed.library.catalogue import originals_of
from localmed.library.in_force import in_force
from localmed.library.intact import sha256_of
from localmed.library.layout import Kind
from localmed.library.migrations import SQLITE_ERRORS, translate_error
from localmed.people.noted_accounts import require_noted
from localmed.process import files
from localmed.process.files import told_if_full
from localmed.process.hooks import Hooks, active
from localmed.site.audit import Audit

if TYPE_CHECKING:
    from localmed.config import Settings
    from localmed.site.session import Session

FORMAT = 2  # format 1 stored blocks by hash
BLOCK = 4 * 2**20  # bytes read at once
DATA, MANIFEST, BUILDING = "data", "backup.json", "backup.new"
READING = "reading.lock"  # shared lock of readers, who prevent removals
NAME = re.compile(r"\d{8}T\d{6}(-\d+)?")
ORIGINAL = re.compile(r"[0-9a-f]{64}")  # an original's name is its hash


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a backup: its path in the data folder, size, hash and mode."""

    path: str
    bytes: int
    sha256: str
    mode: int


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup: ``generation`` was being served, ``audit`` was the head of the log (number and mac).

    ``damaged`` are the damaged originals, of which it has an earlier copy or none.
    """

    name: str
    created: str
    generation: int
    audit: str
    files: tuple[StoredFile, ...]
    version: str = __version__
    format: int = FORMAT
    added_bytes: int = 0  # new since the previous backup
    damaged: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.bytes for file in self.files)


class _Writing:
    """A backup being written; ``held`` maps hashes to files of the previous backup."""

    def __init__(self, backups: Path, held: Mapping[str, Path], hooks: Hooks) -> None:
        self._backups, self._folder, self._held, self._hooks = backups, backups / BUILDING / DATA, held, hooks
        self._done, self.added, self.damaged = 0.0, 0, list[str]()

    def put(self, path: Path, name: str, mode: int | None = None) -> StoredFile:
        """Store the file at ``path`` as ``name``."""
        target = self._folder / name
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with reading_data(path):
            stream = path.open("rb")
        with stream:
            sha256, size = self._read(stream, path, name)
            if not self._linked(sha256, target):
                stream.seek(0)
                with target.open("xb") as copy:
                    sha256, size = self._read(stream, path, name, copy)
                    copy.flush()
                    os.fchmod(copy.fileno(), mode or path.stat().st_mode & 0o777)
                    os.fsync(copy.fileno())
                self.added += size
        return StoredFile(name, size, sha256, mode or path.stat().st_mode & 0o777)

    def original(self, path: Path, name: str, needed: bool) -> Iterator[StoredFile]:
        """Store an original, or the newest intact copy of earlier backups if it is damaged.

        An unreadable original is damaged, and so is a missing one that is ``needed``.
        """
        stored = None
        with suppress(Damaged, FileNotFoundError):
            stored = self.put(path, name)
        if stored and stored.sha256 == path.name:
            yield stored
            return
        if not needed and not path.exists():  # removed meanwhile
            return
        self.damaged.append(name)
        (self._folder / name).unlink(missing_ok=True)
        if found := find_newest(self._backups, path.name):
            write(self._backups, *found, self._folder / name)
            yield replace(found[1], path=name)

    def _read(self, stream: BinaryIO, path: Path, name: str, copy: BinaryIO | None = None) -> tuple[str, int]:
        whole, size = hashlib.sha256(), 0
        while True:
            with reading_data(path):
                piece = stream.read(BLOCK)
            if not piece:
                return whole.hexdigest(), size
            self._hooks.cancel.check()
            whole.update(piece)
            size += len(piece)
            if copy:
                copy.write(piece)
                self._done += len(piece)
                self._hooks.progress(self._done, 0, name.partition("/")[0])

    def _linked(self, sha256: str, target: Path) -> bool:
        """Whether the file was linked to the previous backup's, which must be intact."""
        held = self._held.get(sha256)
        if held is None or sha256_of(held) != sha256:
            return False
        try:
            os.link(held, target)
        except OSError:  # no hard links on this file system, or too many of one file
            return False
        return True


def make(session: Session, folder: Path, hooks: Hooks) -> Backup:
    """Make a backup in ``folder``; raise ``LocalmedError`` on failure, without leaving a named backup."""
    data = session.data
    _require_apart(folder, data)
    with (
        generations.lease(data) as generation,
        session.change("backup", folder.name) as change,
        translating_errors(folder),
        _alone(folder),
    ):
        building = _start(folder)
        writing = _Writing(folder, _known_files(folder), hooks)
        stored = [*_copy_generation(writing, generation), *_copy_beside(writing, data, originals_of(generation))]
        kept_files, head = _copy_journal(writing, data)
        now = datetime.now(UTC)
        made = Backup(
            name=_free_name(folder, now),
            created=now.isoformat(timespec="seconds"),
            generation=int(generation.name),
            audit=head,
            files=tuple(sorted([*stored, *kept_files], key=lambda file: file.path)),
            added_bytes=writing.added,
            damaged=tuple(writing.damaged),
        )
        (building / MANIFEST).write_bytes(to_bytes(made))
        for path in (building / MANIFEST, *(path for path in building.rglob("*") if path.is_dir()), building):
            files.sync(path)
        building.rename(folder / made.name)
        files.sync(folder)
        _retain(folder, session.settings.backup.keep)
        change.subject, change.outcome, change.generation = made.name, "written", made.generation
    return made


def folder_of(settings: Settings) -> Path | None:
    """Return the configured folder of backups, ``None`` without one."""
    return Path(settings.backup.folder).expanduser().absolute() if settings.backup.folder else None


def choose_folder(session: Session, folder: Path) -> None:
    """Set ``backup.folder`` in the settings file, for this process at once and for others at their next start.

    Raise ``LocalmedError`` for a folder that cannot be used. It must exist: a disk that is not connected is not made up
    by a folder on another.
    """
    session.require(Right.MODELS)
    require_folder(folder)
    _require_apart(folder, session.data)
    with translating_errors(folder), tempfile.TemporaryFile(dir=folder):
        pass
    with session.change("setting", "backup.folder"):
        chosen = config.write(session.data, "backup", "folder", str(folder))
    session.site.settings = replace(session.site.settings, backup=chosen.backup)


def require_folder(folder: Path) -> None:
    """Raise ``UsageError`` if there is no such folder, or none that can be entered."""
    with suppress(OSError, ValueError):
        if folder.is_absolute() and folder.is_dir():
            return
    raise UsageError("backup.no_such_folder", folder=str(folder))


def _require_apart(folder: Path, data: Path) -> None:
    place, served = folder.resolve(), data.resolve()
    if place.is_relative_to(served) or served.is_relative_to(place):
        raise UsageError("backup.inside", folder=str(folder), data=str(data))


def is_empty(settings: Settings) -> bool:
    """Whether the configured folder is there and has no backup; False if its disk is not connected."""
    folder = folder_of(settings)
    return folder is not None and folder.is_dir() and not backups(folder)


def backups(folder: Path) -> list[str]:
    """Return the names of the backups in ``folder``, oldest first; raise ``InputError`` if the folder does not
    exist.
    """
    if not folder.is_dir():
        raise InputError("source.missing", path=str(folder))
    return sorted(path.parent.name for path in folder.glob(f"*/{MANIFEST}") if NAME.fullmatch(path.parent.name))


def read(folder: Path, name: str = "") -> Backup:
    """Return the backup ``name`` (default: the newest); raise ``UnknownName``, or ``Damaged`` if it is unreadable."""
    known = backups(folder)
    if (name or (known or [""])[-1]) not in known:
        if (folder / "blocks").is_dir() and (not known or (folder / f"{name}.json").is_file()):
            raise Damaged("backup.older", folder=str(folder))
        raise UnknownName("backup.unknown", folder=str(folder), name=name or "-")
    path = folder / (name or known[-1]) / MANIFEST
    try:
        outer = json.loads(path.read_bytes())
        values = outer["backup"]
        if digest(json.dumps(values, sort_keys=True)) != outer["digest"] or values["format"] != FORMAT:
            raise ValueError
        stored = tuple(StoredFile(**row) for row in values["files"])
        if any(Path(file.path).is_absolute() or ".." in Path(file.path).parts for file in stored):
            raise ValueError
        lists = {"files": stored, "damaged": tuple(values.get("damaged", ()))}
        return Backup(**{**values, **lists, "name": path.parent.name})
    except (OSError, ValueError, LookupError, TypeError):
        raise Damaged("backup.unreadable", file=str(path)) from None


def place_of(folder: Path, backup: Backup, file: StoredFile) -> Path:
    """Return the path of a file of a backup."""
    return folder / backup.name / DATA / file.path


def damaged_files(folder: Path, backup: Backup) -> Iterator[str]:
    """Yield the missing or altered files of ``backup``, and the originals of which it has no copy."""
    for number, file in enumerate(backup.files):
        active().cancel.check()
        active().progress(number, len(backup.files), file.path.partition("/")[0])
        if sha256_of(place_of(folder, backup, file)) != file.sha256:
            yield file.path
    yield from sorted(set(backup.damaged) - {file.path for file in backup.files})


def find_newest(folder: Path, sha256: str) -> tuple[Backup, StoredFile] | None:
    """Return the newest backup with an intact file of this hash."""
    for name in reversed(backups(folder)):
        with suppress(Damaged):
            backup = read(folder, name)
            for file in backup.files:
                if file.sha256 == sha256 == sha256_of(place_of(folder, backup, file)):
                    return backup, file
    return None


def fetch(folder: Path, sha256: str, target: Path) -> None:
    """Restore the file with this hash to ``target``; raise ``UnknownName`` if no backup has it intact."""
    with keeping_backups(folder):
        found = find_newest(folder, sha256)
        if found is None:
            raise UnknownName("backup.not_held", folder=str(folder))
        fresh = target.with_name(f"{target.name}.mended")
        try:
            write(folder, *found, fresh)
            fresh.replace(target)
        finally:
            fresh.unlink(missing_ok=True)
        files.sync(target.parent)


def write(folder: Path, backup: Backup, file: StoredFile, target: Path) -> None:
    """Write a file of a backup to ``target``; raise ``Damaged`` if it was altered."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileNotFoundError):
        shutil.copyfile(place_of(folder, backup, file), target)
    if sha256_of(target) != file.sha256:
        target.unlink(missing_ok=True)
        raise Damaged("backup.damaged", file=file.path, folder=str(folder))
    target.chmod(file.mode)
    files.sync(target)


# --- copying ----------------------------------------------------------------------------------------------------------


def _copy_generation(writing: _Writing, generation: Path) -> Iterator[StoredFile]:
    """Copy the files of the served generation; raise ``Damaged`` for an altered one."""
    entries = generations.read_manifest(generation).files
    for name, entry in entries.items():
        stored = writing.put(generation / name, f"generations/{generation.name}/{name}")
        if stored.sha256 != entry.sha256:
            raise Damaged("generation.file_changed", file=name, name=generation.name)
        yield stored
    for name in (generations.MANIFEST, generations.LEASE):
        yield writing.put(generation / name, f"generations/{generation.name}/{name}")


def _copy_beside(writing: _Writing, data: Path, needed: set[str]) -> Iterator[StoredFile]:
    """Copy everything beside the generations and the journal.

    A missing original counts as damaged if it is ``needed``; any other file may vanish meanwhile.
    """
    for place in layout.in_backup(data):
        if place.logged or place.name == layout.GENERATIONS:
            continue
        paths = set(layout.contents(data / place.name)) if place.folder else {data / place.name}
        for path in sorted(paths | {data / place.name / one for one in needed if place.name == layout.FILES}):
            name = str(path.relative_to(data))
            if place.name == layout.FILES and ORIGINAL.fullmatch(path.name):
                yield from writing.original(path, name, path.name in needed)
            elif place.kind is not Kind.DATABASE:
                with suppress(FileNotFoundError):
                    yield writing.put(path, name)
            elif path.suffix == ".sqlite":
                yield _copy_database(writing, path, name)


def _copy_journal(writing: _Writing, data: Path) -> tuple[list[StoredFile], str]:
    """Copy the journal and its files; return them and the head. Files that name a row are copied before the journal."""
    in_force(data)  # raises for a damaged journal, which must not replace an intact copy
    require_noted(data)
    logged = [place for place in layout.in_backup(data) if place.logged]
    stored = [writing.put(data / place.name, place.name) for place in logged if place.kind is not Kind.DATABASE]
    stored += [_copy_database(writing, data / one.name, one.name) for one in logged if one.kind is Kind.DATABASE]
    with Audit(data) as log:
        head = log.head()
    return stored, str(head or "")


def _copy_database(writing: _Writing, path: Path, name: str) -> StoredFile:
    """Copy a database in use, consistently, by SQLite's backup API."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".backup-") as folder:
        copy = Path(folder) / "copy"
        try:
            source = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10)
            with closing(source), closing(sqlite3.connect(copy)) as target:
                source.backup(target)
                target.execute("PRAGMA journal_mode = DELETE")
        except SQLITE_ERRORS as error:
            raise translate_error(path, error) from None
        return writing.put(copy, name, path.stat().st_mode & 0o777)


# --- the folder of backups --------------------------------------------------------------------------------------------


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / "backup.lock").open("a+") as stream:
        if not files.lock(stream):
            raise Busy("backup.busy", folder=str(folder))
        yield


@contextmanager
def keeping_backups(folder: Path) -> Iterator[None]:
    """Prevent the removal of backups within the block. A read-only folder needs no lock."""
    try:
        stream = (folder / READING).open("a+")
    except OSError:
        yield
        return
    with stream:
        files.lock(stream, shared=True, wait=True)  # a removal takes seconds
        yield


@contextmanager
def reading_data(path: Path) -> Iterator[None]:
    """Report a read error of the data folder as ``Damaged``, unlike errors of the folder of backups."""
    try:
        yield
    except FileNotFoundError:  # the caller knows whether the file is needed
        raise
    except OSError as error:
        raise Damaged("library.unreadable", path=str(path), error=reason(error)) from error


@contextmanager
def translating_errors(folder: Path) -> Iterator[None]:
    """Report a full, read-only or missing folder as ``LibraryError``."""
    try:
        with told_if_full(folder):
            yield
    except (OSError, sqlite3.Error) as error:
        raise LibraryError("backup.unwritable", folder=str(folder), why=reason(error)) from error


def _free_name(folder: Path, now: datetime) -> str:
    """Return a name after all others, also within one second or if the clock was ahead."""
    second, last = now.strftime("%Y%m%dT%H%M%S"), (backups(folder) or [""])[-1]
    moment, _, number = last.partition("-")
    return f"{moment}-{int(number or 0) + 1:03}" if moment >= second else second


def to_bytes(backup: Backup) -> bytes:
    """Return the manifest that ``read`` parses."""
    values = json.loads(json.dumps(asdict(backup)))
    return json.dumps({"digest": digest(json.dumps(values, sort_keys=True)), "backup": values}).encode()


def _start(folder: Path) -> Path:
    """Create the folder of the next backup; remove remains of an interrupted one."""
    building = folder / BUILDING
    if building.exists():
        shutil.rmtree(building)
    building.mkdir(mode=0o700)
    return building


def _known_files(folder: Path) -> dict[str, Path]:
    try:
        newest = read(folder)
    except errors.LocalmedError:
        return {}
    return {file.sha256: place_of(folder, newest, file) for file in newest.files}


def _retain(folder: Path, keep: int) -> None:
    with (folder / READING).open("a+") as stream:
        if files.lock(stream):
            for name in backups(folder)[:-keep]:
                (folder / name).rename(folder / BUILDING)  # a half-removed folder must not count as a backup
                shutil.rmtree(folder / BUILDING)
