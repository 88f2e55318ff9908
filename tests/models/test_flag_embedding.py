"""BGE-M3 on a tiny checkpoint, against FlagEmbedding called directly."""

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

from localmed.domain.errors import ModelError
from localmed.models.flag_embedding import BgeM3, MultiVector
from tests.models.tiny import POSITIONS, WIDTH, lying, make_bge_m3

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
SOME = 70  # texts, of several batches where a batch has room for few

pytestmark = pytest.mark.slow  # FlagEmbedding takes ten seconds to import


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the checkpoint lies."""
    root = tmp_path_factory.mktemp("models")
    make_bge_m3(root / "bge-m3")
    return root


@pytest.fixture(scope="module")
def encoder(folder: Path) -> BgeM3:
    return BgeM3(lying(folder / "bge-m3"), exact=True)


@pytest.fixture(scope="module")
def peer(folder: Path) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        from FlagEmbedding import BGEM3FlagModel

        model = BGEM3FlagModel(str(folder / "bge-m3"), use_fp16=False, devices="cpu")
        yield lambda texts: model.encode(texts, max_length=POSITIONS - 2, return_sparse=True, return_colbert_vecs=True)


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
    for text_weights in weights:
        assert all(weight > 0 for weight in text_weights.values())
        assert not set(text_weights) & set(MARKS)


def test_unit_vectors_in_order_whatever_the_batch(encoder: BgeM3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localmed.models.network.CPU_BYTES", 4 * encoder.network.cost.bytes(40))
    texts = [f"dose {number} " + "of the sepsis " * (number % 9) for number in range(SOME)]
    vectors, weights = encoder.encode_both(texts, "passage")
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(texts)), abs=1e-5)
    for number in (0, SOME // 2, SOME - 1):
        alone, own = encoder.encode_both([texts[number]], "query")
        assert vectors[number] == pytest.approx(alone[0], abs=1e-5)
        assert weights[number] == pytest.approx(own[0], abs=1e-5)
    assert np.array_equal(encoder.encode(texts, "passage"), vectors)


def test_no_text_is_no_vector(encoder: BgeM3) -> None:
    vectors, weights = encoder.encode_both([], "passage")
    assert (vectors.shape, weights) == ((0, WIDTH), [])


def test_fast_arithmetic_agrees(folder: Path, encoder: BgeM3) -> None:
    fast, exact = BgeM3(lying(folder / "bge-m3")).encode(TEXTS, "passage"), encoder.encode(TEXTS, "passage")
    assert min((fast * exact).sum(1)) > 0.99
    assert np.linalg.norm(fast, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-5)


# --- reranking -------------------------------------------------------------------------------------------------------


def test_multi_vectors_score_as_flag_embedding(encoder: BgeM3, peer: Any) -> None:
    from FlagEmbedding import BGEM3FlagModel

    question, *passages = TEXTS
    question_vectors, *read = peer(TEXTS)["colbert_vecs"]
    expected = [float(BGEM3FlagModel.colbert_score(None, question_vectors, vectors)) for vectors in read]
    assert MultiVector(encoder).score(question, passages) == pytest.approx(expected, abs=1e-5)
    assert MultiVector(encoder).score(question, [question]) == pytest.approx([1.0], abs=1e-5)


def test_no_passage_is_no_score(encoder: BgeM3) -> None:
    assert MultiVector(encoder).score("sepsis", []) == []


# --- identity and what is refused ------------------------------------------------------------------------------------


def test_the_identity_is_the_checkpoints_and_loads_nothing(folder: Path) -> None:
    identity = BgeM3(lying(folder / "bge-m3", version="1", languages=("en", "zh"))).identity
    assert (identity.name, identity.version, identity.dimensions, identity.sparse) == ("bge-m3", "1", WIDTH, True)
    assert identity.languages == ("en", "zh")
    script = (
        "import sys; from pathlib import Path; from localmed.models.flag_embedding import BgeM3\n"
        "from localmed.models.checkpoint import Checkpoint\n"
        f"folder = Path({str(folder / 'bge-m3')!r})\n"
        f"assert BgeM3(Checkpoint('bge-m3', '1', lambda: folder)).identity.slug == {identity.slug!r}\n"
        "assert not {'torch', 'FlagEmbedding', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "model.safetensors", "sparse_linear.pt", "colbert_linear.pt"]
)
def test_a_missing_file_is_an_error_at_once(folder: Path, tmp_path: Path, name: str) -> None:
    """Not a head of random numbers, not a look at a hub."""
    copied = shutil.copytree(folder / "bge-m3", tmp_path / "bge-m3")
    (copied / name).unlink()
    started = time.monotonic()
    with pytest.raises(ModelError, match=rf"has no .*{Path(name).suffix}") as raised:
        BgeM3(lying(copied)).encode(["sepsis"], "query")
    assert time.monotonic() - started < 1
    assert "models add" in raised.value.remedy


@pytest.mark.parametrize("content", ["[]", "{}", '{"hidden_size": null}', '{"hidden_size": "wide"}'])
def test_a_config_of_something_else_is_an_error(folder: Path, tmp_path: Path, content: str) -> None:
    copied = shutil.copytree(folder / "bge-m3", tmp_path / "bge-m3")
    (copied / "config.json").write_text(content, "utf-8")
    with pytest.raises(ModelError, match="bge-m3"):
        _ = BgeM3(lying(copied)).identity


def test_weights_in_the_older_format(folder: Path, tmp_path: Path, encoder: BgeM3) -> None:
    """BGE-M3 was published as ``pytorch_model.bin``."""
    import torch
    from safetensors.torch import load_file

    copied = shutil.copytree(folder / "bge-m3", tmp_path / "bge-m3")
    torch.save(load_file(copied / "model.safetensors"), copied / "pytorch_model.bin")
    (copied / "model.safetensors").unlink()
    older = BgeM3(lying(copied), exact=True)
    assert np.array_equal(older.encode(TEXTS, "passage"), encoder.encode(TEXTS, "passage"))


def test_a_network_of_random_numbers_is_an_error(folder: Path, tmp_path: Path) -> None:
    """The library would fill what the file does not hold, and say nothing."""
    from safetensors.torch import load_file, save_file

    copied = shutil.copytree(folder / "bge-m3", tmp_path / "bge-m3")
    tensors = load_file(copied / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, copied / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match="tensors missing or of another shape: 1,"):
        BgeM3(lying(copied)).encode(["sepsis"], "query")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors", "sparse_linear.pt"])
@pytest.mark.parametrize("content", [b"", b"damaged" * 99, b"{}"])
def test_a_damaged_file_is_an_error(folder: Path, tmp_path: Path, name: str, content: bytes) -> None:
    copied = shutil.copytree(folder / "bge-m3", tmp_path / "bge-m3")
    (copied / name).write_bytes(content)
    with pytest.raises(ModelError, match="bge-m3"):
        BgeM3(lying(copied)).encode(["sepsis"], "query")


def test_code_in_a_checkpoint_is_not_run(folder: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(folder / "bge-m3", tmp_path / "bge-m3")
    ran = tmp_path / "ran"
    (copied / "code.py").write_text(f"open({str(ran)!r}, 'w')\nclass Model: pass\nclass Config: pass\n", "utf-8")
    config = json.loads((copied / "config.json").read_text("utf-8"))
    config |= {"model_type": "unheard-of", "auto_map": {"AutoConfig": "code.Config", "AutoModel": "code.Model"}}
    (copied / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(ModelError):
        BgeM3(lying(copied)).encode(["sepsis"], "query")
    assert not ran.exists()


def test_nothing_is_printed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """No progress bars, no reports, no warnings: a command's output is its own."""
    BgeM3(lying(folder / "bge-m3")).encode([f"dose {number}" for number in range(SOME)], "passage")
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "")
