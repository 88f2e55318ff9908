from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from localmed.config import LibrarySettings, SearchSettings, Settings
from localmed.domain import Collection, Kind, SearchFilter, Status
from localmed.domain.findings import Found
from localmed.ingest.manifest import Manifest
from localmed.library.library import Library
from localmed.operations import changes, lookups
from localmed.retrieval.guideline_map import GuidelineMap
from localmed.retrieval.search import HybridSearch
from localmed.workflows.flow import summary
from tests.fakes import HashedWords, import_into, opened, write

TEXTS = {
    "asthma.md": "# Asthma\n\nAsthma narrows airways. Salbutamol relieves asthma.\n\n## Oxygen\n\nOxygen too.\n",
    "sepsis.md": "# Sepsis\n\nSepsis needs antibiotics. Septic shock: noradrenaline.\n\n## Oxygen\n\nGive oxygen.\n",
    "old.md": "# Asthma 2001\n\nAsthma was treated with theophylline. Asthma in 2001.\n",
    "stroke.md": "# 脑卒中\n\n脑卒中患者应尽快溶栓。脑卒中后要复查影像。\n",
}
FACTS = {
    "asthma.md": {"edition": "2024"},
    "sepsis.md": {"edition": "2020"},
    "old.md": {"edition": "2001", "status": "superseded"},
}
GUIDES = Manifest(Collection("guides", "Guides", kind=Kind.GUIDELINE), documents=FACTS)
LEAFLETS = Manifest(Collection("leaflets", "Leaflets", kind=Kind.LEAFLET))
ANY = SearchFilter()
SETTINGS = SearchSettings()


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Three guidelines, a superseded one, and a leaflet on the same matter."""
    folder = tmp_path_factory.mktemp("guides")
    made = Settings(folder / "data", library=LibrarySettings(writer_memory_bytes=15_000_000))
    import_into(made, write(folder / "guides", TEXTS), manifest=GUIDES)
    leaflet = {"inhaler.md": "# Your inhaler\n\nShake the asthma inhaler. Breathe in asthma medicine slowly.\n"}
    import_into(made, write(folder / "leaflets", leaflet), manifest=LEAFLETS)
    return made


@pytest.fixture
def library(settings: Settings) -> Iterator[Library]:
    with Library.open(settings.data) as opened:
        yield opened


def encoded(question: str) -> npt.NDArray[np.float32]:
    return np.asarray(HashedWords().encode([question], "query")[0])


def mapped(
    library: Library, question: str, filters: SearchFilter = ANY, words: bool = False, **changed: float
) -> list[str]:
    """The titles that the map finds."""
    chosen = replace(SETTINGS, **changed)  # type: ignore[arg-type]
    ids = GuidelineMap(library, chosen).find(question, None if words else encoded(question), filters)
    documents = library.catalogue.by_ids(ids)
    return [documents[document].title for document in ids]


def searched(library: Library, question: str, filters: SearchFilter = ANY, **changed: float) -> Found:
    chosen = replace(SETTINGS, **changed)  # type: ignore[arg-type]
    return HybridSearch(library, HashedWords(), chosen).search(question, filters, 10)


def test_a_guideline_is_found_by_meaning(library: Library) -> None:
    assert mapped(library, "asthma salbutamol airways")[0] == "Asthma"
    assert mapped(library, "septic shock antibiotics")[0] == "Sepsis"


def test_a_chinese_one_is_found_by_words(library: Library) -> None:
    assert mapped(library, "脑卒中患者如何溶栓", words=True) == ["脑卒中"]
    assert mapped(library, "妊娠糖尿病", words=True) == []


@pytest.mark.parametrize("question", ["", "?!", "the of and"])
def test_a_question_without_words_finds_none(library: Library, question: str) -> None:
    assert mapped(library, question, words=True) == []


def test_what_is_not_near_enough_is_not_opened(library: Library) -> None:
    assert mapped(library, "asthma", guideline_similarity=0.999) == []
    assert mapped(library, "asthma dragons", words=True, guideline_coverage=0.99) == []


def test_no_more_are_opened_than_asked(library: Library) -> None:
    assert len(mapped(library, "asthma sepsis oxygen", guideline_similarity=0, guidelines=1)) == 1
    assert mapped(library, "asthma", guidelines=0) == []
    assert mapped(library, "asthma", guideline_weight=0) == []


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (ANY, {"Asthma", "Sepsis", "脑卒中"}),
        (SearchFilter(collections=("leaflets",)), set()),
        (SearchFilter(collections=("guides",), language="zh"), {"脑卒中"}),
        (SearchFilter(edition_from="2021"), {"Asthma"}),
        (SearchFilter(edition_to="2023"), {"Sepsis"}),
        (SearchFilter(statuses=(Status.SUPERSEDED,)), {"Asthma 2001"}),
        (SearchFilter(documents=("0" * 32,)), set()),
    ],
)
def test_the_filter_holds(library: Library, filters: SearchFilter, expected: set[str]) -> None:
    assert set(mapped(library, "asthma", filters, guideline_similarity=0, guidelines=9)) == expected


def test_a_withdrawal_takes_effect_on_the_next_question(settings: Settings) -> None:
    with opened(settings, HashedWords()) as session, Library.open(settings.data) as library:
        document = next(document for document in lookups.documents(session, "guides") if document.title == "Sepsis")
        assert "Sepsis" in mapped(library, "septic shock antibiotics")
        changes.withdraw(session, document, True, "test")
        assert "Sepsis" not in mapped(library, "septic shock antibiotics")
        assert document.id not in searched(library, "septic shock antibiotics").guidelines
        changes.withdraw(session, document, False, "test")
        assert "Sepsis" in mapped(library, "septic shock antibiotics")


def test_a_search_says_what_the_map_opened(library: Library) -> None:
    result = searched(library, "salbutamol in asthma")
    assert result.guidelines
    trace = dict(summary(result))["guidelines"].split()
    assert trace == [guideline[:8] for guideline in result.guidelines]
    assert "guidelines" not in dict(summary(searched(library, "salbutamol in asthma", guidelines=0)))


class Remembering:
    """A ``Reranker`` that keeps what it was given, in the order it was given."""

    name = "remembering 1"

    def __init__(self) -> None:
        self.read: list[str] = []

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> Sequence[float]:
        self.read.extend(passages)
        return [-float(place) for place, _ in enumerate(passages)]


@pytest.mark.parametrize(("opened", "expected"), [(0, False), (1, True)])
def test_an_opened_guideline_brings_passages_that_the_search_did_not_reach(
    library: Library, opened: int, expected: bool
) -> None:
    """One candidate an index is the leaflet; the guideline is read all the same."""
    reranker = Remembering()
    settings = replace(SETTINGS, candidates=1, guidelines=opened, guideline_similarity=0.1)
    search = HybridSearch(library, HashedWords(), settings, reranker)
    search.search("shake asthma inhaler breathe medicine", ANY, 1)
    assert any("Your inhaler" in text for text in reranker.read)
    assert any(text.startswith("Asthma") for text in reranker.read) is expected


def test_the_map_orders_guidelines_and_leaves_other_documents_where_they_were(library: Library) -> None:
    bonus = GuidelineMap(library, SETTINGS).bonus(found_ids(library))
    assert bonus
    first, second = (bonus(document) for document in found_ids(library))
    unopened = (set(library.guidelines.ids) - set(found_ids(library))).pop()
    assert bonus("a leaflet") == first > second > bonus(unopened) == 0
    assert GuidelineMap(library, SETTINGS).bonus(()) is None


def found_ids(library: Library) -> tuple[str, str]:
    """Two guidelines."""
    first, second, *_ = sorted(library.guidelines.ids)
    return first, second


def test_a_library_without_guidelines_searches_as_before(tmp_path: Path, settings: Settings) -> None:
    plain = replace(settings, data=tmp_path / "data")
    import_into(plain, write(tmp_path / "texts", TEXTS))
    with Library.open(plain.data) as library:
        assert not GuidelineMap(library, SETTINGS)
        with_map, without = (searched(library, "asthma oxygen", guidelines=number) for number in (3, 0))
        assert with_map == without
        assert with_map.guidelines == ()
