"""Encoded vectors outside the generations: an interrupted import resumes here, and a rebuild encodes nothing again.

The key is the sha256 of the encoded text, so changed chunking or titles never meet an old vector. Vectors are float16
(the similarity of two unit vectors changes by less than 0.001); a sparse encoder's token weights are pairs of token id
and float16. One SQLite file an encoder, under ``<data>/vectors/``. Loss or damage costs time only: each row has a
digest, and an altered row is encoded again.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from localmed.domain import Passage
from localmed.domain.errors import Damaged
from localmed.domain.ports import encode_both
from localmed.library.migrations import VECTORS, open_database, require_file, translate_error
from localmed.text.furniture import line_spans

if TYPE_CHECKING:
    from localmed.domain.ports import Embedder, EncoderIdentity, Vectors, Weights

KEY_BYTES = 16
KEYS_A_QUERY = 500
PAIR = np.dtype([("token", np.uint32), ("weight", np.float16)])  # 6 bytes

Row = tuple[bytes, bytes]  # a text's vector and weights, as they are stored
Start = Callable[[list[str]], "Callable[[], tuple[Vectors, list[Weights]]]"]


@dataclass(frozen=True, slots=True)
class _Begun:
    """A batch being encoded elsewhere: the keys of its texts, and a function that waits for the result."""

    keys: tuple[bytes, ...]
    waiting: Callable[[], tuple[Vectors, list[Weights]]]


@dataclass(frozen=True, slots=True)
class Encoded:
    """The vectors (N, D) of N passages, those of the sentences (S, D) of each, and token weights."""

    vectors: Vectors
    sentences: Sequence[Vectors]
    weights: Sequence[Weights] = ()


class VectorCache:
    """``encode`` with a memory."""

    def __init__(self, folder: Path, encoder: Embedder, start: Start | None = None) -> None:
        """Open (or create) the file of ``encoder`` in ``folder``; ``start`` begins to encode texts elsewhere."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._encoder, self._start = encoder, start
        self._begun: dict[bytes, _Begun] = {}  # by the texts' keys
        self._bytes = encoder.identity.dimensions * np.dtype(np.float16).itemsize
        self._path = folder / f"{encoder.identity.slug}.sqlite"
        self._database = _open_cache(self._path)
        self.encoded = 0  # texts that were not stored

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of ``texts`` (N, D), float32; missing ones are encoded and stored."""
        return self.encode_both(texts)[0]

    def encode_both(self, texts: Sequence[str]) -> tuple[Vectors, list[Weights]]:
        """Return the vectors and the token weights of ``texts``; float16 keeps three digits of a weight."""
        keys = _keys(texts)
        self._await(keys)
        rows_by_key = self._read(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in rows_by_key}
        if missing:
            encoded = _rows(*encode_both(self._encoder, list(missing.values()), "passage"))
            fresh = dict(zip(missing, encoded, strict=True))
            self._write(fresh)
            rows_by_key |= fresh
            self.encoded += len(missing)
        rows = [rows_by_key[key] for key in keys]
        vectors = np.stack([np.frombuffer(vector, np.float16) for vector, _ in rows]).astype(np.float32)
        return vectors, [_unpacked(weights) for _, weights in rows]

    def encode_passages(self, passages: Sequence[Passage]) -> Encoded:
        """Encode ``passages``, and the sentences (or rows) of each in its context."""
        texts = texts_of(passages, self._encoder.identity)
        vectors, weights = self.encode_both([text for own in texts for text in own])
        starts = np.cumsum([0, *map(len, texts)]).tolist()
        sentences = [vectors[start + 1 : end] for start, end in pairwise(starts)]
        return Encoded(vectors[starts[:-1]], sentences, [weights[start] for start in starts[:-1]])

    def begin(self, texts: Sequence[str]) -> None:
        """Begin to encode missing ``texts`` elsewhere, if possible; later calls wait for them."""
        if self._start is None:
            return
        keys = _keys(texts)
        known = self._read(keys).keys() | self._begun.keys()
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            begun = _Begun(tuple(missing), self._start(list(missing.values())))
            self._begun |= dict.fromkeys(missing, begun)

    def _await(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            if begun := self._begun.get(key):
                rows = _rows(*begun.waiting())
                self._write(dict(zip(begun.keys, rows, strict=True)))
                self.encoded += len(rows)
                for done in begun.keys:
                    del self._begun[done]

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, Row]:
        rows: dict[bytes, Row] = {}
        for start in range(0, len(keys), KEYS_A_QUERY):
            part = keys[start : start + KEYS_A_QUERY]
            query = f"SELECT key, vector, weights, digest FROM vectors WHERE key IN ({','.join('?' * len(part))})"  # noqa: S608
            try:
                stored = self._database.execute(query, part).fetchall()
            except sqlite3.DatabaseError as error:
                stored = self._anew(error)
            for *row, recorded in stored:
                if all(isinstance(value, bytes) for value in row) and recorded == _digest(*row):
                    rows[row[0]] = (row[1], row[2])
        return rows

    def _write(self, rows: dict[bytes, Row]) -> None:
        values = [(key, *row, _digest(key, *row)) for key, row in rows.items()]
        try:
            self._insert(values)
        except sqlite3.DatabaseError as error:
            self._anew(error)
            self._insert(values)

    def _insert(self, values: Sequence[tuple[bytes, ...]]) -> None:
        with self._database:  # one transaction
            self._database.execute("BEGIN")
            self._database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", values)

    def _anew(self, error: sqlite3.DatabaseError) -> list[tuple[bytes, ...]]:
        if not isinstance(translate_error(self._path, error), Damaged):  # a full disk, another writer
            raise error
        self._database.close()
        self._database = _recreate(self._path)
        return []


def texts_of(passages: Sequence[Passage], encoder: EncoderIdentity) -> list[list[str]]:
    """Return the texts to encode of each passage: itself and, in a supported language, its sentences or rows in
    context.
    """
    spans = (line_spans(one) if one.language in encoder.languages else () for one in passages)
    return [
        [one.in_context, *(one.line_in_context(*span) for span in own)]
        for one, own in zip(passages, spans, strict=True)
    ]


def count_damaged(path: Path) -> int:
    """Count the altered rows of the cache at ``path``, plus one if the file cannot be read to its end."""
    count = 0
    try:
        require_file(path)
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            for *row, recorded in database.execute("SELECT key, vector, weights, digest FROM vectors"):
                count += not all(isinstance(value, bytes) for value in row) or recorded != _digest(*row)
            count += database.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok"
    except sqlite3.DatabaseError:
        count += 1
    return count


def _keys(texts: Sequence[str]) -> list[bytes]:
    return [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:KEY_BYTES] for text in texts]


def _rows(vectors: Vectors, weights: Sequence[Weights]) -> list[Row]:
    halves = vectors.astype(np.float16)
    packed = (np.array(list(one.items()), PAIR).tobytes() for one in weights)
    return [(vector.tobytes(), pairs) for vector, pairs in zip(halves, packed, strict=True)]


def _digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()[:KEY_BYTES]


def _unpacked(packed: bytes) -> Weights:
    pairs = np.frombuffer(packed, PAIR)
    return dict(zip(pairs["token"].tolist(), pairs["weight"].tolist(), strict=True))


def _open_cache(path: Path) -> sqlite3.Connection:
    try:
        database = open_database(path, VECTORS, wal=True)
    except Damaged:
        return _recreate(path)
    database.execute("PRAGMA synchronous = NORMAL")  # a power cut may cost vectors, a kill may not
    return database


def _recreate(path: Path) -> sqlite3.Connection:
    for part in ("", "-wal", "-shm"):
        path.with_name(path.name + part).unlink(missing_ok=True)
    return open_database(path, VECTORS, wal=True)
