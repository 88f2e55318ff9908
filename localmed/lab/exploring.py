"""Exploring and judging queries for source planning (Omni-RAG, source planning optimisation, 4.2.1 and 4.2.2).

For each question and source a chat model writes several queries with a temperature, each drawing shown the previous
ones; duplicates count once. The rules add the question itself and its terms in the concept graph. Each query is
searched once in its source and judged: positive if its passages lead to the right answer more surely than no passages
do, else negative. So the reader's own knowledge is credited to no query, the paper's objection to judging by the
reader's answer (A.2).

Drawings and judgements are stored when finished (``rows``), so nothing is repeated after an interruption. They contain
queries and so parts of the questions. The concept graph is not explored: its cards are not passages.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from localmed.answering.chat import TEMPERATURE
from localmed.answering.evidence import object_of
from localmed.answering.planning import DESCRIBED, PLAN, QUERIES, PlanInput, SourcePlan, is_query, written
from localmed.answering.roles import Writing, instructions
from localmed.domain import Evidence, Hit, digest
from localmed.domain.errors import Rejected
from localmed.domain.ports import CountingChat, Message, Request
from localmed.lab.reporting import Rows, line, stored, writable
from localmed.lab.sets import Question
from localmed.library.intact import sha256_of
from localmed.process import files
from localmed.text.language import detect

CANDIDATES = 6  # queries of a source that the model writes (Omni-RAG, A.1)
DRAWS = 2  # the second where the first repeats itself
CHARACTERS = 70  # of a query; the paper's have 4 to 7 words, and longer ones mostly repeat themselves
TOKENS = 30  # of a query in JSON

WRITE = instructions("source_queries")
SOURCE, BEFORE = instructions("source_of_queries"), instructions("queries_before")


@dataclass(frozen=True, slots=True)
class Drawn:
    """The valid queries that a model wrote for a question and a source."""

    question: str
    source: str
    queries: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Judged:
    """The judgement of a query's passages; of the question without passages where ``source`` is "".

    ``score`` is how surely they lead to the right answer, 0 to 1; ``right``: whether they do.
    """

    question: str
    source: str
    query: str
    passages: tuple[str, ...]
    right: bool
    score: float
    seconds: float

    def better(self, base: Judged) -> bool:
        """Whether the query is positive, compared with ``base``, the question without passages."""
        return self.right and self.score > base.score


Read = Callable[[str, tuple[Evidence, ...]], Sequence[float]]  # question id -> the probability of each option


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges, for a question's id, whether passages lead to its right answer and how surely, 0 to 1."""

    name: str  # for manifests
    judge: Callable[[str, Sequence[Hit]], tuple[bool, float]]


def by_documents(judgements: Mapping[str, Mapping[str, int]]) -> Judge:
    """A judge by documents known to contain the answer; ``judgements[question id][document id]`` is a gain.

    The score is the reciprocal rank of the first of them.
    """

    def judge(question: str, hits: Sequence[Hit]) -> tuple[bool, float]:
        gains = judgements.get(question, {})
        ranks = [place for place, hit in enumerate(hits, 1) if gains.get(hit.passage.document_id, 0) > 0]
        return bool(ranks), 1 / ranks[0] if ranks else 0.0

    return Judge("documents", judge)


def by_reader(answers: Mapping[str, int], read: Read, cite: Callable[[tuple[Hit, ...]], tuple[Evidence, ...]]) -> Judge:
    """A judge by a reader that chooses among a question's options; ``answers`` are the places of the right ones.

    The score is the probability of the right option.
    """

    def judge(question: str, hits: Sequence[Hit]) -> tuple[bool, float]:
        probabilities = read(question, cite(tuple(hits)) if hits else ())
        right = probabilities[answers[question]]
        return sum(value >= right for value in probabilities) == 1, right

    return Judge("reader", judge)


Search = Callable[[str, str], tuple[Hit, ...]]  # (source, query) -> its passages, best first
Terms = Callable[[str], Sequence[str]]
Kept = Rows[Drawn | Judged]
KEPT = ((Drawn, Judged), "question", "source", "query")  # how rows are read, and named


@dataclass(frozen=True, slots=True)
class Explorer:
    """Writes, searches and judges queries: at most ``candidates`` written ones for each source."""

    chat: CountingChat
    sources: tuple[str, ...]
    search: Search
    judge: Judge
    terms: Terms
    candidates: int = CANDIDATES
    seed: int = 1
    cache: dict[tuple[str, str], tuple[Hit, ...]] = field(default_factory=dict)

    def units(self, question: Question, kept: Kept) -> Iterator[Drawn | Judged]:
        """Every row of ``question``, reusing ``kept`` ones; drawings precede judgements."""
        yield kept.get((question.id, "", ""), partial(self._judge_query, question, "", ""))
        for source in self.sources:
            row = kept.get((question.id, source, ""), partial(self._draw, question, source))
            yield row
            assert isinstance(row, Drawn)
            for query in self.queries(question, row):
                yield kept.get((question.id, source, query), partial(self._judge_query, question, source, query))

    def queries(self, question: Question, drawn: Drawn) -> tuple[str, ...]:
        """The distinct queries to judge for a source: the model's and the rules'."""
        rules = (question.text, " ".join(self.terms(question.text)))
        return distinct([*drawn.queries, *(query for query in rules if is_query(query))])

    def requests(self, question: Question) -> list[Request]:
        """The first request of each source, to estimate the cost."""
        return [self._request(question, source, (), 0) for source in self.sources]

    def _draw(self, question: Question, source: str) -> Drawn:
        began = time.perf_counter()
        queries: tuple[str, ...] = ()
        for draw in range(DRAWS):
            texts = self._read_queries(self._request(question, source, queries, draw))
            queries = distinct([*queries, *(text for text in texts if is_query(text))])[: self.candidates]
            if len(queries) == self.candidates:
                break
        return Drawn(question.id, source, queries, round(time.perf_counter() - began, 3))

    def _read_queries(self, request: Request) -> list[str]:
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

    def _judge_query(self, question: Question, source: str, query: str) -> Judged:
        began = time.perf_counter()
        hits = self._search_once(source, query) if source else ()
        right, score = self.judge.judge(question.id, hits)
        passages = tuple(hit.passage.id for hit in hits)
        seconds = round(time.perf_counter() - began, 3)
        return Judged(question.id, source, query, passages, right, round(score, 6), seconds)

    def _search_once(self, source: str, query: str) -> tuple[Hit, ...]:
        if (source, query) not in self.cache:
            self.cache[source, query] = self.search(source, query)
        return self.cache[source, query]


def distinct(queries: Sequence[str]) -> tuple[str, ...]:
    """``queries`` without repetitions that differ only in case and blanks."""
    return tuple({" ".join(query.casefold().split()): query for query in reversed(queries)}.values())[::-1]


# --- plans to learn from ----------------------------------------------------------------------------------------------

# The paper's rules (4.2.3): the positive plan has up to three positive queries of each source, drawn if there are more;
# a source without one stays empty; a question without any is skipped, as is one whose judging is incomplete. The
# negative plan is built from negative queries in the same way. Only a question with both plans is a pair for direct
# preference optimisation. A file of pairs contains the questions and queries.


@dataclass(frozen=True, slots=True)
class Pair:
    """A question, its sources, a positive plan, and a negative one ("": none)."""

    question: str
    text: str
    sources: tuple[str, ...]
    positive: str
    negative: str

    @property
    def messages(self) -> tuple[Message, ...]:
        """The prompt of the planner, identical to that of the role ``plan``."""
        form = PLAN.form
        assert isinstance(form, Writing)
        task = PlanInput(self.text, self.sources)
        return Message("system", PLAN.instructions[task.language]), Message("user", form.prompt(task))


def pairs(
    explored: Iterable[Drawn | Judged], questions: Sequence[Question], sources: tuple[str, ...], seed: int
) -> list[Pair]:
    """The pairs of ``questions`` in their order; deterministic for the same rows and seed."""
    base: dict[str, Judged] = {}
    judged: dict[str, dict[str, list[Judged]]] = defaultdict(lambda: defaultdict(list))
    for row in explored:
        if isinstance(row, Drawn):
            judged[row.question][row.source] += []
        elif row.source:
            judged[row.question][row.source].append(row)
        else:
            base[row.question] = row
    made = []
    for question in questions:
        if question.id in base and set(judged[question.id]) == set(sources):
            better, worse = _plans(judged[question.id], base[question.id], f"{seed} {question.id}")
            if not better.empty:
                texts = (written(better, sources), "" if worse.empty else written(worse, sources))
                made.append(Pair(question.id, question.text, sources, *texts))
    return made


def _plans(by_source: Mapping[str, Sequence[Judged]], base: Judged, seed: str) -> tuple[SourcePlan, SourcePlan]:
    draw = random.Random(seed)  # noqa: S311  (a sample, not a secret)
    plans = []
    for positive in (True, False):
        named: dict[str, Any] = {}
        for source, judged in by_source.items():
            queries = [row.query for row in judged if row.better(base) is positive]
            chosen = draw.sample(range(len(queries)), min(QUERIES, len(queries)))
            named[source] = tuple(queries[place] for place in sorted(chosen))
        plans.append(SourcePlan(**named))
    return plans[0], plans[1]


def write(file: Path, made: Mapping[str, Any], pairs: Sequence[Pair], explored: Path) -> None:
    """Write ``pairs`` after a line with what they are ``made`` with and a hash of ``explored``, atomically."""
    made = {**made, "explored": sha256_of(explored)}
    with writable(file):
        files.replace(file, "".join(map(line, (made, *map(asdict, pairs)))).encode())


def read(file: Path) -> list[Pair]:
    """The pairs of a file; raise ``InputError`` where it cannot be read."""
    return stored(file, Pair)[1]
