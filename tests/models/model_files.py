"""Small GGUF and safetensors files, written by hand from the formats' layout; a test can write bad ones too."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

U8, U32, I32, F32, BOOL, STRING, ARRAY, U64 = 0, 4, 5, 6, 7, 8, 9, 10
LAYOUT = {U8: "<B", U32: "<I", I32: "<i", F32: "<f", BOOL: "<B", U64: "<Q"}

Entry = tuple[str, int, Any]  # key, kind, value; of an array the value is (kind, items)
Tensor = tuple[str, Sequence[int], int, int]  # name, sizes, type, offset

ENTRIES: tuple[Entry, ...] = (
    ("general.architecture", STRING, "qwen3"),
    ("general.name", STRING, "Tiny"),
    ("general.license", STRING, "apache-2.0"),
    ("qwen3.block_count", U32, 4),
    ("qwen3.context_length", U32, 8192),
    ("qwen3.embedding_length", U32, 64),
    ("qwen3.attention.head_count", U32, 8),
    ("qwen3.attention.head_count_kv", U32, 2),
    ("qwen3.rope.freq_base", F32, 1e6),
    ("tokenizer.ggml.tokens", ARRAY, (STRING, ["a", "b", "c"])),
    ("tokenizer.ggml.scores", ARRAY, (F32, [0.0, 0.5, 1.0])),
    ("tokenizer.chat_template", STRING, "{{ messages }}"),
)
TENSORS: tuple[Tensor, ...] = (("a", (32, 2), 8, 0), ("b", (4,), 0, 96))  # Q8_0: 68 bytes; F32: 16 bytes
DATA = 112


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def value_of(kind: int, value: Any) -> bytes:
    if kind == STRING:
        return text(value)
    if kind == ARRAY:
        inner, items = value
        return struct.pack("<IQ", inner, len(items)) + b"".join(value_of(inner, item) for item in items)
    return struct.pack(LAYOUT[kind], value)


def entry(key: str, kind: int, value: Any) -> bytes:
    return text(key) + struct.pack("<I", kind) + value_of(kind, value)


def tensor(name: str, sizes: Sequence[int], kind: int, offset: int) -> bytes:
    sizes_packed = b"".join(struct.pack("<Q", size) for size in sizes)
    return text(name) + struct.pack("<I", len(sizes)) + sizes_packed + struct.pack("<IQ", kind, offset)


def gguf(
    entries: Sequence[Entry] = ENTRIES,
    tensors: Sequence[Tensor] = TENSORS,
    data: int = DATA,
    version: int = 3,
    counts: tuple[int, int] | None = None,
    alignment: int = 32,
) -> bytes:
    """A file; ``counts`` claims other numbers of tensors and entries than there are."""
    claimed = counts or (len(tensors), len(entries))
    head = b"GGUF" + struct.pack("<IQQ", version, *claimed)
    head += b"".join(entry(*item) for item in entries) + b"".join(tensor(*item) for item in tensors)
    return head + bytes(-len(head) % alignment) + bytes(data)


def changed(**values: Any) -> list[Entry]:
    """``ENTRIES`` with other values, ``block_count=5`` and the like."""
    return [(key, kind, values.get(key.rpartition(".")[2], value)) for key, kind, value in ENTRIES]


def safetensors(header: Mapping[str, Any] | bytes | None = None, data: int = 16, length: int | None = None) -> bytes:
    """A file; ``length`` claims another length of the header."""
    usual = {"w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}, "__metadata__": {"format": "pt"}}
    packed = header if isinstance(header, bytes) else json.dumps(usual if header is None else header).encode()
    return struct.pack("<Q", len(packed) if length is None else length) + packed + bytes(data)


def make(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
