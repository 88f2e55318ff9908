"""The hospital's directory (LDAP) checks a password and returns the user's groups.

Only the configured server is contacted; no referral is followed. The connection is encrypted, by ``ldaps`` or by
StartTLS before anything else, with a valid server certificate; without TLS only this machine is contacted. An empty
password is refused here, because a directory treats it as an anonymous bind, which succeeds. Input is escaped in
filters, and the account has the directory's spelling of the name.

The result code of every reply is checked (RFC 4511). A search that met a limit, was referred elsewhere or returned only
a range of groups is an error (``DirectoryFault``, reported to the administrator), so nobody gets fewer rights by it.
Nobody can sign in as the lookup account, so no guess at its password reaches the directory. If the directory refuses
that account, its password is not sent again for a while, so that the account is not locked.
"""

from __future__ import annotations

import hashlib
import ipaddress
import ssl
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from localmed.config import LdapSettings
from localmed.domain.errors import BadSettings, DirectoryFault, InputError, Unreachable, UsageError
from localmed.process.files import contents

SECRET_BYTES = 4_096  # of a file with a password
MOST_GROUPS = 2_000  # of one person
LDAPS, STARTTLS = 636, 389  # ports
REFUSED_SECONDS = 300.0  # for which a refused password of the lookup account is not sent again
SUCCESS, NO_CREDENTIALS, AWAY = 0, 49, (51, 52)  # results of LDAP; busy and unavailable
# Results of a bind that judge no password: errors of operation and protocol, limits, a method or connection that the
# directory refuses, a referral. Every other one counts as a wrong password.
NOT_JUDGED = (1, 2, 3, 7, 8, 10, 11, 13, 80, *AWAY)

refusals: dict[bytes, float] = {}  # digests of refused lookup accounts, and when (monotonic)


class Person(NamedTuple):
    """Somebody recognised by a directory or provider: name, groups, and an id that survives a change of name."""

    user: str
    groups: frozenset[str]
    subject: str = ""


def person(user: str, password: str, settings: LdapSettings) -> Person:
    """Return the person called ``user`` if ``password`` is right; raise ``UsageError`` if not, ``Unreachable``."""
    if not user.strip() or not password:
        raise UsageError("account.not_known")
    with _lookup_line(settings) as looking:
        entry = _find_entry(looking, user, settings)
        names, groups = _values(entry, settings.name_attribute), _groups(looking, entry, settings)
    if not names:
        raise UsageError("account.not_known")
    if _is_lookup_account(entry, settings):
        raise UsageError("account.not_known")
    with _open(settings) as line:
        code = _bind(line, entry["dn"], password)
    if code in NOT_JUDGED:
        raise Unreachable("sign_on.result", code=code)
    if code != SUCCESS:
        raise UsageError("account.not_known")
    return Person(names[0], groups)


def reachable(settings: LdapSettings) -> bool:
    """Whether the directory answers and accepts the lookup account."""
    with suppress(Unreachable), _lookup_line(settings):
        return True
    return False


def examine(settings: LdapSettings) -> None:
    """Search for a user that does not exist, as each sign-in does; raise ``Unreachable`` for what would fail."""
    nobody = {"dn": f"cn=localmed-doctor,{settings.base}", "attributes": {}}
    with _lookup_line(settings) as looking:
        _search(looking, settings.base, settings.filter.replace("{user}", "localmed-doctor"), settings)
        _groups(looking, nobody, settings)


def _find_entry(looking: Any, user: str, settings: LdapSettings) -> Mapping[str, Any]:
    from ldap3.utils.conv import escape_filter_chars

    query = settings.filter.replace("{user}", escape_filter_chars(user))
    found_entries, _ = _search(looking, settings.base, query, settings)
    if len(found_entries) != 1:
        raise UsageError("account.not_known")
    return found_entries[0]


def _search(
    looking: Any,
    base: str,
    query: str,
    settings: LdapSettings,
    attributes: Sequence[str] = (),
    scope: Literal["SUBTREE", "BASE"] = "SUBTREE",
) -> tuple[list[Mapping[str, Any]], bool]:
    """Return the entries found, and whether the directory refers elsewhere for more; raise ``DirectoryFault``."""
    wanted = list(attributes or filter(None, (settings.name_attribute, settings.group_attribute)))
    seconds = max(1, round(settings.seconds))
    with _translating():
        looking.search(base, query, scope, attributes=wanted, size_limit=MOST_GROUPS, time_limit=seconds)
        code, response = looking.result["result"], looking.response or ()
    if code in AWAY:
        raise Unreachable("sign_on.result", code=code)
    if code != SUCCESS:
        raise DirectoryFault("sign_on.partial", code=code, base=base)
    kinds = [entry.get("type") for entry in response]
    return [entry for entry in response if entry.get("type") == "searchResEntry"], "searchResRef" in kinds


def _is_lookup_account(entry: Mapping[str, Any], settings: LdapSettings) -> bool:
    """Whether ``entry`` is the lookup account, by its DN or, as in Active Directory, by its name with a domain."""
    plain = settings.bind_dn.rpartition("\\")[2].partition("@")[0].casefold()
    names = {name.casefold() for name in _values(entry, settings.name_attribute)}
    return _same_name(entry["dn"], settings.bind_dn) or plain in names


def _same_name(one: str, other: str) -> bool:
    """Whether two DNs are equal, ignoring case and blanks around their parts."""
    from ldap3.core.exceptions import LDAPInvalidDnError
    from ldap3.utils.dn import parse_dn

    def parts(name: str) -> list[tuple[str, str]]:
        return [(kind.strip().casefold(), value.strip().casefold()) for kind, value, _ in parse_dn(name)]

    with suppress(LDAPInvalidDnError):
        return parts(one) == parts(other)
    return one.casefold() == other.casefold()


def _groups(looking: Any, entry: Mapping[str, Any], settings: LdapSettings) -> frozenset[str]:
    """Return the DNs of all groups that the entry names or that name the entry; raise ``DirectoryFault``."""
    from ldap3.utils.conv import escape_filter_chars

    attribute = settings.group_attribute
    groups = set(_all_values(looking, entry, attribute, settings)) if attribute else set()
    if settings.group_base:
        query = settings.group_filter.replace("{dn}", escape_filter_chars(entry["dn"]))
        found_groups, elsewhere = _search(looking, settings.group_base, query, settings)
        if elsewhere:
            raise DirectoryFault("sign_on.elsewhere", base=settings.group_base)
        groups |= {group["dn"] for group in found_groups}
    return frozenset(groups)


def _values(entry: Mapping[str, Any], attribute: str) -> list[str]:
    return next((values for name, values in _attributes(entry) if name == attribute.casefold()), [])


def _attributes(entry: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    for name, value in entry["attributes"].items():
        yield name.casefold(), [str(one) for one in value] if isinstance(value, list) else [str(value)]


def _all_values(looking: Any, entry: Mapping[str, Any], attribute: str, settings: LdapSettings) -> list[str]:
    """Return the texts of an attribute; Active Directory returns long lists range by range."""
    start, values = f"{attribute};range=".casefold(), _values(entry, attribute)
    while part := next((one for one in _attributes(entry) if one[0].startswith(start)), None):
        values += part[1]
        if part[0].endswith("-*"):
            return values
        following = f"{attribute};range={len(values)}-*"
        entries, _ = _search(looking, entry["dn"], "(objectClass=*)", settings, (following,), "BASE")
        if not part[1] or len(values) > MOST_GROUPS or len(entries) != 1:
            raise DirectoryFault("sign_on.range", attribute=attribute)
        entry = entries[0]
        if not any(name.startswith(start) for name, _ in _attributes(entry)):
            raise DirectoryFault("sign_on.range", attribute=attribute)
    return values


@contextmanager
def _lookup_line(settings: LdapSettings) -> Iterator[Any]:
    """Open a connection bound as the lookup account; raise ``DirectoryFault`` if it is refused."""
    password = read_secret(settings.bind_password_file)
    key = hashlib.sha256("\0".join((settings.server, settings.bind_dn, password)).encode()).digest()
    if key in refusals and time.monotonic() - refusals[key] < REFUSED_SECONDS:
        raise DirectoryFault("sign_on.refused", code=NO_CREDENTIALS)
    with _open(settings) as line:
        code = _bind(line, settings.bind_dn, password)
        if code in AWAY:
            raise Unreachable("sign_on.result", code=code)
        if code != SUCCESS:
            if code == NO_CREDENTIALS:
                refusals[key] = time.monotonic()
            raise DirectoryFault("sign_on.refused", code=code)
        refusals.pop(key, None)
        yield line


@contextmanager
def _open(settings: LdapSettings) -> Iterator[Any]:
    ldap3, (scheme, host, port) = _ldap3(), address(settings)
    with _translating():
        tls = ldap3.Tls(validate=ssl.CERT_REQUIRED, ca_certs_file=settings.ca or None, sni=host)
        server = ldap3.Server(
            host, port, use_ssl=scheme == "ldaps", tls=tls, get_info=ldap3.NONE, connect_timeout=settings.seconds
        )
        line = ldap3.Connection(
            server, auto_referrals=False, auto_range=False, return_empty_attributes=False,
            raise_exceptions=False, read_only=True,
            receive_timeout=max(1, round(settings.seconds)),
        )  # fmt: skip
    try:
        with _translating():
            line.open(read_server_info=False)
            if scheme == "ldap" and not settings.plain and not line.start_tls(read_server_info=False):
                raise Unreachable("sign_on.unreachable", kind="StartTLS")
        yield line
    finally:
        _close(line)


def _bind(line: Any, dn: str, password: str) -> int:
    """Return the directory's result code for ``dn`` ("": anonymous) with ``password``."""
    ldap3 = _ldap3()
    with _translating():
        line.user, line.password = dn or None, password or None
        line.authentication = ldap3.SIMPLE if dn else ldap3.ANONYMOUS
        line.bind(read_server_info=False)
        return int(line.result["result"])


def _close(line: Any) -> None:
    """Close the connection, ignoring errors."""
    with suppress(Exception):
        line.unbind()
    with suppress(Exception):
        line.socket.close()  # which a failed handshake leaves open


@contextmanager
def _translating() -> Iterator[None]:
    """Translate the library's errors without their text, which may contain the user's input."""
    from ldap3.core.exceptions import LDAPException

    try:
        yield
    except (LDAPException, OSError, ValueError) as error:
        raise Unreachable("sign_on.unreachable", kind=type(error).__name__) from None


@cache
def _ldap3() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of pyasn1's names, which ldap3 2.9 still uses
        import ldap3
    return ldap3


def address(settings: LdapSettings) -> tuple[str, str, int]:
    """Return scheme, host and port of the directory; raise ``BadSettings`` for an invalid or unencrypted address."""
    parts = urlsplit(settings.server)
    with suppress(ValueError):
        if parts.scheme in ("ldap", "ldaps") and parts.hostname and parts.path in ("", "/"):
            if settings.plain and not is_loopback(parts.hostname):
                raise BadSettings("sign_on.plain", server=settings.server)
            return parts.scheme, parts.hostname, parts.port or (LDAPS if parts.scheme == "ldaps" else STARTTLS)
    raise BadSettings("sign_on.server", server=settings.server)


def is_loopback(host: str) -> bool:
    """Whether ``host`` is this machine."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def read_secret(file: str) -> str:
    """Return the password in ``file`` ("" without one). The settings never contain it: more people read them."""
    if not file:
        return ""
    try:
        return contents(Path(file), SECRET_BYTES).decode().strip()
    except (InputError, UnicodeDecodeError):
        raise BadSettings("sign_on.secret", file=file) from None
