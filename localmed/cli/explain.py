"""``localmed explain ORDER``."""

from __future__ import annotations

import secrets
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from localmed import files
from localmed.cli.common import bytes_of, settings_of, texts_callback
from localmed.cli.ebm import read_record
from localmed.cli.running import Options, give, run, workflow_options
from localmed.cli.speaking import say
from localmed.domain import Answer, SearchFilter
from localmed.domain.codec import answer_json
from localmed.errors import UsageError
from localmed.operations import orders

if TYPE_CHECKING:
    from localmed.workflows.explain import ExplainInput


@click.command("explain")
@click.argument("order", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path), metavar="ORDER")
@click.option(
    "--patient",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    metavar="FILE",
    help="The patient's record (text, C-CDA or FHIR): questions are understood by it. Never stored.",
)
@click.option("--question", "questions", multiple=True, metavar="TEXT", callback=texts_callback,
              help="A question about the order; repeat it, or give - and one a line on standard input.")  # fmt: skip
@click.option("--released-by", default="", metavar="NAME", help="Who gives the explanation to the patient.")
@click.option(
    "--leaflet",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a page (HTML) for the patient to read and print; needs --released-by.",
)
@click.option("--keep", is_flag=True, help="Keep the answer in the data folder (kept/), readable by its owner only.")
@workflow_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    order: Path,
    patient: Path | None,
    questions: tuple[str, ...],
    released_by: str,
    leaflet: Path | None,
    keep: bool,
    options: Options,
) -> None:
    """Explain the medical order in the file ORDER: its lines, their abbreviations, its terms from leaflets, cited.

    Plain words need a chat model; without one the order is quoted. ORDER - reads standard input. Nothing is stored
    unless --keep or --record is given.
    """
    explain_input = _input(order, patient, questions, released_by)
    if leaflet:
        _may_write(leaflet, explain_input.released_by)
    answer = run(ctx, lambda session, hooks: session.explain(explain_input, SearchFilter(), hooks), options)
    if keep:
        _keep(ctx, answer)
    if leaflet:
        _write_leaflet(leaflet, answer)
    give(answer, options)


def _input(order: Path, patient: Path | None, questions: tuple[str, ...], released_by: str) -> ExplainInput:
    from localmed.workflows.explain import ExplainInput

    known = read_record(patient) if patient else None
    return ExplainInput(
        orders.text_of(bytes_of(order, orders.LARGEST, "explain.unreadable")),
        known,
        questions,
        " ".join(released_by.split()),
    )


# --- what is written --------------------------------------------------------------------------------------------------


def _may_write(leaflet: Path, released_by: str) -> None:
    """Raise ``UsageError``, before anything is asked, where the leaflet could not be written."""
    if not released_by:
        raise UsageError("explain.released_by")
    files.new_name(leaflet)


def _write_leaflet(file: Path, answer: Answer) -> None:
    from localmed.presentation.pages import leaflet

    files.write_new(file, leaflet(answer, date.today().isoformat()).encode())
    say("explain.leaflet_written", file=str(file), err=True)


def _keep(ctx: click.Context, answer: Answer) -> None:
    """Write the answer beside the library; the name tells the day and nothing of the patient."""
    import json

    from localmed.operations.lookups import kept_folder

    folder = kept_folder(settings_of(ctx).data)
    file = folder / f"explain-{datetime.now(UTC):%Y%m%d}-{secrets.token_hex(4)}.json"
    files.write_new(file, json.dumps(answer_json(answer), ensure_ascii=False, indent=2).encode())
    say("explain.kept", file=str(file), err=True)
