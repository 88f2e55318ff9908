"""Fit and report the starter relevance judge (localmed/retrieval/relevance.py).

Two libraries from which half was removed, so that half of the questions have no answer: MedQuAD without half of its
subjects, PubMedQA without half of its abstracts. A logistic function of similarity and coverage is fitted on half of
the questions (both sets weigh the same) and reported on the other half.

    python -m tests.benchmarks.calibrate_relevance --data DIR --library DATA_FOLDER_WITH_MEDQUAD
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from localmed.app import App
from localmed.config import AskSettings, Settings
from localmed.domain import SearchFilter
from localmed.evaluation.medquad import record_of
from localmed.ingest.manifest import Manifest
from localmed.retrieval import relevance
from tests.benchmarks.common import Place, Row
from tests.benchmarks.known_item import MEDQUAD, PUBMEDQA, medquad_questions, samples

SEED = 3
QUESTIONS = 1000
THRESHOLD = AskSettings().abstain_below
MISSING = {"MedQuAD": "a subject", "PubMedQA": "an abstract"}


@dataclass(frozen=True)
class Set:
    """Features (similarity, coverage) of questions and whether the library holds their answer."""

    name: str
    features: np.ndarray  # type: ignore[type-arg]
    present: np.ndarray  # type: ignore[type-arg]


def features(app: App, question: str) -> tuple[float, float]:
    """What ``relevance.relevance`` computes its probability from."""
    hits = app.search(question, SearchFilter(), app.settings.ask.passages).hits
    index = app.library.lexical
    weighed = relevance.weigh(question, index)
    similarity = max((hit.similarity or 0.0 for hit in hits), default=0.0)
    return similarity, max(
        (weighed.coverage(index.analyse(relevance.searched_text(hit.passage))) for hit in hits), default=0.0
    )


def collect(name: str, manifest: Manifest, source: Path, questions: list[tuple[str, bool]], data: Path) -> Set:
    """Import ``source`` and compute the features of ``questions``."""
    with App(Settings(data)) as app:
        app.import_paths([source], manifest)
        rows = [features(app, question) for question, _ in questions]
    return Set(name, np.array(rows), np.array([present for _, present in questions]))


def half_of_medquad(place: Place) -> Set:
    """MedQuAD without every second subject; the questions of the tuning sample."""
    from xml.etree import ElementTree

    folder = place.work / "half-medquad"
    folder.mkdir(exist_ok=True)
    kept = set()
    subjects = sorted(
        {(ElementTree.parse(file).findtext("Focus") or "").lower() for file in place.medquad().rglob("*.xml")}
    )
    chosen = set(random.Random(SEED).sample(subjects, len(subjects) // 2))
    for file in sorted(place.medquad().rglob("*.xml")):
        tree = ElementTree.parse(file)
        if (tree.findtext("Focus") or "").lower() in chosen:
            (folder / f"{file.parent.name}-{file.name}").write_bytes(file.read_bytes())
            kept |= {record_of(file, str(question.get("qid"))) for question in tree.iter("Question")}
    _, tuning = samples(medquad_questions(place.medquad()))
    asked = [(question, record in kept) for question, record in tuning[:QUESTIONS]]
    return collect("MedQuAD", MEDQUAD, folder, asked, place.work / "half-medquad-data")


def half_of_pubmedqa(place: Place) -> Set:
    """PubMedQA without every second abstract."""
    records = json.loads((place.data / "pubmedqa" / "ori_pqal.json").read_text("utf-8"))
    names = sorted(records)
    random.Random(SEED).shuffle(names)
    kept = set(names[: len(names) // 2])
    source = place.work / "half-pubmedqa.json"
    source.write_text(json.dumps({name: records[name] for name in kept}), "utf-8")
    asked = [(records[name]["QUESTION"], name in kept) for name in names]
    random.Random(SEED + 1).shuffle(asked)
    return collect("PubMedQA", PUBMEDQA, source, asked, place.work / "half-pubmedqa-data")


def fit(sets: list[Set]) -> np.ndarray:  # type: ignore[type-arg]
    """Logistic regression by Newton's method on the first half of each set, the sets weighing the same."""
    rows = [
        (np.c_[s.features[::2], np.ones(len(s.features[::2]))], s.present[::2], 1.0 / len(s.present[::2])) for s in sets
    ]
    x, y = np.concatenate([r[0] for r in rows]), np.concatenate([r[1] for r in rows]).astype(float)
    weight = np.concatenate([np.full(len(r[1]), r[2]) for r in rows])
    beta = np.zeros(3)
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ beta))
        hessian = (x * (weight * p * (1 - p))[:, None]).T @ x
        beta = beta + np.linalg.solve(hessian + 1e-9 * np.eye(3), x.T @ (weight * (y - p)))
    return beta


def area_under_curve(scores: np.ndarray, present: np.ndarray) -> float:  # type: ignore[type-arg]
    """The chance that a question with an answer scores above one without."""
    positive, negative = scores[present], scores[~present]
    return float(np.mean(positive[:, None] > negative[None, :]) + 0.5 * np.mean(positive[:, None] == negative[None, :]))


def run(place: Place) -> list[Row]:
    """Fit, and report the constants in force on the questions not fitted on."""
    sets = [half_of_medquad(place), half_of_pubmedqa(place)]
    fitted = fit(sets)
    print("fitted (similarity, coverage, intercept):", fitted.round(2).tolist())
    force = np.array([relevance.SIMILARITY, relevance.COVERAGE, relevance.INTERCEPT])
    rows = []
    for each in sets:
        scores = 1 / (1 + np.exp(-np.c_[each.features[1::2], np.ones(len(each.features[1::2]))] @ force))
        present = each.present[1::2]
        answered, wrongly = np.mean(scores[present] >= THRESHOLD), np.mean(scores[~present] >= THRESHOLD)
        area = area_under_curve(scores, present)
        measured = f"answers {answered:.0%} of questions with an answer, {wrongly:.0%} of those without; AUC {area:.3f}"
        lacking = f"{int((~present).sum())} of them about {MISSING[each.name]} that the library lacks"
        how = f"{len(present)} questions not fitted on, {lacking}; fitted constants {fitted.round(2).tolist()}"
        rows.append(Row(f"relevance judge at threshold {THRESHOLD}, {each.name}", "", measured, "-", how))
    return rows
