"""The reranking cross-encoder on tiny checkpoints, against FlagEmbedding and sentence-transformers called directly."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from localmed.domain.errors import ModelError
from localmed.models.cross_encoder import CrossEncoder
from tests.models.tiny import POSITIONS, lying, make_bge_m3, make_cross_encoder, make_nli

QUESTION = "the maximum dose of paracetamol"
PASSAGES = ["sepsis", "普通病房的探视时间为每天", "dose dose dose 探视", "visiting hours; sepsis?"]
LONG = "sepsis dose of the " * 200

pytestmark = pytest.mark.slow  # transformers takes seconds to import


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cross_encoder(tmp_path_factory.mktemp("models") / "bge-reranker-v2-m3")


@pytest.fixture(scope="module")
def reranker(folder: Path) -> CrossEncoder:
    return CrossEncoder(lying(folder), exact=True)


@pytest.fixture(scope="module")
def peer(folder: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        from FlagEmbedding import FlagReranker

        return FlagReranker(str(folder), devices="cpu", normalize=True)


def test_it_scores_as_flag_embedding(reranker: CrossEncoder, peer: Any) -> None:
    expected = peer.compute_score([(QUESTION, passage) for passage in PASSAGES], max_length=POSITIONS - 2)
    scores = reranker.score(QUESTION, PASSAGES)
    assert scores == pytest.approx(expected, abs=1e-5)
    assert len({round(score, 4) for score in scores}) == len(PASSAGES), "it tells passages apart"
    assert reranker.score(QUESTION, PASSAGES[::-1]) == pytest.approx(scores[::-1], abs=1e-5)


def test_of_two_segments_as_sentence_transformers(tmp_path: Path) -> None:
    """BERT tells question and passage apart by the segments' numbers, which must reach it."""
    folder = make_nli(tmp_path / "bert", ["LABEL_0"], "Bert")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sentence_transformers import CrossEncoder as Peer

        expected = Peer(str(folder), device="cpu").predict([(QUESTION, passage) for passage in PASSAGES])
    assert CrossEncoder(lying(folder), exact=True).score(QUESTION, PASSAGES) == pytest.approx(expected, abs=1e-5)


def test_scores_do_not_depend_on_the_batch(reranker: CrossEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    passages = [f"{passage} {'sepsis ' * number}" for number, passage in enumerate(PASSAGES * 3)]
    together = reranker.score(QUESTION, passages)
    monkeypatch.setattr("localmed.models.network.CPU_BYTES", 1)
    assert reranker.score(QUESTION, passages) == pytest.approx(together, abs=1e-5)


def test_long_questions_leave_room_for_the_passage(reranker: CrossEncoder) -> None:
    one, other = reranker.score(LONG, ["sepsis", "visiting hours"])
    assert one != other
    assert reranker.score("sepsis", [LONG, LONG + LONG]) == pytest.approx([reranker.score("sepsis", [LONG])[0]] * 2)


def test_no_passage_is_no_score(folder: Path) -> None:
    assert CrossEncoder(lying(folder)).score("sepsis", []) == []


def test_the_name_loads_nothing(folder: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from localmed.models.checkpoint import Checkpoint\n"
        "from localmed.models.cross_encoder import CrossEncoder\n"
        f"assert CrossEncoder(Checkpoint('a', '1', lambda: Path({str(folder)!r}))).name == 'a 1'\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


# --- what is refused -------------------------------------------------------------------------------------------------


def test_a_judge_of_entailment_is_no_reranker(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="one label"):
        CrossEncoder(lying(make_nli(tmp_path / "nli"))).score(QUESTION, PASSAGES)


def test_a_classifier_of_random_numbers_is_an_error(folder: Path, tmp_path: Path) -> None:
    """An encoder's weights under a classifier's settings: the library would make the classifier up."""
    copied = shutil.copytree(folder, tmp_path / "bge-reranker-v2-m3")
    shutil.copy(make_bge_m3(tmp_path / "bge-m3") / "model.safetensors", copied / "model.safetensors")
    with pytest.raises(ModelError, match=r"of another shape: 4, .*classifier"):
        CrossEncoder(lying(copied)).score(QUESTION, PASSAGES)


def test_weights_in_the_older_format_are_not_read(folder: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    copied = shutil.copytree(folder, tmp_path / "bge-reranker-v2-m3")
    torch.save(load_file(copied / "model.safetensors"), copied / "pytorch_model.bin")
    (copied / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="safetensors"):
        CrossEncoder(lying(copied)).score(QUESTION, PASSAGES)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
@pytest.mark.parametrize("content", [b"", b"damaged" * 99, b"{}", b"[]"])
def test_a_damaged_file_is_an_error(folder: Path, tmp_path: Path, name: str, content: bytes) -> None:
    copied = shutil.copytree(folder, tmp_path / "bge-reranker-v2-m3")
    (copied / name).write_bytes(content)
    with pytest.raises(ModelError, match="bge-reranker-v2-m3") as raised:
        CrossEncoder(lying(copied)).score(QUESTION, PASSAGES)
    assert "models add" in raised.value.remedy


def test_code_in_a_checkpoint_is_not_run(folder: Path, tmp_path: Path) -> None:
    copied, ran = shutil.copytree(folder, tmp_path / "bge-reranker-v2-m3"), tmp_path / "ran"
    (copied / "code.py").write_text(f"open({str(ran)!r}, 'w')\nclass Model: pass\nclass Config: pass\n", "utf-8")
    config = json.loads((copied / "config.json").read_text("utf-8"))
    mapped = {"AutoConfig": "code.Config", "AutoModelForSequenceClassification": "code.Model"}
    config |= {"model_type": "unheard-of", "auto_map": mapped}
    (copied / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(ModelError):
        CrossEncoder(lying(copied)).score(QUESTION, PASSAGES)
    assert not ran.exists()


def test_nothing_is_printed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    CrossEncoder(lying(folder)).score(LONG, PASSAGES * 9)
    assert capfd.readouterr() == ("", "")
