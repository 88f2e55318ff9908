"""Encoded vectors outside the generations: an interrupted import resumes here, and a rebuild encodes nothing again.

Keyed by the sha256 of the text that was encoded, so a changed chunking or title can never meet an old vector. Kept as
float16: the similarity of two unit vectors changes by less than 0.001. One SQLite file an encoder, under
``<data>/vectors/``; losing it costs time, nothing else.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from localmed.errors import Damaged
from localmed.library.migrations import VECTORS, open_database

if TYPE_CHECKING:
    from localmed.ports import Embedder, Vectors

KEY_BYTES = 16
KEYS_A_QUERY = 500


class VectorCache:
    """``encode`` with a memory."""

    def __init__(self, folder: Path, encoder: Embedder) -> None:
        """Open (or make) the file of ``encoder`` in ``folder``."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._encoder = encoder
        self._bytes = encoder.identity.dimensions * np.dtype(np.float16).itemsize
        self._database = _opened(folder / f"{encoder.identity.slug}.sqlite")
        self._database.execute("PRAGMA synchronous = NORMAL")  # a power cut may cost vectors, a kill may not
        self.encoded = 0  # texts encoded, not found

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """The vectors of ``texts`` (N, D), float32: stored ones read, the others encoded and stored at once."""
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:KEY_BYTES] for text in texts]
        found = self._read(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            fresh = self._encoder.encode(list(missing.values()), "passage").astype(np.float16)
            found.update(zip(missing, fresh, strict=True))
            self._write([(key, found[key].tobytes()) for key in missing])
            self.encoded += len(missing)
        return np.stack([found[key] for key in keys]).astype(np.float32)

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, np.ndarray[tuple[int], np.dtype[np.float16]]]:
        found = {}
        for start in range(0, len(keys), KEYS_A_QUERY):
            part = keys[start : start + KEYS_A_QUERY]
            marks = ",".join("?" * len(part))
            rows = self._database.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", part)  # noqa: S608
            found.update({key: np.frombuffer(vector, np.float16) for key, vector in rows if len(vector) == self._bytes})
        return found

    def _write(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        with self._database:  # one transaction
            self._database.execute("BEGIN")
            self._database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)


def _opened(path: Path) -> sqlite3.Connection:
    """The file at ``path``; one that cannot be read is begun anew, for all it holds can be encoded again."""
    try:
        return open_database(path, VECTORS, wal=True)
    except Damaged:
        for part in ("", "-wal", "-shm"):
            path.with_name(path.name + part).unlink(missing_ok=True)
        return open_database(path, VECTORS, wal=True)
