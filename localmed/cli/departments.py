"""``localmed departments COMPLAINT``."""

from __future__ import annotations

import click

from localmed.cli.common import question_argument
from localmed.cli.running import Options, give, run, workflow_options


@click.command("departments")
@question_argument
@workflow_options
@click.pass_context
def command(ctx: click.Context, /, question: str, options: Options) -> None:
    """Where to go in this hospital with a complaint, by the department guide: department, floor and why.

    Warning signs point to the Emergency Department first. It is no diagnosis. The complaint is given in a patient's
    own words; - reads it from standard input, which keeps it out of the shell's history.
    """
    answer = run(ctx, lambda session, hooks: session.departments(question, hooks), options)
    give(answer, options)
