"""What holds for every page: the policy, words in both languages, no sentence outside the messages, size, errors."""

from __future__ import annotations

import logging
import re
from itertools import product
from pathlib import Path

import pytest
from starlette.requests import Request

from localmed.domain import Message, message
from localmed.domain.errors import LibraryError, LocalmedError
from localmed.messages import catalogue
from localmed.models.registry.manifests import ROLES
from localmed.site.session import Session
from localmed.web import application, pages
from localmed.web.visits import anybody
from localmed.workflows.flow import FLOWS
from tests.web.conftest import Clients, make_accounts
from tests.words import phrase, said

WEB = Path(application.__file__).parent
LARGEST_ASSETS = 60 * 2**10  # bytes, script and stylesheet together


def test_script_and_stylesheet_are_small() -> None:
    assert sum(len(pages.static(name)) for name in pages.STATIC) <= LARGEST_ASSETS


@pytest.mark.parametrize("path", sorted(WEB.glob("templates/*.html")), ids=lambda path: path.name)
def test_templates_hold_no_words_of_their_own(path: Path) -> None:
    text = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", "", path.read_text("utf-8"), flags=re.S)
    words = (
        re.sub(r"<[^>]*>|/\S*", " ", text, flags=re.S).replace("localmed", "").replace("autofocus", "")
    )  # paths are no words
    assert not re.search(r"[A-Za-z]{2}|[\u4e00-\u9fff]", words), words
    assert not re.search(r"\son\w+=|\sstyle=|<style|\|\s*safe|javascript:", text, re.I)
    assert not re.search(r'(?:alt|title|placeholder|aria-label)="[^"{]*[A-Za-z]{2}', text)
    assert not re.search(r"https?://", text)


def test_every_page_has_the_policy(client: Clients) -> None:
    for reply in (client().get("/login"), client("reader").get("/"), client().get("/nowhere")):
        policy = reply.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'nonce-")
        assert "require-trusted-types-for 'script'" in policy
        nonce = re.search(r"nonce-([\w-]+)", policy)
        assert nonce
        assert f'nonce="{nonce[1]}"' in reply.text
        assert (reply.headers["cache-control"], reply.headers["x-content-type-options"]) == ("no-store", "nosniff")


def test_the_language_is_the_browsers_until_one_is_chosen(client: Clients) -> None:
    visitor = client()
    assert "<h1>登录</h1>" in visitor.get("/login", headers={"accept-language": "zh-CN,zh;q=0.9"}).text
    visitor.form("/preferences", language="en", theme="dark", back="/login")
    page = visitor.get("/login", headers={"accept-language": "zh-CN"}).text
    assert "<h1>Sign in</h1>" in page
    assert 'data-theme="dark"' in page


@pytest.mark.parametrize("path", ["//evil.example", "/\\evil.example"])
def test_nobody_is_led_to_another_site(client: Clients, path: str) -> None:
    reply = client().http.post("/preferences", data={"back": path}, follow_redirects=False)
    assert reply.headers["location"] == "/"


def test_a_page_that_is_not_there(client: Clients) -> None:
    reply = client().get("/nowhere")
    assert (reply.status_code, said("web.error.no_page") in reply.text) == (404, True)
    error = client().get("/nowhere", headers={"accept": "application/json"}).json()["error"]
    assert error["code"] == "web.error.no_page"


def test_a_large_body_is_refused(client: Clients) -> None:
    reply = client().http.post("/login", data={"user": "x" * 10_000_000})
    assert reply.status_code == 413
    assert phrase("web.error.body") in reply.text


def test_a_fault_is_told_and_logged_without_its_text(
    client: Clients, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("Mrs Li has a fever")

    monkeypatch.setattr("localmed.people.accounts.sign_in", broken)
    with caplog.at_level(logging.ERROR):
        reply = client().form("/login", user="reader", password="x")
    assert reply.status_code == 500
    reference = re.search(r"reference (\w+)", reply.text)
    assert reference
    assert f"{reference[1]} RuntimeError" in caplog.text
    assert "fever" not in caplog.text + reply.text


def test_an_error_page_keeps_the_navigation_of_whoever_is_signed_in(client: Clients) -> None:
    for path, status in (("/nowhere", 404), ("/library/collections", 403)):
        reply = client("reader").get(path)
        assert reply.status_code == status
        assert 'href="/departments"' in reply.text, path
        assert 'href="/account"' in reply.text, path


COMMANDS = re.compile(
    r"--[a-z]{2}|localmed (import|collections|documents|doctor|repair|models|host|generations|refresh)"
)


@pytest.mark.slow
def test_no_error_tells_a_reader_to_run_a_command() -> None:
    """Whatever is raised, and also where it stands in another message, such as a job's outcome."""
    nobody = anybody(Request({"type": "http", "headers": []}))
    commands = [code for code in catalogue("en") if code.endswith(".command")]
    assert len(commands) > 90
    for code in commands:
        line = pages.for_visitor(
            message("job.failed", reason=LocalmedError(code.removesuffix(".command")).full_message), nobody
        )
        shown = message_codes(line)
        assert code not in shown
        shown = [one for one in shown if not one.endswith(".what")]  # some are about options, and only of commands
        assert not any(COMMANDS.search(str(catalogue(name)[one])) for one in shown for name in ("en", "zh")), shown


def message_codes(line: Message) -> list[str]:
    inner = [value for _, value in line.parameters if isinstance(value, Message)]
    return [line.code, *(code for value in inner for code in message_codes(value))]


@pytest.mark.parametrize("user", ["reader", "librarian", "admin"])
@pytest.mark.slow
def test_an_empty_library_is_told_in_the_windows_words(empty_clients: Clients, user: str) -> None:
    make_accounts(empty_clients.settings)
    visitor = empty_clients(user)
    asked_paths = ("/ask", "/search", "/concepts", "/departments")
    replies = [visitor.form(path, question="dose", term="dose", complaint="cough") for path in asked_paths]
    replies += [visitor.get(path) for path in ("/", "/search", "/concepts", "/history", "/passages/" + "0" * 64)]
    for reply in replies:
        assert reply.status_code in (200, 400, 404), reply.url
        assert str(empty_clients.settings.data) not in reply.text, reply.url
        assert not COMMANDS.search(pages_words(reply.text)), reply.url
    assert ("/start/library" in visitor.get("/").text) == (user == "admin"), "others may not fill it there"


def test_what_is_wrong_with_the_machine_is_for_administrators(
    client: Clients, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise LibraryError("library.unreadable", path="/srv/data/library.sqlite", error="x")

    monkeypatch.setattr(Session, "search", fails)
    replies = {user: client(user).form("/search", question="dose") for user in ("reader", "admin")}
    assert {reply.status_code for reply in replies.values()} == {503}
    assert "tell the administrator" in replies["reader"].text
    assert "/srv/data" not in replies["reader"].text
    assert "/srv/data/library.sqlite" in replies["admin"].text
    assert "library.unreadable" in caplog.text


def pages_words(page: str) -> str:
    """What is read of a page: without its tags and addresses."""
    return re.sub(r"<[^>]*>", " ", page)


@pytest.mark.parametrize(("kind", "name"), [*product(["workflow"], FLOWS), *product(["model"], ROLES)])
def test_every_workflow_and_role_has_a_name_that_is_not_its_code(kind: str, name: str) -> None:
    assert re.search(r"[\u4e00-\u9fff]", pages.named(kind, name, "zh")), "its code is shown"
    assert kind == "model" or pages.named(kind, name, "en") != name
