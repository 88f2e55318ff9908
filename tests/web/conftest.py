"""The window over a small library: clients without sockets, one for each role, and Debian's Chromium.

``client("librarian")`` is signed in as a librarian of that name; its ``form(path, **fields)`` sends a form as the page
does, token included. A test that changes the library takes ``copied_clients``.

``browser(clients)`` opens a ``Window`` (its ``page`` is Playwright's) at a server on the loopback. It notes requests to
another origin and errors of the console; a test of a page ends with ``window.was_quiet()``. Without Chromium these
tests are skipped; CI installs it.
"""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi.testclient import TestClient
from httpx2 import Response
from playwright.sync_api import Browser, Page, sync_playwright

from localmed.config import LibrarySettings, Settings
from localmed.domain import Collection
from localmed.domain.accounts import Account, SessionRole
from localmed.domain.ports import CountingChat
from localmed.ingest.manifest import Manifest
from localmed.people import accounts
from localmed.site import importing
from localmed.site.site import Site
from localmed.web import application
from tests.cli.conftest import write_files
from tests.fakes import HashedWords, opened

PASSWORD = "a password of some length"
GROUPS = {"reader": ("ward",)}  # of whoever reads
BASE = "http://localhost"


@dataclass
class Client:
    """A browser without a screen, perhaps signed in."""

    http: TestClient
    user: str = ""

    def get(self, path: str, **options: Any) -> Response:
        """The page at ``path``, redirections followed."""
        return self.http.get(path, **options)

    def token(self, path: str = "/account") -> str:
        """The token of this login's forms, read from a page as a browser does."""
        match = re.search(r'name="form" value="([^"]+)"', self.get(path).text)
        assert match, path
        return match[1]

    def form(self, path: str, /, **fields: str | list[str]) -> Response:
        """Send a form to ``path`` with the login's token; what it leads to, of a job once it has ended."""
        values = {"form": self.token(), **fields} if self.user else fields
        return self.ended(self.http.post(path, data=values))

    def ended(self, reply: Response) -> Response:
        """``reply``; where it is the page of a job, that page as soon as the job has ended."""
        end = time.monotonic() + 600
        while reply.url.path.startswith("/jobs/") and "<progress" in reply.text:
            assert time.monotonic() < end
            time.sleep(0.05)
            reply = self.get(reply.url.path)
        return reply


def make_library(data: Path, folder: Path) -> Settings:
    """A small library (see ``tests/cli/conftest.py``) in which every role has an account of its name."""
    settings = Settings(data, library=LibrarySettings(writer_memory_bytes=15_000_000))
    with opened(settings, HashedWords()) as session:
        importing.import_paths(session, [write_files(folder)], Manifest(Collection("ward", "Ward documents")))
    make_accounts(settings)
    return settings


def make_accounts(settings: Settings) -> None:
    """An account for each role, called as it is."""
    with opened(settings, HashedWords()) as session:
        for role in SessionRole:
            accounts.create(session, Account(role, role, GROUPS.get(role, ())), PASSWORD)


@dataclass
class Clients:
    """The application over one data folder, and its clients."""

    settings: Settings
    site: Site
    opened: list[TestClient] = field(default_factory=list)

    def __call__(self, user: str = "") -> Client:
        """A client signed in as ``user`` ("": nobody)."""
        http = TestClient(application.create(self.site), base_url=BASE)
        self.opened.append(http)
        client = Client(http, user)
        if user:
            reply = http.post("/login", data={"user": user, "password": PASSWORD})
            assert reply.status_code == 200, reply.text
        return client


@pytest.fixture(scope="session")
def web_made(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The library and its accounts as they were made; nobody opens it."""
    root = tmp_path_factory.mktemp("web")
    return make_library(root / "data", root / "documents")


@pytest.fixture(scope="session")
def web_data(web_made: Settings, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The library that tests read together: questions and reports of all of them gather in it."""
    return _copied(web_made, tmp_path_factory.mktemp("read") / "data")


def _copied(settings: Settings, data: Path) -> Settings:
    shutil.copytree(settings.data, data, symlinks=True)
    return Settings(data, library=settings.library)


def _clients(settings: Settings) -> Iterator[Clients]:
    with Site(settings, HashedWords()) as site:
        yield Clients(settings, site)


@contextmanager
def with_model(settings: Settings, model: CountingChat) -> Iterator[Clients]:
    """Clients over the library of ``settings``, where a chat model writes."""
    with Site(settings, HashedWords(), chat=model) as site:
        yield Clients(settings, site)


@pytest.fixture
def client(web_data: Settings) -> Iterator[Clients]:
    """Clients over the library, for reading it."""
    yield from _clients(web_data)


@pytest.fixture
def copied_clients(web_made: Settings, tmp_path: Path) -> Iterator[Clients]:
    """Clients over a copy of the library as it was made, for changing it."""
    yield from _clients(_copied(web_made, tmp_path / "data"))


@pytest.fixture
def empty_clients(tmp_path: Path) -> Iterator[Clients]:
    """Clients over an empty data folder, as at the first start."""
    yield from _clients(Settings(tmp_path / "data", library=LibrarySettings(writer_memory_bytes=15_000_000)))


# --- a browser --------------------------------------------------------------------------------------------------------

CHROMIUM = "/usr/bin/chromium"
SLOW = 15_000.0  # milliseconds that a page may take on a busy machine
ARGUMENTS = ("--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--no-first-run", "--disable-dev-shm-usage")  # fmt: skip


@dataclass
class Window:
    """A page of a browser at a server of its own, and what it did that no page of ours may."""

    page: Page
    url: str
    foreign: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def sign_in(self, user: str, path: str = "/") -> None:
        """Sign in by the form, then go to ``path``."""
        self.page.goto(self.url + "/login")
        self.page.fill("#user", user)
        self.page.fill("#password", PASSWORD)
        self.page.click("main button")
        self.page.wait_for_url(self.url + "/")
        if path != "/":
            self.page.goto(self.url + path)

    def was_quiet(self) -> None:
        """No request went to another origin, and the console tells of no error or breach of the policy."""
        assert self.foreign == []
        assert self.complaints == []


@contextmanager
def served(clients: Clients) -> Iterator[str]:
    """The application of ``clients`` on a port of the loopback; its address."""
    config = uvicorn.Config(
        application.create(clients.site), port=0, access_log=False, log_level="error", lifespan="off"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, headless."""
    if not Path(CHROMIUM).exists():
        pytest.skip("there is no Chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield launched
        launched.close()


OpenWindow = Callable[..., Window]


@pytest.fixture
def browser(chromium: Browser) -> Iterator[OpenWindow]:
    """``browser(clients, **options)``: a window at a server of ``clients``; options of Playwright's ``new_context``."""
    with ExitStack() as stack:

        def opened_window(clients: Clients, **options: Any) -> Window:
            url = stack.enter_context(served(clients))
            context = chromium.new_context(**options)
            stack.callback(context.close)
            context.set_default_timeout(SLOW)
            window = Window(context.new_page(), url)
            window.page.on("request", lambda sent: _note_foreign(window, sent.url))
            window.page.on("console", lambda line: _note_complaint(window, line.type, line.text))
            window.page.on("pageerror", lambda error: window.complaints.append(str(error)))
            return window

        yield opened_window


def _note_foreign(window: Window, url: str) -> None:
    if not url.startswith((window.url, "data:", "about:", "blob:")):
        window.foreign.append(url)


def _note_complaint(window: Window, kind: str, text: str) -> None:
    if kind == "error" and "status of 4" not in text:  # an error page is no fault of the page's
        window.complaints.append(text)
