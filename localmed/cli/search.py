"""``localmed search QUESTION``."""

from __future__ import annotations

from typing import Any

import click

from localmed.cli.common import filter_options, json_option, opened, print_json, wanted

EXCERPT = 240  # characters shown of a passage


@click.command("search")
@click.argument("question")
@click.option("--limit", "-n", type=click.IntRange(1, 200), default=10, show_default=True, help="Passages to show.")
@filter_options
@json_option
@click.pass_context
def command(ctx: click.Context, /, question: str, limit: int, as_json: bool, **filters: Any) -> None:
    """Find the passages nearest to QUESTION, by words and by meaning."""
    with opened(ctx) as app:
        found = app.search(question, wanted(**filters), limit)
    if as_json:
        print_json(found)
        return
    for number, hit in enumerate(found.hits, 1):
        passage = hit.passage
        place = f", page {passage.page}" if passage.page else ""
        click.secho(f"{number}. {passage.title}{place}  [{passage.id[:12]}]", bold=True)
        click.echo(f"   {' > '.join(passage.headings)}" if passage.headings else "", nl=bool(passage.headings))
        text = " ".join(passage.text.split())
        click.echo(f"   {text[:EXCERPT]}{'...' if len(text) > EXCERPT else ''}")
    if not found.hits:
        click.echo("Nothing was found")
    if not found.dense and found.hits:
        click.echo("Searched by words only: the encoder does not know this language", err=True)
