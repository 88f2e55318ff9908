"""Accounts in ``site.sqlite``: who may sign in, with which role and groups, and the check of a password.

Passwords are kept as argon2id hashes (RFC 9106) and never given out. Wrong ones make the computer that they come from
wait (``throttle``); an unknown user takes as long to refuse as a wrong password, and is refused in the same words.
There is no default password: the first account is made with a one-time code that the server prints on its console
(``first_code``). Every change of an account is a change of the session that makes it, and audited as such.
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
from localmed.people.noted_accounts import noted, require_noted, rights_of
from localmed.people.sealing import hash_of
from localmed.people.throttle import Tries
from localmed.site.audit import entry_of

if TYPE_CHECKING:
    import sqlite3

    from argon2 import PasswordHasher

    from localmed.config import WebSettings
    from localmed.site.session import Session

LONGEST_NAME = 100  # characters
LONGEST_PASSWORD = 1_000  # characters: what is hashed is bounded
CODE_BYTES = 5  # of the one-time code: 40 bits against WRONG_CODES guesses
HASHES_AT_ONCE = 2  # each takes 64 MiB: many who sign in at once wait for each other
WRONG_CODES = 10  # then the code is void and the server must be started again
CREATE, CHANGE, PASSWORD = "account create", "account change", "account password"  # in the audit log
_FIELDS = "user, role, groups, source, disabled"
_HASHING = threading.BoundedSemaphore(HASHES_AT_ONCE)


# --- looking up -------------------------------------------------------------------------------------------------------


def accounts(data: Path) -> list[Account]:
    """All accounts, by name."""
    require_noted(data)
    with rows(data) as state:
        return [_account(row) for row in state.execute(f"SELECT {_FIELDS} FROM sound_accounts ORDER BY user")]  # noqa: S608


def account(data: Path, user: str) -> Account:
    """The account of ``user``; raise ``UnknownName``."""
    require_noted(data)
    with rows(data) as state:
        return _one(state, name_of(user))


def of_login(state: sqlite3.Connection, user: str) -> Account | None:
    """The account that a login names, unless it is disabled or gone."""
    row = state.execute(f"SELECT {_FIELDS} FROM sound_accounts WHERE user = ? AND disabled = 0", (user,)).fetchone()  # noqa: S608
    return _account(row) if row else None


def no_account(data: Path) -> bool:
    """Whether nobody has an account yet."""
    return not selected(data, "SELECT 1 FROM accounts LIMIT 1")


def _one(state: sqlite3.Connection, user: str) -> Account:
    row = state.execute(f"SELECT {_FIELDS} FROM sound_accounts WHERE user = ?", (user,)).fetchone()  # noqa: S608
    if row is None:
        raise UnknownName("account.unknown", user=user)
    return _account(row)


def _account(row: tuple[str, str, str, str, int]) -> Account:
    user, role, groups, source, disabled = row
    return Account(user, SessionRole(role), tuple(json.loads(groups)), source, bool(disabled))


def spelt(user: str) -> str:
    """What somebody typed, in the spelling of names."""
    return " ".join(user.casefold().split())


def name_of(user: str) -> str:
    """``user`` as it is stored: one spelling for "Li Wei" and "li wei "."""
    name = spelt(user)
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise UsageError("account.name", most=LONGEST_NAME)
    return name


# --- passwords --------------------------------------------------------------------------------------------------------


@cache
def _hasher() -> PasswordHasher:
    from argon2 import PasswordHasher

    return PasswordHasher()  # argon2id with RFC 9106's low-memory profile: 64 MiB, 3 passes


@cache
def _nobody() -> str:
    """A hash that no password has, so that an unknown user costs what a known one does."""
    return _hasher().hash(secrets.token_hex())


def _fits(hashed: str, password: str) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        with _HASHING:
            return _hasher().verify(hashed, password[:LONGEST_PASSWORD])
    except (VerificationError, InvalidHashError):
        return False


def sign_in(data: Path, user: str, password: str, settings: WebSettings, address: str = "") -> Account:
    """The local account of ``user`` if ``password`` is its own, else ``UsageError`` in the same words.

    What was wrong is not told. ``address`` is the computer it comes from: after too many wrong passwords it waits,
    which raises ``Busy`` for the right one too, so that a guesser learns nothing.
    """
    name = spelt(user)[:LONGEST_NAME]
    tries = Tries(address, name)
    require_noted(data)
    with rows(data) as state:
        tries.begin(state, settings)
        query = "SELECT password FROM accounts WHERE user = ? AND disabled = 0 AND password > ''"
        row = state.execute(query, (name,)).fetchone()
    right = _fits(row[0] if row else _nobody(), password) and row is not None
    if not right:
        raise UsageError("account.wrong")
    with rows(data) as state:
        tries.right(state)
        return _one(state, name)


def _hashed(password: str, settings: WebSettings) -> str:
    """The hash of a new password; raise ``UsageError`` for one that is too short."""
    if not settings.password_characters <= len(password) <= LONGEST_PASSWORD:
        raise UsageError("account.password", least=settings.password_characters)
    return _hasher().hash(password)


# --- changing ---------------------------------------------------------------------------------------------------------


def create(session: Session, made: Account, password: str = "", temporary: bool = False) -> Account:
    """Make an account; one of a directory has no password here. Raise ``UsageError`` where there is one already.

    A ``temporary`` password must be changed at the first sign-in.
    """
    stored = replace(made, user=name_of(made.user))
    checked(stored.groups)
    hashed = _hashed(password, session.settings.web) if stored.source == "local" else ""
    with noted(session, CREATE, stored.user, rights_of(stored)) as state:
        _insert(state, stored, hashed)
        _mark(state, stored.user, temporary and stored.source == "local")
    return stored


def _mark(state: sqlite3.Connection, user: str, temporary: bool) -> None:
    state.execute("UPDATE accounts SET temporary = ? WHERE user = ?", (temporary, user))


def _insert(state: sqlite3.Connection, made: Account, hashed: str) -> None:
    values = (made.user, made.role, json.dumps(made.groups), made.source, hashed, _now())
    query = "INSERT OR IGNORE INTO accounts (user, role, groups, source, password, created) VALUES (?, ?, ?, ?, ?, ?)"
    if not state.execute(query, values).rowcount:
        raise UsageError("account.exists", user=made.user)


def change(session: Session, changed: Account) -> Account:
    """Give an account another role, other groups, or disable it; its logins end. The last admin cannot be lost."""
    checked(changed.groups)
    user = name_of(changed.user)
    with noted(session, CHANGE, user, rights_of(changed)) as state:
        stored = replace(changed, user=user, source=_one(state, user).source)
        _keep_an_admin(state, stored)
        state.execute(
            "UPDATE accounts SET role = ?, groups = ?, disabled = ? WHERE user = ?",
            (stored.role, json.dumps(stored.groups), stored.disabled, stored.user),
        )
        state.execute("DELETE FROM logins WHERE user = ?", (stored.user,))
    return stored


def _keep_an_admin(state: sqlite3.Connection, stored: Account) -> None:
    if stored.role is SessionRole.ADMIN and not stored.disabled:
        return
    query = "SELECT 1 FROM sound_accounts WHERE role = 'admin' AND disabled = 0 AND user <> ? AND password > ''"
    if state.execute(query, (stored.user,)).fetchone() is None:
        raise UsageError("account.last_admin")


def set_password(session: Session, user: str, password: str) -> None:
    """Give a local account a new password; its logins and waits end. One's own needs no right to change accounts.

    Another's is temporary: whoever signs in with it must change it.
    """
    name, hashed = name_of(user), _hashed(password, session.settings.web)
    if name == session.caller.user:
        require_noted(session.data)
        with in_force.changing(session.data) as change:
            _store(change.state, name, hashed)
            _mark(change.state, name, False)
            noted_accounts.note(change, entry_of(PASSWORD, name, "changed", user=name))
    else:
        with noted(session, PASSWORD, name, "changed") as state:
            _store(state, name, hashed)
            _mark(state, name, True)


def _store(state: sqlite3.Connection, name: str, hashed: str) -> None:
    query = "UPDATE accounts SET password = ? WHERE user = ? AND source = 'local'"
    if not state.execute(query, (hashed, name)).rowcount:
        raise UnknownName("account.unknown", user=name)
    state.execute("DELETE FROM logins WHERE user = ?", (name,))
    throttle.forget(state, name)


# --- the first account ------------------------------------------------------------------------------------------------


def require_accounts(data: Path) -> None:
    """Raise ``Damaged`` where there is no account any more, though the journal knows of some."""
    if no_account(data) and in_force.in_force(data).accounts:
        raise StateLost("account.lost")


def first_code(data: Path) -> str:
    """A new one-time code that lets somebody make the first account; "" where there is an account already.

    Raise ``Damaged`` where accounts were lost: whoever reads the console would be administrator of all that is there.
    """
    if not no_account(data):
        return ""
    require_accounts(data)
    code = secrets.token_hex(CODE_BYTES)
    with rows(data) as state:
        state.execute("INSERT OR REPLACE INTO first_code VALUES (1, ?, 0)", (hash_of(code),))
    return code


def create_first(data: Path, code: str, user: str, password: str, settings: WebSettings) -> Account:
    """The admin's account, for whoever has the ``code`` of the console, which is void then; raise ``UsageError``."""
    made = Account(name_of(user), SessionRole.ADMIN)
    hashed = _hashed(password, settings)  # before the code is used up
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


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
