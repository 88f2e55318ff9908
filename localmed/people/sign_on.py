"""Signing in by password or by the hospital's single sign-on, and the account and rights that result.

Without a directory and a provider (the default) only local passwords count and nothing is contacted. With a directory,
local accounts have their own passwords, and the directory checks all others. Rights are mapped from the groups that
directory or provider names, one line each: ``GROUP -> ROLE [groups of readers]``. The first matching line gives the
role, all matching lines the groups of collections; without a matching line sign-in is refused. The account is updated
at each sign-in: rights that the hospital removed are lost then, and earlier logins end.

``web.break_glass`` names local accounts for emergencies. They can sign in only while directory and provider are down;
the audit log records it, and a banner shows while they are signed in.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.domain.accounts import Account, SessionRole
from localmed.domain.errors import BadSettings, Unreachable, UsageError
from localmed.library import in_force
from localmed.library.access import checked as checked_groups
from localmed.library.state import rows, selected
from localmed.people import accounts, directory, noted_accounts, oidc
from localmed.people.directory import Person
from localmed.people.throttle import Tries
from localmed.site.audit import entry_of

if TYPE_CHECKING:
    import sqlite3

    from localmed.config import WebSettings
    from localmed.site.session import Session

ARROW = " -> "
DAY = 86_400.0  # seconds
SIGN_ON = "account sign-on"  # in the audit log


class Source(StrEnum):
    """Who authenticates an account's user."""

    LOCAL = "local"
    DIRECTORY = "directory"
    PROVIDER = "provider"


def check_settings(settings: WebSettings) -> None:
    """Raise ``BadSettings`` for an unusable directory or provider."""
    for one in (settings.ldap, settings.oidc):
        map_groups(frozenset(), one.roles)
    if settings.ldap.server:
        directory.address(settings.ldap)
    if settings.oidc.issuer:
        oidc.check_settings(settings.oidc)


def by_password(data: Path, user: str, password: str, settings: WebSettings, address: str = "") -> tuple[Account, bool]:
    """Return the account of ``user`` if ``password`` is right, and whether it is an emergency account; raise
    ``UsageError``.

    A directory's account is not stored yet (``store``). Raise ``Unreachable`` if the directory does not answer,
    ``Busy`` after too many wrong passwords from the computer ``address``.
    """
    with rows(data) as state:
        query = "SELECT 1 FROM accounts WHERE user = ? AND source = ?"
        is_local = state.execute(query, (accounts.normalise_name(user), Source.LOCAL)).fetchone() is not None
    if is_local or not settings.ldap.server:
        account = accounts.sign_in(data, user, password, settings, address)
        is_emergency = account.user in emergency_accounts(settings)
        if is_emergency and reachable(settings):
            raise UsageError("account.glass_whole")
        return account, is_emergency
    person = _ask_directory(data, user, password, settings, address)
    return account_of(person, settings.ldap.roles, Source.DIRECTORY), False


def _ask_directory(data: Path, user: str, password: str, settings: WebSettings, address: str) -> Person:
    """Return the directory's person; the try is counted here too, before the directory locks the account."""
    tries = Tries(address, accounts.normalise_name(user)[: accounts.LONGEST_NAME])
    with rows(data) as state:
        tries.begin(state, settings)
    try:
        person = directory.person(user, password, settings.ldap)
    except Unreachable:  # the password was not judged
        with rows(data) as state:
            tries.discard(state)
        raise
    with rows(data) as state:
        tries.clear(state)
    return person


def account_of(person: Person, lines: Sequence[str], source: Source) -> Account:
    """Return the account of somebody whom ``source`` has recognised; raise ``UsageError`` if no line of the map
    matches.
    """
    rights = map_groups(person.groups, lines)
    if rights is None:
        raise UsageError("account.no_role")
    return Account(accounts.name_of(person.user), rights[0], rights[1], source)


def map_groups(groups: frozenset[str], lines: Sequence[str]) -> tuple[SessionRole, tuple[str, ...]] | None:
    """Return role and groups for ``groups``, ``None`` if no line matches; raise ``BadSettings`` for a wrong line."""
    own = {_normalise_group(group) for group in groups}
    role: SessionRole | None = None
    reads: dict[str, None] = {}
    for line in lines:
        name, arrow, rights = line.rpartition(ARROW)
        role_name, *collections = rights.split() or [""]
        if not arrow or not name.strip() or role_name not in set(SessionRole):
            raise BadSettings("sign_on.roles", line=line[:200], roles=tuple(SessionRole))
        checked_groups(collections)
        if _normalise_group(name) in own:
            role = role or SessionRole(role_name)
            reads |= dict.fromkeys(collections)
    return (role, tuple(reads)) if role else None


def _normalise_group(group: str) -> str:
    """Return a group's name for comparison: a DN ignores case and blanks after its commas."""
    return ",".join(part.strip() for part in group.casefold().split(","))


def store(session: Session, account: Account, subject: str = "") -> None:
    """Store ``account`` of a directory or provider; its earlier logins end if its rights changed.

    Raise ``UsageError`` if the name belongs to another account, or an administrator has disabled it.
    """
    noted_accounts.require_noted(session.data)
    with in_force.changing(session.data) as change:
        if _write(change.state, account, subject):
            rights = noted_accounts.rights_of(account)
            noted_accounts.note(change, entry_of(SIGN_ON, account.user, rights, user=session.caller.user))


def _write(state: sqlite3.Connection, account: Account, subject: str) -> bool:
    query = "SELECT role, groups, source, disabled, subject FROM sound_accounts WHERE user = ?"
    before = state.execute(query, (account.user,)).fetchone()
    role, groups, source, disabled, known = before or ("", "[]", account.source, 0, subject)
    if source != account.source or known != subject:
        raise UsageError("account.other_person")
    if disabled:
        raise UsageError("account.not_known")
    changed = (role, tuple(json.loads(groups))) != (account.role, account.groups)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    if changed:
        state.execute(
            "INSERT INTO accounts (user, role, groups, source, subject, created) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (user) DO UPDATE SET role = excluded.role, groups = excluded.groups",
            (account.user, account.role, json.dumps(account.groups), account.source, subject, now),
        )
        state.execute("DELETE FROM logins WHERE user = ?", (account.user,))
    state.execute("UPDATE accounts SET signed_in = ? WHERE user = ?", (time.time(), account.user))
    return changed


def is_recent(data: Path, account: Account, settings: WebSettings) -> bool:
    """Whether a program may still act for ``account``: one of a directory must have signed in recently."""
    if account.source == Source.LOCAL:
        return True
    with rows(data) as state:
        row = state.execute("SELECT signed_in FROM accounts WHERE user = ?", (account.user,)).fetchone()
    return row is not None and time.time() - row[0] < DAY * settings.directory_days


def emergency_accounts(settings: WebSettings) -> frozenset[str]:
    """Return the names of the emergency accounts; none without a directory or provider."""
    elsewhere = settings.ldap.server or settings.oidc.issuer
    return frozenset(accounts.name_of(name) for name in settings.break_glass) if elsewhere else frozenset()


def reachable(settings: WebSettings) -> bool:
    """Whether the directory or the provider answers."""
    by_directory = bool(settings.ldap.server) and directory.reachable(settings.ldap)
    return by_directory or (bool(settings.oidc.issuer) and oidc.reachable(settings.oidc))


def signed_in_emergency_accounts(data: Path, settings: WebSettings) -> tuple[str, ...]:
    """Return the emergency accounts that are signed in now."""
    names = emergency_accounts(settings)
    signed_in = selected(data, "SELECT DISTINCT user FROM logins") if names else ()
    return tuple(user for (user,) in signed_in if user in names)
