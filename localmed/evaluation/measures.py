"""Retrieval measures by ir-measures, which computes them with trec_eval's own code, compiled in its wheel.

Every measure is per question, from 0 to 1. MRR@10 is the mean of one over the first relevant document's rank among ten,
MAP the mean of average precision over the whole depth of the run, nDCG@10 has linear gains and the discount
``1 / log2(rank + 1)`` (Järvelin & Kekäläinen 2002), recall@k is the share of the relevant documents among the first k.
Judged@10 is no measure of quality: it is the share of the first ten (or as many as were found) that were judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from localmed.errors import ModelError

Run = Mapping[str, Sequence[str]]  # question id -> document ids, best first
Scores = Mapping[str, Mapping[str, float]]  # measure -> question id -> value

MEASURES = ("MRR@10", "MAP", "nDCG@10", "recall@5", "recall@10")
JUDGED = "judged@10"


def require() -> Any:
    """The library; raise ``ModelError`` if it is not installed."""
    try:
        import ir_measures
    except ImportError:
        raise ModelError("evaluation.no_measures", package="ir-measures") from None
    return ir_measures


def scores(run: Run, judgements: Mapping[str, Mapping[str, int]], relevant_from: int) -> Scores:
    """Every measure of every judged question; a question that the run does not hold scores 0."""
    library = require()
    known = {
        library.RR(rel=relevant_from) @ 10: "MRR@10",
        library.AP(rel=relevant_from): "MAP",
        library.nDCG @ 10: "nDCG@10",
        library.R(rel=relevant_from) @ 5: "recall@5",
        library.R(rel=relevant_from) @ 10: "recall@10",
        library.Judged @ 10: JUDGED,
    }
    # Scores that fall with the rank: trec_eval sorts by score, and would break ties by document id.
    ranked = {
        question: {document: float(len(documents) - rank) for rank, document in enumerate(documents)}
        for question, documents in run.items()
        if documents  # ir-measures 0.4.3 divides by zero for judged@10 of nothing
    }
    values: dict[str, dict[str, float]] = {name: dict.fromkeys(judgements, 0.0) for name in known.values()}
    for metric in library.iter_calc(list(known), judgements, ranked):
        values[known[metric.measure]][metric.query_id] = float(metric.value)
    return values
