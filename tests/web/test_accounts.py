"""Signing in and out, roles, locks, and what another site's page or a stale form cannot do."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace

import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient

from localmed.cli.main import main
from localmed.domain.errors import Busy, UsageError
from localmed.library.state import FILE
from localmed.people import accounts, throttle
from localmed.site.audit import Audit
from localmed.site.session import Session, local_caller
from localmed.web import application
from localmed.web.visits import LOGIN_COOKIE
from tests.web.conftest import BASE, PASSWORD, Client, Clients
from tests.words import said


@pytest.mark.slow
def test_the_first_start_makes_the_admin_by_the_code_of_the_console(empty_clients: Clients) -> None:
    client, data = empty_clients(), empty_clients.settings.data
    code = accounts.first_code(data)
    assert client.get("/").url.path == "/start"
    fields = {"user": "Dr Wu", "password": PASSWORD, "again": PASSWORD}
    assert client.form("/start", code="0" * 10, **fields).status_code == 400
    assert accounts.has_no_account(data)
    assert client.form("/start", code=code, **fields).url.path == "/"
    assert [(account.user, account.role) for account in accounts.accounts(data)] == [("dr wu", "admin")]
    assert accounts.first_code(data) == ""
    again = empty_clients().form("/start", code=code, **fields)
    assert again.status_code == 400, "the code is void"


@pytest.mark.slow
def test_a_code_that_was_guessed_at_is_void(empty_clients: Clients) -> None:
    client, code = empty_clients(), accounts.first_code(empty_clients.settings.data)
    fields = {"user": "wu", "password": PASSWORD, "again": PASSWORD}
    for _ in range(accounts.WRONG_CODES):
        client.form("/start", code="wrong", **fields)
    assert client.form("/start", code=code, **fields).status_code == 400


@pytest.mark.slow
def test_nobody_sees_a_page_who_is_not_signed_in(client: Clients) -> None:
    reply = client().get("/account", follow_redirects=False)
    assert (reply.status_code, reply.headers["location"]) == (303, "/login?next=%2Faccount&notice=signed_out")


@pytest.mark.parametrize(("user", "password"), [("reader", "wrong"), ("nobody", PASSWORD), ("", ""), ("reader", "")])
def test_what_is_wrong_is_not_told(copied_clients: Clients, user: str, password: str) -> None:
    reply = copied_clients().form("/login", user=user, password=password)
    assert reply.status_code == 401
    assert LOGIN_COOKIE not in reply.cookies
    assert "user or password is wrong" in reply.text


def from_(clients: Clients, address: str) -> Client:
    """A client at another computer."""
    return Client(TestClient(application.create(clients.site), base_url=BASE, client=(address, 1)))


@pytest.mark.parametrize("user", ["admin", "nobody at all"])
@pytest.mark.slow
def test_wrong_passwords_keep_out_the_computer_that_they_come_from(copied_clients: Clients, user: str) -> None:
    ward, office = from_(copied_clients, "10.0.0.5"), from_(copied_clients, "10.0.0.6")
    tries = [ward.form("/login", user=user, password="wrong") for _ in range(6)]
    assert [reply.status_code for reply in tries] == [401] * 5 + [429]
    assert "wait 1" in tries[-1].text
    assert ward.form("/login", user=user, password=PASSWORD).status_code == 429, "the right one learns nothing either"
    assert ward.form("/login", user="reader", password=PASSWORD).status_code == 200, "another account is not held up"
    assert office.form("/login", user=user, password=PASSWORD).status_code == (200 if user == "admin" else 401)


@pytest.mark.slow
def test_each_wrong_password_costs_twice_as_long(copied_clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    data, settings, clock = copied_clients.settings.data, copied_clients.settings.web, [time.time()]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    waits = []
    for _ in range(11):
        with pytest.raises(UsageError):
            accounts.sign_in(data, "reader", "wrong", settings)
        with pytest.raises((Busy, UsageError)) as raised:
            accounts.sign_in(data, "reader", "wrong", settings)
        waits.append(int(str(dict(raised.value.message.parameters).get("seconds", 0))))
        clock[0] += waits[-1]
    assert waits == [0, 0, 16, 31, 61, 121, 241, 481, 901, 901, 901]
    clock[0] += throttle.FORGOTTEN + 1
    for _ in range(2):  # a right password ends the count
        for _ in range(settings.wrong_passwords - 1):
            with pytest.raises(UsageError):
                accounts.sign_in(data, "reader", "wrong", settings)
        assert accounts.sign_in(data, "reader", PASSWORD, settings).user == "reader"


@pytest.mark.slow
def test_the_console_gives_an_administrator_who_is_kept_out_a_new_password(copied_clients: Clients) -> None:
    client, data = copied_clients(), copied_clients.settings.data
    for _ in range(6):
        client.form("/login", user="admin", password="wrong")
    fresh = "another password of some length"
    called = CliRunner().invoke(main, ["--data", str(data), "accounts", "password", "admin"], input=f"{fresh}\n")
    assert (called.exit_code, called.exception) == (0, None)
    assert client.form("/login", user="admin", password=fresh).status_code == 200
    listed = CliRunner().invoke(main, ["--data", str(data), "accounts", "list"])
    assert "reader  reader  ward" in listed.output.splitlines()
    assert fresh not in called.output


def test_a_login_is_kept_by_its_hash_and_ends_on_the_server(client: Clients) -> None:
    reader = client("reader")
    token = reader.http.cookies[LOGIN_COOKIE]
    stored = b"".join(path.read_bytes() for path in client.settings.data.glob("site.sqlite*"))
    assert token.encode() not in stored
    assert PASSWORD.encode() not in stored
    reply = reader.http.post("/logout", data={"form": reader.token()}, follow_redirects=False)
    assert reply.headers["clear-site-data"] == '"cache"'
    reader.http.cookies.set(LOGIN_COOKIE, token)
    assert reader.get("/account").url.path == "/login"


def test_an_idle_login_ends(client: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = client("reader")
    late = time.time() + 60 * client.settings.web.idle_minutes + 1
    monkeypatch.setattr(time, "time", lambda: late)
    assert reader.get("/account").url.path == "/login"


def test_a_login_in_use_is_noted_and_no_page_waits_for_that(client: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else can write until the page has come; the note keeps the login from ending by idleness."""
    reader, idle, begun = client("reader"), 60 * client.settings.web.idle_minutes, time.time()
    monkeypatch.setattr(time, "time", lambda: begun + 0.6 * idle)
    with closing(sqlite3.connect(client.settings.data / FILE)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert reader.get("/account").url.path == "/account"
        [note] = [thread for thread in threading.enumerate() if thread.name == "login"]
    note.join(60)
    monkeypatch.setattr(time, "time", lambda: begun + 1.2 * idle)
    assert reader.get("/account").url.path == "/account"


def test_what_another_site_or_a_stale_form_sends_changes_nothing(client: Clients) -> None:
    reader = client("reader")
    for token in ("", "x", client("admin").token()):
        assert reader.http.post("/logout", data={"form": token}).status_code == 403
    for header in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}):
        assert reader.http.post("/logout", data={"form": reader.token()}, headers=header).status_code == 403
    assert reader.get("/account").url.path == "/account"
    for host, status in (("evil.example", 400), ("127.0.0.1:8765", 200)):
        assert client().get("/login", headers={"host": host}).status_code == status


def test_a_changed_account_must_sign_in_again(copied_clients: Clients) -> None:
    reader = copied_clients("reader")
    session = Session(copied_clients.site, local_caller(copied_clients.settings))
    accounts.change(session, replace(accounts.account(session.data, "reader"), disabled=True))
    assert reader.get("/account").url.path == "/login"
    assert copied_clients().form("/login", user="reader", password=PASSWORD).status_code == 401


def test_logins_are_audited_as_the_user(copied_clients: Clients) -> None:
    copied_clients("safety")
    with Audit(copied_clients.settings.data) as log:
        entry = log.entries()[-1]
    assert (entry.actor, entry.action, entry.outcome) == ("safety", "login", "safety")


@pytest.mark.slow
def test_ones_own_password(copied_clients: Clients) -> None:
    reader = copied_clients("reader")
    fresh = "another password of some length"
    fields = {"password": PASSWORD, "fresh": fresh, "again": fresh}
    assert reader.form("/account/password", **{**fields, "password": "wrong"}).status_code == 400
    assert reader.form("/account/password", **{**fields, "again": "x"}).status_code == 400
    assert "Saved" in reader.form("/account/password", **fields).text
    assert copied_clients().form("/login", user="reader", password=PASSWORD).status_code == 401
    assert copied_clients().form("/login", user="reader", password=fresh).status_code == 200


@pytest.mark.slow
def test_an_admin_makes_and_changes_accounts(copied_clients: Clients) -> None:
    admin = copied_clients("admin")
    page = admin.form("/admin/accounts", user="Dr Sun", password=PASSWORD, role="librarian", groups="")
    assert "dr sun" in page.text
    with_login = copied_clients()
    assert with_login.form("/login", user="dr sun", password=PASSWORD).status_code == 200
    assert admin.form("/admin/accounts/dr sun", role="reader", groups="ward icu").status_code == 200
    changed = accounts.account(copied_clients.settings.data, "dr sun")
    assert (changed.role, changed.groups) == ("reader", ("ward", "icu"))
    assert with_login.get("/account").url.path == "/login"
    assert admin.form("/admin/accounts/admin", role="reader").status_code == 400, "the last administrator"
    assert admin.form("/admin/accounts/reader/password", password="short").status_code == 400


@pytest.mark.parametrize("user", ["reader", "librarian", "safety"])
def test_accounts_are_for_admins_alone(client: Clients, user: str) -> None:
    visitor = client(user)
    assert visitor.get("/admin/accounts").status_code == 403
    assert visitor.form("/admin/accounts", user="x", password=PASSWORD, role="admin").status_code == 403
    assert visitor.get("/start/library").status_code == 403


@pytest.mark.slow
def test_two_tabs_are_one_login(client: Clients) -> None:
    reader = client("reader")
    other = client()
    other.http.cookies.set(LOGIN_COOKIE, reader.http.cookies[LOGIN_COOKIE])
    token = other.token()
    answers = [tab.form("/ask", form=token, question="dose of vancomycin").url.path for tab in (reader, other)]
    assert len(set(answers)) == 2, "neither takes the other's place"
    assert all(path in reader.get("/history").text for path in answers)
    reader.form("/logout")
    late = other.http.post("/ask", data={"form": token, "question": "dose of vancomycin"})
    assert late.url.path == "/login"


def test_a_password_that_another_chose_is_changed_first(copied_clients: Clients) -> None:
    fresh = "another password of some length"
    assert (
        copied_clients("admin").form("/admin/accounts", user="lin", password=PASSWORD, role="reader").status_code == 200
    )
    lin = copied_clients("lin")
    for path in ("/", "/history", "/orders"):
        page = lin.get(path)
        assert (page.url.path, page.text.count(said("web.account.first"))) == ("/account", 1)
        assert 'href="/history"' not in page.text, "no entry of the menu that leads back here"
    assert lin.http.post("/ask", data={"form": lin.token(), "question": "x"}).url.path == "/account"
    same = lin.form("/account/password", password=PASSWORD, fresh=PASSWORD, again=PASSWORD)
    assert same.status_code == 400
    assert lin.form("/account/password", password=PASSWORD, fresh=fresh, again=fresh).url.path == "/"
    assert lin.get("/history").url.path == "/history"
    copied_clients("admin").form("/admin/accounts/lin/password", password=PASSWORD)
    again = copied_clients("lin")
    assert again.get("/history").url.path == "/account"
