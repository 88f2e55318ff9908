"""``localmed ebm QUESTION``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed.cli.common import bytes_of, filter_options, question_argument, search_filter
from localmed.cli.running import Options, give, run, workflow_options
from localmed.errors import UsageError

if TYPE_CHECKING:
    from localmed.domain.patient import PatientRecord


@click.command("ebm")
@question_argument
@click.option(
    "--patient",
    metavar="FILE",
    help="The patient's record: text, C-CDA or FHIR JSON; - reads standard input. It is not stored.",
)
@click.option("--pico", is_flag=True, help="QUESTION is a PICO question already (as one is that says P:, I:, C:, O:).")
@click.option("--keep", is_flag=True, help="Let the recording that --record writes hold the patient's record.")
@workflow_options
@filter_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    question: str,
    patient: str | None,
    pico: bool,
    keep: bool,
    options: Options,
    **filters: Any,
) -> None:
    """Find the evidence on a clinical QUESTION about one patient, and hold it against the patient's record.

    The question becomes a PICO question; guidelines are searched first, then literature, then books. Names, numbers and
    addresses of the record are left behind when it is read. QUESTION - reads standard input.
    """
    if patient and options.record and not keep:
        raise UsageError("record.recording")
    known = read_record(patient) if patient else None
    limits = search_filter(**filters)
    answer = run(ctx, lambda session, hooks: session.ebm(question, limits, known, pico, hooks), options)
    give(answer, options)


def read_record(name: str | Path) -> PatientRecord:
    """The record in the file ``name``, or on standard input ("-"); raise ``InputError`` for what is none."""
    from localmed.ingest import records

    return records.read(bytes_of(name, records.RECORD_BYTES, "record.unreadable"))
