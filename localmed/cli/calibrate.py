"""``localmed calibrate``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from localmed.cli import reporting
from localmed.cli.common import json_option, opened, print_json, progress
from localmed.cli.speaking import language, say, text
from localmed.domain import message
from localmed.domain.accounts import Right

if TYPE_CHECKING:
    from localmed.config import AskSettings
    from localmed.evaluation.calibrating import Calibrated
    from localmed.session import Session


@click.command("calibrate")
@click.argument("questions", metavar="[FILE]", type=reporting.FILE, required=False)
@click.option("--preset", metavar="NAME", help="Search in the tiers of this preset (default: as `localmed ask`).")
@click.option("--dry-run", is_flag=True, help="Measure only: the thresholds stay as they are.")
@click.option("--reset", is_flag=True, help="Take the site's calibration back: localmed's own holds again.")
@reporting.out_option(help="Write report.json, curve.csv, plot.png and plot.svg there (needs the extra eval).")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    questions: Path | None,
    preset: str | None,
    dry_run: bool,
    reset: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Choose by your own labelled questions when localmed answers and when it abstains.

    FILE has [[question]] tables (.toml) or an object a line (.jsonl) with text, answerable (true or false) and
    evidence (words of the answer, as the document has them). At least 20 questions with an answer and 20 without,
    in each language. The threshold is the lowest at which the share of wrong answers is at most ask.risk of the
    settings, with ask.confidence. It holds for the encoder and reranker in use, and what would lose a canary question
    is not taken. Exit code 1 if no threshold keeps that risk.
    """
    from localmed.operations import calibrate

    if reset == bool(questions):
        raise click.UsageError(text("calibration.one_of"))
    with opened(ctx) as session:
        if questions is None:
            calibrate.reset(session)
            say("calibration.reset")
            return
        results, kept = _measured(session, questions, preset, out, dry_run, not as_json)
    if as_json:
        print_json({"kept": kept, "calibrated": results})
    else:
        _tell(results, session.settings.ask, kept, out)
    if not all(row.after for row in results):
        sys.exit(1)


def _measured(
    session: Session, questions: Path, preset: str | None, out: Path | None, dry_run: bool, show: bool
) -> tuple[list[Calibrated], bool]:
    from localmed.evaluation import calibrating, plot
    from localmed.evaluation.link_files import digest_of
    from localmed.operations import calibrate

    if out:
        plot.require()  # before minutes of asking, not after
        reporting.writable(out)
    if not dry_run:
        session.require(Right.SAFETY)
    rows = calibrating.questions(questions)
    with progress(show) as (started, advance):
        started(len(rows))
        slug = session.site.encoder.identity.slug
        judged = calibrating.judged(rows, lambda text: session.judged_tiers(text, preset), slug, lambda: advance(1, ""))
    results = calibrating.calibrated(judged, session.site.calibrations, session.settings.ask)
    own = calibrating.as_calibrations(results, digest_of(questions), session.caller.user)
    if own and not dry_run:
        calibrate.keep(session, own)
    if out:
        texts = {"curve.csv": calibrating.as_csv(results, session.settings.ask.confidence)}
        reporting.write(out, results, texts, lambda folder: plot.draw_risk(results, folder, language()))
    return results, bool(own) and not dry_run


def _tell(results: list[Calibrated], ask: AskSettings, kept: bool, out: Path | None) -> None:
    from localmed.evaluation import calibrating

    reporting.table(message("calibration.title"), *calibrating.table(results))
    facts = [message("calibration.area", language=row.language, area=f"{row.area:.3f}") for row in results]
    needed = calibrating.needed(ask.risk, ask.confidence)
    facts += [message("calibration.no_threshold", language=row.language, least=needed)
              for row in results if not row.after]  # fmt: skip
    reporting.tell(facts, out, "report.json", "curve.csv", "plot.png", "plot.svg")
    say("calibration.kept" if kept else "calibration.not_kept")
