"""200,000 passages: hybrid search against the raw LanceDB and Tantivy calls it makes, recall, memory.

The passages are MedQuAD's, repeated with fresh ids and vectors jittered (Gaussian, 0.02 a dimension, then normalised),
so that neighbours are near but not equal. The encoder is left out: vectors of the questions are computed before.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
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
        vectors = small.dense.vectors_of([passage.id for passage in small.lexical.all_passages()])
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


def run(place: Place, source: Path, questions: list[str]) -> list[Row]:
    """Grow MedQuAD's library and measure, in a process of its own so that its memory is its own."""
    target = place.work / "large"
    seconds = grow(source, target) if not target.exists() else 0.0
    command = [sys.executable, "-m", "tests.benchmarks.scale", str(target)]
    done = subprocess.run(command, input=json.dumps(questions[:QUERIES]), capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout)
    ratio = figures["hybrid_p50"] / figures["raw_p50"]
    how = (
        f"{ROWS:,} passages, {QUERIES} questions, no encoder; raw = the same queries, limits and columns straight "
        f"to the libraries; recall@10 {figures['recall']:.3f}; index built in {seconds:.0f} s"
    )
    return [
        *_closer(target, questions),
        Row("hybrid search against its raw LanceDB + Tantivy calls, p50", "<= 1.3x",
            f"{ratio:.2f}x ({figures['hybrid_p50']:.1f} against {figures['raw_p50']:.1f} ms)", met(ratio <= 1.3), how),
        Row("hybrid search over 200k, p95", "<= 30 ms", f"{figures['hybrid_p95']:.1f} ms",
            met(figures["hybrid_p95"] <= 30),
            f"dense alone p50 {figures['dense_p50']:.1f} ms, lexical alone p50 {figures['lexical_p50']:.1f} ms"),
        Row("peak memory serving 200k passages", "<= 1.5 GiB", f"{figures['memory'] / 2**30:.2f} GiB",
            met(figures["memory"] <= 1.5 * 2**30), "encoder loaded, every question asked once"),
    ]  # fmt: skip


def _closer(target: Path, questions: list[str]) -> list[Row]:
    """Search with the question's encoding, as ``ask`` does."""
    settings, encoder, search_filter = SearchSettings(), E5(), SearchFilter()
    with Library.open(target) as library:
        hybrid = HybridSearch(library, encoder, settings)
        times = []
        for question in (*questions[:10], *questions[:QUERIES]):
            began = time.perf_counter()
            hybrid.search(question, search_filter, settings.results)
            times.append((time.perf_counter() - began) * 1000)
        times = times[10:]  # the first warm up
    slow = percentile(times, 0.95)
    return [
        Row("search over 200k, question's encoding included, p95", "<= 700 ms", f"{slow:.0f} ms", met(slow <= 700),
            f"{len(times)} questions, p50 {statistics.median(times):.0f} ms"),
    ]  # fmt: skip


def measure(target: Path, questions: list[str]) -> dict[str, float]:
    """What ``run`` reports, measured in this process."""
    import lancedb

    settings, encoder, search_filter = SearchSettings(), E5(), SearchFilter()
    vectors = encoder.encode(questions, "query")
    known = dict(zip(questions, vectors, strict=True))
    with Library.open(target) as library:
        hybrid = HybridSearch(library, Prepared(encoder.identity, known), settings)
        for question in questions:  # served memory, before anything else is opened
            hybrid.search(question, search_filter, settings.results)
        memory = peak_memory()
        table = lancedb.connect(library.path).open_table("passages")
        lexical, number = library.lexical, settings.candidates
        queries = {q: lexical.query(q, search_filter, settings.title_boost, settings.query_terms) for q in questions}

        def dense(question: str) -> object:
            query = table.search(known[question], vector_column_name="vector").distance_type("dot")
            return library.dense.tuned(query.select(["id", "document", "_distance"]).limit(number)).to_arrow()

        def words(question: str) -> object:
            searcher = lexical._index.searcher()
            hits = searcher.search(queries[question], limit=number, count=False).hits
            return [searcher.doc(address) for _, address in hits]

        calls: dict[str, Callable[[str], object]] = {
            "hybrid": lambda question: hybrid.search(question, search_filter, settings.results),
            "raw": lambda question: (dense(question), words(question)),
            "dense": dense,
            "lexical": words,
        }
        times = _in_turn(questions, calls)
        recall = statistics.mean(_recall(table, library, known[question]) for question in questions)
    figures = {f"{name}_p50": statistics.median(seconds) for name, seconds in times.items()}
    return figures | {"hybrid_p95": percentile(times["hybrid"], 0.95), "recall": recall, "memory": float(memory)}


def _recall(table: object, library: Library, vector: Vectors) -> float:
    """The share of the true ten nearest that the index finds among its ten."""
    flat = table.search(vector, vector_column_name="vector").distance_type("dot").bypass_vector_index()  # type: ignore[attr-defined]
    true = set(flat.select(["id", "_distance"]).limit(10).to_arrow()["id"].to_pylist())
    depth = SearchSettings().candidates  # as many as a search asks for
    hits = {passage for passage, _, _ in library.dense.search(vector, depth, SearchFilter())[:10]}
    return len(true & hits) / len(true)


def _in_turn(questions: list[str], calls: dict[str, Callable[[str], object]]) -> dict[str, list[float]]:
    """Milliseconds of each call per question: median of five rounds of calls in turn, after one to warm up."""
    rounds: dict[str, list[list[float]]] = {name: [] for name in calls}
    for _ in range(6):
        times: dict[str, list[float]] = {name: [] for name in calls}
        for question in questions:
            for name, call in calls.items():
                began = time.perf_counter()
                call(question)
                times[name].append((time.perf_counter() - began) * 1000)
        for name in calls:
            rounds[name].append(times[name])
    return {
        name: [statistics.median(figures) for figures in zip(*taken[1:], strict=True)] for name, taken in rounds.items()
    }


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), json.loads(sys.stdin.read()))))
