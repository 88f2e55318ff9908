"""``localmed generations`` and ``reindex``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from localmed.cli.common import echo, in_session, moment, print_json, print_rows, show_progress
from localmed.cli.later import changes, check, lookups
from localmed.cli.options import json_option, yes_option
from localmed.cli.speaking import confirm as confirm_change
from localmed.cli.speaking import say, tell_generation, tell_problems, text, words
from localmed.domain.errors import Damaged

if TYPE_CHECKING:
    from localmed.site.session import Session


EARLY_SHOWN = 20  # ids printed


@click.group("generations", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, verify and roll back generations, the stored states of the library, newest last."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(listed)


@command.command("list")
@json_option
@in_session
def listed(session: Session, as_json: bool = False) -> None:
    """List the generations, newest last; the one in use is marked."""
    names = ("number", "served", "created", "reason", "documents", "passages")
    values = [{name: getattr(one, name) for name in names} for one in lookups.generations_kept(session)]
    rows = [
        (number, "*" if now else "", moment(created), words(reason), *counts)
        for number, now, created, reason, *counts in (one.values() for one in values)
    ]
    print_rows(as_json, values, "web.library.generations", names, rows)


@command.command("verify")
@click.argument("number", type=int, required=False)
@json_option
@in_session
def verify(session: Session, number: int | None, as_json: bool) -> int:
    """Check every file of generation NUMBER against its hash; exit code 5 if one is damaged.

    Without NUMBER: all generations, originals, withdrawals, access, the audit log and stored vectors. Each file that is
    damaged, missing or foreign is listed, with what to do.
    """
    results = check.find_all_faults(session, number)
    if as_json:
        print_json({str(generation or "beside"): problems for generation, problems in results.items()})
    else:
        for generation, problems in results.items():
            name = text("generation.name", number=generation) if generation else text("stored.beside")
            tell_problems(name, problems)
    return Damaged.exit_code if any(results.values()) else 0


@command.command("rollback")
@click.argument("number", type=int, required=False)
@yes_option
@in_session
def rollback(session: Session, number: int | None, yes: bool) -> None:
    """Go back to generation NUMBER (default: the one before). Withdrawn documents stay withdrawn.

    Shows first what would be undone. Document details set since then are undone as well; documents that come into use
    before their effective date are listed.
    """
    session.may_change()
    waiting = lookups.pending_documents(session)
    undone = lookups.undone_by_rollback(session, number)
    say("generation.undoes", number=undone.number, served=undone.served)
    for row in undone.changes:
        say("generation.undone", number=row.number, created=moment(row.created), reason=row.reason)
    say("generation.documents", before=undone.documents_now, after=undone.documents_then)
    confirm_change("generation.go_back", yes, number=undone.number)
    tell_generation(changes.rollback(session, undone.number))
    early = lookups.effective_among(session, waiting or frozenset())
    if waiting is None:
        say("generation.dates_unknown")
    if early:
        shown = " ".join([*(one[:12] for one in early[:EARLY_SHOWN]), *(["..."] if early[EARLY_SHOWN:] else ())])
        echo(text("generation.early", count=len(early), ids=shown), colour="red")
        say("generation.hold_back")


@command.command("prune")
@yes_option
@in_session
def prune(session: Session, yes: bool) -> None:
    """Remove old generations, and stored files that no kept generation needs.

    The last ones are kept (library.keep_generations), also those being read, and the one in use before the changes of
    the last day unless these were confirmed.
    """
    session.may_change()
    lookups.require_library(session)
    confirm_change("generation.prune", yes)
    files, size = changes.prune(session)
    say("generation.pruned", count=files, mib=size / 2**20)


@command.command("confirm")
@in_session
def confirm(session: Session) -> None:
    """Confirm the generation in use: the one before it need not be kept any longer."""
    say("generation.confirmed", number=changes.confirm(session))


@command.command("upgrade")
@in_session
def upgrade(session: Session) -> None:
    """Convert the library to the new schema after an update of localmed, as a new generation."""
    tell_generation(changes.upgrade(session))


@click.command("reindex")
@click.option("--again", is_flag=True, help="Even if the library already uses this encoder.")
@json_option
@in_session
def reindex(session: Session, again: bool, as_json: bool) -> None:
    """Convert the library to the chosen encoder, without reading the files again.

    The old state stays in use until the new one is complete. Ctrl-C changes nothing, and the next run continues.
    """
    encoder = session.site.encoder.identity.stored_as
    with show_progress(not as_json) as hooks:
        generation = changes.reindex(session, again, hooks)
    if as_json:
        print_json({"generation": generation, "encoder": encoder})
    elif generation:
        say("reindex.done", number=generation, encoder=encoder)
    else:
        say("reindex.nothing", encoder=encoder)
