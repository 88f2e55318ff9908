"""What may answer is found however little of the index it is, and no search asks for more than a model host gives."""

from __future__ import annotations

import pytest

from localmed.domain import SearchFilter, Status
from localmed.library.holding import IDS_A_SEARCH, MOST_PASSAGES, Found, allowed
from localmed.models.host.protocol import MOST_ITEMS

PASSAGES = 120_000  # of as many documents, best first


class Index:
    """Ranks the passages by their number; refuses what the model host refuses."""

    def __call__(self, number: int, filters: SearchFilter) -> Found:
        assert number <= MOST_PASSAGES
        assert len(filters.documents) <= MOST_ITEMS
        ids = [int(name) for name in filters.documents] or range(PASSAGES)
        return [(f"p{number_}", str(number_), -float(number_)) for number_ in sorted(ids)[:number]]


def answering(filters: SearchFilter, status_of: dict[str, Status], limit: int = 3) -> list[str]:
    return [row[1] for row in allowed(Index(), limit, filters, status_of, lambda: map(str, range(PASSAGES)))]


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


@pytest.mark.parametrize("excluded", [10, MOST_PASSAGES * 3, PASSAGES - 1])
def test_however_many_of_the_best_may_not_answer(excluded: int) -> None:
    status_of = {str(number): Status.SUPERSEDED for number in range(excluded)}
    assert answering(SearchFilter(), status_of) == [str(number) for number in range(excluded, PASSAGES)][:3]


def test_more_documents_than_a_search_names_are_asked_for_in_parts() -> None:
    named = tuple(map(str, range(PASSAGES - 2 * MOST_ITEMS, PASSAGES)))
    assert answering(SearchFilter(documents=named), {named[0]: Status.WITHDRAWN}) == list(named[1:4])
