"""M-Eval on starter: how long it takes, whether MeSH helps to find a study, and how good its stances and labels are.

PubMedQA's abstracts (without their conclusions) are the literature. An answer is timed with nine studies found; the
authors' conclusion is the answer then. "Yes." and "No." to the same question are a correct and a mistaken response, by
what PubMedQA's annotators decided. Stances are those of HealthVer's test pairs and COVID-Fact's, as M-Eval takes them.
Nothing of this was trained or tuned on but the two thresholds of a vote, on HealthVer's development pairs.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from localmed.answering.answer_file import VerifyInput
from localmed.config import Settings
from localmed.domain import Kind, SearchFilter
from localmed.domain.parts import Label, StudiesPart
from localmed.lab import claims, stance
from localmed.lab.claims import Inside, Item, by_claim
from localmed.lab.reporting import Report
from localmed.lab.rows import Rows
from localmed.retrieval import studies
from localmed.site import importing
from localmed.site.session import Session
from tests.benchmarks.common import Place, Row, library, met, percentile
from tests.benchmarks.known_item import PUBMEDQA
from tests.fakes import opened

LITERATURE = replace(PUBMEDQA, collection=replace(PUBMEDQA.collection, kind=Kind.LITERATURE))
TIMED = 40  # answers
ANSWERED = 150  # questions with a yes or no, each asked twice
SEED = 1
MOST_SECONDS = 3.0


def run(place: Place) -> list[Row]:
    """All figures."""
    source = place.data / "pubmedqa" / "ori_pqal.json"
    records: dict[str, dict[str, Any]] = json.loads(source.read_text("utf-8"))
    with opened(Settings(Path(tempfile.mkdtemp(dir=place.work)))) as session:
        importing.import_paths(session, [source], LITERATURE)
        rows = [_finding(session, records), _time(session, list(records.values())), _labels(session, records)]
        rows += [_stances(session, place.data / "claims" / name) for name in ("healthver/healthver_test.csv",
                                                                          "covidfact/rte_dev.tsv")]  # fmt: skip
        return rows


def _finding(session: Session, records: dict[str, dict[str, Any]]) -> Row:
    """Each question looks for its own abstract, with MeSH headings and without."""
    served, settings = library(session), session.settings.search
    keys = {document.id: document.key.rpartition("#")[2] for document in served.catalogue.documents("pubmedqa")}
    search_filter = SearchFilter(("pubmedqa",))
    ranks: dict[str, list[float]] = {"with": [], "without": []}
    for name, record in records.items():
        question = record["QUESTION"]
        ranked = [keys[study.document.id] for study in studies.find(served, question, 15, ("pubmedqa",), settings)]
        plain = served.search_lexical(
            question, studies.CANDIDATES, search_filter, settings.title_boost, settings.query_terms
        )
        alone = list(dict.fromkeys(keys[document] for _, document, _ in plain))[:15]
        for kind, order in (("with", ranked), ("without", alone)):
            ranks[kind].append(1 / (order.index(name) + 1) if name in order else 0.0)
    figures = (f"{kind} MeSH: MRR@15 {_mean(places):.3f}, among the 15 {_mean([bool(rank) for rank in places]):.3f}"
            for kind, places in ranks.items())  # fmt: skip
    how = f"{len(records)} questions of PubMedQA, each for its own abstract; the abstracts have no titles"
    return Row("M-Eval, studies found by BM25", "", "; ".join(figures), "-", how)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _time(session: Session, records: Sequence[dict[str, Any]]) -> Row:
    """The first answer loads the encoder and is not timed."""
    seconds, judged = [], []
    for record in records[: TIMED + 1]:
        answer = session.verify(VerifyInput(record["QUESTION"], record["LONG_ANSWER"]))
        seconds.append(sum(step.seconds for step in answer.trace))
        judged.append(len(next((part.studies for part in answer.parts if isinstance(part, StudiesPart)), ())))
    p50, p95 = percentile(seconds[1:], 0.5), percentile(seconds[1:], 0.95)
    how = f"{TIMED} conclusions of PubMedQA, median of {percentile(judged, 0.5):.0f} studies judged; warm"
    return Row(
        "M-Eval of an answer, 9 studies, starter", f"p95 <= {MOST_SECONDS:.0f} s",
        f"p50 {p50:.2f} s, p95 {p95:.2f} s", met(p95 <= MOST_SECONDS), how,
    )  # fmt: skip


def _labels(session: Session, records: dict[str, dict[str, Any]]) -> Row:
    """A right and a wrong answer to each question."""
    decided = [(name, record) for name, record in records.items() if record["final_decision"] in ("yes", "no")][
        :ANSWERED
    ]
    items = [
        Item(f"{name} {answer}", VerifyInput(record["QUESTION"], f"{answer.title()}."),
             Label.CORRECT if answer == record["final_decision"] else Label.MISTAKEN, "")
        for name, record in decided
        for answer in ("yes", "no")
    ]  # fmt: skip
    results = claims.run(items, session.verify, lambda *_: None, Rows(None, {}, False, claims.Result, "id", "key"))
    outcome = claims.report("PubMedQA", session.site.entailment.name, results)
    how = f"{len(items)} bare answers to {len(decided)} questions of PubMedQA, half of them wrong; undecided is wrong"
    return Row("M-Eval, response labels, starter", "", _shares(outcome), "-", how)


def _shares(outcome: Report) -> str:
    shares = ((name, outcome.values[name]) for name in ("accuracy", "recall", "specificity"))
    undecided = outcome.values["responses"][Label.NOT_ENOUGH] / max(1, outcome.values["answers"])
    return (
        ", ".join(f"{name} {value:.3f}" for name, value in shares if value is not None) + f", undecided {undecided:.3f}"
    )


def _stances(session: Session, file: Path) -> Row:
    """Per class, and of three-way pairs what the votes make of the claims."""
    pair_set = stance.load(file)
    judge = Inside(session.site.entailment)
    outcome = stance.score(pair_set, judge, SEED)
    by_class = "; ".join(
        f"{label} {scores['precision']:.2f}/{scores['recall']:.2f} of {scores['pairs']}"
        for label, scores in outcome.classes.items()
    )
    measured = f"macro-F1 {outcome.macro_f1:.3f}; precision/recall: {by_class}"
    how = f"{len(pair_set.pairs)} pairs; accuracy {outcome.accuracy:.3f}; only stances sure enough to vote"
    if len(pair_set.labels) == 3:
        how += "; " + _claims(judge, pair_set)
    return Row(f"stance inside M-Eval, {pair_set.name}, starter", "", measured, "-", how)


def _claims(judge: Inside, pair_set: stance.PairSet) -> str:
    stances = judge.judge([(pair.premise, pair.hypothesis) for pair in pair_set.pairs])
    counts = by_claim(pair_set, stances)
    right = sum(number for (gold, judged), number in counts.items() if gold == judged)
    wrong = counts.get((Label.SUPPORTED, Label.CONTRADICTED), 0), counts.get((Label.CONTRADICTED, Label.SUPPORTED), 0)
    return (
        f"of {sum(counts.values())} claims by vote {right} right, {wrong[0]} supported ones called contradicted, "
        f"{wrong[1]} contradicted ones called supported"
    )
