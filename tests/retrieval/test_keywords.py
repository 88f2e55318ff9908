"""Keyword extraction degradation: what is required, what is dropped, and keywords by rule, in English and Chinese."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localmed.answering.asking import Keywords, KeywordsInput
from localmed.answering.keyword_rules import READ, KeywordRules
from localmed.config import KeywordSettings, SearchSettings, Settings
from localmed.domain import SearchFilter, Status
from localmed.domain.findings import KeywordStep
from localmed.library.library import Library
from localmed.retrieval.keywords import NGram, Rows, candidates, degrade, outermost, ranked
from localmed.retrieval.search import HybridSearch
from tests.fakes import ANY, HashedWords, documents, import_into, jsonl, withdraw, write

RECORDS = [
    {"id": "1", "title": "Sepsis", "text": "Septic shock needs antibiotics within one hour. Measure lactate."},
    {"id": "2", "title": "Shock", "text": "Septic shock is one kind of shock; anaphylactic shock is another."},
    {"id": "3", "title": "Paracetamol", "text": "The dose of paracetamol in liver failure is lower."},
    {
        "id": "4",
        "title": "Heart",
        "text": "Shortness of breath is a sign of heart failure. Shortness of breath needs care.",
    },
    {"id": "5", "title": "发热", "language": "zh", "text": "儿童热性惊厥时应侧卧。对乙酰氨基酚可用于退热。"},
    {"id": "6", "title": "Old sepsis", "status": "superseded", "text": "Septic shock, antibiotics and vitamins."},
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    root = tmp_path_factory.mktemp("keywords")
    settings = Settings(root / "data")
    import_into(settings, write(root / "corpus", {"all.jsonl": jsonl(*RECORDS)}))
    with Library.open(settings.data) as opened:
        yield opened


@pytest.fixture(scope="module")
def search(library: Library) -> HybridSearch:
    return HybridSearch(library, HashedWords(), SearchSettings())


def titles(library: Library, keywords: Sequence[str], filters: SearchFilter = ANY) -> set[str]:
    rows = library.search_keywords(keywords, 10, filters, 3.0)
    return {passage.title for passage in library.passages([row[0] for row in rows]).values()}


# --- all are required -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        (["septic shock"], {"Sepsis", "Shock"}),
        (["septic shock", "antibiotics"], {"Sepsis"}),
        (["antibiotics", "anaphylactic"], set()),
        (["SEPTIC", "Antibiotic"], {"Sepsis"}),
        (["the", "shock"], {"Sepsis", "Shock"}),
        (["热性", "惊厥", "退热"], {"发热"}),
        (["the", "?"], set()),
        ([], set()),
    ],
)
def test_every_keyword_is_required(library: Library, keywords: list[str], expected: set[str]) -> None:
    assert titles(library, keywords) == expected


def test_the_filter_and_the_statuses_hold(library: Library) -> None:
    assert titles(library, ["septic shock", "vitamins"]) == set(), "superseded"
    assert titles(library, ["septic shock", "vitamins"], SearchFilter(statuses=(Status.SUPERSEDED,))) == {"Old sepsis"}
    assert titles(library, ["shock"], SearchFilter(collections=("other",))) == set()
    assert titles(library, ["退热"], SearchFilter(language="en")) == set()


# --- degradation ------------------------------------------------------------------------------------------------------


def counted(*steps: tuple[int, int]) -> tuple[KeywordStep, ...]:
    return tuple(KeywordStep(*step) for step in steps)


def test_the_least_important_is_dropped_until_something_is_found(search: HybridSearch) -> None:
    result = search.search("?", ANY, 5, ("septic shock", "antibiotics", "anaphylactic", "liver"))
    assert result.keywords == counted((4, 0), (3, 0), (2, 1))
    assert [hit.passage.title for hit in result.hits] == ["Sepsis"]


def test_the_most_important_is_dropped_in_the_end_if_it_is_nowhere(search: HybridSearch) -> None:
    filters = SearchFilter(language="zh")
    result = search.search("?", filters, 5, ("antibiotics", "惊厥", "退热"))
    assert result.keywords == counted((3, 0), (2, 0), (1, 0), (2, 1))
    assert [hit.passage.title for hit in result.hits] == ["发热"]


def test_withdrawn_passages_are_no_results(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "data")
    import_into(settings, write(tmp_path / "corpus", {"all.jsonl": jsonl(*RECORDS)}))
    withdrawn = documents(settings)["all.jsonl#1"]
    withdraw(settings.data, withdrawn)
    with Library.open(settings.data) as library:
        result = HybridSearch(library, HashedWords(), SearchSettings()).search("?", ANY, 5, ("antibiotics", "shock"))
    assert result.keywords == counted((2, 0), (1, 0), (1, 1))
    assert {hit.passage.title for hit in result.hits} == {"Shock"}


def test_keywords_raise_what_holds_them_all(library: Library, search: HybridSearch) -> None:
    question = "shock"
    plain = [hit.passage.title for hit in search.search(question, ANY, 5).hits]
    assert plain[0] == "Shock"
    heavy = HybridSearch(library, HashedWords(), SearchSettings(keyword_weight=5.0, sentences=0))
    assert heavy.search(question, ANY, 5, ("lactate",)).hits[0].passage.title == "Sepsis"


def test_weight_zero_switches_it_off(library: Library) -> None:
    off = HybridSearch(library, HashedWords(), SearchSettings(keyword_weight=0.0))
    assert off.search("shock", ANY, 5, ("lactate",)) == off.search("shock", ANY, 5)


WORLD = st.lists(st.frozensets(st.sampled_from("abcdef"), max_size=4), max_size=6)


@given(WORLD, st.lists(st.sampled_from("abcdefxyz"), unique=True, max_size=7))
def test_never_empty_if_any_keyword_occurs(passages: list[frozenset[str]], keywords: list[str]) -> None:
    searches: list[list[str]] = []

    def search(required: Sequence[str]) -> Rows:
        searches.append(list(required))
        return [(str(place), "d", 1.0) for place, held in enumerate(passages) if held >= set(required)]

    rows, steps = degrade(keywords, search)
    assert bool(rows) == any(keyword in held for held in passages for keyword in keywords)
    assert [step.keywords for step in steps] == [len(required) for required in searches]
    assert not any(step.hits for step in steps[:-1]), "it ends with the first that finds anything"
    assert [step.hits for step in steps[-1:]] == ([len(rows)] if steps else [])
    most = len(keywords)
    assert len(steps) <= most * (most + 1) // 2
    assert searches[:1] == ([keywords] if keywords else [])


# --- keywords by rule -------------------------------------------------------------------------------------------------


def extracted(library: Library, question: str, most: int = 6, encoder: HashedWords | None = None) -> Keywords:
    rules = KeywordRules(library.lexical, encoder or HashedWords(), KeywordSettings().compared)
    return rules.extract(KeywordsInput(question, most))


def test_ngrams_have_no_stop_word_at_an_edge_and_end_at_punctuation() -> None:
    grams = candidates("What is the cause of shortness of breath, in adults?")
    assert grams == ["cause", "cause of shortness", "shortness", "shortness of breath", "breath", "adults"]
    assert candidates("Type 2.5 mg (daily)") == ["type", "type 2.5", "type 2.5 mg", "2.5", "2.5 mg", "mg", "daily"]


def test_a_phrase_is_taken_together_where_the_library_does(library: Library) -> None:
    assert library.lexical.binding("septic shock") == 1
    assert library.lexical.binding("shortness of breath") == 1
    assert library.lexical.binding("paracetamol failure") == 0
    assert library.lexical.binding("zebra crossing") == 0
    assert library.lexical.binding("lactate") == 1
    result = extracted(library, "Is shortness of breath usual in septic shock with paracetamol?")
    assert set(result.words) == {"shortness of breath", "septic shock", "paracetamol"}


def test_rare_words_come_first_and_unseen_ones_are_told(library: Library) -> None:
    result = extracted(library, "Which antibiotics for shock in a zebra?", encoder=None)
    assert result.unknown == ("zebra",)
    assert result.words == ("antibiotics", "shock")


def test_chinese(library: Library) -> None:
    encoder = HashedWords()
    result = extracted(library, "儿童热性惊厥时可以用对乙酰氨基酚吗？疫苗呢？", encoder=encoder)
    assert set(result.words) >= {"儿童", "惊厥", "对乙酰氨基酚"}
    assert result.unknown == ("疫苗",)
    assert encoder.encoded == [], "the encoder does not know the language"
    hits = HybridSearch(library, encoder, SearchSettings()).search("惊厥", ANY, 5, result.words)
    assert hits.keywords[0].hits == 1


@pytest.mark.parametrize("question", ["", "?!", "，。", "the of and", "what is it", "的了吗", "\x00", "zebra"])
def test_questions_without_a_keyword(library: Library, question: str) -> None:
    encoder = HashedWords()
    assert extracted(library, question, encoder=encoder).words == ()
    assert encoder.encoded == []


@pytest.mark.parametrize(
    "text", ["septic shock antibiotics lactate ", "对乙酰氨基酚惊厥", "word{} ", "a" * 50, "?" * 10]
)
def test_a_long_question_is_bounded(library: Library, text: str) -> None:
    encoder = HashedWords()
    question = "".join(text.format(number) for number in range(20_000 // len(text)))
    assert len(extracted(library, question, encoder=encoder).words) <= 6
    assert len(encoder.encoded) <= 1 + KeywordSettings().compared
    assert all(len(text) <= READ for text in encoder.encoded)


@pytest.mark.parametrize("question", ["septic shock and antibiotics in the liver", "儿童热性惊厥时的对乙酰氨基酚剂量"])
def test_the_same_every_time(library: Library, question: str) -> None:
    first = extracted(library, question)
    assert all(extracted(library, question) == first for _ in range(3))


GRAMS = st.lists(
    st.builds(
        lambda terms, rarity, near: NGram(" ".join(terms), tuple(terms), rarity, near),
        st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3, unique=True),
        st.floats(0, 10),
        st.floats(-1, 1),
    ),
    max_size=12,
)


@given(GRAMS, st.integers(1, 8))
def test_no_term_stands_in_two_keywords(grams: list[NGram], most: int) -> None:
    words = [word for keyword in ranked(grams, most) for word in keyword.split()]
    assert len(words) == len(set(words))
    assert len(ranked(grams, most)) <= most
    assert bool(ranked(grams, most)) == bool(grams)
    kept = outermost(grams, most)
    assert len(kept) <= most
    assert not any(set(one.terms) <= set(other.terms) for one in kept for other in kept if one is not other)
