"""Signing in by password or by the hospital's single sign-on, and what becomes of it here: an account with its rights.

Without a directory and a provider (the default) local passwords alone count and nothing is dialled. With a directory,
a local account is still asked for its own password, everybody else the directory for theirs. What somebody may do is
mapped from the groups that directory or provider names, one line each: ``GROUP -> ROLE [groups of readers]``. The first
line that fits gives the role, all that fit the groups of collections; whoever no line fits may not sign in. The account
is written anew at each sign-in: a right that the hospital took away is gone then, and with it the logins of before.

``web.break_glass`` names local accounts for when directory and provider are down: they sign in only then, the audit log
says so, and a banner does while they are signed in.
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
    """Who checks that an account's user is who they say."""

    LOCAL = "local"
    DIRECTORY = "directory"
    PROVIDER = "provider"


def checked(settings: WebSettings) -> None:
    """Raise ``BadSettings`` for a directory or provider that cannot work as it is set."""
    for one in (settings.ldap, settings.oidc):
        mapped(frozenset(), one.roles)
    if settings.ldap.server:
        directory.address(settings.ldap)
    if settings.oidc.issuer:
        oidc.checked(settings.oidc)


def by_password(data: Path, user: str, password: str, settings: WebSettings, address: str = "") -> tuple[Account, bool]:
    """The account of ``user`` if ``password`` is theirs, and whether it broke the glass; raise ``UsageError``.

    An account of a directory is not stored yet (``store``). Raise ``Unreachable`` where the directory does not answer,
    ``Busy`` where too many wrong passwords came from the computer ``address``.
    """
    if not settings.ldap.server or _is_local(data, user):
        account = accounts.sign_in(data, user, password, settings, address)
        return account, _breaks_glass(account, settings)
    person = _person(data, user, password, settings, address)
    return account_of(person, settings.ldap.roles, Source.DIRECTORY), False


def _person(data: Path, user: str, password: str, settings: WebSettings, address: str) -> Person:
    """Whom the directory knows by this password; a try counts here too, before the directory locks the account."""
    tries = Tries(address, accounts.spelt(user)[: accounts.LONGEST_NAME])
    with rows(data) as state:
        tries.begin(state, settings)
    try:
        person = directory.person(user, password, settings.ldap)
    except Unreachable:  # nobody judged it
        with rows(data) as state:
            tries.unjudged(state)
        raise
    with rows(data) as state:
        tries.right(state)
    return person


def account_of(person: Person, lines: Sequence[str], source: Source) -> Account:
    """The account of somebody whom ``source`` has recognised; raise ``UsageError`` where no line of the map fits."""
    rights = mapped(person.groups, lines)
    if rights is None:
        raise UsageError("account.no_role")
    return Account(accounts.name_of(person.user), rights[0], rights[1], source)


def mapped(groups: frozenset[str], lines: Sequence[str]) -> tuple[SessionRole, tuple[str, ...]] | None:
    """Role and groups of whoever is in ``groups``; None where no line fits; raise ``BadSettings`` for a wrong one."""
    own = {_plain(group) for group in groups}
    role: SessionRole | None = None
    reads: dict[str, None] = {}
    for line in lines:
        name, arrow, rights = line.rpartition(ARROW)
        role_name, *collections = rights.split() or [""]
        if not arrow or not name.strip() or role_name not in set(SessionRole):
            raise BadSettings("sign_on.roles", line=line[:200], roles=tuple(SessionRole))
        checked_groups(collections)
        if _plain(name) in own:
            role = role or SessionRole(role_name)
            reads |= dict.fromkeys(collections)
    return (role, tuple(reads)) if role else None


def _plain(group: str) -> str:
    """A group's name as it is compared: a DN has no case, and blanks after its commas mean nothing."""
    return ",".join(part.strip() for part in group.casefold().split(","))


def _is_local(data: Path, user: str) -> bool:
    with rows(data) as state:
        query = "SELECT 1 FROM accounts WHERE user = ? AND source = ?"
        return state.execute(query, (accounts.spelt(user), Source.LOCAL)).fetchone() is not None


# --- what is kept of a directory's account ----------------------------------------------------------------------------


def store(session: Session, account: Account, subject: str = "") -> None:
    """Write ``account`` of a directory or provider as it is now; its logins of before end where its rights changed.

    Raise ``UsageError`` where the name belongs to another account, or an administrator has disabled it.
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


def still_theirs(data: Path, account: Account, settings: WebSettings) -> bool:
    """Whether a program may still act for ``account``: one of a directory must have signed in not long ago."""
    if account.source == Source.LOCAL:
        return True
    with rows(data) as state:
        row = state.execute("SELECT signed_in FROM accounts WHERE user = ?", (account.user,)).fetchone()
    return row is not None and time.time() - row[0] < DAY * settings.directory_days


# --- breaking the glass -----------------------------------------------------------------------------------------------


def _breaks_glass(account: Account, settings: WebSettings) -> bool:
    """Whether ``account`` is for emergencies; raise ``UsageError`` where there is none."""
    if account.user not in glass(settings):
        return False
    if reachable(settings):
        raise UsageError("account.glass_whole")
    return True


def glass(settings: WebSettings) -> frozenset[str]:
    """The accounts for emergencies; none where no directory and no provider is used."""
    elsewhere = settings.ldap.server or settings.oidc.issuer
    return frozenset(accounts.name_of(name) for name in settings.break_glass) if elsewhere else frozenset()


def reachable(settings: WebSettings) -> bool:
    """Whether somebody can sign in elsewhere: the directory or the provider answers."""
    by_directory = bool(settings.ldap.server) and directory.reachable(settings.ldap)
    return by_directory or (bool(settings.oidc.issuer) and oidc.reachable(settings.oidc))


def broken(data: Path, settings: WebSettings) -> tuple[str, ...]:
    """The emergency accounts that are signed in now."""
    names = glass(settings)
    signed_in = selected(data, "SELECT DISTINCT user FROM logins") if names else ()
    return tuple(user for (user,) in signed_in if user in names)
