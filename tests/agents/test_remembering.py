"""A text of a consultation is encoded once, and vectors stay those of the encoder, in the order asked for."""

from __future__ import annotations

import numpy as np
import pytest

from localmed.agents import remembering
from localmed.agents.remembering import Remembering
from tests.fakes import HashedWords


def test_each_text_is_encoded_once_for_each_kind() -> None:
    encoder = HashedWords()
    remembered = Remembering(encoder)
    remembered.encode(["renal failure", "dose"], "passage")
    remembered.encode(["dose", "dose", "question"], "passage")
    remembered.encode(["dose"], "query")
    assert encoder.encoded == ["renal failure", "dose", "question", "dose"]
    assert remembered.identity == encoder.identity


def test_vectors_are_the_encoders_in_the_order_asked_for() -> None:
    remembered = Remembering(HashedWords())
    remembered.encode(["b", "c"], "query")
    found = remembered.encode(["a", "b", "a"], "query")
    assert np.array_equal(found, HashedWords().encode(["a", "b", "a"], "query"))
    assert remembered.encode([], "query").shape[0] == 0


def test_no_more_texts_are_kept_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembering, "REMEMBERED", 2)
    encoder = HashedWords()
    remembered = Remembering(encoder)
    for text in ("a", "b", "c"):
        remembered.encode([text], "query")
    assert np.array_equal(remembered.encode(["c", "a", "b"], "query"), encoder.encode(["c", "a", "b"], "query"))
    assert len(remembered._known) <= 3
