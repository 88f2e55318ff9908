"""The ``localmed`` command: imports only the called subcommand, and turns errors into one line and an exit code.

Exit codes: 0 done (an abstention is an answer), 1 unexpected, 2 usage, 3 a file was refused (0 if the import read
others), 4 another writer, 5 the library is unusable or ``doctor`` found a problem, 6 a model failed or has changed, 7
the canary questions blocked a change, 130 interrupted. A traceback appears only with ``--debug``.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click

from localmed import __version__

COMPLETION = "_LOCALMED_COMPLETE"  # set by click's shell completion


class Entry(NamedTuple):
    """A subcommand: ``module:attribute`` of its click command (default attribute: ``command``), and its short help.

    The module is of this package, or has its full name.
    """

    module: str
    short_help: str


COMMANDS = {
    "import": Entry("import_files", "Import files and folders into a collection."),
    "ask": Entry("ask:ask", "Ask a question: sections, and with a chat model a cited answer."),
    "plan": Entry("ask:plan", "Plan the search of each source, then answer from all of them."),
    "ebm": Entry("ask:ebm", "Find evidence for one patient and check it against the record."),
    "verify": Entry("ask:verify", "Check an answer written elsewhere: citations, and claims against studies."),
    "replay": Entry("ask:replay", "Run a recorded workflow again, without library or models."),
    "explain": Entry("ask:explain", "Explain a medical order in plain words; answer questions about it."),
    "departments": Entry("ask:departments", "Find the department for a complaint, from the hospital's guide."),
    "search": Entry("search", "Find sections, without an answer."),
    "concept": Entry("concept", "Look up a term in the concept graph: definition, synonyms, relations."),
    "show": Entry("show", "Show a passage, and its page as an image."),
    "documents": Entry("documents", "List, show, update, remove, supersede or withdraw documents."),
    "collections": Entry("collections", "List, create and update collections, set their priority and access."),
    "pack": Entry("pack", "Content packs on a stick: build, inspect, import; all signed."),
    "reindex": Entry("generations:reindex", "Convert the library to the chosen encoder."),
    "generations": Entry("generations", "List, verify and roll back library generations."),
    "refresh": Entry("refresh", "Import all watched folders as one change; show reports and files on hold."),
    "canaries": Entry("canaries", "Test questions that every change of the library must pass."),
    "calibrate": Entry("canaries:calibrate", "Measure with your own questions when a section counts as close."),
    "backup": Entry("backup", "Back up everything during operation; list and verify backups."),
    "restore": Entry("backup:restore_command", "Restore a backup."),
    "repair": Entry("backup:repair_command", "Show what can be repaired after damage, then repair it."),
    "models": Entry("models", "List, add, verify and choose models; show what fits this machine."),
    "host": Entry("serve:host_command", "Keep the models loaded for other commands; show the status."),
    "serve": Entry("serve:serve", "Start the web server: ask, search, library, accounts."),
    "desktop": Entry("serve:desktop_command", "Open the pages in a window on this machine."),
    "accounts": Entry("accounts", "List the accounts of localmed serve; set a password."),
    "tokens": Entry("accounts:tokens_command", "Create, list and revoke tokens for programs that call the API."),
    "doctor": Entry("doctor", "Check machine, software, models and library."),
    "incident": Entry("audit:incident_command", "Export an answer with its sources, to investigate an incident."),
    "evidence": Entry("evidence", "Write the documents that buyers and auditors ask for into one folder."),
    "audit": Entry("audit", "Check and export the audit log; print its head."),
    "eval": Entry("localmed.lab.commands:evaluate", "Measure retrieval, citations, badges, claims and entailment."),
    "train": Entry("localmed.lab.commands:train", "Train a source planner on questions with known answers."),
    "review": Entry("localmed.lab.commands:review", "Blinded rating of answers by people: write and read forms."),
}  # fmt: skip


class Lazy(click.Group):
    """A group whose commands are imported when they are called."""

    def __init__(self, *arguments: Any, entries: Mapping[str, Entry], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order of use."""
        del ctx
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        del ctx
        if cmd_name not in self.entries:
            return None
        module, _, name = self.entries[cmd_name].module.partition(":")
        found = importlib.import_module(module if "." in module else f"localmed.cli.{module}")
        command: click.Command = getattr(found, name or "command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; the error for an unknown one suggests similar names."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:  # click looks among the imported ones
            raise click.exceptions.NoSuchCommand(error.command_name, possibilities=self.entries, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview without importing any command."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.short_help) for name, entry in self.entries.items()])


@click.group(cls=Lazy, entries=COMMANDS, context_settings={"help_option_names": ["--help", "-h"]})
@click.option(
    "--data", type=click.Path(file_okay=False), help="Data folder (default: $LOCALMED_DATA or ~/.local/share/localmed)."
)
@click.option("--as-group", "groups", multiple=True, metavar="GROUP",
              help="Read as a member of this group only (repeatable; default: reader.groups).")  # fmt: skip
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(__version__, prog_name="localmed")
@click.pass_context
def main(ctx: click.Context, data: str | None, groups: tuple[str, ...], debug: bool) -> None:
    """Offline medical question answering: every sentence opens its page.

    Start with: localmed collections create NAME, then: localmed import FOLDER --collection NAME. Every command has
    --help.
    """
    ctx.obj = {"data": data, "groups": groups, "debug": debug}


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line (``arguments``, else the process's) and exit with its code."""
    from localmed.process import confined, interrupts

    confined.no_core_dump()  # questions may contain patient data
    command_line = tuple(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Chinese shows ?, it does not end the command
    try:
        with interrupts.note_interrupts():
            code = _invoke(command_line)
        sys.exit(code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader (head, less) has gone
        sys.exit(0)
    except (Exception, KeyboardInterrupt) as error:
        from localmed.cli import failures  # not needed by --help

        failures.end(error, "--debug" in command_line, _called_command(command_line))


def _called_command(arguments: Sequence[str]) -> str:
    names = ["localmed"]
    command: click.Command = main
    for word in arguments:
        if not isinstance(command, click.Group):
            break
        context = click.Context(command)
        if word in command.list_commands(context):
            command = command.get_command(context, word) or command
            names.append(word)
    return " ".join(names)


def _invoke(arguments: Sequence[str]) -> int:
    """Run ``arguments``; unlike click's ``main`` it leaves Ctrl-C and closed pipes to ``run``."""
    if COMPLETION in os.environ:
        main.main(prog_name="localmed")  # a shell asks for completions; does not return
    try:
        with main.make_context("localmed", list(arguments)) as ctx:
            main.invoke(ctx)
            return 0
    except click.exceptions.Exit as end:  # --help, --version, ctx.exit
        return end.exit_code
