"""200,000 passages: hybrid search against the raw LanceDB and Tantivy calls it makes, recall against flat search, memory.

The passages are MedQuAD's, repeated with fresh ids and vectors jittered (Gaussian, 0.02 a dimension, then normalised), so that
neighbours are near but not equal. The encoder is left out: vectors of the questions are computed before.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from localmed.config import LibrarySettings, SearchSettings
from localmed.domain import Document, Passage, SearchFilter, digest
from localmed.library.library import Library, build
from localmed.models.minilm import MiniLM
from localmed.ports import EncoderIdentity
from localmed.retrieval.search import HybridSearch
from tests.benchmarks.common import Place, Row, met, percentile

if TYPE_CHECKING:
    from localmed.ports import Vectors

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
    for passage in source.lexical.each():
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


def grow(source: Path, target: Path) -> float:
    """Build the large library; the seconds that publishing (index included) took."""
    identity = MiniLM().identity
    with Library.open(source) as small:
        vectors = small.dense.vectors_of([passage.id for passage in small.lexical.each()])
        with build(target, identity, LibrarySettings()) as builder:
            for collection in small.catalogue.collections():
                builder.put_collection(collection)
            for documents, passages, matrix in copies(small, vectors):
                for document in documents:
                    builder.put(document)
                builder.add(passages, matrix)
            began = time.perf_counter()
            builder.publish("200,000 passages")
    return time.perf_counter() - began


def run(place: Place, source: Path, questions: list[str]) -> list[Row]:
    """Grow MedQuAD's library and measure, in a process of its own so that its memory is its own."""
    target = place.work / "large"
    seconds = grow(source, target) if not target.exists() else 0.0
    command = [sys.executable, "-m", "tests.benchmarks.scale", str(target)]
    done = subprocess.run(command, input=json.dumps(questions[:QUERIES]), capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout)
    ratio = figures["hybrid_p50"] / figures["raw_p50"]
    how = (
        f"{ROWS:,} passages, {QUERIES} questions, encoder excluded; raw = table.search + searcher.search with the same queries, "
        f"limits and columns; recall@10 of the ANN index against flat search: {figures['recall']:.3f}; "
        f"index built in {seconds:.0f} s"
    )
    return [
        Row("hybrid search against its raw LanceDB + Tantivy calls, p50", "<= 1.3x",
            f"{ratio:.2f}x ({figures['hybrid_p50']:.1f} against {figures['raw_p50']:.1f} ms)", met(ratio <= 1.3), how),
        Row("hybrid search over 200k, p95", "<= 30 ms", f"{figures['hybrid_p95']:.1f} ms", met(figures["hybrid_p95"] <= 30),
            f"dense alone p50 {figures['dense_p50']:.1f} ms, lexical alone p50 {figures['lexical_p50']:.1f} ms"),
        Row("peak memory serving 200k passages", "<= 1.5 GiB", f"{figures['memory'] / 2**30:.2f} GiB",
            met(figures["memory"] <= 1.5 * 2**30), "encoder loaded, every question asked once"),
    ]  # fmt: skip


def measure(target: Path, questions: list[str]) -> dict[str, float]:
    """What ``run`` reports, measured in this process."""
    import lancedb
    import tantivy

    settings, encoder, wanted = SearchSettings(), MiniLM(), SearchFilter()
    vectors = encoder.encode(questions, "query")
    known = dict(zip(questions, vectors, strict=True))
    figures: dict[str, float] = {}
    with Library.open(target) as library:
        hybrid = HybridSearch(library, Prepared(encoder.identity, known), settings)
        times = _each(questions, lambda question: hybrid.search(question, wanted, settings.results))
        figures["hybrid_p50"], figures["hybrid_p95"] = statistics.median(times), percentile(times, 0.95)
        number = settings.candidates
        table = lancedb.connect(library.path).open_table("passages")
        lexical = library.lexical
        queries = {
            question: lexical.query(question, wanted, settings.title_boost, settings.query_terms)
            for question in questions
        }
        index = lexical._index

        def raw_dense(question: str) -> object:
            found = table.search(known[question], vector_column_name="vector").distance_type("dot")
            return library.dense.tuned(found.select(["id", "document", "_distance"]).limit(number)).to_arrow()

        def raw_lexical(question: str) -> object:
            searcher = index.searcher()
            hits = searcher.search(queries[question], limit=number, count=False).hits
            return [searcher.doc(address) for _, address in hits]

        def raw(question: str) -> object:
            return raw_dense(question), raw_lexical(question)

        assert isinstance(index, tantivy.Index)
        figures["raw_p50"] = statistics.median(_each(questions, raw))
        figures["dense_p50"] = statistics.median(_each(questions, raw_dense))
        figures["lexical_p50"] = statistics.median(_each(questions, raw_lexical))
        figures["recall"] = statistics.mean(_recall(table, library, known[question]) for question in questions)
    from tests.benchmarks.common import peak_memory

    figures["memory"] = peak_memory()
    return figures


def _recall(table: object, library: Library, vector: Vectors) -> float:
    """The share of the true ten nearest that the index finds among its ten."""
    flat = table.search(vector, vector_column_name="vector").distance_type("dot").bypass_vector_index()  # type: ignore[attr-defined]
    true = set(flat.select(["id", "_distance"]).limit(10).to_arrow()["id"].to_pylist())
    found = {passage for passage, _, _ in library.dense.search(vector, 10, SearchFilter())}
    return len(true & found) / len(true)


def _each(questions: list[str], call: object) -> list[float]:
    """Milliseconds of a call per question, median of five rounds each, after one to warm up."""
    assert callable(call)
    rounds: list[list[float]] = []
    for _ in range(6):
        times = []
        for question in questions:
            began = time.perf_counter()
            call(question)
            times.append((time.perf_counter() - began) * 1000)
        rounds.append(times)
    return [statistics.median(each) for each in zip(*rounds[1:], strict=True)]


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), json.loads(sys.stdin.read()))))
