"""Wrong passwords cost whoever guesses time: each computer waits longer after each, account by account.

An account is not locked: five wrong passwords of one computer keep nobody else out, the administrator least of all.
After ``web.wrong_passwords`` wrong ones for an account in a row the computer they came from waits, twice as long each
time, ``web.lock_minutes`` at most. A computer that tried ``web.wrong_accounts`` accounts in vain waits for all of them,
``LONGEST_FOR_ALL`` at most: one password tried on everybody is slowed too, and a terminal server of many people is not
shut out. A name that no account has is treated the same, so that nobody learns which there are. What is kept are
digests, since people type passwords into the field of the name.
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
FORGOTTEN = 3600.0  # seconds after which an earlier try does not count any more
LONGEST_FOR_ALL = 60.0  # seconds that a computer waits for every account
_EVERY_ACCOUNT = "*"  # no digest: the row that holds a computer's wait for all


@dataclass(frozen=True, slots=True)
class Tries:
    """The tries of one computer (its network address; "" for this one) for one account."""

    address: str
    user: str

    def begin(self, state: sqlite3.Connection, settings: WebSettings) -> None:
        """Count a try before it is judged, so that many at once are no way around; raise ``Busy`` for whoever waits."""
        now = time.time()
        with transaction(state):
            state.execute("DELETE FROM tries WHERE until < ?", (now - FORGOTTEN,))
            count, until = self._row(state, self._key[0])
            waits = max(until, self._row(state, _EVERY_ACCOUNT)[1])
            if waits > now:
                raise Busy("account.wait", seconds=round(waits - now) + 1)
            self._keep(state, self._key[0], count + 1, now + seconds(count + 1, settings))
            self._slow_for_all(state, now, settings)

    def _slow_for_all(self, state: sqlite3.Connection, now: float, settings: WebSettings) -> None:
        query = "SELECT COUNT(*) FROM tries WHERE address = ? AND user != ?"
        (count,) = state.execute(query, (self._key[1], _EVERY_ACCOUNT)).fetchone()
        over = count - settings.wrong_accounts
        wait = min(LONGEST_FOR_ALL, FIRST_SECONDS * 2.0 ** min(over, 30)) if over >= 0 else 0.0
        self._keep(state, _EVERY_ACCOUNT, count, now + wait)

    def right(self, state: sqlite3.Connection) -> None:
        """The password was right: the tries before it do not count."""
        state.execute("DELETE FROM tries WHERE user = ? AND address = ?", self._key)

    def unjudged(self, state: sqlite3.Connection) -> None:
        """Nobody judged the password of this try: it does not count, those before it do."""
        with transaction(state):
            count, _ = self._row(state, self._key[0])
            if count > 1:
                self._keep(state, self._key[0], count - 1, time.time())
            else:
                self.right(state)

    def _row(self, state: sqlite3.Connection, user: str) -> tuple[int, float]:
        """How many tries count, and until when the computer waits."""
        query = "SELECT count, until FROM tries WHERE user = ? AND address = ?"
        return state.execute(query, (user, self._key[1])).fetchone() or (0, 0.0)

    def _keep(self, state: sqlite3.Connection, user: str, count: int, until: float) -> None:
        query = "INSERT OR REPLACE INTO tries (user, address, count, until) VALUES (?, ?, ?, ?)"
        state.execute(query, (user, self._key[1], count, until))

    @property
    def _key(self) -> tuple[str, str]:
        return hash_of(self.user), hash_of(self.address)


def seconds(count: int, settings: WebSettings) -> float:
    """How long a computer waits after its ``count``-th wrong password in a row."""
    over = count - settings.wrong_passwords
    return min(60 * settings.lock_minutes, FIRST_SECONDS * 2.0 ** min(over, 30)) if over >= 0 else 0.0


def forget(state: sqlite3.Connection, user: str) -> None:
    """The account has a new password: nobody waits for it."""
    state.execute("DELETE FROM tries WHERE user = ?", (hash_of(user),))
