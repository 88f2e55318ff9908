"""``localmed canaries``, and ``calibrate``: limits of closeness from a site's own questions."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import click

from localmed.cli.common import echo, in_session, print_json, print_rows, print_table, show_progress
from localmed.cli.later import canary_gate
from localmed.cli.options import json_option
from localmed.cli.speaking import columns, joined, say, text
from localmed.domain import SearchFilter
from localmed.domain.errors import CanariesLost, InputError, LimitExceeded, UsageError
from localmed.domain.findings import Closeness
from localmed.process.files import contents
from localmed.retrieval.closeness import Calibration, calibrated, limits, word

if TYPE_CHECKING:
    from localmed.site.session import Session


@click.group("canaries", invoke_without_command=True)
@json_option
@in_session
def command(session: Session, as_json: bool = False) -> int:
    """Ask the canary questions: test questions with the documents they must cite, or that must not be answered.

    Every change of library, models or settings must pass them. Write your own into canaries.toml in the data folder.
    Exit code 7: one that passed before fails now.
    """
    session.may_change()
    compared = canary_gate.standing(session)
    known = {canary.id: canary for canary in canary_gate.of_served(session)}
    rows = [
        (name, joined(text(f"canary.kind.{kind}") for kind in known[name].kinds),
         text("canary.passed" if result.passed else "canary.failed"), joined(result.cited) or "-")
        for name, result in compared.after.items()
    ]  # fmt: skip
    print_rows(as_json, compared.after, "canary.list", ("name", "kind", "outcome", "cited"), rows)
    return CanariesLost.exit_code if compared.lost else 0


@command.command("accept")
@click.argument("names", nargs=-1, required=True)
@click.option("--reason", required=True, help="Reason; kept with your name in the list and the audit log.")
@in_session
def accept(session: Session, names: tuple[str, ...], reason: str) -> None:
    """Let changes lose the canary questions NAMES. Then repeat the blocked change."""
    canary_gate.accept(session, names, reason)
    say("canary.accepted", ids=names)


@command.command("watch")
@click.argument("names", nargs=-1, required=True)
@in_session
def watch(session: Session, names: tuple[str, ...]) -> None:
    """Undo accept: changes must pass the canary questions NAMES again."""
    canary_gate.watch_again(session, names)
    say("canary.watched", ids=names)


LEAST = 20  # questions of each kind; of fewer a limit would be the chance of one or two
MOST = 5_000  # questions; each is searched for some 50 ms
WEAK = 0.6  # area under the ROC curve below which limits would be chosen by chance
YES, NO = ("yes", "y", "1", "true", "是"), ("no", "n", "0", "false", "否")


@click.command("calibrate")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
@in_session
def calibrate(session: Session, file: Path, as_json: bool) -> None:
    """Measure with your own questions when a section is close and when nothing is near.

    FILE is a CSV file with the columns question and answered (yes or no): real questions that the library answers, and
    real ones that it does not. Nothing is changed: the command prints two settings for localmed.toml. The questions are
    not kept.
    """
    asked = questions(file)
    scores: dict[bool, list[float]] = {True: [], False: []}
    with show_progress(not as_json) as hooks:
        for number, (question, answered) in enumerate(asked, 1):
            found = session.find(question, SearchFilter(), session.settings.search.sentences, 1).found
            if found.near is not None:
                scores[answered].append(found.near)
            hooks.progress(number, len(asked), "")
    before = limits(session.encoder.identity.name, session.settings.search)
    for answered, kept in scores.items():
        if len(kept) < LEAST:
            raise UsageError("calibrate.few", least=LEAST, count=len(kept), answered=text(_kind(answered)))
    result = calibrated(scores[True], scores[False])
    if as_json:
        print_json({"close": result.close, "near": result.near, "area": result.area, "before": before})
    else:
        _show(scores, result, before)


def questions(file: Path) -> list[tuple[str, bool]]:
    """The questions of ``file``, and whether the library answers each; raise ``InputError`` for another format."""
    try:
        rows = list(csv.DictReader(io.StringIO(contents(file).decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error):
        raise InputError("calibrate.form", file=str(file)) from None
    asked = []
    for number, row in enumerate(rows, 2):
        question, answered = (row.get("question") or "").strip(), (row.get("answered") or "").strip().casefold()
        if not question or answered not in YES + NO:
            raise InputError("calibrate.row", file=str(file), row=number)
        asked.append((question, answered in YES))
    if not asked:
        raise InputError("calibrate.form", file=str(file))
    if len(asked) > MOST:
        raise LimitExceeded("calibrate.many", file=str(file), most=MOST)
    return asked


def _kind(answered: bool) -> str:
    return "calibrate.answered" if answered else "calibrate.unanswered"


def _show(scores: dict[bool, list[float]], result: Calibration, before: tuple[float, float] | None) -> None:
    measured = [("calibrate.now", before), ("calibrate.proposed", (result.close, result.near))]
    rows = []
    for name, pair in measured:
        for answered, kept in scores.items():
            said = [word(score, *pair) for score in kept] if pair else []
            shares = [f"{said.count(one) / len(said):.0%}" if said else "-" for one in Closeness if one.value]
            rows.append((text(name), text(_kind(answered)), len(kept), *shares))
    print_table(text("calibrate.table"), columns("limits", "questions", "count", "close", "some_way", "nothing"), rows)
    say("calibrate.area", area=result.area)
    if result.area < WEAK:
        say("calibrate.weak")
        return
    say("calibrate.write")
    echo(f"[search]\nclose = {result.close:.3f}\nnear = {result.near:.3f}")
