"""Searching one library: filters agree in both indexes, what may not answer does not, any text is a question."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from localmed.config import Settings
from localmed.domain import SearchFilter, Status, message
from localmed.domain.errors import UnknownName
from localmed.library import generations
from localmed.library.library import Library, build
from tests.fakes import HashedWords, described, documents, import_into, jsonl, titles, withdraw, write

EDITIONS = ("2019-03", "2021", "2024-05-01", "")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """Two collections, two languages, four dates, and one text that has been superseded."""
    root = tmp_path_factory.mktemp("search")
    settings = Settings(root / "data")
    records = [
        {"id": f"{language}{number}", "title": f"{language} {number}", "edition": edition, "language": language,
         "text": f"Sepsis guidance number {number}, edition {edition}. 脓毒症 {number}。"}
        for language in ("en", "zh")
        for number, edition in enumerate(EDITIONS)
    ]  # fmt: skip
    old = {"id": "old", "title": "old", "status": "superseded", "text": "Sepsis as it was treated before."}
    import_into(settings, write(root / "a", {"all.jsonl": jsonl(*records, old)}))
    import_into(settings, write(root / "b", {"all.jsonl": jsonl(*records)}), manifest=described("clinic"))
    with Library.open(settings.data) as opened:
        yield opened


def both(library: Library, filters: SearchFilter, limit: int = 100) -> tuple[set[str], set[str]]:
    vector = HashedWords().encode(["Sepsis"], "query")[0]
    lexical = library.search_lexical("Sepsis", limit, filters, 3.0, 64)
    dense = library.search_dense(vector, limit, filters)
    return {row[0] for row in lexical}, {row[0] for row in dense}


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        (SearchFilter(), 16),
        (SearchFilter(collections=("ward",)), 8),
        (SearchFilter(collections=("ward", "clinic")), 16),
        (SearchFilter(collections=("it's not there",)), 0),
        (SearchFilter(language="zh"), 8),
        (SearchFilter(language="x' OR 1=1 --"), 0),
        (SearchFilter(edition_from="2021"), 8),
        (SearchFilter(edition_from="2021-01"), 4),
        (SearchFilter(edition_to="2021"), 8),
        (SearchFilter(edition_from="2019", edition_to="2019-12"), 4),
        (SearchFilter(edition_from="2024-05-01", edition_to="2024-05-01"), 4),
        (SearchFilter(edition_from="2024-05-02"), 0),
        (SearchFilter(collections=("clinic",), language="en", edition_from="2019"), 3),
        (SearchFilter(statuses=(Status.SUPERSEDED,)), 1),
        (SearchFilter(statuses=tuple(Status)), 17),
        (SearchFilter(statuses=()), 0),
    ],
)
def test_filters_agree_in_both_indexes(library: Library, filters: SearchFilter, count: int) -> None:
    lexical, dense = both(library, filters)
    assert lexical == dense
    assert len(lexical) == count


def test_a_superseded_document_answers_only_when_asked(library: Library) -> None:
    assert "old" not in titles(library, "Sepsis", limit=100)
    assert "old" in titles(library, "Sepsis", SearchFilter(statuses=(Status.CURRENT, Status.SUPERSEDED)), 100)


def test_nothing_wanted_is_nothing_found(library: Library) -> None:
    assert both(library, SearchFilter(), 0) == (set(), set())


def test_excluded_documents_do_not_fill_the_limit(settings: Settings, corpus: Path) -> None:
    """The forty nearest are withdrawn: the ten that may answer are found all the same."""
    best = [{"id": f"w{number}", "title": "Sepsis", "text": f"Sepsis. {number}"} for number in range(40)]
    rest = [
        {"id": f"c{number}", "title": "Else", "text": f"Sepsis among many other words {number}"} for number in range(10)
    ]
    import_into(settings, write(corpus, {"all.jsonl": jsonl(*best, *rest)}))
    for name, document in documents(settings).items():
        if "#w" in name:
            withdraw(settings.data, document)
    with Library.open(settings.data) as library:
        for limit, count in ((1, 1), (3, 3), (10, 10), (50, 10)):
            lexical, dense = both(library, SearchFilter(), limit)
            assert (len(lexical), len(dense)) == (count, count)
        withdrawn = SearchFilter(statuses=(Status.WITHDRAWN,))
        assert [len(documents) for documents in both(library, withdrawn, 7)] == [7, 7]


def test_an_empty_library_answers_nothing(settings: Settings) -> None:
    with build(settings.data, HashedWords().identity, settings.library) as builder:
        builder.put_collection(described().collection)
        builder.publish(message("generation.made.upgrade"))
    with Library.open(settings.data) as library:
        assert both(library, SearchFilter()) == (set(), set())


ODD = [
    "", " ", "\0", "AND OR NOT IN", "sepsis AND (", '"', "'", "text:sepsis", "sep*", "+-&&||!(){}[]^\"~*?:\\/",
    "😀" * 50,
    "a" * 20_000, "sepsis " * 3_000, "脓毒症" * 7_000, "\ud800 sepsis",
    "\u202e\u2028\ufeff", "7/8", "*", "?", "~", "the of and",
]  # fmt: skip


@pytest.mark.parametrize("question", ODD, ids=range(len(ODD)))
def test_odd_questions(library: Library, question: str) -> None:
    rows = library.search_lexical(question, 5, SearchFilter(), 3.0, 64)
    assert bool(rows) == any(word in question for word in ("sepsis", "脓毒症"))


@hypothesis(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=200), st.text(max_size=10))
def test_any_text_is_a_question(library: Library, question: str, other: str) -> None:
    library.search_lexical(question, 5, SearchFilter(), 3.0, 64)
    with_term = library.search_lexical(f"{question} sepsis {other}", 100, SearchFilter(), 3.0, 64)
    assert len(with_term) >= 16


def test_ids_are_found_by_their_beginning(library: Library) -> None:
    passage = next(library.lexical.all_passages())
    assert library.passage(passage.id[:12]) == passage
    for bad in ("", passage.id[:5], "zzzzzz", "../../x"):
        with pytest.raises(UnknownName):
            library.passage(bad)
    assert library.passages([passage.id, "none"]) == {passage.id: passage}
    assert generations.check(library.path, whole=True) == [], "reading changed something"
