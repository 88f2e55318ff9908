"""Signing in by the hospital's directory, against OpenLDAP's own server; skipped where there is none (CI has one)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain.accounts import Account, SessionRole
from localmed.errors import BadSettings, Unreachable, UsageError
from localmed.operations import accounts, directory, sign_on, tokens
from localmed.operations.audit import Audit
from localmed.operations.sign_on import Source
from localmed.session import Session, local_caller
from localmed.site import Site
from localmed.web_settings import LdapSettings, WebSettings
from tests.fakes import HashedWords
from tests.web import slapd
from tests.web.conftest import PASSWORD, Clients, OpenWindow, make_accounts

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
    with closing(Audit(hospital.settings.data)) as log:
        assert [
            entry.subject
            for entry in log.entries()
            if entry.action == "account sign-on" and entry.outcome.startswith("planned")
        ] == ["wu", "li"]


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
    [("wu", "wrong"), ("wu", ""), ("", slapd.PASSWORD), ("nobody", slapd.PASSWORD), ("*", slapd.PASSWORD),
     ("wu)(uid=*", slapd.PASSWORD), ("star*", slapd.PASSWORD), ("w*", slapd.PASSWORD), ("wu\0", slapd.PASSWORD)],
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
            with closing(Audit(clients.settings.data)) as log:
                outcomes = [
                    entry.outcome for entry in log.entries() if (entry.action, entry.actor) == ("login", "admin")
                ]
            assert outcomes == ["admin; break glass"]


def test_groups_become_rights() -> None:
    lines = ("cn=A,dc=x -> safety", "cn=B, DC=x -> reader one", "C -> reader two")
    assert sign_on.mapped(frozenset({"CN=b,dc=X", "C"}), lines) == (SessionRole.READER, ("one", "two"))
    assert sign_on.mapped(frozenset({"cn=a,dc=x", "C"}), lines) == (SessionRole.SAFETY, ("two",))
    assert sign_on.mapped(frozenset({"cn=z"}), lines) is None
    for wrong in ("cn=a admin", " -> admin", "cn=a -> king", "cn=a -> reader ../x"):
        with pytest.raises(UsageError):
            sign_on.mapped(frozenset(), (wrong,))


@pytest.mark.parametrize("server", ["http://x", "ldaps://", "ldap://x/dc=y", "x", "ldaps://x:99999"])
def test_what_is_no_directory_is_refused_at_the_start(server: str) -> None:
    with pytest.raises(BadSettings):
        sign_on.checked(WebSettings(ldap=LdapSettings(server)))
    with pytest.raises(BadSettings):
        sign_on.checked(WebSettings(ldap=LdapSettings("ldap://directory.example", plain=True)))


def test_an_account_of_one_source_is_not_taken_over_by_another(copied_clients: Clients) -> None:
    session = Session(copied_clients.site, local_caller(copied_clients.settings))
    with pytest.raises(UsageError, match="another account"):
        sign_on.store(session, Account("admin", SessionRole.ADMIN, (), Source.PROVIDER), "subject")
    made = Account("zhou", SessionRole.READER, (), Source.PROVIDER)
    sign_on.store(session, made, "subject")
    with pytest.raises(UsageError, match="another account"):
        sign_on.store(session, made, "somebody else who has the name now")
    accounts.change(session, replace(made, disabled=True))
    with pytest.raises(UsageError, match="does not know"):
        sign_on.store(session, made, "subject")
