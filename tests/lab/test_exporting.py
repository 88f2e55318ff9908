"""An adapter merged into a GGUF: llama.cpp computes what the trainer would, also where rows stand in another order."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localmed.domain.errors import ModelError
from localmed.lab import learning
from tests.models.tiny_gguf import TINY, write_gguf
from tests.site.test_in_force import MOST, killed_before

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
            name = f"base_model.model.model.layers.{layer}.{module}"
            for part, shape in (("A", (RANK, inner)), ("B", (out, RANK))):
                values = draw.standard_normal(shape).astype(np.float32) * STRONG
                weights[f"{name}.lora_{part}.weight"] = values
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
    assert not list(tmp_path.glob("*.part"))


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


def test_an_architecture_that_is_not_known_is_refused() -> None:
    with pytest.raises(ModelError, match="gemma"):
        learning.check("gemma3")
