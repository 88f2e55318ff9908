"""The reader: question and text read together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from localmed.errors import ModelError
from localmed.models.e5 import E5
from localmed.models.reader import GAIN, PASSAGES, WEIGHTS, Reader, ReadingMaxSim, windows

ANSWERS = "Enoxaparin 40 mg is given once daily under the skin to prevent clots."
BESIDE = "Enoxaparin should be stored at room temperature and never be frozen."
CHINESE = ["口服二甲双胍 500 mg，每日两次，随餐服用。", "二甲双胍是白色的片剂。"]


@pytest.fixture(scope="module")
def encoder() -> E5:
    return E5()


@pytest.fixture(scope="module")
def reader(encoder: E5) -> Reader:
    return Reader(encoder)


def test_the_sentence_that_answers_is_told_from_one_beside_it(reader: Reader) -> None:
    right, beside = reader.score("How much enoxaparin is given to prevent clots?", [ANSWERS, BESIDE])
    assert right > 0 > beside
    right, beside = reader.score("二甲双胍每天吃几次？", CHINESE)
    assert right > 0 > beside


def test_order_and_company_change_hardly_anything(encoder: E5, reader: Reader) -> None:
    question, texts = "How is enoxaparin stored?", [ANSWERS, BESIDE, "", ANSWERS * 30]
    together = reader.score(question, texts)
    assert together == pytest.approx(list(reversed(reader.score(question, texts[::-1]))), abs=0.2)
    assert reader.score(question, []) == []
    assert len(reader.score("", [ANSWERS])) == 1
    del encoder


def test_other_weights_are_refused(encoder: E5, tmp_path: Path) -> None:
    other = tmp_path / "reader.npz"
    np.savez(other, **{"head.bias": np.zeros(1, np.float32)})
    with pytest.raises(ModelError, match=r"reader\.npz"):
        Reader(encoder, other).score("?", [ANSWERS])
    assert WEIGHTS.stat().st_size < 20 * 2**20


def test_windows_are_sentences_after_their_names() -> None:
    long, other = (f"{text[:-1]}, as the pharmacy of this hospital has it written down." for text in (ANSWERS, BESIDE))
    passage = f"Clots. Prophylaxis. {long} {other}"
    assert windows(passage) == [f"Clots. Prophylaxis.\n{long}", f"Clots. Prophylaxis.\n{other}"]
    assert windows("") == []
    assert windows("Clots.") == ["Clots."]


class Counting:
    """A reader that says of texts with "40 mg" that they answer, and counts what it reads."""

    def __init__(self) -> None:
        self.read = 0

    name = "counting"

    def score(self, question: str, texts: list[str]) -> list[float]:
        """See ``Reader.score``."""
        self.read += len(texts)
        return [30.0 if "40 mg" in text else -30.0 for text in texts]


def test_the_nearest_passages_are_read_and_gain(encoder: E5) -> None:
    counting = Counting()
    reranker = ReadingMaxSim(encoder, counting)  # type: ignore[arg-type]
    passages = [f"Clots. {BESIDE}", f"Clots. {ANSWERS}", *(f"Clots. {BESIDE} {n}" for n in range(9))]
    near = reranker._near.score("enoxaparin?", passages)
    scores = reranker.score("enoxaparin?", passages)
    gained = [after - before for before, after in zip(near, scores, strict=True)]
    assert sum(abs(one) > 1e-6 for one in gained) <= 1
    assert max(gained) <= GAIN + 1e-6
    assert counting.read <= PASSAGES * 2
    assert reranker.name == f"counting and {reranker._near.name}"
    assert reranker.score("?", []) == []
