"""Guidelines found by their summary, then read: against a search of passages alone, and both fused.

Over the starter corpus and three public guidelines: CDC's for outpatient settings, the NHC's diet for hypertension, and
the NHC's COVID-19 protocol in Chinese and English. A hit is a passage of the right document that holds the evidence
words. Reranked, as served. The weight and the thresholds of the map were chosen on the questions for tuning and looked
at on the starter corpus's own; the half for reporting played no part. Every question is checked against the library.
"""

from __future__ import annotations

import json
import re
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from localmed import language
from localmed.config import SearchSettings, Settings
from localmed.domain import Collection, Hit, Kind, Passage, SearchFilter
from localmed.ingest import manifest
from localmed.ingest.manifest import Manifest
from localmed.operations import importing
from localmed.retrieval.guideline_map import GuidelineMap
from localmed.retrieval.search import HybridSearch
from localmed.session import Session
from tests.benchmarks.common import Place, Row, library, met
from tests.fakes import opened

CORPORA = Path(__file__).parents[2] / "corpora"
QUESTIONS = Path(__file__).parent / "guideline_questions.toml"
TITLES = {"zh": "新型冠状病毒肺炎诊疗方案", "en": "Diagnosis and treatment protocol for novel coronavirus pneumonia"}
DEPTH = 10  # passages looked at for the reciprocal rank
MOST_PLACES = 3  # passages that may hold a question's evidence
GUIDES = Collection("guides", "Public guidelines", kind=Kind.GUIDELINE)
WAYS = ("passages alone", "by summary, then passage", "both fused")

Question = dict[str, Any]


@dataclass(frozen=True)
class Ways:
    """The three ways to search one library."""

    session: Session
    alone: HybridSearch
    fused: HybridSearch
    guidelines: GuidelineMap

    def hits(self, way: str, question: str) -> tuple[Hit, ...]:
        """The best ``DEPTH`` passages."""
        if way == "both fused":
            return self.fused.search(question, SearchFilter(), DEPTH).hits
        if way == "passages alone":
            return self.alone.search(question, SearchFilter(), DEPTH).hits
        known = language.detect(question) in self.session.site.encoder.identity.languages
        vector = self.session.site.encoder.encode([question], "query")[0] if known else None
        opened = self.guidelines.find(question, vector, SearchFilter())
        return self.alone.search(question, SearchFilter(documents=opened), DEPTH).hits if opened else ()


def run(place: Place) -> list[Row]:
    """Build the library, check the questions, search three ways."""
    ours = questions()
    starter = tomllib.loads((CORPORA / "starter_questions.toml").read_text("utf-8"))["question"]
    with opened(Settings(Path(tempfile.mkdtemp(dir=place.work)))) as session:
        build(session, place)
        check(session, ours)
        ways = _ways(session)
        sets = {
            "guideline questions for reporting": [our for our in ours if our["use"] == "report"],
            "guideline questions for tuning": [question for question in ours if question["use"] == "tune"],
            "starter corpus's questions": starter,
        }
        return [row for name, questions in sets.items() for row in _rows(ways, name, questions)]


def questions() -> list[Question]:
    """The questions about the public guidelines."""
    questions: list[Question] = tomllib.loads(QUESTIONS.read_text("utf-8"))["question"]
    return questions


def build(session: Session, place: Place) -> None:
    """Import the starter corpus, one collection a manifest, and the public guidelines."""
    for file in sorted(CORPORA.glob("starter-*.toml")):
        described = manifest.load(file)
        importing.import_paths(session, [CORPORA / "starter" / file.stem.removeprefix("starter-")], described)
    folder = Path(tempfile.mkdtemp(dir=place.work))
    for name, title in TITLES.items():
        (folder / f"protocol-{name}.md").write_text(protocol(place, name, title), "utf-8")
    importing.import_paths(
        session, [folder, *place.data.glob("pdf_en/*.pdf"), *place.data.glob("pdf_zh/*.pdf")], Manifest(GUIDES)
    )


def protocol(place: Place, name: str, title: str) -> str:
    """The protocol's paragraphs in one language as Markdown; a tag ``T2`` is a heading of the second level."""
    lines = [f"# {title}"]
    for line in (place.data / "zh_en_protocol" / "paragraphs.jsonl").read_text("utf-8").splitlines():
        paragraph = json.loads(line)
        text = " ".join(paragraph[name].split())
        level = int(paragraph["tag"][1:]) + 1 if paragraph["tag"].startswith("T") else 0
        lines.append(f"{'#' * level} {text}" if level else text)
    return "\n\n".join(lines)


def check(session: Session, candidates: Iterable[Question]) -> None:
    """Raise ``ValueError`` for evidence that does not tell the place, or a question whose words stand together."""
    passages = list(library(session).lexical.all_passages())
    names = _names(session)
    for question in candidates:
        if question["answerable"]:
            holding = [names[passage.document_id] for passage in passages if _holds(passage, [question["evidence"]])]
            right = holding.count(question["document"])
            guides = [name for name in holding if name in {other.get("document") for other in questions()}]
            if not 1 <= right <= MOST_PLACES or right != len(guides):
                raise ValueError(f"the evidence of {question['text']!r} stands in {holding}")
        elif any(_holds(passage, question["absent"]) for passage in passages):
            raise ValueError(f"{question['text']!r} may be answerable")


def _holds(passage: Passage, words: Sequence[str]) -> bool:
    text = _bare(" ".join((passage.title, *passage.headings, passage.text)))
    return all(_bare(word) in text for word in words)


def _bare(text: str) -> str:
    return re.sub(r"\s", "", text).lower()


def _names(session: Session) -> dict[str, str]:
    return {document.id: Path(document.source).name for document in library(session).catalogue.documents()}


def _ways(session: Session) -> Ways:
    settings = SearchSettings()
    served = library(session)
    alone = HybridSearch(served, session.site.encoder, replace(settings, guidelines=0), session.site.reranker)
    everything = replace(settings, guideline_similarity=0.0, guideline_coverage=0.0)
    fused = HybridSearch(served, session.site.encoder, settings, session.site.reranker)
    return Ways(session, alone, fused, GuidelineMap(served, everything))


def _rows(ways: Ways, name: str, questions: Sequence[Question]) -> list[Row]:
    """One row a language and way; the fused one has the target."""
    rows = []
    for spoken in ("en", "zh"):
        chosen = [question for question in questions if question["answerable"] and question["language"] == spoken]
        figures = {way: _figures([_rank(ways, way, question) for question in chosen]) for way in WAYS}
        for way in WAYS:
            recall, reciprocal = figures[way]
            target = "recall@5 not below passages alone" if way == WAYS[-1] else ""
            fulfilled = met(recall >= figures[WAYS[0]][0]) if target else "-"
            measured = f"recall@5 {recall:.3f}, MRR@{DEPTH} {reciprocal:.3f}"
            how = f"{len(chosen)} questions, {spoken}; guidelines are some of the documents; reranked, as served"
            rows.append(Row(f"{name}, {spoken}: {way}", target, measured, fulfilled, how))
    return rows


def _rank(ways: Ways, way: str, question: Question) -> int:
    """The rank (from 1) of the first passage that answers; 0 if none of the best does."""
    names = _names(ways.session)
    for rank, hit in enumerate(ways.hits(way, question["text"]), 1):
        right = names[hit.passage.document_id] == question["document"]
        if right and _holds(hit.passage, [question["evidence"]]):
            return rank
    return 0


def _figures(ranks: Sequence[int]) -> tuple[float, float]:
    """Recall@5 and the mean reciprocal rank."""
    recall = sum(0 < rank <= 5 for rank in ranks) / len(ranks)
    return recall, sum(1 / rank for rank in ranks if rank) / len(ranks)
