"""Wrong passwords cost whoever guesses time: each computer waits longer after each, account by account.

An account is not locked: five wrong passwords of one computer keep nobody else out, the administrator least of all.
After ``web.wrong_passwords`` wrong ones for an account in a row the computer they came from waits, twice as long each
time, ``web.lock_minutes`` at most. A name that no account has is treated the same, so that nobody learns which there
are. What is kept are digests, since people type passwords into the field of the name.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from dataclasses import dataclass

from localmed.errors import Busy
from localmed.web_settings import WebSettings

FIRST_SECONDS = 15.0  # of waiting, then twice as many each time
FORGOTTEN = 3600.0  # seconds after which an earlier try does not count any more


@dataclass(frozen=True, slots=True)
class Tries:
    """The tries of one computer (its network address; "" for this one) for one account."""

    address: str
    user: str

    def begin(self, state: sqlite3.Connection, settings: WebSettings) -> None:
        """Count a try before it is judged, so that many at once are no way around; raise ``Busy`` for whoever waits."""
        now = time.time()
        state.execute("BEGIN IMMEDIATE")
        try:
            state.execute("DELETE FROM tries WHERE until < ?", (now - FORGOTTEN,))
            row = state.execute("SELECT count, until FROM tries WHERE user = ? AND address = ?", self._key).fetchone()
            count, until = row or (0, 0.0)
            if until > now:
                raise Busy("account.wait", seconds=round(until - now) + 1)
            values = (*self._key, count + 1, now + seconds(count + 1, settings))
            state.execute("INSERT OR REPLACE INTO tries (user, address, count, until) VALUES (?, ?, ?, ?)", values)
        finally:
            state.commit()

    def right(self, state: sqlite3.Connection) -> None:
        """The password was right: the tries before it do not count."""
        state.execute("DELETE FROM tries WHERE user = ? AND address = ?", self._key)

    @property
    def _key(self) -> tuple[str, str]:
        return _digest(self.user), _digest(self.address)


def seconds(count: int, settings: WebSettings) -> float:
    """How long a computer waits after its ``count``-th wrong password in a row."""
    over = count - settings.wrong_passwords
    return min(60 * settings.lock_minutes, FIRST_SECONDS * 2.0 ** min(over, 30)) if over >= 0 else 0.0


def forget(state: sqlite3.Connection, user: str) -> None:
    """The account has a new password: nobody waits for it."""
    state.execute("DELETE FROM tries WHERE user = ?", (_digest(user),))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
