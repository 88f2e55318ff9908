"""``files/<sha256>``: the imported files themselves, by content, shared by all generations."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from localmed.errors import LibraryError

COPY_BYTES = 1 << 20


def path_of(data: Path, sha256: str) -> Path:
    """Where the original with this hash lies; raise ``LibraryError`` if it is gone."""
    path = data / "files" / sha256
    if not path.is_file():
        raise LibraryError(f"the original file {sha256[:12]} is missing from {path.parent}", "Import it again")
    return path


def keep(data: Path, source: Path) -> str:
    """Copy ``source`` to its place and return its sha256: what is parsed later is this copy, whatever becomes of the
    source meanwhile. ``sync`` makes the copies durable before a generation that names them is published.
    """
    folder = data / "files"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = folder / f"{os.getpid()}.part"
    try:
        sha256 = _copy(source, partial)
        target = folder / sha256
        if not target.exists() or target.stat().st_size != partial.stat().st_size:
            partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return sha256


def sync(data: Path, hashes: Iterable[str]) -> None:
    """Force the originals with these hashes, and their folder, to disk."""
    folder = data / "files"
    chosen = [folder / sha256 for sha256 in hashes]
    if not chosen:
        return
    for path in (*chosen, folder):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _copy(source: Path, target: Path) -> str:
    hasher = hashlib.sha256()
    with source.open("rb") as reading, target.open("wb") as writing:
        while piece := reading.read(COPY_BYTES):
            hasher.update(piece)
            writing.write(piece)
    return hasher.hexdigest()
