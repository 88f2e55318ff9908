"""``files/<sha256>``: the imported files, by content, shared by all generations.

An original is needed by a kept generation or by a kept answer that cites it; ``prune`` removes the others.
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
KEPT = layout.KEPT  # kept answers as JSON; they outlive their generation
MOST_HASHED = 10_000  # entries of ``_HASHED``
_HASHED: dict[Path, tuple[int, ...]] = {}  # stamps from before the hash
_SHA256 = re.compile(r"\b[0-9a-f]{64}\b")


def whole(data: Path, sha256: str) -> Path:
    """Return the path of an original to be shown; raise ``Damaged`` if it is not the file that was imported.

    A file is hashed once while its stamp is unchanged: each page of a scanned book asks for it.
    """
    path = path_of(data, sha256)
    stamp = stamp_of(path)  # a write within its clock's step is seen by the next whole check
    if _HASHED.get(path) != stamp:
        if sha256_of(path) != sha256:
            raise OriginalChanged("library.original_changed", file=str(path))
        if len(_HASHED) >= MOST_HASHED:
            _HASHED.clear()
        _HASHED[path] = stamp
    return path


def path_of(data: Path, sha256: str) -> Path:
    """Return the path of the original with this hash; raise ``LibraryError`` if it is missing, or for a malformed hash.

    The hash may come from a kept answer, which anybody may have written; it must not lead out of the folder.
    """
    if not _SHA256.fullmatch(sha256):
        raise LibraryError("library.no_hash")
    path = data / layout.FILES / sha256
    if not path.is_file():
        raise LibraryError("library.original_missing", sha256=sha256[:12], folder=str(path.parent))
    return path


class Keep(Protocol):
    """Copies a file of at most ``most`` bytes to the originals and returns its sha256."""

    def __call__(self, source: Path, most: int, opened: Opener = ...) -> str: ...  # noqa: D102


def keep(data: Path, source: Path, most: int, opened: Opener = open_regular) -> str:
    """Copy ``source`` (opened by ``opened``) to the originals and return its sha256. Readers parse this copy.

    ``sync`` makes copies durable before a generation that names them is published. Raise ``InputError`` if the source
    cannot be read, ``LimitExceeded`` above ``most`` bytes.
    """
    folder = data / layout.FILES
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = folder / f"{os.getpid()}{PARTIAL}"
    try:
        sha256 = _copy(source, opened, partial, most)
        target = folder / sha256
        if sha256_of(target) != sha256:  # missing, or cut short by a power cut
            partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return sha256


def sweep(data: Path) -> None:
    """Remove partial copies of a killed import; the caller holds the writer lock."""
    for partial in (data / layout.FILES).glob(f"*{PARTIAL}"):
        partial.unlink(missing_ok=True)


def scans_of(data: Path, sha256: str) -> Path:
    """Return the folder of the OCR results of an original."""
    return data / layout.SCANS / sha256


def prune(data: Path) -> tuple[int, int]:
    """Remove originals that no kept generation and no kept answer needs; return their number and bytes.

    The caller holds the writer lock. Raise ``Damaged``, with nothing removed, if a catalogue was altered.
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
    """Sync the originals with these hashes, and their folder."""
    folder = data / layout.FILES
    chosen = [folder / sha256 for sha256 in hashes]
    if not chosen:
        return
    for path in (*chosen, folder):
        files.sync(path)


def _needed(generation: Path) -> set[str]:
    """Return the originals of ``generation``; raise ``Damaged`` for an altered catalogue, which could cost one."""
    recorded = generations.read_manifest(generation).files[FILE]
    if sha256_of(generation / FILE) != recorded.sha256:
        raise Damaged("generation.file_changed", file=FILE, name=generation.name)
    return originals_of(generation)


def _cited(folder: Path) -> set[str]:
    """Return every hash in the kept answers; raise ``Damaged`` if an answer cannot be read."""
    try:
        texts = [files.own_bytes(file).decode() for file in sorted(folder.glob("*"))]
    except (OSError, UnicodeDecodeError):
        raise Damaged("library.folder_file", folder=str(folder)) from None
    return {sha256 for text in texts for sha256 in _SHA256.findall(text)}


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
    """Yield the bytes of ``source``; its errors become ``InputError``. A file that changes meanwhile is refused."""
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
