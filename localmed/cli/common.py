"""What the commands share: the session, filters, JSON, tables and progress."""

from __future__ import annotations

import json
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from localmed import language
from localmed.cli import speaking
from localmed.domain import Message, SearchFilter, Status, is_date, message
from localmed.errors import InputError, reason
from localmed.hooks import SILENT, Hooks
from localmed.messages import render
from localmed.presentation.neutral import escaped, neutral, one_line

if TYPE_CHECKING:
    from localmed.config import Settings
    from localmed.session import Session

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")

STDIN_BYTES = 100_000  # of a question read from standard input; of any question the first 4,000 are searched
WIDEST = 100  # columns; longer lines are hard to read
SHORT = 12  # columns of a table's cell
_TWO_COLUMNS = frozenset("WF")  # East Asian width: wide and full-width characters
# What a line is not broken within: a word with the punctuation and blanks after it, a Chinese character likewise.
_PIECES = re.compile(r"[⺀-\U0002ffff][，。、；：？！）」』》”’]*\s*|[^\s⺀-\U0002ffff]+[，。、；：？！）」』》”’]*\s*")


def _question(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> str:
    """The words as one text that every library takes; ``-`` alone is standard input."""
    del ctx, parameter
    if value == ("-",):
        value = (sys.stdin.buffer.read(STDIN_BYTES).decode("utf-8", "replace"),)
    return language.clean(" ".join(value))


def bytes_of(path: str | Path, most: int, unreadable: str) -> bytes:
    """At most one byte more than ``most`` of a file or (``-``) standard input; ``unreadable`` is the error's code."""
    try:
        if str(path) == "-":
            return sys.stdin.buffer.read(most + 1)
        with Path(path).open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise InputError(unreadable, reason=reason(error)) from None


question_argument = click.argument("question", nargs=-1, required=True, callback=_question)


def settings_of(ctx: click.Context) -> Settings:
    """The settings, for a reader of the groups that the data folder's settings, else its rights, give.

    ``$LOCALMED_CONFIG`` and ``--as-group`` narrow these and never widen them.
    """
    from localmed import config
    from localmed.session import for_reader

    settings, granted = config.load(ctx.obj["data"]), config.load(ctx.obj["data"], own=False).reader.groups
    speaking.choose(settings.reader.language)
    return for_reader(settings, granted, ctx.obj["groups"])


@contextmanager
def opened(ctx: click.Context, profile: str | None = None, reranker: str | None = None) -> Iterator[Session]:
    """A session of whoever runs the command, at the data folder given to ``localmed``.

    ``profile`` and ``reranker`` take the place of those of the settings.
    """
    from localmed.session import Session, local_caller
    from localmed.site import Site

    settings = settings_of(ctx)
    uses = {"reranker": reranker} if reranker else {}
    with Site(replace(settings, profile=profile) if profile else settings, uses=uses) as site:
        session = Session(site, local_caller(settings, speaking.language()))
        yield session
        for missed in session.unaudited:
            speaking.say("audit.done", err=True, missed=missed)


def filter_options(command: Decorated) -> Decorated:
    """The options that limit a search; collected by ``search_filter``."""
    for option in (
        click.option("--collection", "-c", "collections", multiple=True, metavar="NAME",
                     help="Only this collection (may be given several times)."),
        click.option("--language", type=click.Choice(["en", "zh"]), help="Only documents in this language."),
        click.option("--from", "edition_from", default="", metavar="DATE", callback=_date,
                     help="Only editions of this date or later (2024, 2024-05 or 2024-05-31)."),
        click.option("--to", "edition_to", default="", metavar="DATE", callback=_date,
                     help="Only editions of this date or earlier."),
        click.option("--status", "statuses", multiple=True, type=click.Choice(["current", "superseded"]),
                     help="Documents of this status (default: current; may be given twice). Withdrawn never answer."),
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
    """``value`` if it is a year, a month or a day that exists; raise ``click.BadParameter`` if not."""
    del ctx, parameter
    if value and not is_date(value):
        raise click.BadParameter(speaking.text("cli.date"))
    return value


def print_json(value: Any) -> None:
    """Print a value (dataclasses and lists of them included) as JSON; what a terminal would obey is escaped."""
    click.echo(escaped(json.dumps(plain(value), ensure_ascii=False, indent=2)))


def plain(value: Any) -> Any:
    """``value`` as JSON has it: dataclasses as objects, messages with their words."""
    if isinstance(value, Message):
        return speaking.as_json(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple | set | frozenset) else value


def echo(
    text: object = "", *, err: bool = False, nl: bool = True, bold: bool = False, colour: str | None = None
) -> None:
    """Print ``text`` without anything that a terminal would obey: the one way in which commands print."""
    line = neutral(str(text))
    click.echo(click.style(line, bold=bold or None, fg=colour) if bold or colour else line, err=err, nl=nl)


def echo_wrapped(text: str, indent: str = "", hanging: str = "", bold: bool = False) -> None:
    """Print ``text`` broken to the terminal's width, ``hanging`` before every line but the first."""
    width = min(shutil.get_terminal_size().columns, WIDEST)
    for number, line in enumerate(_lines(text, width - max(width_of(indent), width_of(hanging)))):
        echo(f"{hanging if number else indent}{line}", bold=bold)


def width_of(text: str) -> int:
    """The columns that ``text`` takes on a terminal: Chinese characters take two."""
    return sum(
        0 if unicodedata.combining(character) else 1 + (unicodedata.east_asian_width(character) in _TWO_COLUMNS)
        for character in text
    )


def _lines(text: str, width: int) -> Iterator[str]:
    """``text`` in lines of at most ``width`` columns, cut at a blank or beside a Chinese character."""
    line, used = "", 0
    for piece in _PIECES.findall(" ".join(text.split())):
        if line and used + width_of(piece.rstrip()) > width:
            yield line.rstrip()
            line, used = "", 0
        line, used = line + piece, used + width_of(piece)
    if line:
        yield line.rstrip()


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table, or one line that there is nothing. The first column is what one copies: it is never cut.

    Nor are short columns (numbers, kinds, dates): what is left of the width goes to titles and paths.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        speaking.say("cli.none_of", title=title)
        return
    table = Table(title=Text(one_line(title)), box=box.SIMPLE, title_justify="left", padding=(0, 1, 0, 0))
    for number, name in enumerate(columns):
        short = all(width_of(str(row[number])) <= SHORT for row in rows)
        table.add_column(name, no_wrap=number == 0 or short, overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(str(cell))) for cell in row))
    console = Console()
    with console.capture() as printed:
        console.print(table)
    click.echo(printed.get(), nl=False)  # click leaves a closed pipe to ``main.run``


def tell_file(outcome: str, path: str, passages: int, why: str | Message) -> None:
    """Print what became of a file (``outcome`` is the code of the word), and below it why, whole."""
    code = "import.line_passages" if passages else "import.line"
    name = path.rstrip("/").rpartition("/")[2]
    line = speaking.text(code, outcome=message(outcome), file=name, count=passages)
    echo_wrapped(line, "  ", "    ")
    if why:
        echo_wrapped(speaking.words(why) if isinstance(why, Message) else why, "      ", "      ")


@contextmanager
def progress(show: bool) -> Iterator[tuple[Callable[[int], None], Callable[[float, str], None]]]:
    """A bar with the time left on stderr: functions to set the total and to advance. Silent unless on a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),  # a file may be called [b].txt
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn(speaking.text("cli.left"), markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not (show and sys.stderr.isatty())) as bar:
        task = bar.add_task(speaking.text("cli.reading"), total=None)
        yield (
            lambda total: bar.update(task, total=total),
            lambda done, doing: bar.update(task, advance=done, description=one_line(doing)[:30]),
        )


@contextmanager
def work_shown(show: bool) -> Iterator[Hooks]:
    """Hooks for an import or a reindexing: a bar with the time left on standard error, silent unless on a terminal."""
    with progress(show) as (start, advance):
        done_before, total_before = 0.0, 0.0

        def update(done: float, total: float, name: str) -> None:
            nonlocal done_before, total_before
            if total != total_before:
                start(int(total))
            advance(done - done_before, name)
            done_before, total_before = done, total

        yield Hooks(progress=update)


@contextmanager
def steps_shown(language: str, as_json: bool) -> Iterator[Hooks]:
    """Hooks for a workflow: its current step on standard error, and how far it is.

    Silent unless on a terminal, and where JSON goes to another program.
    """
    if not sys.stderr.isatty() or (as_json and not sys.stdout.isatty()):
        yield SILENT
        return
    from rich.console import Console

    step: Message | None = None
    with Console(stderr=True).status("") as status:

        def started(begun: Message) -> None:
            nonlocal step
            step = begun
            status.update(render(begun, language))

        def update(done: float, total: float, _: str) -> None:
            if step and total > 1:
                at = message("workflow.progress", step=step, done=int(done), total=int(total))
                status.update(render(at, language))

        yield Hooks(started=started, progress=update)
