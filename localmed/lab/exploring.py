"""Exploring and judging queries for source planning (Omni-RAG, source planning optimisation, 4.2.1 and 4.2.2).

For each question and each source a chat model writes several queries, with a temperature, each drawing shown what was
written before; what it wrote twice counts once. Beside them stand the queries of the rules: the question itself, and
its keywords. Each query is searched in its source once, and judged: positive where its passages lead to the right
answer and more surely than no passages do, negative otherwise; a tie is negative. So what a reader knows by itself is
credited to no query, which the paper holds against judging by the reader's answer (A.2).

Rows, one for each drawing and each judgement, are written as they are finished and outlive the process
(``evaluation.rows``): nothing is drawn or judged twice. They hold queries, and so what the questions say. Not explored
is the concept graph: its cards are no passages.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from localmed.answering.chat import TEMPERATURE
from localmed.answering.evidence import object_of
from localmed.answering.planning import DESCRIBED
from localmed.answering.prompts import instructions
from localmed.answering.source_plan import QUERIES, holds
from localmed.domain import Evidence, Hit, digest
from localmed.domain.errors import Rejected
from localmed.domain.ports import CountingChat, Message, Request
from localmed.lab import rows
from localmed.lab.sets import Question
from localmed.text.language import detect

CANDIDATES = 6  # queries of a source that the model writes (Omni-RAG, A.1)
DRAWS = 2  # the second where the first repeats itself
CHARACTERS = 70  # of a query; the paper's have 4 to 7 words, and what is longer mostly repeats itself
TOKENS = 30  # of a query in JSON

WRITE = instructions("source_queries")
SOURCE = {"en": "Question: {question}\nSource: {source}", "zh": "问题：{question}\n来源：{source}"}
BEFORE = {"en": "Already written, not to be repeated: {queries}", "zh": "已写过、不得重复：{queries}"}


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a model wrote for a question and a source, those that a plan can hold."""

    question: str
    source: str
    queries: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Judged:
    """What the passages of a query come to; of the question without passages where ``source`` is "".

    ``score`` says how surely they lead to the right answer, 0 to 1; ``right`` whether they do.
    """

    question: str
    source: str
    query: str
    passages: tuple[str, ...]
    right: bool
    score: float
    seconds: float

    def better(self, base: Judged) -> bool:
        """Whether the query is positive, beside what the question comes to without passages."""
        return self.right and self.score > base.score


class Judge(Protocol):
    """Tells whether passages lead to a question's right answer."""

    @property
    def name(self) -> str:
        """Name, for manifests."""
        ...

    def judge(self, question: str, hits: Sequence[Hit]) -> tuple[bool, float]:
        """Whether ``hits`` lead to the right answer of the question with this id, and how surely, 0 to 1."""
        ...


@dataclass(frozen=True, slots=True)
class DocumentJudge:
    """By documents that are known to hold the answer: ``judgements[question id][document id]`` is a gain."""

    judgements: Mapping[str, Mapping[str, int]]
    relevant_from: int = 1
    name = "documents"

    def judge(self, question: str, hits: Sequence[Hit]) -> tuple[bool, float]:
        """See ``Judge``; the score is one over the rank of the first of them."""
        gains = self.judgements.get(question, {})
        ranks = [
            place for place, hit in enumerate(hits, 1) if gains.get(hit.passage.document_id, 0) >= self.relevant_from
        ]
        return bool(ranks), 1 / ranks[0] if ranks else 0.0


Read = Callable[[str, tuple[Evidence, ...]], Sequence[float]]  # question id -> the probability of each option


@dataclass(frozen=True, slots=True)
class ReaderJudge:
    """By a reader that chooses among a question's options with the passages; ``answers`` are the right ones' places."""

    answers: Mapping[str, int]
    read: Read
    cite: Callable[[tuple[Hit, ...]], tuple[Evidence, ...]]
    name = "reader"

    def judge(self, question: str, hits: Sequence[Hit]) -> tuple[bool, float]:
        """See ``Judge``; the score is the probability of the right option."""
        probabilities = self.read(question, self.cite(tuple(hits)) if hits else ())
        right = probabilities[self.answers[question]]
        return sum(value >= right for value in probabilities) == 1, right


Search = Callable[[str, str], tuple[Hit, ...]]  # (source, query) -> its passages, best first
Keywords = Callable[[str], Sequence[str]]
Kept = dict[tuple[str, str, str], Drawn | Judged]


@dataclass(frozen=True, slots=True)
class Explorer:
    """What explores: the model that writes, the sources, their search, the judge. ``candidates`` a source."""

    chat: CountingChat
    sources: tuple[str, ...]
    search: Search
    judge: Judge
    keywords: Keywords
    candidates: int = CANDIDATES
    seed: int = 1
    cache: dict[tuple[str, str], tuple[Hit, ...]] = field(default_factory=dict)

    def units(self, question: Question, kept: Kept) -> Iterator[Drawn | Judged]:
        """Every row of ``question``, those that are ``kept`` as they are; drawn before judged."""
        yield kept.get((question.id, "", "")) or self._judged(question, "", "")
        for source in self.sources:
            row = kept.get((question.id, source, "")) or self._drawn(question, source)
            yield row
            assert isinstance(row, Drawn)
            for query in self.queries(question, row):
                yield kept.get((question.id, source, query)) or self._judged(question, source, query)

    def queries(self, question: Question, drawn: Drawn) -> tuple[str, ...]:
        """What is judged for a source: the model's queries and the rules', each once."""
        rules = (question.text, " ".join(self.keywords(question.text)))
        return distinct([*drawn.queries, *(query for query in rules if holds(query))])

    def requests(self, question: Question) -> list[Request]:
        """The first drawing of each source, for an estimate of what exploring costs."""
        return [self._request(question, source, (), 0) for source in self.sources]

    def _drawn(self, question: Question, source: str) -> Drawn:
        began = time.perf_counter()
        queries: tuple[str, ...] = ()
        for draw in range(DRAWS):
            texts = self._written(self._request(question, source, queries, draw))
            queries = distinct([*queries, *(text for text in texts if holds(text))])[: self.candidates]
            if len(queries) == self.candidates:
                break
        return Drawn(question.id, source, queries, round(time.perf_counter() - began, 3))

    def _written(self, request: Request) -> list[str]:
        """The queries of a reply; none where it cannot be used."""
        try:
            value = self.chat.complete(request).value
        except Rejected:
            return []
        return [" ".join(str(text).split()) for text in value["queries"]]

    def _request(self, question: Question, source: str, before: tuple[str, ...], draw: int) -> Request:
        language = detect(question.text)
        described = f"{source}: {DESCRIBED[language][source]}"
        lines = [SOURCE[language].format(question=question.text, source=described)]
        lines += [BEFORE[language].format(queries=" ; ".join(before))] if before else []
        system = Message("system", WRITE[language].replace("{count}", str(self.candidates)))
        item = {"type": "string", "minLength": 3, "maxLength": CHARACTERS}
        schema = object_of({"queries": {"type": "array", "items": item, "minItems": self.candidates,
                                        "maxItems": self.candidates}})  # fmt: skip
        drawn_with = int(digest(f"{self.seed}", question.id, source, f"{draw}")[:7], 16)
        messages = (system, Message("user", "\n".join(lines)))
        return Request(messages, TOKENS * self.candidates + TOKENS, schema, TEMPERATURE, drawn_with)

    def _judged(self, question: Question, source: str, query: str) -> Judged:
        began = time.perf_counter()
        hits = self._searched(source, query) if source else ()
        right, score = self.judge.judge(question.id, hits)
        passages = tuple(hit.passage.id for hit in hits)
        seconds = round(time.perf_counter() - began, 3)
        return Judged(question.id, source, query, passages, right, round(score, 6), seconds)

    def _searched(self, source: str, query: str) -> tuple[Hit, ...]:
        if (source, query) not in self.cache:
            self.cache[source, query] = self.search(source, query)
        return self.cache[source, query]


def distinct(queries: Sequence[str]) -> tuple[str, ...]:
    """``queries`` without those that repeat an earlier one but for case and blanks."""
    return tuple({" ".join(query.casefold().split()): query for query in reversed(queries)}.values())[::-1]


def begin(file: Path, made: Mapping[str, str], resume: bool) -> Kept:
    """The rows that are finished; see ``rows.begin``."""
    kept: Kept = {}
    for piece in rows.begin(file, made, resume):
        if row := _row(piece):
            kept[row.question, row.source, getattr(row, "query", "")] = row
    return kept


def read(file: Path) -> tuple[Mapping[str, Any], list[Drawn | Judged]]:
    """What a finished file was made with, and its rows."""
    made, pieces = rows.read(file)
    return made, [row for row in map(_row, pieces) if row]


def _row(piece: Any) -> Drawn | Judged | None:
    try:
        if "queries" in piece:
            return Drawn(**piece | {"queries": tuple(piece["queries"])})
        return Judged(**piece | {"passages": tuple(piece["passages"])})
    except TypeError:
        return None


def run(
    explorer: Explorer, questions: Sequence[Question], file: Path, kept: Kept, advance: Callable[[float, str], object]
) -> Iterator[list[Drawn | Judged]]:
    """The rows of each of ``questions`` once it is finished; a fresh row is in ``file`` before the next is made."""
    for question in questions:
        finished: list[Drawn | Judged] = []
        for row in explorer.units(question, kept):
            if kept.get((row.question, row.source, getattr(row, "query", ""))) is not row:
                rows.keep(file, asdict(row))
            finished.append(row)
        advance(1, explorer.judge.name)
        yield finished


assert CANDIDATES >= QUERIES
