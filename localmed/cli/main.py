"""The ``localmed`` command: finds the subcommand, loads only its file, and turns errors into one line and an exit code.

Exit codes: 0 done (an abstention is an answer), 1 unexpected, 2 usage, 3 a file was refused
(an import that read others as well reports it and ends with 0), 4 another writer, 5 the
library cannot be used or ``doctor`` found a problem, 6 a model failed or has changed, 130 interrupted.
A traceback appears only with ``--debug``.
"""

from __future__ import annotations

import importlib
import io
import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

import click

from localmed import __version__
from localmed.domain import Parameter
from localmed.errors import LocalmedError, details
from localmed.presentation.neutral import one_line

COMPLETION = "_LOCALMED_COMPLETE"  # set by click's shell completion
_PLAIN = re.compile(r"(-{0,2}[a-z][a-z-]{0,30}|-[A-Z])?")  # how a mistyped command or option looks, unlike a question

COMMANDS = {
    # name: (module, one line of help); the module has a click command called ``command``
    "import": ("import_files", "Import files and folders into a collection, or bring it up to date."),
    "ask": ("ask", "Ask a question; every sentence of the answer is cited."),
    "plan": ("plan", "Plan which source is asked what, and answer from all of them."),
    "ebm": ("ebm", "Evidence on a clinical question about one patient, held against the record."),
    "verify": ("verify", "Check an answer written elsewhere: its citations, and its claims against studies."),
    "replay": ("replay", "Run a recorded workflow again, without library or models."),
    "explain": ("explain", "Say a medical order in plain words, explain its terms, answer questions."),
    "departments": ("departments", "Where to go with a complaint: department, floor and why, by the hospital's guide."),
    "search": ("search", "Find passages, without an answer."),
    "concept": ("concept", "What the concept graph says of a term: definition, synonyms, relations."),
    "show": ("show", "Show a passage, and its page as an image."),
    "documents": ("documents", "List, show, govern, remove, supersede or withdraw documents."),
    "collections": ("collections", "List, create and update collections, set their priority and access."),
    "reindex": ("reindex", "Bring the library to the encoder that was chosen."),
    "generations": ("generations", "List, verify and roll back library generations."),
    "repair": ("repair", "After damage: show what can be put right from what is whole, then do it."),
    "models": ("models", "List, add, verify and choose models; see what fits this machine."),
    "host": ("host", "Keep the models loaded for other commands; see what it does."),
    "doctor": ("doctor", "Check machine, software, models and library; say what to do."),
    "eval": ("evaluate", "Measure retrieval, citations, badges, claims and entailment."),
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
        command: click.Command = importlib.import_module(f"localmed.cli.{COMMANDS[cmd_name][0]}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview, without importing any command."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in COMMANDS.items()])


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
    command_line = tuple(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Chinese shows ?, it does not end the command
    try:
        sys.exit(_invoke(command_line))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt) as end:  # click aborts at a question only
        if sys.stderr.isatty():
            click.echo(err=True)  # ends the terminal's ^C
        _fail(_text("cli.not_confirmed" if isinstance(end, click.Abort) else "cli.interrupted"), 130)
    except click.ClickException as error:
        _fail(_usage(error), error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader (head, less) has gone
        sys.exit(0)
    except LocalmedError as error:
        _traceback(command_line)
        _fail(_line(error), error.exit_code)
    except Exception as error:
        _traceback(command_line)
        _fail(_text("cli.unexpected", error=_described(error)), 1)


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


def _usage(error: click.ClickException) -> str:
    """One line on a command that cannot be taken as it is; a question typed in a command's place is not repeated."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    where = context.command_path if context else "localmed"
    name = getattr(error, "command_name", getattr(error, "option_name", ""))
    if isinstance(name, str) and not _PLAIN.fullmatch(name):
        return _text("cli.no_command")
    message = " ".join(error.format_message().split()).rstrip(".")
    if words := _usage_words(error, context, where, message):
        return words
    return f"{message[:1].lower()}{message[1:]}{'' if message.endswith('?') else '.'} See: {where} --help"


def _usage_words(error: click.ClickException, context: click.Context | None, where: str, message: str) -> str:
    """What click says in the reader's language, "" for English, which click speaks; quoted where we have no words."""
    from localmed.cli import speaking

    if speaking.language() == "en":
        return ""
    parameter = getattr(error, "param", None)
    hint = getattr(error, "param_hint", None) or (parameter.get_error_hint(context) if parameter else "")
    name = hint if isinstance(hint, str) else " / ".join(hint)
    if isinstance(error, click.NoSuchOption):
        return speaking.text("cli.usage_no_option", where=where, name=error.option_name)
    if isinstance(error, click.exceptions.NoSuchCommand):
        return speaking.text("cli.usage_no_command", where=where, name=error.command_name)
    if isinstance(error, click.MissingParameter):
        return speaking.text("cli.usage_missing", where=where, name=name)
    if isinstance(error, click.BadParameter):
        kind = parameter.type if parameter else None
        if isinstance(kind, click.IntRange | click.FloatRange):
            least, most = ("-" if bound is None else f"{bound:g}" for bound in (kind.min, kind.max))
            return speaking.text("cli.usage_range", where=where, name=name, least=least, most=most)
        if isinstance(kind, click.Choice):
            return speaking.text("cli.usage_choice", where=where, name=name, choices=tuple(map(str, kind.choices)))
        return speaking.text("cli.usage_bad", where=where, name=name, problem=error.message.rstrip("."))
    return speaking.text("cli.usage", where=where, problem=message)


def _traceback(arguments: Sequence[str]) -> None:
    """With ``--debug``, print the traceback of the error being handled, and what libraries call what went wrong."""
    if "--debug" in arguments:
        traceback.print_exc()
        error = sys.exc_info()[1]
        for detail in details(error.message) if isinstance(error, LocalmedError) else ():
            click.echo(detail, err=True)


def _described(error: Exception) -> str:
    """The kind of error, and for the operating system's (full disk, no rights) its words; never anybody's text."""
    if isinstance(error, OSError) and error.strerror:
        return f"{type(error).__name__}: {error.strerror}"
    return type(error).__name__


def _text(code: str, **parameters: Parameter) -> str:
    from localmed.cli import speaking  # what --help does not need

    return speaking.text(code, **parameters)


def _line(error: LocalmedError) -> str:
    from localmed.cli import speaking

    return speaking.error_line(error)


def _fail(message: str, code: int) -> NoReturn:
    click.echo(f"localmed: {one_line(message)}", err=True)
    sys.exit(code)
