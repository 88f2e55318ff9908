"""Shared options and arguments, and standard input."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from localmed.cli import speaking
from localmed.domain import SearchFilter, Status, is_date
from localmed.domain.errors import InputError, UsageError, reason
from localmed.domain.findings import ALL
from localmed.process.files import first_bytes
from localmed.text import language

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
FILE, FOLDER = click.Path(path_type=Path, dir_okay=False), click.Path(path_type=Path, file_okay=False)

STDIN_BYTES = 100_000  # of a question; the first 4,000 characters are searched
STDIN = "localmed.stdin"  # key of its content in click's context


def text_callback(ctx: click.Context, parameter: click.Parameter, value: str | tuple[str, ...]) -> str:
    """The words as one cleaned text; ``-`` alone reads standard input."""
    del ctx, parameter
    typed = value if isinstance(value, str) else " ".join(value)
    return language.clean(standard_input().decode("utf-8", "replace") if typed == "-" else typed)


def texts_callback(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """The texts; ``-`` is replaced by the lines of standard input."""
    del ctx, parameter
    return tuple(text for typed in value for text in (stdin_lines(standard_input()) if typed == "-" else [typed]))


def standard_input(most: int = STDIN_BYTES) -> bytes:
    """At most ``most`` bytes of standard input; raise ``UsageError`` if the command has read it already."""
    read = click.get_current_context().meta
    if STDIN in read:
        raise UsageError("cli.stdin_twice")
    read[STDIN] = sys.stdin.buffer.read(most)
    return bytes(read[STDIN])


def stdin_lines(data: bytes) -> list[str]:
    """The non-empty lines of ``data``."""
    return [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]


def bytes_of(path: str | Path, most: int) -> bytes:
    """Up to ``most`` + 1 bytes of a patient's file or (``-``) of standard input.

    The error does not name the file, because the name may be the patient's.
    """
    if str(path) == "-":
        return standard_input(most + 1)
    try:
        return first_bytes(Path(path), most + 1)
    except OSError as error:
        raise InputError("verify.unreadable", reason=reason(error)) from None


def _question(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> str:
    typed = text_callback(ctx, parameter, value)
    if not language.words(typed):
        raise UsageError("workflow.no_words")
    return typed


question_argument = click.argument("question", nargs=-1, required=True, callback=_question)


def reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options that switch off readings of a question; the command receives ``left_out``."""

    @click.option("--leave-out", "left_out", multiple=True, metavar="WORDS",
                  help='Words of QUESTION whose reading ("Read as") is not searched for (repeatable).')  # fmt: skip
    @click.option("--as-written", is_flag=True, help="Leave out all readings: abbreviations, values, medicine names.")
    @wraps(command)
    def gathered(*positional: Any, left_out: tuple[str, ...], as_written: bool, **own: Any) -> None:
        command(*positional, left_out=(ALL,) if as_written else left_out, **own)

    return gathered


def filter_options(command: Decorated) -> Decorated:
    """Options that limit a search; ``search_filter`` collects them."""
    for option in (
        click.option("--collection", "-c", "collections", multiple=True, metavar="NAME",
                     help="Only this collection (repeatable)."),
        click.option("--language", type=click.Choice(["en", "zh"]), help="Only documents in this language."),
        click.option("--from", "edition_from", default="", metavar="DATE", callback=_date,
                     help="Only editions of this date or later (2024, 2024-05 or 2024-05-31)."),
        click.option("--to", "edition_to", default="", metavar="DATE", callback=_date,
                     help="Only editions of this date or earlier."),
        click.option("--status", "statuses", multiple=True, type=click.Choice(["current", "superseded"]),
                     help="Documents of this status (default: current; repeatable). Never withdrawn ones."),
    ):  # fmt: skip
        command = option(command)
    return command


def search_filter(
    collections: Sequence[str], language: str | None, edition_from: str, edition_to: str, statuses: Sequence[str]
) -> SearchFilter:
    """The options as a filter."""
    chosen = tuple(Status(name) for name in statuses) or (Status.CURRENT,)
    return SearchFilter(tuple(collections), language or "", edition_from, edition_to, chosen)


def _date(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    del ctx, parameter
    if value and not is_date(value):
        raise click.BadParameter(speaking.text("cli.date"))
    return value
