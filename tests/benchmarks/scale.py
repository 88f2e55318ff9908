"""200,000 passages: hybrid search, and the memory that serves them.

The passages are MedQuAD's, repeated with fresh ids and vectors jittered (Gaussian, 0.02 a dimension, then normalised),
so that neighbours are near but not equal. The encoder is left out: vectors of the questions are computed before.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from localmed.config import LibrarySettings, SearchSettings
from localmed.domain import Document, Passage, SearchFilter, digest, message
from localmed.domain.ports import EncoderIdentity
from localmed.library.library import Library, build
from localmed.library.vectors import Encoded
from localmed.models.e5 import E5
from localmed.retrieval.search import HybridSearch
from tests.benchmarks import known_item
from tests.benchmarks.common import Place, Row, met, peak_memory, percentile

if TYPE_CHECKING:
    from localmed.domain.ports import Vectors

ROWS = 200_000
JITTER = 0.02
QUERIES = 200


class Prepared:
    """An ``Embedder`` that knows the questions' vectors already."""

    def __init__(self, identity: EncoderIdentity, known: dict[str, Vectors]) -> None:
        self._identity, self._known = identity, known

    @property
    def identity(self) -> EncoderIdentity:
        return self._identity

    def encode(self, texts: object, kind: str) -> Vectors:
        assert isinstance(texts, list)
        return np.stack([self._known[text] for text in texts])


def copies(source: Library, vectors: dict[str, Vectors]) -> Iterator[tuple[list[Document], list[Passage], Vectors]]:
    """The library's documents again and again, with fresh ids, until there are ``ROWS`` passages."""
    documents = source.catalogue.documents()
    by_document: dict[str, list[Passage]] = {}
    for passage in source.lexical.all_passages():
        by_document.setdefault(passage.document_id, []).append(passage)
    noise = np.random.default_rng(1)
    left, turn = ROWS, 0
    while left > 0:
        for start in range(0, len(documents), 2000):
            chosen, passages = [], []
            for document in documents[start : start + 2000]:
                fresh = digest(document.id, str(turn))
                cut = by_document[document.id][: max(left, 0)]
                left -= len(cut)
                if cut:
                    chosen.append(replace(document, id=fresh, key=f"{document.key}/{turn}", passages=len(cut)))
                passages += [replace(p, id=digest(p.id, str(turn)), document_id=fresh) for p in cut]
            if passages:
                names = [p.id for document in documents[start : start + 2000] for p in by_document[document.id]]
                matrix = np.stack([vectors[name] for name in names[: len(passages)]])
                matrix = matrix + (noise.normal(0, JITTER, matrix.shape).astype(np.float32) if turn else 0)
                yield chosen, passages, (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
        turn += 1


SENTENCES = 6  # of a passage


def grow(source: Path, target: Path) -> float:
    """Build the large library; the seconds that publishing (index included) took."""
    identity = E5().identity
    with Library.open(source) as small:
        rows = small.dense._table.to_arrow()
        vectors = dict(zip(rows["id"].to_pylist(), rows["vector"].to_numpy(zero_copy_only=False), strict=True))
        with build(target, identity, LibrarySettings()) as builder:
            for collection in small.catalogue.collections():
                builder.put_collection(collection)
            for documents, passages, matrix in copies(small, vectors):
                for document in documents:
                    builder.put(document)
                builder.add(passages, Encoded(matrix, [np.repeat(row[None], SENTENCES, axis=0) for row in matrix]))
            began = time.perf_counter()
            builder.publish(message("generation.made.upgrade"))
    return time.perf_counter() - began


def run(place: Place) -> list[Row]:
    """Grow MedQuAD's library and measure, in a process of its own so that its memory is its own."""
    target, questions = place.work / "large", [question for question, _ in known_item.asked(place.medquad())]
    seconds = grow(known_item.built(place).data, target) if not target.exists() else 0.0
    command = [sys.executable, "-m", "tests.benchmarks.scale", str(target)]
    done = subprocess.run(command, input=json.dumps(questions[:QUERIES]), capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout)
    how = f"{ROWS:,} passages, {QUERIES} questions, no encoder; index built in {seconds:.0f} s"
    return [
        Row("hybrid search over 200k, p95", "<= 30 ms", f"{figures['p95']:.1f} ms", met(figures["p95"] <= 30), how),
        Row("peak memory serving 200k passages", "<= 1.5 GiB", f"{figures['memory'] / 2**30:.2f} GiB",
            met(figures["memory"] <= 1.5 * 2**30), "encoder loaded, every question asked once"),
    ]  # fmt: skip


def measure(target: Path, questions: list[str]) -> dict[str, float]:
    """What ``run`` reports, measured in this process: the second round of questions is timed."""
    settings, encoder = SearchSettings(), E5()
    known = dict(zip(questions, encoder.encode(questions, "query"), strict=True))
    with Library.open(target) as library:
        hybrid, times = HybridSearch(library, Prepared(encoder.identity, known), settings), list[float]()
        for question in (*questions, *questions):
            began = time.perf_counter()
            hybrid.search(question, SearchFilter(), settings.results)
            times.append((time.perf_counter() - began) * 1000)
    return {"p95": percentile(times[len(questions) :], 0.95), "memory": float(peak_memory())}


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), json.loads(sys.stdin.read()))))
