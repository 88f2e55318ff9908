"""``localmed plan QUESTION``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from localmed.cli.common import filter_options, json_option, print_json, question_argument, wanted
from localmed.cli.running import run, workflow_options
from localmed.cli.showing import show


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
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    question: str,
    strategy: str,
    trace: bool,
    record: Path | None,
    profile: str | None,
    as_json: bool,
    **filters: Any,
) -> None:
    """Plan which source is asked what (books, guidelines, research, wiki, graph) and answer QUESTION from all of them.

    Without a language model the question and its keywords go to every source. QUESTION - reads standard input.
    """
    asked = wanted(**filters)
    answer = run(
        ctx,
        lambda app, followed: app.consultation().plan_sources(question, asked, strategy, followed),
        trace,
        record,
        profile,
    )
    if as_json:
        print_json(answer)
    else:
        show(answer)
