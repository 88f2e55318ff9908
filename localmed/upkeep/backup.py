"""``localmed backup``: everything a site is, copied while it serves, by content.

::

    <folder>/blocks/ab/<sha256>       pieces of files, at most ``BLOCK`` bytes, each once however many backups hold it
    <folder>/<name>.json              one backup: every file with its size, hash and pieces; the audit log's head

A backup holds what the table of the data folder says (``library/layout.py``), of the generations the one being served.
SQLite's files are copied by its backup API, the journal while nobody may change what is in force. What a backup has is
synced before it is named; pieces that no backup names go when an old one does. **It is not encrypted**: it holds the
keys of the history, and belongs on a disk that is (LUKS) and in the safe.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from localmed import __version__
from localmed.domain import digest
from localmed.domain.errors import (
    Busy,
    Damaged,
    InputError,
    LibraryError,
    LocalmedError,
    UnknownName,
    UsageError,
    reason,
)
from localmed.library import generations, layout
from localmed.library.in_force import in_force
from localmed.library.layout import Kind
from localmed.people.noted_accounts import require_noted
from localmed.process import files
from localmed.process.files import told_if_full
from localmed.process.hooks import Hooks
from localmed.site.audit import Audit

if TYPE_CHECKING:
    from localmed.site.session import Session

FORMAT = 1
BLOCK = 4 * 2**20  # bytes; a database of which some pages changed shares the others with the backup before
READING = "reading.lock"  # held by whoever reads backups, so that none is removed meanwhile
NAME = re.compile(r"\d{8}T\d{6}(-\d+)?")
SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a backup: its path in the data folder, size, hash, pieces and mode."""

    path: str
    bytes: int
    sha256: str
    blocks: tuple[str, ...]
    mode: int


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup: ``generation`` is what was served, ``audit`` the head of the log (number and mac) then."""

    name: str
    created: str
    generation: int
    audit: str
    files: tuple[StoredFile, ...]
    version: str = __version__
    format: int = FORMAT
    added_bytes: int = 0  # that were not in the folder before

    @property
    def bytes(self) -> int:
        """What it restores to."""
        return sum(file.bytes for file in self.files)


class _Writing:
    """Pieces that are written into the folder of backups, and how much of them was new."""

    def __init__(self, folder: Path, hooks: Hooks) -> None:
        self._folder, self._hooks, self.added = folder, hooks, 0
        self._folders: set[Path] = set()
        self._done = 0.0

    def put(self, path: Path, name: str, mode: int | None = None) -> StoredFile:
        """Store the file at ``path`` under the name ``name``."""
        whole, blocks, size = hashlib.sha256(), [], 0
        with path.open("rb") as stream:
            while piece := stream.read(BLOCK):
                self._hooks.cancel.check()
                whole.update(piece)
                blocks.append(self._block(piece))
                size += len(piece)
                self._done += len(piece)
                self._hooks.progress(self._done, 0, name.partition("/")[0])
        return StoredFile(name, size, whole.hexdigest(), tuple(blocks), mode or path.stat().st_mode & 0o777)

    def _block(self, piece: bytes) -> str:
        sha256 = hashlib.sha256(piece).hexdigest()
        target = _block_path(self._folder, sha256)
        if not _holds(target, piece):
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = target.with_suffix(".new")
            with fresh.open("wb") as stream:
                stream.write(piece)
                stream.flush()
                os.fsync(stream.fileno())
            fresh.replace(target)
            self._folders.add(target.parent)
            self.added += len(piece)
        return sha256

    def sync(self) -> None:
        """Make what was named durable."""
        for folder in self._folders:
            files.sync(folder)
        files.sync(self._folder / "blocks")


def make(session: Session, folder: Path, hooks: Hooks) -> Backup:
    """Back everything up into ``folder``; raise ``LocalmedError`` where that cannot be done: nothing is named then."""
    data = session.data
    if folder.absolute().is_relative_to(data.absolute()) or data.absolute().is_relative_to(folder.absolute()):
        raise UsageError("backup.inside", folder=str(folder), data=str(data))
    with (
        generations.lease(data) as generation,
        session.change("backup", folder.name) as change,
        explained(folder),
        _alone(folder),
    ):
        (folder / "blocks").mkdir(parents=True, exist_ok=True, mode=0o700)
        writing = _Writing(folder, hooks)
        stored = [*_generation(writing, generation), *_beside(writing, data)]
        kept_files, head = _together(writing, data)
        now = datetime.now(UTC)
        made = Backup(
            name=_free_name(folder, now),
            created=now.isoformat(timespec="seconds"),
            generation=int(generation.name),
            audit=head,
            files=tuple(sorted([*stored, *kept_files], key=lambda file: file.path)),
            added_bytes=writing.added,
        )
        writing.sync()
        files.replace(folder / f"{made.name}.json", _written(made))
        _retain(folder, session.settings.backup.keep)
        change.subject, change.outcome, change.generation = made.name, "written", made.generation
    return made


def backups(folder: Path) -> list[str]:
    """The names of the backups in ``folder``, oldest first; raise ``InputError`` where there is no such folder."""
    if not folder.is_dir():
        raise InputError("source.missing", path=str(folder))
    return sorted(path.stem for path in folder.glob("*.json") if NAME.fullmatch(path.stem))


def read(folder: Path, name: str = "") -> Backup:
    """The backup ``name`` (default: the newest); raise ``UnknownName``, or ``Damaged`` where it cannot be read."""
    known = backups(folder)
    if (name or (known or [""])[-1]) not in known:
        raise UnknownName("backup.unknown", folder=str(folder), name=name or "-")
    path = folder / f"{name or known[-1]}.json"
    try:
        outer = json.loads(path.read_bytes())
        values = outer["backup"]
        if digest(json.dumps(values, sort_keys=True)) != outer["digest"] or values["format"] != FORMAT:
            raise ValueError
        stored = tuple(StoredFile(**{**row, "blocks": tuple(row["blocks"])}) for row in values["files"])
        return Backup(**{**values, "files": stored})
    except (OSError, ValueError, LookupError, TypeError):
        raise Damaged("backup.unreadable", file=str(path)) from None


def damaged(folder: Path, backup: Backup) -> Iterator[str]:
    """The files of ``backup`` of which a piece is missing or is not what its name says."""
    sound: dict[str, bool] = {}
    for file in backup.files:
        for name in file.blocks:
            if name not in sound:
                sound[name] = _block_path(folder, name).is_file() and _sha256(_block_path(folder, name)) == name
        if not all(sound[name] for name in file.blocks):
            yield file.path


def fetch(folder: Path, sha256: str, target: Path) -> None:
    """Write the file with this hash anew at ``target``; raise ``UnknownName`` where no backup holds it whole."""
    with reading(folder):
        for name in reversed(backups(folder)):
            for file in read(folder, name).files:
                if file.sha256 == sha256:
                    fresh = target.with_name(f"{target.name}.mended")
                    write(folder, file, fresh)
                    fresh.replace(target)
                    files.sync(target.parent)
                    return
    raise UnknownName("backup.not_held", folder=str(folder))


def write(folder: Path, file: StoredFile, target: Path) -> None:
    """Write a file of a backup to ``target``; raise ``Damaged`` where it is not what it was."""
    whole = hashlib.sha256()
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with target.open("wb") as stream:
            for name in file.blocks:
                piece = _block_path(folder, name).read_bytes()
                whole.update(piece)
                stream.write(piece)
            stream.flush()
            os.fsync(stream.fileno())
    except FileNotFoundError:
        target.unlink(missing_ok=True)
        raise Damaged("backup.damaged", file=file.path, folder=str(folder)) from None
    if whole.hexdigest() != file.sha256:
        target.unlink()
        raise Damaged("backup.damaged", file=file.path, folder=str(folder))
    target.chmod(file.mode)


# --- what is copied ---------------------------------------------------------------------------------------------------


def _generation(writing: _Writing, generation: Path) -> Iterator[StoredFile]:
    """The files of the generation being served; what is not as its manifest says is not copied as if it were."""
    entries = generations.read_manifest(generation).files
    for name, entry in entries.items():
        stored = writing.put(generation / name, f"generations/{generation.name}/{name}")
        if stored.sha256 != entry.sha256:
            raise Damaged("generation.file_changed", file=name, name=generation.name)
        yield stored
    for name in (generations.MANIFEST, generations.LEASE):
        yield writing.put(generation / name, f"generations/{generation.name}/{name}")


def _beside(writing: _Writing, data: Path) -> Iterator[StoredFile]:
    """What lies beside the generations and the audit log knows nothing of; what goes meanwhile is not needed."""
    for place in layout.in_backup(data):
        if place.logged or place.name == layout.GENERATIONS:
            continue
        for path in layout.contents(data / place.name) if place.folder else [data / place.name]:
            if place.kind is not Kind.DATABASE:
                with suppress(FileNotFoundError):
                    yield writing.put(path, str(path.relative_to(data)))
            elif path.suffix == ".sqlite":
                yield _database(writing, path, str(path.relative_to(data)))


def _together(writing: _Writing, data: Path) -> tuple[list[StoredFile], str]:
    """The journal and what belongs to it; and its head. What names a row of the journal is copied before it."""
    in_force(data)  # a damaged one must not take the place of a whole one
    require_noted(data)
    logged = [place for place in layout.in_backup(data) if place.logged]
    stored = [writing.put(data / place.name, place.name) for place in logged if place.kind is not Kind.DATABASE]
    stored += [_database(writing, data / one.name, one.name) for one in logged if one.kind is Kind.DATABASE]
    with Audit(data) as log:
        head = log.head()
    return stored, str(head or "")


def _database(writing: _Writing, path: Path, name: str) -> StoredFile:
    """A database as it was at one moment, by SQLite's backup API, while others write it."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".backup-") as folder:
        copy = Path(folder) / "copy"
        source = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10)
        with closing(source), closing(sqlite3.connect(copy)) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")
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
def reading(folder: Path) -> Iterator[None]:
    """No backup is removed within the block; of a folder that may not be written to nobody here removes any."""
    try:
        stream = (folder / READING).open("a+")
    except OSError:
        yield
        return
    with stream:
        files.lock(stream, shared=True, wait=True)  # until somebody has removed old ones, which takes seconds
        yield


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Say of a folder that is full, read-only or gone what it is."""
    try:
        with told_if_full(folder):
            yield
    except OSError as error:
        raise LibraryError("backup.unwritable", folder=str(folder), why=reason(error)) from error
    except sqlite3.Error as error:
        raise LibraryError("backup.unwritable", folder=str(folder), why=reason(error)) from error


def _free_name(folder: Path, now: datetime) -> str:
    """A name after those of the same second, of which older ones may be gone already."""
    second = now.strftime("%Y%m%dT%H%M%S")
    names = [name for name in backups(folder) if name.startswith(second)]
    return f"{second}-{int(names[-1].partition('-')[2] or 0) + 1:03}" if names else second


def _written(backup: Backup) -> bytes:
    values = json.loads(json.dumps(asdict(backup)))
    return json.dumps({"digest": digest(json.dumps(values, sort_keys=True)), "backup": values}).encode()


def _retain(folder: Path, keep: int) -> None:
    """Remove all but the newest ``keep`` backups, and pieces that no other names; not while somebody reads any."""
    with (folder / READING).open("a+") as stream:
        if files.lock(stream):
            _remove_old(folder, keep)


def _remove_old(folder: Path, keep: int) -> None:
    for name in backups(folder)[:-keep]:
        (folder / f"{name}.json").unlink()
    try:
        named = {block for name in backups(folder) for file in read(folder, name).files for block in file.blocks}
    except LocalmedError:  # what one names is not known: nothing of it may go
        return
    for path in (folder / "blocks").glob("*/*"):
        if path.name not in named:
            path.unlink()


def _holds(target: Path, piece: bytes) -> bool:
    """Whether the block is there and is ``piece``: one that has decayed is as long, and later backups name it too."""
    try:
        return target.stat().st_size == len(piece) and target.read_bytes() == piece
    except OSError:
        return False


def _block_path(folder: Path, sha256: str) -> Path:
    if not SHA256.fullmatch(sha256):
        raise Damaged("backup.unreadable", file=str(folder))
    return folder / "blocks" / sha256[:2] / sha256


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
