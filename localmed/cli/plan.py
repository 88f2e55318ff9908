"""``localmed plan QUESTION``."""

from __future__ import annotations

from typing import Any

import click

from localmed.cli.common import filter_options, question_argument, search_filter
from localmed.cli.running import Options, give, run, workflow_options


@click.command("plan")
@question_argument
@click.option(
    "--strategy",
    metavar="NAME",
    default="prompting",
    show_default=True,
    help="How the plan is made: prompting, or a baseline: none, original, query2doc, reflexion, serts.",
)
@workflow_options
@filter_options
@click.pass_context
def command(ctx: click.Context, /, question: str, strategy: str, options: Options, **filters: Any) -> None:
    """Plan which source is asked what (books, guidelines, research, wiki, graph) and answer QUESTION from all of them.

    Without a language model the question and its keywords go to every source. QUESTION - reads standard input.
    """
    limits = search_filter(**filters)
    answer = run(ctx, lambda session, hooks: session.plan_sources(question, limits, strategy, hooks), options)
    give(answer, options)
