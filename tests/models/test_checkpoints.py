"""What every adapter of a checkpoint does alike: it loads nothing unasked, nothing damaged, incomplete or foreign."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localmed.domain.errors import ModelError
from localmed.models.checkpoint import Checkpoint
from localmed.models.cross_encoder import BY_LIBRARY, Classifier, CrossEncoder, NliCrossEncoder
from localmed.models.flag_embedding import BgeM3
from localmed.models.sentence_encoder import SentenceEncoder
from tests.models.tiny import (
    lying,
    make_bge_m3,
    make_cross_encoder,
    make_fact_checker,
    make_nli,
    make_sentence_encoder,
)

pytestmark = pytest.mark.slow  # the libraries take seconds to import

LONG = "sepsis dose of the " * 200
TEXTS = [f"dose {number} " + "of the sepsis " * (number % 9) for number in range(30)]
MADE: dict[str, tuple[Callable[[Path], Path], Any]] = {
    "bge-m3": (make_bge_m3, BgeM3),
    "e5": (make_sentence_encoder, SentenceEncoder),
    "reranker": (make_cross_encoder, CrossEncoder),
    "nli": (make_nli, NliCrossEncoder),
    "factcg": (partial(make_fact_checker, kind="DebertaV2"), BY_LIBRARY["FactCG"]),
    "minicheck": (partial(make_fact_checker, kind="T5"), BY_LIBRARY["MiniCheck"]),
    "lettucedetect": (partial(make_fact_checker, kind="ModernBert"), BY_LIBRARY["LettuceDetect"]),
}


@pytest.fixture(scope="module", params=MADE)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return MADE[request.param][0](tmp_path_factory.mktemp("models") / request.param)


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / folder.name))


def adapter(folder: Path, exact: bool = False, **facts: Any) -> Any:
    return MADE[folder.name][1](lying(folder, **facts), exact)


def numbers(model: Any, texts: Sequence[str]) -> Any:
    """What ``model`` makes of ``texts``, a row each."""
    if isinstance(model, BgeM3 | SentenceEncoder):
        return model.encode(texts, "query")
    if isinstance(model, CrossEncoder):
        return np.array([[score] for score in model.score("the dose", texts)])
    judged = model.judge([(text, "the dose") for text in texts])
    return np.array([[stance.entailment, stance.neutral, stance.contradiction] for stance in judged])


def test_rows_do_not_depend_on_the_batch_nor_much_on_the_arithmetic(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    model = adapter(folder, exact=True)
    together = numbers(model, TEXTS)
    assert len(together) == len(TEXTS)
    assert together.std(0).max() > 1e-4, "it tells texts apart"
    assert np.abs(numbers(adapter(folder), TEXTS) - together).mean() < 0.05
    assert not len(numbers(model, []))
    monkeypatch.setattr("localmed.models.network.CPU_BYTES", 1)
    assert numbers(model, TEXTS) == pytest.approx(together, abs=2e-5)
    for place in (0, 8, 29):
        assert numbers(model, [TEXTS[place]])[0] == pytest.approx(together[place], abs=2e-5)
    assert len(numbers(model, [LONG, ""])) == 2
    assert capfd.readouterr() == ("", ""), "no progress bars, no reports, no warnings"


def test_who_it_is_loads_nothing(tmp_path: Path) -> None:
    """By its checkpoint alone, in a process of its own. And nothing is loaded for no text."""
    for name, (make, kind) in MADE.items():
        make(tmp_path / name)
        if issubclass(kind, Classifier):
            nothing: Any = kind(Checkpoint("nothing", "0", lambda: tmp_path / "nothing"))
            assert (nothing.score("", []) if kind is CrossEncoder else nothing.judge([])) == []
    script = """if True:
        import sys
        from pathlib import Path
        from tests.models.test_checkpoints import MADE, adapter
        for name, (_, kind) in MADE.items():
            model = adapter(Path(sys.argv[1]) / name, version="1", languages=("en", "zh"))
            said = getattr(model, "identity", model)
            who = f"{said.name} {said.version}" if hasattr(said, "version") else said.name
            assert (who, said.languages) == (f"{name} 1", ("en", "zh")) if hasattr(said, "languages") else who
            assert getattr(said, "dimensions", 32) == 32
            assert getattr(said, "sparse", False) == (name == "bge-m3")
        assert not {"torch", "transformers", "sentence_transformers", "FlagEmbedding"} & set(sys.modules)
    """
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, timeout=300)


# --- what is refused -------------------------------------------------------------------------------------------------


def refused(folder: Path, fault: str = "") -> None:
    with pytest.raises(ModelError, match=f"the model {folder.name} .*{fault}") as raised:
        numbers(adapter(folder), ["sepsis"])
    assert "models add" in raised.value.remedy


def needed(folder: Path) -> list[Path]:
    names = ("config.json", "tokenizer.json", "model.safetensors", "sparse_linear.pt", "colbert_linear.pt")
    return [folder / name for name in names if (folder / name).exists()]


def test_a_missing_file_is_told_at_once(copied: Path) -> None:
    """Not a head of random numbers, not a look at a hub."""
    for path in needed(copied):
        content = path.read_bytes()
        path.unlink()
        began = time.monotonic()
        if path.name != "tokenizer.json" or copied.name == "bge-m3":  # others may have another vocabulary
            refused(copied, rf"has no .*{path.suffix}")
        assert time.monotonic() - began < 1
        path.write_bytes(content)


@pytest.mark.parametrize("content", [b"", b"damaged" * 99, b"{}", b"[]", b'{"hidden_size": "wide"}'])
def test_a_damaged_file_is_told(copied: Path, content: bytes) -> None:
    for path in needed(copied):
        if path.name != "colbert_linear.pt":
            whole = path.read_bytes()
            path.write_bytes(content)
            refused(copied)
            path.write_bytes(whole)


def test_a_tensor_of_random_numbers_is_told(copied: Path) -> None:
    """The library would fill in what the file does not hold, and say nothing."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(copied / "model.safetensors")
    del tensors[next(name for name in sorted(tensors) if "layer" in name and name.endswith("weight"))]
    save_file(tensors, copied / "model.safetensors", {"format": "pt"})
    refused(copied, "another shape: 1,")


def test_weights_in_the_older_format(copied: Path) -> None:
    """BGE-M3 was published so; of all others safetensors alone are read."""
    import torch
    from safetensors.torch import load_file

    before = numbers(adapter(copied, exact=True), TEXTS)
    torch.save(load_file(copied / "model.safetensors"), copied / "pytorch_model.bin")
    (copied / "model.safetensors").unlink()
    if copied.name == "bge-m3":
        assert np.array_equal(numbers(adapter(copied, exact=True), TEXTS), before)
    else:
        refused(copied, "safetensors")


def test_code_in_a_checkpoint_is_not_run(copied: Path) -> None:
    code = f"open({str(copied / 'ran')!r}, 'w')\nclass Model: pass\nclass Config: pass\n"
    (copied / "code.py").write_text(code, "utf-8")
    config = json.loads((copied / "config.json").read_text("utf-8"))
    kinds = ("AutoModel", *(f"AutoModelFor{kind}" for kind in ("SequenceClassification", "TokenClassification")))
    mapped = {"AutoConfig": "code.Config", **dict.fromkeys((*kinds, "AutoModelForSeq2SeqLM"), "code.Model")}
    config |= {"model_type": "unheard-of", "auto_map": mapped}
    (copied / "config.json").write_text(json.dumps(config), "utf-8")
    refused(copied)
    assert not os.path.lexists(copied / "ran")
