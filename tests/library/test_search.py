"""Searching one library: filters agree in all three indexes, what may not answer does not, any text is a question."""

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
from localmed.library.holding import IDS_A_SEARCH, MOST_PASSAGES, Found, search_allowed
from localmed.library.library import SPARSE, Library, build
from localmed.models.host.protocol import MOST_ITEMS
from tests.fakes import HashedWords, WeighedWords, described, documents, import_into, jsonl, token_of, withdraw, write

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
    for name, more in (("ward", [old]), ("clinic", [])):
        folder = write(root / name, {"all.jsonl": jsonl(*records, *more)})
        import_into(settings, folder, manifest=described(name), encoder=WeighedWords())
    with Library.open(settings.data) as opened:
        yield opened


def found(library: Library, filters: SearchFilter, limit: int = 100) -> list[set[str]]:
    """What each index finds: words, vectors, weights."""
    vector = WeighedWords().encode(["Sepsis"], "query")[0]
    rows = (
        library.search_lexical("Sepsis", limit, filters, 3.0, 64),
        library.search_dense(vector, limit, filters),
        library.search_sparse({token_of("sepsis"): 1.0}, limit, filters),
    )
    return [{row[0] for row in one} for one in rows]


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
def test_filters_agree_in_all_indexes(library: Library, filters: SearchFilter, count: int) -> None:
    lexical, dense, sparse = found(library, filters)
    assert lexical == dense == sparse
    assert len(lexical) == count
    for limit in (0, 2):
        assert [len(one) for one in found(library, filters, limit)] == [min(limit, count)] * 3


def test_a_filter_does_not_change_scores(library: Library) -> None:
    question = {token_of("sepsis"): 1.0, token_of("guidance"): 0.5}
    everywhere = {row[0]: row[2] for row in library.search_sparse(question, 100, SearchFilter())}
    ward = library.search_sparse(question, 100, SearchFilter(collections=("ward",), edition_from="2019"))
    assert ward
    assert all(everywhere[row[0]] == row[2] for row in ward)


def test_excluded_documents_do_not_fill_the_limit(settings: Settings, corpus: Path) -> None:
    """The forty nearest are withdrawn: the ten that may answer are found all the same."""
    best = [{"id": f"w{number}", "title": "Sepsis", "text": f"Sepsis. {number}"} for number in range(40)]
    rest = [
        {"id": f"c{number}", "title": "Else", "text": f"Sepsis among many other words {number}"} for number in range(10)
    ]
    import_into(settings, write(corpus, {"all.jsonl": jsonl(*best, *rest)}), encoder=WeighedWords())
    for name, document in documents(settings).items():
        if "#w" in name:
            withdraw(settings.data, document)
    with Library.open(settings.data) as library:
        for limit, count in ((1, 1), (3, 3), (10, 10), (50, 10)):
            assert [len(one) for one in found(library, SearchFilter(), limit)] == [count] * 3
        withdrawn = SearchFilter(statuses=(Status.WITHDRAWN,))
        assert [len(one) for one in found(library, withdrawn, 7)] == [7, 7, 7]


def test_an_empty_library_answers_nothing(settings: Settings) -> None:
    with build(settings.data, HashedWords().identity, settings.library) as builder:
        builder.put_collection(described().collection)
        builder.publish(message("generation.made.upgrade"))
    with Library.open(settings.data) as library:
        vector = HashedWords().encode(["Sepsis"], "query")[0]
        assert library.search_lexical("Sepsis", 9, SearchFilter(), 3.0, 64) == []
        assert library.search_dense(vector, 9, SearchFilter()) == []
        assert not (library.path / SPARSE).exists(), "of a sparse encoder alone"


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


# --- what may answer is found however little of the index it is, and no search asks for too much ----------------------


PASSAGES = 120_000  # of as many documents, best first


class Index:
    """Ranks the passages by their number; refuses what the model host refuses."""

    def __call__(self, number: int, filters: SearchFilter) -> Found:
        assert number <= MOST_PASSAGES
        assert len(filters.documents) <= MOST_ITEMS
        ids = [int(name) for name in filters.documents] or range(PASSAGES)
        return [(f"p{number_}", str(number_), -float(number_)) for number_ in sorted(ids)[:number]]


def answering(filters: SearchFilter, status_of: dict[str, Status], limit: int = 3) -> list[str]:
    return [row[1] for row in search_allowed(Index(), limit, filters, status_of, lambda: map(str, range(PASSAGES)))]


OLD = SearchFilter(statuses=(Status.SUPERSEDED,))


def test_the_few_that_are_superseded_are_found_at_the_end_of_a_large_library() -> None:
    status_of = {"90000": Status.SUPERSEDED, "110000": Status.SUPERSEDED, "5": Status.WITHDRAWN, "7": Status.PENDING}
    assert answering(OLD, status_of) == ["90000", "110000"]
    assert answering(OLD, {}) == []
    both = SearchFilter(statuses=(Status.SUPERSEDED, Status.PENDING))
    assert answering(both, status_of) == ["90000", "110000"], "what is not yet effective never answers"


def test_more_documents_than_one_search_takes() -> None:
    status_of = {str(number): Status.SUPERSEDED for number in range(50_000, 50_000 + 3 * IDS_A_SEARCH)}
    assert answering(OLD, status_of) == ["50000", "50001", "50002"]
    narrowed = SearchFilter(statuses=(Status.SUPERSEDED,), documents=("50007", "4"))
    assert answering(narrowed, status_of) == ["50007"]
    named = tuple(map(str, range(PASSAGES - 2 * MOST_ITEMS, PASSAGES)))
    assert answering(SearchFilter(documents=named), {named[0]: Status.WITHDRAWN}) == list(named[1:4])


@pytest.mark.parametrize("excluded", [10, MOST_PASSAGES * 3, PASSAGES - 1])
def test_however_many_of_the_best_may_not_answer(excluded: int) -> None:
    status_of = {str(number): Status.SUPERSEDED for number in range(excluded)}
    assert answering(SearchFilter(), status_of) == [str(number) for number in range(excluded, PASSAGES)][:3]
