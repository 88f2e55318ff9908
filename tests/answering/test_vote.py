"""The vote: hand-worked sums, ties, no votes, the response, and what the given evidence is worth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localmed.answering.vote import judged, old, outcome, quality, response, vote
from localmed.domain.parts import Label, Quality
from localmed.domain.ports import NOT_JUDGED, Stance


def test_the_papers_figure_two() -> None:
    """Seven articles in two groups: the heavier wins and is the main evidence, the other is dropped."""
    votes, scores = (1, -1, 1, -1, 0, -1, 1), (2.7, 3.3, 3.3, 1.5, 7.0, 2.0, 4.0)
    result = outcome(votes, scores)
    assert result.total == pytest.approx(10.0 - 6.8)
    assert result.label is Label.SUPPORTED
    assert (result.main, result.dropped) == ((0, 2, 6), (1, 3, 5))


def test_a_tie_goes_to_support_also_where_floats_do_not_add_up() -> None:
    result = outcome((1, 1, 1, -1), (0.1, 0.2, 0.3, 0.6))
    assert 0.1 + 0.2 + 0.3 != 0.6, "the sum that a careless comparison would take"
    assert result.label is Label.SUPPORTED
    assert outcome((1, -1), (7.7, 7.7)).label is Label.SUPPORTED


LABELS = st.sampled_from((Label.SUPPORTED, Label.CONTRADICTED, Label.NOT_ENOUGH))


@given(st.lists(LABELS, max_size=5))
def test_a_response_is_correct_only_if_every_claim_is_supported(labels: list[Label]) -> None:
    summary = response(labels)
    assert (summary is Label.CORRECT) == (bool(labels) and all(label is Label.SUPPORTED for label in labels))
    assert (summary is Label.MISTAKEN) == (Label.CONTRADICTED in labels)


ROWS = st.lists(st.tuples(st.sampled_from((-1, 0, 1)), st.integers(10, 80)), max_size=12)


@given(ROWS)
def test_the_label_follows_the_exact_sum(rows: list[tuple[int, int]]) -> None:
    votes, tenths = [value for value, _ in rows], [value for _, value in rows]
    exact = sum(value * score for value, score in rows)
    result = outcome(votes, [tenth / 10 for tenth in tenths])
    if not any(votes):
        assert result.label is Label.NOT_ENOUGH
    else:
        assert result.label is (Label.CONTRADICTED if exact < 0 else Label.SUPPORTED)
    assert sorted((*result.main, *result.dropped)) == [place for place, value in enumerate(votes) if value]


def test_a_stance_votes_if_it_is_sure_enough() -> None:
    assert vote(Stance(0.6, 0.3, 0.1)) == 1
    assert vote(Stance(0.1, 0.3, 0.6)) == -1
    assert vote(Stance(0.1, 0.6, 0.3)) == 0
    assert vote(Stance(0.4, 0.3, 0.3)) == 0, "the most probable, but not likely"
    assert vote(NOT_JUDGED) == 0


@pytest.mark.parametrize(
    ("counts", "outdated", "expected"),
    [
        ([(5, 0, 0)], 0, Quality.SOUND),
        ([(2, 0, 2)], 0, Quality.SOUND),
        ([(2, 0, 2), (0, 0, 1)], 0, Quality.IRRELEVANT),
        ([(1, 2, 0)], 0, Quality.MISLEADING),
        ([(0, 1, 4)], 0, Quality.MISLEADING),
        ([(5, 0, 0)], 1, Quality.OUTDATED),
        ([(5, 0, 0), (3, 0, 0)], 1, Quality.SOUND),
        ([(0, 0, 0)], 0, Quality.UNKNOWN),
        ([(0, 0, 0)], 1, Quality.OUTDATED),
    ],
)
def test_the_given_evidence(counts: list[tuple[int, int, int]], outdated: int, expected: Quality) -> None:
    assert quality(counts, outdated) is expected


def test_how_a_study_voted_counts_only_where_there_was_an_outcome() -> None:
    outcomes = [outcome((1, 1, 0), (3, 2, 1)), outcome((-1, 1, 0), (3, 2, 1)), outcome((0, 0, 0), (3, 2, 1))]
    assert judged(outcomes, 0) == (2, 0, 0)
    assert judged(outcomes, 1) == (1, 1, 0)
    assert judged(outcomes, 2) == (0, 0, 2)


def test_ten_years_are_old_and_no_date_is_not() -> None:
    assert old("2014-05", "2024-01-01")
    assert not old("2015", "2024-12")
    assert not old("", "2024")
    assert not old("2014", "")


def test_what_nobody_judged_is_neither_for_nor_against() -> None:
    """Of studies that bear on a claim; a response without judged claims is not judged, a mixed one not enough."""
    nobody = outcome([0, 0], [7.0, 3.0], judged=False)
    assert (nobody.label, nobody.main, nobody.side) == (Label.NOT_JUDGED, (), 0)
    assert outcome([0, 1], [7.0, 3.0], judged=False).label is Label.SUPPORTED
    assert response([Label.NOT_JUDGED, Label.NOT_ENOUGH]) is Label.NOT_JUDGED
    assert response([Label.NOT_JUDGED, Label.SUPPORTED]) is Label.NOT_ENOUGH
    assert response([Label.NOT_JUDGED, Label.CONTRADICTED]) is Label.MISTAKEN
    assert response([Label.SUPPORTED]) is Label.CORRECT
    assert response([Label.SUPPORTED], carried=False) is Label.NOT_ENOUGH
    assert quality([judged([nobody], 0)], 0) is Quality.UNKNOWN
