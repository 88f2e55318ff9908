"""Ratings of several reviewers: scores, tests between systems, and agreement of the reviewers.

- Kruskal-Wallis over the ratings of each system, as LINS reports it. Ratings of one case depend on each other, so its p
  is too small where reviewers agree; rely on the next test.
- Wilcoxon's signed-rank test on the differences of the cases' mean ratings between two systems, corrected by Holm over
  the dimensions.
- Krippendorff's alpha over all reviewers, nominal for two options and ordinal for more, with missing ratings; Cohen's
  kappa for each pair of reviewers, as mean and minimum.

A statistic that is undefined (a single value, reviewer or case) is ``None``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, Literal

import numpy as np

from localmed.domain import message
from localmed.domain.errors import ModelError
from localmed.lab import measures, plot
from localmed.lab.reporting import Report, Table
from localmed.lab.review_sheets import FORMS, Dimension, Rating

Ratings = Mapping[str, Mapping[str, int]]  # reviewer -> unit (case and system) -> value


def report(ratings: Sequence[Rating], form: str, left_out: Sequence[str], seed: int) -> Report:
    """The statistics of ``ratings`` on the dimensions of ``form``."""
    systems, reviewers = (sorted({getattr(one, name) for one in ratings}) for name in ("system", "reviewer"))
    by_dimension: dict[str, list[Rating]] = defaultdict(list)
    for rating in ratings:
        by_dimension[rating.dimension].append(rating)
    rated = {dimension: by_dimension[dimension.name] for dimension in FORMS[form] if dimension.name in by_dimension}
    scores = [score for dimension, given in rated.items() for score in _scores(dimension, given, systems, seed)]
    contrasts = [one for pair in combinations(systems, 2) for one in _contrasts(*pair, rated)]
    agreements = [_agreement(dimension, given) for dimension, given in rated.items()]
    cases = len({rating.case for rating in ratings})
    facts = [message("review.facts", cases=cases, reviewers=tuple(reviewers), seed=seed)]
    facts += [message("review.left_out", reviewers=tuple(left_out))] if left_out else []
    alphas = {row["dimension"]: row["alpha"] for row in agreements}
    points = [plot.Point("", *(row[name] for name in ("dimension", "mean", "low", "high", "system"))) for row in scores]
    tests = [{**row, "systems": f"{row['first']} - {row['second']}"} for row in contrasts]
    return Report(
        {"form": form, "systems": systems, "cases": cases, "reviewers": reviewers, "left_out": left_out,
         "scores": scores, "contrasts": contrasts, "agreements": agreements, "seed": seed},
        [Table(message("review.scores", form=form), ("dimension", "system", "ratings", "mean", "interval", "best"),
               scores),
         Table(message("review.tests"), ("dimension", "systems", "cases", "difference", "p", "p_holm"), tests),
         Table(message("review.agreements"), ("dimension", "kruskal", "p", "alpha", "kappa", "lowest"), agreements)],
        facts,
        [{**row, "alpha": alphas[row["dimension"]]} for row in scores],
        partial(plot.points, message("review.plot_title", form=form), points, shares=False),
    )  # fmt: skip


def _case_means(ratings: Sequence[Rating], system: str) -> dict[str, float]:
    values: dict[str, list[int]] = defaultdict(list)
    for rating in ratings:
        if rating.system == system:
            values[rating.case].append(rating.value)
    return {case: sum(numbers) / len(numbers) for case, numbers in sorted(values.items())}


def _scores(dimension: Dimension, ratings: Sequence[Rating], systems: Sequence[str], seed: int) -> list[dict[str, Any]]:
    """A record for each system: mean over cases with its interval, and share of the best option."""
    records = []
    for system in systems:
        if mine := [rating.value for rating in ratings if rating.system == system]:
            means = np.array(list(_case_means(ratings, system).values()), np.float64)
            named = {"dimension": dimension.name, "system": system, "ratings": len(mine)}
            figures = dict(zip(("mean", "low", "high"), measures.mean(means, seed), strict=True))
            records.append({**named, **figures, "best": mine.count(dimension.values[-1]) / len(mine)})
    return records


def _contrasts(first: str, second: str, rated: Mapping[Dimension, Sequence[Rating]]) -> list[dict[str, Any]]:
    """A record for each dimension: first minus second, over the cases that were rated for both."""
    records: list[dict[str, Any]] = []
    for dimension, ratings in rated.items():
        ones, others = _case_means(ratings, first), _case_means(ratings, second)
        differences = [ones[case] - others[case] for case in ones if case in others]
        mean = sum(differences) / len(differences) if differences else 0.0
        named = {"dimension": dimension.name, "first": first, "second": second, "cases": len(differences)}
        records.append({**named, "difference": mean, "p": wilcoxon_p(differences)})
    corrected = measures.holm({row["dimension"]: row["p"] for row in records if row["p"] is not None})
    return [{**row, "p_holm": corrected.get(row["dimension"])} for row in records]


def wilcoxon_p(differences: Sequence[float]) -> float | None:
    """The two-sided p of Wilcoxon's signed-rank test; 1 if all are zero, ``None`` if there are none."""
    if not differences:
        return None
    rounded = [round(value, 12) for value in differences]  # means of equal ratings that differ in the last bit are ties
    if not any(rounded):
        return 1.0
    return float(measures.require()[1].wilcoxon(rounded).pvalue)


def kruskal(groups: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """H and p of the Kruskal-Wallis test; ``None`` for equal values or a single group."""
    if len(groups) < 2 or len({value for group in groups for value in group}) < 2 or not all(groups):
        return None
    result = measures.require()[1].kruskal(*groups)
    return float(result.statistic), float(result.pvalue)


def alpha(table: Ratings, values: Sequence[int]) -> float | None:
    """Krippendorff's alpha; ``None`` where no unit has two ratings, or all ratings are equal."""
    try:
        import krippendorff
    except ImportError:
        raise ModelError("evaluation.not_installed", package="krippendorff") from None
    units = sorted({unit for row in table.values() for unit in row})
    together = [unit for unit in units if sum(unit in row for row in table.values()) > 1]
    if len({row[unit] for row in table.values() for unit in together if unit in row}) < 2:
        return None
    data = [[float(row.get(unit, np.nan)) for unit in units] for row in table.values()]
    level: Literal["nominal", "ordinal"] = "nominal" if len(values) == 2 else "ordinal"
    return float(krippendorff.alpha(np.array(data), value_domain=list(map(float, values)), level_of_measurement=level))


def kappa(one: Mapping[str, int], other: Mapping[str, int]) -> float | None:
    """Cohen's kappa of two reviewers over the units that both rated; ``None`` where chance agreement is 1."""
    units = [unit for unit in one if unit in other]
    if not units:
        return None
    first, second = Counter(one[unit] for unit in units), Counter(other[unit] for unit in units)
    chance = sum(first[value] * second[value] for value in first) / len(units) ** 2
    if chance == 1:
        return None
    agreed = sum(one[unit] == other[unit] for unit in units) / len(units)
    return (agreed - chance) / (1 - chance)


def _agreement(dimension: Dimension, ratings: Sequence[Rating]) -> dict[str, Any]:
    table: dict[str, dict[str, int]] = defaultdict(dict)
    groups: dict[str, list[float]] = defaultdict(list)
    for rating in ratings:
        table[rating.reviewer][f"{rating.case}\t{rating.system}"] = rating.value
        groups[rating.system].append(rating.value)
    h, p = kruskal(list(groups.values())) or (None, None)
    kappas = [value for pair in combinations(table.values(), 2) if (value := kappa(*pair)) is not None]
    mean = sum(kappas) / len(kappas) if kappas else None
    return {"dimension": dimension.name, "kruskal": h, "p": p, "alpha": alpha(table, dimension.values), "kappa": mean,
            "lowest": min(kappas, default=None)}  # fmt: skip
