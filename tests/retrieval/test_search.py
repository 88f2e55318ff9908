"""Hybrid search over a small library; how rankings are fused, and the first passages read again."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localmed.config import SearchSettings
from localmed.domain import Hit, SearchFilter
from localmed.domain.errors import WrongEncoder
from localmed.domain.findings import Closeness
from localmed.library.library import Library
from localmed.retrieval.search import HybridSearch, Ranking, fuse, other_names, rerank, standardised
from localmed.retrieval.weights import weigh
from tests.fakes import HashedWords, built
from tests.values import passage

TEXTS = [
    ("Sepsis", "Give antibiotics within one hour of recognition of septic shock.", "en"),
    ("Asthma", "Salbutamol is inhaled during an attack of asthma.", "en"),
    ("Paracetamol", "The maximum dose of paracetamol is 4 g in 24 hours.", "en"),
    ("探视指南", "普通病房的探视时间为每天14:00至19:30。", "zh"),
    ("发热", "儿童发热可以用对乙酰氨基酚。", "zh"),
]
EVERYTHING = SearchFilter()


@pytest.fixture(scope="module")
def encoder() -> HashedWords:
    return HashedWords()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, encoder: HashedWords) -> Iterator[Library]:
    passages = [passage(text, title, language=language) for title, text, language in TEXTS]
    with Library.open(built(tmp_path_factory.mktemp("data") / "of", encoder, passages)) as opened:
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
    about = passage("Wash hands. " * 20 + "Rifampicin colours tears orange.", "Ward")
    beside = passage("Rifampicin is kept in the cupboard on the left of the pharmacy.", "Ward")
    data = built(tmp_path / "of", encoder, [about, beside])
    question = "does rifampicin colour tears orange"
    with Library.open(data) as library:
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
    lab = passage("Overdose: the nurse tells biochemistry (6152) and writes PX-417. Made in 2019, 1000 mg each.", "Lab")
    ward = passage("Who answers on the extension of the ward: ring it when we ask. Which form is for whom.", "Ward")
    data = built(tmp_path / "of", encoder, [lab, ward])
    with Library.open(data) as library:
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
    stored = passage("Give antibiotics within one hour.", "Sepsis")
    data = built(tmp_path / "of", encoder, [stored])
    with Library.open(data) as library:
        library.dense._table.drop_columns(["sentences"])
        library.manifest = replace(library.manifest, encoder=encoder.identity.slug)
        found = HybridSearch(library, encoder, SearchSettings()).search("antibiotics", EVERYTHING, 2)
        assert [(one.passage, one.nearest) for one in found.hits] == [(stored, None)]
        library.manifest = replace(library.manifest, encoder="another-1-32")
        with pytest.raises(WrongEncoder):
            HybridSearch(library, encoder, SearchSettings())


# --- fusion -----------------------------------------------------------------------------------------------------------


PASSAGES = [f"p{number:02d}" for number in range(30)]
RANKING = st.lists(st.sampled_from(PASSAGES), unique=True, max_size=30).map(
    lambda names: [(name, f"d{int(name[1:]) // 3}") for name in names]
)
WEIGHTED = st.lists(st.tuples(RANKING, st.floats(0.1, 5)), max_size=4)


@given(WEIGHTED)
def test_each_passage_once_and_best_first(rankings: Sequence[tuple[Ranking, float]]) -> None:
    fused = fuse(rankings, 60)
    names = [name for name, _ in fused]
    assert len(names) == len(set(names))
    assert set(names) == {passage for ranking, _ in rankings for passage, _ in ranking}
    assert fused == sorted(fused, key=lambda pair: (-pair[1], pair[0]))
    assert all(score > 0 for _, score in fused)


@given(WEIGHTED, st.randoms())
def test_the_order_of_the_lists_does_not_matter(
    rankings: Sequence[tuple[Ranking, float]], shuffle: random.Random
) -> None:
    other = list(rankings)
    shuffle.shuffle(other)
    assert [score for _, score in fuse(rankings, 60)] == pytest.approx([score for _, score in fuse(other, 60)])
    assert fuse(rankings, 60) == fuse(rankings, 60)


@given(RANKING, RANKING)
def test_a_weight_of_zero_orders_as_without_the_list(kept: Ranking, dropped: Ranking) -> None:
    alone = [name for name, _ in fuse([(kept, 1.0)], 60)]
    both = [name for name, score in fuse([(kept, 1.0), (dropped, 0.0)], 60) if name in set(alone)]
    assert both == alone


def test_ties_by_passage() -> None:
    one, other = [("a", "x")], [("b", "y")]
    assert [name for name, _ in fuse([(one, 1.0), (other, 1.0)], 60)] == ["a", "b"]
    assert [name for name, _ in fuse([(other, 1.0), (one, 1.0)], 60)] == ["a", "b"]


# --- reranking --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Counting:
    """A ``Reranker`` that scores a passage by how often it holds the question."""

    name: str = "counting 1"

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> Sequence[float]:
        return [float(text.count(question)) for text in passages]


def weights(first: int = 20, lexical: float = 0.0, fused: float = 0.0) -> SearchSettings:
    return SearchSettings(rerank=first, rerank_lexical_weight=lexical, rerank_fused_weight=fused)


def hits(*texts: str) -> tuple[Hit, ...]:
    return tuple(Hit(passage(text), 1.0, lexical_score=10.0 - place) for place, text in enumerate(texts))


def order(ranked: Sequence[Hit]) -> list[str]:
    return [hit.passage.text for hit in ranked]


def test_the_reranker_decides_the_order_of_the_first() -> None:
    ranked = rerank("a", hits("b", "a", "aa", "aaa"), Counting(), weights(first=3))
    assert order(ranked) == ["aa", "a", "b", "aaa"]
    assert [hit.rerank_score for hit in ranked] == [2.0, 1.0, 0.0, None]


def test_the_lexical_and_the_fused_score_count_by_their_weight_and_equal_ones_leave_the_order() -> None:
    by_words, fused = (
        hits("b", "a", "c"),
        tuple(Hit(passage(text), score) for text, score in (("b", 3), ("a", 2), ("c", 1))),
    )
    for found, heavy in ((by_words, weights(lexical=100.0)), (fused, weights(fused=100.0))):
        assert order(rerank("a", found, Counting(), weights()))[0] == "a"
        assert order(rerank("a", found, Counting(), heavy)) == ["b", "a", "c"]
    assert order(rerank("z", by_words, Counting(), weights())) == ["b", "a", "c"]


def test_a_passage_that_words_did_not_find_counts_as_the_last_that_they_did() -> None:
    fused = (
        Hit(passage("b"), 1.0, lexical_score=4.0),
        Hit(passage("c"), 1.0),
        Hit(passage("d"), 1.0, lexical_score=2.0),
    )
    assert order(rerank("z", fused, Counting(), weights(lexical=1.0))) == ["b", "c", "d"]
    unknown = (Hit(passage("b"), 1.0), Hit(passage("z"), 1.0))
    assert order(rerank("z", unknown, Counting(), weights(lexical=1.0))) == ["z", "b"]


@given(st.lists(st.floats(-1e6, 1e6), max_size=30), st.integers(0, 40))
def test_nothing_is_lost_and_the_rest_stays(scores: list[float], first: int) -> None:
    given_hits = tuple(Hit(passage(str(place)), score) for place, score in enumerate(scores))
    ranked = rerank("1", given_hits, Counting(), weights(first, 0.5, 0.5))
    assert sorted(order(ranked)) == sorted(order(given_hits))
    assert ranked[first:] == given_hits[first:]


def test_standardised() -> None:
    assert standardised([1.0, 3.0]) == [-1.0, 1.0]
    assert standardised([2.0, 2.0, 2.0]) == [0.0, 0.0, 0.0]
    assert standardised([]) == []


@pytest.mark.parametrize(
    ("question", "verbatim"),
    [
        (
            "When is the glucose tolerance test done again?",
            "The glucose tolerance test done again after birth decides.",
        ),
        ("血红蛋白低于七十时输血吗", "患者血红蛋白低于七十时应输血。"),
    ],
)
def test_a_phrase_of_the_question_stays_where_words_ranked_it(question: str, verbatim: str) -> None:
    others = [Hit(passage(f"{question[:2]} {number}"), 1.0, lexical_rank=number) for number in (0, *range(2, 9))]
    hit = Hit(passage(verbatim), 1.0, lexical_rank=1)
    ranked = rerank(question, (*others, hit), Constant(), weights())
    assert ranked.index(next(one for one in ranked if one.passage.text == verbatim)) == 1


@dataclass(frozen=True)
class Constant:
    """A ``Reranker`` that prefers what stands first."""

    name: str = "constant 1"

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> Sequence[float]:
        return [float(-place) for place, _ in enumerate(passages)]
