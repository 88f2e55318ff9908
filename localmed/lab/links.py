"""The outcome of a Link-Eval batch: each metric's mean over the questions that define it, with its interval; files.

A metric that is undefined for a question is left out of its mean and counted; a mean of nothing is undefined. Intervals
are percentile bootstrap intervals over questions; of one question there is none. Nothing written holds a text: ids,
counts and settings only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from localmed.answering.link_eval import MOST_COMPARED
from localmed.domain import Message, message
from localmed.domain.link_counts import METRICS, LinkCounts
from localmed.lab import measures
from localmed.lab.link_files import LinkRow
from localmed.process.files import csv_text

TOTALS = tuple(name for name in LinkCounts.__slots__ if name not in ("gold", "fluency"))


@dataclass(frozen=True, slots=True)
class MetricScores:
    """One metric over a batch; the interval is (low, high), None of fewer than two questions."""

    name: str
    mean: float | None
    interval: tuple[float, float] | None
    defined: int
    undefined: int


@dataclass(frozen=True, slots=True)
class LinkReport:
    """A whole batch. ``statuses`` count how the questions ended, ``totals`` the counts of those answered."""

    questions: int
    statuses: Mapping[str, int]
    metrics: tuple[MetricScores, ...]
    totals: Mapping[str, int]
    made_with: Mapping[str, str]
    seed: int
    confidence: float
    rows: tuple[LinkRow, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the rows with their metrics, None where they are undefined."""
        rows = [asdict(row) | {"metrics": row.counts.metrics()} for row in self.rows]
        return asdict(self) | {"rows": rows}


def report(rows: Sequence[LinkRow], made_with: Mapping[str, str], seed: int) -> LinkReport:
    """The outcome of ``rows``; those that were not answered define nothing."""
    answered = [row.counts for row in rows if row.status == "answered"]
    return LinkReport(
        len(rows),
        dict(Counter(row.status for row in rows)),
        tuple(_scores(name, [getattr(counts, name) for counts in answered], seed) for name in METRICS),
        {name: sum(getattr(counts, name) for counts in answered) for name in TOTALS},
        dict(made_with),
        seed,
        measures.CONFIDENCE,
        tuple(rows),
    )


def _scores(name: str, values: Sequence[float | None], seed: int) -> MetricScores:
    known = np.array([value for value in values if value is not None], np.float64)
    mean = float(known.mean()) if len(known) else None
    interval = measures.interval(known, seed) if len(known) > 1 else None
    return MetricScores(name, mean, interval, len(known), len(values) - len(known))


# --- how it is shown --------------------------------------------------------------------------------------------------


def table(report: LinkReport) -> tuple[tuple[Message, ...], list[tuple[Message | str, ...]]]:
    """Column names and a row a metric."""
    rows: list[tuple[Message | str, ...]] = [
        (metric_name(metric), shown(metric), interval(metric), str(metric.defined), str(metric.undefined))
        for metric in report.metrics
    ]
    return tuple(Message(f"column.{name}") for name in ("metric", "mean", "interval", "defined", "undefined")), rows


def metric_name(metric: MetricScores) -> Message:
    """The name of a metric as people read it."""
    return Message(f"links.metric.{metric.name}")


def shown(metric: MetricScores) -> Message | str:
    """The mean, or why there is none."""
    if metric.mean is None:
        return Message("column.not_measured" if metric.name == "fluency" else "column.undefined")
    return f"{metric.mean:.3f}"


def interval(metric: MetricScores) -> str:
    """The interval, "-" where there is none."""
    return "{:.2f}-{:.2f}".format(*metric.interval) if metric.interval else "-"


def facts(report: LinkReport) -> tuple[Message, ...]:
    """What the table does not say."""
    total, made = report.totals, report.made_with
    ended = tuple(
        message("evaluation.plot.part", label=Message(f"evaluation.ended.{status.replace(' ', '_')}"), count=number)
        for status, number in sorted(report.statuses.items())
    )
    return (
        message("evaluation.facts.questions", count=report.questions, ended=ended),
        Message("evaluation.facts.citations", _totals(total, "statements", "uncited", "citations", "unresolved",
                                                      "malformed")),
        Message("evaluation.facts.sets", _totals(total, "correct_sets", "verbatim_sets")),
        Message("evaluation.facts.not_judged", (("most", MOST_COMPARED), *_totals(
            total, "unjudged_sets", "unjudged_pairs", "unjudged_references"))),
        Message("evaluation.facts.conflicts", _totals(total, "conflicts", "pairs")),
        Message("evaluation.facts.made_with", (("seed", report.seed), *(
            (name, made[name]) for name in ("judge", "valid_from", "encoder", "generation", "version")))),
    )  # fmt: skip


def _totals(total: Mapping[str, int], *names: str) -> tuple[tuple[str, int], ...]:
    return tuple((name, total[name]) for name in names)


def as_csv(report: LinkReport) -> str:
    """A line a question: its metrics, empty where undefined, then its counts."""
    rows: list[Sequence[object]] = [("id", "language", "status", *METRICS, *TOTALS)]
    for row in report.rows:
        metrics = ("" if value is None else f"{value:.6f}" for value in row.counts.metrics().values())
        rows.append((row.id, row.language, row.status, *metrics, *(getattr(row.counts, name) for name in TOTALS)))
    return csv_text(rows)


def alternative(report: LinkReport) -> Message:
    """The plot in words."""
    metrics = tuple(
        message(
            "evaluation.plot.metric",
            metric=metric_name(metric),
            mean=shown(metric),
            interval=interval(metric),
            count=metric.defined,
        )
        for metric in report.metrics
    )
    return message("evaluation.plot.metrics", metrics=metrics)
