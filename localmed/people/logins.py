"""Logins in ``site.sqlite``: who is signed in where. The browser has a random token, the file only its sha256.

A login ends after idle time, at its maximum age, at sign-out, and when the account changes. Each has a second secret
(``form``) that every form sends back: another site's page cannot know it (CSRF).
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
NOTED = 30.0  # seconds between two records of use, so that not every image causes a write


@dataclass(frozen=True, slots=True)
class Login:
    """One browser of one user. ``id`` identifies it without being the token; ``form`` is the secret of its forms.

    ``temporary``: somebody else chose the password, which must be changed first.
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
    """Return the login of ``token`` if it is valid; record its use unless ``used`` is false.

    A page's own background requests do not count as use.
    """
    now, name = time.time(), hash_of(token)
    require_noted(data)
    with rows(data) as state:
        row = state.execute("SELECT user, created, seen, form FROM sound_logins WHERE token = ?", (name,)).fetchone()
        user, created, seen, form = row or ("", 0.0, 0.0, "")
        if now - seen > 60 * settings.idle_minutes or now - created > 3600 * settings.login_hours:
            return None
        account = accounts.find_enabled(state, user)
        marked = state.execute("SELECT temporary FROM accounts WHERE user = ?", (user,)).fetchone()
    if used and now - seen > min(NOTED, 6 * settings.idle_minutes):  # a tenth of the idle time
        threading.Thread(target=_note, args=(data, name, now), name="login", daemon=True).start()
    return Login(name, account, form, bool(marked and marked[0])) if account else None


def _note(data: Path, name: str, now: float) -> None:
    """Record the use, in a thread: the page would wait for the disk, 0.1 s on a busy machine."""
    with suppress(LocalmedError, OSError), rows(data) as state:
        state.execute("UPDATE logins SET seen = ? WHERE token = ?", (now, name))


def end(data: Path, login: Login, days: int) -> None:
    """Sign out; with 0 ``days`` of history delete the login's answers."""
    with rows(data) as state:
        state.execute("DELETE FROM logins WHERE token = ?", (login.id,))
        history.end_login(state, days)


def end_idle(data: Path, settings: WebSettings) -> None:
    """Delete expired logins and the answers kept for their length."""
    now = time.time()
    idle, old = now - 60 * settings.idle_minutes, now - 3600 * settings.login_hours
    with rows(data) as state:
        state.execute("DELETE FROM logins WHERE seen < ? OR created < ?", (idle, old))
        history.end_login(state, settings.history_days)
