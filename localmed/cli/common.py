"""What the commands share: the session, filters, JSON, tables and progress."""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from localmed.cli import speaking
from localmed.domain import Answer, Message, SearchFilter, Status, is_date, message
from localmed.domain.errors import InputError, UsageError, reason
from localmed.domain.findings import ALL
from localmed.messages import ASIDE, COLON, joined, render
from localmed.presentation.neutral import escaped, neutral, one_line
from localmed.process.files import first_bytes, told_if_damaged
from localmed.process.hooks import SILENT, Hooks
from localmed.text import language

if TYPE_CHECKING:
    from localmed.config import Settings
    from localmed.site.session import Session

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")

STDIN_BYTES = 100_000  # of a question read from standard input; of any question the first 4,000 are searched
STDIN = "localmed.stdin"  # where click's context has what was read of it
FIRST_LINE, NEXT_LINE = 2.0, 30.0  # seconds of work until a line tells how far it is, where there is no terminal
WIDEST = 100  # columns; longer lines are hard to read
READABLE = 20  # columns of text that is broken into lines; with less, words are cut
_TWO_COLUMNS = frozenset("WF")  # East Asian width: wide and full-width characters
# What a line is not broken within: a word with the punctuation and blanks after it, a Chinese character likewise.
_PIECES = re.compile(r"[⺀-\U0002ffff][，。、；：？！）」』》”’]*\s*|[^\s⺀-\U0002ffff]+[，。、；：？！）」』》”’]*\s*")


def text_callback(ctx: click.Context, parameter: click.Parameter, value: str | tuple[str, ...]) -> str:
    """The words as one text that every library takes; ``-`` alone is standard input."""
    del parameter
    typed = value if isinstance(value, str) else " ".join(value)
    return language.clean(standard_input(ctx).decode("utf-8", "replace") if typed == "-" else typed)


def texts_callback(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """The texts, in the place of ``-`` the lines of standard input."""
    del parameter
    return tuple(text for typed in value for text in (stdin_lines(standard_input(ctx)) if typed == "-" else [typed]))


def standard_input(ctx: click.Context, most: int = STDIN_BYTES) -> bytes:
    """At most ``most`` bytes of standard input; raise ``UsageError`` if the command has read it already."""
    if STDIN in ctx.meta:
        raise UsageError("cli.stdin_twice")
    ctx.meta[STDIN] = sys.stdin.buffer.read(most)
    return bytes(ctx.meta[STDIN])


def stdin_lines(data: bytes) -> list[str]:
    """The lines of ``data`` that say something."""
    return [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]


def bytes_of(path: str | Path, most: int, unreadable: str) -> bytes:
    """At most one byte more than ``most`` of a patient's file or (``-``) of standard input.

    ``unreadable`` is the error's code; it names no file, since the name may be the patient's.
    """
    if str(path) == "-":
        return standard_input(click.get_current_context(), most + 1)
    try:
        return first_bytes(Path(path), most + 1)
    except OSError as error:
        raise InputError(unreadable, reason=reason(error)) from None


def _question(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> str:
    """The question; raise ``UsageError`` for one without a word to search for."""
    typed = text_callback(ctx, parameter, value)
    if not language.words(typed):
        raise UsageError("workflow.no_words")
    return typed


question_argument = click.argument("question", nargs=-1, required=True, callback=_question)


def settings_of(ctx: click.Context) -> Settings:
    """The settings, for a reader of the groups that the data folder's settings, else its rights, give.

    ``$LOCALMED_CONFIG`` and ``--as-group`` narrow these and never widen them.
    """
    from localmed import config
    from localmed.site.session import for_reader

    settings, granted = config.load(ctx.obj["data"]), config.load(ctx.obj["data"], own=False).reader.groups
    speaking.choose(settings.reader.language)
    return for_reader(settings, granted, ctx.obj["groups"])


@contextmanager
def opened(ctx: click.Context, profile: str | None = None, reranker: str | None = None) -> Iterator[Session]:
    """A session of whoever runs the command, at the data folder given to ``localmed``.

    ``profile`` and ``reranker`` take the place of those of the settings.
    """
    from localmed.site import alerts
    from localmed.site.session import Session, local_caller
    from localmed.site.site import Site

    settings = settings_of(ctx)
    uses = {"reranker": reranker} if reranker else {}
    with (
        told_if_damaged(settings.data),
        Site(replace(settings, profile=profile) if profile else settings, uses=uses) as site,
    ):
        session = Session(site, local_caller(settings, speaking.language()))
        yield session
        if session.caller.groups is None:
            for one in alerts.alerts(settings.data):
                speaking.say("alert.line", err=True, text=one.text)
        for missed in session.unaudited:
            speaking.say("audit.done", err=True, missed=missed)


def reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that switch readings of a question off; the command gets their names as one: ``left_out``."""

    @click.option("--leave-out", "left_out", multiple=True, metavar="WORDS",
                  help='Words of QUESTION whose reading ("Read as") is not searched for (repeatable).')  # fmt: skip
    @click.option("--as-written", is_flag=True, help="Leave out all readings: abbreviations, values, medicine names.")
    @wraps(command)
    def gathered(*positional: Any, left_out: tuple[str, ...], as_written: bool, **own: Any) -> None:
        command(*positional, left_out=(ALL,) if as_written else left_out, **own)

    return gathered


def filter_options(command: Decorated) -> Decorated:
    """The options that limit a search; collected by ``search_filter``."""
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


def moment(time: str) -> str:
    """A stored time (ISO 8601, UTC) as the reader's clock shows it, to the minute; "-" where it is not known ("")."""
    return datetime.fromisoformat(time).astimezone().strftime("%Y-%m-%d %H:%M") if time else "-"


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

    Only the widest of the others is broken into lines; where too little width is left for it, each row is printed as a
    paragraph instead of columns of a few letters.
    """
    if not rows:
        speaking.say("cli.none_of", title=title)
        return
    cells = [[one_line(str(cell)) for cell in row] for row in rows]
    widths = [max(map(width_of, column)) for column in zip(columns, *cells, strict=True)]
    widest = max(range(1, len(widths)), key=lambda number: widths[number], default=0)
    room = shutil.get_terminal_size().columns - 2 * len(widths) - 1  # less what stands between the columns
    left = room - sum(widths) + widths[widest]
    if left < min(READABLE, widths[widest]):
        _print_paragraphs(title, columns, cells, widest)
        return
    for row in cells:
        row[widest] = "\n".join(_lines(row[widest], left))
    _print_columns(title, columns, cells)


def _print_columns(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(one_line(title)), box=box.SIMPLE, title_justify="left", padding=(0, 1, 0, 0))
    for number, name in enumerate(columns):
        table.add_column(name, no_wrap=number == 0, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console()
    with console.capture() as printed:
        console.print(table)
    click.echo(printed.get(), nl=False)  # click leaves a closed pipe to ``main.run``


def _print_paragraphs(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], widest: int) -> None:
    echo(title)
    for row in rows:
        echo_wrapped(row[widest], f"{row[0]}  " if widest else "", "    ")
        others = (number for number in range(1, len(row)) if number != widest and row[number] not in ("", "-"))
        echo_wrapped(speaking.joined((f"{columns[number]} {row[number]}" for number in others), ASIDE), "    ", "    ")


def tell_file(outcome: str, path: str, passages: int, why: str | Message) -> None:
    """Print what became of a file (``outcome`` is the code of the word), and below it why, whole."""
    code = "import.line_passages" if passages else "import.line"
    name = path.rstrip("/").rpartition("/")[2]
    line = speaking.text(code, outcome=message(outcome), file=name, count=passages)
    echo_wrapped(line, "  ", "    ")
    if why:
        echo_wrapped(speaking.words(why) if isinstance(why, Message) else why, "      ", "      ")


class _Lines:
    """How far work is, as lines of a log: none for what is done at once."""

    def __init__(self) -> None:
        self._done, self._total, self._next = 0.0, 0, time.monotonic() + FIRST_LINE

    def start(self, total: int) -> None:
        """There are ``total`` things to do."""
        self._total = total

    def advance(self, done: float, _: str) -> None:
        """So many more are done."""
        self._done += done
        if self._total and time.monotonic() >= self._next:
            self._next = time.monotonic() + NEXT_LINE
            echo(speaking.text("cli.so_far", done=int(self._done), total=self._total), err=True)


@contextmanager
def progress(show: bool) -> Iterator[tuple[Callable[[int], None], Callable[[float, str], None]]]:
    """A bar with the time left on stderr: functions to set the total and to advance; ``show`` off is silence.

    Where stderr goes to a file there is a line now and then, without names, in place of the bar.
    """
    if show and not sys.stderr.isatty():
        lines = _Lines()
        yield lines.start, lines.advance
        return
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
    with Progress(*columns, console=Console(stderr=True), disable=not show) as bar:
        task = bar.add_task(speaking.text("cli.reading"), total=None)
        yield (
            lambda total: bar.update(task, total=total),
            lambda done, doing: bar.update(task, advance=done, description=one_line(doing)[:30]),
        )


@contextmanager
def work_shown(show: bool) -> Iterator[Hooks]:
    """Hooks for an import or a reindexing: a bar with the time left, or lines, on standard error."""
    with progress(show) as (start, advance):
        done_before, total_before = 0.0, 0.0

        def update(done: float, total: float, name: str) -> None:
            nonlocal done_before, total_before
            if total != total_before:
                start(int(total))
            advance(done - done_before, name)
            done_before, total_before = done, total

        yield Hooks(progress=update)


FIRST, FIRST_SECTIONS = 160, 3  # characters and number of the passages shown while a model works: two lines each


@contextmanager
def steps_shown(language: str, as_json: bool) -> Iterator[Hooks]:
    """Hooks for a workflow: its current step on standard error, how far it is, and what is found at once.

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

        def show(answer: Answer) -> None:
            for piece in answer.evidence[:FIRST_SECTIONS]:
                first = one_line(piece.passage.text)[:FIRST]
                title = joined((piece.document_title, first), language, COLON)
                status.console.print(title, style="dim", markup=False)

        yield Hooks(started=started, progress=update, sections=show)
