"""The ``localmed`` command: finds the subcommand, loads only its file, and turns errors into one line and an exit code.

Exit codes: 0 done (an abstention is an answer), 1 unexpected, 2 usage, 3 a file was refused
(an import that read others as well reports it and ends with 0), 4 another writer, 5 the
library cannot be used or ``doctor`` found a problem, 6 a model failed or has changed, 7 a change was kept back by the
canary questions, 130 interrupted.
A traceback appears only with ``--debug``.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

import click

from localmed import __version__

COMPLETION = "_LOCALMED_COMPLETE"  # set by click's shell completion


class Entry(NamedTuple):
    """A subcommand: its module here, which has a click command called ``command``, and its line in the overview."""

    module: str
    short_help: str


COMMANDS = {
    "import": Entry("import_files", short_help="Import files and folders into a collection, or bring it up to date."),
    "ask": Entry("ask", short_help="Ask a question; every sentence of the answer is cited."),
    "plan": Entry("plan", short_help="Plan which source is asked what, and answer from all of them."),
    "ebm": Entry("ebm", short_help="Evidence on a clinical question about one patient, held against the record."),
    "verify": Entry(
        "verify", short_help="Check an answer written elsewhere: its citations, and its claims against studies."
    ),
    "replay": Entry("replay", short_help="Run a recorded workflow again, without library or models."),
    "explain": Entry("explain", short_help="Say a medical order in plain words, explain its terms, answer questions."),
    "departments": Entry(
        "departments", short_help="Where to go with a complaint: department, floor and why, by the hospital's guide."
    ),
    "search": Entry("search", short_help="Find passages, without an answer."),
    "concept": Entry("concept", short_help="What the concept graph says of a term: definition, synonyms, relations."),
    "show": Entry("show", short_help="Show a passage, and its page as an image."),
    "documents": Entry("documents", short_help="List, show, govern, remove, supersede or withdraw documents."),
    "collections": Entry(
        "collections", short_help="List, create and update collections, set their priority and access."
    ),
    "pack": Entry("pack", short_help="Content packs on a stick: build, inspect, import; all signed."),
    "reindex": Entry("reindex", short_help="Bring the library to the encoder that was chosen."),
    "generations": Entry("generations", short_help="List, verify and roll back library generations."),
    "refresh": Entry("refresh", short_help="Bring every watched folder in as one change; holds and reports."),
    "canaries": Entry("canaries", short_help="Questions that every change must go on answering, or declining."),
    "backup": Entry("backup", short_help="Back everything up while it is served; list and verify backups."),
    "restore": Entry("restore", short_help="Restore a backup, whole or not at all."),
    "repair": Entry("repair", short_help="After damage: show what can be put right from what is whole, then do it."),
    "models": Entry("models", short_help="List, add, verify and choose models; see what fits this machine."),
    "host": Entry("host", short_help="Keep the models loaded for other commands; see what it does."),
    "serve": Entry("serve", short_help="Serve the pages for browsers: ask, search, library, accounts."),
    "desktop": Entry("desktop", short_help="Open the pages in a window on this machine."),
    "accounts": Entry("accounts", short_help="Accounts of localmed serve: list, a new password for one."),
    "tokens": Entry("tokens", short_help="Tokens for programs that call the API: make, list, revoke."),
    "doctor": Entry("doctor", short_help="Check machine, software, models and library; say what to do."),
    "incident": Entry("incident", short_help="Export an answer with everything that it came from, to look into it."),
    "evidence": Entry("evidence", short_help="What a buyer or auditor asks for, in one signed folder."),
    "audit": Entry("audit", short_help="Check, export and keep the head of the log of who did what."),
    "eval": Entry("evaluate", short_help="Measure retrieval, citations, badges, claims and entailment."),
    "train": Entry("train", short_help="Train a planner of sources on questions with known answers."),
    "review": Entry("review", short_help="Have people rate answers, blinded; read the filled forms."),
}


class Lazy(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order of use."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"localmed.cli.{COMMANDS[cmd_name].module}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; of one that does not exist the error names those that are spelt like it."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:  # click looks among the imported ones
            raise click.exceptions.NoSuchCommand(error.command_name, possibilities=COMMANDS, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview, without importing any command."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.short_help) for name, entry in COMMANDS.items()])


@click.group(cls=Lazy, context_settings={"help_option_names": ["--help", "-h"]})
@click.option(
    "--data", type=click.Path(file_okay=False), help="Data folder (else $LOCALMED_DATA, else ~/.local/share/localmed)."
)
@click.option("--as-group", "groups", multiple=True, metavar="GROUP",
              help="Read as a member of this group only (may be given several times; else reader.groups).")  # fmt: skip
@click.option("--debug", is_flag=True, help="Show where an error arose (a traceback).")
@click.version_option(__version__, prog_name="localmed")
@click.pass_context
def main(ctx: click.Context, data: str | None, groups: tuple[str, ...], debug: bool) -> None:
    """Offline medical question answering in which every sentence opens its page.

    Begin with: localmed collections create NAME, then: localmed import FOLDER --collection NAME. Each command has its
    own --help.
    """
    ctx.obj = {"data": data, "groups": groups, "debug": debug}


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line (``arguments``, else the process's) and exit with its code."""
    from localmed import confined, interrupts

    confined.no_core_dump()  # what is asked may be a patient's
    command_line = tuple(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Chinese shows ?, it does not end the command
    try:
        with interrupts.listening():
            code = _invoke(command_line)
        sys.exit(code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader (head, less) has gone
        sys.exit(0)
    except (Exception, KeyboardInterrupt) as error:
        from localmed.cli import failures  # what --help does not need

        failures.end(error, "--debug" in command_line)


def _invoke(arguments: Sequence[str]) -> int:
    """Run ``arguments``; unlike click's own ``main`` this leaves Ctrl-C and closed pipes to ``run``."""
    if COMPLETION in os.environ:
        main.main(prog_name="localmed")  # a shell asks for completions; does not return
    try:
        with main.make_context("localmed", list(arguments)) as ctx:
            main.invoke(ctx)
            return 0
    except click.exceptions.Exit as end:  # --help, --version, ctx.exit
        return end.exit_code
