"""``localmed accounts``, for an administrator who cannot sign in, and ``localmed tokens``."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING

import click

from localmed.cli.common import echo, in_session
from localmed.cli.later import accounts, tokens
from localmed.cli.options import standard_input
from localmed.cli.speaking import say, text
from localmed.domain.errors import UsageError

if TYPE_CHECKING:
    from localmed.site.session import Session


@click.group("accounts")
def command() -> None:
    """Manage the accounts of localmed serve. You need access to its data folder."""


@command.command("list")
@in_session
def listing(session: Session) -> None:
    """List the accounts: user, role, groups."""
    for account in accounts.accounts(session.data):
        echo(f"{account.user}  {account.role}  {' '.join(account.groups)}".rstrip())


@command.command("password")
@click.argument("user")
@in_session
def password(session: Session, user: str) -> None:
    """Set a new password for the local account USER (typed, or the first line of standard input)."""
    accounts.account(session.data, user)  # before anything is typed
    accounts.set_password(session, user, _read_password())
    say("account.changed", user=user)


def _read_password() -> str:
    if not sys.stdin.isatty():
        return standard_input().decode("utf-8", "replace").partition("\n")[0].removesuffix("\r")
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
@in_session
def make(session: Session, user: str, name: str, days: int) -> None:
    """Create a token for the account USER; it is shown only once."""
    echo(tokens.make(session, user, name, days))


@tokens_command.command("list")
@in_session
def token_list(session: Session) -> None:
    """List valid tokens: id, user, name, last day."""
    for token in tokens.listing(session.data):
        echo(f"{token.id}  {token.user}  {token.name}  {datetime.fromtimestamp(token.expires):%Y-%m-%d}")


@tokens_command.command("revoke")
@click.argument("token_id")
@in_session
def revoke(session: Session, token_id: str) -> None:
    """Revoke the token with the id TOKEN_ID."""
    tokens.revoke(session, token_id)
    say("token.revoked")
