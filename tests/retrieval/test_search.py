from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.config import LibrarySettings, SearchSettings
from localmed.domain import Collection, Document, Passage, SearchFilter, digest, message
from localmed.domain.errors import WrongEncoder
from localmed.domain.findings import Closeness
from localmed.library.library import Library, build
from localmed.retrieval.search import HybridSearch, other_names
from localmed.retrieval.weights import weigh
from tests.fakes import HashedWords, encoded
from tests.values import passage

TEXTS = [
    ("Sepsis", "Give antibiotics within one hour of recognition of septic shock.", "en"),
    ("Asthma", "Salbutamol is inhaled during an attack of asthma.", "en"),
    ("Paracetamol", "The maximum dose of paracetamol is 4 g in 24 hours.", "en"),
    ("探视指南", "普通病房的探视时间为每天14:00至19:30。", "zh"),
    ("发热", "儿童发热可以用对乙酰氨基酚。", "zh"),
]
EVERYTHING = SearchFilter()


def _document(passage: Passage) -> Document:
    return Document(passage.document_id, "c", passage.title, passage.title, passage.language, passage.title, "0" * 64,
                    digest(passage.text), "text/plain", passages=1)  # fmt: skip


@pytest.fixture(scope="module")
def encoder() -> HashedWords:
    return HashedWords()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, encoder: HashedWords) -> Iterator[Library]:
    data = tmp_path_factory.mktemp("data")
    (data / "files").mkdir()
    passages = [passage(text, title, language=language) for title, text, language in TEXTS]
    with build(data, encoder.identity, LibrarySettings()) as builder:
        builder.put_collection(Collection("c", "C"))
        for stored in passages:
            builder.put(_document(stored))
        builder.add(passages, encoded(encoder, passages))
        builder.publish(message("generation.made.upgrade"))
    with Library.open(data) as opened:
        yield opened


@pytest.fixture
def search(library: Library, encoder: HashedWords) -> HybridSearch:
    encoder.encoded.clear()
    return HybridSearch(library, encoder, SearchSettings())


def test_english_is_searched_both_ways(search: HybridSearch) -> None:
    result = search.search("antibiotics in septic shock", EVERYTHING, 3)
    assert result.dense
    assert result.language == "en"
    best = result.hits[0]
    assert best.passage.title == "Sepsis"
    assert best.dense_rank >= 0
    assert best.lexical_rank == 0
    assert best.similarity is not None
    assert best.lexical_score is not None


def test_chinese_is_searched_by_words_and_says_so(search: HybridSearch, encoder: HashedWords) -> None:
    result = search.search("探视时间", EVERYTHING, 3)
    assert not result.dense
    assert result.language == "zh"
    assert result.hits[0].passage.title == "探视指南"
    assert all(hit_.similarity is None and hit_.dense_rank == -1 for hit_ in result.hits)
    assert encoder.encoded == []


@pytest.mark.parametrize("question", ["", "  ", "?!", "，。", "the of and"])
def test_without_words_nothing_is_found(search: HybridSearch, encoder: HashedWords, question: str) -> None:
    result = search.search(question, EVERYTHING, 3)
    if question != "the of and":
        assert result.hits == ()
        assert encoder.encoded == []


def test_the_limit_and_the_filter_hold(search: HybridSearch) -> None:
    assert len(search.search("dose of antibiotics in asthma", EVERYTHING, 2).hits) == 2
    chinese = search.search("paracetamol dose", SearchFilter(language="zh"), 5)
    assert {hit_.passage.language for hit_ in chinese.hits} <= {"zh"}
    assert search.search("paracetamol", SearchFilter(collections=("other",)), 5).hits == ()


def test_another_encoder_is_refused(library: Library) -> None:
    with pytest.raises(WrongEncoder):
        HybridSearch(library, HashedWords("2"), SearchSettings())


# --- the words of a question ---------------------------------------------------------------------------------------


def test_a_thing_is_searched_under_the_names_that_the_library_has(library: Library) -> None:
    assert "paracetamol" in other_names("How much Tylenol?", library.lexical).split()
    assert other_names("How much paracetamol?", library.lexical) == other_names("", library.lexical) == ""


def test_a_rare_word_weighs_more_than_a_common_one(library: Library) -> None:
    asked = weigh("dose of paracetamol", library.lexical)
    assert asked.coverage([]) == 0
    assert 0 < asked.coverage(["paracetamol"]) < asked.coverage(["paracetamol", "dose"]) == 1
    assert weigh("?", library.lexical).coverage(["dose"]) == 0, "a question without words"
    rarer = weigh("antibiotics for a zebra", library.lexical)
    assert rarer.weights["zebra"] > max(weight for word, weight in rarer.weights.items() if word != "zebra")


def test_passages_are_ordered_by_their_nearest_sentence(tmp_path: Path, encoder: HashedWords) -> None:
    """Of two passages of one document the one with a sentence about the question comes first, however long it is."""
    (tmp_path / "files").mkdir()
    about = passage("Wash hands. " * 20 + "Rifampicin colours tears orange.", "Ward")
    beside = passage("Rifampicin is kept in the cupboard on the left of the pharmacy.", "Ward")
    with build(tmp_path, encoder.identity, LibrarySettings()) as builder:
        builder.put_collection(Collection("c", "C"))
        builder.put(replace(_document(about), passages=2))
        builder.add([about, beside], encoded(encoder, [about, beside]))
        builder.publish(message("generation.made.upgrade"))
    question = "does rifampicin colour tears orange"
    with Library.open(tmp_path) as library:
        by_sentence = HybridSearch(library, encoder, SearchSettings()).search(question, EVERYTHING, 2)
        fused = HybridSearch(library, encoder, SearchSettings(sentences=0)).search(question, EVERYTHING, 2)
    assert by_sentence.hits[0].passage == about
    first, second = (one.nearest or 0.0 for one in by_sentence.hits)
    assert first > second
    assert all(one.nearest is None for one in fused.hits)
    assert by_sentence.closeness is Closeness.UNKNOWN, "no limits were measured of this encoder"


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("who answers on extension 6152 and when do we ring extension", "lab"),
        ("which form is px-417 for, which form", "lab"),
        ("who answers on the extension and when do we ring extension", "ward"),
        ("who answered on extension 2019 and when did we ring extension", "ward"),
        ("who answers when 1000 mg is given, ring the extension", "ward"),
    ],
)
def test_an_extension_or_a_forms_number_comes_first(
    tmp_path: Path, encoder: HashedWords, question: str, first: str
) -> None:
    (tmp_path / "files").mkdir()
    lab = passage("Overdose: the nurse tells biochemistry (6152) and writes PX-417. Made in 2019, 1000 mg each.", "Lab")
    ward = passage("Who answers on the extension of the ward: ring it when we ask. Which form is for whom.", "Ward")
    with build(tmp_path, encoder.identity, LibrarySettings()) as builder:
        builder.put_collection(Collection("c", "C"))
        for one in (lab, ward):
            builder.put(_document(one))
        builder.add([lab, ward], encoded(encoder, [lab, ward]))
        builder.publish(message("generation.made.upgrade"))
    with Library.open(tmp_path) as library:
        hits = HybridSearch(library, encoder, SearchSettings()).search(question, EVERYTHING, 2).hits
    assert hits[0].passage == {"lab": lab, "ward": ward}[first]


@pytest.mark.parametrize(
    ("question", "closeness"),
    [
        ("give antibiotics within one hour of septic shock", Closeness.CLOSE),
        ("salbutamol in pregnancy", Closeness.SOME_WAY),
        ("zebra xylophone", Closeness.NOTHING_NEAR),
    ],
)
def test_closeness_is_said_in_three_words(
    search: HybridSearch, monkeypatch: pytest.MonkeyPatch, question: str, closeness: Closeness
) -> None:
    monkeypatch.setattr("localmed.retrieval.closeness.LIMITS", {"hashed-words": (0.9, 0.2)})
    assert search.search(question, EVERYTHING, 3).closeness is closeness


def test_a_library_made_before_sentences_had_vectors_is_searched_as_then(tmp_path: Path, encoder: HashedWords) -> None:
    (tmp_path / "files").mkdir()
    stored = passage("Give antibiotics within one hour.", "Sepsis")
    with build(tmp_path, encoder.identity, LibrarySettings()) as builder:
        builder.put_collection(Collection("c", "C"))
        builder.put(_document(stored))
        builder.add([stored], encoded(encoder, [stored]))
        builder.publish(message("generation.made.upgrade"))
    with Library.open(tmp_path) as library:
        library.dense._table.drop_columns(["sentences"])
        library.manifest = replace(library.manifest, encoder=encoder.identity.slug)
        found = HybridSearch(library, encoder, SearchSettings()).search("antibiotics", EVERYTHING, 2)
        assert [(one.passage, one.nearest) for one in found.hits] == [(stored, None)]
        library.manifest = replace(library.manifest, encoder="another-1-32")
        with pytest.raises(WrongEncoder):
            HybridSearch(library, encoder, SearchSettings())
