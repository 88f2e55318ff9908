"""Encoders in sentence-transformers' format, tiny ones, against the library itself. See ``test_checkpoints`` too."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localmed.domain.errors import ModelError
from localmed.models.sentence_encoder import SentenceEncoder
from tests.models.tiny import WIDTH, lying, make_sentence_encoder

TEXTS = ["the maximum dose of paracetamol", "sepsis", "普通病房的探视时间为每天", "", "dose " * 300]

pytestmark = pytest.mark.slow  # sentence-transformers takes seconds to import


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sentence_encoder(tmp_path_factory.mktemp("models") / "e5")


@pytest.fixture(scope="module")
def encoder(folder: Path) -> SentenceEncoder:
    prefixed = lying(folder, languages=("en", "zh"), query_prefix="query: ", passage_prefix="passage: ")
    return SentenceEncoder(prefixed, exact=True)


def peers(folder: Path, texts: list[str]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(folder), device="cpu")
        return model.encode(texts, prompt="", normalize_embeddings=True, show_progress_bar=False)


@pytest.mark.parametrize("kind", ["query", "passage"])
def test_as_sentence_transformers_with_the_manifests_prefix(folder: Path, encoder: SentenceEncoder, kind: Any) -> None:
    vectors = encoder.encode(TEXTS, kind)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), WIDTH)
    assert vectors == pytest.approx(peers(folder, [f"{kind}: {text}" for text in TEXTS]), abs=1e-5)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-5)


def test_dense_layers_behind_the_pooling(tmp_path: Path) -> None:
    folder = make_sentence_encoder(tmp_path / "gemma", dense=2)
    vectors = SentenceEncoder(lying(folder), exact=True).encode(TEXTS, "passage")
    assert vectors == pytest.approx(peers(folder, TEXTS), abs=1e-5)
    weights = folder / "3_Dense" / "model.safetensors"
    weights.rename(weights.with_name("other.safetensors"))  # beside it the library would read a pickle
    with pytest.raises(ModelError, match=r"3_Dense/model\.safetensors"):
        SentenceEncoder(lying(folder)).encode(TEXTS, "passage")
    for path in ("", "/3_Dense", "../3_Dense"):
        modules = json.loads((folder / "modules.json").read_text("utf-8"))
        modules[3]["path"] = path
        (folder / "modules.json").write_text(json.dumps(modules), "utf-8")
        with pytest.raises(ModelError, match="must list"):
            SentenceEncoder(lying(folder)).encode(TEXTS, "passage")


def test_a_prompt_that_the_checkpoint_names_does_not_come_on_top(folder: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(folder, tmp_path / "e5")
    named = {"prompts": {"query": "find: "}, "default_prompt_name": "query"}
    (copied / "config_sentence_transformers.json").write_text(json.dumps(named), "utf-8")
    plain, prompted = (SentenceEncoder(lying(path), exact=True).encode(TEXTS, "query") for path in (folder, copied))
    assert np.array_equal(plain, prompted)


# --- what is refused -------------------------------------------------------------------------------------------------


def other_module(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text("utf-8"))
    modules[1]["type"] = "code.Pooling"
    (folder / "modules.json").write_text(json.dumps(modules), "utf-8")
    (folder / "code.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\nclass Pooling: pass\n", "utf-8")


def dense_before_pooling(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text("utf-8"))
    modules.insert(1, {**modules[1], "path": "2_Dense", "type": "sentence_transformers.models.Dense"})
    (folder / "modules.json").write_text(json.dumps(modules), "utf-8")


def wider_pooling(folder: Path) -> None:
    pooling = {"word_embedding_dimension": WIDTH, "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling), "utf-8")


@pytest.mark.parametrize(
    ("harm", "fault"),
    [
        (other_module, "must list Transformer, Pooling"),
        (lambda folder: (folder / "modules.json").unlink(), "has no modules.json"),
        (lambda folder: (folder / "modules.json").write_text("3"), "must list Transformer, Pooling"),
        (lambda folder: (folder / "modules.json").write_text("[3]"), "must list Transformer, Pooling"),
        (dense_before_pooling, "must list Transformer, Pooling"),
        (lambda folder: (folder / "modules.json").write_text("{"), "cannot be loaded"),
        (wider_pooling, "64 dimensions, but its network has 32"),
    ],
)
def test_what_is_not_such_an_encoder(folder: Path, tmp_path: Path, harm: Callable[[Path], object], fault: str) -> None:
    copied = shutil.copytree(folder, tmp_path / "e5")
    harm(copied)
    with pytest.raises(ModelError, match=fault) as raised:
        SentenceEncoder(lying(copied)).encode(["sepsis"], "query")
    assert "models add" in raised.value.remedy
    assert not (copied / "ran").exists()
