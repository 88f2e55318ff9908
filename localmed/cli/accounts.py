"""``localmed accounts``, for an administrator who cannot sign in, and ``localmed tokens``."""

from __future__ import annotations

import sys
from datetime import datetime

import click

from localmed.cli.common import echo, opened, standard_input
from localmed.cli.speaking import say, text
from localmed.domain.errors import UsageError
from localmed.people import accounts, tokens


@click.group("accounts")
def command() -> None:
    """Manage the accounts of localmed serve. You need access to its data folder."""


@command.command("list")
@click.pass_context
def listing(ctx: click.Context) -> None:
    """List the accounts: user, role, groups."""
    with opened(ctx) as session:
        for account in accounts.accounts(session.data):
            echo(f"{account.user}  {account.role}  {' '.join(account.groups)}".rstrip())


@command.command("password")
@click.argument("user")
@click.pass_context
def password(ctx: click.Context, user: str) -> None:
    """Set a new password for the local account USER (typed, or the first line of standard input)."""
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


@click.group("tokens")
def tokens_command() -> None:
    """Tokens with which programs call the API of localmed serve in the name of an account."""


@tokens_command.command("make")
@click.argument("user")
@click.option("--name", default="program", show_default=True, help="Purpose of the token.")
@click.option("--days", default=90, show_default=True, help="Expires after (days).")
@click.pass_context
def make(ctx: click.Context, user: str, name: str, days: int) -> None:
    """Create a token for the account USER; it is shown only once."""
    with opened(ctx) as session:
        echo(tokens.make(session, user, name, days))


@tokens_command.command("list")
@click.pass_context
def token_list(ctx: click.Context) -> None:
    """List valid tokens: id, user, name, last day."""
    with opened(ctx) as session:
        for token in tokens.listing(session.data):
            echo(f"{token.id}  {token.user}  {token.name}  {datetime.fromtimestamp(token.expires):%Y-%m-%d}")


@tokens_command.command("revoke")
@click.argument("token_id")
@click.pass_context
def revoke(ctx: click.Context, token_id: str) -> None:
    """Revoke the token with the id TOKEN_ID."""
    with opened(ctx) as session:
        tokens.revoke(session, token_id)
        say("token.revoked")
