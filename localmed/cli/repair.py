"""``localmed repair``."""

from __future__ import annotations

import click

from localmed.cli.common import echo, opened
from localmed.domain import message
from localmed.messages import render


@click.command("repair")
@click.option("--yes", is_flag=True, help="Do it without asking.")
@click.pass_context
def command(ctx: click.Context, yes: bool) -> None:
    """Put right what is damaged, from what is whole: shows what it would do, asks, and then does it.

    The link to the generation being served, and a generation that is damaged while an older one is whole.
    """
    from localmed.operations import repair

    with opened(ctx) as session:
        session.may_change()
        language = session.caller.language
        step = repair.plan(session.data)
        if step is None:
            echo(render(message("generation.repair_nothing"), language))
            return
        echo(render(step.found, language))
        echo(render(message("generation.repair_step", number=step.number), language))
        if not yes:
            click.confirm("?", abort=True)
        repair.repair(session, step)
