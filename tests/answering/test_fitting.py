"""Evidence is left out by whole passages, instructions never."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from localmed.answering.chat import NOTE_TOKENS, TURN_TOKENS, fit
from localmed.domain import message
from localmed.domain.errors import ModelError

COUNTS = some.lists(some.integers(1, 500), max_size=12)


def test_all_of_it_where_it_fits_exactly() -> None:
    context = 100 + TURN_TOKENS + 50 + 2 * (200 + TURN_TOKENS)
    assert fit([100], [200, 200], 50, context).kept == (0, 1)
    assert fit([100], [200, 200], 50, context).note is None
    shortened = fit([100], [200, 200], 50, context - 1)
    assert shortened.kept == (0,)
    assert shortened.note == message("agents.left_out", left=1, passages=2)


def test_a_short_passage_does_not_overtake_a_long_one() -> None:
    assert fit([10], [100, 5000, 1], 10, 1000).kept == (0,)


def test_where_not_even_one_fits_numbers_are_told() -> None:
    with pytest.raises(ModelError, match=r"first passage 5016, and the context holds 1000"):
        fit([10], [5000], 10, 1000)
    with pytest.raises(ModelError, match="instructions and reply need 2026"):
        fit([2000], [], 10, 1000)


@given(COUNTS, COUNTS, some.integers(1, 300), some.integers(100, 5000))
def test_what_is_kept_always_fits(instructions: list[int], passages: list[int], reply: int, context: int) -> None:
    try:
        fitted = fit(instructions, passages, reply, context)
    except ModelError:
        return
    used = sum(instructions) + reply + sum(passages[at] + TURN_TOKENS for at in fitted.kept)
    assert used + (NOTE_TOKENS if fitted.note else 0) <= context
    assert fitted.kept == tuple(range(len(fitted.kept)))
    assert bool(fitted.note) == (len(fitted.kept) < len(passages))
