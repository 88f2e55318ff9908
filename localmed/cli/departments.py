"""``localmed departments COMPLAINT``."""

from __future__ import annotations

from dataclasses import replace

import click

from localmed.cli.common import echo_wrapped, question_argument
from localmed.cli.running import Options, give, run, workflow_options
from localmed.cli.showing import label_of
from localmed.cli.texts import texts


@click.command("departments")
@question_argument
@workflow_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    question: str,
    options: Options,
) -> None:
    """Where to go in this hospital with a complaint, by the department guide: department, floor and why.

    Warning signs point to the Emergency Department first. It is no diagnosis. The complaint is given in a patient's
    own words; - reads it from standard input, which keeps it out of the shell's history.
    """
    answer = run(ctx, lambda session, hooks: session.departments(question, hooks), options)
    stated = replace(answer, statements=tuple(each for part in answer.parts for each in part.statements))
    if stated.statements and not options.as_json:
        echo_wrapped(texts(answer.language)[label_of(stated)], bold=True)
    give(answer, options)
