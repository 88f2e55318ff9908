"""``localmed verify FILE``."""

from __future__ import annotations

import click

from localmed.cli.common import bytes_of, text_callback
from localmed.cli.running import Options, give, run, workflow_options


@click.command("verify")
@click.argument("file", metavar="FILE")
@click.option("--question", default="", metavar="TEXT", callback=text_callback,
              help="What was asked, where the file does not say it; - reads standard input.")  # fmt: skip
@workflow_options
@click.pass_context
def command(ctx: click.Context, /, file: str, question: str, options: Options) -> None:
    """Check an answer written elsewhere: what it cites, and what studies say of its claims (M-Eval).

    FILE is text or Markdown with citations, JSON ({"question", "answer", "sources"}), or what `ask --json` printed; -
    reads standard input. Citations are looked up in the library; only what it holds counts. The text is not stored.
    """
    from localmed.verification import answer_file

    data = bytes_of(file, answer_file.TEXT_BYTES, "verify.unreadable")
    submitted = answer_file.read(data, question)
    answer = run(ctx, lambda session, hooks: session.verify(submitted, hooks), options)
    give(answer, options)
