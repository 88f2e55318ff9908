"""What ratings of several reviewers come to: scores, tests between systems, and how far the reviewers agree.

- Kruskal-Wallis over the ratings of each system, as LINS reports it. Ratings of one case are not independent of each
  other, so its p is too small where reviewers agree; the test to go by is the next.
- Wilcoxon's signed-rank test on the differences of the cases' mean ratings, system against system, corrected by Holm
  over the dimensions.
- Krippendorff's alpha over all reviewers, nominal for two options and ordinal for more, with ratings missing as they
  may; Cohen's kappa for each two reviewers, of which the mean and the lowest are given.

What cannot be taken (one value only, one reviewer only, one case only) is ``None``, never 0 or 1.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from localmed.domain.errors import ModelError
from localmed.lab import measures
from localmed.lab.review_sheets import FORMS, Dimension, Rating
from localmed.process.files import csv_text

Table = Mapping[str, Mapping[str, int]]  # reviewer -> unit (case and system) -> value


@dataclass(frozen=True, slots=True)
class Score:
    """One system on one dimension: the mean over cases with its interval, and the share of the best option."""

    dimension: str
    system: str
    ratings: int
    mean: float
    low: float | None
    high: float | None
    best: float


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two systems on one dimension, over the cases that both were rated on: first minus second."""

    dimension: str
    first: str
    second: str
    cases: int
    difference: float
    p: float | None
    p_holm: float | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """One dimension: Kruskal-Wallis over systems, and the reviewers' agreement."""

    dimension: str
    h: float | None
    p: float | None
    alpha: float | None
    kappa: float | None
    lowest_kappa: float | None


@dataclass(frozen=True, slots=True)
class ReviewReport:
    """Everything of a review but texts."""

    form: str
    systems: tuple[str, ...]
    cases: int
    reviewers: tuple[str, ...]
    left_out: tuple[str, ...]
    scores: tuple[Score, ...]
    contrasts: tuple[Contrast, ...]
    agreements: tuple[Agreement, ...]
    seed: int


def report(ratings: Sequence[Rating], form: str, left_out: Sequence[str], seed: int) -> ReviewReport:
    """The figures of ``ratings`` on the dimensions of ``form``."""
    systems = tuple(sorted({rating.system for rating in ratings}))
    by_dimension: dict[str, list[Rating]] = defaultdict(list)
    for rating in ratings:
        by_dimension[rating.dimension].append(rating)
    rated = [dimension for dimension in FORMS[form] if by_dimension[dimension.name]]
    return ReviewReport(
        form=form,
        systems=systems,
        cases=len({rating.case for rating in ratings}),
        reviewers=tuple(sorted({rating.reviewer for rating in ratings})),
        left_out=tuple(left_out),
        scores=tuple(
            _score(dimension, system, by_dimension[dimension.name], seed)
            for dimension in rated
            for system in systems
            if any(rating.system == system for rating in by_dimension[dimension.name])
        ),
        contrasts=_contrasts(rated, systems, by_dimension),
        agreements=tuple(_agreement(dimension, by_dimension[dimension.name]) for dimension in rated),
        seed=seed,
    )


def _case_means(ratings: Sequence[Rating], system: str) -> dict[str, float]:
    values: dict[str, list[int]] = defaultdict(list)
    for rating in ratings:
        if rating.system == system:
            values[rating.case].append(rating.value)
    return {case: sum(numbers) / len(numbers) for case, numbers in sorted(values.items())}


def _score(dimension: Dimension, system: str, ratings: Sequence[Rating], seed: int) -> Score:
    mine = [rating.value for rating in ratings if rating.system == system]
    means = np.array(list(_case_means(ratings, system).values()), np.float64)
    low, high = measures.interval(means, seed) if len(means) > 1 else (None, None)
    best = sum(value == dimension.values[-1] for value in mine) / len(mine)
    return Score(dimension.name, system, len(mine), float(means.mean()), low, high, best)


def _contrasts(
    rated: Sequence[Dimension], systems: Sequence[str], by_dimension: Mapping[str, Sequence[Rating]]
) -> tuple[Contrast, ...]:
    contrasts: list[Contrast] = []
    for first, second in combinations(systems, 2):
        family = [_contrast(dimension.name, first, second, by_dimension[dimension.name]) for dimension in rated]
        p = measures.holm({contrast.dimension: contrast.p for contrast in family if contrast.p is not None})
        contrasts += (
            Contrast(row.dimension, first, second, row.cases, row.difference, row.p, p.get(row.dimension))
            for row in family
        )
    return tuple(contrasts)


def _contrast(dimension: str, first: str, second: str, ratings: Sequence[Rating]) -> Contrast:
    ones, others = _case_means(ratings, first), _case_means(ratings, second)
    differences = [ones[case] - others[case] for case in ones if case in others]
    mean = sum(differences) / len(differences) if differences else 0.0
    return Contrast(dimension, first, second, len(differences), mean, wilcoxon_p(differences), None)


def wilcoxon_p(differences: Sequence[float]) -> float | None:
    """The two-sided p of Wilcoxon's signed-rank test; 1 where nothing differs, ``None`` of nothing."""
    if not differences:
        return None
    rounded = [round(value, 12) for value in differences]  # means of equal ratings that differ in the last bit are ties
    if not any(rounded):
        return 1.0
    return float(measures.require()[1].wilcoxon(rounded).pvalue)


def kruskal(groups: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """H and p of Kruskal and Wallis's test; ``None`` where all values are the same, or there is one group."""
    if len(groups) < 2 or len({value for group in groups for value in group}) < 2 or not all(groups):
        return None
    result = measures.require()[1].kruskal(*groups)
    return float(result.statistic), float(result.pvalue)


def alpha(table: Table, values: Sequence[int]) -> float | None:
    """Krippendorff's alpha; ``None`` where no unit has two ratings, or only one value was ever given."""
    try:
        import krippendorff
    except ImportError:
        raise ModelError("evaluation.no_statistics", package="krippendorff") from None
    units = sorted({unit for row in table.values() for unit in row})
    together = [unit for unit in units if sum(unit in row for row in table.values()) > 1]
    if len({row[unit] for row in table.values() for unit in together if unit in row}) < 2:
        return None
    data = [[float(row.get(unit, np.nan)) for unit in units] for row in table.values()]
    level: Literal["nominal", "ordinal"] = "nominal" if len(values) == 2 else "ordinal"
    return float(krippendorff.alpha(np.array(data), value_domain=list(map(float, values)), level_of_measurement=level))


def kappa(one: Mapping[str, int], other: Mapping[str, int]) -> float | None:
    """Cohen's kappa of two reviewers over the units that both rated; ``None`` where chance alone would agree."""
    units = [unit for unit in one if unit in other]
    if not units:
        return None
    first, second = Counter(one[unit] for unit in units), Counter(other[unit] for unit in units)
    chance = sum(first[value] * second[value] for value in first) / len(units) ** 2
    if chance == 1:
        return None
    agreed = sum(one[unit] == other[unit] for unit in units) / len(units)
    return (agreed - chance) / (1 - chance)


def _agreement(dimension: Dimension, ratings: Sequence[Rating]) -> Agreement:
    table: dict[str, dict[str, int]] = defaultdict(dict)
    groups: dict[str, list[float]] = defaultdict(list)
    for rating in ratings:
        table[rating.reviewer][f"{rating.case}\t{rating.system}"] = rating.value
        groups[rating.system].append(rating.value)
    tested = kruskal(list(groups.values()))
    kappas = [value for pair in combinations(table.values(), 2) if (value := kappa(*pair)) is not None]
    return Agreement(
        dimension.name,
        tested[0] if tested else None,
        tested[1] if tested else None,
        alpha(table, dimension.values),
        sum(kappas) / len(kappas) if kappas else None,
        min(kappas, default=None),
    )


def as_csv(report: ReviewReport) -> str:
    """One line a dimension and system."""
    rows: list[Sequence[object]] = [("dimension", "system", "ratings", "mean", "low", "high", "best option", "alpha")]
    alphas = {row.dimension: row.alpha for row in report.agreements}
    rows += (
        (row.dimension, row.system, row.ratings, *map(shown, (row.mean, row.low, row.high, row.best)),
         shown(alphas[row.dimension]))
        for row in report.scores
    )  # fmt: skip
    return csv_text(rows)


def shown(value: float | None) -> str:
    """A figure, or "-" where there is none."""
    return "-" if value is None else f"{value:.3f}"
