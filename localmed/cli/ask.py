"""``localmed ask QUESTION``."""

from __future__ import annotations

from typing import Any

import click

from localmed.cli.common import filter_options, question_argument, search_filter
from localmed.cli.running import Options, give, run, workflow_options


@click.command("ask")
@question_argument
@click.option(
    "--preset",
    metavar="NAME",
    help="Search in tiers: ebm, patient or one of the settings (default: ask.preset, else by priority).",
)
@click.option(
    "--after",
    "earlier",
    multiple=True,
    metavar="QUESTION",
    help="A question asked before this one, which it refers to (may be given several times).",
)
@click.option("--check", is_flag=True, help="Hold the answer's claims against further studies (M-Eval), below it.")
@workflow_options
@filter_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    question: str,
    preset: str | None,
    earlier: tuple[str, ...],
    check: bool,
    options: Options,
    **filters: Any,
) -> None:
    """Answer QUESTION from the library, or say that it cannot be answered and what was searched.

    Every sentence has the number of its source. The first tier of collections that holds something helpful answers.
    QUESTION - reads the question from standard input, which keeps it out of the shell's history.
    """
    limits = search_filter(**filters)
    answer = run(ctx, lambda session, hooks: session.ask(question, limits, preset, earlier, hooks, check), options)
    give(answer, options)
