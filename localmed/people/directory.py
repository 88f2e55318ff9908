"""The hospital's directory (LDAP) checks a password and says in which groups somebody is.

One server is dialled, the one of the settings: no referral is followed, no name of the reply is. The line is
encrypted, by ``ldaps`` or by StartTLS before anything is said, and the server's certificate must hold; without TLS only
this machine is dialled. An empty password is refused here: a directory takes it for an anonymous bind, which succeeds.
What was typed is escaped before it stands in a filter, and the account is called as the directory spells it.

The result code of every reply is read (RFC 4511). A search that met a limit, was referred elsewhere or named only a
range of groups is no result: nobody gets fewer rights because of it (``DirectoryFault``, which the administrator is
told). Nobody signs in as the account that looks people up, so that no guess at its password reaches the directory; and
where the directory refuses that account's own password it is not sent again for a while, or it would be locked.
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
REFUSED_SECONDS = 300.0  # for which a password of the looking account that was refused is not tried again
SUCCESS, NO_CREDENTIALS, AWAY = 0, 49, (51, 52)  # results of LDAP; busy and unavailable
# Results of a bind by which no password was judged: errors of operation and protocol, limits, a method or a line that
# the directory does not take, a referral. Every other one counts as a wrong password.
NOT_JUDGED = (1, 2, 3, 7, 8, 10, 11, 13, 80, *AWAY)

refusals: dict[bytes, float] = {}  # digests of the looking accounts that were refused, and when (monotonic)


class Person(NamedTuple):
    """Somebody whom a directory or provider has recognised: name, groups, and an id that outlasts a change of name."""

    user: str
    groups: frozenset[str]
    subject: str = ""


def person(user: str, password: str, settings: LdapSettings) -> Person:
    """Whoever is called ``user`` and has ``password``; raise ``UsageError`` for nobody, ``Unreachable``."""
    if not user.strip() or not password:
        raise UsageError("account.not_known")
    with _looking(settings) as looking:
        entry = _entry(looking, user, settings)
        name, groups = _name(entry, settings), _groups(looking, entry, settings)
    if _looks_people_up(entry, settings):
        raise UsageError("account.not_known")
    with _open(settings) as line:
        code = _bind(line, entry["dn"], password)
    if code in NOT_JUDGED:
        raise Unreachable("sign_on.result", code=code)
    if code != SUCCESS:
        raise UsageError("account.not_known")
    return Person(name, groups)


def reachable(settings: LdapSettings) -> bool:
    """Whether the directory answers and lets the looking account in."""
    with suppress(Unreachable), _looking(settings):
        return True
    return False


def examine(settings: LdapSettings) -> None:
    """Look for somebody whom nobody is called, as each sign-in does; raise ``Unreachable`` for what would go wrong."""
    nobody = {"dn": f"cn=localmed-doctor,{settings.base}", "attributes": {}}
    with _looking(settings) as looking:
        _searched(looking, settings.base, settings.filter.replace("{user}", "localmed-doctor"), settings)
        _groups(looking, nobody, settings)


def _entry(looking: Any, user: str, settings: LdapSettings) -> Mapping[str, Any]:
    """The one entry of ``user``; raise ``UsageError`` for none and for several."""
    from ldap3.utils.conv import escape_filter_chars

    query = settings.filter.replace("{user}", escape_filter_chars(user))
    found_entries, _ = _searched(looking, settings.base, query, settings)
    if len(found_entries) != 1:
        raise UsageError("account.not_known")
    return found_entries[0]


def _searched(
    looking: Any,
    base: str,
    query: str,
    settings: LdapSettings,
    attributes: Sequence[str] = (),
    scope: Literal["SUBTREE", "BASE"] = "SUBTREE",
) -> tuple[list[Mapping[str, Any]], bool]:
    """What a search found, and whether the directory says that more lies elsewhere; raise ``DirectoryFault``."""
    wanted = list(attributes or filter(None, (settings.name_attribute, settings.group_attribute)))
    seconds = max(1, round(settings.seconds))
    with _translated():
        looking.search(base, query, scope, attributes=wanted, size_limit=MOST_GROUPS, time_limit=seconds)
        code, response = looking.result["result"], looking.response or ()
    if code in AWAY:
        raise Unreachable("sign_on.result", code=code)
    if code != SUCCESS:
        raise DirectoryFault("sign_on.partial", code=code, base=base)
    kinds = [entry.get("type") for entry in response]
    return [entry for entry in response if entry.get("type") == "searchResEntry"], "searchResRef" in kinds


def _looks_people_up(entry: Mapping[str, Any], settings: LdapSettings) -> bool:
    """Whether ``entry`` is the looking account, named by its DN, or as in Active Directory: its name with a domain."""
    plain = settings.bind_dn.rpartition("\\")[2].partition("@")[0].casefold()
    names = {name.casefold() for name in _values(entry, settings.name_attribute)}
    return _same_name(entry["dn"], settings.bind_dn) or plain in names


def _same_name(one: str, other: str) -> bool:
    """Whether two DNs name the same entry: their case, and blanks around their parts, mean nothing."""
    from ldap3.core.exceptions import LDAPInvalidDnError
    from ldap3.utils.dn import parse_dn

    def parts(name: str) -> list[tuple[str, str]]:
        return [(kind.strip().casefold(), value.strip().casefold()) for kind, value, _ in parse_dn(name)]

    with suppress(LDAPInvalidDnError):
        return parts(one) == parts(other)
    return one.casefold() == other.casefold()


def _name(entry: Mapping[str, Any], settings: LdapSettings) -> str:
    names = _values(entry, settings.name_attribute)
    if not names:
        raise UsageError("account.not_known")
    return names[0]


def _groups(looking: Any, entry: Mapping[str, Any], settings: LdapSettings) -> frozenset[str]:
    """The names (DNs) of all groups that the entry names or that name the entry; raise ``DirectoryFault``."""
    from ldap3.utils.conv import escape_filter_chars

    attribute = settings.group_attribute
    groups = set(_every_value(looking, entry, attribute, settings)) if attribute else set()
    if settings.group_base:
        query = settings.group_filter.replace("{dn}", escape_filter_chars(entry["dn"]))
        found_groups, elsewhere = _searched(looking, settings.group_base, query, settings)
        if elsewhere:
            raise DirectoryFault("sign_on.elsewhere", base=settings.group_base)
        groups |= {group["dn"] for group in found_groups}
    return frozenset(groups)


def _values(entry: Mapping[str, Any], attribute: str) -> list[str]:
    """The texts of an attribute, whose name has no case."""
    return next((values for name, values in _attributes(entry) if name == attribute.casefold()), [])


def _attributes(entry: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    for name, value in entry["attributes"].items():
        yield name.casefold(), [str(one) for one in value] if isinstance(value, list) else [str(value)]


def _every_value(looking: Any, entry: Mapping[str, Any], attribute: str, settings: LdapSettings) -> list[str]:
    """The texts of an attribute, also where the directory (Active Directory) tells long ones range by range."""
    start, values = f"{attribute};range=".casefold(), _values(entry, attribute)
    while part := next((one for one in _attributes(entry) if one[0].startswith(start)), None):
        values += part[1]
        if part[0].endswith("-*"):
            return values
        following = f"{attribute};range={len(values)}-*"
        entries, _ = _searched(looking, entry["dn"], "(objectClass=*)", settings, (following,), "BASE")
        if not part[1] or len(values) > MOST_GROUPS or len(entries) != 1:
            raise DirectoryFault("sign_on.range", attribute=attribute)
        entry = entries[0]
        if not any(name.startswith(start) for name, _ in _attributes(entry)):
            raise DirectoryFault("sign_on.range", attribute=attribute)
    return values


# --- the line ---------------------------------------------------------------------------------------------------------


@contextmanager
def _looking(settings: LdapSettings) -> Iterator[Any]:
    """A line on which the looking account has shown its password; raise ``DirectoryFault`` where it is refused."""
    password = secret_of(settings.bind_password_file)
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
    """A line to the directory on which nobody has shown a password yet; closed after the block."""
    ldap3, (scheme, host, port) = _ldap3(), address(settings)
    with _translated():
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
        with _translated():
            line.open(read_server_info=False)
            if scheme == "ldap" and not settings.plain and not line.start_tls(read_server_info=False):
                raise Unreachable("sign_on.unreachable", kind="StartTLS")
        yield line
    finally:
        _close(line)


def _bind(line: Any, dn: str, password: str) -> int:
    """The directory's result for ``dn`` ("": nobody) with ``password``."""
    ldap3 = _ldap3()
    with _translated():
        line.user, line.password = dn or None, password or None
        line.authentication = ldap3.SIMPLE if dn else ldap3.ANONYMOUS
        line.bind(read_server_info=False)
        return int(line.result["result"])


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
