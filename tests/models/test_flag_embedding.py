"""BGE-M3 and the cross-encoder on tiny checkpoints, against FlagEmbedding called directly."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localmed.errors import ModelError
from localmed.models.flag_embedding import BATCH, SAMPLE_BYTES, SAMPLES, WHOLE_BYTES, BgeM3, CrossEncoder, MultiVector
from tests.models.tiny import POSITIONS, WIDTH, make_bge_m3, make_cross_encoder

TEXTS = [
    "the maximum dose of paracetamol",
    "sepsis",
    "普通病房的探视时间为每天",
    "dose dose dose 探视",
    "visiting hours; sepsis?",
    "¥€",
    "",
]
LONG = "sepsis dose of the " * 200
MARKS = range(4)

pytestmark = pytest.mark.slow  # FlagEmbedding takes ten seconds to import


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two checkpoints."""
    root = tmp_path_factory.mktemp("models")
    make_bge_m3(root / "bge-m3")
    make_cross_encoder(root / "bge-reranker-v2-m3")
    return root


@pytest.fixture(scope="module")
def encoder(folder: Path) -> BgeM3:
    return BgeM3(folder / "bge-m3", exact=True)


@pytest.fixture(scope="module")
def reranker(folder: Path) -> CrossEncoder:
    return CrossEncoder(folder / "bge-reranker-v2-m3", exact=True)


@pytest.fixture(scope="module")
def peer(folder: Path) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        from FlagEmbedding import BGEM3FlagModel

        model = BGEM3FlagModel(str(folder / "bge-m3"), use_fp16=False, devices="cpu")
        yield lambda texts: model.encode(texts, max_length=POSITIONS - 2, return_sparse=True, return_colbert_vecs=True)


@pytest.fixture(scope="module")
def peer_reranker(folder: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from FlagEmbedding import FlagReranker

        return FlagReranker(str(folder / "bge-reranker-v2-m3"), devices="cpu", normalize=True)


# --- encoding --------------------------------------------------------------------------------------------------------


def test_dense_and_sparse_as_flag_embedding(encoder: BgeM3, peer: Any) -> None:
    texts = [*TEXTS, LONG]
    vectors, weights = encoder.encode_both(texts, "passage")
    expected = peer(texts)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(texts), WIDTH)
    assert vectors == pytest.approx(expected["dense_vecs"], abs=1e-5)
    for mine, theirs in zip(weights, expected["lexical_weights"], strict=True):
        assert mine == pytest.approx({int(token): float(weight) for token, weight in theirs.items()}, abs=1e-5)


def test_weights_are_of_the_texts_own_pieces_and_above_nothing(encoder: BgeM3) -> None:
    weights = encoder.encode_both(TEXTS, "query")[1]
    assert any(weights)
    assert weights[-1] == {}
    for each in weights:
        assert all(weight > 0 for weight in each.values())
        assert not set(each) & set(MARKS)


def test_unit_vectors_in_order_whatever_the_batch(encoder: BgeM3) -> None:
    texts = [f"dose {number} " + "of the sepsis " * (number % 9) for number in range(2 * BATCH + 3)]
    vectors, weights = encoder.encode_both(texts, "passage")
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(texts)), abs=1e-5)
    for number in (0, BATCH, len(texts) - 1):
        alone, own = encoder.encode_both([texts[number]], "query")
        assert vectors[number] == pytest.approx(alone[0], abs=1e-5)
        assert weights[number] == pytest.approx(own[0], abs=1e-5)
    assert np.array_equal(encoder.encode(texts, "passage"), vectors)


def test_no_text_is_no_vector(encoder: BgeM3) -> None:
    vectors, weights = encoder.encode_both([], "passage")
    assert (vectors.shape, weights) == ((0, WIDTH), [])


def test_fast_arithmetic_agrees(folder: Path, encoder: BgeM3) -> None:
    fast, exact = BgeM3(folder / "bge-m3").encode(TEXTS, "passage"), encoder.encode(TEXTS, "passage")
    assert min((fast * exact).sum(1)) > 0.99
    assert np.linalg.norm(fast, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-5)


# --- reranking -------------------------------------------------------------------------------------------------------


def test_multi_vectors_score_as_flag_embedding(encoder: BgeM3, peer: Any) -> None:
    from FlagEmbedding import BGEM3FlagModel

    question, *passages = TEXTS
    asked, *read = peer(TEXTS)["colbert_vecs"]
    expected = [float(BGEM3FlagModel.colbert_score(None, asked, each)) for each in read]
    assert MultiVector(encoder).score(question, passages) == pytest.approx(expected, abs=1e-5)
    assert MultiVector(encoder).score(question, [question]) == pytest.approx([1.0], abs=1e-5)


def test_the_cross_encoder_scores_as_flag_embedding(reranker: CrossEncoder, peer_reranker: Any) -> None:
    passages = TEXTS[:5]
    pairs = [(TEXTS[0], each) for each in passages]
    expected = peer_reranker.compute_score(pairs, max_length=POSITIONS - 2)
    scores = reranker.score(TEXTS[0], passages)
    assert scores == pytest.approx(expected, abs=1e-5)
    assert len({round(each, 4) for each in scores}) == len(passages), "it tells passages apart"
    assert reranker.score(TEXTS[0], passages[::-1]) == pytest.approx(scores[::-1], abs=1e-5)


def test_long_questions_leave_room_for_the_passage(reranker: CrossEncoder) -> None:
    one, other = reranker.score(LONG, ["sepsis", "visiting hours"])
    assert one != other
    assert reranker.score("sepsis", [LONG, LONG + LONG]) == pytest.approx([reranker.score("sepsis", [LONG])[0]] * 2)


def test_no_passage_is_no_score(reranker: CrossEncoder, encoder: BgeM3) -> None:
    assert reranker.score("sepsis", []) == []
    assert MultiVector(encoder).score("sepsis", []) == []


# --- identity and what is refused ------------------------------------------------------------------------------------


def test_the_identity_is_the_checkpoints_and_loads_nothing(folder: Path, tmp_path: Path) -> None:
    identity = BgeM3(folder / "bge-m3").identity
    assert (identity.name, identity.dimensions, identity.sparse) == ("bge-m3", WIDTH, True)
    assert {"en", "zh"} <= set(identity.languages)
    copied = shutil.copytree(folder / "bge-m3", tmp_path / "copy" / "bge-m3")
    assert BgeM3(copied).identity == identity
    assert BgeM3(make_bge_m3(tmp_path / "bge-m3", seed=1)).identity.version != identity.version
    script = (
        "import sys; from pathlib import Path; from localmed.models.flag_embedding import BgeM3, CrossEncoder\n"
        f"assert BgeM3(Path({str(copied)!r})).identity.slug == {identity.slug!r}\n"
        "assert not {'torch', 'FlagEmbedding', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_a_large_file_is_told_apart_by_samples(folder: Path, tmp_path: Path) -> None:
    """A change of one sample's length anywhere in the weights shows."""
    copied = shutil.copytree(folder / "bge-m3", tmp_path / "bge-m3")
    weights = copied / "model.safetensors"
    size = 2 * WHOLE_BYTES
    weights.write_bytes(bytes(size))
    versions = {BgeM3(copied).identity.version}
    for start in (0, size // 3, size - size // SAMPLES - SAMPLE_BYTES):
        weights.write_bytes(bytes(start) + b"\x01" * (size // SAMPLES + SAMPLE_BYTES) + bytes(size))
        with weights.open("r+b") as stream:
            stream.truncate(size)
        versions.add(BgeM3(copied).identity.version)
    assert len(versions) == 4


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "model.safetensors", "sparse_linear.pt", "colbert_linear.pt"]
)
def test_a_missing_file_is_an_error_at_once(folder: Path, tmp_path: Path, name: str) -> None:
    """Not a head of random numbers, not a look at a hub."""
    copied = shutil.copytree(folder / "bge-m3", tmp_path / "bge-m3")
    (copied / name).unlink()
    started = time.monotonic()
    with pytest.raises(ModelError, match=name) as raised:
        BgeM3(copied).encode(["sepsis"], "query")
    assert time.monotonic() - started < 1
    assert "Copy" in raised.value.remedy


def test_a_missing_folder_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="bge-m3"):
        _ = BgeM3(tmp_path / "bge-m3").identity
    with pytest.raises(ModelError, match="bge-reranker-v2-m3"):
        CrossEncoder(tmp_path / "bge-reranker-v2-m3").score("q", ["p"])


@pytest.mark.parametrize("content", ["[]", "{}", '{"hidden_size": null}', '{"hidden_size": "wide"}'])
def test_a_config_of_something_else_is_an_error(folder: Path, tmp_path: Path, content: str) -> None:
    copied = shutil.copytree(folder / "bge-m3", tmp_path / "bge-m3")
    (copied / "config.json").write_text(content, "utf-8")
    with pytest.raises(ModelError, match="bge-m3"):
        _ = BgeM3(copied).identity


def test_weights_in_the_older_format(folder: Path, tmp_path: Path, encoder: BgeM3) -> None:
    """BGE-M3 was published as ``pytorch_model.bin``."""
    import torch
    from safetensors.torch import load_file

    copied = shutil.copytree(folder / "bge-m3", tmp_path / "bge-m3")
    torch.save(load_file(copied / "model.safetensors"), copied / "pytorch_model.bin")
    (copied / "model.safetensors").unlink()
    older = BgeM3(copied, exact=True)
    assert np.array_equal(older.encode(TEXTS, "passage"), encoder.encode(TEXTS, "passage"))
    assert older.identity.version != encoder.identity.version


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors", "sparse_linear.pt"])
@pytest.mark.parametrize("content", [b"", b"damaged" * 99, b"{}"])
def test_a_damaged_file_is_an_error(folder: Path, tmp_path: Path, name: str, content: bytes) -> None:
    copied = shutil.copytree(folder / "bge-m3", tmp_path / "bge-m3")
    (copied / name).write_bytes(content)
    with pytest.raises(ModelError, match="bge-m3"):
        BgeM3(copied).encode(["sepsis"], "query")


def test_code_in_a_checkpoint_is_not_run(folder: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(folder / "bge-m3", tmp_path / "bge-m3")
    ran = tmp_path / "ran"
    (copied / "code.py").write_text(f"open({str(ran)!r}, 'w')\nclass Model: pass\nclass Config: pass\n", "utf-8")
    config = json.loads((copied / "config.json").read_text("utf-8"))
    config |= {"model_type": "unheard-of", "auto_map": {"AutoConfig": "code.Config", "AutoModel": "code.Model"}}
    (copied / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(ModelError):
        BgeM3(copied).encode(["sepsis"], "query")
    assert not ran.exists()


def test_nothing_is_printed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """No progress bars, no reports, no warnings: a command's output is its own."""
    BgeM3(folder / "bge-m3").encode([f"dose {number}" for number in range(BATCH * 2)], "passage")
    CrossEncoder(folder / "bge-reranker-v2-m3").score("dose", ["dose"] * BATCH)
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "")
