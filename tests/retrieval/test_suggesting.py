"""Suggestions while one types: from what the reader may read and what may answer now."""

from __future__ import annotations

from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain import Collection, Kind, Status
from localmed.ingest.manifest import Manifest
from localmed.library.library import Library
from localmed.retrieval import suggesting
from localmed.retrieval.suggesting import MOST, suggestions
from localmed.site import changes
from tests.fakes import import_into, opened, write

ASTHMA = "# Acute asthma in adults\n\n## Discharge planning\n\nGive salbutamol and a written plan.\n"
SODIUM = "# 成人低钠血症\n\n## 高渗盐水\n\n3%氯化钠 150 ml。\n"
SECRET = "# Secret trial of asthma\n\n## Discharge of participants\n\nStrictly confidential.\n"


@pytest.fixture
def library(settings: Settings, corpus: Path) -> Settings:
    guideline = Manifest(Collection("ward", "Ward", kind=Kind.GUIDELINE))
    import_into(settings, write(corpus, {"asthma.md": ASTHMA, "sodium.md": SODIUM}), manifest=guideline)
    apart = corpus.with_name("apart")
    apart.mkdir()
    import_into(settings, write(apart, {"secret.md": SECRET}), manifest=Manifest(Collection("trial", "Trial")))
    suggesting._TABLES.clear()
    return settings


def suggested(settings: Settings, typed: str, *hidden: str) -> list[str]:
    with Library.open(settings.data, frozenset(hidden)) as library:
        return list(suggestions(library, typed))


def test_titles_headings_and_medicines_that_begin_so(library: Settings) -> None:
    assert suggested(library, "asth", "trial") == [
        "Acute asthma in adults",
        "Discharge planning · Acute asthma in adults",
    ]
    assert suggested(library, "DISCH asth", "trial") == ["Discharge planning · Acute asthma in adults"]
    assert "salbutamol" in suggested(library, "salb")
    assert suggested(library, "ventol") == suggested(library, "salb"), "by its brand"
    assert suggested(library, "eliq") == [], "no document has it"
    assert suggested(library, "sthma") == [], "the beginning of a word"
    assert suggested(library, "低") == ["成人低钠血症", "高渗盐水 · 成人低钠血症"]
    assert suggested(library, "a") == suggested(library, " ") == suggested(library, "zebra") == []
    assert len(suggested(library, "asthma")) <= MOST


def test_what_a_reader_may_not_read_is_not_suggested_whoever_asked_before(library: Settings) -> None:
    assert "Secret trial of asthma" in suggested(library, "secret")
    assert suggested(library, "secret", "trial") == []
    assert suggested(library, "participants", "trial") == []


def test_what_is_withdrawn_is_not_suggested_from_the_next_key_on(library: Settings) -> None:
    with opened(library) as session:
        with session.workspace() as workspace:
            document = next(one for one in workspace.library.catalogue.documents() if one.title.startswith("Acute"))
            assert list(suggestions(workspace.library, "discharge planning"))
        changes.withdraw(session, document, True, "doses were wrong")
        with session.workspace() as workspace:
            assert workspace.library.status(document.id) is Status.WITHDRAWN
            assert not list(suggestions(workspace.library, "discharge planning"))
            assert not list(suggestions(workspace.library, "acute"))
