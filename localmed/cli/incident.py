"""``localmed incident ANSWER``."""

from __future__ import annotations

from pathlib import Path

import click

from localmed import files
from localmed.cli.common import echo, opened
from localmed.cli.speaking import say, text


@click.command("incident")
@click.argument("answer")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="The archive (default: incident-ANSWER.zip here).")  # fmt: skip
@click.pass_context
def command(ctx: click.Context, answer: str, out: Path | None) -> None:
    """Export the answer with the id ANSWER: sources, page images, trace, versions and its lines of the audit log.

    The id stands in the address of the answer's page and in the audit log. What was asked is in the archive if the
    answer was reported by whoever asked, or if the setting web.incident_question lets it.
    """
    from localmed.operations import incident
    from localmed.presentation.answer import view
    from localmed.presentation.plain import plain

    with opened(ctx) as session:
        archive = out or Path(f"incident-{answer}.zip")
        files.new_name(archive)
        made = incident.export(session, answer, lambda one: plain(view(one, session.caller.language)))
        files.write_new(archive, made.archive)
    echo(text("cli.written", file=str(archive)))
    say("incident.with_question" if made.has_question else "incident.without_question")
    if made.undrawn:
        say("incident.undrawn", count=len(made.undrawn))
