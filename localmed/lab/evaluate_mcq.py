"""``localmed eval mcq``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed.cli.common import filter_options, json_option, opened, print_json, progress, search_filter
from localmed.cli.speaking import language
from localmed.domain import message
from localmed.domain.errors import ModelError, UnknownName, UsageError
from localmed.lab import reporting

if TYPE_CHECKING:
    from localmed.domain import Evidence
    from localmed.lab.mcq import Bench, Meter
    from localmed.lab.mcq_files import McqSet
    from localmed.lab.mcq_report import McqReport
    from localmed.site.session import Session

ROWS = "rows.jsonl"


@click.command("mcq")
@click.option("--set", "named", multiple=True, required=True, metavar="FORMAT:PATH",
              help="A set (several times): jsonl, medqa, medmcqa, pubmedqa, mmlu, cmmlu, afrimedqa, medbullets, or a "
              "TOML manifest of your own, then a colon and the file.")  # fmt: skip
@click.option("--arms", default="", metavar="NAMES",
              help="Separated by commas (default: chat,cot,retrieval,mairag). Also mairag-without-relevance, "
              "-self_knowledge, -decomposition, -coherence, and plan-none, -original, -query2doc, -prompting, "
              "-reflexion, -serts. The first is what the others are tested against.")  # fmt: skip
@click.option("--questions", "size", type=click.IntRange(1), metavar="N",
              help="Questions of each set, drawn by the seed (default: all).")  # fmt: skip
@click.option("--order-seed", type=click.IntRange(0, 2**31), metavar="N",
              help="Draws the orders in which options are shown (default: as --seed); another one shows how far "
              "accuracy depends on them.")  # fmt: skip
@click.option("--every-order", is_flag=True,
              help="Show up to four options in every order, so that no seed decides (default: rotations and their "
              "mirror images, a third as many of four; all there are of two or three).")  # fmt: skip
@click.option("--samples", type=click.IntRange(0, 20), default=0, metavar="N",
              help="Draw N further chains of thought in the arm cot and compare them with the first, by the judge of "
              "entailment (LUQ; the paper's 9; default: 0).")  # fmt: skip
@click.option("--show-questions", is_flag=True,
              help="Also write questions.jsonl with texts and choices (default: no text is written).")  # fmt: skip
@reporting.seed_option
@reporting.out_option(help="Write report.json, table.csv, plot.png, plot.svg and rows.jsonl there.", required=True)
@reporting.resume_option
@filter_options
@json_option
@click.pass_context
def command(ctx: click.Context, /, out: Path, seed: int, as_json: bool, show_questions: bool, **choices: Any) -> None:
    """Answer multiple-choice questions with several arms and compare them (LINS; Omni-RAG).

    The choice is read from the model's probabilities, the options in several orders, averaged. Reports accuracy with
    95 % intervals, paired tests, agreement, position bias, label entropy, tokens, calls, seconds, and LINS's rank
    score. Needs a chat model and the extra "eval". Writes no question unless asked.
    """
    from localmed.lab import mcq_report, measures, plot

    for library in (measures, plot):
        library.require()
    reporting.writable(out, ROWS)
    with reporting.resumable(out):
        result = _measured(ctx, out, seed, not as_json, show_questions, **choices)
    texts = {"table.csv": mcq_report.as_csv(result)}
    reporting.write(out, result, texts, lambda folder: plot.draw_mcq(result, folder, language()))
    if as_json:
        print_json(result)
        return
    reporting.table(message("evaluation.title.mcq"), *mcq_report.accuracy_table(result))
    reporting.table(message("evaluation.title.mcq_cost"), *mcq_report.cost_table(result))
    reporting.tell(mcq_report.facts(result), out, "report.json", "table.csv", "plot.png", "plot.svg", ROWS)


def _measured(
    ctx: click.Context,
    out: Path,
    seed: int,
    show: bool,
    show_questions: bool,
    named: tuple[str, ...],
    arms: str,
    size: int | None,
    order_seed: int | None,
    every_order: bool,
    samples: int,
    resume: bool,
    **filters: Any,
) -> McqReport:
    from localmed.lab import mcq, mcq_report

    chosen = _arms(arms)
    sets = [set_named(name, size, seed) for name in named]
    if len({questions.name for questions in sets}) < len(sets):
        raise UsageError("evaluation.mcq_twice")
    how = {"seed": seed if order_seed is None else order_seed, "every_order": every_order, "samples": samples}
    with opened(ctx) as session, _bench(session, how, filters) as (bench, facts):
        made = mcq.made_with(sets, chosen, seed, **facts)
        done = mcq.begin(out / ROWS, made, resume)
        with progress(show) as (started, advance):
            started(sum(len(questions.questions) for questions in sets) * len(chosen))
            rows = list(mcq.run(bench, sets, chosen, out / ROWS, done, advance))
        session.note("evaluate", f"mcq, {len(rows)} rows", "finished", int(facts["generation"]))
    if show_questions:
        (out / "questions.jsonl").write_text(mcq_report.with_questions(sets, rows), "utf-8")
    return mcq_report.report(rows, {questions.name: questions.left_out for questions in sets}, made, seed)


def _arms(names: str) -> tuple[str, ...]:
    from localmed.lab.mcq import CHAT, COT, DEFAULT_ARMS
    from localmed.workflows.context import ARMS

    chosen = tuple(dict.fromkeys(filter(None, names.replace(" ", "").split(",")))) or DEFAULT_ARMS
    known = (CHAT, COT, *ARMS)
    for name in chosen:
        if name not in known:
            raise UnknownName("workflow.arm", arms=known, name=name)
    return chosen


def set_named(name: str, size: int | None, seed: int) -> McqSet:
    """The set ``FORMAT:PATH``, or ``size`` of its questions drawn by ``seed``."""
    from localmed.lab import mcq_files

    shape, colon, file = name.partition(":")
    if not colon or not file:
        raise UsageError("evaluation.mcq_set", name=name)
    questions = mcq_files.load(Path(file), mcq_files.format_named(shape))
    return questions.sample(size, seed) if size else questions


@contextmanager
def _bench(session: Session, how: dict[str, Any], filters: dict[str, Any]) -> Iterator[tuple[Bench, dict[str, str]]]:
    """A bench on a site of its own, whose chat model is metered; and what it is made with. ``how``: see ``Bench``."""
    from localmed import __version__
    from localmed.lab.mcq import Bench, Meter
    from localmed.site.session import Session as OwnSession
    from localmed.site.site import Site

    if session.site.chat is None:
        raise ModelError("evaluation.no_chat")
    meter, limited = Meter(session.site.chat), search_filter(**filters)
    with Site(session.settings, chat=meter) as site:
        own = OwnSession(site, session.caller, session.day)
        with own.workspace() as workspace:
            provenance, unfit = workspace.provenance(), sorted(site.unfit_roles)
        facts = {
            "chat": meter.identity.name,
            "generation": provenance.generation,
            "encoder": site.encoder.identity.slug,
            "reranker": site.reranker.name if site.reranker else "none",
            "by rules": " ".join(unfit) or "none",
            "asked": repr(limited),
            "judge": site.entailment.name,
            "samples": str(how["samples"]),
            "orders": "every" if how["every_order"] else str(how["seed"]),
            "version": __version__,
        }
        context = lambda question, arm: own.context(question, limited, arm)  # noqa: E731
        agrees = lambda text, evidence: _agrees(own, text, evidence, meter)  # noqa: E731
        yield Bench(meter, context, agrees, judge=site.entailment.judge, **how), facts


def _agrees(session: Session, text: str, evidence: tuple[Evidence, ...], meter: Meter) -> bool:
    """Whether the coherence role finds no conflict between ``text`` and its evidence."""
    from localmed.answering.asking import COHERENCE, CoherenceInput
    from localmed.answering.chat import ChatRoles
    from localmed.domain import Citation, Origin, Statement

    citations = tuple(
        Citation(piece.marker, piece.passage.id, piece.passage.document_id, 0, 0, "") for piece in evidence
    )
    statement = Statement(text, citations, Origin.GENERATED)
    with session.workspace() as workspace:
        if workspace.roles.by(COHERENCE) != "chat":
            return True
    coherence = ChatRoles(meter).perform(COHERENCE, CoherenceInput(text, (statement,), evidence))
    return bool(coherence.agrees)
