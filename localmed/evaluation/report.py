"""The outcome of an ablation: values with intervals, tests against the full configuration, as text, CSV, JSON and ids.

Nothing written holds a question's or a document's text: variants, measures, counts, ids and settings only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from localmed import __version__, language
from localmed.evaluation import statistics
from localmed.evaluation.ablation import Bench
from localmed.evaluation.measures import JUDGED, MEASURES, Run, scores
from localmed.evaluation.sets import QuestionSet
from localmed.files import csv_text


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
    notes: tuple[str, ...]


def assess(asked: QuestionSet, runs: Mapping[str, Run], seed: int) -> tuple[Row, ...]:
    """The rows of ``runs``; the last run is the reference that the others are tested against."""
    ids = [question.id for question in asked.questions]
    values = {name: scores(run, asked.judgements, asked.relevant_from) for name, run in runs.items()}
    reference = list(runs)[-1]
    found: dict[str, dict[str, Estimate]] = {name: {} for name in runs}
    for measure in MEASURES:
        arrays = {name: statistics.array(each[measure], ids) for name, each in values.items()}
        p = {
            name: statistics.paired_p(each, arrays[reference], seed)
            for name, each in arrays.items()
            if name != reference
        }
        corrected = statistics.holm(p)
        for name, each in arrays.items():
            low, high = statistics.interval(each, seed)
            found[name][measure] = Estimate(float(each.mean()), low, high, p.get(name), corrected.get(name))
    return tuple(Row(name, found[name], _mean(values[name][JUDGED])) for name in runs)


def _mean(values: Mapping[str, float]) -> float:
    return sum(values.values()) / len(values)


def report(bench: Bench, asked: QuestionSet, runs: Mapping[str, Run], seed: int) -> Report:
    """Assess ``runs`` and say what they were made with."""
    manifest = bench.library.manifest
    return Report(
        set=asked.name,
        questions=len(asked.questions),
        measure=asked.measure,
        reference=list(runs)[-1],
        rows=assess(asked, runs, seed),
        generation=f"{manifest.number:04d} of {manifest.created}, {manifest.documents} documents",
        encoder=bench.encoder.identity.slug,
        reranker=bench.reranker.name if bench.reranker else "none",
        settings=asdict(bench.settings),
        depth=bench.depth,
        seed=seed,
        resamples=statistics.RESAMPLES,
        permutations=statistics.PERMUTATIONS,
        version=__version__,
        date=datetime.now(UTC).date().isoformat(),
        notes=(*asked.notes, *_unknown_languages(bench, asked)),
    )


def _unknown_languages(bench: Bench, asked: QuestionSet) -> tuple[str, ...]:
    known = bench.encoder.identity.languages
    number = sum(language.detect(question.text) not in known for question in asked.questions)
    return (f"{number} questions are in a language that the encoder does not know: words only",) if number else ()


# --- how it is shown ---------------------------------------------------------------------------------------------


def overview(found: Report) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Column names and rows for 80 columns: the leading measure first, with its interval and its p."""
    others = [measure for measure in MEASURES if measure != found.measure]
    names = (found.measure, "95 %", *(other.replace("recall", "R") for other in others), "p", "Holm")
    rows = []
    for row in found.rows:
        leading = row.measures[found.measure]
        values = (f"{row.measures[measure].value:.3f}" for measure in others)
        interval = f"{leading.low:.3f}-{leading.high:.3f}"
        rows.append((row.variant, f"{leading.value:.3f}", interval, *values, _p(leading.p), _p(leading.p_holm)))
    return ("variant", *names), rows


def columns(found: Report) -> tuple[str, ...]:
    """The names of ``cells``' columns."""
    return ("variant", *MEASURES, JUDGED, f"p ({found.measure})", "p, Holm")


def cells(found: Report) -> list[tuple[str, ...]]:
    """The whole table as text, an interval behind each measure; p is that of the leading measure."""
    return [
        (
            row.variant,
            *(_shown(row.measures[measure]) for measure in MEASURES),
            f"{row.judged:.2f}",
            _p(row.measures[found.measure].p),
            _p(row.measures[found.measure].p_holm),
        )
        for row in found.rows
    ]


def _shown(each: Estimate) -> str:
    return f"{each.value:.3f} [{each.low:.3f}, {each.high:.3f}]"


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def facts(found: Report) -> tuple[str, ...]:
    """What the figures were made with, one line each, and the notes."""
    half = () if found.reranker != "none" else ("no reranker is set: the variants with +rerank are left out",)
    return (
        f"{found.questions} questions of {found.set}; {found.depth} passages read a question, collapsed to documents",
        f"library generation {found.generation}; encoder {found.encoder}; reranker {found.reranker}; "
        f"localmed {found.version}; {found.date}; seed {found.seed}",
        f"intervals: 95 %, percentile bootstrap, {found.resamples} resamples; p: two-sided paired randomisation test "
        f"against {found.reference}, {found.permutations} permutations, and corrected by Holm within the measure",
        f"of the first ten documents of {found.reference} {found.rows[-1].judged:.0%} are judged",
        *half,
        *found.notes,
    )


def alternative(found: Report) -> str:
    """The plot in words, for those who cannot see it."""
    values = "; ".join(
        f"{row.variant} {_shown(row.measures[found.measure])}"
        for row in sorted(found.rows, key=lambda row: -row.measures[found.measure].value)
    )
    return (
        f"One panel a measure; in each a point with its 95 % interval for every variant. {found.measure}, best first: "
        f"{values}."
    )


def as_markdown(found: Report) -> str:
    """The table, what it was made with, and the plot's description."""
    names = columns(found)
    lines = [f"# Retrieval: {found.set}", "", f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    lines += [f"| {' | '.join(row)} |" for row in cells(found)]
    lines += ["", *(f"- {fact}" for fact in facts(found)), "", f"![{alternative(found)}](plot.svg)", ""]
    settings = ", ".join(f"{name} = {value}" for name, value in found.settings.items())
    return "\n".join([*lines, f"Search settings: {settings}", ""])


def as_csv(found: Report) -> str:
    """One line a variant and measure."""
    rows: list[Sequence[object]] = [
        ("set", "questions", "variant", "measure", "value", "low", "high", "p", "p_holm", "reference")
    ]
    for row in found.rows:
        for measure, each in row.measures.items():
            numbers = (f"{each.value:.6f}", f"{each.low:.6f}", f"{each.high:.6f}", each.p, each.p_holm)
            rows.append((found.set, found.questions, row.variant, measure, *numbers, found.reference))
        judged = (found.set, found.questions, row.variant, JUDGED, f"{row.judged:.6f}")
        rows.append((*judged, "", "", "", "", found.reference))
    return csv_text(rows)


def as_json(found: Report) -> str:
    """Everything."""
    return json.dumps(asdict(found), ensure_ascii=False, indent=2) + "\n"
