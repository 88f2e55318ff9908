"""``localmed eval links``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed.cli import reporting
from localmed.cli.common import filter_options, json_option, opened, print_json, progress, search_filter
from localmed.cli.speaking import language

if TYPE_CHECKING:
    from localmed.domain import SearchFilter
    from localmed.evaluation.link_files import LinkQuestion, LinkRow
    from localmed.evaluation.links import LinkReport
    from localmed.session import Session

ROWS = "rows.jsonl"


@click.command("links")
@click.option(
    "--questions",
    type=reporting.FILE,
    required=True,
    metavar="FILE",
    help="ID<TAB>QUESTION lines (a third column: the gold answer), .jsonl, or .toml with [[question]] tables.",
)
@click.option(
    "--answers",
    type=reporting.FILE,
    metavar="FILE",
    help="Evaluate these answers (JSON lines: id, answer with citations, sources) instead of asking the library.",
)
@click.option("--preset", metavar="NAME", help="Search in the tiers of this preset (default: as `localmed ask`).")
@reporting.seed_option
@reporting.out_option(help="Write report.json, table.csv, plot.png, plot.svg and rows.jsonl there.", required=True)
@reporting.resume_option
@filter_options
@json_option
@click.pass_context
def command(ctx: click.Context, /, out: Path, seed: int, as_json: bool, **choices: Any) -> None:
    """Measure how well the sentences of answers are tied to their sources (Link-Eval).

    Reports citation set precision, citation precision, citation recall, consistency, statement correctness (where a
    gold answer is given) and fluency (with a chat model), with 95 % intervals. What nothing can be taken of is
    undefined, never 1. Writes no question and no text. Needs the extra "eval".
    """
    from localmed.evaluation import links, measures, plot

    for library in (measures, plot):
        library.require()  # before minutes of asking, not after
    reporting.writable(out, ROWS)
    with reporting.resumable(out):
        result = _measured(ctx, out, seed, not as_json, **choices)
    texts = {"table.csv": links.as_csv(result)}
    reporting.write(out, result.as_dict(), texts, lambda folder: plot.draw_links(result, folder, language()))
    if as_json:
        print_json(result.as_dict())
        return
    reporting.table("Link-Eval", *links.table(result))
    reporting.tell(links.facts(result), out, "report.json", "table.csv", "plot.png", "plot.svg", "rows.jsonl")


def _measured(
    ctx: click.Context,
    out: Path,
    seed: int,
    show: bool,
    questions: Path,
    answers: Path | None,
    preset: str | None,
    resume: bool,
    **filters: Any,
) -> LinkReport:
    from localmed.evaluation import link_files, links

    items = link_files.questions(questions)
    items = link_files.with_answers(items, answers) if answers else items
    limited = search_filter(**filters)
    with opened(ctx) as session:
        made_with = {
            "questions": link_files.digest_of(questions),
            "answers": link_files.digest_of(answers) if answers else "",
            "asked": repr((preset, limited)),
            **_models(session),
        }
        done = link_files.begin(out / ROWS, made_with, resume)
        evaluate = _evaluator(session, limited, preset, bool(answers))
        with progress(show) as (started, advance):
            started(len(items))
            rows = list(_rows(items, done, evaluate, out / ROWS, advance))
        session.note("evaluate", f"links, {len(rows)} questions", "finished", int(made_with["generation"]))
    return links.report(rows, made_with, seed)


def _models(session: Session) -> dict[str, str]:
    """What the figures were made with."""
    from localmed import __version__
    from localmed.verification.link_eval import VALID_FROM

    site, encoder = session.site, session.site.encoder.identity
    with session.workspace() as workspace:
        provenance = workspace.provenance()
    return {
        "generation": provenance.generation,
        "profile": site.settings.profile,
        "encoder": encoder.slug,
        "reranker": site.reranker.name if site.reranker else "none",
        "judge": site.entailment.name,
        "answers by": dict(provenance.models).get("chat", "rules"),
        "valid_from": f"{VALID_FROM:.2f}",
        "version": __version__,
    }


def _evaluator(
    session: Session, limited: SearchFilter, preset: str | None, given_only: bool
) -> Callable[[LinkQuestion], LinkRow]:
    """What evaluates one question: its given answer, else the library's."""
    from localmed.domain import AnswerStatus
    from localmed.evaluation.link_files import LinkRow
    from localmed.language import detect
    from localmed.verification import link_eval
    from localmed.workflows.links import counts_of

    def evaluate(question: LinkQuestion) -> LinkRow:
        link_input, spoken = question.answer, detect(question.text)
        if link_input is None and given_only:
            return LinkRow(question.id, spoken, "no answer given")
        if link_input is None:
            answer = session.ask(question.text, limited, preset)
            if answer.status not in (AnswerStatus.ANSWERED, AnswerStatus.UNVERIFIED):
                return LinkRow(question.id, spoken, answer.status.value)
            link_input = link_eval.of_answer(answer, question.gold)
        return LinkRow(question.id, spoken, "answered", counts_of(session.links(link_input, limited, preset)))

    return evaluate


def _rows(
    items: Sequence[LinkQuestion],
    done: dict[str, LinkRow],
    evaluate: Callable[[LinkQuestion], LinkRow],
    file: Path,
    advance: Callable[[float, str], None],
) -> Any:
    """The row of each question, finished ones as they are."""
    from localmed.evaluation import link_files

    for question in items:
        row = done.get(question.id)
        if row is None:
            row = evaluate(question)
            link_files.keep(file, row)
        advance(1, question.id)
        yield row
