from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from localmed.retrieval.search import Ranking, fuse

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
    assert [round(score, 9) for _, score in fuse(rankings, 60)] == [round(score, 9) for _, score in fuse(other, 60)]
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
