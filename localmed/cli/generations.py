"""``localmed generations``."""

from __future__ import annotations

import sys

import click

from localmed.cli.common import json_option, opened, print_json, print_table
from localmed.cli.speaking import tell_problems, text
from localmed.domain import message
from localmed.errors import Damaged
from localmed.messages import render

DAMAGED = "damaged: its manifest cannot be read"
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
    from localmed.operations import lookups

    with opened(ctx) as session:
        kept = lookups.generations_kept(session)
    rows = [
        (
            each.number,
            each.served,
            each.created,
            DAMAGED if each.damaged else each.reason,
            each.documents,
            each.passages,
        )
        for each in kept
    ]
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
    from localmed.operations import lookups

    with opened(ctx) as session:
        results = lookups.verified(session, number)
    if as_json:
        print_json({str(each): problems for each, problems in results.items()})
    else:
        for each, problems in results.items():
            tell_problems(text("generation.name", number=each), problems)
    if any(results.values()):
        sys.exit(Damaged.exit_code)


@command.command("rollback")
@click.argument("number", type=int, required=False)
@click.pass_context
def rollback(ctx: click.Context, number: int | None) -> None:
    """Serve generation NUMBER (default: the one before). Withdrawn documents stay withdrawn.

    What was set of documents since goes back with it; those that answer now before the day that was set are named.
    """
    from localmed.operations import changes, lookups

    with opened(ctx) as session:
        session.may_change()
        waiting = lookups.waiting(session)
        click.echo(f"Generation {changes.rollback(session, number):04d} is served")
        early = lookups.effective_among(session, waiting or frozenset())
    if waiting is None:
        click.echo("Look at the dates: what was set of documents since has gone back, and could not be compared")
    if early:
        shown = " ".join(each[:12] for each in early[:EARLY_SHOWN]) + (" ..." if len(early) > EARLY_SHOWN else "")
        click.secho(f"{len(early)} documents that were not yet effective answer now: {shown}", fg="red")
        click.echo("To hold one back: localmed documents set ID --effective-from DATE")


@command.command("prune")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def prune(ctx: click.Context, yes: bool) -> None:
    """Remove old generations that are still there, and the copies of imported files that none of the kept ones needs.

    The last ones are kept (library.keep_generations), with those that somebody is reading and what was served before
    the changes of the last day, unless these were confirmed.
    """
    from localmed.operations import changes, lookups

    with opened(ctx) as session:
        session.may_change()
        lookups.has_library(session)
        if not yes:
            click.confirm("Remove the copies of files that no kept generation was made from?", abort=True)
        files, size = changes.prune(session)
    click.echo(f"Removed {files} files, {size / 2**20:.1f} MiB")


@command.command("confirm")
@click.pass_context
def confirm(ctx: click.Context) -> None:
    """Say that the generation being served is good: what was served before its change need not be kept any longer."""
    from localmed.operations import changes

    with opened(ctx) as session:
        number = changes.confirm(session)
    click.echo(render(message("generation.confirmed", number=number), "en"))


@command.command("upgrade")
@click.pass_context
def upgrade(ctx: click.Context) -> None:
    """After an update of localmed: bring the library to the new schema, as a new generation."""
    from localmed.operations import changes

    with opened(ctx) as session:
        click.echo(f"Generation {changes.upgrade(session):04d} is served")
