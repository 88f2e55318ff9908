"""Accounts in ``site.sqlite``: who may sign in, with which role and groups, and the check of a password.

Passwords are stored as argon2id hashes (RFC 9106). Wrong ones make the computer that sends them wait (``throttle``); an
unknown user is refused after the same time and in the same words as a wrong password. There is no default password: the
first account needs a one-time code that the server prints on its console (``first_code``). Every change of an account
is made by a session and audited.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.domain.accounts import Account, SessionRole
from localmed.domain.errors import StateLost, UnknownName, UsageError
from localmed.library import in_force
from localmed.library.access import checked
from localmed.library.state import rows, selected, transaction
from localmed.people import noted_accounts, throttle
from localmed.people.noted_accounts import changing_account, require_noted, rights_of
from localmed.people.sealing import hash_of
from localmed.people.throttle import Tries
from localmed.site.audit import entry_of

if TYPE_CHECKING:
    import sqlite3

    from argon2 import PasswordHasher

    from localmed.config import WebSettings
    from localmed.site.session import Session

LONGEST_NAME = 100  # characters
LONGEST_PASSWORD = 1_000  # characters, to bound the hashing
CODE_BYTES = 5  # of the one-time code: 40 bits against WRONG_CODES guesses
HASHES_AT_ONCE = 2  # each takes 64 MiB
WRONG_CODES = 10  # then the code is void and the server must be started again
CREATE, CHANGE, PASSWORD = "account create", "account change", "account password"  # in the audit log
_FIELDS = "user, role, groups, source, disabled"
_HASHING = threading.BoundedSemaphore(HASHES_AT_ONCE)


def accounts(data: Path) -> list[Account]:
    """Return all accounts, by name."""
    require_noted(data)
    with rows(data) as state:
        return [_read_account(row) for row in state.execute(f"SELECT {_FIELDS} FROM sound_accounts ORDER BY user")]  # noqa: S608


def account(data: Path, user: str) -> Account:
    """Return the account of ``user``; raise ``UnknownName``."""
    require_noted(data)
    with rows(data) as state:
        return _find_account(state, name_of(user))


def find_enabled(state: sqlite3.Connection, user: str) -> Account | None:
    """Return the account of ``user``, ``None`` if it is disabled or does not exist."""
    row = state.execute(f"SELECT {_FIELDS} FROM sound_accounts WHERE user = ? AND disabled = 0", (user,)).fetchone()  # noqa: S608
    return _read_account(row) if row else None


def has_no_account(data: Path) -> bool:
    """Whether nobody has an account yet."""
    return not selected(data, "SELECT 1 FROM accounts LIMIT 1")


def _find_account(state: sqlite3.Connection, user: str) -> Account:
    row = state.execute(f"SELECT {_FIELDS} FROM sound_accounts WHERE user = ?", (user,)).fetchone()  # noqa: S608
    if row is None:
        raise UnknownName("account.unknown", user=user)
    return _read_account(row)


def _read_account(row: tuple[str, str, str, str, int]) -> Account:
    user, role, groups, source, disabled = row
    return Account(user, SessionRole(role), tuple(json.loads(groups)), source, bool(disabled))


def normalise_name(user: str) -> str:
    """Return a typed name in the spelling of stored names."""
    return " ".join(user.casefold().split())


def name_of(user: str) -> str:
    """Return ``user`` in the stored spelling ("Li Wei " becomes "li wei"); raise ``UsageError`` for an invalid name."""
    name = normalise_name(user)
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise UsageError("account.name", most=LONGEST_NAME)
    return name


@cache
def _hasher() -> PasswordHasher:
    from argon2 import PasswordHasher

    return PasswordHasher()  # argon2id with RFC 9106's low-memory profile: 64 MiB, 3 passes


@cache
def _dummy_hash() -> str:
    """Return a hash that no password has, so that an unknown user takes as long as a known one."""
    return _hasher().hash(secrets.token_hex())


def _matches(hashed: str, password: str) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        with _HASHING:
            return _hasher().verify(hashed, password[:LONGEST_PASSWORD])
    except (VerificationError, InvalidHashError):
        return False


def sign_in(data: Path, user: str, password: str, settings: WebSettings, address: str = "") -> Account:
    """Return the local account of ``user`` if ``password`` is right, else raise ``UsageError``, saying nothing more.

    After too many wrong passwords the computer ``address`` waits; ``Busy`` is raised for the right one too, so that a
    guesser learns nothing.
    """
    name = normalise_name(user)[:LONGEST_NAME]
    tries = Tries(address, name)
    require_noted(data)
    with rows(data) as state:
        tries.begin(state, settings)
        query = "SELECT password FROM accounts WHERE user = ? AND disabled = 0 AND password > ''"
        row = state.execute(query, (name,)).fetchone()
    right = _matches(row[0] if row else _dummy_hash(), password) and row is not None
    if not right:
        raise UsageError("account.wrong")
    with rows(data) as state:
        tries.clear(state)
        return _find_account(state, name)


def _hash_password(password: str, settings: WebSettings) -> str:
    """Return the hash of a new password; raise ``UsageError`` if it is too short or too long."""
    if not settings.password_characters <= len(password) <= LONGEST_PASSWORD:
        raise UsageError("account.password", least=settings.password_characters)
    return _hasher().hash(password)


def create(session: Session, made: Account, password: str = "", temporary: bool = False) -> Account:
    """Create an account; one of a directory has no password here. Raise ``UsageError`` if it exists.

    A ``temporary`` password must be changed at the first sign-in.
    """
    stored = replace(made, user=name_of(made.user))
    checked(stored.groups)
    hashed = _hash_password(password, session.settings.web) if stored.source == "local" else ""
    with changing_account(session, CREATE, stored.user, rights_of(stored)) as state:
        _insert(state, stored, hashed)
        if temporary and stored.source == "local":
            state.execute("UPDATE accounts SET temporary = 1 WHERE user = ?", (stored.user,))
    return stored


def _insert(state: sqlite3.Connection, made: Account, hashed: str) -> None:
    created = datetime.now(UTC).isoformat(timespec="seconds")
    values = (made.user, made.role, json.dumps(made.groups), made.source, hashed, created)
    query = "INSERT OR IGNORE INTO accounts (user, role, groups, source, password, created) VALUES (?, ?, ?, ?, ?, ?)"
    if not state.execute(query, values).rowcount:
        raise UsageError("account.exists", user=made.user)


def change(session: Session, changed: Account) -> Account:
    """Change role and groups of an account, or disable it; its logins end. The last admin cannot be removed."""
    checked(changed.groups)
    user = name_of(changed.user)
    with changing_account(session, CHANGE, user, rights_of(changed)) as state:
        stored = replace(changed, user=user, source=_find_account(state, user).source)
        if stored.role is not SessionRole.ADMIN or stored.disabled:
            query = "SELECT 1 FROM sound_accounts WHERE role = 'admin' AND disabled = 0 AND user <> ? AND password > ''"
            if state.execute(query, (user,)).fetchone() is None:
                raise UsageError("account.last_admin")
        state.execute(
            "UPDATE accounts SET role = ?, groups = ?, disabled = ? WHERE user = ?",
            (stored.role, json.dumps(stored.groups), stored.disabled, stored.user),
        )
        state.execute("DELETE FROM logins WHERE user = ?", (stored.user,))
    return stored


def set_password(session: Session, user: str, password: str) -> None:
    """Set the password of a local account; its logins and waits end. One's own needs no right to change accounts.

    Another's password is temporary: it must be changed at the next sign-in.
    """
    name, hashed = name_of(user), _hash_password(password, session.settings.web)
    if name == session.caller.user:
        require_noted(session.data)
        with in_force.changing(session.data) as change:
            _store_password(change.state, name, hashed, temporary=False)
            noted_accounts.note(change, entry_of(PASSWORD, name, "changed", user=name))
    else:
        with changing_account(session, PASSWORD, name, "changed") as state:
            _store_password(state, name, hashed, temporary=True)


def _store_password(state: sqlite3.Connection, name: str, hashed: str, temporary: bool) -> None:
    query = "UPDATE accounts SET password = ?, temporary = ? WHERE user = ? AND source = 'local'"
    if not state.execute(query, (hashed, temporary, name)).rowcount:
        raise UnknownName("account.unknown", user=name)
    state.execute("DELETE FROM logins WHERE user = ?", (name,))
    throttle.forget(state, name)


def require_accounts(data: Path) -> None:
    """Raise ``Damaged`` if there is no account although the journal has recorded some."""
    if has_no_account(data) and in_force.in_force(data).accounts:
        raise StateLost("account.lost")


def first_code(data: Path) -> str:
    """Return a new one-time code for the first account, "" if an account exists.

    Raise ``Damaged`` if accounts were lost: the reader of the console would become administrator of existing data.
    """
    if not has_no_account(data):
        return ""
    require_accounts(data)
    code = secrets.token_hex(CODE_BYTES)
    with rows(data) as state:
        state.execute("INSERT OR REPLACE INTO first_code VALUES (1, ?, 0)", (hash_of(code),))
    return code


def create_first(data: Path, code: str, user: str, password: str, settings: WebSettings) -> Account:
    """Create the admin's account for the holder of the console's ``code``, which is void afterwards; raise
    ``UsageError``.
    """
    made = Account(name_of(user), SessionRole.ADMIN)
    hashed = _hash_password(password, settings)  # before the code is used up
    with rows(data) as state, transaction(state):
        row = state.execute("SELECT digest, wrong FROM first_code").fetchone()
        if row is None or row[1] >= WRONG_CODES or state.execute("SELECT 1 FROM accounts").fetchone():
            raise UsageError("account.code_void")
        right = hmac.compare_digest(row[0], hash_of("".join(code.split()).casefold()))
        state.execute("DELETE FROM first_code" if right else "UPDATE first_code SET wrong = wrong + 1")
    if not right:
        raise UsageError("account.code_wrong")
    with in_force.changing(data) as change:
        _insert(change.state, made, hashed)
        noted_accounts.note(change, entry_of(CREATE, made.user, rights_of(made), user=made.user))
    return made
