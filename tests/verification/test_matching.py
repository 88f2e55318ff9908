"""The sentences that a statement rests on."""

from __future__ import annotations

import pytest

from localmed.verification import matching
from tests.values import passage

WORDS = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf")
# Their sums differ in the last bit, and so does on which side of its limit a sentence lies that adds just enough.
ORDERS = ((1.0, 1.0, 1.0, 0.4, 0.4, 1.0, 1.0), (1.0, 1.0, 1.0, 1.0, 0.4, 0.4, 1.0))


@pytest.mark.parametrize("order", ORDERS)
def test_what_adds_just_enough_is_taken_in_whatever_order_words_are_counted(
    monkeypatch: pytest.MonkeyPatch, order: tuple[float, ...]
) -> None:
    stems = [next(iter(matching.words(word))) for word in WORDS]
    monkeypatch.setattr(matching, "weights", lambda _: dict(zip(stems, order, strict=True)))
    source = passage(f"{' '.join(WORDS)}. Metformin is a medicine.", "Words")
    window = matching.window(f"Metformin {' '.join(WORDS)}.", [source])
    assert len(window.sentences) == 2
