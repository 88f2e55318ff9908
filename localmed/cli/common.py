"""Shared by the commands: session, JSON, tables, line breaking and progress."""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from functools import wraps
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import click

from localmed.cli import speaking
from localmed.domain import Answer, Message, message
from localmed.messages import ASIDE, COLON, from_text, joined, render
from localmed.presentation.neutral import escaped, neutral, one_line
from localmed.process.files import told_if_damaged
from localmed.process.hooks import SILENT, Hooks

if TYPE_CHECKING:
    from localmed.config import Settings
    from localmed.site.session import Session

FIRST_LINE, NEXT_LINE = 2.0, 30.0  # seconds to the first progress line, and between later ones, without a terminal
WIDEST = 100  # columns; longer lines are hard to read
READABLE = 20  # least columns of wrapped text; in fewer columns words are cut
_TWO_COLUMNS = frozenset("WF")  # East Asian width: wide and full-width characters
# Lines break between these: a word or a Chinese character, each with the punctuation and blanks after it.
_PIECES = re.compile(r"[⺀-\U0002ffff][，。、；：？！）」』》”’]*\s*|[^\s⺀-\U0002ffff]+[，。、；：？！）」』》”’]*\s*")


def settings_of(ctx: click.Context) -> Settings:
    """The settings, for a reader of the groups granted by the data folder's settings, else by its file rights.

    ``$LOCALMED_CONFIG`` and ``--as-group`` narrow the groups and never widen them.
    """
    from localmed import config
    from localmed.site.session import for_reader

    settings, granted = config.load(ctx.obj["data"]), config.load(ctx.obj["data"], own=False).reader.groups
    speaking.choose(settings.reader.language)
    return for_reader(settings, granted, ctx.obj["groups"])


@contextmanager
def open_session(ctx: click.Context, profile: str | None = None, reranker: str | None = None) -> Iterator[Session]:
    """A session of the operating system's account at the data folder of ``--data``.

    ``profile`` and ``reranker`` override the settings. Alerts and missing audit entries are printed at the end.
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


def in_session(command: Callable[..., int | None]) -> Callable[..., None]:
    """Pass a session instead of click's context to ``command``; a returned number is the exit code.

    A group's own action is skipped where one of its commands is called.
    """

    @click.pass_context
    @wraps(command)
    def run(ctx: click.Context, /, *positional: Any, **options: Any) -> None:
        if ctx.invoked_subcommand is None:
            with open_session(ctx) as session:
                code = command(session, *positional, **options)
            if code:
                ctx.exit(code)

    return run


def print_json(value: Any) -> None:
    """Print a value as JSON; control sequences are escaped."""
    click.echo(escaped(json.dumps(plain(value), ensure_ascii=False, indent=2)))


def print_rows(as_json: bool, value: Any, title: str, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print ``value`` as JSON, or ``rows`` as a table under the columns ``names``."""
    if as_json:
        print_json(value)
    else:
        print_table(speaking.text(title), speaking.columns(*names), list(rows))


def plain(value: Any) -> Any:
    """``value`` as JSON data: dataclasses as objects, messages with code and words."""
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
    """Print ``text`` without control sequences. Commands print by this function only."""
    line = neutral(str(text))
    click.echo(click.style(line, bold=bold or None, fg=colour) if bold or colour else line, err=err, nl=nl)


def echo_wrapped(text: str, indent: str = "", hanging: str = "", bold: bool = False) -> None:
    """Print ``text`` broken to the terminal's width; ``hanging`` indents all lines but the first."""
    width = min(shutil.get_terminal_size().columns, WIDEST)
    for number, line in enumerate(_lines(text, width - max(width_of(indent), width_of(hanging)))):
        echo(f"{hanging if number else indent}{line}", bold=bold)


def width_of(text: str) -> int:
    """The columns of ``text`` on a terminal: Chinese characters take two."""
    return sum(
        0 if unicodedata.combining(character) else 1 + (unicodedata.east_asian_width(character) in _TWO_COLUMNS)
        for character in text
    )


def moment(time: str) -> str:
    """A stored time (ISO 8601, UTC) in local time to the minute; "-" for ""."""
    return datetime.fromisoformat(time).astimezone().strftime("%Y-%m-%d %H:%M") if time else "-"


def _lines(text: str, width: int) -> Iterator[str]:
    """``text`` in lines of at most ``width`` columns, broken at a blank or beside a Chinese character."""
    line, used = "", 0
    for piece in _PIECES.findall(" ".join(text.split())):
        if line and used + width_of(piece.rstrip()) > width:
            yield line.rstrip()
            line, used = "", 0
        line, used = line + piece, used + width_of(piece)
    if line:
        yield line.rstrip()


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table, or a line that it is empty. The first column, which users copy, is never cut.

    Only the widest of the other columns is broken into lines; if that leaves too little width, rows are printed as
    paragraphs.
    """
    if not rows:
        speaking.say("cli.none_of", title=title)
        return
    cells = [[one_line(str(cell)) for cell in row] for row in rows]
    widths = [max(map(width_of, column)) for column in zip(columns, *cells, strict=True)]
    widest = max(range(1, len(widths)), key=lambda number: widths[number], default=0)
    room = shutil.get_terminal_size().columns - 2 * len(widths) - 1  # minus the gaps between columns
    left = room - sum(widths) + widths[widest]
    if left < min(READABLE, widths[widest]):
        _print_paragraphs(title, columns, cells, widest)
        return
    widths[widest] = min(widths[widest], left)
    echo(f"{one_line(title)}\n")
    for row in (columns, ["─" * width for width in widths], *cells):
        parts = [[*_lines(cell, left)] if number == widest else [cell] for number, cell in enumerate(row)]
        for line in zip_longest(*parts, fillvalue=""):
            padded = (cell + " " * (width - width_of(cell)) for cell, width in zip(line, widths, strict=True))
            echo(f" {'  '.join(padded)}".rstrip())
    echo()


def _print_paragraphs(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], widest: int) -> None:
    echo(title)
    for row in rows:
        echo_wrapped(row[widest], f"{row[0]}  " if widest else "", "    ")
        others = (number for number in range(1, len(row)) if number != widest and row[number] not in ("", "-"))
        echo_wrapped(speaking.joined((f"{columns[number]} {row[number]}" for number in others), ASIDE), "    ", "    ")


def tell_file(outcome: str, path: str, passages: int, why: str | Message) -> None:
    """Print the outcome of a file (``outcome`` is a message code) and the full reason below it."""
    code = "import.line_passages" if passages else "import.line"
    name = path.rstrip("/").rpartition("/")[2]
    line = speaking.text(code, outcome=message(outcome), file=name, count=passages)
    echo_wrapped(line, "  ", "    ")
    if why:
        echo_wrapped(speaking.words(why) if isinstance(why, Message) else why, "      ", "      ")


@contextmanager
def progress(show: bool) -> Iterator[tuple[Callable[[int], None], Callable[[float, str], None]]]:
    """As ``show_progress``, for work that reports increments: functions that set the total and advance."""
    with show_progress(show) as hooks:
        yield hooks.counter()


@contextmanager
def show_progress(show: bool) -> Iterator[Hooks]:
    """Hooks that show a progress bar on standard error, or nothing unless ``show``.

    Where standard error is not a terminal, a line without names is printed now and then.
    """
    if not show:
        yield SILENT
        return
    if not sys.stderr.isatty():
        due, step = time.monotonic() + FIRST_LINE, speaking.text("cli.step")

        def begin(name: Message) -> None:
            nonlocal step
            step = speaking.words(name)

        def line(done: float, total: float, _: str) -> None:
            nonlocal due
            if done and total and time.monotonic() >= due:
                due = time.monotonic() + NEXT_LINE
                speaking.say("cli.so_far", err=True, step=step, share=int(100 * done / total))

        yield Hooks(started=begin, progress=line)
        return
    from rich import progress as bars
    from rich.console import Console

    columns = (
        bars.TextColumn("{task.description}", markup=False),  # a file may be called [b].txt
        *(bars.BarColumn(), bars.TaskProgressColumn(), bars.TimeElapsedColumn()),
        bars.TextColumn(speaking.text("cli.left"), markup=False),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(speaking.text("cli.reading"), total=None)
        yield Hooks(
            progress=lambda done, total, name: bar.update(
                task, total=total or None, completed=done, description=one_line(speaking.words(from_text(name)))[:30]
            )
        )


FIRST, FIRST_SECTIONS = 160, 3  # characters and number of the passages shown while a model works: two lines each


@contextmanager
def show_steps(language: str, as_json: bool) -> Iterator[Hooks]:
    """Hooks that show a workflow's current step, its progress and the first sections on standard error.

    Silent without a terminal, and where JSON goes to another program.
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
