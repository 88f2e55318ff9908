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

    The link to the generation being served, a generation that is damaged while an older one is whole, and the
    withdrawals and the access of collections that the audit log knows.
    """
    from localmed.operations import repair

    with opened(ctx) as session:
        session.may_change()
        language = session.caller.language
        step, records = repair.plan(session.data), repair.records(session.data)
        lines = [step.found, message("generation.repair_step", number=step.number)] if step else []
        lines += [line for record in records for line in (record.found, *record.shown)]
        for line in lines or [message("generation.repair_nothing")]:
            echo(render(line, language))
        if not lines:
            return
        if not yes:
            click.confirm("?", abort=True)
        if step:
            repair.repair(session, step)
        for record in records:
            record.do(session)
