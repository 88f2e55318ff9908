"""The outcome of an ablation: values with intervals, tests against the full configuration, as text, CSV, JSON and ids.

Nothing written holds a question's or a document's text: variants, measures, counts, ids and settings only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from localmed import __version__
from localmed.domain import Message, message
from localmed.lab import measures
from localmed.lab.ablation import Bench
from localmed.lab.measures import JUDGED, MEASURES, Run, scores
from localmed.lab.sets import QuestionSet
from localmed.messages import render
from localmed.process.files import csv_text
from localmed.text.language import detect


@dataclass(frozen=True, slots=True)
class Estimate:
    """One variant's mean of one measure, its interval, and the test against the reference (``None`` for itself)."""

    value: float
    low: float
    high: float
    p: float | None = None
    p_holm: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One variant: its measures by name, and the share of its first ten documents that anybody has judged."""

    variant: str
    measures: dict[str, Estimate]
    judged: float


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that is needed to read the figures, and to make them again."""

    set: str
    questions: int
    measure: str
    reference: str
    rows: tuple[Row, ...]
    generation: str
    encoder: str
    reranker: str
    settings: dict[str, object]
    depth: int
    seed: int
    resamples: int
    permutations: int
    version: str
    date: str
    notes: tuple[Message, ...]


def assess(question_set: QuestionSet, runs: Mapping[str, Run], seed: int) -> tuple[Row, ...]:
    """The rows of ``runs``; the last run is the reference that the others are tested against."""
    ids = [question.id for question in question_set.questions]
    values = {name: scores(run, question_set.judgements, question_set.relevant_from) for name, run in runs.items()}
    reference = list(runs)[-1]
    estimates: dict[str, dict[str, Estimate]] = {name: {} for name in runs}
    for measure in MEASURES:
        arrays = {name: measures.array(by_measure[measure], ids) for name, by_measure in values.items()}
        p = {
            name: measures.paired_p(array, arrays[reference], seed)
            for name, array in arrays.items()
            if name != reference
        }
        corrected = measures.holm(p)
        for name, array in arrays.items():
            low, high = measures.interval(array, seed)
            estimates[name][measure] = Estimate(float(array.mean()), low, high, p.get(name), corrected.get(name))
    return tuple(Row(name, estimates[name], _mean(values[name][JUDGED])) for name in runs)


def _mean(values: Mapping[str, float]) -> float:
    return sum(values.values()) / len(values)


def report(bench: Bench, question_set: QuestionSet, runs: Mapping[str, Run], seed: int) -> Report:
    """Assess ``runs`` and say what they were made with."""
    manifest = bench.library.manifest
    return Report(
        set=question_set.name,
        questions=len(question_set.questions),
        measure=question_set.measure,
        reference=list(runs)[-1],
        rows=assess(question_set, runs, seed),
        generation=f"{manifest.number:04d} of {manifest.created}, {manifest.documents} documents",
        encoder=bench.encoder.identity.slug,
        reranker=bench.reranker.name if bench.reranker else "none",
        settings=asdict(bench.settings),
        depth=bench.depth,
        seed=seed,
        resamples=measures.RESAMPLES,
        permutations=measures.PERMUTATIONS,
        version=__version__,
        date=datetime.now(UTC).date().isoformat(),
        notes=(*question_set.notes, *_unknown_languages(bench, question_set)),
    )


def _unknown_languages(bench: Bench, question_set: QuestionSet) -> tuple[Message, ...]:
    known = bench.encoder.identity.languages
    number = sum(detect(question.text) not in known for question in question_set.questions)
    return (message("evaluation.note.unknown_language", count=number),) if number else ()


# --- how it is shown ---------------------------------------------------------------------------------------------


def overview(report: Report) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Column names and rows for 80 columns: the leading measure first, with its interval and its p."""
    others = [measure for measure in MEASURES if measure != report.measure]
    names = (report.measure, "95 %", *(other.replace("recall", "R") for other in others), "p", "Holm")
    rows = []
    for row in report.rows:
        leading = row.measures[report.measure]
        values = (f"{row.measures[measure].value:.3f}" for measure in others)
        interval = f"{leading.low:.3f}-{leading.high:.3f}"
        rows.append((row.variant, f"{leading.value:.3f}", interval, *values, _p(leading.p), _p(leading.p_holm)))
    return ("variant", *names), rows


def columns(report: Report) -> tuple[str, ...]:
    """The names of ``cells``' columns."""
    return ("variant", *MEASURES, JUDGED, f"p ({report.measure})", "p, Holm")


def cells(report: Report) -> list[tuple[str, ...]]:
    """The whole table as text, an interval behind each measure; p is that of the leading measure."""
    return [
        (
            row.variant,
            *(_shown(row.measures[measure]) for measure in MEASURES),
            f"{row.judged:.2f}",
            _p(row.measures[report.measure].p),
            _p(row.measures[report.measure].p_holm),
        )
        for row in report.rows
    ]


def _shown(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def facts(report: Report) -> tuple[Message, ...]:
    """What the figures were made with, one line each, and the notes."""
    stated = {
        name: str(getattr(report, name)) for name in ("generation", "encoder", "reranker", "version", "date", "seed")
    }
    return (
        message("evaluation.facts.searched", count=report.questions, set=report.set, depth=report.depth),
        message("evaluation.facts.searched_with", **stated),
        message(
            "evaluation.facts.tests",
            resamples=report.resamples,
            reference=report.reference,
            permutations=report.permutations,
        ),
        message("evaluation.facts.judged", reference=report.reference, share=report.rows[-1].judged),
        *((message("evaluation.facts.no_reranker"),) if report.reranker == "none" else ()),
        *report.notes,
    )


def alternative(report: Report) -> Message:
    """The plot in words, for those who cannot see it."""
    rows = sorted(report.rows, key=lambda row: -row.measures[report.measure].value)
    values = tuple(f"{row.variant} {_shown(row.measures[report.measure])}" for row in rows)
    return message("evaluation.plot.panels", measure=report.measure, values=values)


def as_markdown(report: Report, language: str) -> str:
    """The table, what it was made with, and the plot's description."""
    names = columns(report)
    title = render(message("evaluation.title.retrieval", set=report.set), language)
    lines = [f"# {title}", "", f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    lines += [f"| {' | '.join(row)} |" for row in cells(report)]
    lines += ["", *(f"- {render(fact, language)}" for fact in facts(report))]
    lines += ["", f"![{render(alternative(report), language)}](plot.svg)", ""]
    settings = ", ".join(f"{name} = {value}" for name, value in report.settings.items())
    return "\n".join([*lines, render(message("evaluation.facts.settings", settings=settings), language), ""])


def as_csv(report: Report) -> str:
    """One line a variant and measure."""
    rows: list[Sequence[object]] = [
        ("set", "questions", "variant", "measure", "value", "low", "high", "p", "p_holm", "reference")
    ]
    for row in report.rows:
        for measure, estimate in row.measures.items():
            numbers = (
                f"{estimate.value:.6f}",
                f"{estimate.low:.6f}",
                f"{estimate.high:.6f}",
                estimate.p,
                estimate.p_holm,
            )
            rows.append((report.set, report.questions, row.variant, measure, *numbers, report.reference))
        judged = (report.set, report.questions, row.variant, JUDGED, f"{row.judged:.6f}")
        rows.append((*judged, "", "", "", "", report.reference))
    return csv_text(rows)
