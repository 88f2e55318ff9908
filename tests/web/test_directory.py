"""Signing in by the hospital's directory, against OpenLDAP's own server; skipped where there is none (CI has one)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.config import LdapSettings, Settings, WebSettings
from localmed.domain.accounts import Account, SessionRole
from localmed.domain.errors import BadSettings, Busy, DirectoryFault, Unreachable, UsageError
from localmed.people import accounts, directory, sign_on, tokens
from localmed.people.sign_on import Source
from localmed.site import alerts
from localmed.site.audit import Audit
from localmed.site.session import Session, local_caller
from localmed.site.site import Site
from tests.fakes import HashedWords
from tests.web import scripted_directory, slapd
from tests.web.conftest import PASSWORD, Clients, OpenWindow, make_accounts
from tests.web.scripted_directory import LOOKUP, Script, answering

real = pytest.mark.skipif(not Path(slapd.SLAPD).exists(), reason="there is no slapd")


@pytest.fixture(scope="module")
def ldap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slapd.Directory]:
    with slapd.running(tmp_path_factory.mktemp("slapd")) as server:
        yield server


def site_of(tmp_path: Path, web: WebSettings) -> Iterator[Clients]:
    settings = Settings(tmp_path / "data", web=web)
    make_accounts(settings)
    with Site(settings, HashedWords()) as site:
        yield Clients(settings, site)


@pytest.fixture(scope="module")
def hospital(ldap: slapd.Directory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    """A site whose people the directory knows; its local accounts are there too."""
    yield from site_of(tmp_path_factory.mktemp("site"), WebSettings(ldap=ldap.settings))


def status(clients: Clients, user: str, password: str = slapd.PASSWORD) -> int:
    return clients().form("/login", user=user, password=password).status_code


@real
@pytest.mark.slow
def test_who_the_directory_knows_signs_in_with_the_rights_of_their_groups(hospital: Clients) -> None:
    client = hospital()
    assert client.form("/login", user="WU", password=slapd.PASSWORD).status_code == 200
    assert client.get("/library/collections").status_code == 200
    assert status(hospital, "li") == 200
    made = {account.user: account for account in accounts.accounts(hospital.settings.data)}
    assert (made["wu"].role, made["wu"].groups) == (SessionRole.LIBRARIAN, ("ward3", "icu"))
    assert (made["li"].role, made["li"].groups, made["li"].source) == (
        SessionRole.READER,
        ("ward3", "icu"),
        "directory",
    )
    with Audit(hospital.settings.data) as log:
        assert [entry.subject for entry in log.entries() if entry.action == "account sign-on"] == ["wu", "li"]


@real
def test_the_directorys_password_signs_in_in_a_browser(hospital: Clients, browser: OpenWindow) -> None:
    window = browser(hospital)
    page = window.page
    for password, selector in (("wrong", "main [role=alert]"), (slapd.PASSWORD, "header .who form")):
        page.goto(window.url + "/login")
        page.fill("#user", "wu")
        page.fill("#password", password)
        page.click("main button")
        page.wait_for_selector(selector)
    page.goto(window.url + "/library/collections")
    assert "Collections" in page.inner_text("h1"), "the rights of the directory's group"


@real
@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("wu", "wrong"), ("wu", ""), ("", slapd.PASSWORD), ("*", slapd.PASSWORD), ("wu)(uid=*", slapd.PASSWORD)
    ],
)  # fmt: skip
def test_nobody_else_does(hospital: Clients, user: str, password: str) -> None:
    """Wrong and empty passwords, filters in the name, somebody without a group of the map."""
    assert status(hospital, user, password) == 401
    known = {account.user for account in accounts.accounts(hospital.settings.data) if account.source != Source.LOCAL}
    assert known <= {"wu", "li"}


@real
def test_a_name_with_a_filters_letters_is_only_a_name(ldap: slapd.Directory) -> None:
    assert directory.person("li)(uid=*", slapd.PASSWORD, ldap.settings).user == "li)(uid=*"
    assert directory.person("star*", slapd.PASSWORD, ldap.settings).groups == {f"cn=Nobody,ou=groups,{slapd.BASE}"}


@real
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # ldap3 leaves a refused TLS socket open
def test_start_tls_and_certificates(ldap: slapd.Directory, tmp_path: Path) -> None:
    started = replace(ldap.settings, server=f"ldap://localhost:{ldap.port}")
    assert directory.person("wu", slapd.PASSWORD, started).user == "wu"
    foreign = str(slapd.certificate(tmp_path)[0])
    for settings in (ldap.settings, started):
        with pytest.raises(Unreachable):
            directory.person("wu", slapd.PASSWORD, replace(settings, ca=foreign))
        with pytest.raises(Unreachable):
            directory.person(
                "wu", slapd.PASSWORD, replace(settings, server=settings.server.replace("localhost", "127.0.0.1"))
            )


@real
def test_a_right_that_was_taken_away_is_gone_at_the_next_sign_in(hospital: Clients, ldap: slapd.Directory) -> None:
    web = hospital.settings.web
    first, _ = sign_on.by_password(hospital.settings.data, "wu", slapd.PASSWORD, web)
    session = Session(hospital.site, local_caller(hospital.settings))
    sign_on.store(session, first)
    token = tokens.make(session, "wu", "ward", 300)
    assert tokens.current(hospital.settings.data, token, web)
    fewer = replace(web, ldap=replace(ldap.settings, roles=slapd.ROLES[1:]))
    sign_on.store(session, sign_on.by_password(hospital.settings.data, "wu", slapd.PASSWORD, fewer)[0])
    assert accounts.account(hospital.settings.data, "wu").role is SessionRole.READER
    assert tokens.current(hospital.settings.data, token, replace(web, directory_days=0)) is None


@real
@pytest.mark.slow
def test_the_glass_is_broken_only_while_the_directory_is_down(tmp_path: Path) -> None:
    (tmp_path / "slapd").mkdir()
    with slapd.running(tmp_path / "slapd") as server:
        for clients in site_of(tmp_path, WebSettings(ldap=server.settings, break_glass=("admin",))):
            assert status(clients, "admin", PASSWORD) == 401, "the directory answers"
            assert status(clients, "librarian", PASSWORD) == 200, "a local account of everyday"
            server.process.terminate()
            server.process.wait(10)
            assert status(clients, "wu") == 503
            assert status(clients, "admin", "wrong") == 401
            admin = clients("admin")
            assert "Emergency access: admin" in admin.get("/account").text
            assert "Emergency access: admin" in clients("safety").get("/account").text
            assert "Emergency access" not in clients("reader").get("/account").text
            with Audit(clients.settings.data) as log:
                outcomes = [
                    entry.outcome for entry in log.entries() if (entry.action, entry.actor) == ("login", "admin")
                ]
            assert outcomes == ["admin; break glass"]


# --- guesses, and results that are not whole (a scripted directory) ---------------------------------------------------


@pytest.fixture
def password_file(tmp_path: Path) -> str:
    file = tmp_path / "lookup.password"
    file.write_text(scripted_directory.PASSWORD)
    return str(file)


def outcomes(data: Path, web: WebSettings, users: list[str], password: str = "wrong") -> list[type]:
    """What becomes of signing in as each of ``users`` from one computer: the kind of the error, or ``Account``."""
    made: list[type] = []
    for user in users:
        try:
            made.append(type(sign_on.by_password(data, user, password, web, "10.0.0.5")[0]))
        except (UsageError, Busy) as error:
            made.append(type(error))
    return made


@pytest.mark.parametrize("name", [LOOKUP, "HOSPITAL\\Lookup"])
def test_two_hundred_guesses_at_the_looking_account_are_throttled_after_five(
    tmp_path: Path, password_file: str, name: str
) -> None:
    script = Script()
    with answering(script, password_file) as ldap:
        tried = outcomes(tmp_path, WebSettings(ldap=replace(ldap, bind_dn=name)), ["lookup"] * 200)
    assert tried == [UsageError] * 5 + [Busy] * 195
    assert script.binds == [name] * 5, "each looked up by the right password; no guess reached the account"


@real
def test_guesses_at_an_account_of_the_directory_are_throttled(ldap: slapd.Directory, tmp_path: Path) -> None:
    looking = replace(ldap.settings, bind_dn=f"uid=li, ou=people,{slapd.BASE}", bind_password_file=str(tmp_path / "p"))
    (tmp_path / "p").write_text(slapd.PASSWORD)
    for user in ("li", "wu"):
        assert outcomes(tmp_path, WebSettings(ldap=looking), [user] * 8) == [UsageError] * 5 + [Busy] * 3


def test_passwords_tried_on_many_accounts_slow_the_computer(tmp_path: Path, password_file: str) -> None:
    with answering(Script(), password_file) as ldap:
        web = WebSettings(ldap=ldap)
        tried = outcomes(tmp_path, web, [f"user{number}" for number in range(100)])
        assert tried == [UsageError] * web.wrong_accounts + [Busy] * (100 - web.wrong_accounts)
        right, other = scripted_directory.PASSWORD, "10.0.0.6"
        assert outcomes(tmp_path, web, ["wu"], right) == [Busy]
        assert sign_on.by_password(tmp_path, "wu", right, web, other)[0].user == "wu", "no other computer waits"


def test_a_directory_that_is_away_for_once_forgets_no_wrong_password(tmp_path: Path, password_file: str) -> None:
    script = Script()
    with answering(script, password_file) as ldap:
        web = WebSettings(ldap=ldap)
        for result, expected in ((None, [UsageError] * 4), (51, [Unreachable] * 3), (None, [UsageError, Busy])):
            script.binding = result
            assert outcomes(tmp_path, web, ["wu"] * len(expected)) == expected


@pytest.mark.parametrize("code", [19, 49])
def test_a_password_that_the_directory_refuses_counts(tmp_path: Path, password_file: str, code: int) -> None:
    with answering(Script(binding=code), password_file) as ldap:
        assert outcomes(tmp_path, WebSettings(ldap=ldap), ["wu"] * 6) == [UsageError] * 5 + [Busy]


@pytest.mark.parametrize(
    "script",
    [Script(groups=code) for code in (4, 32)]
    + [Script(people=code) for code in (4, 32)]
    + [Script(references=1), Script(memberships={"memberOf;range=0-1499": ("cn=one",)}), Script(looking=49)],
    ids=repr,
)
def test_a_result_that_is_not_whole_changes_no_right(tmp_path: Path, password_file: str, script: Script) -> None:
    """A size limit, a time limit, a referral, a range: stored groups stay, and the administrator is told."""
    with answering(Script(), password_file) as ldap:
        for clients in site_of(tmp_path, WebSettings(ldap=ldap)):
            assert status(clients, "wu", scripted_directory.PASSWORD) == 200
    script.member_of = ()
    with (
        answering(script, password_file) as ldap,
        Site(Settings(tmp_path / "data", web=WebSettings(ldap=ldap)), HashedWords()) as site,
    ):
        clients = Clients(site.settings, site)
        reply = clients().form("/login", user="wu", password=scripted_directory.PASSWORD)
        assert reply.status_code == 503
        assert accounts.account(site.data, "wu").groups == ("ward3",)
        assert [alert.kind for alert in alerts.alerts(site.data)] == ["sign_in"]
        if not script.memberships:  # which only somebody's own entry shows
            with pytest.raises(DirectoryFault):
                directory.examine(ldap)
        directory.refusals.clear()
        script.looking = script.groups = script.people = script.references = 0
        script.memberships = {}
        script.member_of = Script().member_of
        directory.examine(ldap)
        assert status(clients, "wu", scripted_directory.PASSWORD) == 200
        assert not alerts.alerts(site.data), "it is over"


def test_groups_that_are_told_range_by_range_are_read_whole(password_file: str) -> None:
    listed = tuple(f"cn={number}" for number in range(5))
    script = Script(memberships={"memberOf;range=0-2": listed[:3]}, more={"memberOf;range=3-*": listed[3:]})
    script.member_of = ()
    with answering(script, password_file) as ldap:
        assert directory.person("wu", scripted_directory.PASSWORD, ldap).groups == frozenset(listed)
        script.more = {"memberOf": ()}
        with pytest.raises(DirectoryFault):
            directory.person("wu", scripted_directory.PASSWORD, ldap)


def test_a_refused_password_of_the_looking_account_is_not_sent_again_and_again(
    tmp_path: Path, password_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the directory locks the account: each who signs in would make one wrong try."""
    script, clock = Script(looking=49), [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with answering(script, password_file) as ldap:
        web = WebSettings(ldap=ldap)
        assert outcomes(tmp_path, web, ["wu", "li"] * 5) == [DirectoryFault] * 10
        assert script.binds == [LOOKUP]
        script.looking = 0
        clock[0] += directory.REFUSED_SECONDS + 1
        assert outcomes(tmp_path, web, ["wu"], scripted_directory.PASSWORD) == [Account]


def test_groups_become_rights() -> None:
    lines = ("cn=A,dc=x -> safety", "cn=B, DC=x -> reader one", "C -> reader two")
    assert sign_on.map_groups(frozenset({"CN=b,dc=X", "C"}), lines) == (SessionRole.READER, ("one", "two"))
    assert sign_on.map_groups(frozenset({"cn=a,dc=x", "C"}), lines) == (SessionRole.SAFETY, ("two",))
    assert sign_on.map_groups(frozenset({"cn=z"}), lines) is None
    for wrong in ("cn=a admin", " -> admin", "cn=a -> king", "cn=a -> reader ../x"):
        with pytest.raises(UsageError):
            sign_on.map_groups(frozenset(), (wrong,))


@pytest.mark.parametrize("server", ["http://x", "ldaps://", "ldaps://x:99999"])
def test_what_is_no_directory_is_refused_at_the_start(server: str) -> None:
    with pytest.raises(BadSettings):
        sign_on.check_settings(WebSettings(ldap=LdapSettings(server)))
    with pytest.raises(BadSettings):
        sign_on.check_settings(WebSettings(ldap=LdapSettings("ldap://directory.example", plain=True)))


def test_an_account_of_one_source_is_not_taken_over_by_another(copied_clients: Clients) -> None:
    session = Session(copied_clients.site, local_caller(copied_clients.settings))
    with pytest.raises(UsageError, match="another account"):
        sign_on.store(session, Account("admin", SessionRole.ADMIN, (), Source.PROVIDER), "subject")
    made = Account("zhou", SessionRole.READER, (), Source.PROVIDER)
    sign_on.store(session, made, "subject")
    with pytest.raises(UsageError, match="another account"):
        sign_on.store(session, made, "somebody else who has the name now")
    accounts.change(session, replace(made, disabled=True))
    with pytest.raises(UsageError, match="refused this user"):
        sign_on.store(session, made, "subject")
