"""The starter relevance judge (LINS, PRA, without a model): may this passage answer the question, and if not, why?

A logistic regression over the signals of ``retrieval.signals``. Its coefficients stand in ``relevance.toml``, one row
for each encoder, reranker and language that they were fitted for, with what was answered at each threshold of questions
whose documents were left out of the fit (tests/benchmarks/calibrate_relevance.py). The threshold is the lowest at which
the share of wrong ones among those answered is at most the site's risk: as many of the questions without an answer as
with the site's confidence may be answered (Clopper & Pearson 1934), in the site's mixture of both kinds.

With another encoder or reranker the words alone are judged, by the row without either; the reader is told that this
combination is not calibrated. A site may have the threshold chosen by questions of its own (``calibration.py``).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import comb, exp

from localmed.domain import Hit, Message, Passage, digest, message
from localmed.language import question_words
from localmed.library.lexical import LexicalIndex
from localmed.retrieval.signals import NAMES, Query, Signals, signals
from localmed.retrieval.topics import Topic

MAXSIM = "MaxSim"  # what the name of the starter reranker begins with
NEVER = 1.1  # no probability reaches it
NAMED = 3  # topics that a reason names, at most
WEAK = message("workflow.weak")
NAMELESS = message("workflow.nameless")


@dataclass(frozen=True, slots=True)
class Question:
    """The weight (inverse document frequency) of each of a question's index terms."""

    weights: dict[str, float]

    def coverage(self, words: Iterable[str]) -> float:
        """The share of the question's weight that ``words`` hold; 0 for a question without words."""
        total = sum(self.weights.values())
        have = set(words)
        return sum(weight for term, weight in self.weights.items() if term in have) / total if total else 0.0


def weigh(question: str, index: LexicalIndex) -> Question:
    """The terms of ``question`` as ``index`` weighs them; a word the index has never seen weighs most."""
    terms = list(dict.fromkeys(index.analyse(" ".join(question_words(question)), for_query=True)))
    return Question(dict(zip(terms, index.rarity(terms), strict=True)))


# --- the fitted judge -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Point:
    """What is answered at the threshold ``level``: of the ``answerable`` questions, and of those without an answer."""

    level: float
    answered: int
    answerable: int
    wrong: int
    unanswerable: int

    def risk(self, confidence: float, unanswerable: float) -> float:
        """The share of wrong answers, at most, where the share ``unanswerable`` of all questions has no answer."""
        wrong = unanswerable * upper_bound(self.wrong, self.unanswerable, confidence)
        right = (1 - unanswerable) * self.answered / self.answerable if self.answerable else 0.0
        return wrong / (wrong + right) if wrong + right else 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a site's own questions came to at the threshold ``level``: so many ``right`` answers and ``wrong`` ones."""

    level: float
    right: int
    wrong: int

    def risk(self, confidence: float) -> float:
        """The share of wrong ones among the answers, at most."""
        return upper_bound(self.wrong, self.right + self.wrong, confidence)


def lowest(outcomes: Sequence[Outcome], risk: float, confidence: float) -> float | None:
    """The lowest threshold at which wrong answers are at most ``risk`` with ``confidence``; None where none is shown.

    ``outcomes`` have the highest threshold first and are tested in this order until one fails (fixed sequence:
    Angelopoulos et al. 2021, Learn then Test), from the first on with answers enough to show it. That depends on how
    many are answered and not on which are wrong, so that every test keeps its confidence.
    """
    shown = None
    for outcome in outcomes:
        answered = outcome.right + outcome.wrong
        if not answered or (shown is None and upper_bound(0, answered, confidence) > risk):
            continue
        if outcome.risk(confidence) > risk:
            break
        shown = outcome.level
    return shown


@dataclass(frozen=True, slots=True)
class Fitted:
    """The weights of the signals in the order of ``NAMES`` and the intercept, for one encoder, reranker and language.

    ``curve`` has the highest threshold first, as have ``own``, a site's outcomes that are taken in its place.
    ``calibrated`` is False where it serves in place of another, or of one that a site's questions were asked of.
    """

    weights: tuple[float, ...]
    intercept: float
    curve: tuple[Point, ...]
    calibrated: bool = True
    own: tuple[Outcome, ...] = ()

    @property
    def fingerprint(self) -> str:
        """Another one for other weights."""
        return digest(repr(NAMES), repr(self.weights), repr(self.intercept))

    def probability(self, one: Signals) -> float:
        """That the passage holds an answer."""
        total = sum(weight * value for weight, value in zip(self.weights, one.values, strict=True))
        return 1.0 / (1.0 + exp(-max(-60.0, min(60.0, total + self.intercept))))

    def threshold(self, risk: float, confidence: float, unanswerable: float) -> float:
        """The lowest at which wrong answers are at most ``risk`` of all with ``confidence``; else the least risky one.

        Above 1 for a risk of 0: nothing is answered.
        """
        if self.own and (own := lowest(self.own, risk, confidence)) is not None:
            return own
        risks = {point.level: point.risk(confidence, unanswerable) for point in self.curve}
        kept = [level for level, bound in risks.items() if bound <= risk]
        return NEVER if not risk else min(kept) if kept else min(risks, key=lambda level: (risks[level], level))


def fitted(encoder: str, reranker: str, language: str) -> Fitted:
    """What was fitted for this combination; else the judge of words alone, not calibrated.

    ``encoder`` is the slug of its identity, "" where similarities do not count.
    """
    rows = _rows()
    exact = rows.get((encoder, reranker if encoder else "", language))
    return exact or replace(rows.get(("", "", language)) or rows["", "", "en"], calibrated=False)


@cache
def _rows() -> dict[tuple[str, str, str], Fitted]:
    text = files(__package__).joinpath("relevance.toml").read_text("utf-8")
    return {
        (row["encoder"], row["reranker"], row["language"]): Fitted(
            tuple(float(row["weights"].get(name, 0.0)) for name in NAMES),
            float(row["intercept"]),
            tuple(Point(*point) for point in row["curve"]),
        )
        for row in tomllib.loads(text)["fitted"]
    }


@cache
def upper_bound(wrong: int, answered: int, confidence: float) -> float:
    """The share of wrong ones that is exceeded with at most 1 - ``confidence`` (one-sided, Clopper & Pearson 1934)."""
    if wrong >= answered:
        return 1.0
    low, high = wrong / answered, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        below = sum(comb(answered, k) * middle**k * (1 - middle) ** (answered - k) for k in range(wrong + 1))
        low, high = (middle, high) if below > 1 - confidence else (low, middle)
    return high


def judged(question: str, hits: Sequence[Hit], index: LexicalIndex, judge: Fitted) -> tuple[tuple[float, Signals], ...]:
    """The probability that each of ``hits`` holds an answer, and why.

    0 for a question without words, and for a passage that names none of the things asked about that a table knows.
    """
    query = Query.of(question, index)
    read = (signals(query, hit, index) for hit in hits)
    return tuple((judge.probability(one) if query.topics.topics and one.absent < 1 else 0.0, one) for one in read)


# --- why not ----------------------------------------------------------------------------------------------------------


def reason(question: str, read: Sequence[Signals], index: LexicalIndex) -> Message:
    """Why the passages ``read`` of, likeliest first, do not answer; only what is true of all of them is said.

    Subject missing (no passage has any of its names), subject split from what is asked of it, slot missing, or nothing
    but that none was found. Of words that no table knows other names may stand there: they are no reason, but for
    English ones where all is English.
    """
    query = Query.of(question, index)
    nowhere = tuple(topic for topic in query.topics.topics if topic.subject and _nowhere(topic, index))
    if nowhere:
        return message("workflow.subject_missing", words=_written(nowhere))
    split = tuple(topic for topic in read[0].lacking if topic.listed) if read else ()
    if split and all(one.lacking for one in read):
        return message("workflow.subject_split", words=_written(split))
    about = [one for one in read if not one.lacking]
    if about and all(one.unfilled for one in about):
        slot = Message(f"workflow.slot.{query.slots[0].name}")
        return message("workflow.slot_missing", slot=slot)
    return WEAK


def _nowhere(topic: Topic, index: LexicalIndex) -> bool:
    """Whether the library surely has no name of ``topic``: its names are known in every language that it holds."""
    pairs = [[term for term in name if term.isascii() or len(term) < 3] for name in topic.names]
    if any(index.holds_terms(name) for name in pairs):
        return False
    ascii_names = {all(term.isascii() for term in name) for name in topic.names}
    unknown = [language for language, ascii_name in (("en", True), ("zh", False)) if ascii_name not in ascii_names]
    sure = topic.listed or (topic.written.isascii() and topic.written.isalpha())
    return sure and not any(index.count("language", language) for language in unknown)


def _written(missing: Sequence[Topic]) -> tuple[str, ...]:
    rarest = sorted(missing, key=lambda topic: -topic.rarity)
    return tuple(topic.written for topic in rarest[:NAMED])


def searched_text(passage: Passage) -> str:
    """All the words of a passage that are searched: title, headings, text."""
    return " ".join((passage.title, *passage.headings, passage.text))
