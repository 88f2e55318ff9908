"""Planning learning (Omni-RAG, source planning optimisation, 4.2.3): supervised fine-tuning, then preference pairs.

Low-rank adapters (LoRA) are trained on the base model's own GGUF, dequantised: first on the positive plans (SFT), then
on pairs of a positive and a negative plan (DPO, Rafailov et al. 2023), whose reference is the model after SFT. Prompts
and plans are cut into tokens by the process that will serve the planner, so that it is trained on what it is asked.

Each stage keeps checkpoints and ends with an adapter and ``manifest.json``, written last: what it was made of and with.
A stage that is finished is not done again; one that was interrupted goes on from its last whole checkpoint, and if that
cannot be loaded from the one before, else from the start. What the libraries raise ends in ``ModelError``.
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

# A checkpoint counts only where a seal, written last, names its files by their hashes: trainers write and delete a
# checkpoint file by file, so that a kill or a power cut leaves folders that look like checkpoints and are none. What
# has no seal, or other bytes than it says, is removed when the stage goes on.

KEPT = 2  # sealed ones: the newest, and the one before in case it cannot be loaded
SEAL = "seal.json"
_NAME = re.compile(r"checkpoint-(\d+)")


def step_of(checkpoint: Path) -> int:
    """The step that a checkpoint was written after, by its name; -1 for another name."""
    match = _NAME.fullmatch(checkpoint.name)
    return int(match[1]) if match else -1


def seal(checkpoint: Path) -> None:
    """Say that a checkpoint is whole, and remove the oldest sealed ones beside it."""
    paths = sorted(path for path in checkpoint.rglob("*") if path.is_file() and path.name != SEAL)
    hashes = {path.relative_to(checkpoint).as_posix(): sha256_of(path) for path in paths}
    files.replace(checkpoint / SEAL, json.dumps(hashes).encode())
    older = [path for path in _newest_first(checkpoint.parent) if (path / SEAL).exists()]
    for path in older[KEPT:]:
        _remove(path)


def last(folder: Path) -> Path | None:
    """The newest whole checkpoint of a stage; those that are not whole are removed."""
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
    """Remove the seal first: what is left of the others then counts for nothing."""
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
    """How it is trained. Defaults are usual ones for LoRA; the paper names none of a small model's."""

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
        """What each stage learns from, and how often."""
        fitting = [example for example in examples if example.longest <= self.most_tokens]
        pairs = [example for example in fitting if example.rejected]
        return {SFT: (fitting, self.sft_epochs), DPO: (pairs, self.dpo_epochs)}


@dataclass(frozen=True, slots=True)
class Base:
    """The model that is trained: a registered GGUF file."""

    name: str
    path: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class Example:
    """The tokens of a prompt, of its positive plan, and of its negative one (() where there is none)."""

    prompt: tuple[int, ...]
    chosen: tuple[int, ...]
    rejected: tuple[int, ...]

    @property
    def longest(self) -> int:
        """The tokens of the prompt with the longer plan."""
        return len(self.prompt) + max(len(self.chosen), len(self.rejected))


def require() -> None:
    """Load what trains, without a network; raise ``ModelError`` if it is not installed."""
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
    """Train both stages in ``folder``; returns their manifests. ``pairs`` is the file that the examples are of."""
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
        manifests[stage] = _stage(base, recipe, chosen, made, folder / stage, before, advance)
    return manifests


def _stage(
    base: Base,
    recipe: Recipe,
    examples: Sequence[Example],
    made: Mapping[str, Any],
    folder: Path,
    before: Path | None,
    advance: Advance,
) -> Mapping[str, Any]:
    """The manifest of a stage, trained unless it is finished."""
    finished = _finished(folder, made)
    if finished:
        return finished
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries, on what they will rename
        try:
            trainer = _trained(lambda: _trainer(base, recipe, examples, folder, before, advance), folder)
            trainer.model.save_pretrained(str(folder / "adapter"), selected_adapters=["default"])
        except LocalmedError:
            raise
        except Exception as error:  # each library raises its own, torch RuntimeError
            raise ModelError("training.failed", stage=folder.name, error=type(error).__name__) from error
    losses = [round(entry["loss"], 4) for entry in trainer.state.log_history if "loss" in entry]
    manifest = {**made, "steps": trainer.state.global_step, "losses": losses, "adapter": _hashes(folder / "adapter")}
    files.replace(folder / MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())
    return manifest


def _finished(folder: Path, made: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The manifest of a finished stage; raise ``UsageError`` for a stage that was begun with something else."""
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
    """The sha256 of each file of an adapter but its page for the hub, which holds nothing."""
    paths = sorted(path for path in folder.glob("*") if path.suffix in (".json", ".safetensors"))
    return {path.name: sha256_of(path) for path in paths}


def _trained(make: Callable[[], Any], folder: Path) -> Any:
    """A trainer that has come to its end, from the newest checkpoint that can be loaded, else from the start."""
    while True:
        checkpoint, trainer = last(folder), make()
        try:
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        except Exception:  # whatever a loader raises at bytes that it does not know
            if checkpoint is None or trainer.has_stepped:
                raise
            aside = checkpoint.with_name(f"unloadable-{checkpoint.name}")  # it is whole, and yet cannot be loaded
            shutil.rmtree(aside, ignore_errors=True)
            checkpoint.replace(aside)
        else:
            return trainer


# --- what only runs where the extra "train" is installed -----------------------------------------------------------


def _trainer(
    base: Base, recipe: Recipe, examples: Sequence[Example], folder: Path, before: Path | None, advance: Advance
) -> Any:
    """A trainer of trl: of positive plans, or of pairs where there is an adapter from ``before``."""
    import torch
    import trl
    from datasets import Dataset, disable_progress_bars
    from transformers import PrinterCallback, TrainerCallback, set_seed

    class Following(TrainerCallback):  # type: ignore[misc]
        """Tells how far the stage is, and seals what is saved."""

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
    """The base model, dequantised, with a fresh adapter or the one from ``before``."""
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import AutoModelForCausalLM, GgufConfig
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    dense = GgufConfig(gguf_file=base.path.name, dequantize=True)  # what is packed cannot be trained
    model = AutoModelForCausalLM.from_pretrained(
        str(base.path.parent), gguf_file=base.path.name, quantization_config=dense, dtype=torch.bfloat16
    )
    if before is not None:
        return PeftModel.from_pretrained(model, str(before), is_trainable=True)
    modules = [name.rpartition(".")[2] for name in PARTS]
    config = LoraConfig(r=recipe.rank, lora_alpha=recipe.alpha, target_modules=modules, task_type="CAUSAL_LM")
    return get_peft_model(model, config)


def _tokenizer() -> Any:
    """A tokenizer that cuts nothing: a trainer asks for one, and takes the number that fills rows up from it."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(WordLevel({"<pad>": 0}, unk_token="<pad>"))  # noqa: S106  (a token, not a secret)
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<pad>", unk_token="<pad>")  # noqa: S106


# --- exporting --------------------------------------------------------------------------------------------------------

# A trained adapter merged into the GGUF that it was trained on, so that llama.cpp serves it like any other model. The
# base file is copied as it is, header and vocabulary included; only the matrices that the adapter changes are written
# anew, in half precision: what they were, dequantised, and ``alpha / rank * B A`` (LoRA, Hu et al. 2021). Files of the
# Llama architecture hold the rows of queries and keys of attention in another order than the trainer's, pairs of the
# rotation side by side (llama.cpp's converter): the change is brought into it.

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


def check(architecture: str) -> None:
    """Raise ``ModelError`` for an architecture that cannot be merged into."""
    if architecture not in REORDERED:
        raise ModelError("training.architecture", name=architecture, known=tuple(REORDERED))


def merge(base: Path, adapter: Path, target: Path, advance: Callable[[float, str], object]) -> tuple[int, str]:
    """Write ``base`` with ``adapter`` (a folder of peft's) to ``target``, whole or not at all.

    Returns how many matrices changed, and the sha256 of what was written.
    """
    from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
    from gguf.quants import dequantize

    reader = GGUFReader(str(base))
    architecture = str(reader.fields["general.architecture"].contents())
    check(architecture)
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
    """The heads by which the rows of ``part`` are reordered; 0 where they are not."""
    name = REORDERED[architecture].get(part)
    return int(reader.fields[f"{architecture}.attention.{name}"].contents()) if name else 0


def _changes(adapter: Path, heads: Callable[[str], int]) -> dict[str, Matrix]:
    """What the adapter adds to each matrix of the file, by its name there."""
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
    """Rows of each of ``heads`` as (first half, second half) -> as pairs; as they are for no heads."""
    if not heads:
        return matrix
    rows, columns = matrix.shape
    return matrix.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
