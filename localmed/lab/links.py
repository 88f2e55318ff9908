"""``localmed eval links``: Link-Eval over a batch (LINS) of the library's answers, or of answers written elsewhere.

The latter are JSON lines with ``answer`` (text with citations in any style that ``answering.marked_text`` reads) and
the ``id`` (or ``question``) of the question; ``sources`` are the references, cited or not: texts, or objects with
``text`` and optionally ``marker`` (default: the place in the list) and ``title``; ``gold`` (or ``evidence``) is the
right answer.

A question with an undefined metric is excluded from its mean and counted. Only ids, counts and settings are written.

Link-Eval measures how well an answer's sentences are supported by their sources (LINS, "Construction of Link-Eval").

- Citation set precision: correct sets / sets. A set is all citations of a statement; it is correct if the concatenated
  texts of its sources entail the statement. A statement that a source contains verbatim is entailed by rule and counted
  as verbatim; without a model nothing else is judged.
- Citation precision: correct citations / citations. A citation is correct if its set is correct, and no longer is
  without this citation. A second source that says the same therefore lowers precision: neither is irreplaceable.
- Citation recall: correctly cited valid references / valid references. A reference (retrieved, cited or not) is valid
  if its relevance score for the question is above ``VALID_FROM``.
- Statement correctness: 0 if two statements contradict each other, else whether the statements contain the gold answer.
  Consistency is the first half, which needs no gold answer.
- Fluency: the mean probability that a statement is fluent, by a chat model.

A metric without cases is None: an answer without citations has no precision, and uncited statements are counted
separately. Sets, pairs and references in a language that the judge does not know are reported as unjudged and count
nowhere. A marker without a source is a citation, and never correct.

The references of an answer of the library are searched again as ``ask`` did (the sections found, plus the cited ones);
those of another answer are its given sources. Judging takes two rounds: all sets, pairs and the gold answer; then the
correct sets without one citation each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import click
import numpy as np

from localmed.answering import check, marked_text
from localmed.answering.asking import FLUENCY, RELEVANCE, FluencyInput, RelevanceInput
from localmed.answering.check import CONTRADICTED
from localmed.cli.common import open_session, progress
from localmed.cli.options import filter_options, json_option, search_filter
from localmed.domain import Answer, AnswerStatus, Message, Passage, SearchFilter, digest, message
from localmed.domain.errors import InputError
from localmed.domain.findings import Finding
from localmed.domain.ports import Stance
from localmed.lab import measures, plot, reporting, sets
from localmed.lab.reporting import ROWS, Report, Rows, Table
from localmed.lab.sets import Question, text_of
from localmed.library.intact import sha256_of
from localmed.process.hooks import SILENT
from localmed.site.session import Session
from localmed.text.language import clean, detect, words
from localmed.text.verbatim import find_verbatim, holds
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Driver, Find, Judge, Step, asked
from localmed.workflows.receipts import PASSAGES, SECTIONS

VALID_FROM = 0.6  # LINS's threshold, here of the label "relevant"; not measured on a chat model
MOST_COMPARED = 60  # statements compared with one another: 3,540 ordered pairs, about 2 s on starter

Pairs = tuple[tuple[str, str], ...]  # (premise, hypothesis)
Stances = Mapping[tuple[str, str], Stance]


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """The counts of one answer, of judged sets, pairs and references, and its metrics.

    ``gold`` is 1 if the statements contain the gold answer, 0 if not, None without one or without a judgement.
    """

    statements: int = 0
    uncited: int = 0
    sets: int = 0
    correct_sets: int = 0
    verbatim_sets: int = 0
    citations: int = 0
    correct_citations: int = 0
    unresolved: int = 0
    malformed: int = 0
    unjudged_sets: int = 0
    references: int = 0
    valid: int = 0
    valid_cited: int = 0
    unjudged_references: int = 0
    pairs: int = 0
    conflicts: int = 0
    unjudged_pairs: int = 0
    gold: int | None = None
    fluency: float | None = None

    @property
    def citation_set_precision(self) -> float | None:
        """LINS, equation 1."""
        return _share(self.correct_sets, self.sets)

    @property
    def citation_precision(self) -> float | None:
        """LINS, equation 2."""
        return _share(self.correct_citations, self.citations)

    @property
    def citation_recall(self) -> float | None:
        """LINS, equation 3."""
        return _share(self.valid_cited, self.valid)

    @property
    def consistency(self) -> float | None:
        """1 if no statements contradict each other, 0 if some do; None if fewer than two were compared."""
        return float(not self.conflicts) if self.pairs else None

    @property
    def statement_correctness(self) -> float | None:
        """None without ``gold``; 0 with a contradiction; None if pairs were not judged; else ``gold``."""
        if self.conflicts and self.gold is not None:
            return 0.0
        return None if self.gold is None or self.unjudged_pairs else float(self.gold)

    def metrics(self) -> dict[str, float | None]:
        """All metrics by name, in display order."""
        return {name: getattr(self, name) for name in METRICS}


METRICS = ("citation_set_precision", "citation_precision", "citation_recall", "consistency", "statement_correctness",
           "fluency")  # fmt: skip


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


@dataclass(frozen=True, slots=True)
class LinkStatement:
    """A sentence and its citation markers."""

    text: str
    markers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkSource:
    """The passage of a marker; "" for a reference that is not cited."""

    marker: str
    passage: Passage


@dataclass(frozen=True, slots=True)
class LinkInput:
    """The answer to evaluate. ``retrieved``: search its references in the library; else ``sources`` are all of them.

    ``gold`` is the known right answer, if any; ``malformed`` counts unreadable citations in its text.
    """

    question: str
    statements: tuple[LinkStatement, ...]
    sources: tuple[LinkSource, ...] = ()
    gold: str = ""
    retrieved: bool = False
    malformed: int = 0


@dataclass(frozen=True, slots=True)
class CitationSet:
    """The citations of a statement: its known sources, in the input's order, and the number of unknown markers.

    ``judged``: the judge knows the languages, or the single source contains the statement verbatim.
    """

    statement: str
    sources: tuple[LinkSource, ...]
    unresolved: int
    judged: bool

    @property
    def size(self) -> int:
        """The number of citations."""
        return len(self.sources) + self.unresolved

    @property
    def verbatim(self) -> bool:
        """Whether a source contains the statement verbatim."""
        return any(find_verbatim(one.passage.text, self.statement, one.passage.table) for one in self.sources)

    @property
    def premise(self) -> str:
        """The texts of its sources; "" if they have no words."""
        kept = [source.passage for source in self.sources]
        return "\n".join(passage.in_context for passage in kept) if any(words(passage.text) for passage in kept) else ""

    @property
    def needs_judge(self) -> bool:
        """Whether the judge decides: not where a rule does."""
        return self.judged and bool(self.premise) and not self.verbatim

    def without(self, source: LinkSource) -> CitationSet:
        """The set without one citation."""
        return replace(self, sources=tuple(cited for cited in self.sources if cited != source))


def of_answer(answer: Answer, gold: str = "") -> LinkInput:
    """The shown statements of an answer of the library, and their sources."""
    shown = answer.shown
    statements = tuple(
        LinkStatement(statement.text, tuple(c.marker for c in statement.citations)) for statement in shown
    )
    sources = tuple(LinkSource(piece.marker, piece.passage) for piece in check.cited(shown, answer.evidence))
    return LinkInput(answer.question, statements, sources, gold, retrieved=True)


# --- citation sets ----------------------------------------------------------------------------------------------------


def citation_sets(task: LinkInput, languages: Sequence[str]) -> tuple[CitationSet, ...]:
    """The set of each citing statement, without repeated markers; ``languages`` are the judge's."""
    return tuple(_set(statement, task.sources, languages) for statement in task.statements if statement.markers)


def _set(statement: LinkStatement, sources: Sequence[LinkSource], languages: Sequence[str]) -> CitationSet:
    markers = set(statement.markers)
    cited = tuple({source.marker: source for source in sources if source.marker in markers}.values())
    made = CitationSet(statement.text, cited, len(markers) - len(cited), True)
    known = all(detect(text) in languages for text in (statement.text, *(source.passage.text for source in cited)))
    return replace(made, judged=not cited or known or (len(cited) == 1 and made.verbatim))


def _set_pairs(sets: Iterable[CitationSet]) -> Pairs:
    return tuple((one.premise, one.statement) for one in sets if one.needs_judge)


def pairs(task: LinkInput, languages: Sequence[str]) -> Pairs:
    """The first round: sources against statements, statements against each other, statements against the gold answer.

    The first ``MOST_COMPARED`` different statements are compared with each other in both orders.
    """
    between = (pair for one, other in _compared(task, languages) for pair in ((one, other), (other, one)))
    gold = _gold_pair(task, languages)
    return (*_set_pairs(citation_sets(task, languages)), *between, *((gold,) if gold else ()))


def entailed_sets(sets: Sequence[CitationSet], stances: Stances) -> tuple[CitationSet, ...]:
    """The sets that entail their statements."""
    return tuple(one for one in sets if one.judged and _entailed(one, stances))


def _entailed(one: CitationSet, stances: Stances) -> bool:
    return stances[one.premise, one.statement].label == "entailment" if one.needs_judge else one.verbatim


def reduced_pairs(right: Sequence[CitationSet]) -> Pairs:
    """The second round: each correct set without one citation, where no rule decides."""
    return _set_pairs(one.without(source) for one in right for source in one.sources)


def irreplaceable_citations(right: Sequence[CitationSet], stances: Stances) -> tuple[tuple[LinkSource, ...], ...]:
    """The correct citations of each correct set."""
    return tuple(
        tuple(source for source in one.sources if not _entailed(one.without(source), stances)) for one in right
    )


def _texts(task: LinkInput) -> list[str]:
    return list(dict.fromkeys(statement.text for statement in task.statements))


def _compared(task: LinkInput, languages: Sequence[str]) -> list[tuple[str, str]]:
    return list(combinations([text for text in _texts(task) if detect(text) in languages][:MOST_COMPARED], 2))


def _gold_pair(task: LinkInput, languages: Sequence[str]) -> tuple[str, str] | None:
    """All statements together against the gold answer; None without one or in an unknown language."""
    texts = _texts(task)
    known = all(detect(text) in languages for text in (*texts, task.gold))
    return (" ".join(texts), task.gold) if task.gold and texts and known else None


def _holds_gold(pair: tuple[str, str] | None, stances: Stances) -> int | None:
    """Whether the statements entail the gold answer, or contain it verbatim without contradicting it."""
    if pair is None:
        return None
    against = stances[pair].contradiction >= CONTRADICTED
    return int(stances[pair].label == "entailment" or (holds(*pair) and not against))


def count_links(
    task: LinkInput,
    languages: Sequence[str],
    stances: Stances,
    scores: Sequence[float | None],
    fluency: float | None = None,
) -> LinkCounts:
    """The counts by the ``stances`` of both rounds and the relevance ``scores`` of ``task.sources``.

    A passage with two markers is one reference.
    """
    sets = citation_sets(task, languages)
    cited = irreplaceable_citations(entailed_sets(sets, stances), stances)
    judged = [one for one in sets if one.judged]
    right = {source.passage.id for citations in cited for source in citations}
    open_ids = {source.passage.id for one in sets if not one.judged for source in one.sources} - right
    scored = {source.passage.id: score for source, score in zip(task.sources, scores, strict=True)}
    known = {name: score for name, score in scored.items() if score is not None and name not in open_ids}
    valid = {name for name, score in known.items() if score > VALID_FROM}
    compared, texts = _compared(task, languages), len(_texts(task))
    return LinkCounts(
        statements=len(task.statements),
        uncited=sum(not statement.markers for statement in task.statements),
        sets=len(judged),
        correct_sets=len(cited),
        verbatim_sets=sum(one.verbatim for one in judged),
        citations=sum(one.size for one in judged),
        correct_citations=sum(map(len, cited)),
        unresolved=sum(one.unresolved for one in judged),
        malformed=task.malformed,
        unjudged_sets=len(sets) - len(judged),
        references=len(known),
        valid=len(valid),
        valid_cited=len(valid & right),
        unjudged_references=len(scored) - len(known),
        pairs=len(compared),
        conflicts=sum(
            any(stances[pair].contradiction >= CONTRADICTED for pair in ((one, other), (other, one)))
            for one, other in compared
        ),
        unjudged_pairs=texts * (texts - 1) // 2 - len(compared),
        gold=_holds_gold(_gold_pair(task, languages), stances),
        fluency=fluency,
    )


# --- asking for it ----------------------------------------------------------------------------------------------------


def evaluate(task: LinkInput, filters: SearchFilter, plan: Plan, languages: Sequence[str]) -> Step[LinkCounts]:
    """The counts of ``task``, judged in ``languages``; its references are searched by ``filters`` and ``plan``."""
    if task.retrieved:
        task = yield from _with_references(task, filters, plan)
    passages = tuple(source.passage for source in task.sources)
    scores: Sequence[float | None] = (None,) * len(passages)
    if passages:  # how likely each helps to answer (LINS, correlation scorer)
        scores = yield from asked(RELEVANCE, RelevanceInput(task.question, passages), plan.chat, scores)
    first = pairs(task, languages)
    stances: dict[tuple[str, str], Stance] = dict(zip(first, (yield Judge(first)), strict=True))
    less = reduced_pairs(entailed_sets(citation_sets(task, languages), stances))
    stances |= zip(less, (yield Judge(less)), strict=True)
    texts, nothing = tuple(statement.text for statement in task.statements), tuple[float, ...]()
    fluent = (yield from asked(FLUENCY, FluencyInput(texts), plan.chat, nothing)) if texts else nothing
    return count_links(task, languages, stances, scores, sum(fluent) / len(fluent) if fluent else None)


def _with_references(task: LinkInput, filters: SearchFilter, plan: Plan) -> Step[LinkInput]:
    """``task`` with the passages that were retrieved for its question and are not cited."""
    found: Finding = yield Find(task.question, plan.within(filters), PASSAGES, SECTIONS)
    cited = {source.passage.id for source in task.sources}
    passages = (passage for section in (*found.sections, *found.others) for passage in section.passages)
    others = {passage.id: passage for passage in passages if passage.id not in cited}
    return replace(task, sources=(*task.sources, *(LinkSource("", other) for other in others.values())))


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

    def row_of(question: Question) -> LinkRow:
        spoken, link_input = detect(question.text), (inputs or {}).get(question.id)
        if link_input is None and inputs is not None:
            return LinkRow(question.id, spoken, "no answer given")
        if link_input is None:
            answer = session.ask(question.text, limited, preset)
            if answer.status not in (AnswerStatus.ANSWERED, AnswerStatus.UNVERIFIED):
                return LinkRow(question.id, spoken, answer.status.value)
            link_input = of_answer(answer, question.gold)
        with session.answering() as workspace:
            plan, languages = workspace.plan(limited, preset), tuple(session.site.entailment.languages)
            counts = Driver(workspace.services(SILENT)).part(evaluate(link_input, limited, plan, languages))
        return LinkRow(question.id, spoken, "answered", counts)

    return row_of
