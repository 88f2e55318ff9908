"""The journal's record of the accounts in ``site.sqlite``: a role that no session gave is damage.

Row checksums (``state_migrations.py``) reveal disk errors, but not somebody who recomputes them. Therefore every change
of role, group, password or identity is one transaction with a journal row that has a digest of all accounts: half of it
covers rights, half passwords, so that a repair knows which were altered. Logins and tokens are not recorded: they
expire, and have their account's rights.
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
from localmed.library.journal import ACCOUNTS, Entry, accounts_digest
from localmed.library.migrations import add_checksum_functions, migrate
from localmed.library.state import FILE, Remembered, selected
from localmed.library.state_migrations import STATE

if TYPE_CHECKING:
    from localmed.site.session import Session

LOOKS = 5  # attempts: a change may be made between reading the accounts and the journal


def require_noted(data: Path) -> None:
    """Raise ``Damaged`` if the accounts differ from the journal's record."""
    _remembered(data)


def _compare(data: Path) -> None:
    for _ in range(LOOKS):
        before, noted = stored_digest(data), in_force(data).accounts
        if noted in ("", before, stored_digest(data)):
            return
    raise AccountsAltered("account.altered", path=str(data / FILE))


_remembered = Remembered(_compare)  # every request of the window asks


def stored_digest(data: Path) -> str:
    """Return the digest of the stored accounts."""
    return accounts_digest(selected(data, ACCOUNTS))


def note(change: Changing, entry: Entry) -> None:
    """Add ``entry`` (its subject is the user) to the journal, with the digest of the accounts after the change."""
    user = entry.subject
    query = "SELECT role, groups, disabled FROM accounts WHERE user = ?"
    row = change.state.execute(query, (user,)).fetchone()
    rights = rights_text(row[0], json.loads(row[1]), bool(row[2])) if row else ""
    now = accounts_digest(change.state.execute(ACCOUNTS).fetchall())
    change.note(entry, kind="accounts", sha256=now, user=user, rights=rights)


@contextmanager
def changing_account(session: Session, action: str, user: str, outcome: str) -> Iterator[sqlite3.Connection]:
    """Change ``user``'s account in one transaction with its journal row.

    Raise ``Damaged`` if the accounts differ from the journal's record, which must not be overwritten.
    """
    require_noted(session.data)
    with session.changing(action, user, outcome) as (change, entry):
        yield change.state
        note(change, entry)


def rights_of(account: Account) -> str:
    """Return the rights of an account as text for the journal."""
    return rights_text(account.role, account.groups, account.disabled)


def parse_rights(user: str, text: str) -> Account | None:
    """Return the account with the rights in ``text`` (from ``rights_of``), ``None`` if malformed."""
    role, _, listed = text.partition(": ")
    name, _, disabled = role.partition(" ")
    if name not in set(SessionRole):
        return None
    return Account(user, SessionRole(name), tuple(listed.split()), disabled=bool(disabled))


def read_unchecked(data: Path) -> list[Account]:
    """Return all accounts without checking them; empty if the file cannot be read."""
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


def restore(state: sqlite3.Connection, listed: Iterable[Account], passwords: bool) -> None:
    """Set these rights of the accounts ``listed``; without ``passwords`` remove all passwords. All logins end."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        add_checksum_functions(fresh)
        migrate(fresh, STATE, FILE)
        made = fresh.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'accounts'")
        for name, sql in made:  # checksum triggers, which somebody may have removed
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
