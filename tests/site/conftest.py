"""A site that trusts a publisher of packs, and one in use: an account of a nurse, a workflow that is stopped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from localmed.config import LibrarySettings, Settings
from localmed.domain.accounts import Account, SessionRole
from localmed.people import accounts
from localmed.site import stops
from localmed.site.session import Session, local_caller
from localmed.site.site import Site
from localmed.upkeep import packs
from tests.fakes import HashedWords, import_into, opened, write
from tests.site.publishing import Publisher, publisher

PASSWORD = "a long password of a ward"
NURSE = Account("nurse", SessionRole.READER, ("nurses",))


@pytest.fixture
def ours(tmp_path: Path) -> Publisher:
    return publisher(tmp_path / "publisher")


@pytest.fixture
def session(tmp_path: Path, ours: Publisher) -> Iterator[Session]:
    settings = Settings(tmp_path / "data", library=LibrarySettings(writer_memory_bytes=15_000_000))
    with Site(settings, HashedWords()) as site:
        session = Session(site, local_caller(settings))
        packs.trust_root(session, ours.root)
        yield session


@pytest.fixture
def filled(settings: Settings, corpus: Path) -> Settings:
    """A workflow is stopped, and a nurse has an account; ``older.sqlite`` is the file of before."""
    import_into(settings, write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics within one hour.\n"}))
    with opened(settings, HashedWords()) as site_session:
        shutil.copy2(settings.data / "site.sqlite", settings.data.parent / "older.sqlite")
        accounts.create(site_session, NURSE, PASSWORD)
        accounts.create(site_session, Account("boss", SessionRole.ADMIN), PASSWORD)
        stops.stop(site_session, stops.WORKFLOW, "ask", "under review")
        stops.stop(site_session, stops.MODEL, "chat", "too")
        stops.lift(site_session, stops.MODEL, "chat")
    return settings
