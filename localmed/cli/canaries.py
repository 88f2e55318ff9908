"""``localmed canaries``."""

from __future__ import annotations

import sys

import click

from localmed.cli.common import json_option, opened, print_json, print_table
from localmed.cli.speaking import columns, joined, say, text
from localmed.errors import CanariesLost


@click.group("canaries", invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool = False) -> None:
    """Ask the canary questions of what is served: what must be cited, and what must not be answered.

    Every change of the library, the models or the settings is asked them. A site's own stand in canaries.toml of the
    data folder. Exit code 7: one that passed before fails now.
    """
    if ctx.invoked_subcommand is not None:
        return
    from localmed.operations import canary_gate

    with opened(ctx) as session:
        session.may_change()
        compared = canary_gate.standing(session)
        known = {canary.id: canary for canary in canary_gate.of_served(session)}
    if as_json:
        print_json(compared.after)
    else:
        rows = [
            (name, joined(text(f"canary.kind.{kind}") for kind in known[name].kinds),
             text("canary.passed" if result.passed else "canary.failed"), joined(result.cited) or "-")
            for name, result in compared.after.items()
        ]  # fmt: skip
        print_table(text("canary.list"), columns("name", "kind", "outcome", "cited"), rows)
    if compared.lost:
        sys.exit(CanariesLost.exit_code)


@command.command("accept")
@click.argument("names", nargs=-1, required=True)
@click.option("--reason", required=True, help="Why they may be lost; kept, with your name, in the list and audit log.")
@click.pass_context
def accept(ctx: click.Context, names: tuple[str, ...], reason: str) -> None:
    """Let changes lose the canary questions NAMES from now on: then make the change again that was kept back."""
    from localmed.operations import canary_gate

    with opened(ctx) as session:
        canary_gate.accept(session, names, reason)
    say("canary.accepted", count=len(names), ids=names)


@command.command("watch")
@click.argument("names", nargs=-1, required=True)
@click.pass_context
def watch(ctx: click.Context, names: tuple[str, ...]) -> None:
    """Take back that the canary questions NAMES may be lost."""
    from localmed.operations import canary_gate

    with opened(ctx) as session:
        canary_gate.watch_again(session, names)
    say("canary.watched", count=len(names), ids=names)
