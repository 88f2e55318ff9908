"""A trained planner beside the same model prompted, on questions held out of training (Omni-RAG, Tables 4 and 7).

Arms: ``prompting`` (the chat model in the role ``plan``), ``tuned`` (the trained planner), ``rules`` (the question and
its keywords to every source). A plan that cannot be read gives way to the rules', as it does when it serves; how often
it could be read is reported, and what the plans that could be read come to by themselves. Judged are the passages that
a reader would see, those of all sources in turn, by the judge that judged the training (``exploring``).

Rows hold ids and counts, never a text; they outlive the process (``evaluation.rows``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from localmed.answering.planning import PLAN, PlanInput
from localmed.answering.roles import Performer
from localmed.answering.source_plan import SOURCES, SourcePlan
from localmed.domain import Hit, Message, message
from localmed.domain.errors import Rejected
from localmed.lab import measures, rows
from localmed.lab.exploring import Judge
from localmed.lab.sets import Question

PROMPTING, TUNED, RULES = ARMS = ("prompting", "tuned", "rules")

Gather = Callable[[str, SourcePlan], tuple[Hit, ...]]  # (question, plan) -> the passages that a reader would see
Plans = Callable[[PlanInput], SourcePlan]


@dataclass(frozen=True, slots=True)
class Compared:
    """What an arm made of a question. ``usable``: its plan could be read; ``queries`` counts those of each source."""

    question: str
    arm: str
    usable: bool
    queries: Mapping[str, int]
    passages: int
    right: bool
    score: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Bench:
    """What is compared: the arms' planners, the rules' plan, and how a plan is put into practice and judged."""

    planners: Mapping[str, Performer]
    rules: Plans
    sources: tuple[str, ...]
    gather: Gather
    judge: Judge

    def row(self, question: Question, arm: str) -> Compared:
        """The row of ``question`` by ``arm``."""
        began = time.perf_counter()
        plan, usable = self._planned(PlanInput(question.text, self.sources), arm)
        seconds = round(time.perf_counter() - began, 3)
        hits = self.gather(question.text, plan)
        right, score = self.judge.judge(question.id, hits)
        queries = {source: len(plan.queries(source)) for source in SOURCES if plan.queries(source)}
        return Compared(question.id, arm, usable, queries, len(hits), right, round(score, 6), seconds)

    def _planned(self, task: PlanInput, arm: str) -> tuple[SourcePlan, bool]:
        if arm in self.planners:
            try:
                plan: SourcePlan = self.planners[arm].perform(PLAN, task)
                return plan, True
            except Rejected:
                return self.rules(task), False
        return self.rules(task), True


@dataclass(frozen=True, slots=True)
class ArmScore:
    """An arm: the share of questions whose passages lead to the right answer, with its 95 % interval; ``p`` against
    prompting. ``own`` counts a plan that could not be read as wrong, and ``own_p`` tests that; means a question."""

    arm: str
    right: float
    low: float
    high: float
    p: float | None
    own: float
    own_p: float | None
    usable: float
    queries: float
    sources: float
    passages: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """All arms over the same questions, what it was made with, and how many questions were left out as trained on."""

    scores: tuple[ArmScore, ...]
    questions: int
    trained_on: int
    made: Mapping[str, Any]


def begin(file: Path, made: Mapping[str, str], resume: bool) -> dict[tuple[str, str], Compared]:
    """The finished rows by question and arm; see ``rows.begin``."""
    kept = {}
    for piece in rows.begin(file, made, resume):
        try:
            row = Compared(**piece)
        except TypeError:
            continue
        kept[row.question, row.arm] = row
    return kept


def run(
    bench: Bench,
    questions: Sequence[Question],
    file: Path,
    kept: Mapping[tuple[str, str], Compared],
    advance: Callable[[float, str], object],
) -> list[Compared]:
    """Every row; a fresh one is in ``file`` before the next is made."""
    finished = []
    for question in questions:
        for arm in ARMS:
            row = kept.get((question.id, arm))
            if row is None:
                row = bench.row(question, arm)
                rows.keep(file, asdict(row))
            finished.append(row)
            advance(1, arm)
    return finished


def compare(compared: Sequence[Compared], trained_on: int, made: Mapping[str, Any], seed: int) -> Comparison:
    """The arms' figures; tests are two-sided paired randomisation tests against prompting."""
    by_arm = {arm: [row for row in compared if row.arm == arm] for arm in ARMS}
    scores = tuple(_score(arm, rows_of, by_arm[PROMPTING], seed) for arm, rows_of in by_arm.items())
    return Comparison(scores, len(by_arm[PROMPTING]), trained_on, made)


def _score(arm: str, compared: Sequence[Compared], reference: Sequence[Compared], seed: int) -> ArmScore:
    right, own = _values(compared)
    right_before, own_before = _values(reference)
    low, high = measures.interval(right, seed)
    other = arm != PROMPTING
    return ArmScore(
        arm=arm,
        right=float(right.mean()),
        low=low,
        high=high,
        p=measures.paired_p(right, right_before, seed) if other else None,
        own=float(own.mean()),
        own_p=measures.paired_p(own, own_before, seed) if other else None,
        usable=_mean(row.usable for row in compared),
        queries=_mean(sum(row.queries.values()) for row in compared),
        sources=_mean(len(row.queries) for row in compared),
        passages=_mean(row.passages for row in compared),
        seconds=_mean(row.seconds for row in compared),
    )


def _values(compared: Sequence[Compared]) -> tuple[measures.Values, measures.Values]:
    """Whether each row is right, and whether by a plan of its own, (Q,)."""
    right = np.array([row.right for row in compared], np.float64)
    return right, right * np.array([row.usable for row in compared], np.float64)


def _mean(values: Any) -> float:
    return float(np.mean(list(values)))


def table(result: Comparison) -> tuple[tuple[Message, ...], list[tuple[str, ...]]]:
    """Column names and rows."""
    names = ("arm", "right", "interval", "p", "own", "own_p", "usable", "queries", "sources", "seconds")
    shown: list[tuple[str, ...]] = [
        (score.arm, f"{score.right:.3f}", f"{score.low:.3f} - {score.high:.3f}", _figure(score.p), f"{score.own:.3f}",
         _figure(score.own_p), f"{score.usable:.1%}", f"{score.queries:.1f}", f"{score.sources:.1f}",
         f"{score.seconds:.1f}")
        for score in result.scores
    ]  # fmt: skip
    return tuple(Message(f"column.{name}") for name in names), shown


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def facts(result: Comparison) -> tuple[Message, ...]:
    """What the table does not say."""
    return (
        message("training.compared", count=result.questions, judge=str(result.made["judge"])),
        message("training.trained_on", count=result.trained_on),
    )
