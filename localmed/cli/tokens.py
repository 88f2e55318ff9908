"""``localmed tokens``."""

from __future__ import annotations

from datetime import datetime

import click

from localmed.cli.common import echo, opened
from localmed.cli.speaking import say
from localmed.operations import tokens


@click.group("tokens")
def command() -> None:
    """Tokens by which programs call the API of localmed serve as somebody."""


@command.command("make")
@click.argument("user")
@click.option("--name", default="program", show_default=True, help="What the token is for.")
@click.option("--days", default=90, show_default=True, help="How long it holds.")
@click.pass_context
def make(ctx: click.Context, user: str, name: str, days: int) -> None:
    """Make a token of the account USER, told this once."""
    with opened(ctx) as session:
        echo(tokens.make(session, user, name, days))


@command.command("list")
@click.pass_context
def listing(ctx: click.Context) -> None:
    """The tokens that hold: id, user, name, last day."""
    with opened(ctx) as session:
        for token in tokens.listing(session.data):
            echo(f"{token.id}  {token.user}  {token.name}  {datetime.fromtimestamp(token.expires):%Y-%m-%d}")


@command.command("revoke")
@click.argument("token_id")
@click.pass_context
def revoke(ctx: click.Context, token_id: str) -> None:
    """End the token with the id TOKEN_ID."""
    with opened(ctx) as session:
        tokens.revoke(session, token_id)
        say("token.revoked")
