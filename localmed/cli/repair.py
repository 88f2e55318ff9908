"""``localmed repair``."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

import click

from localmed.cli.common import echo, opened, work_shown
from localmed.cli.speaking import confirm, say
from localmed.messages import render

if TYPE_CHECKING:
    from localmed.session import Session

ROUNDS = 3  # some damage shows only once the link is there again: a lost ledger beside it


@click.command("repair")
@click.option("--yes", is_flag=True, help="Do it without asking.")
@click.pass_context
def command(ctx: click.Context, yes: bool) -> None:
    """Put right what is damaged, from what is whole: shows what it would do, asks, and then does it.

    The link to the generation being served, a generation that is damaged (it is made anew from the originals, or an
    older one that is whole is served), and the withdrawals and the access of collections that the audit log knows.
    """
    with opened(ctx) as session:
        session.may_change()
        rounds = sum(1 for _ in takewhile(bool, (_put_right(session, yes) for _ in range(ROUNDS))))
        if not rounds:
            say("generation.repair_nothing")
            return
    say("generation.repair_done")


def _put_right(session: Session, yes: bool) -> bool:
    """Show what would be done, ask and do it; return whether there was anything."""
    from localmed.operations import repair

    step, records = repair.plan(session.data), repair.records(session.data)
    for part in (*((step,) if step else ()), *records):
        for line in (part.fault, *part.shown):
            echo(render(line, session.caller.language))
    if not step and not records:
        return False
    if not yes:
        confirm("generation.repair_confirm")
    if step:
        with work_shown(True) as hooks:
            repair.repair(session, step, hooks)
    for record in records:
        record.do(session)
    return True
