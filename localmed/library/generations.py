"""Generations on disk: clone, build, verify, publish, lease. Knows files, not their contents.

::

    <data>/generations/0007/    passages.lance/  lexical/  library.sqlite  graph.sqlite  manifest.json  lease
    <data>/current              symbolic link to the generation being served

A published generation never changes. The next one is built in ``generations/building`` from hard links of the Lance and
Tantivy files (immutable once written) and copies of the SQLite files (written in place; ``graph.sqlite`` is linked, and
copied before its first change). ``publish`` hashes new files, writes the manifest, syncs every new file and folder
(neither engine does), runs the gate (``guarded``), renames the folder and swaps the link. After a crash before the swap
the old generation is served, after it the new one.

A reader holds a shared lock on ``lease``, so that pruning removes nothing it reads. Other modules reach a generation's
folder only by ``with lease(data) as generation`` (``tests/lint.py``), unless they hold the writer lock.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, TypeVar

from localmed.domain import Message, digest, message
from localmed.domain.errors import Busy, Damaged, LibraryError, NoLibrary, UnknownName
from localmed.library import intact, layout
from localmed.library.intact import FileEntry, sha256_of
from localmed.library.journal import now
from localmed.messages import to_text
from localmed.process import files, hooks

FORMAT = 5  # withdrawals and access are in site.sqlite, where an older localmed does not look
DIGESTS = 4  # first format whose stored records have digests
MANIFEST = "manifest.json"
LEASE = "lease"
GOING = ".going"  # suffix of a generation that is being removed
COPIED = (".sqlite",)  # SQLite writes in place: a hard link would change the published file
COPIED_LATER = ("graph.sqlite",)  # gigabytes that few builds change: linked, copied by ``unshare`` before a change
LOOKED_AT = 0.5  # seconds; ``localmed doctor`` holds the lock for a moment to test it
WAITING = 0.2  # seconds between two attempts to take the writer lock
LEFT_OUT = (MANIFEST, LEASE, intact.FILE)
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a generation. ``encoder`` is the slug of the encoder that made its vectors.

    ``reason`` is the change that made it, for ``messages.from_text``; older manifests have English text. ``journal`` is
    the number and digest of the journal's newest row at the build. ``ledger``, ``access`` and ``audit`` are the same
    for the files that the journal replaced.
    """

    number: int
    created: str
    reason: str
    encoder: str
    parent: int
    documents: int
    passages: int
    files: dict[str, FileEntry] = field(default_factory=dict)
    format: int = FORMAT
    ledger: str = ""
    audit: str = ""
    access: str = ""
    journal: str = ""

    def to_json(self) -> str:
        """Return the manifest as JSON with its own digest, which reveals a flipped bit."""
        later = {"ledger", "audit", "access", "journal"}  # absent from older manifests
        values = {name: value for name, value in asdict(self).items() if value or name not in later}
        body = json.dumps(values, sort_keys=True, indent=1)
        return json.dumps({"digest": digest(body), "manifest": json.loads(body)}, sort_keys=True, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Read the output of ``to_json``; raise ``ValueError`` if it was altered."""
        outer = json.loads(text)
        if digest(json.dumps(outer["manifest"], sort_keys=True, indent=1)) != outer["digest"]:
            raise ValueError("the digest does not match")
        values = dict(outer["manifest"])
        values["files"] = {name: FileEntry(**entry) for name, entry in values["files"].items()}
        manifest = cls(**values)
        if manifest.to_json() != text:
            raise ValueError("it is not as it was written")
        return manifest


def folder(data: Path) -> Path:
    """Return the folder of all generations."""
    return data / layout.GENERATIONS


def numbers(data: Path) -> list[int]:
    """Return the numbers of the published generations, oldest first."""
    root = folder(data)
    return sorted(int(path.name) for path in root.iterdir() if path.name.isdigit()) if root.exists() else []


def path_of(data: Path, number: int) -> Path:
    """Return the folder of generation ``number``; raise ``UnknownName`` if it does not exist."""
    path = folder(data) / f"{number:04d}"
    if not path.is_dir():
        raise UnknownName("generation.unknown", number=number)
    return path


def current(data: Path) -> Path:
    """Return the folder being served; raise ``NoLibrary`` if nothing has been imported.

    Raise ``Damaged`` if generations exist without the link, or if documents were withdrawn but no generation exists: a
    new build would replace a lost library.
    """
    try:
        return data / (data / layout.CURRENT).readlink()
    except OSError:
        if numbers(data) and not _first_unfinished(data):
            raise Damaged("generation.no_current", data=str(data)) from None
        if not numbers(data) and _withdrawals(data):
            raise Damaged("generation.all_lost", data=str(data)) from None
        raise NoLibrary("library.none", data=str(data)) from None


def _withdrawals(data: Path) -> bool:
    with suppress(OSError, ValueError, LookupError, TypeError):
        return bool(json.loads(files.own_bytes(data / layout.IN_FORCE))["in_force"]["facts"]["withdrawals"])
    return False


def _first_unfinished(data: Path) -> bool:
    """Whether the first import was interrupted between naming its generation and serving it."""
    fresh = data / layout.CURRENT_NEW
    return numbers(data) == [1] and fresh.is_symlink() and fresh.exists()


def read_manifest(generation: Path) -> Manifest:
    """Read the manifest of ``generation``; raise ``Damaged`` if it is missing, altered or of a newer format."""
    try:
        manifest = _parsed(files.own_bytes(generation / MANIFEST).decode())
    except (OSError, ValueError, KeyError, TypeError):
        raise Damaged("generation.incomplete", name=generation.name) from None
    if manifest.format > FORMAT:
        raise Damaged("generation.newer", name=generation.name)
    return manifest


@lru_cache(maxsize=16)  # keyed by the whole text; a refresh reads each manifest some ten times
def _parsed(text: str) -> Manifest:
    return Manifest.from_json(text)


def _read_served(data: Path, read: Callable[[Path], _Read]) -> _Read:
    """Return ``read(folder)`` for the generation being served; retry if that was replaced and pruned."""
    while True:
        generation = current(data)
        try:
            return read(generation)
        except (OSError, Damaged):
            if current(data) == generation:
                raise


def served_number(data: Path) -> int:
    """Return the number of the generation being served; raise as ``current`` does."""
    name = current(data).name
    if not name.isdigit():
        raise Damaged("generation.no_current", data=str(data))
    return int(name)


def served_manifest(data: Path) -> Manifest:
    """Return the manifest of the generation being served; raise as ``current`` and ``read_manifest`` do."""
    return _read_served(data, read_manifest)


def manifest_of(data: Path, number: int) -> Manifest:
    """Return the manifest of generation ``number``; raise ``UnknownName`` if it was pruned, else like
    ``read_manifest``.
    """
    path = path_of(data, number)
    try:
        return read_manifest(path)
    except Damaged:
        path_of(data, number)
        raise


def encoder(data: Path) -> str:
    """Return the slug of the served generation's encoder, "" if it cannot be read."""

    def read(generation: Path) -> str:
        manifest = (generation / MANIFEST).stat()
        return _encoder_of(generation, manifest.st_ino, manifest.st_mtime_ns)

    with suppress(LibraryError, OSError):
        return _read_served(data, read)
    return ""


@lru_cache(maxsize=64)  # a question asks thirty times, and a manifest takes 3 ms to read
def _encoder_of(generation: Path, _file: int, _changed: int) -> str:
    return read_manifest(generation).encoder


def check(generation: Path, whole: bool) -> list[Message]:
    """Return the faults of the files of ``generation`` (see ``intact.find_faults``)."""
    manifest = read_manifest(generation)
    return intact.find_faults(generation, manifest.files, manifest.format >= DIGESTS, whole)


def find_faults_in_full(data: Path, number: int) -> list[Message]:
    """Return the faults of generation ``number``, every byte read, also without its lease (``localmed repair``)."""
    try:
        return check(folder(data) / f"{number:04d}", whole=True)
    except Damaged as error:
        return [error.messages[0]]


def unlisted(generation: Path) -> list[Path]:
    """Return the files of ``generation`` that its manifest does not list."""
    known = read_manifest(generation).files
    return [path for path in _files(generation) if str(path.relative_to(generation)) not in known]


# --- locks ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a change waits for another one to end; ``told`` is called once with the holder when the wait begins."""

    seconds: float = LOOKED_AT
    told: Callable[[str], object] = lambda _: None


AT_ONCE = Patience()


def lock_writer(data: Path, patience: Patience = AT_ONCE) -> IO[str]:
    """Take the writer lock, held until the file is closed or the process ends.

    Raise ``Busy`` if somebody else, another thread included, holds it for longer than ``patience`` allows.
    """
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    stream = (data / layout.WRITER_LOCK).open("a+")
    try:
        _lock_patiently(stream, data, patience)
    except BaseException:
        stream.close()
        raise
    stream.seek(0)
    stream.truncate()
    stream.write(f"process {os.getpid()}")
    stream.flush()
    return stream


def _lock_patiently(stream: IO[str], data: Path, patience: Patience) -> None:
    began, told = time.monotonic(), False
    while not files.lock(stream):
        waited = time.monotonic() - began
        stream.seek(0)
        holder = stream.read().strip() or "unknown"
        if waited >= patience.seconds:
            raise Busy("library.busy", holder=holder, data=str(data))
        if waited >= LOOKED_AT and not told:
            told = True
            patience.told(holder)
        hooks.check()
        time.sleep(WAITING if told else 0.01)


@contextmanager
def lease(data: Path, number: int | None = None) -> Iterator[Path]:
    """Keep the generation being served, or ``number``, from being removed within the block; yield its folder.

    Raise ``NoLibrary`` or ``UnknownName`` if there is none, ``Damaged`` if its lease file is lost.
    """
    named = partial(current, data) if number is None else partial(path_of, data, number)
    for _ in range(10):  # each needs a whole import to finish meanwhile
        generation = named()
        if stream := take_lease(generation):
            with stream:
                yield generation
            return
        if named() == generation:  # else another one is served by now
            raise Damaged("generation.incomplete", name=generation.name)
    raise Busy("generation.replaced")


def take_lease(generation: Path) -> IO[bytes] | None:
    """Lease the generation in this folder until the file is closed; ``None`` if it has no lease file or was removed."""
    try:
        stream = files.open_own(generation / LEASE)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):  # the process cannot open any file
            raise
        return None
    files.lock(stream, shared=True, wait=True)
    if os.fstat(stream.fileno()).st_nlink:  # else it was pruned between the two lines above
        return stream
    stream.close()
    return None


def make_lease(data: Path, number: int) -> None:
    """Create the lease file that an interrupted prune has removed; the caller holds the writer lock."""
    (path_of(data, number) / LEASE).touch()


def has_lease(data: Path, number: int) -> bool:
    """Whether generation ``number`` has a lease file. Without one it is not served."""
    return (folder(data) / f"{number:04d}" / LEASE).is_file()


def in_use(data: Path) -> bool:
    """Whether any generation is leased, also by this process; the caller holds the writer lock."""
    for number in numbers(data):
        with suppress(OSError), files.open_own(path_of(data, number) / LEASE) as stream:
            if not files.lock(stream):
                return True
    return False


# --- building ------------------------------------------------------------------------------------------------------


def start_build(data: Path) -> tuple[Path, int]:
    """Create ``generations/building`` as a clone of the current generation (or empty); return it and its parent's
    number.

    The caller holds the writer lock. Remains of an interrupted build are removed.
    """
    building = abandon_build(data)
    building.mkdir(parents=True, mode=0o700)
    if not (data / layout.CURRENT).is_symlink() and _first_unfinished(data):
        switch(data, 1)
    try:
        parent = current(data)
    except NoLibrary:
        return building, 0
    problems = check(parent, whole=False)
    if problems:
        raise Damaged("generation.damaged", name=parent.name, problem=problems[0])
    clone(parent, building)
    return building, int(parent.name)


def abandon_build(data: Path) -> Path:
    """Remove ``generations/building`` and return its path; the caller holds the writer lock."""
    building = folder(data) / "building"
    shutil.rmtree(building, ignore_errors=True)
    return building


def clone(source: Path, target: Path) -> None:
    """Hard-link every listed file of ``source``; copy its SQLite files except ``COPIED_LATER``.

    Copies are verified: the next manifest hashes them anew and would record a flipped bit as correct.
    """
    for name in read_manifest(source).files:
        destination = target / name
        destination.parent.mkdir(parents=True, exist_ok=True)
        if destination.suffix not in COPIED or name in COPIED_LATER:
            os.link(source / name, destination)
        else:
            copy_checked(source, name, destination)


def unshare(source: Path, building: Path, name: str) -> None:
    """Replace a ``COPIED_LATER`` file in ``building`` by a copy if generation ``source`` shares it."""
    shared, fresh = building / name, building / f"{name}.new"
    if shared.exists() and shared.samefile(source / name):
        copy_checked(source, name, fresh)
        fresh.replace(shared)


def copy_checked(source: Path, name: str, destination: Path) -> None:
    """Copy a file of generation ``source``; raise ``Damaged`` if the copy is not what was published."""
    shutil.copyfile(source / name, destination)
    if sha256_of(destination) != read_manifest(source).files[name].sha256:
        raise Damaged("generation.damaged", name=source.name, problem=message("file.changed", file=name))


_GATE: ContextVar[Callable[[Path], object]] = ContextVar("gate", default=lambda _: None)


@contextmanager
def guarded(gate: Callable[[Path], object]) -> Iterator[None]:
    """Call ``gate`` with the folder of every generation that this thread is about to serve within the block.

    An error that it raises prevents serving the generation, newly built or rolled back to. Without a gate every
    generation passes: in tests of the library, and in ``localmed repair``, which starts without an intact generation.
    """
    token = _GATE.set(gate)
    try:
        yield
    finally:
        _GATE.reset(token)


def publish(
    data: Path, built: Path, parent: int, reason: Message, encoder: str, documents: int, passages: int, journal: str
) -> int:
    """Serve ``built``; return its number. The module docstring describes the order.

    ``journal`` is the number and digest of the journal's newest row.
    """
    number = max([parent, *numbers(data)]) + 1
    (built / LEASE).touch()
    entries = _hash_files(built, path_of(data, parent) if parent else None)
    manifest = Manifest(number, now(), to_text(reason), encoder, parent, documents, passages, entries, journal=journal)
    (built / MANIFEST).write_text(manifest.to_json(), "utf-8")
    for path in [built, *sorted(built.rglob("*"))]:
        if path.is_dir() or path.stat().st_nlink == 1:  # a published generation shares files with more links
            files.sync(path)
    _GATE.get()(built)
    hooks.check()  # the last chance to cancel
    target = folder(data) / f"{number:04d}"
    _make_link(data, number)  # before the rename: a generation without a link counts as damage
    built.rename(target)
    files.sync(target.parent)
    switch(data, number)
    return number


def _make_link(data: Path, number: int) -> Path:
    fresh = data / layout.CURRENT_NEW
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(f"{layout.GENERATIONS}/{number:04d}")
    return fresh


def switch(data: Path, number: int) -> None:
    """Point ``current`` at generation ``number`` atomically and durably."""
    path_of(data, number)
    _make_link(data, number).replace(data / layout.CURRENT)
    files.sync(data)
    rows: list[Swap] = []
    with suppress(Damaged):  # the history starts again; it only decides about pruning
        rows = swaps(data)
    _write_swaps(data, [*rows, Swap(number, now())][-MOST_SWAPS:])


def rollback(data: Path, number: int | None) -> int:
    """Serve generation ``number``, by default ``rollback_target``; raise ``Damaged`` if its files are damaged."""
    chosen = rollback_target(data) if number is None else number
    path = path_of(data, chosen)
    problems = check(path, whole=True)
    if problems:
        raise Damaged("generation.chosen_damaged", name=chosen, problem=problems[0])
    make_lease(data, chosen)
    _GATE.get()(path)
    hooks.check()  # as in ``publish``
    switch(data, chosen)
    return chosen


def rollback_target(data: Path) -> int:
    """Return the generation that a rollback serves: the parent of the current one, else the newest earlier one.

    After a rollback and an import, the newest earlier one would be the one that was rolled back.
    """
    path = current(data)
    with suppress(Damaged):
        parent = read_manifest(path).parent
        if parent in numbers(data):
            return parent
    earlier = [number for number in numbers(data) if number < int(path.name)]
    if not earlier:
        raise UnknownName("generation.first", number=int(path.name))
    return earlier[-1]


def _files(root: Path) -> list[Path]:
    paths = [path for path in root.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return sorted(path for path in paths if str(path.relative_to(root)) not in LEFT_OUT)


def _hash_files(building: Path, parent: Path | None) -> dict[str, FileEntry]:
    """Hash all files. A file that the parent shares (same inode) keeps the recorded hash.

    The engines read the parent's files without checking them. Parent files that they rewrote or dropped are verified
    here.
    """
    known, noted = read_manifest(parent).files if parent else {}, {}
    looks = intact.read_looks(parent) if parent else {}
    entries: dict[str, FileEntry] = {}
    for path in _files(building):
        name = str(path.relative_to(building))
        entry, shared = known.get(name), parent is not None and name in known and path.samefile(parent / name)
        look = looks.get(name, ())
        if entry is None or not shared or not intact.is_untouched(path, looks, name):
            sha256, look = intact.hash_file(path)
            fresh = FileEntry(look[1], sha256)
            if parent and shared and fresh != entry:
                raise Damaged("generation.damaged", name=parent.name, problem=message("file.changed", file=name))
            entry = fresh
        entries[name] = entry
        noted[name] = look
    intact.write_looks(building, noted)
    for name in sorted(known.keys() - entries.keys()):
        if parent and sha256_of(parent / name) != known[name].sha256:
            raise Damaged("generation.damaged", name=parent.name, problem=message("file.changed", file=name))
    return entries


# --- history of served generations ---------------------------------------------------------------------------------


SERVED = "served.json"  # in the folder of the generations: the swaps, newest last
SETTLED = timedelta(days=1)
MOST_SWAPS = 200  # recorded


@dataclass(frozen=True, slots=True)
class Swap:
    """Generation ``number`` was served from ``since`` on; ``confirmed`` if somebody has approved it."""

    number: int
    since: str
    confirmed: bool = False


def swaps(data: Path) -> list[Swap]:
    """Return the swaps, oldest first; raise ``Damaged`` if the file cannot be read."""
    file = folder(data) / SERVED
    try:
        rows = [Swap(**row) for row in json.loads(files.own_bytes(file))]
        for row in rows:
            datetime.fromisoformat(row.since)
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError):
        raise Damaged("generation.served_unreadable", file=str(file)) from None
    return rows


def confirm(data: Path, number: int) -> None:
    """Mark generation ``number``, which is served, as approved: it counts as settled."""
    rows = swaps(data)
    last = next((row for row in reversed(rows) if row.number == number), Swap(number, now()))
    _write_swaps(data, [*(row for row in rows if row != last), replace(last, confirmed=True)])


def settled_number(data: Path) -> int:
    """Return the newest generation before the served one that was served for a day or confirmed; 0 if there is none.

    Pruning keeps it, so that a series of small faulty changes cannot push out the last good state. Once the served
    generation is settled itself, the result is 0.
    """
    rows, until = swaps(data), datetime.now(UTC)
    for place, row in enumerate(reversed(rows)):
        since = datetime.fromisoformat(row.since)
        if row.confirmed or until - since >= SETTLED:
            return row.number if place else 0
        until = since
    return 0


def _write_swaps(data: Path, rows: list[Swap]) -> None:
    files.replace(folder(data) / SERVED, json.dumps([asdict(row) for row in rows]).encode())
