"""A trained adapter merged into the GGUF that it was trained on, so that llama.cpp serves it like any other model.

The base file is copied as it is, header and vocabulary included; only the matrices that the adapter changes are written
anew, in half precision: what they were, dequantised, and ``alpha / rank * B A`` (LoRA, Hu et al. 2021). Files of the
Llama architecture hold the rows of queries and keys of attention in another order than the trainer's, pairs of the
rotation side by side (llama.cpp's converter): the change is brought into it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from localmed.domain.errors import ModelError
from localmed.library.intact import sha256_of

if TYPE_CHECKING:
    import numpy.typing as npt

    Matrix = npt.NDArray[np.float32]

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
    part = target.with_suffix(".part")
    writer = GGUFWriter(str(part), architecture)
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
    part.replace(target)
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
    config = json.loads((adapter / "adapter_config.json").read_text("utf-8"))
    scale = config["lora_alpha"] / config["r"]
    changes = {}
    for layer, module, low, high in _pairs(_weights(adapter)):
        part = PARTS[module]
        change = (scale * (high @ low)).astype(np.float32)
        changes[f"blk.{layer}.{part}.weight"] = reordered(change, heads(part))
    return changes


def _weights(adapter: Path) -> Mapping[str, Matrix]:
    from safetensors.numpy import load_file

    return {
        name: values.astype(np.float32) for name, values in load_file(adapter / "adapter_model.safetensors").items()
    }


def _pairs(weights: Mapping[str, Matrix]) -> Iterator[tuple[str, str, Matrix, Matrix]]:
    """Layer, module, A (rank, in) and B (out, rank)."""
    for name, low in weights.items():
        match = _MODULE.fullmatch(name)
        if match and match[3] == "A":
            yield match[1], match[2], low, weights[name.replace(".lora_A.", ".lora_B.")]


def reordered(matrix: Matrix, heads: int) -> Matrix:
    """Rows of each of ``heads`` as (first half, second half) -> as pairs; as they are for no heads."""
    if not heads:
        return matrix
    rows, columns = matrix.shape
    return matrix.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
