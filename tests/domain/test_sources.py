"""Where a passage stands."""

from __future__ import annotations

from dataclasses import replace

from localmed.domain.sources import Box, Span
from tests.values import passage


def test_the_pages_of_a_part_of_a_passage_that_runs_over_two() -> None:
    first, second = Box(2, 0, 700, 100, 710), Box(3, 0, 50, 100, 60)
    over_two = replace(passage("One. Two."), spans=(Span(0, 4, first), Span(5, 9, second)))
    assert (over_two.pages, over_two.pages_of(0, 9), over_two.pages_of(5, 9)) == ((2, 3), (2, 3), (3,))
    without = replace(passage("One."), spans=(), page=0)
    assert (without.pages, without.pages_of()) == ((), ())
