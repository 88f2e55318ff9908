"""``localmed refresh``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from localmed.cli.common import echo, json_option, moment, opened, print_json, print_table, tell_file, work_shown
from localmed.cli.import_files import ended_as_by_ctrl_c
from localmed.cli.speaking import columns, language, say, text, words
from localmed.domain import message
from localmed.domain.errors import UsageError
from localmed.presentation import night_page
from localmed.process import files

if TYPE_CHECKING:
    from localmed.domain.nights import Night

Value = TypeVar("Value")
SHOWN = 30  # files printed; --json and the page have them all


@click.group("refresh", invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool = False) -> None:
    """Import all watched folders as one change: check, build, ask the canary questions, put into use.

    Watched folders: those that collections were imported from, and [refresh.folders] in the settings. The previous
    version stays in use until the change passes. Exit code 7: canary questions would fail.
    """
    if ctx.invoked_subcommand is not None:
        return
    from localmed.nightly.refresh import refresh

    with ended_as_by_ctrl_c(), opened(ctx) as session, work_shown(not as_json) as hooks:
        night = refresh(session, hooks)
    _show(night, as_json)
    if night.errors:
        sys.exit(UsageError.exit_code)


@command.command("list")
@json_option
@click.pass_context
def listed(ctx: click.Context, as_json: bool) -> None:
    """List the refreshes, newest first."""
    from localmed.nightly import nights

    def row(night: Night) -> tuple[object, ...]:
        outcome = text(f"refresh.outcome_{night.outcome}")
        return night.number, moment(night.started), outcome, night.generation or "-"

    _list(ctx, nights.nights, "web.library.refreshes", ("number", "started", "outcome", "generation"), row, as_json)


@command.command("show")
@click.argument("number", type=int)
@click.option(
    "--page", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the report as a page."
)
@json_option
@click.pass_context
def show(ctx: click.Context, number: int, page: Path | None, as_json: bool) -> None:
    """Show the report of refresh NUMBER: files, withdrawals, canary questions, times, disk."""
    from localmed.nightly import nights

    with opened(ctx) as session:
        session.may_change()
        night = nights.night(session.data, number)
    if page:
        files.write_new(page, night_page.page(night, language()).encode(), 0o644)
        say("cli.written", file=str(page))
        return
    _show(night, as_json)


@command.command("holds")
@json_option
@click.pass_context
def held(ctx: click.Context, as_json: bool) -> None:
    """List files on hold, because their change was blocked or rolled back."""
    from localmed.site import holds

    def row(one: holds.Hold) -> tuple[object, ...]:
        return one.path, one.collection, moment(one.time), words(one.reason)

    _list(ctx, holds.holds, "hold.list", ("path", "collection", "time", "reason"), row, as_json)


def _list(
    ctx: click.Context,
    listed: Callable[[Path], Sequence[Value]],
    title: str,
    names: Sequence[str],
    row: Callable[[Value], tuple[object, ...]],
    as_json: bool,
) -> None:
    """Print what ``listed`` finds in the data folder, each as a ``row`` of a table or all as JSON."""
    with opened(ctx) as session:
        session.may_change()
        found_values = listed(session.data)
    if as_json:
        print_json(found_values)
    else:
        print_table(text(title), columns(*names), [row(value) for value in found_values])


@command.command("release")
@click.argument("paths", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All files on hold.")
@click.pass_context
def release(ctx: click.Context, paths: tuple[str, ...], everything: bool) -> None:
    """Release the files PATHS from hold; the next refresh reads them."""
    from localmed.site import holds

    if bool(paths) == everything:
        raise UsageError("hold.none_named")
    with opened(ctx) as session:
        count = holds.release(session, paths)
    say("hold.released", count=count)


def _show(night: Night, as_json: bool) -> None:
    if as_json:
        print_json(night)
        return
    outcome = message(f"refresh.outcome_{night.outcome}")
    echo(text("refresh.title", number=night.number, outcome=outcome, generation=night.generation), bold=True)
    for line in night.errors:
        echo(words(line), colour="red")
    changes = [file for file in night.files if file.change != "note"]
    for file in changes[:SHOWN]:
        tell_file(f"file.outcome_{file.change}", file.path, 0, file.detail or "")
    if len(changes) > SHOWN:
        say("cli.more", count=len(changes) - SHOWN)
    for part in night_page.summary(night):
        echo(words(part))
