from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from localmed.domain import Collection, Document, Kind
from localmed.library.catalogue import Catalogue
from localmed.library.summaries import Place, Summary


def document(key: str, collection: str = "guides", content: str = "c") -> Document:
    return Document(key, collection, key, key.title(), "en", key, "0" * 64, content, "text/plain", passages=1)


def summary(key: str, words: str = "asthma dose", content: str = "c") -> Summary:
    return Summary(key, content, "recipe", f"About {key}", (Place("p", 3, 9), Place("q", 0, 4)), tuple(words.split()))


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Catalogue]:
    opened = Catalogue(tmp_path / "library.sqlite", writable=True)
    opened.put_collection(Collection("guides", "Guides", kind=Kind.GUIDELINE))
    for key in ("asthma", "sepsis", "stroke"):
        opened.put_document(document(key))
    yield opened
    opened.close()


def test_a_summary_comes_back_as_it_was_put(catalogue: Catalogue) -> None:
    catalogue.summaries.put(summary("asthma"), np.ones(4, np.float32))
    assert catalogue.summaries.of("asthma") == summary("asthma")
    assert catalogue.summaries.of("sepsis") is None
    assert catalogue.summaries.recipes() == {"asthma": ("c", "recipe")}
    assert len(catalogue.summaries) == 1


def test_what_is_stale_is_swept(catalogue: Catalogue) -> None:
    for key in ("asthma", "sepsis", "stroke"):
        catalogue.summaries.put(summary(key), None)
    catalogue.remove_documents(["asthma"])
    catalogue.put_document(document("sepsis", content="another"))
    assert catalogue.summaries.sweep() == 2
    assert set(catalogue.summaries.recipes()) == {"stroke"}
    assert catalogue.summaries.sweep() == 0


@pytest.mark.parametrize("kind", [other for other in Kind if other is not Kind.GUIDELINE])
def test_a_collection_of_another_kind_has_none(catalogue: Catalogue, kind: Kind) -> None:
    catalogue.summaries.put(summary("asthma"), None)
    catalogue.put_collection(Collection("guides", "Guides", kind=kind))
    assert catalogue.summaries.sweep() == 1


def test_the_table_compares_by_meaning_and_by_words(catalogue: Catalogue) -> None:
    catalogue.summaries.put(summary("asthma", "asthma dose"), np.array([1, 0], np.float32))
    catalogue.summaries.put(summary("sepsis", "sepsis dose"), np.array([0.6, 0.8], np.float32))
    catalogue.summaries.put(summary("stroke", "stroke"), None)
    table = catalogue.summaries.table()
    assert [document.document for document in table.documents] == ["asthma", "sepsis", "stroke"]
    assert table.vectors.dtype == np.float32
    assert table.similarities(np.array([1, 0], np.float32)) == pytest.approx([1, 0.6, 0])
    assert table.coverage({"sepsis": 3.0, "dose": 1.0}) == pytest.approx([0.25, 1, 0])
    assert table.coverage({"unknown": 1.0}) == pytest.approx([0, 0, 0])
    assert table.coverage({}) == pytest.approx([0, 0, 0])


def test_a_table_without_vectors_or_without_anything(catalogue: Catalogue) -> None:
    assert len(catalogue.summaries.table()) == 0
    catalogue.summaries.put(summary("stroke"), None)
    assert catalogue.summaries.table().similarities(np.ones(8, np.float32)) == pytest.approx([0])
