"""``localmed eval claims``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from localmed.cli import reporting
from localmed.cli.common import json_option, opened, plain, print_json, print_table, progress
from localmed.cli.speaking import columns, language, text
from localmed.errors import UsageError

if TYPE_CHECKING:
    from localmed.evaluation.stance import StanceReport

Counts = dict[tuple[str, str], int]


@click.command("claims")
@click.option(
    "--questions",
    type=reporting.FILE,
    metavar="FILE",
    help='Answers to verify: JSON lines or a JSON list of {"id", "question", "answer", "sources", "label"}; a label '
    "(correct or mistaken) is what a person found.",
)
@click.option(
    "--pairs",
    type=reporting.FILE,
    metavar="FILE",
    help="Labelled pairs of a text and a statement, as of `eval stance`: how stances inside M-Eval agree with them.",
)
@reporting.seed_option
@reporting.out_option(help="Write report.json, a plot and, of answers, table.csv and results.jsonl there.")
@reporting.resume_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    questions: Path | None,
    pairs: Path | None,
    seed: int,
    out: Path | None,
    resume: bool,
    as_json: bool,
) -> None:
    """Verify many answers by M-Eval, or measure its stances on labelled pairs.

    Reports labels of responses, claims and given evidence; where answers are labelled, accuracy, recall and
    specificity. Writes no text, only ids and counts. The plot needs the extra "eval".
    """
    from localmed.evaluation import plot

    if (questions is None) == (pairs is None):
        raise UsageError("evaluation.questions_or_pairs")
    if resume and not (out and questions):
        raise UsageError("evaluation.resume_questions")
    if out:
        plot.require()  # before minutes of judging, not after
        reporting.writable(out)
    if questions:
        _answers(ctx, questions, out, resume, as_json)
    elif pairs:
        _pairs(ctx, pairs, seed, out, as_json)


def _answers(ctx: click.Context, file: Path, out: Path | None, resume: bool, as_json: bool) -> None:
    from localmed.evaluation import claims, plot

    items = claims.load(file)
    with reporting.resumable(out), opened(ctx) as session, progress(not as_json) as (started, advance):
        started(len(items))
        results = claims.run(items, session.verify, advance, out, resume)
        result = claims.report(file.name, session.site.entailment.name, results)
    if out:
        texts = {"table.csv": claims.as_csv(result)}
        reporting.write(out, result, texts, lambda folder: plot.draw_claims(result, folder, language()))
    if as_json:
        print_json(result)
        return
    for title, counts in (("responses", result.responses), ("claims", result.claims)):
        rows = [(text(f"verify.label_of.{label}"), number) for label, number in counts.items()]
        print_table(text(f"evaluation.title.{title}", set=result.set), columns("label", "number"), rows)
    reporting.tell(claims.facts(result), out, "report.json", "table.csv", "results.jsonl", "plot.png", "plot.svg")


def _pairs(ctx: click.Context, file: Path, seed: int, out: Path | None, as_json: bool) -> None:
    from localmed.evaluation import claims, plot, stance

    pair_set = stance.load(file)
    with opened(ctx) as session:
        judges = [claims.Inside(session.site.entailment), session.site.entailment]
        with progress(not as_json) as (started, advance):
            started(len(pair_set.pairs) * len(judges))
            result = stance.report(pair_set, judges, seed, advance)
        counts = claims.by_claim(
            pair_set, judges[0].judge([(pair.premise, pair.hypothesis) for pair in pair_set.pairs])
        )
        session.note("evaluate", f"claims, {result.pairs} pairs", "finished")
    values = {**plain(result), "claims": [{"is": is_so, "judged": judged, "claims": n} for (is_so, judged), n in
                                            sorted(counts.items())]}  # fmt: skip
    if out:
        reporting.write(out, values, {}, lambda folder: plot.draw_confusion(result, folder, language()))
    if as_json:
        print_json(values)
        return
    _tell_pairs(result, counts)
    reporting.tell((), out, "report.json", "confusion.png", "confusion.svg")


def _tell_pairs(result: StanceReport, counts: Counts) -> None:
    """The judge inside M-Eval and alone, each class, and what the votes made of the claims."""
    rows = [(judge.judge, f"{judge.accuracy:.3f}", f"{judge.macro_f1:.3f}") for judge in result.judges]
    print_table(text("evaluation.title.stances", set=result.set), columns("judge", "accuracy", "macro_f1"), rows)
    classes = result.judges[0].classes.items()
    by_class = [(label, f"{scores.precision:.3f}", f"{scores.recall:.3f}", scores.pairs) for label, scores in classes]
    print_table(text("evaluation.title.by_class"), columns("class", "precision", "recall", "pairs"), by_class)
    claims = [
        (text(f"verify.label_of.{is_so}"), text(f"verify.label_of.{judged}"), number)
        for (is_so, judged), number in sorted(counts.items())
    ]
    print_table(text("evaluation.title.votes"), columns("labels_say", "m_eval_says", "claims"), claims)
