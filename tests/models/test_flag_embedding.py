"""BGE-M3 on a tiny checkpoint, against FlagEmbedding called directly. See ``test_checkpoints`` too."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localmed.models.flag_embedding import BgeM3, MultiVector
from tests.models.tiny import POSITIONS, WIDTH, lying, make_bge_m3

LONG = "sepsis dose of the " * 200
TEXTS = ["the maximum dose of paracetamol", "sepsis", "普通病房的探视时间为每天", "dose dose dose 探视", "¥€", "", LONG]
MARKS = range(4)

pytestmark = pytest.mark.slow  # FlagEmbedding takes ten seconds to import


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bge_m3(tmp_path_factory.mktemp("models") / "bge-m3")


@pytest.fixture(scope="module")
def encoder(folder: Path) -> BgeM3:
    return BgeM3(lying(folder), exact=True)


@pytest.fixture(scope="module")
def expected(folder: Path) -> Any:
    """What FlagEmbedding makes of ``TEXTS``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        from FlagEmbedding import BGEM3FlagModel

        model = BGEM3FlagModel(str(folder), use_fp16=False, devices="cpu")
        return model.encode(TEXTS, max_length=POSITIONS - 2, return_sparse=True, return_colbert_vecs=True)


def test_dense_and_sparse_as_flag_embedding(encoder: BgeM3, expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, weights = encoder.encode_both(TEXTS, "passage")
    assert vectors.dtype == np.float32
    assert vectors == pytest.approx(expected["dense_vecs"], abs=1e-5)
    for mine, theirs in zip(weights, expected["lexical_weights"], strict=True):
        assert mine == pytest.approx({int(token): float(weight) for token, weight in theirs.items()}, abs=1e-5)
        assert all(weight > 0 for weight in mine.values())
        assert not set(mine) & set(MARKS)
    assert any(weights)
    assert weights[TEXTS.index("")] == {}
    vectors, weights = encoder.encode_both([], "passage")
    assert (vectors.shape, weights) == ((0, WIDTH), [])
    monkeypatch.setattr("localmed.models.network.CPU_BYTES", 1)  # small batches, by length
    _, weights = encoder.encode_both(TEXTS, "query")
    for text, own in zip(TEXTS, weights, strict=True):
        assert own == pytest.approx(encoder.encode_both([text], "query")[1][0], abs=1e-5)


def test_multi_vectors_score_as_flag_embedding(encoder: BgeM3, expected: Any) -> None:
    from FlagEmbedding import BGEM3FlagModel

    reranker = MultiVector(encoder)
    question, *read = expected["colbert_vecs"]
    scores = [float(BGEM3FlagModel.colbert_score(None, question, vectors)) for vectors in read]
    assert reranker.score(TEXTS[0], TEXTS[1:]) == pytest.approx(scores, abs=1e-5)
    assert reranker.score(TEXTS[0], TEXTS[:1]) == pytest.approx([1.0], abs=1e-5)
    assert reranker.score("sepsis", []) == []
    assert reranker.name == "multi-vectors of bge-m3 0123456789ab"
