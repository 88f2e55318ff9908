"""Planning learning (Omni-RAG, source planning optimisation, 4.2.3): supervised fine-tuning, then preference pairs.

Low-rank adapters (LoRA) are trained on the base model's GGUF, dequantised: first on the positive plans (SFT), then on
pairs of a positive and a negative plan (DPO, Rafailov et al. 2023) with the model after SFT as reference. The process
that will serve the planner tokenises prompts and plans, so that training and serving agree.

Each stage stores checkpoints and ends with an adapter and ``manifest.json``, written last. A finished stage is not
repeated. An interrupted one continues from its last sealed checkpoint, or the one before if that cannot be loaded, else
from the start. Library exceptions become ``ModelError``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from localmed.domain.errors import InputError, LocalmedError, ModelError, UsageError
from localmed.library.intact import sha256_of
from localmed.process import files, interrupts
from localmed.process.environment import before_models

if TYPE_CHECKING:
    import numpy.typing as npt

    Matrix = npt.NDArray[np.float32]

# --- checkpoints ------------------------------------------------------------------------------------------------------

# A checkpoint is valid only with a seal, written last, of the hashes of its files: trainers write and delete file by
# file, so that a kill or a power cut leaves incomplete folders. Those are removed when the stage continues.

KEPT = 2  # sealed ones: the newest, and the one before in case it cannot be loaded
SEAL = "seal.json"
_NAME = re.compile(r"checkpoint-(\d+)")


def step_of(checkpoint: Path) -> int:
    """The step of a checkpoint's name; -1 for another name."""
    match = _NAME.fullmatch(checkpoint.name)
    return int(match[1]) if match else -1


def seal(checkpoint: Path) -> None:
    """Mark a checkpoint as complete, and remove the oldest sealed ones."""
    paths = sorted(path for path in checkpoint.rglob("*") if path.is_file() and path.name != SEAL)
    hashes = {path.relative_to(checkpoint).as_posix(): sha256_of(path) for path in paths}
    files.replace(checkpoint / SEAL, json.dumps(hashes).encode())
    older = [path for path in _newest_first(checkpoint.parent) if (path / SEAL).exists()]
    for path in older[KEPT:]:
        _remove(path)


def last_checkpoint(folder: Path) -> Path | None:
    """The newest complete checkpoint of a stage; removes incomplete ones."""
    whole = []
    for checkpoint in _newest_first(folder):
        if _whole(checkpoint):
            whole.append(checkpoint)
        else:
            _remove(checkpoint)
    return whole[0] if whole else None


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("checkpoint-*"), key=step_of, reverse=True)


def _whole(checkpoint: Path) -> bool:
    try:
        hashes: dict[str, str] = json.loads((checkpoint / SEAL).read_text("utf-8"))
        same = all(value and sha256_of(checkpoint / name) == value for name, value in hashes.items())
        return bool(hashes) and step_of(checkpoint) >= 0 and same
    except (OSError, ValueError, AttributeError, TypeError):
        return False


def _remove(checkpoint: Path) -> None:
    """Remove a checkpoint, its seal first, so that an interrupted removal leaves no sealed remainder."""
    if not checkpoint.is_dir() or checkpoint.is_symlink():
        checkpoint.unlink()
        return
    (checkpoint / SEAL).unlink(missing_ok=True)
    shutil.rmtree(checkpoint)


# --- learning ---------------------------------------------------------------------------------------------------------

PACKAGES = ("trl", "peft", "transformers", "torch", "datasets")
SFT, DPO = "sft", "dpo"
MANIFEST = "manifest.json"
IGNORED = -100  # a label that counts for nothing

Advance = Callable[[float, str], object]


@dataclass(frozen=True, slots=True)
class Recipe:
    """Training parameters. Defaults are common for LoRA; the paper gives none for small models."""

    sft_epochs: float = 2.0
    dpo_epochs: float = 1.0
    sft_rate: float = 2e-4
    dpo_rate: float = 2e-5
    beta: float = 0.1
    rank: int = 16
    alpha: int = 32
    batch: int = 4  # examples a step, read one by one
    save_steps: int = 5
    most_tokens: int = 4096  # of prompt and plan; longer ones are left out
    seed: int = 1

    def stages(self, examples: Sequence[Example]) -> dict[str, tuple[list[Example], float]]:
        """The examples and epochs of each stage."""
        fitting = [example for example in examples if example.longest <= self.most_tokens]
        pairs = [example for example in fitting if example.rejected]
        return {SFT: (fitting, self.sft_epochs), DPO: (pairs, self.dpo_epochs)}


@dataclass(frozen=True, slots=True)
class Base:
    """The registered GGUF file that is trained."""

    name: str
    path: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class Example:
    """The tokens of a prompt, its positive plan, and its negative one (empty: none)."""

    prompt: tuple[int, ...]
    chosen: tuple[int, ...]
    rejected: tuple[int, ...]

    @property
    def longest(self) -> int:
        """The tokens of the prompt and the longer plan."""
        return len(self.prompt) + max(len(self.chosen), len(self.rejected))


def require() -> None:
    """Load the training libraries without network; raise ``ModelError`` if they are not installed."""
    before_models()  # trl counts its users over the network unless it is told not to before it loads
    os.environ["TQDM_DISABLE"] = "1"  # localmed shows how far it is
    try:
        with interrupts.delayed():
            import torch  # noqa: F401
        import peft
        import trl  # noqa: F401

        assert peft
    except ImportError:
        raise ModelError("training.not_installed") from None


def learn(
    base: Base, recipe: Recipe, examples: Sequence[Example], pairs: Path, folder: Path, advance: Advance
) -> Mapping[str, Mapping[str, Any]]:
    """Train both stages in ``folder``; return their manifests. ``pairs`` is the file of the examples."""
    stages = recipe.stages(examples)
    facts = {
        "base": {"name": base.name, "sha256": base.sha256},
        "pairs": sha256_of(pairs),
        "recipe": asdict(recipe),
        "too_long": len(examples) - len(stages[SFT][0]),
        "versions": {name: version(name) for name in PACKAGES},
    }
    manifests: dict[str, Mapping[str, Any]] = {}
    for stage, (chosen, _) in stages.items():
        if not chosen:
            raise InputError("training.no_pairs", stage=stage)
        made = {"stage": stage, "examples": len(chosen), **facts}
        before = folder / SFT / "adapter" if stage == DPO else None
        manifests[stage] = _train_stage(base, recipe, chosen, made, folder / stage, before, advance)
    return manifests


def _train_stage(
    base: Base,
    recipe: Recipe,
    examples: Sequence[Example],
    made: Mapping[str, Any],
    folder: Path,
    before: Path | None,
    advance: Advance,
) -> Mapping[str, Any]:
    finished = _finished_manifest(folder, made)
    if finished:
        return finished
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations in the libraries
        try:
            trainer = _train(lambda: _make_trainer(base, recipe, examples, folder, before, advance), folder)
            trainer.model.save_pretrained(str(folder / "adapter"), selected_adapters=["default"])
        except LocalmedError:
            raise
        except Exception as error:  # each library raises its own, torch RuntimeError
            raise ModelError("training.failed", stage=folder.name, error=type(error).__name__) from error
    losses = [round(entry["loss"], 4) for entry in trainer.state.log_history if "loss" in entry]
    manifest = {**made, "steps": trainer.state.global_step, "losses": losses, "adapter": _hashes(folder / "adapter")}
    files.replace(folder / MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())
    return manifest


def _finished_manifest(folder: Path, made: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The manifest of a finished stage; raise ``UsageError`` for a stage begun with other inputs."""
    begun = folder / "made.json"
    if begun.exists() and json.loads(begun.read_text("utf-8")) != made:
        raise UsageError("training.learnt_other", stage=folder.name, folder=str(folder.parent))
    if (folder / MANIFEST).exists():
        manifest: Mapping[str, Any] = json.loads((folder / MANIFEST).read_text("utf-8"))
        if _hashes(folder / "adapter") == manifest["adapter"]:
            return manifest
    folder.mkdir(parents=True, exist_ok=True)
    files.replace(begun, json.dumps(made).encode())
    return None


def _hashes(folder: Path) -> dict[str, str]:
    """The sha256 of each file of an adapter, without its empty model card."""
    paths = sorted(path for path in folder.glob("*") if path.suffix in (".json", ".safetensors"))
    return {path.name: sha256_of(path) for path in paths}


def _train(make: Callable[[], Any], folder: Path) -> Any:
    """A trainer that has finished, started from the newest loadable checkpoint."""
    while True:
        checkpoint, trainer = last_checkpoint(folder), make()
        try:
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        except Exception:  # loaders raise various errors on unknown bytes
            if checkpoint is None or trainer.has_stepped:
                raise
            aside = checkpoint.with_name(f"unloadable-{checkpoint.name}")  # it is whole, and yet cannot be loaded
            shutil.rmtree(aside, ignore_errors=True)
            checkpoint.replace(aside)
        else:
            return trainer


# --- needs the extra "train" ------------------------------------------------------------------------------------------


def _make_trainer(
    base: Base, recipe: Recipe, examples: Sequence[Example], folder: Path, before: Path | None, advance: Advance
) -> Any:
    """A trl trainer: SFT, or DPO if there is an adapter from ``before``."""
    import torch
    import trl
    from datasets import Dataset, disable_progress_bars
    from transformers import PrinterCallback, TrainerCallback, set_seed

    class Following(TrainerCallback):  # type: ignore[misc]
        """Reports the progress of the stage and seals checkpoints."""

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            trainer.has_stepped = True

        def on_step_end(self, *_: Any, **__: Any) -> None:
            advance(recipe.batch, folder.name)

        def on_save(self, _: Any, state: Any, *__: Any, **___: Any) -> None:
            seal(folder / f"checkpoint-{state.global_step}")

    class Preferring(trl.DPOTrainer):  # type: ignore[misc]
        """Takes tokens, where trl would cut texts into them."""

        def _prepare_dataset(self, dataset: Any, *_: Any) -> Any:
            return dataset

    disable_progress_bars()
    set_seed(recipe.seed)
    common = {"model": _model(base, recipe, before), "processing_class": _tokenizer(), "callbacks": [Following()]}
    arguments = {
        "output_dir": str(folder), "per_device_train_batch_size": 1, "gradient_accumulation_steps": recipe.batch,
        "save_steps": recipe.save_steps, "logging_steps": 1, "report_to": "none", "disable_tqdm": True,
        "gradient_checkpointing": False, "seed": recipe.seed, "use_cpu": not torch.cuda.is_available(), "bf16": False,
        "max_length": recipe.most_tokens, "dataloader_pin_memory": False,
    }  # fmt: skip
    if before is None:
        rows = [
            {"input_ids": [*one.prompt, *one.chosen], "labels": [IGNORED] * len(one.prompt) + list(one.chosen)}
            for one in examples
        ]
        args = trl.SFTConfig(num_train_epochs=recipe.sft_epochs, learning_rate=recipe.sft_rate, **arguments)
        trainer = trl.SFTTrainer(args=args, train_dataset=Dataset.from_list(rows), **common)
    else:
        rows = [
            {"prompt_ids": list(one.prompt), "chosen_ids": list(one.chosen), "rejected_ids": list(one.rejected)}
            for one in examples
        ]
        rates = {"num_train_epochs": recipe.dpo_epochs, "learning_rate": recipe.dpo_rate, "beta": recipe.beta}
        args = trl.DPOConfig(**rates, **arguments)
        trainer = Preferring(args=args, train_dataset=Dataset.from_list(rows), **common)
    trainer.remove_callback(PrinterCallback)
    trainer.has_stepped = False
    return trainer


def _model(base: Base, recipe: Recipe, before: Path | None) -> Any:
    """The dequantised base model with a new adapter or the one from ``before``."""
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import AutoModelForCausalLM, GgufConfig
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    dense = GgufConfig(gguf_file=base.path.name, dequantize=True)  # quantised weights cannot be trained
    model = AutoModelForCausalLM.from_pretrained(
        str(base.path.parent), gguf_file=base.path.name, quantization_config=dense, dtype=torch.bfloat16
    )
    if before is not None:
        return PeftModel.from_pretrained(model, str(before), is_trainable=True)
    modules = [name.rpartition(".")[2] for name in PARTS]
    config = LoraConfig(r=recipe.rank, lora_alpha=recipe.alpha, target_modules=modules, task_type="CAUSAL_LM")
    return get_peft_model(model, config)


def _tokenizer() -> Any:
    """A dummy tokenizer: trainers require one, and take the padding token from it."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(WordLevel({"<pad>": 0}, unk_token="<pad>"))  # noqa: S106  (a token, not a secret)
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<pad>", unk_token="<pad>")  # noqa: S106


# --- exporting --------------------------------------------------------------------------------------------------------

# A trained adapter is merged into its base GGUF, so that llama.cpp serves it like any other model. The base file is
# copied with header and vocabulary; changed matrices are written in half precision as the dequantised base plus
# ``alpha / rank * B A`` (LoRA, Hu et al. 2021). Llama files interleave the rows of attention queries and keys as pairs
# of the rotation (llama.cpp's converter), unlike the trainer; the change is reordered accordingly.

PARTS = {  # a module of the trainer -> the matrix of a layer in the file
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
REORDERED = {  # the architectures whose adapters can be merged -> matrices with rows in another order, by their heads
    "llama": {"attn_q": "head_count", "attn_k": "head_count_kv"},
    "qwen2": {},
    "qwen3": {},
}
_MODULE = re.compile(r"base_model\.model\.model\.layers\.(\d+)\.(.+)\.lora_(A|B)\.weight")


def require_mergeable(architecture: str) -> None:
    """Raise ``ModelError`` for an architecture whose adapters cannot be merged."""
    if architecture not in REORDERED:
        raise ModelError("training.architecture", name=architecture, known=tuple(REORDERED))


def merge(base: Path, adapter: Path, target: Path, advance: Callable[[float, str], object]) -> tuple[int, str]:
    """Write ``base`` merged with the peft folder ``adapter`` to ``target``, atomically.

    Return the number of changed matrices and the sha256 of the result.
    """
    from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
    from gguf.quants import dequantize

    reader = GGUFReader(str(base))
    architecture = str(reader.fields["general.architecture"].contents())
    require_mergeable(architecture)
    changes = _changes(adapter, lambda part: _heads(reader, architecture, part))
    fresh = target.with_suffix(".part")
    writer = GGUFWriter(str(fresh), architecture)
    _copy_header(reader, writer)
    merged = 0
    for tensor in reader.tensors:
        change = changes.get(tensor.name)
        if change is None:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
        else:
            values = dequantize(tensor.data, tensor.tensor_type).reshape(change.shape) + change
            writer.add_tensor(tensor.name, values.astype(np.float16), raw_dtype=GGMLQuantizationType.F16)
            merged += 1
        advance(1, tensor.name)
    if merged != len(changes):
        raise ModelError("training.other_base", name=base.name)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    fresh.replace(target)
    return merged, sha256_of(target)


def _copy_header(reader: Any, writer: Any) -> None:
    from gguf import GGUFValueType

    for name, stored in reader.fields.items():
        if name == "general.architecture" or name.startswith("GGUF."):
            continue  # the writer's own
        kind = stored.types[0]
        inner = stored.types[-1] if kind == GGUFValueType.ARRAY else None
        writer.add_key_value(name, stored.contents(), kind, inner)


def _heads(reader: Any, architecture: str, part: str) -> int:
    """The number of heads by which the rows of ``part`` are reordered; 0 if they are not."""
    name = REORDERED[architecture].get(part)
    return int(reader.fields[f"{architecture}.attention.{name}"].contents()) if name else 0


def _changes(adapter: Path, heads: Callable[[str], int]) -> dict[str, Matrix]:
    """The delta of each matrix, by its GGUF name."""
    from safetensors.numpy import load_file

    config = json.loads((adapter / "adapter_config.json").read_text("utf-8"))
    weights, changes = load_file(adapter / "adapter_model.safetensors"), {}
    for name, low in weights.items():
        match = _MODULE.fullmatch(name)
        if match and match[3] == "A":  # A (rank, in) and B (out, rank)
            part, high = PARTS[match[2]], weights[name.replace(".lora_A.", ".lora_B.")]
            change = config["lora_alpha"] / config["r"] * (high.astype(np.float32) @ low.astype(np.float32))
            changes[f"blk.{match[1]}.{part}.weight"] = reordered(change.astype(np.float32), heads(part))
    return changes


def reordered(matrix: Matrix, heads: int) -> Matrix:
    """Rows of each of ``heads`` from (first half, second half) to interleaved pairs; unchanged for 0 heads."""
    if not heads:
        return matrix
    rows, columns = matrix.shape
    return matrix.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
