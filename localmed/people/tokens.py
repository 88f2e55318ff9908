"""Tokens by which programs call the API for an account, in ``site.sqlite``. Only a token's sha256 is stored.

A token has its account's rights at the time of a call, expires on its day, and can be revoked. It cannot create another
token: that needs a login, or the right to administer accounts.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from localmed.domain.accounts import Right
from localmed.domain.errors import UnknownName, UsageError
from localmed.library.state import rows
from localmed.people import accounts, sign_on
from localmed.people.noted_accounts import require_noted
from localmed.people.sealing import hash_of
from localmed.people.sign_on import DAY

if TYPE_CHECKING:
    from pathlib import Path

    from localmed.config import WebSettings
    from localmed.domain.accounts import Account
    from localmed.site.session import Session

PREFIX = "lm_"  # makes a leaked token recognisable
TOKEN_BYTES = 32
MOST_DAYS = 366
MOST_TOKENS = 20  # of one account
LONGEST_NAME = 60  # characters


@dataclass(frozen=True, slots=True)
class Token:
    """A stored token: its ``id`` is no part of it. Times in seconds since 1970."""

    id: str
    user: str
    name: str
    created: float
    expires: float


def make(session: Session, user: str, name: str, days: int) -> str:
    """Return a new token of ``user``, shown only now; another user's needs the right to change accounts."""
    label = " ".join(name.split())
    if not label or len(label) > LONGEST_NAME or not label.isprintable() or not 1 <= days <= MOST_DAYS:
        raise UsageError("token.form", most=LONGEST_NAME, days=MOST_DAYS)
    owner = accounts.account(session.data, user).user
    token, id_, now = PREFIX + secrets.token_urlsafe(TOKEN_BYTES), secrets.token_hex(4), time.time()
    made = Token(id_, owner, label, now, now + DAY * days)
    if owner == session.caller.user:
        session.note_before("token make", id_, f"{days} days")
        _insert(session.data, hash_of(token), made)
    else:
        with session.change("account token", f"{owner} {id_}") as change:
            _insert(session.data, hash_of(token), made)
            change.outcome = f"{days} days"
    return token


def _insert(data: Path, digest: str, made: Token) -> None:
    with rows(data) as state:
        state.execute("DELETE FROM tokens WHERE expires < ?", (made.created,))
        query = (
            "INSERT INTO tokens (digest, id, user, name, created, expires) SELECT ?, ?, ?, ?, ?, ? "
            "WHERE (SELECT count(*) FROM tokens WHERE user = ?) < ?"
        )
        values = (digest, made.id, made.user, made.name, made.created, made.expires, made.user, MOST_TOKENS)
        if not state.execute(query, values).rowcount:
            raise UsageError("token.many", most=MOST_TOKENS)


def current(data: Path, token: str, settings: WebSettings) -> Account | None:
    """Return the current account of ``token`` if both are valid."""
    if not token.startswith(PREFIX):
        return None
    require_noted(data)
    with rows(data) as state:
        query = "SELECT user FROM sound_tokens WHERE digest = ? AND expires > ?"
        row = state.execute(query, (hash_of(token), time.time())).fetchone()
        account = accounts.find_enabled(state, row[0]) if row else None
    return account if account and sign_on.is_recent(data, account, settings) else None


def listing(data: Path, user: str = "") -> list[Token]:
    """Return the valid tokens of ``user`` ("": all), newest first."""
    with rows(data) as state:
        query = (
            "SELECT id, user, name, created, expires FROM sound_tokens WHERE (? = '' OR user = ?) AND expires > ? "
            "ORDER BY created DESC"
        )
        return [Token(*row) for row in state.execute(query, (user, user, time.time()))]


def revoke(session: Session, id_: str) -> None:
    """Revoke the token ``id_``; another user's needs the right to change accounts. Raise ``UnknownName``."""
    known = {token.id: token.user for token in listing(session.data)}
    owner = known.get(id_, "")
    if owner and owner == session.caller.user:
        _delete(session.data, id_)
        session.note("token revoke", id_, "revoked")
        return
    if not owner or not session.may(Right.ACCOUNTS):
        raise UnknownName("choice.unknown")
    with session.change("account token", f"{owner} {id_}") as change:
        _delete(session.data, id_)
        change.outcome = "revoked"


def _delete(data: Path, id_: str) -> None:
    with rows(data) as state:
        state.execute("DELETE FROM tokens WHERE id = ?", (id_,))
