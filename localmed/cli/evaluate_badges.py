"""``localmed eval badges``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from localmed.cli import reporting
from localmed.cli.common import json_option, opened, print_json, progress
from localmed.cli.speaking import language
from localmed.errors import UnknownName

if TYPE_CHECKING:
    from localmed.domain import Badge
    from localmed.evaluation.badges import BadgeReport
    from localmed.evaluation.link_files import LinkQuestion
    from localmed.session import Session

ROWS = "rows.jsonl"


@click.command("badges")
@click.option(
    "--questions",
    type=reporting.FILE,
    required=True,
    metavar="FILE",
    help="ID<TAB>QUESTION lines, .jsonl, or .toml with [[question]] tables.",
)
@click.option(
    "--source",
    "-s",
    "named",
    multiple=True,
    metavar="NAME",
    help="A source to compare: a kind (guideline, literature, ...) or a collection; may be given several times "
    "(default: every kind of which the library holds a passage).",
)
@reporting.out_option(help="Write report.json, table.csv, plot.png, plot.svg and rows.jsonl there.", required=True)
@reporting.resume_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, /, questions: Path, named: tuple[str, ...], out: Path, resume: bool, as_json: bool
) -> None:
    """Ask questions of each source alone and of all, and compare the badges (Answered with Evidence).

    Reports the badges by source, how sources agree, all combinations, what each source alone answers, and how often at
    least one is green. What is not answered counts as red. Writes no question and no text. The plot needs the extra
    "eval".
    """
    from localmed.evaluation import badges, plot

    plot.require()  # before minutes of asking, not after
    reporting.writable(out, ROWS)
    with reporting.resumable(out):
        result = _measured(ctx, questions, named, out, resume, show=not as_json)
    texts = {"table.csv": badges.as_csv(result)}
    reporting.write(out, result, texts, lambda folder: plot.draw_badges(result, folder, language()))
    if as_json:
        print_json(result)
        return
    for title, columns, rows in badges.tables(result):
        reporting.table(title, columns, rows)
    reporting.tell(badges.facts(result), out, "report.json", "table.csv", "plot.png", "plot.svg", "rows.jsonl")


def _measured(
    ctx: click.Context, questions: Path, named: tuple[str, ...], out: Path, resume: bool, show: bool
) -> BadgeReport:
    from localmed.evaluation import badges, link_files, rows

    items = link_files.questions(questions)
    with opened(ctx) as session:
        sources = _sources(session, named)
        made_with = {"questions": link_files.digest_of(questions), "sources": ", ".join(sources), **_models(session)}
        done = rows.begin_badges(out / ROWS, made_with, resume)
        with progress(show) as (started, advance):
            started(len(items) * len(sources))
            by_question: dict[str, dict[str, Badge]] = {question.id: {} for question in items}
            for question in items:
                for source, collections in sources.items():
                    row = (question.id, source)
                    if row not in done:
                        done[row] = _badge(session, question, collections)
                        rows.keep_badge(out / ROWS, row, done[row])
                    by_question[question.id][source] = done[row]
                    advance(1, source)
        session.note("evaluate", f"badges, {len(items)} questions", "finished", int(made_with["generation"]))
    return badges.report(by_question, [source for source in sources if source != badges.COMBINED], made_with)


def _badge(session: Session, question: LinkQuestion, collections: Sequence[str]) -> Badge:
    from localmed.domain import SearchFilter

    return session.ask(question.text, SearchFilter(tuple(collections)), preset="").verification.badge


def _sources(session: Session, named: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """The collections of each source, then of all of them; raise ``UnknownName`` for one that holds nothing."""
    from localmed.evaluation.badges import COMBINED
    from localmed.operations import lookups

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


def _models(session: Session) -> dict[str, str]:
    """What the figures were made with."""
    from localmed import __version__

    with session.workspace() as workspace:
        made = workspace.provenance()
    judge = dict(made.prompts).get("badge", "")
    models = ", ".join(f"{name} {value}" for name, value in made.models)
    return {"generation": made.generation, "profile": made.profile, "models": models, "judge": judge,
            "version": __version__}  # fmt: skip
