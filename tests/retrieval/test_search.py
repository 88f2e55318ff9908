from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localmed.config import LibrarySettings, SearchSettings
from localmed.domain import Collection, Document, Passage, SearchFilter, digest, message
from localmed.errors import WrongEncoder
from localmed.library.lexical import LexicalIndex
from localmed.library.library import Library, build
from localmed.retrieval.relevance import Question, relevance, unnamed, weigh
from localmed.retrieval.search import HybridSearch
from tests.fakes import HashedWords
from tests.values import hit, passage

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
        builder.add(passages, encoder.encode([passage.text for passage in passages], "passage"))
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
    assert (best.dense_rank, best.lexical_rank) == (0, 0)
    assert best.similarity is not None
    assert best.lexical_score is not None
    assert [hit_.score for hit_ in result.hits] == sorted((hit_.score for hit_ in result.hits), reverse=True)


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


def test_only_the_beginning_of_a_long_question_counts(search: HybridSearch, encoder: HashedWords) -> None:
    search.search("asthma " * 3000, EVERYTHING, 1)
    assert max(map(len, encoder.encoded)) <= SearchSettings().query_characters


def test_the_same_every_time(search: HybridSearch) -> None:
    first = search.search("dose in asthma and sepsis", EVERYTHING, 5)
    assert all(search.search("dose in asthma and sepsis", EVERYTHING, 5) == first for _ in range(3))


def test_another_encoder_is_refused(library: Library) -> None:
    with pytest.raises(WrongEncoder):
        HybridSearch(library, HashedWords("2"), SearchSettings())


# --- relevance -------------------------------------------------------------------------------------------------------


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_relevance_is_a_probability_that_grows_with_similarity(lexical: LexicalIndex, one: float, other: float) -> None:
    question = weigh("dose of paracetamol", lexical)
    low, high = (
        relevance(question, (hit(TEXTS[2][1], similarity=cosine),), lexical, True)[0] for cosine in sorted((one, other))
    )
    assert 0 <= low <= high <= 1


@pytest.fixture(scope="module")
def lexical(library: Library) -> LexicalIndex:
    return library.lexical


def test_relevance_grows_with_the_words_covered(lexical: LexicalIndex) -> None:
    question = weigh("maximum dose of paracetamol", lexical)
    texts = ["Nothing of it.", "Paracetamol.", "Dose of paracetamol.", "The maximum dose of paracetamol."]
    for dense in (True, False):
        scores = list(relevance(question, [hit(text, "", similarity=0.5) for text in texts], lexical, dense))
        assert scores == sorted(scores)
        assert scores[0] < scores[-1]
    assert relevance(question, (hit(texts[-1], ""),), lexical, False)[0] == pytest.approx(1)


def test_more_hits_never_make_less_relevant(lexical: LexicalIndex) -> None:
    question = weigh("maximum dose of paracetamol", lexical)
    good, poor = hit("The dose of paracetamol.", similarity=0.6), hit("Asthma.", similarity=0.1)
    for dense in (True, False):
        (alone,) = relevance(question, (good,), lexical, dense)
        assert relevance(question, (poor, good), lexical, dense)[1] == alone


def test_a_reranked_passage_is_judged_by_its_score_too(lexical: LexicalIndex) -> None:
    question = weigh("maximum dose of paracetamol", lexical)
    read = [replace(hit("Analgesia.", similarity=0.5), rerank_score=score) for score in (0.4, 0.8)]
    low, high = relevance(question, read, lexical, True, "MaxSim over words 1")
    assert low < 0.5 < relevance(question, [replace(read[1], similarity=0.9)], lexical, True, "MaxSim over words 1")[0]
    assert low < high
    unknown = relevance(question, read, lexical, True, "another reranker")
    assert unknown[0] == unknown[1] == relevance(question, read, lexical, True)[0], "scores that nobody calibrated"


def test_words_that_no_source_holds_are_told(lexical: LexicalIndex) -> None:
    hits = (hit("The maximum dose of paracetamol.", ""), hit("Analgesia for sepsis.", ""))
    assert unnamed("What is the maximum dose of Doses-of-Paracetamol in sepsis?", hits, lexical, 3) == ()
    assert unnamed("What is the dose of salbutamol in asthma?", hits, lexical, 3) == ("salbutamol", "asthma")
    assert len(unnamed("salbutamol asthma antibiotics recognition", hits, lexical, 2)) == 2
    assert unnamed("", hits, lexical, 3) == unnamed("?!", hits, lexical, 3) == ()


def test_a_question_without_words_has_no_relevance(lexical: LexicalIndex) -> None:
    assert relevance(weigh("?", lexical), (hit("x", similarity=1.0),), lexical, True) == (0,)
    assert relevance(weigh("dose", lexical), (), lexical, True) == ()
    assert Question({}).coverage(["dose"]) == 0
