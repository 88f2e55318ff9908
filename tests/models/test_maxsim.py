"""MaxSim over the starter encoder's token vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from localmed.hooks import Hooks, following
from localmed.models import bert
from localmed.models.bert import MaxSim
from localmed.models.minilm import DIMENSIONS, MAX_TOKENS, MiniLM

PASSAGES = [
    "Noonan syndrome. Mutations in the PTPN11 gene cause about half of all cases.",
    "Noonan syndrome. People with it are often short and have a wide neck, a heart defect and unusual features.",
    "Sepsis. Give antibiotics within one hour.",
    "",
    "口服二甲双胍",
]


@pytest.fixture(scope="module")
def encoder() -> MiniLM:
    return MiniLM(exact=True)


@pytest.fixture(scope="module")
def reranker(encoder: MiniLM) -> MaxSim:
    return MaxSim(encoder)


def test_a_closer_passage_scores_higher(reranker: MaxSim) -> None:
    genes, features, other, *_ = reranker.score("Which genetic changes cause Noonan syndrome?", PASSAGES)
    assert genes > features > other


def test_it_is_the_mean_of_each_pieces_best(reranker: MaxSim, encoder: MiniLM) -> None:
    """Against the definition, on vectors of the same encoder: every piece of a word, none of the marks."""
    question, passage = "Is Noonan syndrome inherited?", PASSAGES[0]
    question_vectors, read = (vector.numpy() for vector in encoder.token_vectors(encoder.pieces([question, passage])))
    assert question_vectors.shape[1] == DIMENSIONS
    assert np.linalg.norm(question_vectors, axis=1) == pytest.approx(np.ones(len(question_vectors)), abs=1e-5)
    words = question_vectors[1:-2]  # [CLS] first; ? and [SEP] last
    expected = float(np.mean([max(float(word @ piece) for piece in read) for word in words]))
    assert reranker.score(question, [passage])[0] == pytest.approx(expected, abs=1e-5)


def test_order_and_company_change_nothing(reranker: MaxSim) -> None:
    together = reranker.score("sepsis", PASSAGES)
    assert together == pytest.approx([reranker.score("sepsis", [passage])[0] for passage in PASSAGES], abs=1e-4)
    assert reranker.score("sepsis", PASSAGES[::-1]) == pytest.approx(together[::-1], abs=1e-4)


@pytest.mark.parametrize("question", ["", "?!", "2级高血压", "word " * 5000, "\x00"])
def test_any_question_has_a_score(reranker: MaxSim, question: str) -> None:
    scores = reranker.score(question, [*PASSAGES, "word " * 1000])
    assert len(scores) == len(PASSAGES) + 1
    assert all(-1.001 <= score <= 1.001 for score in scores)


def test_nothing_to_score(reranker: MaxSim) -> None:
    assert reranker.score("sepsis", []) == []


def test_long_text_is_cut(encoder: MiniLM) -> None:
    assert len(encoder.pieces(["word " * 5000])[0]) == MAX_TOKENS


def test_what_stands_far_down_a_passage_is_not_read(reranker: MaxSim) -> None:
    filler = "word " * 300
    assert reranker.score("sepsis", [filler + "sepsis"]) == reranker.score("sepsis", [filler + "asthma"])


def test_name_tells_the_encoder(reranker: MaxSim) -> None:
    assert reranker.name == "MaxSim over all-MiniLM-L6-v2 0.1.0, 160 pieces"


def test_each_text_is_read_alone(encoder: MiniLM) -> None:
    """Beside others it may have other last bits, and a question other scores, by what was asked before."""
    batches: list[tuple[float, float]] = []
    with following(Hooks(progress=lambda done, total, _: batches.append((done, total)))):
        encoder.token_vectors(encoder.pieces(["sepsis", "asthma", "fever"]))
    assert batches == [(1, 3), (2, 3), (3, 3)]


class Counting(MiniLM):
    """Remembers how many texts it has read."""

    read = 0

    def token_vectors(self, pieces: Sequence[list[int]]) -> list[Any]:
        self.read += len(pieces)
        return super().token_vectors(pieces)


def test_a_passage_of_the_library_is_read_once(reranker: MaxSim, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bert, "KEPT", 4)
    encoder = Counting(exact=True)
    keeping = MaxSim(encoder)
    keeping.score("sepsis", PASSAGES[:4], keep=True)
    scores = keeping.score("heart defect", PASSAGES[:4], keep=True)
    assert encoder.read == 6, "the second question alone"
    assert scores == reranker.score("heart defect", PASSAGES[:4]), "to the last bit, whatever was asked before"
    keeping.score("sepsis", [PASSAGES[0], PASSAGES[4]], keep=True)
    assert encoder.read == 8
    keeping.score("sepsis", [PASSAGES[0]], keep=True)
    assert encoder.read == 9, "it was used again: it stays"
    keeping.score("sepsis", [PASSAGES[1]], keep=True)
    assert encoder.read == 11, "the one that was used longest ago had gone"


def test_of_other_texts_nothing_is_kept() -> None:
    encoder = Counting(exact=True)
    reranker = MaxSim(encoder)
    for _ in range(2):
        reranker.score("sepsis", ["The patient, Mr Smith, has a fever."])
    assert encoder.read == 4
    assert not reranker._kept
