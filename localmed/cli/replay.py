"""``localmed replay FILE``."""

from __future__ import annotations

from pathlib import Path

import click

from localmed.cli.common import echo, json_option, opened, print_json
from localmed.cli.running import show_trace
from localmed.domain import message
from localmed.domain.codec import answer_json
from localmed.errors import InputError
from localmed.files import contents
from localmed.presentation.neutral import words


@click.command("replay")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--trace", is_flag=True, help="Show the recorded steps (on standard error).")
@json_option
@click.pass_context
def command(ctx: click.Context, file: Path, trace: bool, as_json: bool) -> None:
    """Run the workflow recorded in FILE again on its recorded results, without library or models.

    Says whether the answer is the recorded one; ends with 3 if it is not.
    """
    from localmed.cli.showing import show
    from localmed.operations import history
    from localmed.workflows.recording import LARGEST

    try:
        text = contents(file, LARGEST).decode()
    except UnicodeDecodeError:
        raise InputError("replay.no_text", file=str(file)) from None
    with opened(ctx) as session:
        answer, same = session.replay(text)
        answer = history.with_withdrawals(session, answer)
    if as_json:
        print_json(answer_json(answer, answer.language))
    else:
        show(answer)
    if trace:
        show_trace(answer)
    if not same:
        raise InputError("replay.differs")
    echo(words(message("recording.same"), answer.language), err=True)
