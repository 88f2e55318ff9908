"""What multiple choice came to: accuracy with intervals and paired tests, agreement, position bias, uncertainty, cost.

- Accuracy: the mean over questions, 95 % bootstrap intervals; each arm is tested against the first by a paired
  randomisation test, corrected by Holm within a set. ``answered`` is the accuracy where localmed would have answered.
- Rank score (LINS): an arm's mean rank by accuracy over the sets, equal ones sharing theirs.
- Position bias: how far the mean probability of a place is from its share, at most; it is taken before the orders are
  averaged. ``flips`` is the share of single orders whose choice was another than the averaged one.
- Uncertainty: the entropy of the averaged probabilities, divided by that of a guess; its AUROC says how well it tells
  wrong choices from right ones (0.5: not at all), ``None`` where all are right or all wrong. Beside it, for chains of
  thought that were drawn several times, the AUROC of their disagreement (LUQ, ``mcq``).
- Overhead: what is neither the model's nor the search's share of the time.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import combinations

import numpy as np

from localmed.domain import Message, message
from localmed.domain.roc import area_under_roc
from localmed.lab import measures
from localmed.lab.mcq import McqRow
from localmed.lab.mcq_files import McqSet
from localmed.process.files import csv_text


@dataclass(frozen=True, slots=True)
class ArmScore:
    """One arm on one set; costs are means over questions."""

    set: str
    arm: str
    questions: int
    accuracy: float
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    abstained: float
    answered: float | None
    bias: float
    flips: float
    auroc: float | None
    luq_auroc: float | None
    calls: float
    tokens_in: float
    tokens_out: float
    seconds: float
    overhead: float
    passages: float
    regenerated: float
    too_long: float
    queries: Mapping[str, float]
    sources: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class McqReport:
    """Everything of a run but texts. ``agreement``: (set, arm, arm) -> share of questions with the same choice."""

    sets: Mapping[str, int]
    left_out: Mapping[str, int]
    arms: tuple[str, ...]
    scores: tuple[ArmScore, ...]
    ranks: Mapping[str, float]
    agreement: tuple[tuple[str, str, str, float], ...]
    measured: bool
    made_with: Mapping[str, str]
    seed: int


def report(rows: Sequence[McqRow], left_out: Mapping[str, int], made_with: Mapping[str, str], seed: int) -> McqReport:
    """The figures of ``rows``; the first arm is what the others are tested against."""
    arms = tuple(dict.fromkeys(row.arm for row in rows))
    by_set: dict[str, dict[str, list[McqRow]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        by_set[row.set][row.arm].append(row)
    scores = tuple(score for name, by_arm in by_set.items() for score in _scores(name, by_arm, seed))
    return McqReport(
        sets={name: len(next(iter(by_arm.values()))) for name, by_arm in by_set.items()},
        left_out=left_out,
        arms=arms,
        scores=scores,
        ranks=rank_scores(scores, arms),
        agreement=tuple(
            (name, one, other, _same(by_arm[one], by_arm[other]))
            for name, by_arm in by_set.items()
            for one, other in combinations(arms, 2)
        ),
        measured=all(row.measured for row in rows),
        made_with=made_with,
        seed=seed,
    )


def _scores(name: str, by_arm: Mapping[str, Sequence[McqRow]], seed: int) -> list[ArmScore]:
    values = {arm: np.array([row.right for row in rows], np.float64) for arm, rows in by_arm.items()}
    first = next(iter(values))
    several = len(values[first]) > 1
    p = {
        arm: measures.paired_p(array, values[first], seed) for arm, array in values.items() if several and arm != first
    }
    corrected = measures.holm(p)
    return [
        _score(name, arm, rows, measures.interval(values[arm], seed) if several else (None, None), p.get(arm),
               corrected.get(arm))
        for arm, rows in by_arm.items()
    ]  # fmt: skip


def _score(
    name: str,
    arm: str,
    rows: Sequence[McqRow],
    interval: tuple[float | None, float | None],
    p: float | None,
    p_holm: float | None,
) -> ArmScore:
    kept = [row.right for row in rows if not row.abstained]
    seconds = sum(row.seconds for row in rows)
    working = sum(row.model_seconds + row.search_seconds for row in rows)
    return ArmScore(
        set=name,
        arm=arm,
        questions=len(rows),
        accuracy=_mean([row.right for row in rows]),
        low=interval[0],
        high=interval[1],
        p=p,
        p_holm=p_holm,
        abstained=_mean([row.abstained for row in rows]),
        answered=_mean(kept) if kept else None,
        bias=bias(rows),
        flips=_mean([row.flips for row in rows]),
        auroc=auroc([entropy(row.probabilities) for row in rows], [not row.right for row in rows]),
        luq_auroc=_luq_auroc(rows),
        calls=_mean([row.calls for row in rows]),
        tokens_in=_mean([row.tokens_in for row in rows]),
        tokens_out=_mean([row.tokens_out for row in rows]),
        seconds=seconds / len(rows),
        overhead=max(0.0, seconds - working) / seconds if seconds else 0.0,
        passages=_mean([row.passages for row in rows]),
        regenerated=_mean([row.regenerated for row in rows]),
        too_long=_mean([row.too_long for row in rows]),
        queries=_by_source([row.queries for row in rows]),
        sources=_by_source([row.sources for row in rows]),
    )


def _luq_auroc(rows: Sequence[McqRow]) -> float | None:
    """How well disagreement of the chains of thought tells wrong choices, of the rows where it was judged."""
    judged = [(1 - row.agreement, not row.right) for row in rows if row.agreement is not None]
    return auroc([uncertainty for uncertainty, _ in judged], [wrong for _, wrong in judged]) if judged else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _by_source(counts: Sequence[Mapping[str, int]]) -> dict[str, float]:
    names = sorted({name for row in counts for name in row})
    return {name: sum(row.get(name, 0) for row in counts) / len(counts) for name in names}


def _same(one: Sequence[McqRow], other: Sequence[McqRow]) -> float:
    choices = {row.id: row.choice for row in other}
    return _mean([row.choice == choices.get(row.id) for row in one])


def bias(rows: Sequence[McqRow]) -> float:
    """How far a place's mean probability is from its share, at most; of the rows with the commonest length."""
    lengths = [len(row.places) for row in rows]
    count = max(set(lengths), key=lengths.count)
    places = np.array([row.places for row in rows if len(row.places) == count], np.float64)  # (rows, places)
    return float(np.abs(places.mean(axis=0) - 1 / count).max())


def entropy(probabilities: Sequence[float]) -> float:
    """Label entropy from 0 (certain) to 1 (a guess)."""
    return -sum(value * math.log(value) for value in probabilities if value > 0) / math.log(len(probabilities))


def auroc(scores: Sequence[float], positive: Sequence[bool]) -> float | None:
    """How likely a positive has the higher score than another, equal ones counting half; ``None`` of one kind only."""
    pairs = list(zip(scores, positive, strict=True))
    return area_under_roc([one for one, is_one in pairs if is_one], [one for one, is_one in pairs if not is_one])


def rank_scores(scores: Sequence[ArmScore], arms: Sequence[str]) -> dict[str, float]:
    """LINS's rank score of each arm: its mean rank over the sets, 1 the best, ties sharing the mean of their ranks."""
    ranks: dict[str, list[float]] = {arm: [] for arm in arms}
    for name in dict.fromkeys(score.set for score in scores):
        by_arm = {score.arm: score.accuracy for score in scores if score.set == name}
        for arm, accuracy in by_arm.items():
            better = sum(value > accuracy for value in by_arm.values())
            equal = sum(value == accuracy for value in by_arm.values())
            ranks[arm].append(better + (equal + 1) / 2)
    return {arm: _mean(values) for arm, values in ranks.items() if values}


# --- how it is shown --------------------------------------------------------------------------------------------------


def accuracy_table(result: McqReport) -> tuple[tuple[Message | str, ...], Sequence[tuple[str, ...]]]:
    """Column names and rows: accuracy, test, abstention, bias, uncertainty."""
    names = ("set", "arm", "accuracy", "interval", "p_holm", "abstained", "answered", "bias", "flips", "auroc", "luq")
    rows = [
        (score.set, score.arm, f"{score.accuracy:.3f}", f"{shown(score.low)} - {shown(score.high)}",
         shown(score.p_holm), f"{score.abstained:.1%}", shown(score.answered), f"{score.bias:.3f}",
         f"{score.flips:.1%}", shown(score.auroc), shown(score.luq_auroc))
        for score in result.scores
    ]  # fmt: skip
    return tuple(Message(f"column.{name}") for name in names), rows


def cost_table(result: McqReport) -> tuple[tuple[Message | str, ...], Sequence[tuple[str, ...]]]:
    """Column names and rows: means a question."""
    names = ("set", "arm", "calls", "tokens_in", "tokens_out", "seconds", "overhead", "passages", "by_source")
    rows = [
        (score.set, score.arm, f"{score.calls:.1f}", f"{score.tokens_in:.0f}", f"{score.tokens_out:.0f}",
         f"{score.seconds:.1f}", f"{score.overhead:.1%}", f"{score.passages:.1f}",
         _sources(score))
        for score in result.scores
    ]  # fmt: skip
    return tuple(Message(f"column.{name}") for name in names), rows


def _sources(score: ArmScore) -> str:
    """Queries to, and passages from, each source."""
    counts = (f"{name} {count:.1f}/{score.sources.get(name, 0):.1f}" for name, count in score.queries.items())
    return " ".join(counts) or "-"


def shown(value: float | None) -> str:
    """A figure, or "-" where there is none."""
    return "-" if value is None else f"{value:.3f}"


def facts(result: McqReport) -> tuple[Message, ...]:
    """What the tables do not say."""
    ranks = sorted(result.ranks.items(), key=lambda pair: pair[1])
    agreed = [f"{name}: {one} = {other} {share:.1%}" for name, one, other, share in result.agreement]
    return (
        message("evaluation.facts.mcq_tests", reference=result.arms[0], seed=result.seed),
        message("evaluation.facts.mcq_ranks", ranks=tuple(f"{arm} {rank:.2f}" for arm, rank in ranks)),
        *((message("evaluation.facts.mcq_agreement", agreed=tuple(agreed)),) if agreed else ()),
        *(
            message("evaluation.facts.mcq_left_out", set=name, count=count)
            for name, count in result.left_out.items()
            if count
        ),
        *(
            message("evaluation.facts.mcq_too_long", set=score.set, arm=score.arm, share=score.too_long)
            for score in result.scores
            if score.too_long
        ),
        *((message("evaluation.facts.mcq_named"),) if not result.measured else ()),
        *(message("evaluation.facts.made", name=name, value=value) for name, value in result.made_with.items()),
    )


def alternative(result: McqReport) -> Message:
    """The plot in words, for those who cannot see it."""
    return message(
        "evaluation.plot.mcq",
        values=tuple(f"{score.set}, {score.arm}: {score.accuracy:.3f}" for score in result.scores),
    )


def with_questions(sets: Sequence[McqSet], rows: Sequence[McqRow]) -> str:
    """The questions with their texts and what each arm chose, as JSON lines: only where somebody asked for them."""
    chosen: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for row in rows:
        chosen[row.set, row.id][row.arm] = row.choice
    values = (
        {"set": questions.name, **asdict(question), "chosen": chosen[questions.name, question.id]}
        for questions in sets
        for question in questions.questions
    )
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def as_csv(result: McqReport) -> str:
    """One line a set and arm."""
    names = [field.name for field in fields(ArmScore) if field.name not in ("queries", "sources")]
    rows: list[Sequence[object]] = [(*names, "rank score")]
    rows += ((*(getattr(score, name) for name in names), result.ranks[score.arm]) for score in result.scores)
    return csv_text(rows)
