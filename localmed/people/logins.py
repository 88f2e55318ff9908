"""Logins in ``site.sqlite``: who is signed in where. The browser has a random token, the file only its sha256.

A login ends when it was idle too long, when it is too old, when its user signs out, and when the account changes. Each
has a second secret (``form``) that every form carries back: another site's page cannot know it (CSRF).
"""

from __future__ import annotations

import secrets
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from localmed.config import WebSettings
from localmed.domain.accounts import Account
from localmed.domain.errors import LocalmedError
from localmed.library.state import rows
from localmed.people import accounts, history
from localmed.people.noted_accounts import require_noted
from localmed.people.sealing import hash_of

TOKEN_BYTES = 32
NOTED = 30.0  # seconds between two notes that a login is in use: not a write for every image


@dataclass(frozen=True, slots=True)
class Login:
    """One browser of one user. ``id`` names it without being the token; ``form`` is what its forms carry.

    ``temporary``: somebody else chose the password, which must be changed before anything else.
    """

    id: str
    account: Account
    form: str
    temporary: bool = False


def begin(data: Path, account: Account) -> str:
    """Sign ``account`` in; return the token for the browser."""
    token, now = secrets.token_urlsafe(TOKEN_BYTES), time.time()
    with rows(data) as state:
        state.execute(
            "INSERT INTO logins (token, user, created, seen, form) VALUES (?, ?, ?, ?, ?)",
            (hash_of(token), account.user, now, now, secrets.token_urlsafe(TOKEN_BYTES)),
        )
    return token


def current(data: Path, token: str, settings: WebSettings, used: bool = True) -> Login | None:
    """The login of ``token`` if it still holds, noted as in use now where somebody ``used`` it.

    What a page asks by itself (does the answer still hold, how far is the job) is no use.
    """
    now, name = time.time(), hash_of(token)
    require_noted(data)
    with rows(data) as state:
        row = state.execute("SELECT user, created, seen, form FROM sound_logins WHERE token = ?", (name,)).fetchone()
        user, created, seen, form = row or ("", 0.0, 0.0, "")
        if now - seen > 60 * settings.idle_minutes or now - created > 3600 * settings.login_hours:
            return None
        account = accounts.of_login(state, user)
        marked = state.execute("SELECT temporary FROM accounts WHERE user = ?", (user,)).fetchone()
    if used and now - seen > min(NOTED, 6 * settings.idle_minutes):  # a tenth of the idle time
        threading.Thread(target=_note, args=(data, name, now), name="login", daemon=True).start()
    return Login(name, account, form, bool(marked and marked[0])) if account else None


def _note(data: Path, name: str, now: float) -> None:
    """The login is in use; in a thread, since a page would wait for the disk, for 0.1 s on a busy machine."""
    with suppress(LocalmedError, OSError), rows(data) as state:
        state.execute("UPDATE logins SET seen = ? WHERE token = ?", (now, name))


def end(data: Path, login: Login, days: int) -> None:
    """Sign out; of a site that keeps answers for no ``days`` those of the login go."""
    with rows(data) as state:
        state.execute("DELETE FROM logins WHERE token = ?", (login.id,))
        history.end_login(state, days)


def end_idle(data: Path, settings: WebSettings) -> None:
    """Drop the logins that nobody ended, and what was kept for their length."""
    now = time.time()
    idle, old = now - 60 * settings.idle_minutes, now - 3600 * settings.login_hours
    with rows(data) as state:
        state.execute("DELETE FROM logins WHERE seen < ? OR created < ?", (idle, old))
        history.end_login(state, settings.history_days)
