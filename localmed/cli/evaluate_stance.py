"""``localmed eval stance``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from localmed.cli import reporting
from localmed.cli.common import json_option, opened, print_json, print_table, progress
from localmed.cli.speaking import columns, language, text

if TYPE_CHECKING:
    from localmed.evaluation.stance import JudgeScores, StanceReport
    from localmed.ports import Entailment


@click.command("stance")
@click.option(
    "--pairs",
    type=reporting.FILE,
    required=True,
    metavar="FILE",
    help="Labelled pairs: PREMISE<TAB>HYPOTHESIS<TAB>LABEL lines (entailment, neutral, contradiction or "
    "not_entailment), HealthVer's CSV, or COVID-Fact's labelled TSV or JSON lines.",
)
@click.option(
    "--tune",
    type=reporting.FILE,
    metavar="FILE",
    help="Other labelled pairs, three-way, on which the cuts of the word overlap baseline are chosen; it is left "
    "out without them.",
)
@reporting.seed_option
@reporting.out_option(help="Write report.json, confusion.png and confusion.svg there.")
@json_option
@click.pass_context
def command(ctx: click.Context, /, pairs: Path, tune: Path | None, seed: int, out: Path | None, as_json: bool) -> None:
    """Judge labelled pairs of a text and a statement: supported, contradicted, or neither.

    Reports accuracy, macro-F1 and the confusion of the entailment model in use (the built-in rules know only what is
    said word for word), of word overlap and of the majority class. Writes no text. The plot needs the extra "eval".
    """
    from localmed.evaluation import plot

    if out:
        plot.require()  # before minutes of judging, not after
        reporting.writable(out)
    result = _measured(ctx, pairs, tune, seed, show=not as_json)
    if out:
        reporting.write(out, result, {}, lambda folder: plot.draw_confusion(result, folder, language()))
    if as_json:
        print_json(result)
    else:
        _tell(result, out)


def _measured(ctx: click.Context, pairs: Path, tune: Path | None, seed: int, show: bool) -> StanceReport:
    from localmed.evaluation import stance

    pair_set = stance.load(pairs)
    judges: list[Entailment] = [stance.Majority(pair_set.pairs)]
    judges += [stance.tuned(stance.load(tune).pairs)] if tune else []
    judges.append(stance.Verbatim())
    with opened(ctx) as session:
        judge = session.site.entailment
        judges += [judge] if judge.languages else []
        with progress(show) as (started, advance):
            started(len(pair_set.pairs) * len(judges))
            result = stance.report(pair_set, judges, seed, advance)
        session.note("evaluate", f"stance, {result.pairs} pairs", "finished")
    return result


def _tell(result: StanceReport, out: Path | None) -> None:
    from localmed.evaluation import stance

    names = columns("judge", "accuracy", "interval", "macro_f1", "interval", "not_judged")
    print_table(text("evaluation.title.judges", set=result.set), names, [_row(judge) for judge in result.judges])
    last = result.judges[-1]
    names = [*columns("is"), *result.labels, *columns("precision", "recall", "f1")]
    print_table(text("evaluation.title.confusion", judge=last.judge), names, _classes(last))
    reporting.tell(stance.facts(result), out, "report.json", "confusion.png", "confusion.svg")


def _row(scores: JudgeScores) -> tuple[str, ...]:
    return (
        scores.judge,
        f"{scores.accuracy:.3f}",
        "{:.2f}-{:.2f}".format(*scores.accuracy_interval),
        f"{scores.macro_f1:.3f}",
        "{:.2f}-{:.2f}".format(*scores.macro_f1_interval),
        f"{scores.unjudged / sum(map(sum, scores.confusion)):.0%}",
    )


def _classes(scores: JudgeScores) -> list[tuple[object, ...]]:
    """A row a label: how its pairs were judged, and how well that is."""
    return [
        (label, *counts, f"{class_scores.precision:.3f}", f"{class_scores.recall:.3f}", f"{class_scores.f1:.3f}")
        for (label, class_scores), counts in zip(scores.classes.items(), scores.confusion, strict=True)
    ]
