"""``localmed accounts``: what an administrator who cannot sign in does on the machine itself."""

from __future__ import annotations

import sys

import click

from localmed.cli.common import echo, opened, standard_input
from localmed.cli.speaking import say, text
from localmed.errors import UsageError
from localmed.operations import accounts


@click.group("accounts")
def command() -> None:
    """The accounts of localmed serve, for whoever has its data folder."""


@command.command("list")
@click.pass_context
def listing(ctx: click.Context) -> None:
    """The accounts: user, role, groups."""
    with opened(ctx) as session:
        for account in accounts.accounts(session.data):
            echo(f"{account.user}  {account.role}  {' '.join(account.groups)}".rstrip())


@command.command("password")
@click.argument("user")
@click.pass_context
def password(ctx: click.Context, user: str) -> None:
    """Give the local account USER a new password; it is asked for, or is the first line of standard input."""
    with opened(ctx) as session:
        accounts.account(session.data, user)  # before anything is typed
        accounts.set_password(session, user, _typed(ctx))
        say("account.changed", user=user)


def _typed(ctx: click.Context) -> str:
    """A password, typed twice at a terminal."""
    if not sys.stdin.isatty():
        return standard_input(ctx).decode("utf-8", "replace").partition("\n")[0].removesuffix("\r")
    first, again = (click.prompt(text(code), hide_input=True) for code in ("web.account.fresh", "web.start.again"))
    if first != again:
        raise UsageError("account.differ")
    return str(first)
