"""``localmed show PASSAGE``."""

from __future__ import annotations

from pathlib import Path

import click

from localmed.cli.common import echo, json_option, opened, print_json
from localmed.cli.speaking import say, text
from localmed.domain import Status


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
            evidence, removed = session.kept_evidence(answer, passage)
        else:
            evidence, removed = lookups.evidence_of(session, passage), False
        if image:
            lookups.draw_page(session, evidence, image, page, _span(span))
    if as_json:
        print_json(evidence)
        return
    cited = evidence.passage
    echo(f"{evidence.document_title} ({evidence.edition or text('answer.no_date')})", bold=True)
    if evidence.status is not Status.CURRENT:
        echo(text(f"search.standing_{evidence.status.value}"), colour="red")
    if evidence.overdue:
        echo(text("search.overdue_since", date=evidence.overdue), colour="red")
    if removed:
        echo(text("search.gone"), colour="red")
    echo(text("search.source_page", source=evidence.source, page=cited.page) if cited.page else evidence.source)
    if cited.ocr is not None:
        say("answer.ocr", confidence=cited.ocr)
    if cited.headings:
        echo(" > ".join(cited.headings))
    echo(f"\n{cited.text}")
    if image:
        echo(f"\n{text('cli.written', file=str(image))}")


def _span(span: str | None) -> tuple[int, int] | None:
    """``"12-80"`` as numbers; raise ``click.BadParameter`` for anything else."""
    if span is None:
        return None
    start, _, end = span.partition("-")
    if not (start.isdecimal() and end.isdecimal() and int(start) < int(end)):
        raise click.BadParameter(text("cli.span"))
    return int(start), int(end)
