"""A GGUF of the Llama architecture with random weights, written where a test or benchmark needs it.

By default 64 wide with two layers over a vocabulary of the 256 bytes and a few words: under half a megabyte. It
understands nothing; what llama.cpp computes with it is what it would compute with real weights of these shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from localmed.config import ChatSettings
from localmed.models.llama.adapter import ChatFile, LlamaChat

MARKS = ("<|im_start|>", "<|im_end|>")
WORDS = ("▁the", "▁dose", "▁is", "yes", "no", "ir", "relevant", '{"', '":', '"}', "label", '▁"', "▁", "user",
         "assistant")  # fmt: skip
NORMAL, UNKNOWN, CONTROL, ADDED, BYTE = 1, 2, 3, 4, 6  # llama.cpp's kinds of tokens


@dataclass(frozen=True)
class Shape:
    """How large the model is; ``pieces`` are words of its vocabulary beside the bytes, ``marks`` of ``mark_kind``."""

    width: int = 64
    layers: int = 2
    heads: int = 4
    hidden: int = 128
    context: int = 2048
    pieces: Sequence[str] = WORDS
    half: bool = False  # weights of two bytes instead of four
    marks: Sequence[str] = MARKS
    mark_kind: int = CONTROL


TINY = Shape()
SETTINGS = ChatSettings(context=1024, micro_batch=64, sequences=6, threads=1)


def chat(path: Path, settings: ChatSettings = SETTINGS, template: str = "chatml", **more: Any) -> LlamaChat:
    """The adapter on the file ``path``; nothing is loaded yet."""
    return LlamaChat(ChatFile("tiny", path, "ab" * 32, template, 2048), settings, **more)


def write_gguf(path: Path, seed: int = 0, shape: Shape = TINY, template: str = "") -> Path:
    """Write the model to ``path`` and return it; ``template`` is put in as the file's own chat template."""
    import gguf

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.hidden)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape.width // shape.heads)
    if template:
        writer.add_chat_template(template)
    size = _add_vocabulary(writer, shape)
    _add_weights(writer, seed, shape, size)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_vocabulary(writer: Any, shape: Shape) -> int:
    tokens = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
    tokens += [(mark, shape.mark_kind) for mark in shape.marks if mark != "</s>"]
    tokens += [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
    # The tokenizer joins two tokens at a time, so that a word is found if all its beginnings are tokens too.
    beginnings = {piece[:end] for piece in shape.pieces for end in range(1, len(piece) + 1)}
    tokens += [(piece, NORMAL) for piece in sorted(beginnings)]
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text for text, _ in tokens])
    writer.add_token_scores([float(len(text)) if kind == NORMAL else 0.0 for text, kind in tokens])
    writer.add_token_types([kind for _, kind in tokens])
    for name, token in (("bos", 1), ("eos", 2), ("unk", 0)):
        getattr(writer, f"add_{name}_token_id")(token)
    return len(tokens)


def _add_weights(writer: Any, seed: int, shape: Shape, size: int) -> None:
    random = np.random.default_rng(seed)

    def add(name: str, *dimensions: int) -> None:
        values = random.standard_normal(dimensions, np.float32) * (2.0 / np.sqrt(dimensions[-1]))
        writer.add_tensor(name, values.astype(np.float16 if shape.half else np.float32))

    def ones(name: str) -> None:
        writer.add_tensor(name, np.ones(shape.width, np.float32))

    add("token_embd.weight", size, shape.width)
    add("output.weight", size, shape.width)
    ones("output_norm.weight")
    for layer in range(shape.layers):
        ones(f"blk.{layer}.attn_norm.weight")
        ones(f"blk.{layer}.ffn_norm.weight")
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{layer}.{part}.weight", shape.width, shape.width)
        add(f"blk.{layer}.ffn_gate.weight", shape.hidden, shape.width)
        add(f"blk.{layer}.ffn_up.weight", shape.hidden, shape.width)
        add(f"blk.{layer}.ffn_down.weight", shape.width, shape.hidden)
