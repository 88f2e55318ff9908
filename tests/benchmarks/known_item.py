"""Known-item retrieval: does a MedQuAD question find the record that it was written for? MRR@10 and recall@5.

A record's question is asked, not indexed. Search was tuned on another sample of questions, disjoint from this one.
Several passages of one record count as one result; of records with the same text one is stored, and the others count as
misses.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from defusedxml import ElementTree

from localmed.config import Settings
from localmed.domain import Collection, SearchFilter
from localmed.ingest.manifest import Manifest
from localmed.ingest.parsed import FieldMapping
from localmed.site import importing
from tests.benchmarks.common import Place, Row, library, met
from tests.fakes import opened

MEDQUAD = Manifest(Collection("medquad", "MedQuAD", 40, "en"), "medquad", FieldMapping({}, {"index_questions": False}))
TOP = 10  # sections
SAMPLE, SEED = 1000, 1  # questions: an MRR of 0.7 is then known to about 0.025 either way


def asked(folder: Path) -> list[tuple[str, str]]:
    """The sample: questions with the records that answer them; the same in whatever order they were read."""
    pairs = sorted(_answered(folder), key=lambda pair: (pair[1], pair[0]))
    return random.Random(SEED).sample(pairs, min(SAMPLE, len(pairs)))


def _answered(folder: Path) -> Iterator[tuple[str, str]]:
    """Ids repeat between MedQuAD's folders, so a record is ``folder/file#qid``."""
    for file in sorted(folder.rglob("*.xml")):
        for pair in ElementTree.fromstring(file.read_bytes()).iter("QAPair"):
            answer, question = pair.findtext("Answer"), pair.find("Question")
            if answer and answer.strip() and question is not None and question.text:
                yield " ".join(question.text.split()), f"{file.parent.name}/{file.name}#{question.get('qid')}"


def built(place: Place) -> Settings:
    """The library of each ``every``-th of MedQuAD's files, imported unless it is there; all of them take an hour."""
    settings = Settings(place.work / "medquad-data")
    if not (settings.data / "current").exists():
        with opened(settings) as session:
            importing.import_paths(session, sorted(place.medquad().rglob("*.xml"))[:: place.every], MEDQUAD)
    return settings


def run(place: Place) -> list[Row]:
    """The order of sections that a reader sees."""
    ranks = []
    with opened(built(place)) as session:
        records = {
            one.id: f"{Path(one.source).parent.name}/{Path(one.source).name}#{one.key.rpartition('#')[2]}"
            for one in library(session).catalogue.documents("medquad")
        }
        for question, record in asked(place.medquad()):
            if place.every == 1 or record in records.values():
                sections = session.find(question, SearchFilter(), session.settings.search.candidates, TOP).sections
                seen = list(dict.fromkeys(records[section.best.passage.document_id] for section in sections))
                ranks.append(1.0 / (seen.index(record) + 1) if record in seen else 0.0)
    mrr, recall = sum(ranks) / len(ranks), sum(rank >= 1 / 5 for rank in ranks) / len(ranks)
    how = f"{len(ranks)} questions, seed {SEED}; recall@5 {recall:.3f}"
    return [Row("MedQuAD known item, order in force, MRR@10", ">= 0.77", f"{mrr:.3f}", met(mrr >= 0.77), how)]
