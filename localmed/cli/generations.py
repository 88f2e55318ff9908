"""``localmed generations``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from localmed.cli.common import json_option, opened, print_json, print_table
from localmed.domain import Status, message
from localmed.errors import Damaged
from localmed.messages import render

if TYPE_CHECKING:
    from localmed.app import App

EARLY_SHOWN = 20  # ids printed


@click.group("generations", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, verify and roll back generations: the states of the library that imports have left, newest last."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(listed)


@command.command("list")
@json_option
@click.pass_context
def listed(ctx: click.Context, as_json: bool = False) -> None:
    """The generations kept, newest last; the one served is marked."""
    from localmed.library import generations as store

    rows = []
    with opened(ctx) as app:
        app.librarian()  # its counts and reasons tell of every collection
        served = store.current(app.data).name
        for number in store.numbers(app.data):
            path = store.path_of(app.data, number)
            try:
                manifest = store.read_manifest(path)
                row = (manifest.created, manifest.reason, manifest.documents, manifest.passages)
            except Damaged:
                row = ("?", "damaged: its manifest cannot be read", 0, 0)
            rows.append((number, path.name == served, *row))
    names = ("number", "served", "created", "reason", "documents", "passages")
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    print_table("Generations", names, [(row[0], "*" if row[1] else "", *row[2:]) for row in rows])


@command.command("verify")
@click.argument("number", type=int, required=False)
@json_option
@click.pass_context
def verify(ctx: click.Context, number: int | None, as_json: bool) -> None:
    """Check every file of generation NUMBER (default: all) against its hash; exit code 5 if one is damaged."""
    from localmed.library import generations as store

    results: dict[int, list[str]] = {}
    with opened(ctx) as app:
        store.current(app.data)  # says so if there is no library
        for each in store.numbers(app.data) if number is None else [number]:
            try:
                results[each] = store.check(store.path_of(app.data, each), whole=True)
            except Damaged as error:
                results[each] = [error.what]
    if as_json:
        print_json({str(each): problems for each, problems in results.items()})
    else:
        for each, problems in results.items():
            click.echo(f"generation {each}: " + ("; ".join(problems) if problems else "ok"))
    if any(results.values()):
        sys.exit(Damaged.exit_code)


@command.command("rollback")
@click.argument("number", type=int, required=False)
@click.pass_context
def rollback(ctx: click.Context, number: int | None) -> None:
    """Serve generation NUMBER (default: the one before). Withdrawn documents stay withdrawn.

    What was set of documents since goes back with it; those that answer now before the day that was set are named.
    """
    with opened(ctx) as app:
        app.librarian()
        waiting = _waiting(app)
        click.echo(f"Generation {app.rollback(number):04d} is served")
        known = app.newest().holding.statuses()
        early = sorted(app.library.catalogue.by_ids(each for each in waiting or () if each not in known))
    if waiting is None:
        click.echo("Look at the dates: what was set of documents since has gone back, and could not be compared")
    if early:
        shown = " ".join(each[:12] for each in early[:EARLY_SHOWN]) + (" ..." if len(early) > EARLY_SHOWN else "")
        click.secho(f"{len(early)} documents that were not yet effective answer now: {shown}", fg="red")
        click.echo("To hold one back: localmed documents set ID --effective-from DATE")


def _waiting(app: App) -> set[str] | None:
    """The documents that are not yet effective; None where the library cannot be read, a reason to go back."""
    try:
        return {each for each, status in app.newest().holding.statuses().items() if status is Status.PENDING}
    except Damaged:
        return None


@command.command("prune")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def prune(ctx: click.Context, yes: bool) -> None:
    """Remove old generations that are still there, and the copies of imported files that none of the kept ones needs.

    The last ones are kept (library.keep_generations), with those that somebody is reading and what was served before
    the changes of the last day, unless these were confirmed.
    """
    from localmed.library import generations as store
    from localmed.library import originals

    with opened(ctx) as app:
        app.librarian()
        store.current(app.data)  # says so if there is no library
        if not yes:
            click.confirm("Remove the copies of files that no kept generation was made from?", abort=True)
        with store.lock_writer(app.data):
            store.prune(app.data, app.settings.library.keep_generations)
            files, size = originals.prune(app.data)
        app.note("prune", f"{files} originals", f"{size} bytes freed")
    click.echo(f"Removed {files} files, {size / 2**20:.1f} MiB")


@command.command("confirm")
@click.pass_context
def confirm(ctx: click.Context) -> None:
    """Say that the generation being served is good: what was served before its change need not be kept any longer."""
    from localmed.library import generations as store
    from localmed.library import served

    with opened(ctx) as app:
        app.librarian()
        with store.lock_writer(app.data):
            number = int(store.current(app.data).name)
            served.confirm(store.folder(app.data), number)
        app.note("confirm", f"generation {number}", "confirmed", generation=number)
    click.echo(render(message("generation.confirmed", number=number), "en"))


@command.command("upgrade")
@click.pass_context
def upgrade(ctx: click.Context) -> None:
    """After an update of localmed: bring the library to the new schema, as a new generation."""
    with opened(ctx) as app:
        click.echo(f"Generation {app.upgrade():04d} is served")
