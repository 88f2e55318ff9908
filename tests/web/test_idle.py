"""A shared PC that is left alone signs out: what pages ask by themselves is no use of the login.

In Chromium with a short idle time: an open answer, the page of a job that runs, and a stream that has not ended. The
screen is cleared, and the server has ended the login.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from localmed.config import Settings, WebSettings
from localmed.domain import Answer, Message, message
from localmed.domain.accounts import SessionRole
from localmed.people import logins
from localmed.process.hooks import Hooks
from localmed.site import jobs
from localmed.site.session import Caller, Session
from localmed.site.site import Site
from localmed.web import streams
from localmed.web.visits import LOGIN_COOKIE
from tests.fakes import HashedWords
from tests.web.conftest import Clients, OpenWindow, Window
from tests.web.test_browser import QUESTION, SENTENCE

IDLE = 6.0  # seconds


@pytest.fixture
def short(web_data: Settings, tmp_path: Path) -> Iterator[Clients]:
    """Clients of a site whose logins end after ``IDLE`` seconds."""
    shutil.copytree(web_data.data, tmp_path / "data", symlinks=True)
    web = replace(WebSettings(), idle_minutes=IDLE / 60)
    settings = Settings(tmp_path / "data", library=web_data.library, web=web)
    with Site(settings, HashedWords()) as site:
        yield Clients(settings, site)


def left_alone(short: Clients, window: Window) -> None:
    """The page is cleared and the login is over."""
    [token] = [str(one["value"]) for one in window.page.context.cookies() if one["name"] == LOGIN_COOKIE]
    began = time.monotonic()
    window.page.wait_for_selector("#password", timeout=6_000 * IDLE)
    assert time.monotonic() - began < 4 * IDLE
    assert SENTENCE not in window.page.content()
    assert logins.current(short.settings.data, token, short.settings.web, used=False) is None, "the server has ended it"
    window.page.goto(window.url + "/history")
    assert window.page.locator("#password").is_visible()


def open_answer(window: Window) -> None:
    """A reader's answer, as it stands on the screen."""
    window.sign_in("reader")
    window.page.fill("#question", QUESTION)
    window.page.click("main form button")
    window.page.wait_for_url("**/answers/*")


def test_an_open_answer(short: Clients, browser: OpenWindow) -> None:
    window = browser(short)
    open_answer(window)
    left_alone(short, window)


def test_the_page_of_a_job(short: Clients, browser: OpenWindow) -> None:
    window, ended = browser(short), threading.Event()

    def work(_: Hooks) -> Message:
        ended.wait(60)
        return message("job.changed")

    window.sign_in("librarian")
    session = Session(short.site, Caller("librarian", None, SessionRole.LIBRARIAN))
    try:
        id_ = jobs.start(session, "rollback", work, "/")
        window.page.goto(f"{window.url}/jobs/{id_}")
        window.page.wait_for_selector("progress")
        left_alone(short, window)
    finally:
        ended.set()


def test_a_stream(short: Clients, browser: OpenWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_: Session, _question: str, *values: object, **_options: object) -> Answer:
        [hooks] = [value for value in values if isinstance(value, Hooks)]
        while True:
            hooks.cancel.check()
            time.sleep(0.05)

    monkeypatch.setattr(Session, "ask", never)
    monkeypatch.setattr(streams, "PING", 0.5)
    window = browser(short)
    window.sign_in("reader")
    window.page.fill("#question", QUESTION)
    window.page.click("main form button")
    window.page.wait_for_selector("[data-progress]:not([hidden])")
    left_alone(short, window)


def test_somebody_who_reads_in_one_tab_keeps_the_other(short: Clients, browser: OpenWindow) -> None:
    window = browser(short)
    open_answer(window)
    other = window.page.context.new_page()
    other.goto(window.url + "/history")
    end = time.monotonic() + 2 * IDLE
    while time.monotonic() < end:
        window.page.keyboard.press("ArrowDown")
        time.sleep(0.5)
    assert window.page.url.split("/")[-2] == "answers"
    assert other.url.endswith("/history")


@pytest.mark.parametrize("address", ["/answers/{id}/holds?watch=1", "/account?watch=1"])
def test_what_a_page_asks_by_itself_keeps_no_login(
    client: Clients, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    reader = client("reader")
    answer = reader.form("/ask", question=QUESTION).url.path.rsplit("/", 1)[-1]
    began, idle = time.time(), 60 * client.settings.web.idle_minutes
    for share in (0.4, 0.8, 1.2):
        monkeypatch.setattr(time, "time", partial(float, began + share * idle))
        reply = reader.http.get(address.format(id=answer), headers={"accept": "application/json"})
        for thread in threading.enumerate():
            if thread.name == "login":
                thread.join(60)
    assert reply.status_code == 401 or reply.url.path == "/login"
