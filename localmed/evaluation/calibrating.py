"""Calibrates abstention on a site's own labelled questions: what would be answered at each threshold, and how wrongly.

A question is searched as ``ask`` searches it, through every tier, and judged by rule. At a threshold the first tier
with a passage that reaches it answers; that answer is right if one of those passages holds the words that the file
gives (``evidence``; without words, if the question has an answer at all), else wrong. Reported are the curve of risk
over coverage, the area under it (Geifman & El-Yaniv 2017), and what the lowest threshold whose risk is shown to be at
most the site's would answer (``retrieval.relevance.lowest``). No question is written anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil, log
from pathlib import Path
from typing import Any

from localmed.agents.asking import Relevance
from localmed.config import AskSettings
from localmed.domain import Hit, Message, message
from localmed.errors import InputError
from localmed.evaluation.link_files import records, text_of
from localmed.files import csv_text
from localmed.language import clean, detect
from localmed.retrieval.across import other_language
from localmed.retrieval.calibration import Calibration, served
from localmed.retrieval.relevance import Fitted, Outcome, fitted, lowest
from localmed.retrieval.search import Found

LEVELS = tuple(round(0.98 - 0.02 * step, 2) for step in range(45))  # thresholds that are tried: 0.98 to 0.10
LEAST = 20  # questions without an answer, of a language: with fewer the risk of answering them is not seen
MOST = 20_000  # questions of a file: a night's work on starter
BLANKLESS = 60  # characters of the words that a passage must have: the rest may stand in the next one

JudgedTier = tuple[
    tuple[float, bool], ...
]  # of each passage of a tier its probability, and whether it holds the answer


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question, whether the library answers it, and words of that answer if they are given (any one counts)."""

    text: str = field(repr=False)
    answerable: bool
    evidence: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """What the judge for ``key`` (encoder, reranker, language) made of a question, tier by tier."""

    key: tuple[str, str, str]
    answerable: bool
    tiers: tuple[JudgedTier, ...]

    def outcome(self, level: float) -> bool | None:
        """Whether it is answered rightly at the threshold ``level``; None where it is not answered."""
        for tier in self.tiers:
            quoted = [holds for probability, holds in tier if probability >= level]
            if quoted:
                return self.answerable and any(quoted)
        return None

    @property
    def highest(self) -> float:
        """The threshold up to which it is answered."""
        return max((probability for tier in self.tiers for probability, _ in tier), default=0.0)


@dataclass(frozen=True, slots=True)
class Choice:
    """What the threshold ``level`` comes to.

    ``coverage`` is the share of the questions with an answer that are answered rightly, ``wrong`` the share of wrong
    ones among the answers, ``bound`` what that share is at most, with the site's confidence.
    """

    level: float
    coverage: float
    wrong: float
    bound: float


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What was measured for one encoder, reranker and language; ``outcomes`` have the highest threshold first.

    ``before`` is the threshold in force, ``after`` the one that was chosen: None where no threshold is shown to keep
    the site's risk. ``area`` lies under the curve of risk over coverage.
    """

    language: str
    encoder: str
    reranker: str
    answerable: int
    unanswerable: int
    outcomes: tuple[Outcome, ...]
    area: float
    before: Choice
    after: Choice | None


# --- the questions ----------------------------------------------------------------------------------------------------


def questions(file: Path) -> tuple[LabelledQuestion, ...]:
    """The questions of ``file`` (``link_files``' forms); raise ``InputError`` naming the one that is wrong."""
    rows = tuple(_question(file.name, number, record) for number, record in enumerate(records(file), 1))
    if not 0 < len(rows) <= MOST:
        raise InputError("evaluation.questions", count=len(rows), most=MOST, file=file.name)
    return rows


def _question(name: str, number: int, record: Mapping[str, Any]) -> LabelledQuestion:
    text = clean(text_of(record, "text") or text_of(record, "question")).strip()
    if not text:
        raise InputError("evaluation.no_text", number=number, file=name)
    answerable, words = record.get("answerable"), record.get("evidence", ())
    words = (words,) if isinstance(words, str) else words
    if not isinstance(answerable, bool) or not all(isinstance(word, str) for word in words):
        raise InputError("calibration.unlabelled", number=number, file=name)
    return LabelledQuestion(text, answerable, tuple(filter(None, map(_blankless, words))))


def _blankless(text: str) -> str:
    return "".join(text.casefold().split())


# --- asking -----------------------------------------------------------------------------------------------------------


def judged(
    rows: Iterable[LabelledQuestion],
    search: Callable[[str], Sequence[tuple[Found, Relevance]]],
    encoder: str,
    advance: Callable[[], None],
) -> list[JudgedQuestion]:
    """Each of ``rows`` by the tiers that ``search`` finds for it, as ``encoder`` (its slug) serves them."""
    results = []
    for row in rows:
        results.append(_judged(row, search(row.text), encoder))
        advance()
    return results


def _judged(row: LabelledQuestion, searched: Sequence[tuple[Found, Relevance]], encoder: str) -> JudgedQuestion:
    language = detect(row.text)
    own = [(result, relevance) for result, relevance in searched if not other_language(language, result.hits)]
    first = own[0][0] if own else None
    key = (encoder if first and first.dense else "", first.reranker if first else "", language)
    return JudgedQuestion(key, row.answerable, tuple(_tier(*tier, row) for tier in own))


def _tier(result: Found, relevance: Relevance, row: LabelledQuestion) -> JudgedTier:
    pairs = zip(result.hits, relevance.probabilities, strict=True)
    return tuple((probability, _holds(hit, row)) for hit, probability in pairs if probability >= LEVELS[-1])


def _holds(hit: Hit, row: LabelledQuestion) -> bool:
    text = _blankless(hit.passage.in_context)
    return not row.evidence or any(words[:BLANKLESS] in text for words in row.evidence)


# --- what it comes to -------------------------------------------------------------------------------------------------


def calibrated(rows: Sequence[JudgedQuestion], own: Sequence[Calibration], settings: AskSettings) -> list[Calibrated]:
    """The outcome for each combination of encoder, reranker and language that questions were judged by.

    ``own`` is what the site is calibrated by now. Raise ``InputError`` where too few questions tell.
    """
    results = []
    for key in sorted({row.key for row in rows}):
        some = [row for row in rows if row.key == key]
        unanswerable = sum(not row.answerable for row in some)
        if min(unanswerable, len(some) - unanswerable) < LEAST:
            raise InputError("calibration.few", language=key[2], count=unanswerable,
                             answerable=len(some) - unanswerable, least=LEAST)  # fmt: skip
        results.append(_of(key, some, served(own, *key), settings))
    return results


def needed(risk: float, confidence: float) -> int:
    """How many right answers, without a wrong one, show a risk of at most ``risk`` with ``confidence``."""
    return ceil(log(1 - confidence) / log(1 - risk)) if 0 < risk < 1 and confidence < 1 else MOST


def _of(key: tuple[str, str, str], rows: Sequence[JudgedQuestion], judge: Fitted, settings: AskSettings) -> Calibrated:
    outcomes = tuple(_outcome(rows, level) for level in LEVELS)
    answerable = sum(row.answerable for row in rows)
    encoder, reranker, language = key
    level = lowest(outcomes, settings.risk, settings.confidence)
    before = judge.threshold(settings.risk, settings.confidence, settings.unanswerable)
    return Calibrated(
        language, encoder, reranker, answerable, len(rows) - answerable, outcomes, area(rows),
        before=_choice(rows, before, settings), after=None if level is None else _choice(rows, level, settings),
    )  # fmt: skip


def _outcome(rows: Sequence[JudgedQuestion], level: float) -> Outcome:
    ends = [row.outcome(level) for row in rows]
    return Outcome(level, ends.count(True), ends.count(False))


def _choice(rows: Sequence[JudgedQuestion], level: float, settings: AskSettings) -> Choice:
    outcome = _outcome(rows, level)
    answered = outcome.right + outcome.wrong
    return Choice(
        level,
        outcome.right / sum(row.answerable for row in rows),
        outcome.wrong / answered if answered else 0.0,
        outcome.risk(settings.confidence) if answered else 0.0,
    )


def area(rows: Sequence[JudgedQuestion]) -> float:
    """The area under the curve of risk over coverage: the mean risk as one question after another is answered.

    0 is best; the share of questions that are answered wrongly at all is what a judge without knowledge comes to.
    """
    ordered = sorted(rows, key=lambda row: -row.highest)
    wrong, total = 0, 0.0
    for number, row in enumerate(ordered, 1):
        wrong += row.outcome(row.highest) is not True
        total += wrong / number
    return total / len(ordered)


def as_calibrations(results: Sequence[Calibrated], questions_digest: str, user: str) -> tuple[Calibration, ...]:
    """What is kept of ``results`` that have a threshold."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return tuple(
        Calibration(
            row.encoder, row.reranker, row.language, fitted(row.encoder, row.reranker, row.language).fingerprint,
            row.outcomes, row.answerable + row.unanswerable, questions_digest, user, now,
        )
        for row in results
        if row.after
    )  # fmt: skip


# --- reports ----------------------------------------------------------------------------------------------------------

Table = tuple[tuple[Message, ...], list[tuple[str, ...]]]


def table(results: Sequence[Calibrated]) -> Table:
    """The thresholds, before and now: columns and rows."""
    names = ("language", "answerable", "unanswerable", "threshold", "coverage", "wrong", "bound")
    return tuple(message(f"column.{name}") for name in names), [
        (row.language, str(row.answerable), str(row.unanswerable), *_cells(choice))
        for row in results
        for choice in (row.before, row.after)
        if choice
    ]


def _cells(choice: Choice) -> tuple[str, ...]:
    level = "-" if choice.level > 1 else f"{choice.level:.2f}"
    return level, f"{choice.coverage:.3f}", f"{choice.wrong:.3f}", f"{choice.bound:.3f}"


def as_csv(results: Sequence[Calibrated], confidence: float) -> str:
    """The curves: what each threshold answers rightly and wrongly, its coverage, risk and bound."""
    head = ("encoder", "reranker", "language", "threshold", "right", "wrong", "coverage", "risk", "bound")
    rows: list[tuple[str, ...]] = [head]
    for row in results:
        for one in row.outcomes:
            answered = one.right + one.wrong
            risk, bound = (one.wrong / answered, one.risk(confidence)) if answered else (0.0, 0.0)
            figures = (one.right / row.answerable, risk, bound)
            rows.append((row.encoder, row.reranker, row.language, f"{one.level:.2f}", str(one.right), str(one.wrong),
                         *(f"{figure:.4f}" for figure in figures)))  # fmt: skip
    return csv_text(rows)
