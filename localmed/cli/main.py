"""The ``localmed`` command: finds the subcommand, loads only its file, and turns errors into one line and an exit code.

Exit codes: 0 done (an abstention is an answer), 1 unexpected, 2 usage, 3 a file was refused, 4 another writer, 5 the
library cannot be used, 6 a model failed, 130 interrupted. A traceback appears only with ``--debug``.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from localmed import __version__
from localmed.errors import LocalmedError

COMMANDS = {
    # name: (module, one line of help); the module has a click command called ``command``
    "import": ("import_files", "Import files and folders into a collection."),
    "ask": ("ask", "Ask a question; every sentence of the answer is cited."),
    "search": ("search", "Find passages."),
    "show": ("show", "Show a passage, and its page as an image."),
    "documents": ("documents", "List, show, remove, supersede or withdraw documents."),
    "collections": ("collections", "List and create collections, set their priority."),
    "generations": ("generations", "List, verify and roll back library generations."),
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
@click.option("--data", type=click.Path(file_okay=False), help="Data folder (else $LOCALMED_DATA).")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.version_option(__version__, prog_name="localmed")
@click.pass_context
def main(ctx: click.Context, data: str | None, debug: bool) -> None:
    """Offline medical question answering in which every sentence opens its page."""
    ctx.obj = {"data": data, "debug": debug}


def run() -> None:
    """Run the command line and exit with its code."""
    debug = "--debug" in sys.argv
    try:
        code = main.main(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted: nothing was changed; the same command goes on where it stopped", 130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader (head, less) has gone
        sys.exit(0)
    except LocalmedError as error:
        if debug:
            raise
        _fail(str(error), error.exit_code)
    except Exception as error:
        if debug:
            raise
        _fail(f"unexpected {_described(error)}. Run again with: localmed --debug ...", 1)


def _described(error: Exception) -> str:
    """The kind of error, and for the operating system's (full disk, no rights) its words; never anybody's text."""
    if isinstance(error, OSError) and error.strerror:
        return f"{type(error).__name__}: {error.strerror}"
    return type(error).__name__


def _fail(message: str, code: int) -> Any:
    click.echo(f"localmed: {message}", err=True)
    sys.exit(code)
