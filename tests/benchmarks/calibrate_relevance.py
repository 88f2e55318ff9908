"""Fits the starter relevance judge (localmed/retrieval/relevance.toml) and tells how it does on collections left out.

Questions and libraries: the starter corpus with its own, three guidelines of ours (``plain/``) and four written by
another author (``dev/``), PubMedQA and part of MedQuAD, of both of which half is left out of the library. Every passage
that some tier finds is read; of a question with an answer those that hold it count, else the three nearest. Questions
about another population, disease or purpose are left to ``clinical.qualifiers`` (plain.py). The curve from which the
threshold comes is of judges that were fitted without the question's collection (Chinese, with two collections:
cross-validated over questions); MedQuAD stays out of it, since a library that lacks every second
disease and holds its relatives is no ward's, and is reported.

``python -m tests.benchmarks.calibrate_relevance DATA`` writes the coefficients.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from localmed.agents.asking import RelevanceInput
from localmed.clinical import qualifiers
from localmed.config import AskSettings, Settings
from localmed.domain import SearchFilter
from localmed.hooks import Hooks
from localmed.ingest import manifest
from localmed.language import detect
from localmed.library.lexical import LexicalIndex
from localmed.operations import importing
from localmed.retrieval import relevance
from localmed.retrieval.signals import NAMES, Query, signals
from localmed.session import Session
from localmed.workflows.flow import Perform
from tests.benchmarks import plain
from tests.benchmarks.common import Place, Row, library, work_folder
from tests.benchmarks.known_item import MEDQUAD, PUBMEDQA
from tests.fakes import Steps, opened

SEED, FOLDS, PENALTY = 3, 10, 3.0
FEW = 2  # collections, of which none can be left out: what is left is too little to fit on
PUBMED, MEDQUAD_QUESTIONS = 140, 160
HARDEST = 3  # passages of a question without an answer that are fitted on
LEVELS = [round(0.3 + 0.05 * step, 2) for step in range(14)]  # thresholds of the curve
DEV = Path(__file__).parent / "dev"
TARGET = Path(relevance.__file__).with_name("relevance.toml")
HEAD = """# Coefficients of the starter relevance judge, made by tests/benchmarks/calibrate_relevance.py, which says
# from what. A row holds for its encoder, reranker and language alone. curve: [threshold, questions answered, those
# without an answer in the library among them], by judges fitted without them, no MedQuAD. Do not edit by hand.
"""

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Labelled:
    """A question of a ``collection`` and the words of its answer, "" where the library has none."""

    collection: str
    text: str
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Judged:
    """A question as the judge saw it: the signals of each passage, and which of them hold the answer."""

    question: Labelled
    values: Matrix
    holds: npt.NDArray[np.bool_]

    @property
    def language(self) -> str:
        """The question's."""
        return detect(self.question.text)


# --- questions and libraries ------------------------------------------------------------------------------------------


def ward(session: Session, place: Place) -> list[Labelled]:
    """The starter corpus and all guidelines of ours, with their questions."""
    plain.imported(session, place.work)
    described = place.work / "dev.toml"
    described.write_text(plain.MANIFEST.replace('"ward"', '"dev"'), "utf-8")
    importing.import_paths(session, sorted(DEV.glob("*.md")), manifest.load(described))
    starter = tomllib.loads((plain.CORPORA / "starter_questions.toml").read_text("utf-8"))["question"]
    labelled = [Labelled("starter", row["text"], (row["evidence"],) if row["answerable"] else ()) for row in starter]
    labelled += [Labelled("plain", row["text"], tuple(row["evidence"])) for row in plain.questions("answerable")]
    for name in ("answerable", "unanswerable"):
        rows = tomllib.loads((DEV / f"{name}.toml").read_text("utf-8"))["question"]
        labelled += [Labelled("dev", row["text"], tuple(row.get("evidence", ()))) for row in rows]
    return labelled


def half_of_pubmedqa(session: Session, place: Place) -> list[Labelled]:
    """350 abstracts of PubMedQA, and questions about these and as many others."""
    records = json.loads((place.data / "pubmedqa" / "ori_pqal.json").read_text("utf-8"))
    names = sorted(records)
    random.Random(SEED).shuffle(names)
    kept = set(names[:350])
    source = place.work / "half-pubmedqa.json"
    source.write_text(json.dumps({name: records[name] for name in kept}), "utf-8")
    importing.import_paths(session, [source], PUBMEDQA)
    chosen = random.Random(SEED + 2).sample(names[:700], PUBMED)
    answers = {name: (" ".join(records[name]["CONTEXTS"])[:60],) if name in kept else () for name in chosen}
    return [Labelled("PubMedQA", records[name]["QUESTION"], answers[name]) for name in chosen]


def half_of_medquad(session: Session, place: Place) -> list[Labelled]:
    """Half the subjects of NINDS, CDC and a part of GARD, and questions about all of them."""
    files = [file for file in sorted(place.medquad().rglob("*.xml")) if _chosen(file)]
    trees = {file: ElementTree.parse(file) for file in files}
    subjects = {file: (tree.findtext("Focus") or "").lower() for file, tree in trees.items()}
    names = sorted(set(subjects.values()))
    kept = set(random.Random(SEED).sample(names, len(names) // 2))
    folder = place.work / "half-medquad"
    folder.mkdir()
    labelled = []
    for file, tree in trees.items():
        if subjects[file] in kept:
            (folder / f"{file.parent.name}-{file.name}").write_bytes(file.read_bytes())
        for pair in tree.iter("QAPair"):
            text, answer = ((pair.findtext(tag) or "").strip() for tag in ("Question", "Answer"))
            if text and answer:
                labelled.append(Labelled("MedQuAD", text, (answer[:60],) if subjects[file] in kept else ()))
    importing.import_paths(session, [folder], MEDQUAD)
    return random.Random(SEED + 4).sample(labelled, MEDQUAD_QUESTIONS)


def _chosen(file: Path) -> bool:
    subject = (ElementTree.parse(file).findtext("Focus") or "").lower()
    return file.parent.name[0] in "69" or (file.parent.name[0] == "2" and subject[:1] in "bmv")


def judged(session: Session, questions: Sequence[Labelled]) -> tuple[list[Judged], tuple[str, str]]:
    """Each question with every passage that a tier found for it; and which encoder and reranker did."""
    index, tasks = library(session).lexical, list[RelevanceInput]()

    def keep(request: object, _: object) -> None:
        if isinstance(request, Perform) and isinstance(request.task, RelevanceInput):
            tasks.append(request.task)

    rows, names = [], ("", "")
    for question in questions:
        tasks.clear()
        session.ask(question.text, SearchFilter(), hooks=Hooks(recorder=Steps(keep)))
        own = [task for task in tasks if task.question == question.text]
        rows.append(_read(question, own, index))
        names = next(((session.site.encoder.identity.slug, task.reranker) for task in own if task.dense), names)
    return rows, names


def _read(question: Labelled, tasks: Sequence[RelevanceInput], index: LexicalIndex) -> Judged:
    query = Query.of(question.text, index)
    hits = [hit for task in tasks for hit in task.hits if not qualifiers.differing(question.text, hit.passage)]
    texts = [_plain(hit.passage.in_context) for hit in hits]
    holds = [any(_plain(words)[:60] in text for words in question.evidence) for text in texts]
    values = [signals(query, hit, index).values for hit in hits]
    return Judged(question, np.array(values).reshape(-1, len(NAMES)), np.array(holds, bool))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


# --- fitting ----------------------------------------------------------------------------------------------------------


def fit(rows: Sequence[Judged], columns: Sequence[int]) -> Matrix:
    """Weights of the ``columns`` and the intercept: logistic regression, ridge on standardised signals, by Newton.

    Each question weighs one, however many passages of it are read.
    """
    chosen = [(row.values[places][:, columns], row.question.evidence != ()) for row in rows if (places := _places(row))]
    signal = np.concatenate([values for values, _ in chosen])
    label = np.concatenate([np.full(len(values), answered, float) for values, answered in chosen])
    weight = np.concatenate([np.full(len(values), 1 / len(values)) for values, _ in chosen])
    mean, deviation = signal.mean(0), signal.std(0) + 1e-6
    inputs = np.c_[(signal - mean) / deviation, np.ones(len(signal))]
    penalty = np.eye(inputs.shape[1]) * PENALTY
    penalty[-1, -1] = 1e-9
    beta = np.zeros(inputs.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-inputs @ beta))
        gradient = inputs.T @ (weight * (chance - label)) + penalty @ beta
        curvature = (inputs.T * (weight * chance * (1 - chance))) @ inputs + penalty
        beta -= np.linalg.solve(curvature, gradient)
    slopes = beta[:-1] / deviation
    return np.append(slopes, beta[-1] - slopes @ mean)


def _places(row: Judged) -> list[int]:
    if row.question.evidence:
        return list(map(int, np.flatnonzero(row.holds)))
    return list(map(int, np.argsort(-row.values[:, :3].sum(1), kind="stable")[:HARDEST]))


def probability(row: Judged, columns: Sequence[int], beta: Matrix) -> float:
    """The highest of its passages."""
    if not len(row.values):
        return 0.0
    return float(1 / (1 + np.exp(-(row.values[:, columns] @ beta[:-1] + beta[-1]).max())))


def cross_validated(rows: Sequence[Judged], columns: Sequence[int]) -> list[tuple[Judged, float]]:
    """Each question with its probability by a judge that was fitted without it."""
    order = random.Random(SEED).sample(range(len(rows)), len(rows))
    scored = []
    for fold in range(FOLDS):
        beta = fit([rows[place] for place in order if place % FOLDS != fold], columns)
        scored += [(rows[place], probability(rows[place], columns, beta)) for place in order if place % FOLDS == fold]
    return scored


def left_out(rows: Sequence[Judged], columns: Sequence[int]) -> list[tuple[Judged, float]]:
    """Each question with its probability by a judge that was fitted without its collection."""
    scored = []
    for name in collections(rows):
        others = [row for row in rows if row.question.collection != name]
        if {bool(row.question.evidence) for row in others} == {True, False}:
            beta = fit(others, columns)
            own = (row for row in rows if row.question.collection == name)
            scored += [(row, probability(row, columns, beta)) for row in own]
    return scored


def collections(rows: Sequence[Judged]) -> tuple[str, ...]:
    """Those of the questions."""
    return tuple(dict.fromkeys(row.question.collection for row in rows))


def curve(scored: Sequence[tuple[Judged, float]]) -> list[tuple[float, int, int]]:
    """(threshold, answered, wrong among them), highest first."""
    kept = [(row.question, chance) for row, chance in scored if row.question.collection != "MedQuAD"]
    points = []
    for level in reversed(LEVELS):
        answered = [question for question, chance in kept if chance >= level]
        points.append((level, len(answered), sum(not question.evidence for question in answered)))
    return points


# --- what is written and reported -------------------------------------------------------------------------------------


def fits(rows: Sequence[Judged], names: tuple[str, str]) -> list[tuple[tuple[str, str, str], list[int], list[Judged]]]:
    """What is fitted: for which encoder, reranker and language, which signals, on what."""
    english, chinese = ([row for row in rows if row.language == language] for language in ("en", "zh"))
    words = [place for place, name in enumerate(NAMES) if name != "score"]
    return [((*names, "en"), list(range(len(NAMES))), english), (("", "", "en"), words, english),
            (("", "", "zh"), words, chinese)]  # fmt: skip


def written(rows: Sequence[Judged], names: tuple[str, str]) -> str:
    """The text of ``relevance.toml``."""
    text = HEAD
    for (encoder, reranker, language), columns, own in fits(rows, names):
        beta = fit(own, columns)
        weights = ", ".join(f"{NAMES[column]} = {beta[place]:.3f}" for place, column in enumerate(columns))
        scored = left_out(own, columns) if len(collections(own)) > FEW else cross_validated(own, columns)
        points = ", ".join(str(list(point)) for point in curve(scored))
        text += f'\n[[fitted]]\nencoder = "{encoder}"\nreranker = "{reranker}"\nlanguage = "{language}"\n'
        text += f"intercept = {beta[-1]:.3f}\nweights = {{ {weights} }}\ncurve = [{points}]\n"
    return text


def gathered(place: Place) -> tuple[list[Judged], tuple[str, str]]:
    """Every question over its library."""
    rows, names = list[Judged](), ("", "")
    for build in (ward, half_of_pubmedqa, half_of_medquad):
        settings = Settings(
            Path(tempfile.mkdtemp(dir=place.work)), ask=AskSettings(risk=0.0)
        )  # so that all is searched
        with opened(settings) as session:
            own, names = judged(session, build(session, place))
            rows += own
    return rows, names


def run(place: Place) -> list[Row]:
    """A row a collection and language, left out of the fit."""
    rows, names = gathered(place)
    settings, table = AskSettings(), []
    for (encoder, reranker, language), columns, own in fits(rows, names):
        if language == "zh" or encoder:
            judge = relevance.fitted(encoder, reranker, language)
            level = judge.threshold(settings.risk, settings.confidence)
            for name in collections(own):
                scored = [(row, chance) for row, chance in left_out(own, columns) if row.question.collection == name]
                table += [row_of(name, language, level, scored)] if scored else []
    return table


def row_of(name: str, language: str, level: float, scored: Sequence[tuple[Judged, float]]) -> Row:
    """What share is answered of the questions that have an answer, and of those that have none."""
    there = [chance >= level for row, chance in scored if row.question.evidence]
    not_there = [chance >= level for row, chance in scored if not row.question.evidence]
    shares = [f"{sum(group)} of {len(group)}" for group in (there, not_there)]
    how = f"threshold {level}; the collection left out of the fit; its tables were made while looking at dev and plain"
    return Row(
        f"relevance judge, {name}, {language}", "", f"answers {shares[0]} with an answer, {shares[1]} without", "-", how
    )


if __name__ == "__main__":
    TARGET.write_text(written(*gathered(Place(Path(sys.argv[1]), work_folder()))), "utf-8")
