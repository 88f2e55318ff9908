"""Signing in and out, roles, locks, and what another site's page or a stale form cannot do."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace

import pytest

from localmed.operations import accounts
from localmed.operations.audit import Audit
from localmed.session import Session, local_caller
from localmed.web.visits import LOGIN_COOKIE
from tests.web.conftest import PASSWORD, Clients


def test_the_first_start_makes_the_admin_by_the_code_of_the_console(empty_clients: Clients) -> None:
    client, data = empty_clients(), empty_clients.settings.data
    code = accounts.first_code(data)
    assert client.get("/").url.path == "/start"
    fields = {"user": "Dr Wu", "password": PASSWORD, "again": PASSWORD}
    assert client.form("/start", code="0" * 10, **fields).status_code == 400
    assert accounts.no_account(data)
    assert client.form("/start", code=code, **fields).url.path == "/"
    assert [(account.user, account.role) for account in accounts.accounts(data)] == [("dr wu", "admin")]
    assert accounts.first_code(data) == ""
    again = empty_clients().form("/start", code=code, **fields)
    assert again.status_code == 400, "the code is void"


def test_a_code_that_was_guessed_at_is_void(empty_clients: Clients) -> None:
    client, code = empty_clients(), accounts.first_code(empty_clients.settings.data)
    fields = {"user": "wu", "password": PASSWORD, "again": PASSWORD}
    for _ in range(accounts.WRONG_CODES):
        client.form("/start", code="wrong", **fields)
    assert client.form("/start", code=code, **fields).status_code == 400


def test_nobody_sees_a_page_who_is_not_signed_in(client: Clients) -> None:
    reply = client().get("/account", follow_redirects=False)
    assert (reply.status_code, reply.headers["location"]) == (303, "/login?next=%2Faccount&notice=signed_out")


@pytest.mark.parametrize(("user", "password"), [("reader", "wrong"), ("nobody", PASSWORD), ("", ""), ("reader", "")])
def test_what_is_wrong_is_not_told(client: Clients, user: str, password: str) -> None:
    reply = client().form("/login", user=user, password=password)
    assert reply.status_code == 401
    assert LOGIN_COOKIE not in reply.cookies
    assert "user or password is wrong, or the account is locked" in reply.text


def test_an_account_is_locked_after_wrong_passwords(copied_clients: Clients) -> None:
    client = copied_clients()
    for _ in range(copied_clients.settings.web.wrong_passwords):
        client.form("/login", user="reader", password="wrong")
    assert client.form("/login", user="reader", password=PASSWORD).status_code == 401
    assert client.form("/login", user="admin", password=PASSWORD).status_code == 200


def test_signing_out_ends_the_login_on_the_server(client: Clients) -> None:
    reader = client("reader")
    token = reader.http.cookies[LOGIN_COOKIE]
    reply = reader.http.post("/logout", data={"form": reader.token()}, follow_redirects=False)
    assert reply.headers["clear-site-data"] == '"cache"'
    reader.http.cookies.set(LOGIN_COOKIE, token)
    assert reader.get("/account").url.path == "/login"


def test_an_idle_login_ends(client: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = client("reader")
    late = time.time() + 60 * client.settings.web.idle_minutes + 1
    monkeypatch.setattr(time, "time", lambda: late)
    assert reader.get("/account").url.path == "/login"


def test_the_token_is_not_stored(client: Clients) -> None:
    token = client("reader").http.cookies[LOGIN_COOKIE]
    stored = b"".join(path.read_bytes() for path in client.settings.data.glob("state.sqlite*"))
    assert token.encode() not in stored
    assert PASSWORD.encode() not in stored


def test_a_form_without_the_logins_token_changes_nothing(client: Clients) -> None:
    reader = client("reader")
    for token in ("", "x", client("admin").token()):
        assert reader.http.post("/logout", data={"form": token}).status_code == 403
    assert reader.get("/account").url.path == "/account"


@pytest.mark.parametrize(
    "header", [{"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}]
)
def test_another_sites_form_is_refused(client: Clients, header: dict[str, str]) -> None:
    reader = client("reader")
    assert reader.http.post("/logout", data={"form": reader.token()}, headers=header).status_code == 403


def test_a_foreign_host_name_is_refused(client: Clients) -> None:
    assert client().get("/login", headers={"host": "evil.example"}).status_code == 400
    assert client().get("/login", headers={"host": "127.0.0.1:8765"}).status_code == 200


def test_a_changed_account_must_sign_in_again(copied_clients: Clients) -> None:
    reader = copied_clients("reader")
    session = Session(copied_clients.site, local_caller(copied_clients.settings))
    accounts.change(session, replace(accounts.account(session.data, "reader"), disabled=True))
    assert reader.get("/account").url.path == "/login"
    assert copied_clients().form("/login", user="reader", password=PASSWORD).status_code == 401


def test_logins_are_audited_as_the_user(copied_clients: Clients) -> None:
    copied_clients("safety")
    with closing(Audit(copied_clients.settings.data)) as log:
        entry = log.entries()[-1]
    assert (entry.actor, entry.action, entry.outcome) == ("safety", "login", "safety")


def test_ones_own_password(copied_clients: Clients) -> None:
    reader = copied_clients("reader")
    fresh = "another password of some length"
    fields = {"password": PASSWORD, "fresh": fresh, "again": fresh}
    assert reader.form("/account/password", **{**fields, "password": "wrong"}).status_code == 400
    assert reader.form("/account/password", **{**fields, "again": "x"}).status_code == 400
    assert "Saved" in reader.form("/account/password", **fields).text
    assert copied_clients().form("/login", user="reader", password=PASSWORD).status_code == 401
    assert copied_clients().form("/login", user="reader", password=fresh).status_code == 200


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
