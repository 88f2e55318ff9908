"""What the journal knows of the accounts in ``site.sqlite``: a role that no session gave is damage.

Checksums of the rows (``state_migrations.py``) tell what a disk has altered, not what somebody has who makes them anew.
So every change of a role, a group, a password or of who an account is of is one transaction with a row of the journal
that holds a digest of all accounts: half of it is of their rights, half of their passwords, so that a repair knows
which of the two were altered. Logins and tokens are not noted: they end, and have the rights of their account.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.domain.accounts import Account, SessionRole
from localmed.domain.accounts import rights_of as rights_text
from localmed.domain.errors import AccountsAltered, LocalmedError
from localmed.library.in_force import Changing, in_force
from localmed.library.journal import ACCOUNTS, HALF, Entry, accounts_digest
from localmed.library.migrations import add_checksums, migrate
from localmed.library.state import FILE, Remembered, selected
from localmed.library.state_migrations import STATE

if TYPE_CHECKING:
    from localmed.site.session import Session

LOOKS = 5  # at both: a change may be made between the two


def require_noted(data: Path) -> None:
    """Raise ``Damaged`` for accounts that are not what the journal knows."""
    _remembered(data)


def _compare(data: Path) -> None:
    for _ in range(LOOKS):
        before, noted = stored_digest(data), in_force(data).accounts
        if noted in ("", before, stored_digest(data)):
            return
    raise AccountsAltered("account.altered", path=str(data / FILE))


_remembered = Remembered(_compare)  # every request of the window asks


def stored_digest(data: Path) -> str:
    """The digest of the accounts as they stand there."""
    return accounts_digest(selected(data, ACCOUNTS))


def note(change: Changing, entry: Entry) -> None:
    """Add ``entry`` (its subject is the user) to the journal, with the accounts as the change has left them."""
    user = entry.subject
    query = "SELECT role, groups, disabled FROM accounts WHERE user = ?"
    row = change.state.execute(query, (user,)).fetchone()
    rights = rights_text(row[0], json.loads(row[1]), bool(row[2])) if row else ""
    now = accounts_digest(change.state.execute(ACCOUNTS).fetchall())
    change.note(entry, kind="accounts", sha256=now, user=user, rights=rights)


@contextmanager
def noted(session: Session, action: str, user: str, outcome: str) -> Iterator[sqlite3.Connection]:
    """A change of ``user``'s account by ``session``, in one transaction with its row of the journal.

    Raise ``Damaged`` where the accounts are not as noted: what was altered must not pass for what was stored.
    """
    require_noted(session.data)
    with session.changing(action, user, outcome) as (change, entry):
        yield change.state
        note(change, entry)


def rights_of(account: Account) -> str:
    """What an account may do, as the journal says it of its change."""
    return rights_text(account.role, account.groups, account.disabled)


def rights_read(user: str, text: str) -> Account | None:
    """The account of which ``rights_of`` says ``text``; None where it says something else."""
    role, _, listed = text.partition(": ")
    name, _, disabled = role.partition(" ")
    if name not in set(SessionRole):
        return None
    return Account(user, SessionRole(name), tuple(listed.split()), disabled=bool(disabled))


def readable(data: Path) -> list[Account]:
    """What the file says of everybody, though it may have been altered; nothing where it cannot be read."""
    with suppress(LocalmedError):
        return [
            _as_it_stands(*row)
            for row in selected(data, "SELECT user, role, groups, disabled FROM accounts ORDER BY user")
        ]
    return []


def _as_it_stands(user: str, role: str, groups: str, disabled: int) -> Account:
    listed: tuple[str, ...] = ()
    with suppress(ValueError, TypeError):
        listed = tuple(map(str, json.loads(groups)))
    name = SessionRole(role) if role in set(SessionRole) else SessionRole.READER
    return Account(user, name, listed, disabled=bool(disabled))


def passwords_as_noted(data: Path, noted_digest: str) -> bool:
    """Whether the passwords, if not the rights, are what the journal knows."""
    return bool(noted_digest) and stored_digest(data)[HALF:] == noted_digest[HALF:]


def restore(state: sqlite3.Connection, listed: Iterable[Account], passwords: bool) -> None:
    """Give the accounts ``listed`` these rights, whatever stands there now; without ``passwords`` nobody has one.

    Nobody stays signed in.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        add_checksums(fresh)
        migrate(fresh, STATE, FILE)
        made = fresh.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'accounts'")
        for name, sql in made:  # which compare and make the checksums: somebody may have taken them out
            state.execute(f"DROP TRIGGER IF EXISTS {name}")
            state.execute(sql)
    state.execute("UPDATE accounts SET sum = checksum(user, role, groups, source, password, disabled, subject)")
    for one in listed:
        state.execute(
            "UPDATE accounts SET role = ?, groups = ?, disabled = ? WHERE user = ?",
            (one.role, json.dumps(one.groups), one.disabled, one.user),
        )
    if not passwords:
        state.execute("UPDATE accounts SET password = ''")
        state.execute("DELETE FROM tokens")
    state.execute("DELETE FROM logins")
