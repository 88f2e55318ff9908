"""How well the starter relevance judge (localmed/retrieval/relevance.py) tells what the library can answer.

Four sets: MedQuAD without half of its subjects, PubMedQA without half of its abstracts, questions about public
guidelines (guideline_questions.toml) and the starter corpus's own. The judge's weights were first fitted by logistic
regression, which followed MedQuAD and refused two thirds of the guideline questions; then the three weights and the
threshold were set by hand on 160 questions of each of the first two sets and on all of the others, as a compromise.
The first two sets are reported on other questions.
"""

from __future__ import annotations

import json
import random
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from localmed import language
from localmed.agents.asking import RelevanceInput
from localmed.agents.extractive import Extractive
from localmed.config import AskSettings, Settings
from localmed.domain import SearchFilter
from localmed.evaluation.medquad import record_of
from localmed.ingest.manifest import Manifest
from localmed.operations import importing
from localmed.session import Session
from tests.benchmarks import guidelines
from tests.benchmarks.common import Place, Row, library
from tests.benchmarks.known_item import MEDQUAD, PUBMEDQA, medquad_questions, samples
from tests.fakes import opened

SEED = 3
CHOSEN_ON = 160  # questions of each of the first two sets
QUESTIONS = 300
THRESHOLD = AskSettings().abstain_below
Asked = Sequence[tuple[str, bool]]  # a question, and whether the library answers it


def half_of_medquad(place: Place) -> tuple[Manifest, Path, Asked]:
    """MedQuAD without every second subject; questions of the tuning sample."""
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
    labelled = [(question, record in kept) for question, record in tuning[CHOSEN_ON : CHOSEN_ON + QUESTIONS]]
    return MEDQUAD, folder, labelled


def half_of_pubmedqa(place: Place) -> tuple[Manifest, Path, Asked]:
    """PubMedQA without every second abstract."""
    records = json.loads((place.data / "pubmedqa" / "ori_pqal.json").read_text("utf-8"))
    names = sorted(records)
    random.Random(SEED).shuffle(names)
    kept = set(names[: len(names) // 2])
    source = place.work / "half-pubmedqa.json"
    source.write_text(json.dumps({name: records[name] for name in kept}), "utf-8")
    random.Random(SEED + 2).shuffle(names)
    labelled = [(records[name]["QUESTION"], name in kept) for name in names[CHOSEN_ON : CHOSEN_ON + QUESTIONS]]
    return PUBMEDQA, source, labelled


def judge(session: Session, labelled: Asked) -> tuple[list[float], list[bool]]:
    """The probability that ``ask`` would decide by, of each English question, and whether there is an answer."""
    performer = Extractive(library(session).lexical, session.site.encoder, session.settings.ask)
    english = [(question, present) for question, present in labelled if language.detect(question) == "en"]
    scores = []
    for question, _ in english:
        results = session.search(question, SearchFilter(), session.settings.ask.passages)
        relevance_input = RelevanceInput(question, results.hits, results.dense, results.reranker)
        scores.append(performer.judge(relevance_input).probability)
    return scores, [present for _, present in english]


def area_under_curve(scores: np.ndarray, present: np.ndarray) -> float:  # type: ignore[type-arg]
    """The chance that a question with an answer scores above one without."""
    positive, negative = scores[present], scores[~present]
    return float(np.mean(positive[:, None] > negative[None, :]) + 0.5 * np.mean(positive[:, None] == negative[None, :]))


def run(place: Place) -> list[Row]:
    """A row a set."""
    rows = []
    for name, half in (("MedQuAD", half_of_medquad), ("PubMedQA", half_of_pubmedqa)):
        manifest, source, labelled = half(place)
        with opened(Settings(place.work / f"half-{name.lower()}-data")) as session:
            importing.import_paths(session, [source], manifest)
            rows.append(row(name, "other questions than the weights were set on", *judge(session, labelled)))
    with opened(Settings(Path(tempfile.mkdtemp(dir=place.work)))) as session:
        guidelines.build(session, place)
        ours = [(question["text"], bool(question["answerable"])) for question in guidelines.questions()]
        starter = tomllib.loads((guidelines.CORPORA / "starter_questions.toml").read_text("utf-8"))["question"]
        theirs = [(entry["text"], bool(entry["answerable"])) for entry in starter]
        how = "the weights were set on these questions too"
        rows.append(row("guidelines", how, *judge(session, ours)))
        rows.append(row("starter corpus", how, *judge(session, theirs)))
    return rows


def row(name: str, how: str, scores: Sequence[float], present: Sequence[bool]) -> Row:
    """What share is answered of the questions that have an answer, and of those that have none."""
    score, there = np.array(scores), np.array(present)
    answered, wrongly = np.mean(score[there] >= THRESHOLD), np.mean(score[~there] >= THRESHOLD)
    measured = f"answers {answered:.0%} of questions with an answer, {wrongly:.0%} of those without"
    counts = f"{int(there.sum())} with and {int((~there).sum())} without an answer in the library"
    area = area_under_curve(score, there)
    return Row(
        f"relevance judge at threshold {THRESHOLD}, {name}", "", measured, "-", f"{counts}; AUC {area:.3f}; {how}"
    )
