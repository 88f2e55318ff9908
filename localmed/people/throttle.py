"""Wrong passwords make the computer that sends them wait, for each account, longer each time.

Accounts are never locked: wrong passwords from one computer keep nobody else out. After ``web.wrong_passwords`` wrong
ones in a row for an account the computer waits, twice as long each time, at most ``web.lock_minutes``. A computer that
failed on ``web.wrong_accounts`` accounts waits for all of them, at most ``LONGEST_FOR_ALL``: this slows one password
tried on everybody and does not lock out a shared terminal server. Unknown names are treated the same, so that nobody
learns which exist. Only digests are stored, because people type passwords into the name field.
"""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass

from localmed.config import WebSettings
from localmed.domain.errors import Busy
from localmed.library.state import transaction
from localmed.people.sealing import hash_of

FIRST_SECONDS = 15.0  # of waiting, then twice as many each time
FORGOTTEN = 3600.0  # seconds after which a try no longer counts
LONGEST_FOR_ALL = 60.0  # seconds of a wait for every account
_EVERY_ACCOUNT = "*"  # instead of a digest: the row of a computer's wait for all accounts


@dataclass(frozen=True, slots=True)
class Tries:
    """The tries of one computer (its network address; "" for this one) for one account."""

    address: str
    user: str

    def begin(self, state: sqlite3.Connection, settings: WebSettings) -> None:
        """Count a try before it is judged, so that parallel tries evade nothing; raise ``Busy`` during a wait."""
        now = time.time()
        with transaction(state):
            state.execute("DELETE FROM tries WHERE until < ?", (now - FORGOTTEN,))
            count, until = self._row(state, self._key[0])
            waits = max(until, self._row(state, _EVERY_ACCOUNT)[1])
            if waits > now:
                raise Busy("account.wait", seconds=round(waits - now) + 1)
            self._keep(state, self._key[0], count + 1, now + seconds(count + 1, settings))
            query = "SELECT COUNT(*) FROM tries WHERE address = ? AND user != ?"
            (accounts,) = state.execute(query, (self._key[1], _EVERY_ACCOUNT)).fetchone()
            over = accounts - settings.wrong_accounts
            wait = min(LONGEST_FOR_ALL, FIRST_SECONDS * 2.0 ** min(over, 30)) if over >= 0 else 0.0
            self._keep(state, _EVERY_ACCOUNT, accounts, now + wait)

    def clear(self, state: sqlite3.Connection) -> None:
        """Reset the count after a right password."""
        state.execute("DELETE FROM tries WHERE user = ? AND address = ?", self._key)

    def discard(self, state: sqlite3.Connection) -> None:
        """Uncount this try, whose password was not judged."""
        with transaction(state):
            count, _ = self._row(state, self._key[0])
            if count > 1:
                self._keep(state, self._key[0], count - 1, time.time())
            else:
                self.clear(state)

    def _row(self, state: sqlite3.Connection, user: str) -> tuple[int, float]:
        query = "SELECT count, until FROM tries WHERE user = ? AND address = ?"
        return state.execute(query, (user, self._key[1])).fetchone() or (0, 0.0)

    def _keep(self, state: sqlite3.Connection, user: str, count: int, until: float) -> None:
        query = "INSERT OR REPLACE INTO tries (user, address, count, until) VALUES (?, ?, ?, ?)"
        state.execute(query, (user, self._key[1], count, until))

    @property
    def _key(self) -> tuple[str, str]:
        return hash_of(self.user), hash_of(self.address)


def seconds(count: int, settings: WebSettings) -> float:
    """Return the wait after the ``count``-th wrong password in a row."""
    over = count - settings.wrong_passwords
    return min(60 * settings.lock_minutes, FIRST_SECONDS * 2.0 ** min(over, 30)) if over >= 0 else 0.0


def forget(state: sqlite3.Connection, user: str) -> None:
    """End all waits for an account with a new password."""
    state.execute("DELETE FROM tries WHERE user = ?", (hash_of(user),))
