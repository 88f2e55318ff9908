"""``localmed eval links``: Link-Eval over a batch (LINS) of the library's answers, or of answers written elsewhere.

The latter are JSON lines with ``answer`` (text with citations in any style that ``answering.marked_text`` reads) and
the ``id`` (or ``question``) of the question; ``sources`` are the references, cited or not: texts, or objects with
``text`` and optionally ``marker`` (default: the place in the list) and ``title``; ``gold`` (or ``evidence``) is the
right answer.

A question with an undefined metric is excluded from its mean and counted. Only ids, counts and settings are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from localmed.answering import marked_text
from localmed.cli.common import open_session, progress
from localmed.cli.options import filter_options, json_option, search_filter
from localmed.domain import AnswerStatus, Message, Passage, SearchFilter, digest, message
from localmed.domain.errors import InputError
from localmed.lab import link_eval, measures, plot, reporting, sets
from localmed.lab.link_eval import METRICS, MOST_COMPARED, VALID_FROM, LinkCounts, LinkInput, LinkSource, LinkStatement
from localmed.lab.reporting import ROWS, Report, Table
from localmed.lab.rows import Rows
from localmed.lab.sets import Question, text_of
from localmed.library.intact import sha256_of
from localmed.process.hooks import SILENT
from localmed.site.session import Session
from localmed.text.language import clean, detect
from localmed.workflows.flow import Driver

MOST_SOURCES = 200  # references of one answer
TOTALS = tuple(name for name in LinkCounts.__slots__ if name not in ("gold", "fluency"))


@dataclass(frozen=True, slots=True)
class LinkRow:
    """The outcome of one question: status (``answered``, ``abstained``, ``no answer given``) and counts."""

    id: str
    language: str
    status: str
    counts: LinkCounts = field(default_factory=LinkCounts)


# --- answers ----------------------------------------------------------------------------------------------------------


def answers(questions: Sequence[Question], file: Path) -> dict[str, LinkInput]:
    """The answers of ``file`` by the ids of their questions, found by id or text.

    Raise ``InputError`` for an answer without a question, a second answer of one question, and an invalid answer.
    """
    known = {("id", question.id): question for question in questions}
    known |= {("text", question.text): question for question in questions}
    inputs: dict[str, LinkInput] = {}
    for place, record in sets.objects(sets.read_text(file), file.name):
        by_id = ("id", sets.id_of(record, 0))
        question = known.get(by_id if text_of(record, "id") else ("text", text_of(record, "question")))
        if question is None or question.id in inputs:
            code = "evaluation.answer_of_none" if question is None else "evaluation.answer_twice"
            raise InputError(code).within(place)
        inputs[question.id] = answer(record, question, place)
    return inputs


def answer(record: Mapping[str, Any], question: Question, place: str) -> LinkInput:
    """The answer of ``record`` with its sources; a reference list in its text is ignored."""
    sources = record.get("sources") or []
    if not isinstance(record.get("answer"), str) or not isinstance(sources, list) or len(sources) > MOST_SOURCES:
        raise InputError("evaluation.no_answer", place=place, most=MOST_SOURCES)
    read = marked_text.read(clean(record["answer"]))
    statements = tuple(LinkStatement(sentence.text, sentence.markers) for sentence in read.sentences)
    references = tuple(_source(source, number, place) for number, source in enumerate(sources, 1))
    gold = text_of(record, "gold", "evidence") or question.gold
    return LinkInput(question.text, statements, references, gold, malformed=read.malformed)


def _source(source: Any, number: int, place: str) -> LinkSource:
    record = {"text": source} if isinstance(source, str) else source
    if not isinstance(record, dict):
        raise InputError("evaluation.source", number=number, place=place)
    text, title = text_of(record, "text"), text_of(record, "title")
    marker = text_of(record, "marker").strip("[]() ").lower() or str(number)
    name = digest("given", marker, title, text)
    return LinkSource(marker, Passage(name, name, "", detect(text), "", title, (), text, f"0-{len(text)}"))


def report(rows: Sequence[LinkRow], made: Mapping[str, str], seed: int) -> Report:
    """The metrics of ``rows``; only answered ones define a metric."""
    answered = [row.counts for row in rows if row.status == "answered"]
    metrics = [_metric(name, [getattr(counts, name) for counts in answered], seed) for name in METRICS]
    total = {name: sum(getattr(counts, name) for counts in answered) for name in TOTALS}
    statuses = dict(Counter(row.status for row in rows))
    ended = tuple(
        message("evaluation.plot.part", label=Message(f"evaluation.ended.{status.replace(' ', '_')}"), count=number)
        for status, number in sorted(statuses.items())
    )
    facts = (
        message("evaluation.facts.questions", count=len(rows), ended=ended),
        message("evaluation.facts.citations", **total),
        message("evaluation.facts.sets", **total),
        message("evaluation.facts.not_judged", most=MOST_COMPARED, **total),
        message("evaluation.facts.conflicts", **total),
        message("evaluation.facts.made_with", seed=seed, **made),
    )
    words = [{**row, "metric": Message(f"links.metric.{row['metric']}")} for row in metrics]
    shown = [
        {**row, "mean": _why(name) if row["mean"] is None else row["mean"]}
        for name, row in zip(METRICS, words, strict=True)
    ]
    points = [plot.Point("", row["metric"], row["mean"], row["low"], row["high"]) for row in words]
    csv = [
        {"id": row.id, "language": row.language, "status": row.status, **row.counts.metrics(),
         **{name: getattr(row.counts, name) for name in TOTALS}}
        for row in rows
    ]  # fmt: skip
    return Report(
        {"questions": len(rows), "statuses": statuses, "metrics": metrics, "totals": total, "made_with": dict(made),
         "seed": seed, "confidence": measures.CONFIDENCE,
         "rows": [asdict(row) | {"metrics": row.counts.metrics()} for row in rows]},
        [Table(Message("links.title"), ("metric", "mean", "interval", "defined", "undefined"), shown)],
        facts,
        csv,
        partial(plot.points, message("evaluation.plot.intervals", set="Link-Eval", count=len(rows)), points),
    )  # fmt: skip


def _metric(name: str, values: Sequence[float | None], seed: int) -> dict[str, Any]:
    """One metric over a batch; an interval needs two defined values."""
    known = np.array([value for value in values if value is not None], np.float64)
    mean, low, high = measures.mean(known, seed) if len(known) else (None, None, None)
    counts = {"defined": len(known), "undefined": len(values) - len(known)}
    return {"metric": name, "mean": mean, "low": low, "high": high, **counts}


def _why(metric: str) -> Message:
    return Message("column.not_measured" if metric == "fluency" else "column.undefined")


@click.command("links")
@click.option("--questions", "file", type=reporting.FILE, required=True, metavar="FILE",
              help="ID<TAB>QUESTION lines (a third column: the gold answer), .jsonl, or .toml with [[question]] "
              "tables.")  # fmt: skip
@click.option("--answers", "given", type=reporting.FILE, metavar="FILE",
              help="Evaluate these answers (JSON lines: id, answer with citations, sources) instead of asking the "
              "library.")  # fmt: skip
@click.option("--preset", metavar="NAME", help="Search in the tiers of this preset (default: as `localmed ask`).")
@reporting.seed_option
@reporting.rows_options
@filter_options
@json_option
@click.pass_context
def command(
    ctx: click.Context, /, file: Path, given: Path | None, preset: str | None, seed: int, out: Path, resume: bool,
    as_json: bool, **filters: Any,
) -> None:  # fmt: skip
    """Measure how well sources support the sentences of answers (Link-Eval).

    Reports citation set precision, citation precision, citation recall, consistency, statement correctness (where a
    gold answer is given) and fluency (with a chat model), with 95 % intervals. A metric without data is
    undefined, never 1. Writes no question and no text. Needs the extra "eval".
    """
    reporting.need(measures, plot)
    with reporting.report_folder(out, resume, ROWS):
        questions, limited = sets.questions(file), search_filter(**filters)
        inputs = answers(questions, given) if given else None
        with open_session(ctx) as session, progress(not as_json) as (started, advance):
            asked = {"questions": sha256_of(file), "answers": sha256_of(given) if given else ""}
            made = {
                **asked,
                "asked": repr((preset, limited)),
                **reporting.made_with(session),
                "valid_from": f"{VALID_FROM:.2f}",
            }
            evaluate, kept = _evaluator(session, limited, preset, inputs), Rows(out / ROWS, made, resume, LinkRow, "id")
            started(len(questions))
            for question in questions:
                kept.get((question.id,), partial(evaluate, question))
                advance(1, question.id)
            session.note("evaluate", f"links, {len(questions)} questions", "finished", int(made["generation"]))
        made_of = [kept.done[question.id,] for question in questions]
    report(made_of, made, seed).finish(out, as_json, ROWS)


def _evaluator(
    session: Session, limited: SearchFilter, preset: str | None, inputs: Mapping[str, LinkInput] | None
) -> Callable[[Question], LinkRow]:
    """A function that evaluates one question: its given answer, else the library's."""

    def evaluate(question: Question) -> LinkRow:
        spoken, link_input = detect(question.text), (inputs or {}).get(question.id)
        if link_input is None and inputs is not None:
            return LinkRow(question.id, spoken, "no answer given")
        if link_input is None:
            answer = session.ask(question.text, limited, preset)
            if answer.status not in (AnswerStatus.ANSWERED, AnswerStatus.UNVERIFIED):
                return LinkRow(question.id, spoken, answer.status.value)
            link_input = link_eval.of_answer(answer, question.gold)
        with session.answering() as workspace:
            plan, languages = workspace.plan(limited, preset), tuple(session.site.entailment.languages)
            counts = Driver(workspace.services(SILENT)).part(link_eval.evaluate(link_input, limited, plan, languages))
        return LinkRow(question.id, spoken, "answered", counts)

    return evaluate
