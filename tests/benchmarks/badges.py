"""The badge by rule: how often its criteria are wrong, and what badge and checks cost.

LiveQA's judged answers of MedQuAD (Ben Abacha & Demner-Fushman 2019; 2,479 answers to 104 questions, graded by people):
one of grade 3 or 4 answers its question, one of grade 2 is related. The five sentences of an answer with most of the
question's weight are quoted, under the name of its subject. The thresholds were chosen
on every question whose id's hash is even; the others are reported. That an answer is grounded is in planted_faults.py.

Times: a question to a verified extractive answer, warm, over the starter corpus; of it the gate alone (citations,
exceptions, badge) for an answer of five sentences.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from localmed.agents.extractive import units
from localmed.agents.judging import JudgingInput
from localmed.agents.judging_rules import JudgingRules
from localmed.config import Settings
from localmed.domain import Evidence, Passage, SearchFilter, Status, Support, Verdict, digest, message
from localmed.evaluation import medquad
from localmed.ingest import manifest
from localmed.library.lexical import LexicalIndex
from localmed.operations import importing
from localmed.retrieval.relevance import weigh
from localmed.session import Session
from tests.benchmarks.common import Place, Row, library, met, percentile
from tests.fakes import opened

CORPORA = Path(__file__).parents[2] / "corpora"
ANSWERS_FROM, RELATED_FROM = 2, 1  # gains: grade less one
QUOTED, READ = 5, 6000  # sentences; characters of an answer
SUBJECT = re.compile(r"(?:is \(are\)|symptoms of|diagnose|treatments for|causes|risk for|affected by|related to|outlook"
                     r" for|prevent|complications of|about|for|of|^Is) (.*?) ?(?:inherited)? ?\??$")  # fmt: skip
GATE_MS, ANSWER_S, RUNS = 300, 1.5, 3


def run(place: Place) -> list[Row]:
    """Errors and times, both over a fresh library of the starter corpus."""
    with opened(Settings(Path(tempfile.mkdtemp(dir=place.work)))) as session:
        for file in sorted(CORPORA.glob("starter-*.toml")):
            importing.import_paths(
                session, [CORPORA / "starter" / file.stem.removeprefix("starter-")], manifest.load(file)
            )
        return [*errors(place, session), *times(session)]


def errors(place: Place, session: Session) -> list[Row]:
    """How often each criterion is wrong, on the half that chose nothing; the library only weighs words."""
    rules = JudgingRules(library(session).lexical, session.site.encoder)
    wrong = {"answers": [0, 0], "related": [0, 0]}
    for question, gain, judging_input in _graded(place.data / "medquad", library(session).lexical):
        if int(hashlib.sha256(question.encode()).hexdigest(), 16) % 2 == 0:
            continue
        criteria = rules.judge(judging_input).criteria
        for name, judged, so in (("answers", criteria.answers, gain >= ANSWERS_FROM),
                               ("related", criteria.related, gain >= RELATED_FROM)):  # fmt: skip
            wrong[name][0] += judged != so
            wrong[name][1] += 1
    how = "LiveQA's graded answers of MedQuAD, the half of the questions that chose no threshold"
    return [
        Row(f"badge by rule, criterion {name} wrong", "", f"{bad} of {total} ({bad / total:.1%})", "-", how)
        for name, (bad, total) in wrong.items()
    ]


def _graded(folder: Path, index: LexicalIndex) -> Iterator[tuple[str, int, JudgingInput]]:
    queries = medquad._liveqa_questions(folder / "TREC-2017-LiveQA-Medical-Test-Questions-w-summaries.xml", "summary")
    by_id = {query.id: query.text for query in queries}
    judged, texts = medquad._opened(folder / "QA-TestSet-LiveQA-Med-Qrels-2479-Answers.zip")
    for question, answer, gain in judged:
        head, _, body = texts.get(answer, "").partition("Answer:")
        if question in by_id and body.strip():
            yield question, gain, _judging_input(by_id[question], head, body.strip()[:READ], index)


def _judging_input(text: str, head: str, body: str, index: LexicalIndex) -> JudgingInput:
    titled = re.search(r"Question:\s*(.*?)(?:\(Also|URL|$)", head, re.DOTALL)
    title = " ".join(titled[1].split()).rstrip(" ?") if titled else ""
    subject = SUBJECT.search(title)
    name = subject[1] if subject else title
    passage = Passage(digest(body), digest(name), "medquad", "en", "", name, (), body, f"0-{len(body)}")
    source = Evidence("1", passage, name, "", Status.CURRENT, "", "", "", "")
    question = weigh(text, index)
    spans = sorted(units(passage), key=lambda span: -question.coverage(index.analyse(body[span[0] : span[1]])))
    quoted = (source.quotation(start, end) for start, end in spans[:QUOTED])
    shown = tuple(
        replace(statement, verdict=Verdict(Support.VERBATIM, message("support.judge.quotation")))
        for statement in quoted
    )
    return JudgingInput(text, (source,), shown)


def times(session: Session) -> list[Row]:
    """A question to its verified answer, and the gate's part of it."""
    questions = tomllib.loads((CORPORA / "starter_questions.toml").read_text("utf-8"))["question"]
    whole, gate = [], []
    for number in range(RUNS + 1):
        for question in questions:
            began = time.perf_counter()
            answer = session.ask(question["text"], SearchFilter())
            seconds = time.perf_counter() - began
            if number and answer.statements:
                whole.append(seconds)
                answering = sum(step.seconds for step in answer.trace if step.name != "badge")
                gate += [seconds - answering] if len(answer.statements) >= QUOTED else []
    p95, slowest = percentile(whole, 0.95), percentile(gate, 0.95)
    how = f"{len(whole)} answered questions of the starter corpus, warm, reranking and checks included"
    return [
        Row(
            "question to verified extractive answer, p95", f"<= {ANSWER_S} s", f"{p95:.2f} s", met(p95 <= ANSWER_S), how
        ),
        Row(
            "citations, exceptions and badge of an answer of five sentences, p95", f"<= {GATE_MS} ms",
            f"{slowest * 1000:.0f} ms", met(slowest * 1000 <= GATE_MS),
            f"{len(gate)} answers; all but search and roles",
        ),
    ]  # fmt: skip
