"""The window over a small library: clients without sockets, one for each role.

``client("librarian")`` is signed in as a librarian of that name; its ``form(path, **fields)`` sends a form as the page
does, token included. A test that changes the library takes ``copied_clients``.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx2 import Response

from localmed.config import LibrarySettings, Settings
from localmed.domain import Collection
from localmed.domain.accounts import Account, SessionRole
from localmed.ingest.manifest import Manifest
from localmed.operations import accounts, importing
from localmed.site import Site
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

    def form(self, path: str, /, **fields: str) -> Response:
        """Send a form to ``path`` with the login's token; what it leads to."""
        values = {"form": self.token(), **fields} if self.user else fields
        return self.http.post(path, data=values)


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
def web_data(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The library and its accounts, made once. Not to be changed: see ``copied_clients``."""
    root = tmp_path_factory.mktemp("web")
    return make_library(root / "data", root / "documents")


def _clients(settings: Settings) -> Iterator[Clients]:
    with Site(settings, HashedWords()) as site:
        yield Clients(settings, site)


@pytest.fixture
def client(web_data: Settings) -> Iterator[Clients]:
    """Clients over the library, for reading it."""
    yield from _clients(web_data)


@pytest.fixture
def copied_clients(web_data: Settings, tmp_path: Path) -> Iterator[Clients]:
    """Clients over a copy of the library, for changing it."""
    shutil.copytree(web_data.data, tmp_path / "data", symlinks=True)
    yield from _clients(Settings(tmp_path / "data", library=web_data.library))


@pytest.fixture
def empty_clients(tmp_path: Path) -> Iterator[Clients]:
    """Clients over an empty data folder, as at the first start."""
    yield from _clients(Settings(tmp_path / "data", library=LibrarySettings(writer_memory_bytes=15_000_000)))
