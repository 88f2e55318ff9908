"""Reciprocal rank fusion (Cormack, Clarke & Büttcher 2009) at two levels: passages, and the documents they come from.

Each index gives two rankings: its passages, and their documents by best passage. A passage scores the sum of
``weight / (k + rank)`` over all of them. Passages of one document otherwise crowd the list and push the right document
of the other index down: on MedQuAD's known items the second level raised MRR@10 by 0.07 on the questions it was chosen
on (held-out figures, and what is known of that sample: tests/benchmarks/RESULTS.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Ranking = Sequence[tuple[str, str]]  # (passage, document), best first


def fuse(
    rankings: Sequence[tuple[Ranking, float]], k: int, bonus: Callable[[str], float] | None = None
) -> list[tuple[str, float]]:
    """Fuse weighted rankings into ``(passage, score)``, best first; ties by passage id, so the order never varies.

    ``bonus`` is what a document's passages gain besides (see ``guideline_map``).
    """
    scores: dict[str, float] = {}
    documents: dict[str, float] = {}
    owner: dict[str, str] = {}
    for ranking, weight in rankings:
        for rank, (passage, document) in enumerate(ranking, 1):
            scores[passage] = scores.get(passage, 0.0) + weight / (k + rank)
            owner[passage] = document
        for rank, document in enumerate(dict.fromkeys(document for _, document in ranking), 1):
            documents[document] = documents.get(document, 0.0) + weight / (k + rank)
    if bonus:
        documents = {document: score + bonus(document) for document, score in documents.items()}
    total: Mapping[str, float] = {passage: score + documents[owner[passage]] for passage, score in scores.items()}
    return sorted(total.items(), key=lambda pair: (-pair[1], pair[0]))
