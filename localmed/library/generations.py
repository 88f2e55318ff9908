"""Generations on disk: clone, manifest, verify, swap, lease, prune. Knows files, not what is in them.

::

    <data>/generations/0007/    passages.lance/  lexical/  library.sqlite  graph.sqlite  manifest.json  lease
    <data>/current              symbolic link to the generation being served

Rules: a generation never changes once published. The next one is built in ``generations/building`` from hard links of
the Lance and Tantivy files (immutable once written), copies of the SQLite files (they are not; the concept graph is
copied only before it is changed), and no lock files. It is published by: hash what is new, write and sync the
manifest, sync every new file and folder (neither engine does), let the gate look (``guarded``), rename, swap the
link. A crash before the swap leaves the old generation, after it the new one. A reader holds a shared lock on
``lease``, so that pruning never pulls a file from under it: ``with lease(data) as generation`` is how everybody else
comes to a generation's folder (``tests/lint.py``); whoever holds the writer lock needs none.
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

FORMAT = 5  # since then withdrawals and access are in site.sqlite: an older localmed would not find them
DIGESTS = 4  # the format from which on what is stored has digests, which an older localmed would not check
MANIFEST = "manifest.json"
LEASE = "lease"
GOING = ".going"  # ends the name of a generation that is being removed
COPIED = (".sqlite",)  # SQLite writes in place: a hard link would change the published file
COPIED_LATER = ("graph.sqlite",)  # gigabytes that few builds change: linked, and copied by ``unshare`` before a change
LOOKED_AT = 0.5  # seconds; ``localmed doctor`` holds the lock for a moment to see whether anybody else does
WAITING = 0.2  # seconds between two looks whether another change has ended
LEFT_OUT = (MANIFEST, LEASE, intact.FILE)
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a generation holds. ``encoder`` is the slug of the one encoder whose vectors it contains.

    ``reason`` is the change that made it, for ``messages.from_text``; in a manifest of before its words in English.
    ``journal`` is the number and digest of the journal's newest row when it was built; ``ledger``, ``access`` and
    ``audit`` said the same of the files of before.
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
        """The manifest as JSON with a digest of itself, so that a flipped bit in it shows too."""
        later = {"ledger", "audit", "access", "journal"}  # absent from manifests of before
        values = {name: value for name, value in asdict(self).items() if value or name not in later}
        body = json.dumps(values, sort_keys=True, indent=1)
        return json.dumps({"digest": digest(body), "manifest": json.loads(body)}, sort_keys=True, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Read ``to_json``'s output; raise ``ValueError`` if it was altered."""
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
    """Where the generations of ``data`` lie."""
    return data / layout.GENERATIONS


def numbers(data: Path) -> list[int]:
    """The published generations, oldest first."""
    root = folder(data)
    return sorted(int(path.name) for path in root.iterdir() if path.name.isdigit()) if root.exists() else []


def path_of(data: Path, number: int) -> Path:
    """The folder of generation ``number``; raise ``UnknownName`` if there is none."""
    path = folder(data) / f"{number:04d}"
    if not path.is_dir():
        raise UnknownName("generation.unknown", number=number)
    return path


def current(data: Path) -> Path:
    """The folder being served; raise ``NoLibrary`` if nothing has been imported.

    Raise ``Damaged`` if the link is lost beside generations, or all of these though there was a library: what is built
    then would stand in the place of what was lost.
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
    """Whether a document was ever withdrawn here, as the copy of what is in force says."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        return bool(json.loads(files.own_bytes(data / layout.IN_FORCE))["in_force"]["facts"]["withdrawals"])
    return False


def _first_unfinished(data: Path) -> bool:
    """Whether the very first import was cut off between naming its generation and serving it."""
    fresh = data / layout.CURRENT_NEW
    return numbers(data) == [1] and fresh.is_symlink() and fresh.exists()


def read_manifest(generation: Path) -> Manifest:
    """The manifest of ``generation``; raise ``Damaged`` if it is missing, altered or of a newer format."""
    try:
        manifest = _parsed(files.own_bytes(generation / MANIFEST).decode())
    except (OSError, ValueError, KeyError, TypeError):
        raise Damaged("generation.incomplete", name=generation.name) from None
    if manifest.format > FORMAT:
        raise Damaged("generation.newer", name=generation.name)
    return manifest


@lru_cache(maxsize=16)  # by every character: a refresh reads each some ten times, which takes 10 ms
def _parsed(text: str) -> Manifest:
    return Manifest.from_json(text)


def _of_served(data: Path, read: Callable[[Path], _Read]) -> _Read:
    """What ``read`` makes of the folder being served; again where another is served by now and that one was pruned."""
    while True:
        generation = current(data)
        try:
            return read(generation)
        except (OSError, Damaged):
            if current(data) == generation:
                raise


def served_number(data: Path) -> int:
    """The number of the generation being served; raise as ``current`` does."""
    name = current(data).name
    if not name.isdigit():
        raise Damaged("generation.no_current", data=str(data))
    return int(name)


def served_manifest(data: Path) -> Manifest:
    """The manifest of the generation being served; raise as ``current`` and ``read_manifest`` do."""
    return _of_served(data, read_manifest)


def manifest_of(data: Path, number: int) -> Manifest:
    """The manifest of generation ``number``; raise ``UnknownName`` where it was pruned, as ``read_manifest`` else."""
    path = path_of(data, number)
    try:
        return read_manifest(path)
    except Damaged:
        path_of(data, number)
        raise


def encoder(data: Path) -> str:
    """The slug of the encoder that the generation being served is of; "" where there is none that can be read."""

    def read(generation: Path) -> str:
        manifest = (generation / MANIFEST).stat()
        return _encoder_of(generation, manifest.st_ino, manifest.st_mtime_ns)

    with suppress(LibraryError, OSError):
        return _of_served(data, read)
    return ""


@lru_cache(maxsize=64)  # a question asks thirty times, and a manifest takes 3 ms to read
def _encoder_of(generation: Path, _file: int, _changed: int) -> str:
    return read_manifest(generation).encoder


def check(generation: Path, whole: bool) -> list[Message]:
    """What is wrong with the files of ``generation`` (see ``intact.faults``)."""
    manifest = read_manifest(generation)
    return intact.faults(generation, manifest.files, manifest.format >= DIGESTS, whole)


def whole(data: Path, number: int) -> list[Message]:
    """What is wrong with generation ``number``, every byte read; where its lease is lost it can be made anew.

    For whoever chooses what to serve next (``localmed repair``).
    """
    try:
        return check(folder(data) / f"{number:04d}", whole=True)
    except Damaged as error:
        return [error.messages[0]]


def unlisted(generation: Path) -> list[Path]:
    """The files of ``generation`` that are not in its manifest: nobody of ours has written them."""
    known = read_manifest(generation).files
    return [path for path in _files(generation) if str(path.relative_to(generation)) not in known]


# --- locks ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a change waits for another one to end; ``told`` hears once, and from whom, that it does."""

    seconds: float = LOOKED_AT
    told: Callable[[str], object] = lambda _: None


AT_ONCE = Patience()


def lock_writer(data: Path, patience: Patience = AT_ONCE) -> IO[str]:
    """Take the one writer lock (held until the file is closed or the process ends).

    Raise ``Busy`` if somebody else has it for longer than ``patience`` says.
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
    """The folder of the generation being served, or of ``number``: nothing of it is removed within the block.

    Raise ``NoLibrary`` or ``UnknownName`` where there is none, ``Damaged`` where it has lost its lease.
    """
    named = partial(current, data) if number is None else partial(path_of, data, number)
    for _ in range(10):  # each needs a whole import to finish meanwhile
        generation = named()
        if stream := hold(generation):
            with stream:
                yield generation
            return
        if named() == generation:  # else another is served, or it raises for one that was removed meanwhile
            raise Damaged("generation.incomplete", name=generation.name)
    raise Busy("generation.replaced")


def hold(generation: Path) -> IO[bytes] | None:
    """A lease on the generation in this folder, until the file is closed; None where it has none, or is removed."""
    try:
        stream = files.open_own(generation / LEASE)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):  # no file can be opened at all, which says nothing of this one
            raise
        return None
    files.lock(stream, shared=True, wait=True)
    if os.fstat(stream.fileno()).st_nlink:  # else it was pruned between the two lines above
        return stream
    stream.close()
    return None


def make_lease(data: Path, number: int) -> None:
    """Make the lease that a prune which was killed has begun with; the caller holds the writer lock."""
    (path_of(data, number) / LEASE).touch()


def leased(data: Path, number: int) -> bool:
    """Whether there is a lease of generation ``number``: without one nothing is answered from it."""
    return (folder(data) / f"{number:04d}" / LEASE).is_file()


def in_use(data: Path) -> bool:
    """Whether somebody reads any generation; the caller holds the writer lock."""
    for number in numbers(data):
        with suppress(OSError), files.open_own(path_of(data, number) / LEASE) as stream:
            if not files.lock(stream):
                return True
    return False


# --- building ------------------------------------------------------------------------------------------------------


def start_build(data: Path) -> tuple[Path, int]:
    """Make ``generations/building`` as a clone of the current generation (or empty); return it and its parent's number.

    The caller holds the writer lock. What an interrupted build left behind is removed.
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
    """Hard links of everything in the manifest of ``source``, copies of its SQLite files (but of ``COPIED_LATER``).

    The copies are checked: hashed again for the next manifest, a flipped bit would pass for what was meant.
    """
    for name in read_manifest(source).files:
        destination = target / name
        destination.parent.mkdir(parents=True, exist_ok=True)
        if destination.suffix not in COPIED or name in COPIED_LATER:
            os.link(source / name, destination)
        else:
            copy_checked(source, name, destination)


def unshare(source: Path, building: Path, name: str) -> None:
    """Give a file of ``COPIED_LATER`` in ``building`` bytes of its own, if it is the one of generation ``source``."""
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
    """Let ``gate`` look at the folder of what this thread is about to serve within the block.

    What it raises keeps a generation, built or gone back to, from being served. Without a gate everything passes: in
    tests of the library itself, and in ``localmed repair``, which begins where nothing whole is served.
    """
    token = _GATE.set(gate)
    try:
        yield
    finally:
        _GATE.reset(token)


def publish(
    data: Path, built: Path, parent: int, reason: Message, encoder: str, documents: int, passages: int, journal: str
) -> int:
    """Make ``built`` the generation being served; return its number. See the module's docstring for the order.

    ``journal`` is its newest row.
    """
    number = max([parent, *numbers(data)]) + 1
    (built / LEASE).touch()
    entries = _hash_files(built, path_of(data, parent) if parent else None)
    manifest = Manifest(number, now(), to_text(reason), encoder, parent, documents, passages, entries, journal=journal)
    (built / MANIFEST).write_text(manifest.to_json(), "utf-8")
    _sync_new(built)
    _GATE.get()(built)
    hooks.check()  # the last look: what comes now takes effect
    target = folder(data) / f"{number:04d}"
    _point(data, number)  # before there is such a generation: one without a link to it is damage
    built.rename(target)
    files.sync(target.parent)
    switch(data, number)
    return number


def _point(data: Path, number: int) -> Path:
    """A link to generation ``number`` beside ``current``, which it is to replace."""
    fresh = data / layout.CURRENT_NEW
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(f"{layout.GENERATIONS}/{number:04d}")
    return fresh


def switch(data: Path, number: int) -> None:
    """Point ``current`` at generation ``number``, in one step that survives a power cut."""
    path_of(data, number)
    _point(data, number).replace(data / layout.CURRENT)
    files.sync(data)
    _note_served(data, number)


def rollback(data: Path, number: int | None) -> int:
    """Serve generation ``number``, or the one that the current was built from; refuse one whose files are damaged."""
    chosen = before(data) if number is None else number
    path = path_of(data, chosen)
    problems = check(path, whole=True)
    if problems:
        raise Damaged("generation.chosen_damaged", name=chosen, problem=problems[0])
    make_lease(data, chosen)
    _GATE.get()(path)
    hooks.check()  # as in ``publish``
    switch(data, chosen)
    return chosen


def before(data: Path) -> int:
    """The generation that a rollback goes to: the parent of the current one, else the newest before it.

    After a rollback and an import the newest before it would be the one that was rolled back from.
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
    """Hashes of all files; a file that is the parent's own (same inode) keeps the hash recorded there.

    What the engines have rewritten they have read from the parent's files, unchecked: those are checked here.
    """
    known, noted = read_manifest(parent).files if parent else {}, {}
    looks = intact.remembered(parent) if parent else {}
    entries: dict[str, FileEntry] = {}
    for path in _files(building):
        name = str(path.relative_to(building))
        entry, shared = known.get(name), parent is not None and name in known and path.samefile(parent / name)
        look = looks.get(name, ())
        if entry is None or not shared or not intact.untouched(path, looks, name):
            sha256, look = intact.hashed(path)
            fresh = FileEntry(look[1], sha256)
            if parent and shared and fresh != entry:
                raise Damaged("generation.damaged", name=parent.name, problem=message("file.changed", file=name))
            entry = fresh
        entries[name] = entry
        noted[name] = look
    intact.remember(building, noted)
    for name in sorted(known.keys() - entries.keys()):
        if parent and sha256_of(parent / name) != known[name].sha256:
            raise Damaged("generation.damaged", name=parent.name, problem=message("file.changed", file=name))
    return entries


def _sync_new(root: Path) -> None:
    """Sync every folder, and every file that no published generation shares."""
    for path in [root, *sorted(root.rglob("*"))]:
        if path.is_dir() or path.stat().st_nlink == 1:
            files.sync(path)


# --- since when each was served ------------------------------------------------------------------------------------


SERVED = "served.json"  # in the folder of the generations: the swaps, newest last
SETTLED = timedelta(days=1)
MOST_SWAPS = 200  # remembered


@dataclass(frozen=True, slots=True)
class Swap:
    """From ``since`` on generation ``number`` was served; ``confirmed`` that somebody has found it good."""

    number: int
    since: str
    confirmed: bool = False


def swaps(data: Path) -> list[Swap]:
    """The swaps, oldest first; raise ``Damaged`` where the file cannot be read."""
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


def _note_served(data: Path, number: int) -> None:
    try:
        rows = swaps(data)
    except Damaged:  # nothing was pruned by it; it begins anew
        rows = []
    _write_swaps(data, [*rows, Swap(number, now())][-MOST_SWAPS:])


def confirm(data: Path, number: int) -> None:
    """Somebody has found generation ``number``, which is served, good: it counts as settled."""
    rows = swaps(data)
    last = next((row for row in reversed(rows) if row.number == number), Swap(number, now()))
    _write_swaps(data, [*(row for row in rows if row != last), replace(last, confirmed=True)])


def settled(data: Path) -> int:
    """The newest generation before the served one that had served a day or was confirmed; 0 if there is none.

    It is kept until a later change has: a series of small changes, each with a mistake in it, must not push the last
    good state out of the few that are kept by number. Once the served one has, nothing before it is needed: 0.
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
