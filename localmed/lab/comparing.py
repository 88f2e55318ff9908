"""A trained planner beside the same model prompted, on questions held out of training (Omni-RAG, Tables 4 and 7).

Arms: ``prompting`` (the chat model in the role ``plan``), ``tuned`` (the trained planner), ``rules`` (the question and
its keywords to every source). A plan that cannot be read gives way to the rules', as it does when it serves; how often
it could be read is reported, and what the plans that could be read come to by themselves. Judged are the passages that
a reader would see, those of all sources in turn, by the judge that judged the training (``exploring``).

Rows hold ids and counts, never a text; they outlive the process (``rows``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from localmed.answering.planning import PLAN, PlanInput
from localmed.answering.roles import Performer
from localmed.answering.source_plan import SOURCES, SourcePlan
from localmed.domain import Hit, Message, message
from localmed.domain.errors import Rejected
from localmed.lab import measures
from localmed.lab.exploring import Judge
from localmed.lab.reporting import Report, Table
from localmed.lab.rows import Rows
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


def rows(file: Path, made: Mapping[str, str], resume: bool) -> Rows[Compared]:
    """The rows of a batch, those of ``file`` if ``resume``."""
    return Rows(file, made, resume, lambda piece: Compared(**piece), lambda row: (row.question, row.arm))


def report(compared: Sequence[Compared], trained_on: int, made: Mapping[str, str], seed: int) -> Report:
    """The arms' figures; tests are two-sided paired randomisation tests against prompting.

    ``right``: the share of questions whose passages lead to the right answer. ``own`` counts a plan that could not be
    read as wrong, and ``own_p`` tests that; the others are means a question.
    """
    by_arm = {arm: [row for row in compared if row.arm == arm] for arm in ARMS}
    right = {arm: np.array([row.right for row in rows], np.float64) for arm, rows in by_arm.items()}
    own = {arm: right[arm] * np.array([row.usable for row in rows], np.float64) for arm, rows in by_arm.items()}
    scores = []
    for arm, rows in by_arm.items():
        value, low, high = measures.mean(right[arm], seed)
        other = arm != PROMPTING
        scores.append({
            "arm": arm, "right": value, "low": low, "high": high,
            "p": measures.paired_p(right[arm], right[PROMPTING], seed) if other else None,
            "own": float(own[arm].mean()),
            "own_p": measures.paired_p(own[arm], own[PROMPTING], seed) if other else None,
            "usable": _mean(row.usable for row in rows), "queries": _mean(sum(row.queries.values()) for row in rows),
            "sources": _mean(len(row.queries) for row in rows), "passages": _mean(row.passages for row in rows),
            "seconds": _mean(row.seconds for row in rows),
        })  # fmt: skip
    columns = ("arm", "right", "interval", "p", "own", "own_p", "usable", "queries", "sources", "seconds")
    count = len(by_arm[PROMPTING])
    facts = (
        message("training.compared", count=count, judge=made["judge"]),
        message("training.trained_on", count=trained_on),
    )
    values = {"scores": scores, "questions": count, "trained_on": trained_on, "made": dict(made)}
    return Report(values, [Table(Message("training.title"), columns, scores)], facts)


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
