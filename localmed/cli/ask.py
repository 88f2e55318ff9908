"""``localmed ask QUESTION``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from localmed.cli.common import (
    STDIN,
    filter_options,
    question_argument,
    search_filter,
    standard_input,
    stdin_lines,
)
from localmed.cli.running import Options, give, run, workflow_options
from localmed.domain import Answer
from localmed.hooks import Hooks
from localmed.language import clean

if TYPE_CHECKING:
    from localmed.session import Session


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
    help="A question asked before this one, which it refers to (may be given several times); - reads such questions "
    "from standard input, one a line, of which the last is QUESTION where that is - too.",
)
@click.option("--check", is_flag=True, help="Hold the answer's claims against further studies (M-Eval), below it.")
@click.option("--thorough", is_flag=True, help="With a chat model: every role of MAIRAG takes part; some 20 calls.")
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
    thorough: bool,
    options: Options,
    **filters: Any,
) -> None:
    """Show the sections of the library that speak of QUESTION; with a chat model, an answer above them.

    The sentences nearest to the question are marked. Every sentence of an answer has the number of its source, and is
    checked against it. QUESTION - reads the question from standard input, which keeps it out of the shell's history.
    """
    question, earlier = _conversation(ctx, question, earlier)
    limits = search_filter(**filters)

    def work(session: Session, hooks: Hooks) -> Answer:
        return session.ask(question, limits, preset, earlier, hooks, check, thorough)

    give(run(ctx, work, options), options)


def _conversation(ctx: click.Context, question: str, earlier: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """QUESTION and those before it, of which standard input may hold several."""
    if "-" not in earlier:
        return question, earlier
    both = STDIN in ctx.meta  # QUESTION was read from it
    lines = stdin_lines(ctx.meta[STDIN] if both else standard_input(ctx))
    if both:
        question = clean(lines.pop()) if lines else ""
    at = earlier.index("-")
    return question, (*earlier[:at], *lines, *earlier[at + 1 :])
