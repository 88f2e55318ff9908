"""Damage that every generation shares: what is served is made anew from its originals and the stored vectors."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.config import RefreshSettings, Settings
from localmed.domain import Message, SearchFilter, Status
from localmed.domain.errors import Damaged
from localmed.domain.nights import UNCHANGED
from localmed.library import generations
from localmed.library.in_force import in_force
from localmed.nightly.refresh import refresh
from localmed.site import changes, importing
from localmed.site.session import Session
from localmed.upkeep import repair
from tests.fakes import HashedWords, described, documents, jsonl, opened, overwrite, verify, write

QUESTION = "Should antibiotics be given within one hour in sepsis?"
TEXTS = {
    "a.txt": "Sepsis\n\nIn sepsis antibiotics should be given within one hour.\n",
    "b.txt": "Sepsis at home\n\nIn sepsis antibiotics should be given within one hour, said the old house rule.\n",
    "c": jsonl(*({"id": str(n), "title": f"Leaf {n}", "text": f"Leaflet {n} on fever."} for n in range(5))),
}


@pytest.fixture
def filled(settings: Settings, corpus: Path) -> Settings:
    """Two generations, a mark and a withdrawal; the folder that it came from is gone."""
    settings = replace(settings, refresh=RefreshSettings(settle_seconds=0.0, free_bytes=1))
    with opened(settings, HashedWords()) as session:
        importing.import_paths(session, [write(corpus, TEXTS)], described("ward"))
        importing.import_paths(session, [write(corpus, {"d.txt": "Stroke\n\nThrombolysis.\n"})], described("ward"))
        with session.workspace() as workspace:
            catalogue = workspace.library.catalogue
            named = {Path(one.source).name: one for one in catalogue.documents()}
        changes.withdraw(session, named["b.txt"], True, "test")
        changes.mark(session, named["d.txt"], Status.SUPERSEDED, "", "test")
    shutil.rmtree(corpus)
    return settings


@pytest.fixture
def damaged(filled: Settings) -> Settings:
    """A bit is flipped in the stored texts and in the vectors, which all generations share."""
    served = generations.current(filled.data)
    for pattern in ("lexical/*.store", "passages.lance/data/*.lance"):
        for path in served.glob(pattern):
            flip(path)
    return filled


def flip(path: Path) -> None:
    content, times = bytearray(path.read_bytes()), path.stat()
    content[len(content) // 2] ^= 1
    path.chmod(0o600)
    overwrite(path, bytes(content))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.fixture
def session(damaged: Settings) -> Iterator[Session]:
    with opened(damaged, HashedWords()) as session:
        yield session


def answer(settings: Settings) -> tuple[object, ...]:
    with opened(settings, HashedWords()) as session:
        made = session.ask(QUESTION, SearchFilter())
        return made.status, made.receipts, made.evidence


@pytest.mark.slow
def test_repair_makes_it_anew_from_the_originals(filled: Settings, request: pytest.FixtureRequest) -> None:
    before, known = answer(filled), documents(filled)
    session = request.getfixturevalue("session")
    with pytest.raises(Damaged):
        session.ask(QUESTION, SearchFilter())
    step = repair.plan(filled.data)
    assert step is not None
    assert step.anew
    assert step.number == int(generations.current(filled.data).name)
    with opened(filled, encoder := HashedWords()) as other:
        repair.repair(other, step)
    assert not encoder.encoded, "vectors come from the cache"
    verify(filled.data)
    assert answer(filled) == before
    assert documents(filled) == known, "with the mark"
    assert [*in_force(filled.data).withdrawals.values()][-1].withdrawn
    assert repair.plan(filled.data) is None


@pytest.mark.slow
def test_the_night_makes_it_anew(filled: Settings, session: Session) -> None:
    night = refresh(session)
    assert isinstance(night.mended[-1], Message)
    assert night.mended[-1].code == "generation.made.rebuild"
    assert night.outcome == UNCHANGED
    assert answer(filled)[1]


@pytest.mark.parametrize("harm", ["original gone", "original damaged", "catalogue"])
def test_what_has_no_whole_source_is_not_made_anew(damaged: Settings, harm: str) -> None:
    original = max((damaged.data / "files").iterdir(), key=lambda path: path.stat().st_size)
    if harm == "original gone":
        original.unlink()
    elif harm == "original damaged":
        flip(original)
    else:
        for number in generations.numbers(damaged.data):
            flip(generations.path_of(damaged.data, number) / "library.sqlite")
    with pytest.raises(Damaged):
        repair.plan(damaged.data)
