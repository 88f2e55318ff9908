"""Training: checkpoints that an interruption left half, what the trainer is loaded in, adapters that are merged."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localmed.domain.errors import ModelError
from localmed.lab import learning
from localmed.process.environment import OFFLINE
from tests.models.tiny_gguf import TINY, write_gguf
from tests.site.test_in_force import MOST, killed_before

FILES = ("adapter_model.safetensors", "optimizer.pt", "ref/adapter_config.json")


def written(folder: Path, step: int, sealed: bool = True) -> Path:
    """A checkpoint as a trainer writes it."""
    checkpoint = folder / f"checkpoint-{step}"
    for name in FILES:
        (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoint / name).write_text(f"{name} after step {step}")
    if sealed:
        learning.seal(checkpoint)
    return checkpoint


HALVES: dict[str, Callable[[Path], object]] = {
    "killed before the seal": lambda half: (half / learning.SEAL).unlink(),
    "killed while the seal was written": lambda half: (half / learning.SEAL).write_text('{"optimizer.pt": "ab'),
    "a seal of another kind": lambda half: (half / learning.SEAL).write_text("[1]"),
    "a seal of nothing": lambda half: (half / learning.SEAL).write_text("{}"),
    "a file cut off by a power cut": lambda half: (half / "optimizer.pt").write_text(""),
    "half deleted": lambda half: (half / "ref" / "adapter_config.json").unlink(),
    "no number": lambda half: half.rename(half.with_name("checkpoint-best")),
    "a file": lambda half: (half.rename(half.with_name("gone")), half.write_text("")),
}


@pytest.mark.parametrize("half", HALVES)
def test_the_newest_whole_one_counts_and_what_is_not_whole_is_removed(tmp_path: Path, half: str) -> None:
    assert learning.last_checkpoint(tmp_path / "none") is None
    written(tmp_path, 8)
    newest = written(tmp_path, 9)
    HALVES[half](written(tmp_path, 10))
    assert learning.last_checkpoint(tmp_path) == newest, "by step, not by name"
    assert {path.name for path in tmp_path.glob("checkpoint-*")} <= {"checkpoint-8", "checkpoint-9"}


def test_sealing_removes_the_oldest_and_leaves_what_is_being_written(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        written(tmp_path, step)
    written(tmp_path, 4, sealed=False)
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint-2", "checkpoint-3", "checkpoint-4"}
    (tmp_path / "checkpoint-3" / learning.SEAL).unlink()  # as a kill leaves one that is being removed
    assert learning.last_checkpoint(tmp_path) == tmp_path / "checkpoint-2"


class Trainer:
    """Trains unless ``bad`` says how the checkpoint of a step ends it: at loading, or at a later step."""

    def __init__(self, bad: dict[int | None, str], starts: list[int | None]) -> None:
        self.bad, self.starts, self.has_stepped = bad, starts, False

    def train(self, resume_from_checkpoint: str | None) -> None:
        step = learning.step_of(Path(resume_from_checkpoint)) if resume_from_checkpoint else None
        self.starts.append(step)
        self.has_stepped = self.bad.get(step) != "loading"
        if step in self.bad:
            raise RuntimeError("PytorchStreamReader failed reading zip archive")


@pytest.mark.parametrize(
    ("bad", "starts"), [({}, [10]), ({10: "loading"}, [10, 5]), ({10: "loading", 5: "loading"}, [10, 5, None])]
)
def test_one_that_cannot_be_loaded_is_set_aside(tmp_path: Path, bad: Any, starts: list[int | None]) -> None:
    kept = [written(tmp_path, step) for step in (5, 10)]
    tries: list[int | None] = []
    learning._train(lambda: Trainer(bad, tries), tmp_path)
    assert tries == starts
    assert [learning.step_of(path) in bad for path in kept] == [not path.exists() for path in kept]
    assert len(list(tmp_path.glob("unloadable-checkpoint-*"))) == len(bad)


def test_an_error_of_a_later_step_costs_no_checkpoint(tmp_path: Path) -> None:
    newest = written(tmp_path, 10)
    with pytest.raises(RuntimeError):
        learning._train(lambda: Trainer({10: "a later step"}, []), tmp_path)
    assert newest.is_dir()


def test_what_libraries_raise_ends_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the trainer cannot be made: what trl raises where it cannot be imported is a RuntimeError."""

    def failing(*_: object) -> Any:
        raise RuntimeError("Failed to import trl.trainer.dpo_trainer because of the following error")

    monkeypatch.setattr(learning, "_make_trainer", failing)
    base = learning.Base("tiny", tmp_path / "tiny.gguf", "0" * 64)
    with pytest.raises(ModelError) as raised:
        learning._train_stage(base, learning.Recipe(), [], {"stage": "dpo"}, tmp_path / "dpo", None, lambda *_: None)
    assert raised.value.message.code == "training.failed"
    assert dict(raised.value.message.parameters) == {"stage": "dpo", "error": "RuntimeError"}
    assert json.loads((tmp_path / "dpo" / "made.json").read_text()) == {"stage": "dpo"}


def test_what_trains_is_loaded_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """trl tells its maker that it is used, by a thread that asks the hub, unless it was told not to when it loaded."""
    environments: list[dict[str, str]] = []

    class Watching:
        def find_spec(self, name: str, *_: Any) -> None:
            if name in ("peft", "trl"):
                environments.append(dict(os.environ))
                raise ImportError(name)

    for name in (*OFFLINE, "TQDM_DISABLE"):
        monkeypatch.setenv(name, "0")
    for name in ("peft", "trl"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Watching(), *sys.meta_path])
    with pytest.raises(ModelError, match="train"):
        learning.require()
    assert {name: environments[0][name] for name in OFFLINE} == OFFLINE
    assert environments[0]["TQDM_DISABLE"] == "1", "no bars of the libraries beside localmed's"


# --- exporting --------------------------------------------------------------------------------------------------------

RANK, ALPHA = 4, 8
TOKENS = list(range(5, 45))
STRONG = 0.3  # standard deviation: the adapter changes the logits by far more than half precision does


def adapter(folder: Path) -> Path:
    """A random adapter of every matrix of ``TINY``."""
    from safetensors.numpy import save_file

    draw = np.random.default_rng(3)
    weights = {}
    for layer in range(TINY.layers):
        for module in learning.PARTS:
            out = TINY.hidden if module.endswith(("gate_proj", "up_proj")) else TINY.width
            inner = TINY.hidden if module.endswith("down_proj") else TINY.width
            for part, shape in (("A", (RANK, inner)), ("B", (out, RANK))):
                name = f"base_model.model.model.layers.{layer}.{module}.lora_{part}.weight"
                weights[name] = draw.standard_normal(shape).astype(np.float32) * STRONG
    folder.mkdir()
    save_file(weights, folder / "adapter_model.safetensors")
    modules = [name.rpartition(".")[2] for name in learning.PARTS]
    config = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": ALPHA, "target_modules": modules}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder


def by_llama(path: Path) -> Any:
    """The logits after ``TOKENS`` by llama.cpp."""
    import llama_cpp

    model = llama_cpp.Llama(str(path), n_ctx=128, n_threads=1, logits_all=True, verbose=False)
    model.eval(TOKENS)
    logits = np.array(model.scores[len(TOKENS) - 1])
    model.close()
    return logits


@pytest.mark.extra("llama", "train")
@pytest.mark.filterwarnings("ignore")
def test_llama_cpp_computes_what_the_trainer_does(tmp_path: Path) -> None:
    """Also where rows stand in another order."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, GgufConfig

    (tmp_path / "base").mkdir()
    base, merged = write_gguf(tmp_path / "base" / "tiny.gguf"), tmp_path / "merged.gguf"
    trained = adapter(tmp_path / "adapter")
    matrices, sha256 = learning.merge(base, trained, merged, lambda *_: None)
    assert matrices == TINY.layers * len(learning.PARTS)
    assert sha256 == hashlib.sha256(merged.read_bytes()).hexdigest()
    dense = GgufConfig(gguf_file=base.name, dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        str(base.parent), gguf_file=base.name, quantization_config=dense, dtype=torch.float32
    )
    with torch.no_grad():
        tuned = PeftModel.from_pretrained(model, str(trained))(torch.tensor([TOKENS])).logits[0, -1].numpy()
    before, after = by_llama(base), by_llama(merged)
    change = float(np.abs(tuned - before).max())
    assert change > 1
    assert float(np.abs(tuned - after).max()) < 0.05 * change


def test_a_merge_that_is_killed_leaves_nothing_half(tmp_path: Path) -> None:
    """kill -9 before every step of it: the file is there whole or not at all, and the next merge writes the same."""
    base, trained = write_gguf(tmp_path / "tiny.gguf"), adapter(tmp_path / "adapter")
    learning.merge(base, trained, tmp_path / "whole.gguf", lambda *_: None)
    whole = (tmp_path / "whole.gguf").read_bytes()
    target = tmp_path / "merged.gguf"
    for step in range(1, MOST):
        target.unlink(missing_ok=True)
        killed = killed_before(step, lambda: learning.merge(base, trained, target, lambda *_: None))
        assert not target.exists() or target.read_bytes() == whole
        learning.merge(base, trained, target, lambda *_: None)
        assert target.read_bytes() == whole
        assert not list(tmp_path.glob("*.part"))
        if not killed:
            break
    assert 2 < step < MOST - 1, "it was killed at its steps, and came to its end"


def test_rows_are_reordered_as_pairs_of_the_rotation() -> None:
    rows = np.arange(8, dtype=np.float32)[:, None]
    assert learning.reordered(rows, 2)[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert learning.reordered(rows, 0) is rows
    with pytest.raises(ModelError, match="gemma"):
        learning.require_mergeable("gemma3")
