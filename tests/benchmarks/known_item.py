"""Known-item retrieval: does a question find the record it was written for? MedQuAD and PubMedQA, MRR@10 and recall@5.

A MedQuAD record's question, and the title of one of PubMedQA's abstracts (``ori_pqal.json``), is asked, not indexed.
Settings were tuned on another sample of MedQuAD (``TUNING_SEED``), disjoint from the one reported; nothing was tuned on
PubMedQA. Several passages of one record count as one result.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from defusedxml import ElementTree

from localmed.config import SearchSettings, Settings
from localmed.domain import Collection, SearchFilter
from localmed.ingest.manifest import Manifest
from localmed.ingest.parsed import FieldMapping
from localmed.retrieval.search import HybridSearch
from localmed.site import importing
from localmed.site.session import Session
from tests.benchmarks.common import Place, Row, library, met
from tests.fakes import opened

MEDQUAD = Manifest(Collection("medquad", "MedQuAD", 40, "en"), "medquad", FieldMapping({}, {"index_questions": False}))
PUBMEDQA = Manifest(
    Collection("pubmedqa", "PubMedQA", 20, "en"),
    "json",
    FieldMapping({"title": "YEAR", "text": "CONTEXTS", "headings": "LABELS", "mesh": "MESHES", "edition": "YEAR"}, {}),
)
TOP = 10  # sections
FUSED = {"reranker": "none"}  # what is reranked is measured in reranking.py
Search = Callable[[str], Sequence[str]]  # question -> records, best first
Pair = tuple[str, str]  # (question, name of the record that answers it)
SAMPLE = 1000  # questions: an MRR of 0.7 is then known to about 0.025 either way
REPORTED_SEED, TUNING_SEED = 1, 7


def medquad_questions(folder: Path) -> list[Pair]:
    """Every question with an answer; ids repeat between MedQuAD's folders, so a record is ``folder/file#qid``."""
    return list(_answered(folder))


def _answered(folder: Path) -> Iterator[Pair]:
    for file in sorted(folder.rglob("*.xml")):
        for pair in ElementTree.fromstring(file.read_bytes()).iter("QAPair"):
            answer, question = pair.findtext("Answer"), pair.find("Question")
            if answer and answer.strip() and question is not None and question.text:
                yield " ".join(question.text.split()), f"{file.parent.name}/{file.name}#{question.get('qid')}"


def pubmedqa_questions(file: Path) -> list[Pair]:
    """Every title with its article's id."""
    records = json.loads(file.read_text("utf-8"))
    return [(" ".join(record["QUESTION"].split()), name) for name, record in records.items()]


def sample(pairs: Sequence[Pair], seed: int) -> list[Pair]:
    """At most ``SAMPLE`` of ``pairs``; the same ones in whatever order they were read."""
    ordered = sorted(pairs, key=lambda pair: (pair[1], pair[0]))
    return random.Random(seed).sample(ordered, min(SAMPLE, len(ordered)))


def reciprocal_rank(records: Sequence[str], record: str) -> float:
    """One over the rank of ``wanted`` among the first ten, else 0."""
    first = list(records[:10])
    return 1.0 / (first.index(record) + 1) if record in first else 0.0


def score(search: Search, questions: Sequence[tuple[str, str]]) -> tuple[float, float]:
    """MRR@10 and recall@5 over ``(question, record)`` pairs."""
    ranks = [reciprocal_rank(search(question), record) for question, record in questions]
    return sum(ranks) / len(ranks), sum(rank >= 1 / 5 for rank in ranks) / len(ranks)


def searcher(session: Session, name: str, records: dict[str, str]) -> Search:
    """Dense, lexical or fused search of a session made with ``FUSED``, that returns records, each once."""
    base = SearchSettings()
    weights = {"dense": (1.0, 0.0), "lexical": (0.0, 1.0), "fused": (base.dense_weight, base.lexical_weight)}[name]
    chosen = replace(base, dense_weight=weights[0], lexical_weight=weights[1])
    finder = HybridSearch(library(session), session.site.encoder, chosen, session.site.reranker)

    def search(question: str) -> Sequence[str]:
        hits = finder.search(question, SearchFilter(), chosen.candidates).hits
        kept = [hit for hit in hits if name != "dense" or hit.dense_rank >= 0]
        kept = [hit for hit in kept if name != "lexical" or hit.lexical_rank >= 0]
        return list(dict.fromkeys(records[hit.passage.document_id] for hit in kept))

    return search


def samples(pairs: Sequence[tuple[str, str]]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The reported sample and the one for tuning, disjoint."""
    reported = sample(pairs, REPORTED_SEED)
    return reported, sample(list(set(pairs) - set(reported)), TUNING_SEED)


def medquad_records(session: Session) -> tuple[dict[str, str], dict[str, str]]:
    """Document id -> record id, and record id -> the record stored for it (identical answers are stored once)."""
    records = {
        one.id: f"{Path(one.source).parent.name}/{Path(one.source).name}#{one.key.rpartition('#')[2]}"
        for one in library(session).catalogue.documents("medquad")
    }
    return records, {record: record for record in records.values()}


def medquad(session: Session, folder: Path, tuning: bool = False) -> list[Row]:
    """The three rows of MedQuAD of a session whose library holds it."""
    records, stored = medquad_records(session)
    pairs = medquad_questions(folder)
    reported, tune = samples(pairs)
    chosen = tune if tuning else reported
    rows = []
    for name in ("dense", "lexical", "fused"):
        mrr, recall = score(searcher(session, name, records), chosen)
        target = ">= 0.66" if name == "fused" else ""
        note = f"{len(chosen)} of {len(pairs)} questions, seed {REPORTED_SEED}; recall@5 {recall:.3f}"
        missing = sum(record not in stored for _, record in chosen)
        note += f"; {missing} of them ask for a record whose text is stored under an identical one, counted as misses"
        rows.append(
            Row(f"MedQuAD known item, {name}, MRR@10", target, f"{mrr:.3f}", met(mrr >= 0.66) if target else "-", note)
        )
    mrr, recall = score(in_force(session, records), chosen)
    note = f"sections in the order that a reader sees, the first {TOP}; recall@5 {recall:.3f}"
    rows.append(Row("MedQuAD known item, order in force, MRR@10", ">= 0.77", f"{mrr:.3f}", met(mrr >= 0.77), note))
    return rows


def in_force(session: Session, records: dict[str, str]) -> Search:
    """What a reader sees: the records of the first sections, each once."""

    def search(question: str) -> Sequence[str]:
        sections = session.find(question, SearchFilter(), session.settings.search.candidates, TOP).sections
        return list(dict.fromkeys(records[section.best.passage.document_id] for section in sections))

    return search


def pubmedqa(place: Place) -> list[Row]:
    """Import PubMedQA's abstracts without their titles and ask the titles."""
    source = place.data / "pubmedqa" / "ori_pqal.json"
    questions = pubmedqa_questions(source)
    with opened(Settings(Path(tempfile.mkdtemp(dir=place.work))), uses=FUSED) as session:
        importing.import_paths(session, [source], PUBMEDQA)
        records = {
            document.id: document.key.rpartition("#")[2]
            for document in library(session).catalogue.documents("pubmedqa")
        }
        rows = []
        for name in ("dense", "lexical", "fused"):
            mrr, recall = score(searcher(session, name, records), questions)
            target = ">= 0.98" if name == "fused" else ""
            note = f"{len(questions)} questions; recall@5 {recall:.3f}"
            rows.append(
                Row(
                    f"PubMedQA known item, {name}, MRR@10",
                    target,
                    f"{mrr:.3f}",
                    met(mrr >= 0.98) if target else "-",
                    note,
                )
            )
        return rows
