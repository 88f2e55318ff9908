"""The hospital's directory (LDAP) checks a password and says in which groups somebody is.

One server is dialled, the one of the settings: no referral is followed, no name of the reply is. The line is
encrypted, by ``ldaps`` or by StartTLS before anything is said, and the server's certificate must hold; without TLS only
this machine is dialled. An empty password is refused here: a directory takes it for an anonymous bind, which succeeds.
What was typed is escaped before it stands in a filter, and the account is called as the directory spells it.
"""

from __future__ import annotations

import ipaddress
import ssl
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from localmed.errors import BadSettings, InputError, Unreachable, UsageError
from localmed.files import contents
from localmed.web_settings import LdapSettings

SECRET_BYTES = 4_096  # of a file with a password
MOST_GROUPS = 2_000  # of one person
LDAPS, STARTTLS = 636, 389  # ports
BUSY = (51, 52)  # results of LDAP: busy, unavailable


class Person(NamedTuple):
    """Somebody whom a directory or provider has recognised: name, groups, and an id that outlasts a change of name."""

    user: str
    groups: frozenset[str]
    subject: str = ""


def person(user: str, password: str, settings: LdapSettings) -> Person:
    """Whoever is called ``user`` and has ``password``; raise ``UsageError`` for nobody, ``Unreachable``."""
    if not user.strip() or not password:
        raise UsageError("account.not_known")
    with _connected(settings) as looking:
        entry = _entry(looking, user, settings)
        name, groups = _name(entry, settings), _groups(looking, entry, settings)
    with _connected(settings, entry["dn"], password):
        pass
    return Person(name, groups)


def reachable(settings: LdapSettings) -> bool:
    """Whether the directory answers and lets the looking account in."""
    with suppress(Unreachable), _connected(settings):
        return True
    return False


def _entry(looking: Any, user: str, settings: LdapSettings) -> Mapping[str, Any]:
    """The one entry of ``user``; raise ``UsageError`` for none and for several."""
    from ldap3.utils.conv import escape_filter_chars

    found_entries = _searched(
        looking, settings.base, settings.filter.replace("{user}", escape_filter_chars(user)), settings
    )
    if len(found_entries) != 1:
        raise UsageError("account.not_known")
    return found_entries[0]


def _searched(looking: Any, base: str, query: str, settings: LdapSettings) -> list[Mapping[str, Any]]:
    attributes = list(filter(None, (settings.name_attribute, settings.group_attribute)))
    with _translated():
        looking.search(
            base, query, attributes=attributes, size_limit=MOST_GROUPS, time_limit=max(1, round(settings.seconds))
        )
        return [entry for entry in looking.response or () if entry.get("type") == "searchResEntry"]


def _name(entry: Mapping[str, Any], settings: LdapSettings) -> str:
    names = _values(entry, settings.name_attribute)
    if not names:
        raise UsageError("account.not_known")
    return names[0]


def _groups(looking: Any, entry: Mapping[str, Any], settings: LdapSettings) -> frozenset[str]:
    """The names (DNs) of the groups that the entry names or that name the entry."""
    from ldap3.utils.conv import escape_filter_chars

    groups = set(_values(entry, settings.group_attribute)) if settings.group_attribute else set()
    if settings.group_base:
        query = settings.group_filter.replace("{dn}", escape_filter_chars(entry["dn"]))
        groups |= {group["dn"] for group in _searched(looking, settings.group_base, query, settings)}
    return frozenset(groups)


def _values(entry: Mapping[str, Any], attribute: str) -> list[str]:
    """The texts of an attribute, whose name has no case."""
    for name, value in entry["attributes"].items():
        if name.casefold() == attribute.casefold():
            return [str(one) for one in value] if isinstance(value, list) else [str(value)]
    return []


# --- the line ---------------------------------------------------------------------------------------------------------


@contextmanager
def _connected(settings: LdapSettings, dn: str = "", password: str = "") -> Iterator[Any]:
    """A line on which ``dn`` (default: the looking account) has shown its password; closed after the block."""
    line = _line(settings, dn or settings.bind_dn, password if dn else secret_of(settings.bind_password_file))
    try:
        yield line
    finally:
        _close(line)


def _line(settings: LdapSettings, dn: str, password: str) -> Any:
    ldap3, (scheme, host, port) = _ldap3(), address(settings)
    with _translated():
        tls = ldap3.Tls(validate=ssl.CERT_REQUIRED, ca_certs_file=settings.ca or None, sni=host)
        server = ldap3.Server(
            host, port, use_ssl=scheme == "ldaps", tls=tls, get_info=ldap3.NONE, connect_timeout=settings.seconds
        )
        line = ldap3.Connection(
            server, dn or None, password or None, auto_referrals=False, raise_exceptions=False, read_only=True,
            receive_timeout=max(1, round(settings.seconds)),
        )  # fmt: skip
        try:
            line.open(read_server_info=False)
            if scheme == "ldap" and not settings.plain and not line.start_tls(read_server_info=False):
                raise Unreachable("sign_on.unreachable", kind="StartTLS")
            if line.bind(read_server_info=False):
                return line
            code = line.result["result"]
        except BaseException:
            _close(line)
            raise
        _close(line)
    if dn != settings.bind_dn and code not in BUSY:
        raise UsageError("account.not_known")
    raise Unreachable("sign_on.refused", code=code)


def _close(line: Any) -> None:
    """End the line; how it ends changes nothing of what was said on it."""
    with suppress(Exception):
        line.unbind()
    with suppress(Exception):
        line.socket.close()  # which a failed handshake leaves open


@contextmanager
def _translated() -> Iterator[None]:
    """What the library raises, without its text: it may hold what was typed."""
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
    """Scheme, host and port of the directory; raise ``BadSettings`` for none, and for a line that could be read."""
    parts = urlsplit(settings.server)
    with suppress(ValueError):
        if parts.scheme in ("ldap", "ldaps") and parts.hostname and parts.path in ("", "/"):
            if settings.plain and not local(parts.hostname):
                raise BadSettings("sign_on.plain", server=settings.server)
            return parts.scheme, parts.hostname, parts.port or (LDAPS if parts.scheme == "ldaps" else STARTTLS)
    raise BadSettings("sign_on.server", server=settings.server)


def local(host: str) -> bool:
    """Whether ``host`` is this machine."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def secret_of(file: str) -> str:
    """The password in ``file`` ("" for no file): never in the settings, which are read by more people."""
    if not file:
        return ""
    try:
        return contents(Path(file), SECRET_BYTES).decode().strip()
    except (InputError, UnicodeDecodeError):
        raise BadSettings("sign_on.secret", file=file) from None
