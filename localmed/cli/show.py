"""``localmed show PASSAGE``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from localmed.cli.common import echo, in_session, print_json
from localmed.cli.later import history, lookups
from localmed.cli.options import FILE, json_option
from localmed.cli.speaking import say, text, words
from localmed.domain import Evidence, Passage, Status
from localmed.domain.errors import InputError, UsageError

if TYPE_CHECKING:
    from localmed.site.session import Session

LONGEST_SPAN = 20  # characters of two numbers


@click.command("show")
@click.argument("passage")
@click.option("--image", type=FILE, help="Write the page as PNG, with the passage marked.")
@click.option("--page", type=click.IntRange(1), help="Of a passage over several pages, show only this page.")
@click.option(
    "--span", help="Show, or mark on the page, only the characters START-END of the passage, as ask prints them."
)
@click.option("--answer", type=FILE, metavar="FILE",
              help="PASSAGE is the number of a source in this stored answer, recording or --json output.")  # fmt: skip
@json_option
@in_session
def command(
    session: Session, passage: str, image: Path | None, page: int | None, span: str | None, answer: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Show the passage whose id starts with PASSAGE; with --image, its page with the passage marked.

    With --answer it is shown as the answer cited it, even if the document or its generation is gone, with the current
    status of the document.
    """
    evidence, removed = (
        session.kept_evidence(answer, passage) if answer else (lookups.evidence_of(session, passage), False)
    )
    since = history.withdrawals(session, [evidence]).values() if answer else ()
    marked = _parse_span(span, evidence.passage)
    if image:
        lookups.draw_page(session, evidence, image, page, marked)
    if as_json:
        print_json(evidence)
        return
    cited = evidence.passage
    shown = cited.text if page is None else _text_on_page(cited, page)
    if marked and not image:
        shown = cited.text[slice(*marked)]
    echo(f"{evidence.document_title} ({evidence.edition or text('answer.no_date')})", bold=True)
    if evidence.status is not Status.CURRENT:
        echo(text(f"documents.status_{evidence.status.value}"), colour="red")
    for line in since:
        echo(words(line), colour="red")
    if evidence.overdue:
        echo(text("answer.overdue", date=evidence.overdue), colour="red")
    if removed:
        echo(text("search.gone"), colour="red")
    echo(_source_line(evidence))
    if cited.ocr is not None:
        say("answer.ocr", confidence=cited.ocr)
    if cited.headings:
        echo(" > ".join(cited.headings))
    echo(f"\n{shown}")
    if image:
        echo(f"\n{text('cli.written', file=str(image))}")


def _source_line(evidence: Evidence) -> str:
    pages = evidence.passage.pages
    if len(pages) > 1:
        return text("search.source_pages", source=evidence.source, first=pages[0], last=pages[-1])
    return text("search.source_page", source=evidence.source, page=pages[0]) if pages else evidence.source


def _text_on_page(passage: Passage, page: int) -> str:
    spans = [span for span in passage.spans if span.box.page == page]
    if not spans:
        raise InputError("search.page_not_its", page=page, pages=passage.pages)
    return passage.text[min(span.start for span in spans) : max(span.end for span in spans)]


def _parse_span(span: str | None, passage: Passage) -> tuple[int, int] | None:
    """``"12-80"`` as numbers; raise ``UsageError`` for another form or a span outside the passage."""
    if span is None:
        return None
    start, _, end = span.partition("-")
    if not (start.isdecimal() and end.isdecimal() and len(span) < LONGEST_SPAN and int(start) < int(end)):
        raise UsageError("cli.span")
    if int(end) > len(passage.text):
        raise UsageError("cli.span_beyond", characters=len(passage.text))
    return int(start), int(end)
