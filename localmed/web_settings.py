"""Settings of the window (``[web]`` of the settings file): logins, history, who may be served."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LdapSettings:
    """The hospital's directory, which checks passwords (``[web.ldap]``). Nothing is dialled without ``server``."""

    server: str = ""  # "ldaps://directory.hospital.example", or "ldap://..." with StartTLS
    ca: str = ""  # file (PEM) of whoever signed its certificate; "": those that this machine trusts
    plain: bool = False  # without TLS: a directory on this machine alone
    bind_dn: str = ""  # the account that looks people up; "": anonymous
    bind_password_file: str = ""  # with its password
    base: str = ""  # below which people are
    filter: str = "(uid={user})"  # who somebody is; of Active Directory (sAMAccountName={user})
    name_attribute: str = "uid"  # as which an account is called here; sAMAccountName
    group_attribute: str = "memberOf"  # in which an entry names its groups; "": it does not
    group_base: str = ""  # below which groups are that name their members; "": none are searched
    group_filter: str = "(|(member={dn})(uniqueMember={dn}))"
    roles: tuple[str, ...] = ()  # "DN of a group -> role [groups of readers]"; see operations/sign_on.py
    seconds: float = 5.0  # for the directory to answer


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """The hospital's single sign-on, OpenID Connect (``[web.oidc]``). Nothing is dialled without ``issuer``."""

    issuer: str = ""  # "https://login.hospital.example/realms/hospital": the only server that is called
    ca: str = ""  # file (PEM) of whoever signed its certificate; "": those that this machine trusts
    client_id: str = ""
    secret_file: str = ""  # with the client's secret; "": a public client, by PKCE alone
    callback: str = (
        ""  # the address that the provider leads back to, behind a proxy; "": /login/back of what was opened
    )
    scopes: tuple[str, ...] = ("openid", "profile")
    user_claim: str = "preferred_username"
    groups_claim: str = "groups"
    ask_again: bool = (
        True  # the provider asks who it is each time: on a shared PC the one before may be signed in there
    )
    roles: tuple[str, ...] = ()  # "group -> role [groups of readers]"
    seconds: float = 5.0  # for the provider to answer
    leeway_seconds: float = 60.0  # between its clock and ours


@dataclass(frozen=True, slots=True)
class WebSettings:
    """How long a login and a kept answer last, and what one visitor may cost."""

    names: tuple[str, ...] = ()  # host names by which browsers may call the server, beside localhost and --host
    idle_minutes: float = 15.0  # without a page: signed out; NIST SP 800-63B asks for 30 at most, a shared PC for less
    login_hours: float = 12.0  # then signed out however busy: a shift
    wrong_passwords: int = 5  # in a row for an account, then the computer that they came from waits
    wrong_accounts: int = 20  # that one computer tried in vain within an hour, then it waits for every account
    lock_minutes: float = 15.0  # at most that it waits, see operations/throttle.py
    password_characters: int = 12  # at least
    history_days: int = 7  # that an answer is kept for whoever asked; 0: until they sign out
    report_days: int = 365  # that what a reader said of an answer is kept, with question and answer; 0: none is taken
    answers_at_once: int = 2  # that one process makes; models work for one at a time, the rest of an answer does not
    answers_waiting: int = 16  # behind them, then 429; half of the threads that answer requests stay free for search
    answers_for_one: int = 3  # of one user, at work and waiting
    body_bytes: int = 2 * 2**20  # of a request that is no upload; a question or record has some thousand characters
    incident_question: bool = False  # whether an exported incident holds what was asked though nobody reported it
    ldap: LdapSettings = field(default_factory=LdapSettings)
    oidc: OidcSettings = field(default_factory=OidcSettings)
    break_glass: tuple[str, ...] = ()  # local accounts for when directory and provider are down, and then only
    directory_days: int = 30  # without signing in, then tokens of an account of a directory or provider do not hold
    second_person: bool = False  # whether what somebody uploads must be published by another, who stands as approver
    question_characters: int = 20_000  # of what is typed: a question of a case; what is longer is refused with a word
