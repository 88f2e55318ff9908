"""What the audit log knows of the accounts in ``state.sqlite``: a role that no session gave is damage.

Checksums of the rows (``state_migrations.py``) tell what a disk has altered, not what somebody has who makes them anew.
So every change of a role, a group, a password or of who an account is of is counted, and noted in the audit log before
it is written and after, with a digest of all accounts (``anchors.py``): half of it is of their rights, half of their
passwords, so that a repair knows which of the two were altered. No log of before has it: they are taken as they are
until the next change. Logins and tokens are not noted: they end, and have the rights of their account.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localmed.domain.accounts import Account, SessionRole
from localmed.domain.errors import AccountsAltered, LocalmedError
from localmed.library.anchors import PLANNED, Anchor, anchors, known_as
from localmed.library.migrations import migrate, sums
from localmed.library.state import FILE, Remembered, rows, selected, transaction
from localmed.library.state_migrations import STATE

if TYPE_CHECKING:
    from localmed.site.session import Session

COUNTED = 13  # schema of ``state.sqlite`` since which changes of the accounts are counted
HALF = 32  # hexadecimal digits: 128 bits of a digest
_CHANGES = "SELECT changes FROM accounts_sum"
_RIGHTS = "SELECT user, role, groups, disabled FROM accounts ORDER BY user"
_ALL = "SELECT user, role, groups, source, subject, disabled, password FROM accounts"
_COUNT = f"SELECT '', '', '', '', '', 0, ({_CHANGES})"
OF_BEFORE = ["the", "first", "account"]  # in the log of before, in the place of its groups

_Row = tuple[Any, ...]


def require_noted(data: Path) -> None:
    """Raise ``Damaged`` for accounts that are not what the audit log knows."""
    _remembered(data)


def _compare(data: Path) -> None:
    if not known_as(data, "accounts", lambda: _state(data)):
        raise AccountsAltered("account.altered", path=str(data / FILE))


_remembered = Remembered(_compare)  # every request of the window asks


def _state(data: Path) -> tuple[int, str]:
    """How often the accounts were changed, and their digest."""
    lines = selected(data, f"{_ALL} UNION ALL {_COUNT}")
    if not lines:  # a file of before, or one whose count was taken out
        version = selected(data, "PRAGMA user_version")
        if version and version[0][0] >= COUNTED:
            raise AccountsAltered("account.altered", path=str(data / FILE))
        return 0, ""
    return int(lines[-1][-1] or 0), _digest(lines[:-1])


def _digest(listed: Iterable[_Row]) -> str:
    listed = sorted(listed)
    return _half([row[:-1] for row in listed]) + _half([(row[0], row[-1]) for row in listed])


def _half(listed: Sequence[_Row]) -> str:
    return hashlib.sha256(json.dumps(listed, ensure_ascii=False).encode()).hexdigest()[:HALF]


def anchor(state: sqlite3.Connection) -> Anchor:
    """How often the accounts were changed, and what they are now, for the audit log."""
    return Anchor("accounts", state.execute(_CHANGES).fetchone()[0], _digest(state.execute(_ALL).fetchall()))


@contextmanager
def changing(data: Path, plan: Callable[[str], object]) -> Iterator[tuple[sqlite3.Connection, list[Anchor]]]:
    """A change of accounts as one transaction; the list holds the anchor of what it left when the block has ended.

    ``plan`` is called with the outcome of the entry that must be made before the change takes effect. Raise ``Damaged``
    where the accounts are not as noted: what was altered must not pass for what was stored.
    """
    made: list[Anchor] = []
    with rows(data) as state, transaction(state):
        require_noted(data)
        before = anchor(state)
        yield state, made
        made.append(anchor(state))
        if made[0] != before:
            plan(f"{PLANNED}{made[0]}")


@contextmanager
def noted(session: Session, action: str, user: str, outcome: str) -> Iterator[sqlite3.Connection]:
    """A change of ``user``'s account by ``session``, which the audit log knows before it takes effect, and after."""
    with session.change(action, user) as change:
        with changing(session.data, lambda planned: session.note_before(action, user, planned)) as (state, made):
            yield state
        change.outcome = f"{outcome}{made[0]}"


def rights_of(account: Account) -> str:
    """What an account may do, as the audit log says it of its change."""
    return f"{account.role}{' disabled' if account.disabled else ''}: {' '.join(account.groups)}"


def rights_read(user: str, text: str) -> Account | None:
    """The account of which ``rights_of`` says ``text``; None where it says something else."""
    role, _, listed = text.partition(": ")
    name, _, disabled = role.partition(" ")
    if name not in set(SessionRole):
        return None
    groups = () if listed.split() == OF_BEFORE else tuple(listed.split())
    return Account(user, SessionRole(name), groups, disabled=bool(disabled))


def readable(data: Path) -> list[Account]:
    """What the file says of everybody, though it may have been altered; nothing where it cannot be read."""
    with suppress(LocalmedError):
        return [_as_it_stands(*row) for row in selected(data, _RIGHTS)]
    return []


def _as_it_stands(user: str, role: str, groups: str, disabled: int) -> Account:
    listed: tuple[str, ...] = ()
    with suppress(ValueError, TypeError):
        listed = tuple(map(str, json.loads(groups)))
    name = SessionRole(role) if role in set(SessionRole) else SessionRole.READER
    return Account(user, name, listed, disabled=bool(disabled))


def passwords_as_noted(data: Path) -> bool:
    """Whether the passwords, if not the rights, are what the audit log knows."""
    made = [one for one in anchors(data, "accounts") if one.outcome != PLANNED]
    return bool(made) and _state(data)[1][HALF:] == max(made, key=lambda one: one.extent).sha256[HALF:]


def restore(data: Path, listed: Iterable[Account], passwords: bool, plan: Callable[[Anchor], object]) -> Anchor:
    """Give the accounts ``listed`` these rights, whatever stands there now; without ``passwords`` nobody has one.

    Nobody stays signed in. ``plan`` is called with the anchor before it is written.
    """
    least = max((one.extent for one in anchors(data, "accounts")), default=0)
    with rows(data) as state, transaction(state):
        _count_again(state)
        state.execute(
            "UPDATE accounts SET sum = checksum(user, role, groups, source, password, disabled, subject)"
        )  # of rows that were altered past the triggers, which compare it
        for one in listed:
            state.execute(
                "UPDATE accounts SET role = ?, groups = ?, disabled = ? WHERE user = ?",
                (one.role, json.dumps(one.groups), one.disabled, one.user),
            )
        if not passwords:
            state.execute("UPDATE accounts SET password = ''")
            state.execute("DELETE FROM tokens")
        state.execute("DELETE FROM logins")
        state.execute("UPDATE accounts_sum SET changes = ?", (least + 1,))
        plan(after := anchor(state))
    return after


def _count_again(state: sqlite3.Connection) -> None:
    """Make the count of changes, and what counts and sums them, anew: somebody may have taken it out."""
    state.execute("DROP TABLE IF EXISTS accounts_sum")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        sums(fresh)
        migrate(fresh, STATE, FILE)
        made = fresh.execute(
            "SELECT name, sql FROM sqlite_master "
            "WHERE name = 'accounts_sum' OR type = 'trigger' AND tbl_name = 'accounts'"
        )
        for name, sql in made:
            state.execute(f"DROP TRIGGER IF EXISTS {name}")
            state.execute(sql)
    state.execute("INSERT INTO accounts_sum VALUES (1, 0)")
