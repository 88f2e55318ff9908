"""The recipe of the relevance judge (``localmed/retrieval/relevance.py``): its weights, the curve of its thresholds.

Logistic regression over the signals of every passage that was found, ridge on standardised signals, by Newton's
method, a second for a thousand questions. Of a question with an answer the passages that hold it count, of one without
the ``HARDEST``; each question weighs one. The curve is of judges that were fitted without the question's group, which
is a document, an author or a part of a site's questions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from localmed.clinical import qualifiers
from localmed.domain import Hit
from localmed.language import detect
from localmed.library.lexical import LexicalIndex
from localmed.retrieval.relevance import Point
from localmed.retrieval.signals import NAMES, Query, signals

PENALTY = 3.0
HARDEST = 3  # passages of a question without an answer that are fitted on
STEPS = 50  # of Newton's method
EVIDENCE = 60  # characters of an answer's words that a passage must have: the rest may stand in the next one
LEVELS = tuple(round(0.95 - 0.05 * step, 2) for step in range(14))  # thresholds of the curve

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A question, the words of its answer (() where the library has none), and the ``group`` it is left out with."""

    text: str
    evidence: tuple[str, ...]
    group: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """A question as the judge sees it: the signals of each passage (N, S), and which of them hold the answer (N,)."""

    question: Labelled
    values: Matrix
    holds: npt.NDArray[np.bool_]

    @property
    def language(self) -> str:
        """The question's."""
        return detect(self.question.text)

    @property
    def answerable(self) -> bool:
        """Whether the library has an answer."""
        return bool(self.question.evidence)


def read(question: Labelled, hits: Sequence[Hit], index: LexicalIndex) -> Judged:
    """The signals of ``hits``, less those of another population, disease or purpose (``clinical.qualifiers``)."""
    query = Query.of(question.text, index)
    kept = [hit for hit in hits if not qualifiers.differing(question.text, hit.passage)]
    texts = [plain(hit.passage.in_context) for hit in kept]
    holds = [any(plain(words)[:EVIDENCE] in text for words in question.evidence) for text in texts]
    values = [signals(query, hit, index).values for hit in kept]
    return Judged(question, np.array(values, float).reshape(-1, len(NAMES)), np.array(holds, bool))


def plain(text: str) -> str:
    """``text`` as it is compared with the words of an answer: without blanks, whatever its case."""
    return "".join(text.casefold().split())


def fit(rows: Sequence[Judged], columns: Sequence[int]) -> Matrix:
    """The weights of the ``columns`` and the intercept."""
    chosen = [(row.values[places][:, columns], row.answerable) for row in rows if (places := _places(row))]
    signal = np.concatenate([values for values, _ in chosen])
    label = np.concatenate([np.full(len(values), answered, float) for values, answered in chosen])
    weight = np.concatenate([np.full(len(values), 1 / len(values)) for values, _ in chosen])
    mean, deviation = signal.mean(0), signal.std(0) + 1e-6
    inputs = np.c_[(signal - mean) / deviation, np.ones(len(signal))]
    penalty = np.eye(inputs.shape[1]) * PENALTY
    penalty[-1, -1] = 1e-9
    beta = np.zeros(inputs.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-np.clip(inputs @ beta, -60, 60)))
        gradient = inputs.T @ (weight * (chance - label)) + penalty @ beta
        curvature = (inputs.T * (weight * chance * (1 - chance))) @ inputs + penalty
        beta -= np.linalg.solve(curvature, gradient)
    slopes = beta[:-1] / deviation
    return np.append(slopes, beta[-1] - slopes @ mean)


def _places(row: Judged) -> list[int]:
    if row.answerable:
        return list(map(int, np.flatnonzero(row.holds)))
    return list(map(int, np.argsort(-row.values[:, :3].sum(1), kind="stable")[:HARDEST]))


def probability(row: Judged, columns: Sequence[int], beta: Matrix) -> float:
    """The highest of its passages."""
    if not len(row.values):
        return 0.0
    return float(1 / (1 + np.exp(-np.clip((row.values[:, columns] @ beta[:-1] + beta[-1]).max(), -60, 60))))


def left_out(
    rows: Sequence[Judged], columns: Sequence[int], group: Callable[[Judged], str] = lambda row: row.question.group
) -> list[tuple[Judged, float]]:
    """Each question with its probability by a judge that was fitted without its ``group``."""
    scored = []
    for name in dict.fromkeys(map(group, rows)):
        others = [row for row in rows if group(row) != name]
        if {row.answerable for row in others} == {True, False}:
            beta = fit(others, columns)
            scored += [(row, probability(row, columns, beta)) for row in rows if group(row) == name]
    return scored


def curve(scored: Sequence[tuple[Judged, float]]) -> tuple[Point, ...]:
    """How many are answered at each of ``LEVELS``, of those with an answer and of those without."""
    with_answer, without = ([chance for row, chance in scored if row.answerable == kind] for kind in (True, False))
    return tuple(
        Point(level, _above(with_answer, level), len(with_answer), _above(without, level), len(without))
        for level in LEVELS
    )


def _above(chances: Sequence[float], level: float) -> int:
    return sum(chance >= level for chance in chances)


def area(scored: Sequence[tuple[Judged, float]]) -> float:
    """The area under the risk-coverage curve (Geifman & El-Yaniv 2017): the mean risk over all coverages, 0 to 1."""
    order = sorted(scored, key=lambda pair: -pair[1])
    wrong = np.cumsum([not row.answerable for row, _ in order])
    return float(np.mean(wrong / np.arange(1, len(order) + 1)))
