"""``files/<sha256>``: the imported files themselves, by content, shared by all generations.

Two things need an original, and ``prune`` knows both: a kept generation, and a kept answer that names it as its source.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from localmed.domain.errors import Damaged, InputError, LibraryError, LimitExceeded, OriginalChanged, reason
from localmed.library import generations, layout
from localmed.library.catalogue import FILE, originals_of
from localmed.library.intact import sha256_of
from localmed.library.state import stamp_of
from localmed.process import files
from localmed.process.files import Opener, open_regular

COPY_BYTES = 1 << 20
PARTIAL = ".part"
KEPT = layout.KEPT  # answers that somebody kept, as JSON; they outlive the generation they were made from

MOST_HASHED = 10_000  # files of which it is remembered that they are whole

_HASHED: dict[Path, tuple[int, ...]] = {}  # as it was before the file was hashed
_SHA256 = re.compile(r"\b[0-9a-f]{64}\b")


def whole(data: Path, sha256: str) -> Path:
    """As ``path_of``, for what is shown to somebody: raise ``Damaged`` if the file is not the one that was imported.

    A file is hashed once for as long as it lies there as it did: each page of a scanned book asks for it.
    """
    path = path_of(data, sha256)
    stamp = stamp_of(path)  # a write within its clock's step is seen by the next whole check
    if _HASHED.get(path) != stamp:
        if not _holds(path, sha256):
            raise OriginalChanged("library.original_changed", file=str(path))
        if len(_HASHED) >= MOST_HASHED:
            _HASHED.clear()
        _HASHED[path] = stamp
    return path


def path_of(data: Path, sha256: str) -> Path:
    """Where the original with this hash lies; raise ``LibraryError`` if it is gone, or for what is no hash.

    A kept answer names it, and anybody may have written that: it must not lead out of the folder.
    """
    if not _SHA256.fullmatch(sha256):
        raise LibraryError("library.no_hash")
    path = data / layout.FILES / sha256
    if not path.is_file():
        raise LibraryError("library.original_missing", sha256=sha256[:12], folder=str(path.parent))
    return path


class Keep(Protocol):
    """Copies a file of at most ``most`` bytes to its place among the originals and returns its sha256."""

    def __call__(self, source: Path, most: int, opened: Opener = ...) -> str: ...  # noqa: D102


def keep(data: Path, source: Path, most: int, opened: Opener = open_regular) -> str:
    """Copy ``source`` to its place and return its sha256: what is parsed later is this copy, whatever becomes of the
    source meanwhile. ``sync`` makes the copies durable before a generation that names them is published.

    ``opened`` opens it. Raise ``InputError`` if the source cannot be read and ``LimitExceeded`` if it has more than
    ``most`` bytes.
    """
    folder = data / layout.FILES
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = folder / f"{os.getpid()}{PARTIAL}"
    try:
        sha256 = _copy(source, opened, partial, most)
        target = folder / sha256
        if not _holds(target, sha256):
            partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return sha256


def sweep(data: Path) -> None:
    """Remove half-made copies that a killed import left; the caller holds the writer lock."""
    for partial in (data / layout.FILES).glob(f"*{PARTIAL}"):
        partial.unlink(missing_ok=True)


def scans_of(data: Path, sha256: str) -> Path:
    """The folder of what OCR read of an original, which an import need then not read again."""
    return data / layout.SCANS / sha256


def prune(data: Path) -> tuple[int, int]:
    """Remove the originals that no kept generation was made from and no kept answer cites; return how many, and bytes.

    The caller holds the writer lock. Raise ``Damaged``, with nothing removed, if a catalogue is not as published.
    """
    needed = _cited(data / KEPT)
    for number in generations.numbers(data):
        with generations.lease(data, number) as generation:
            needed |= _needed(generation)
    unneeded = [path for path in (data / layout.FILES).glob("*") if path.name not in needed]
    size = sum(path.stat().st_size for path in unneeded)
    for path in unneeded:
        path.unlink()
        shutil.rmtree(scans_of(data, path.name), ignore_errors=True)
    return len(unneeded), size


def sync(data: Path, hashes: Iterable[str]) -> None:
    """Force the originals with these hashes, and their folder, to disk."""
    folder = data / layout.FILES
    chosen = [folder / sha256 for sha256 in hashes]
    if not chosen:
        return
    for path in (*chosen, folder):
        files.sync(path)


def _needed(generation: Path) -> set[str]:
    """The originals of ``generation``; a flipped bit in its catalogue would cost one."""
    recorded = generations.read_manifest(generation).files[FILE]
    if sha256_of(generation / FILE) != recorded.sha256:
        raise Damaged("generation.file_changed", file=FILE, name=generation.name)
    return originals_of(generation)


def _cited(folder: Path) -> set[str]:
    """Every hash in the kept answers; one that cannot be read holds all of them back."""
    try:
        texts = [files.own_bytes(file).decode() for file in sorted(folder.glob("*"))]
    except (OSError, UnicodeDecodeError):
        raise Damaged("library.folder_file", folder=str(folder)) from None
    return {sha256 for text in texts for sha256 in _SHA256.findall(text)}


def _holds(path: Path, sha256: str) -> bool:
    """Whether ``path`` is the whole file: a power cut may have left it empty or short, and the copy at hand is good."""
    return sha256_of(path) == sha256


def _copy(source: Path, opened: Opener, target: Path, most: int) -> str:
    hasher = hashlib.sha256()
    size = 0
    with target.open("wb") as writing:
        for piece in _pieces(source, opened):
            size += len(piece)
            if size > most:
                raise LimitExceeded("import.file_bytes", name=source.name, most=most)
            hasher.update(piece)
            writing.write(piece)
    return hasher.hexdigest()


def _pieces(source: Path, opened: Opener = open_regular) -> Iterator[bytes]:
    """The bytes of ``source``; its errors are the file's, those of writing are the library's.

    A file that is written meanwhile is refused: half of one version and half of the next is neither.
    """
    try:
        with opened(source) as reading:
            before = os.fstat(reading.fileno())
            while piece := reading.read(COPY_BYTES):
                yield piece
            after = os.fstat(reading.fileno())
    except OSError as error:
        raise InputError("file.unreadable", file=source.name, reason=reason(error)) from None
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise InputError("library.source_changed", name=source.name)
