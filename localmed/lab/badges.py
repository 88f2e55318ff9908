"""``localmed eval badges``: the tables of Answered with Evidence, for questions asked of several sources.

For each source the badges (Table 1); for each pair of sources the agreement matrix and how often both, neither or at
least one is green (Tables 2a to 2c, Fig. 3; "neither" is the paper's "Yellow or Red" concordance); for all sources the
observed combinations (Table 2d), the share of questions with at least one green, and each source's novelty: the share
for which it alone is green. An unanswered question counts as red and is also counted separately. ``COMBINED``, the
question asked of all sources together, is only in the first table. No question is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any

import click

from localmed.cli.common import open_session, progress
from localmed.cli.options import json_option
from localmed.domain import Badge, Message, SearchFilter, message
from localmed.domain.errors import UnknownName
from localmed.lab import plot, reporting, sets
from localmed.lab.reporting import ROWS, Report, Rows, Table
from localmed.lab.sets import Question
from localmed.library.intact import sha256_of
from localmed.site import lookups
from localmed.site.session import Session

COMBINED = "all sources"
COLOURS = ("green", "yellow", "red")
FACES = ({"color": "#8fce8f"}, {"color": "#f2d974", "hatch": "//"}, {"color": "#e09090", "hatch": "xx"})


@dataclass(frozen=True, slots=True)
class BadgeRow:
    """The badge of a question's answer from one source."""

    question: str
    source: str
    badge: str


def report(badges: Sequence[BadgeRow], made: Mapping[str, str]) -> Report:
    """The tables of ``badges``; every question has one for every source, and for ``COMBINED`` if any has."""
    colours: dict[str, dict[str, str]] = {}  # question -> source -> colour
    for row in badges:
        colours.setdefault(row.question, {})[row.source] = row.badge if row.badge in COLOURS else "red"
    columns = list(dict.fromkeys(row.source for row in badges))
    sources = [name for name in columns if name != COMBINED]
    total, answers = len(colours), list(colours.values())
    unanswered = Counter(row.source for row in badges if row.badge == Badge.NONE.value)
    summaries: list[dict[str, Any]] = [
        {"source": name, **{colour: sum(row[name] == colour for row in answers) for colour in COLOURS},
         "unanswered": unanswered[name]}
        for name in columns
    ]  # fmt: skip
    pairs = [_agreement(one, other, answers) for one, other in combinations(sources, 2)]
    counted = sorted(Counter(tuple(row[name] for name in sources) for row in answers).items())
    counted.sort(key=lambda entry: entry[1], reverse=True)
    greens = [{name for name in sources if row[name] == "green"} for row in answers]
    novelty = [(name, sum(green == {name} for green in greens) / total) for name in sources]
    any_green = sum(map(bool, greens)) / total
    facts = (
        *(message("evaluation.facts.agreement", **{name: pair[name] for name in _SHARES}) for pair in pairs),
        message("evaluation.facts.green", share=any_green, count=total),
        message("evaluation.facts.badge"),
        *(message("evaluation.facts.made", name=name, value=value) for name, value in made.items() if value),
    )
    bars = {_source(row["source"]): {Message(f"column.{name}"): row[name] for name in COLOURS} for row in summaries}
    values = {
        "questions": total, "sources": sources, "summaries": summaries, "agreements": pairs, "combinations": counted,
        "at_least_one_green": any_green, "novelty": novelty, "made_with": dict(made),
    }  # fmt: skip
    draw = partial(plot.bars, message("evaluation.plot.badges", count=total), bars, styles=FACES)
    return Report(values, _tables(values), facts, _lines(values), draw)


_SHARES = ("first", "second", "both", "neither", "overall", "either")


def _agreement(one: str, other: str, rows: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """``matrix[i][j]`` counts colour i of the first with colour j of the second; the other values are shares."""
    counts = Counter((row[one], row[other]) for row in rows)
    matrix = [[counts[mine, theirs] for theirs in COLOURS] for mine in COLOURS]
    neither, both, total = sum(count for row in matrix[1:] for count in row[1:]), matrix[0][0], len(rows)
    shares = {"both": both, "neither": neither, "overall": both + neither, "either": total - neither}
    named = {"first": one, "second": other, "matrix": matrix}
    return {**named, **{name: count / total for name, count in shares.items()}}


def _source(name: str) -> Message | str:
    return Message("column.all_sources") if name == COMBINED else name


def _tables(values: Mapping[str, Any]) -> list[Table]:
    total, pairs, novelty = values["questions"], values["agreements"], values["novelty"]
    of: Callable[[int], str] = lambda count: f"{count} ({count / total:.1%})"  # noqa: E731
    shown = [
        {**row, "source": _source(row["source"]), **{name: of(row[name]) for name in COLOURS}}
        for row in values["summaries"]
    ]
    tables = [Table(Message("evaluation.title.badges"), ("source", *COLOURS, "unanswered"), shown)]
    for pair in pairs:
        matrix, second = pair["matrix"], pair["second"]
        named: list[Any] = [*(f"{pair['first']} {colour}" for colour in COLOURS), Message("column.column_total")]
        records = [
            {second: name, **dict(zip(COLOURS, map(of, row), strict=True)), "row_total": of(sum(row))}
            for name, row in zip(named, [*matrix, [sum(column) for column in zip(*matrix, strict=True)]], strict=True)
        ]
        title = message("evaluation.title.agreement", first=pair["first"], second=second)
        tables.append(Table(title, (second, *COLOURS, "row_total"), records))
    if pairs:
        sources = [name for name, _ in novelty]
        each = [
            {**dict(zip(sources, colours, strict=True)), "questions": of(count)}
            for colours, count in values["combinations"]
        ]
        alone = [{"source": name, "share": share} for name, share in novelty]
        tables.append(Table(Message("evaluation.title.combinations"), (*sources, "questions"), each))
        tables.append(Table(Message("evaluation.title.novelty"), ("source", "share"), alone))
    return tables


def _lines(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The records of table.csv: table, row, column, value."""
    sources = ", ".join(values["sources"])
    lines = [
        ("summary", row["source"], name, row[name]) for row in values["summaries"] for name in (*COLOURS, "unanswered")
    ]
    for pair in values["agreements"]:
        one, other = pair["first"], pair["second"]
        for (mine, theirs), count in zip(product(COLOURS, COLOURS), chain(*pair["matrix"]), strict=True):
            lines.append(("agreement", f"{one} {mine}", f"{other} {theirs}", count))
        for name in ("both", "neither", "either"):
            lines.append(("agreement", f"{one}, {other}", f"{name}_green", pair[name]))
    lines += [("combination", sources, ", ".join(colours), count) for colours, count in values["combinations"]]
    lines += [("novelty", name, "share", share) for name, share in values["novelty"]]
    lines.append(("at_least_one_green", "", "share", values["at_least_one_green"]))
    return [dict(zip(("table", "row", "column", "value"), line, strict=True)) for line in lines]


@click.command("badges")
@click.option("--questions", "file", type=reporting.FILE, required=True, metavar="FILE",
              help="ID<TAB>QUESTION lines, .jsonl, or .toml with [[question]] tables.")  # fmt: skip
@click.option("--source", "-s", "named", multiple=True, metavar="NAME",
              help="A source to compare: a kind (guideline, literature, ...) or a collection; may be given several "
              "times (default: every kind of which the library holds a passage).")  # fmt: skip
@reporting.rows_options
@json_option
@click.pass_context
def command(ctx: click.Context, /, file: Path, named: tuple[str, ...], out: Path, resume: bool, as_json: bool) -> None:
    """Answer questions from each source alone and from all, and compare the badges (Answered with Evidence).

    Reports the badges by source, how sources agree, all combinations, what each source alone answers, and how often at
    least one is green. Unanswered questions count as red. Writes no question and no text. The plot needs the extra
    "eval".
    """
    reporting.need(plot)
    with reporting.report_folder(out, resume, ROWS):
        questions = sets.questions(file)
        with open_session(ctx) as session, progress(not as_json) as (started, advance):
            sources = _sources(session, named)
            made = {"questions": sha256_of(file), "sources": ", ".join(sources), **reporting.made_with(session)}
            kept, badges = Rows(out / ROWS, made, resume, BadgeRow, "question", "source"), []
            started(len(questions) * len(sources))
            for question in questions:
                for source, collections in sources.items():
                    make = partial(_badge, session, question, source, collections)
                    badges.append(kept.get((question.id, source), make))
                    advance(1, source)
            session.note("evaluate", f"badges, {len(questions)} questions", "finished", int(made["generation"]))
    report(badges, made).finish(out, as_json, ROWS)


def _badge(session: Session, question: Question, source: str, collections: Sequence[str]) -> BadgeRow:
    answer = session.ask(question.text, SearchFilter(tuple(collections)), preset="")
    return BadgeRow(question.id, source, answer.verification.badge.value)


def _sources(session: Session, named: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """The collections of each source, then of all; raise ``UnknownName`` for a source without passages."""
    filled = [row.collection for row in lookups.collections(session) if row.passages]
    kinds: dict[str, tuple[str, ...]] = {}
    for collection in filled:
        if collection.kind.value:
            kinds[collection.kind.value] = (*kinds.get(collection.kind.value, ()), collection.name)
    known = {**{name: (name,) for name in sorted(collection.name for collection in filled)}, **kinds}
    for name in named:
        if name not in known:
            raise UnknownName("evaluation.no_source", known=tuple(known), name=name)
    chosen = {name: known[name] for name in dict.fromkeys(named)} or kinds or known
    together = tuple(dict.fromkeys(name for collections in chosen.values() for name in collections))
    return {**chosen, COMBINED: together} if len(chosen) > 1 else chosen
