"""Large files: hashed in pieces, and copied so that a copy is whole or not there.

Rules: a copy is hashed as it is written, under a name that nothing loads, synced, and renamed; no more is read than the
file held at first; the hash of a file that changed meanwhile is no hash.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from localmed.errors import InputError
from localmed.models.registry.registration import Stamp, StoredFile

PIECE = 4 * 2**20  # bytes read at a time: 4 ms of hashing, so that Ctrl-C and the progress bar are prompt

Progress = Callable[[float, str], object]  # bytes done since the last call, and with which file


def silent(done: float, doing: str) -> None:
    """A ``Progress`` that tells nobody."""


def hashed(path: Path, name: str, progress: Progress = silent) -> StoredFile:
    """``path`` with its hash, to be called ``name``; raise ``InputError`` if it changes meanwhile."""
    stamp, sha256 = Stamp.of(path), hashlib.sha256()
    for piece in _pieces(path, stamp.bytes, progress):
        sha256.update(piece)
    _unchanged(path, stamp)
    return StoredFile(name, sha256.hexdigest(), stamp)


def copied(source: Path, target: Path, name: str, progress: Progress = silent) -> StoredFile:
    """Copy ``source`` to ``target`` (readable by its owner only, not to be written to); return the copy as hashed."""
    before, sha256 = Stamp.of(source), hashlib.sha256()
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = target.with_name(f"{target.name}.part")
    with part.open("wb") as stream:
        for piece in _pieces(source, before.bytes, progress):
            sha256.update(piece)
            stream.write(piece)
        stream.flush()
        os.fchmod(stream.fileno(), 0o400)
        os.fsync(stream.fileno())
    _unchanged(source, before)
    part.replace(target)
    return StoredFile(name, sha256.hexdigest(), Stamp.of(target))


def _pieces(path: Path, size: int, progress: Progress) -> Iterator[bytes]:
    """The first ``size`` bytes of ``path``."""
    with path.open("rb") as stream:
        while size > 0 and (piece := stream.read(min(PIECE, size))):
            size -= len(piece)
            yield piece
            progress(len(piece), path.name)


def _unchanged(path: Path, stamp: Stamp) -> None:
    if Stamp.of(path) != stamp:
        raise InputError("model.file_changed", name=path.name)
