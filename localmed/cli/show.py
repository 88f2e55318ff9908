"""``localmed show PASSAGE``."""

from __future__ import annotations

from pathlib import Path

import click

from localmed.cli.common import echo, json_option, opened, print_json
from localmed.domain import Status, message
from localmed.presentation.words import words

WORDS = {Status.SUPERSEDED: "superseded", Status.WITHDRAWN: "withdrawn", Status.PENDING: "not yet effective"}


@click.command("show")
@click.argument("passage")
@click.option(
    "--image", type=click.Path(path_type=Path, dir_okay=False), help="Write the page here as PNG, passage marked."
)
@click.option("--page", type=click.IntRange(1), help="Of a passage over several pages: this one (default: its first).")
@click.option("--span", help="Mark only the characters START-END of the passage, as ask prints them.")
@click.option("--answer", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="PASSAGE is the number of a source in this kept answer, recording or --json output.")  # fmt: skip
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    passage: str,
    image: Path | None,
    page: int | None,
    span: str | None,
    answer: Path | None,
    as_json: bool,
) -> None:
    """Show the passage whose id starts with PASSAGE; with --image, its page with the passage marked.

    With --answer it is shown as the answer cited it, also after the document or its generation is gone, and with what
    has become of its document since.
    """
    from localmed.operations import lookups

    with opened(ctx) as session:
        if answer:
            evidence, gone = session.kept_evidence(answer, passage)
        else:
            evidence, gone = lookups.evidence_of(session, passage), False
        if image:
            lookups.draw_page(session, evidence, image, page, _span(span))
    if as_json:
        print_json(evidence)
        return
    found = evidence.passage
    echo(f"{evidence.document_title} ({evidence.edition or 'no date'})", bold=True)
    if evidence.status is not Status.CURRENT:
        echo(f"This document is {WORDS[evidence.status]}.", colour="red")
    if evidence.overdue:
        echo(f"It was to be reviewed by {evidence.overdue}.", colour="red")
    if gone:
        echo("This text is no longer in the library.", colour="red")
    echo(f"{evidence.source}" + (f", page {found.page}" if found.page else ""))
    if found.ocr is not None:
        echo(words(message("answer.ocr", confidence=found.ocr), found.language))
    if found.headings:
        echo(" > ".join(found.headings))
    echo(f"\n{found.text}")
    if image:
        echo(f"\nWritten: {image}")


def _span(given: str | None) -> tuple[int, int] | None:
    """``"12-80"`` as numbers; raise ``click.BadParameter`` for anything else."""
    if given is None:
        return None
    start, _, end = given.partition("-")
    if not (start.isdecimal() and end.isdecimal() and int(start) < int(end)):
        raise click.BadParameter("cli.span")
    return int(start), int(end)
