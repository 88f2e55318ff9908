"""``localmed verify FILE``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from localmed import language
from localmed.cli.running import Options, give, run, workflow_options
from localmed.errors import InputError, reason


@click.command("verify")
@click.argument("file", metavar="FILE")
@click.option("--question", default="", metavar="TEXT", help="What was asked, where the file does not say it.")
@workflow_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    file: str,
    question: str,
    options: Options,
) -> None:
    """Check an answer written elsewhere: what it cites, and what studies say of its claims (M-Eval).

    FILE is text or Markdown with citations, JSON ({"question", "answer", "sources"}), or what `ask --json` printed; -
    reads standard input. Citations are looked up in the library; only what it holds counts. The text is not stored.
    """
    from localmed.verification import answer_file

    submitted = answer_file.read(_data(file, answer_file.TEXT_BYTES), language.clean(question))
    answer = run(ctx, lambda session, hooks: session.verify(submitted, hooks), options)
    give(answer, options)


def _data(file: str, most: int) -> bytes:
    """At most one byte more than ``most`` of the file or of standard input."""
    if file == "-":
        return sys.stdin.buffer.read(most + 1)
    try:
        with Path(file).open("rb") as opened:
            return opened.read(most + 1)
    except OSError as error:
        raise InputError("verify.unreadable", reason=reason(error)) from None
