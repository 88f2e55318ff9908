"""``localmed repair``."""

from __future__ import annotations

import click

from localmed.cli.common import echo, opened
from localmed.cli.speaking import confirm, say
from localmed.domain import message
from localmed.messages import render


@click.command("repair")
@click.option("--yes", is_flag=True, help="Do it without asking.")
@click.pass_context
def command(ctx: click.Context, yes: bool) -> None:
    """Put right what is damaged, from what is whole: shows what it would do, asks, and then does it.

    The link to the generation being served, a generation that is damaged while an older one is whole, and the
    withdrawals and the access of collections that the audit log knows.
    """
    from localmed.operations import repair

    with opened(ctx) as session:
        session.may_change()
        language = session.caller.language
        step, records = repair.plan(session.data), repair.records(session.data)
        parts = [*((step,) if step else ()), *records]
        lines = [line for part in parts for line in (part.fault, *part.shown)]
        for line in lines or [message("generation.repair_nothing")]:
            echo(render(line, language))
        if not lines:
            return
        if not yes:
            confirm("generation.repair_confirm")
        if step:
            repair.repair(session, step)
        for record in records:
            record.do(session)
    say("generation.repair_done")
