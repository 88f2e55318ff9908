"""``localmed refresh``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from localmed.cli.common import echo, in_session, moment, print_json, print_rows, show_progress, tell_file
from localmed.cli.import_files import sigterm_as_interrupt
from localmed.cli.later import holds, nights
from localmed.cli.options import FILE, json_option
from localmed.cli.speaking import language, say, text, words
from localmed.domain import message
from localmed.domain.errors import UsageError
from localmed.presentation import night_page
from localmed.process import files

if TYPE_CHECKING:
    from localmed.domain.nights import Night
    from localmed.site.session import Session

SHOWN = 30  # files printed; --json and the page have them all


@click.group("refresh", invoke_without_command=True)
@json_option
@in_session
def command(session: Session, as_json: bool = False) -> int:
    """Import all watched folders as one change: check, build, ask the canary questions, put into use.

    Watched folders: those that collections were imported from, and [refresh.folders] in the settings. The previous
    version stays in use until the change passes. Exit code 7: canary questions would fail.
    """
    from localmed.nightly.refresh import refresh

    with sigterm_as_interrupt(), show_progress(not as_json) as hooks:
        night = refresh(session, hooks, by_hand=_at_terminal())
    _show(night, as_json)
    return UsageError.exit_code if night.errors else 0


def _at_terminal() -> bool:
    """Whether somebody typed the command; a timer has no terminal."""
    return sys.stdin.isatty()


@command.command("list")
@json_option
@in_session
def listed(session: Session, as_json: bool) -> None:
    """List the refreshes, newest first."""
    session.may_change()
    found = nights.nights(session.data)
    rows = (
        (night.number, moment(night.started), text(f"refresh.outcome_{night.outcome}"), night.generation or "-")
        for night in found
    )
    print_rows(as_json, found, "web.library.refreshes", ("number", "started", "outcome", "generation"), rows)


@command.command("show")
@click.argument("number", type=int)
@click.option("--page", type=FILE, metavar="FILE", help="Write the report as a page.")
@json_option
@in_session
def show(session: Session, number: int, page: Path | None, as_json: bool) -> None:
    """Show the report of refresh NUMBER: files, withdrawals, canary questions, times, disk."""
    session.may_change()
    night = nights.night(session.data, number)
    if page:
        files.write_new(page, night_page.page(night, language()).encode(), 0o644)
        say("cli.written", file=str(page))
        return
    _show(night, as_json)


@command.command("holds")
@json_option
@in_session
def held(session: Session, as_json: bool) -> None:
    """List files on hold, because their change was blocked or rolled back."""
    session.may_change()
    found = holds.holds(session.data)
    rows = ((one.path, one.collection, moment(one.time), words(one.reason)) for one in found)
    print_rows(as_json, found, "hold.list", ("path", "collection", "time", "reason"), rows)


@command.command("release")
@click.argument("paths", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All files on hold.")
@in_session
def release(session: Session, paths: tuple[str, ...], everything: bool) -> None:
    """Release the files PATHS from hold; the next refresh reads them."""
    if bool(paths) == everything:
        raise UsageError("hold.none_named")
    say("hold.released", count=holds.release(session, paths))


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
