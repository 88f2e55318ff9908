"""What the commands share: the app, filters, JSON, tables and progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from localmed.domain import SearchFilter, Status

if TYPE_CHECKING:
    from localmed.app import App

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")


@contextmanager
def opened(ctx: click.Context) -> Iterator[App]:
    """The app on the data folder given to ``localmed``."""
    from localmed import config
    from localmed.app import App

    with App(config.load(ctx.obj["data"])) as app:
        yield app


def filter_options(command: Decorated) -> Decorated:
    """The options that limit a search; collected by ``wanted``."""
    for option in (
        click.option("--collection", "-c", "collections", multiple=True, help="Only this collection (repeatable)."),
        click.option("--language", type=click.Choice(["en", "zh"]), help="Only documents in this language."),
        click.option("--from", "edition_from", default="", help="Only editions from this date (2020, 2020-05, ...)."),
        click.option("--to", "edition_to", default="", help="Only editions up to this date."),
        click.option("--status", "statuses", multiple=True, type=click.Choice(["current", "superseded"]),
                     help="Documents with this status (default: current only). Withdrawn ones never answer."),
    ):  # fmt: skip
        command = option(command)
    return command


def wanted(
    collections: Sequence[str], language: str | None, edition_from: str, edition_to: str, statuses: Sequence[str]
) -> SearchFilter:
    """The options as a filter; raise ``click.BadParameter`` for a date that is none."""
    for value in (edition_from, edition_to):
        if value and not _is_date(value):
            raise click.BadParameter(f"{value!r} is not a date such as 2024, 2024-05 or 2024-05-31")
    chosen = tuple(Status(each) for each in statuses) or (Status.CURRENT,)
    return SearchFilter(tuple(collections), language or "", edition_from, edition_to, chosen)


def _is_date(value: str) -> bool:
    parts = value.split("-")
    lengths = [4, 2, 2][: len(parts)]
    return len(parts) <= 3 and all(
        part.isdigit() and len(part) == size for part, size in zip(parts, lengths, strict=True)
    )


def print_json(value: Any) -> None:
    """Print a value (dataclasses and lists of them included) as JSON."""
    plain = [_plain(each) for each in value] if isinstance(value, list) else _plain(value)
    click.echo(json.dumps(plain, ensure_ascii=False, indent=2))


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table, or one line that there is nothing."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        click.echo(f"{title}: none")
        return
    table = Table(*columns, title=title, box=box.SIMPLE, title_justify="left")
    for row in rows:
        table.add_row(*(Text(str(each)) for each in row))
    Console().print(table)


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
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not (show and sys.stderr.isatty())) as bar:
        task = bar.add_task("reading", total=None)
        yield (
            lambda total: bar.update(task, total=total),
            lambda done, doing: bar.update(task, advance=done, description=doing[:30]),
        )
