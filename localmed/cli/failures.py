"""How a failed command ends: one line on standard error in the reader's language, and an exit code."""

from __future__ import annotations

import re
import sys
import traceback
from typing import NoReturn

import click

from localmed.cli.common import echo
from localmed.cli.speaking import error_line, text
from localmed.domain.errors import LocalmedError, details
from localmed.presentation.neutral import one_line

INTERRUPTED = 130
_PLAIN = re.compile(r"(-{0,2}[a-z][a-z-]{0,30}|-[A-Z])?")  # how a mistyped command or option looks, unlike a question


def end(error: BaseException, debug: bool, called: str = "localmed") -> NoReturn:
    """Print the line of ``error``, with ``debug`` after a traceback (except for usage errors), and exit.

    ``called`` is the command whose help a usage error names where click does not give it.
    """
    if isinstance(error, click.Abort | KeyboardInterrupt):  # click aborts at a question only
        if sys.stderr.isatty():
            echo(err=True)  # ends the terminal's ^C
        _fail(text("cli.not_confirmed" if isinstance(error, click.Abort) else "cli.interrupted"), INTERRUPTED)
    if isinstance(error, click.ClickException):
        _fail(_usage_line(error, called), error.exit_code)
    if debug:
        for detail in details(error.message) if isinstance(error, LocalmedError) else ():
            error.add_note(detail)
        echo("".join(traceback.format_exception(error)), err=True, nl=False)
    if isinstance(error, LocalmedError):
        _fail(error_line(error), error.exit_code)
    if _was_interrupted(error):
        _fail(text("cli.interrupted"), INTERRUPTED)
    _fail(text("cli.unexpected", error=_describe(error)), 1)


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether a clean-up after Ctrl-C failed in turn."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _fail(line: str, code: int) -> NoReturn:
    echo(f"localmed: {one_line(line)}", err=True)
    sys.exit(code)


def _usage_line(error: click.ClickException, called: str) -> str:
    """One line of ours for a usage error; misplaced words are not repeated, because they may be a question."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    where = context.command_path if context else called
    name = getattr(error, "command_name", getattr(error, "option_name", ""))
    if isinstance(name, str) and not _PLAIN.fullmatch(name):
        return text("cli.no_command")
    parameter = getattr(error, "param", None)
    hint = getattr(error, "param_hint", None) or (parameter.get_error_hint(context) if parameter else "")
    hint = hint if isinstance(hint, str) else " / ".join(hint)
    if isinstance(error, click.NoSuchOption):
        code = "cli.usage_no_option_near" if error.possibilities else "cli.usage_no_option"
        return text(code, where=where, name=error.option_name, near=tuple(error.possibilities or ()))
    if isinstance(error, click.BadOptionUsage):
        return text("cli.usage_no_value", where=where, name=error.option_name)
    if isinstance(error, click.exceptions.NoSuchCommand):
        code = "cli.usage_no_command_near" if error.possibilities else "cli.usage_no_command"
        return text(code, where=where, name=error.command_name, near=tuple(error.possibilities or ()))
    if isinstance(error, click.MissingParameter):
        return text("cli.usage_missing", where=where, name=hint)
    if isinstance(error, click.BadParameter):
        kind = parameter.type if parameter else None
        if isinstance(kind, click.IntRange | click.FloatRange):
            least, most = ("-" if bound is None else f"{bound:g}" for bound in (kind.min, kind.max))
            return text("cli.usage_range", where=where, name=hint, least=least, most=most)
        if isinstance(kind, click.Choice):
            return text("cli.usage_choice", where=where, name=hint, choices=tuple(map(str, kind.choices)))
        if isinstance(kind, click.Path):
            return text("cli.usage_path", where=where, name=hint)
        if isinstance(kind, click.types.IntParamType | click.types.FloatParamType):
            return text("cli.usage_number", where=where, name=hint)
        return text("cli.usage_bad", where=where, name=hint, problem=error.message.rstrip("."))
    return text("cli.usage_words", where=where)


def _describe(error: BaseException) -> str:
    """The kind of error, with the operating system's words (full disk, no rights); never a user's text."""
    if isinstance(error, OSError) and error.strerror:
        return f"{type(error).__name__}: {error.strerror}"
    return type(error).__name__
