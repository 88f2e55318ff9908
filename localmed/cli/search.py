"""``localmed search QUESTION``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from localmed.cli.common import (
    echo,
    echo_wrapped,
    filter_options,
    json_option,
    opened,
    print_json,
    question_argument,
    search_filter,
)
from localmed.domain import Hit, Message, Status, message
from localmed.messages import ASIDE, joined
from localmed.presentation.answer import pages
from localmed.presentation.neutral import words

if TYPE_CHECKING:
    from localmed.retrieval.search import Found

EXCERPT = 240  # characters shown of a passage
LANGUAGES = ("en", "zh")  # that are marked where a hit is not in the question's


@click.command("search")
@question_argument
@click.option("--limit", "-n", type=click.IntRange(1, 200), metavar="N",
              help="Passages to show, 1 to 200 (default: 10, or search.results of the settings).")  # fmt: skip
@filter_options
@json_option
@click.pass_context
def command(ctx: click.Context, /, question: str, limit: int | None, as_json: bool, **filters: Any) -> None:
    """Find the passages nearest to QUESTION, by words and by meaning.

    The id in brackets opens a passage: localmed show ID. QUESTION - reads the question from standard input.
    """
    with opened(ctx) as session, session.workspace() as workspace:
        result = workspace.search(question, search_filter(**filters), limit or session.settings.search.results)
        holding = workspace.standing(_documents(result))
    if as_json:
        late = {document: overdue for document, (_, overdue) in holding.items() if overdue}
        print_json({**asdict(result), "overdue": late})
        return
    for number, hit in enumerate(result.hits, 1):
        _show(number, hit, *holding[hit.passage.document_id], result.language)
    if not result.hits:
        echo(words(message("search.nothing"), result.language))
    if not result.dense and result.hits:
        echo(words(message("search.words_only"), result.language), err=True)


def _documents(result: Found) -> list[str]:
    return list(dict.fromkeys(hit.passage.document_id for hit in result.hits))


def _show(number: int, hit: Hit, status: Status, overdue: str, language: str) -> None:
    passage = hit.passage
    details: list[Message] = []
    details += pages(passage.pages)
    if passage.ocr is not None:
        details.append(message("answer.ocr", confidence=passage.ocr))
    if passage.language != language and passage.language in LANGUAGES:
        details.append(message("search.in_language", language=Message(f"source.language.{passage.language}")))
    if status is not Status.CURRENT:
        details.append(Message(f"answer.{status.value}"))
    if overdue:
        details.append(message("answer.overdue", date=overdue))
    title = f"[{passage.id[:12]}] {passage.title}"
    echo_wrapped(
        joined((title, *(words(detail, language) for detail in details)), language, ASIDE),
        f"{number:>2}. ",
        "    ",
        bold=True,
    )
    headings = [heading for heading in passage.headings if heading != passage.title]
    if headings:
        echo_wrapped(" > ".join(headings), "    ", "    ")
    text = " ".join(passage.text.split())
    echo_wrapped(f"{text[:EXCERPT]}{'...' if len(text) > EXCERPT else ''}", "    ", "    ")
