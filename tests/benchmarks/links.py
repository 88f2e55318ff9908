"""Link-Eval on starter: where the threshold for valid references comes from, and the starter corpus's own questions.

The threshold (``link_eval.VALID_FROM``) is derived on references that a search returned: LiveQA's questions over
MedQuAD (people graded the answers; 3 and 4 count as valid, what nobody graded is left out) and half of 400 questions of
PubMedQA (valid: the abstract that the question is the title of). Of 0.05, 0.10, ... it is the one above which the
poorer of the two shares of valid references is best, among those that keep ``LEAST`` references of each. The other half
of PubMedQA and the starter corpus (valid: the passage with the very words of the answer) were not looked at.

Of the extractive answers every citation set quotes its source, so that a rule decides; how often the judge alone would
call these very sets entailed is its own row: that is what its verdicts on other texts must be read with.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from localmed.agents.linking import VALIDITY, ValidityInput
from localmed.config import Settings
from localmed.domain import Hit, SearchFilter
from localmed.evaluation import link_files, links, medquad, pubmedqa
from localmed.evaluation.link_files import LinkRow
from localmed.ingest import manifest
from localmed.language import detect
from localmed.operations import importing, lookups
from localmed.session import Session
from localmed.verification import link_eval
from localmed.verification.link_eval import VALID_FROM, of_answer
from localmed.verification.verbatim import holds
from localmed.workflows.links import counts_of
from tests.benchmarks.common import Place, Row, met, percentile
from tests.benchmarks.known_item import MEDQUAD, PUBMEDQA
from tests.fakes import opened

CORPORA = Path(__file__).parents[2] / "corpora"
SEED = 1
ABSTRACTS = 400  # questions of PubMedQA; half of them to derive on
DEEP, SHALLOW = 20, 8  # references looked at a question: graded ones are rare; as many as are asked for
LEAST = 30  # references above a threshold, below which a share says little
STEPS = tuple(round(step / 20, 2) for step in range(1, 20))

Scored = Sequence[tuple[float, bool]]  # a reference's score, and whether it is valid
Valid = Callable[[Hit], bool | None]  # None: nobody knows


def run(place: Place) -> list[Row]:
    """The threshold, then the starter corpus."""
    graded, (derived, other) = liveqa(place), abstracts(place)
    with opened(Settings(Path(tempfile.mkdtemp(dir=place.work)))) as session:
        for file in sorted(CORPORA.glob("starter-*.toml")):
            importing.import_paths(
                session, [CORPORA / "starter" / file.stem.removeprefix("starter-")], manifest.load(file)
            )
        quoting = starter(session)
        evaluated = rows(session)
    best = threshold(graded, derived)
    how = (
        f"above {VALID_FROM}: {_share(graded)} of LiveQA's graded answers, {_share(derived)} of PubMedQA's first half "
        f"(derived on); {_share(other)} of its other half, {_share(quoting)} of the starter corpus (the very words)"
    )
    row = Row("Link-Eval, threshold for valid references", f"{VALID_FROM}", f"{best}", met(best == VALID_FROM), how)
    return [row, *evaluated]


def threshold(graded: Scored, derived: Scored) -> float:
    """The step with the best poorer share."""
    kept = [step for step in STEPS if min(len(_above(graded, step)), len(_above(derived, step))) >= LEAST]
    return max(kept, key=lambda step: min(_valid(graded, step), _valid(derived, step)))


def _above(scored: Scored, step: float) -> list[bool]:
    return [valid for score, valid in scored if score > step]


def _valid(scored: Scored, step: float) -> float:
    kept = _above(scored, step)
    return sum(kept) / len(kept)


def _share(scored: Scored) -> str:
    kept = _above(scored, VALID_FROM)
    return f"{_valid(scored, VALID_FROM):.1%} of {len(kept)}"


def scores(session: Session, question: str, limit: int, valid: Valid) -> Scored:
    """The references that a search returns for ``question``, scored as Link-Eval does; unknown ones left out."""
    hits = [hit for hit in session.search(question, SearchFilter(), limit).hits if valid(hit) is not None]
    validity_input = ValidityInput(question, tuple(hit.passage for hit in hits))
    with session.workspace() as workspace:
        judged = workspace.roles.perform(VALIDITY, validity_input) if hits else ()
    return [(score, bool(valid(hit))) for hit, score in zip(hits, judged, strict=True) if score is not None]


def liveqa(place: Place) -> Scored:
    """LiveQA's questions over the documents of MedQuAD that its judges graded."""
    folder, source = place.work / "medquad-judged", place.data / "medquad"
    archive = next(source.glob("QA-TestSet*.zip"))
    names = _judged(archive)
    files = {pair.judged_as: pair.record.partition("#")[0] for pair in medquad.answered(place.medquad())}
    for name in names & files.keys():
        (folder / files[name]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(place.medquad() / files[name], folder / files[name])
    queries = source / "TREC-2017-LiveQA-Medical-Test-Questions-w-summaries.xml"
    with opened(Settings(Path(tempfile.mkdtemp(dir=place.work)))) as session:
        importing.import_paths(session, [folder], MEDQUAD)
        documents = lookups.documents(session, MEDQUAD.collection.name)
        question_set = medquad.liveqa(place.medquad(), queries, archive, documents, SearchFilter(), "summary")
        return [
            score
            for question in question_set.questions
            for score in scores(session, question.text, DEEP, _graded(question_set.judgements.get(question.id, {})))
        ]


def _judged(archive: Path) -> set[str]:
    """What the documents of graded answers are called."""
    with zipfile.ZipFile(archive) as opened:
        member = next(name for name in opened.namelist() if name.endswith(".txt") and not name.startswith("__"))
        lines = opened.read(member).decode().splitlines()
    return {line.split()[2].rpartition("_Sec")[0] for line in lines if len(line.split()) == 3}


def _graded(gains: Mapping[str, int]) -> Valid:
    def valid(hit: Hit) -> bool | None:
        gain = gains.get(hit.passage.document_id)
        return None if gain is None else gain >= medquad.RELEVANT_FROM

    return valid


def abstracts(place: Place) -> tuple[Scored, Scored]:
    """PubMedQA's questions, in two halves."""
    file = place.data / "pubmedqa" / "ori_pqal.json"
    pairs = sorted(pubmedqa.questions(file), key=lambda pair: pair[1])
    random.Random(SEED).shuffle(pairs)
    with opened(Settings(Path(tempfile.mkdtemp(dir=place.work)))) as session:
        importing.import_paths(session, [file], PUBMEDQA)
        own = pubmedqa.records(lookups.documents(session, PUBMEDQA.collection.name))
        halves: tuple[list[tuple[float, bool]], list[tuple[float, bool]]] = ([], [])
        for place_of, (question, record) in enumerate(pairs[:ABSTRACTS]):
            document = own.get(record)
            judged = scores(session, question, SHALLOW, partial(_is_of, document))
            halves[place_of >= ABSTRACTS // 2].extend(judged)
    return halves


def _is_of(document: str | None, hit: Hit) -> bool:
    return hit.passage.document_id == document


def _says(gold: str, hit: Hit) -> bool | None:
    return holds(hit.passage.text, gold)


def starter(session: Session) -> Scored:
    """The starter corpus's English questions."""
    questions = link_files.questions(CORPORA / "starter_questions.toml")
    return [
        score
        for question in questions
        if question.gold
        for score in scores(session, question.text, SHALLOW, partial(_says, question.gold))
    ]


def rows(session: Session) -> list[Row]:
    """The metrics over the starter corpus's questions, the judge alone on the same quotations, and the time taken."""
    questions = link_files.questions(CORPORA / "starter_questions.toml")
    rows, seconds = [], []
    for question in questions:
        answer = session.ask(question.text, SearchFilter())
        if not answer.statements:
            rows.append(LinkRow(question.id, detect(question.text), answer.status.value))
            continue
        link_input, began = of_answer(answer, question.gold), time.perf_counter()
        counts = counts_of(session.links(link_input, SearchFilter()))
        seconds.append(time.perf_counter() - began)
        rows.append(LinkRow(question.id, detect(question.text), "answered", counts))
    return [_metrics(links.report(rows, {}, SEED)), _time(seconds)]


def _metrics(report: links.LinkReport) -> Row:
    figures = "; ".join(
        f"{metric.name.replace('_', ' ')} {'undefined' if metric.mean is None else links.shown(metric)}"
        + (f" ({links.interval(metric)})" if metric.interval else "")
        for metric in report.metrics
    )
    total = report.totals
    how = (
        f"{report.statuses.get('answered', 0)} of {report.questions} questions answered; {total['sets']} citation "
        f"sets, {total['verbatim_sets']} word for word, {total['unjudged_sets']} not judged; {total['conflicts']} of "
        f"{total['pairs']} pairs called contradictory (none is meant to be); defined for "
        f"{'/'.join(str(metric.defined) for metric in report.metrics)} questions"
    )
    return Row("Link-Eval, starter corpus, extractive answers", "", figures, "-", how)


def _time(seconds: Sequence[float]) -> Row:
    measured = f"p50 {percentile(seconds, 0.5):.2f} s, p95 {percentile(seconds, 0.95):.2f} s"
    how = f"{len(seconds)} answers, warm; looking for the references again included; {link_eval.MOST_COMPARED} "
    return Row("Link-Eval of one answer on starter", "", measured, "-", f"{how}statements are compared at most")
