"""A site that trusts a publisher of packs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localmed.config import LibrarySettings, Settings
from localmed.operations import packs
from localmed.session import Session, local_caller
from localmed.site import Site
from tests.fakes import HashedWords
from tests.operations.publishing import Publisher, publisher


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
