"""``localmed generations`` and ``reindex``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from localmed.cli.common import echo, json_option, moment, opened, print_json, print_table, work_shown
from localmed.cli.speaking import columns, say, tell_generation, tell_problems, text, words
from localmed.cli.speaking import confirm as confirm_change
from localmed.domain.errors import Damaged

if TYPE_CHECKING:
    from localmed.site.lookups import Undone


EARLY_SHOWN = 20  # ids printed


@click.group("generations", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, verify and roll back generations, the stored states of the library, newest last."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(listed)


@command.command("list")
@json_option
@click.pass_context
def listed(ctx: click.Context, as_json: bool = False) -> None:
    """List the generations, newest last; the one in use is marked."""
    from localmed.site import lookups

    with opened(ctx) as session:
        kept = lookups.generations_kept(session)
    rows = [
        (
            generation.number,
            generation.served,
            generation.created,
            generation.reason,
            generation.documents,
            generation.passages,
        )
        for generation in kept
    ]
    names = ("number", "served", "created", "reason", "documents", "passages")
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    table = [
        (number, "*" if now else "", moment(created), words(reason), *counts)
        for number, now, created, reason, *counts in rows
    ]
    print_table(text("web.library.generations"), columns(*names), table)


@command.command("verify")
@click.argument("number", type=int, required=False)
@json_option
@click.pass_context
def verify(ctx: click.Context, number: int | None, as_json: bool) -> None:
    """Check every file of generation NUMBER against its hash; exit code 5 if one is damaged.

    Without NUMBER: all generations, originals, withdrawals, access, the audit log and stored vectors. Each file that is
    damaged, missing or foreign is listed, with what to do.
    """
    from localmed.upkeep import check

    with opened(ctx) as session:
        results = check.verified(session, number)
    if as_json:
        print_json({str(generation or "beside"): problems for generation, problems in results.items()})
    else:
        for generation, problems in results.items():
            name = text("generation.name", number=generation) if generation else text("stored.beside")
            tell_problems(name, problems)
    if any(results.values()):
        sys.exit(Damaged.exit_code)


@command.command("rollback")
@click.argument("number", type=int, required=False)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_context
def rollback(ctx: click.Context, number: int | None, yes: bool) -> None:
    """Go back to generation NUMBER (default: the one before). Withdrawn documents stay withdrawn.

    Shows first what would be undone. Document details set since then are undone as well; documents that come into use
    before their effective date are listed.
    """
    from localmed.site import changes, lookups

    with opened(ctx) as session:
        session.may_change()
        waiting = lookups.waiting(session)
        undone = lookups.undone_by_rollback(session, number)
        _tell_undone(undone)
        if not yes:
            confirm_change("generation.go_back", number=undone.number)
        tell_generation(changes.rollback(session, undone.number))
        early = lookups.effective_among(session, waiting or frozenset())
    if waiting is None:
        say("generation.dates_unknown")
    if early:
        shown = " ".join(document[:12] for document in early[:EARLY_SHOWN]) + (
            " ..." if len(early) > EARLY_SHOWN else ""
        )
        echo(text("generation.early", count=len(early), ids=shown), colour="red")
        say("generation.hold_back")


def _tell_undone(undone: Undone) -> None:
    """Print the changes that going back takes back, and how many documents there are before and after."""
    say("generation.undoes", number=undone.number, served=undone.served)
    for row in undone.changes:
        say("generation.undone", number=row.number, created=moment(row.created), reason=row.reason)
    say("generation.documents", before=undone.documents_now, after=undone.documents_then)


@command.command("prune")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_context
def prune(ctx: click.Context, yes: bool) -> None:
    """Remove old generations, and stored files that no kept generation needs.

    The last ones are kept (library.keep_generations), also those being read, and the one in use before the changes of
    the last day unless these were confirmed.
    """
    from localmed.site import changes, lookups

    with opened(ctx) as session:
        session.may_change()
        lookups.has_library(session)
        if not yes:
            confirm_change("generation.prune")
        files, size = changes.prune(session)
    say("generation.pruned", count=files, mib=size / 2**20)


@command.command("confirm")
@click.pass_context
def confirm(ctx: click.Context) -> None:
    """Confirm the generation in use: the one before it need not be kept any longer."""
    from localmed.site import changes

    with opened(ctx) as session:
        number = changes.confirm(session)
    say("generation.confirmed", number=number)


@command.command("upgrade")
@click.pass_context
def upgrade(ctx: click.Context) -> None:
    """Convert the library to the new schema after an update of localmed, as a new generation."""
    from localmed.site import changes

    with opened(ctx) as session:
        tell_generation(changes.upgrade(session))


@click.command("reindex")
@click.option("--again", is_flag=True, help="Even if the library already uses this encoder.")
@json_option
@click.pass_context
def reindex(ctx: click.Context, again: bool, as_json: bool) -> None:
    """Convert the library to the chosen encoder, without reading the files again.

    The old state stays in use until the new one is complete. Ctrl-C changes nothing, and the next run continues.
    """
    from localmed.site import changes

    with opened(ctx) as session:
        encoder = session.site.encoder.identity.stored_as
        with work_shown(not as_json) as hooks:
            generation = changes.reindex(session, again, hooks)
    if as_json:
        print_json({"generation": generation, "encoder": encoder})
    elif generation:
        say("reindex.done", number=generation, encoder=encoder)
    else:
        say("reindex.nothing", encoder=encoder)
