"""The header of a GGUF file, read without llama.cpp: what it holds, and whether it can be what it claims.

The layout (little-endian; version 2 and 3)::

    "GGUF"  version u32  tensors u64  entries u64
    entries x  (key string, kind u32, value)          a string is a u64 length and its bytes
    tensors x  (name string, dimensions u32, sizes u64 each, type u32, offset u64)
    padding to the alignment, then the tensors' data

Rules: a count is refused before anything is done that often, as soon as so many items could not fit into what is left
of the file; every other bound is named below; each tensor must end within the file, so that a copy that broke off is
told here and not by a crash. Arrays within arrays and a key that occurs twice are refused, as llama.cpp does. The chat
template is code (a Jinja program): it is never run; its length and sha256 are noted. Messages hold counts, never text
of the file. Called in a child process (``inspecting``) with limits on memory and time.

Not covered: big-endian files and version 1, which are refused by name; whether the weights are any good.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from dataclasses import dataclass
from math import prod
from typing import BinaryIO

from localmed.domain import message
from localmed.domain.errors import InputError, LimitExceeded
from localmed.models.registry.header import Header

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_ENTRIES = 65_536  # files have 20 to 60
MOST_TENSORS = 200_000  # the largest mixtures of experts have some thousands
MOST_ITEMS = 4_000_000  # of all arrays together; a vocabulary of 262,144 with its merges has about 1.3 million
HEADER_BYTES = 512 * 2**20  # large vocabularies take 20 MiB
KEY_BYTES = 65_535  # the format's own bound
NAME_BYTES = 255  # of a tensor; llama.cpp reads 63
TEXT_BYTES = 2**20  # of a value that is looked at; chat templates have up to 20,000 characters
SHOWN = 100  # characters kept of a name
MOST_LAYERS = 4_096  # models have up to ~130
MOST_WIDTH = 2**24  # of heads, their lengths and a model's width
MOST_CONTEXT = 2**30  # tokens
MOST_ALIGNMENT = 2**16
MOST_DIMENSIONS = 4
MOST_PARAMETERS = 2**50  # of one tensor

STRING, ARRAY = 8, 9
NUMBERS = {  # kind of a value: its struct format
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<B", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip
WHOLE = (0, 1, 2, 3, 4, 5, 10, 11)
LEAST = {kind: struct.calcsize(layout) for kind, layout in NUMBERS.items()} | {STRING: 8, ARRAY: 12}  # bytes of a value

TYPES = {  # type of a tensor: (name, weights in a block, bytes of a block); others are taken as they come
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50), 20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136), 24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4),
    27: ("I64", 1, 8), 28: ("F64", 1, 8), 29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17),
}  # fmt: skip
MOST_TYPE = 255  # of types not in the table, which newer versions add one by one

TEMPLATE = "tokenizer.chat_template"
TOKENS = "tokenizer.ggml.tokens"
ALIGNMENT = "general.alignment"
PART = "split.no"  # of a model in several files, of which only the first describes it
TEXTS = ("general.architecture", "general.name", "general.license")
# Looked at under the architecture's name, such as qwen3.block_count.
SIZES = ("block_count", "context_length", "embedding_length", "attention.head_count", "attention.head_count_kv",
         "attention.key_length", "attention.value_length")  # fmt: skip

Value = int | bytes | tuple[int, ...]


def read(stream: BinaryIO, size: int) -> Header:
    """The header of the file of ``size`` bytes open as ``stream``; raise ``InputError`` if it cannot be a model."""
    source = _Source(stream, size)
    tensors, entries = _opening(source)
    values = _entries(source, entries)
    alignment = _alignment(values)
    sums = _tensors(source, tensors, alignment)
    start = -(-source.position // alignment) * alignment
    if not sums.count or start + sums.end > size:
        if not sums.count:
            raise InputError("model.no_tensors")
        raise InputError("model.ends_early", count=start + sums.end - size)
    return _header(values, sums)


@dataclass(frozen=True, slots=True)
class _Tensors:
    """What the tensors come to; ``end`` counts from the beginning of their data."""

    count: int
    end: int
    parameters: int
    quantisation: str


class _Source:
    """The file's bytes from the front; nothing is taken that the file or ``HEADER_BYTES`` does not hold."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream, self._size = stream, size
        self.position = 0
        self.items = 0  # of arrays, so far

    @property
    def left(self) -> int:
        return self._size - self.position

    def take(self, count: int) -> bytes:
        self._advance(count)
        data = self._stream.read(count)
        if len(data) != count:  # it shrank meanwhile
            raise InputError("model.header_cut")
        return data

    def skip(self, count: int) -> None:
        self._advance(count)
        self._stream.seek(count, 1)

    def _advance(self, count: int) -> None:
        if count > self.left:
            raise InputError("model.header_cut")
        self.position += count
        if self.position > HEADER_BYTES:
            raise LimitExceeded("model.header_long", most=HEADER_BYTES // 2**20)

    def number(self, layout: str) -> int:
        return int(struct.unpack(layout, self.take(struct.calcsize(layout)))[0])

    def count(self, least: int, most: int, kind: str) -> int:
        """A count of what ``kind`` (a message code) names, that take ``least`` bytes each."""
        number = self.number("<Q")
        if number > most:
            raise LimitExceeded("model.claims_more", count=number, things=message(kind), most=most)
        if number * least > self.left:
            raise InputError("model.claims_room", count=number, things=message(kind))
        return number

    def text(self, most: int) -> bytes:
        return self.take(self.count(1, most, "model.things_bytes"))


def _opening(source: _Source) -> tuple[int, int]:
    """Check magic and version; return the number of tensors and of entries."""
    if not source.left:
        raise InputError("model.file_empty")
    if source.take(min(4, source.left)) != MAGIC:
        raise InputError("model.no_gguf")
    version = source.number("<I")
    if version not in VERSIONS:
        if int.from_bytes(version.to_bytes(4, "little"), "big") in (1, *VERSIONS):
            raise InputError("model.gguf_big_endian")
        raise InputError("model.gguf_version", version=version, known=tuple(VERSIONS))
    tensors = source.count(0, MOST_TENSORS, "model.things_tensors")
    entries = source.count(LEAST[STRING] + 4 + 1, MOST_ENTRIES, "model.things_entries")
    return tensors, entries


def _entries(source: _Source, count: int) -> dict[bytes, Value]:
    """The values that are looked at, by key."""
    seen: set[bytes] = set()
    values: dict[bytes, Value] = {}
    for number in range(1, count + 1):
        key = source.text(KEY_BYTES)
        if key in seen:
            raise InputError("model.gguf_key_twice", number=number)
        seen.add(key)
        value = _value(source, source.number("<I"), number, _is_read(key))
        if value is not None:
            values[key] = value
    return values


def _is_read(key: bytes) -> bool:
    named = key.decode("utf-8", "replace")
    return named in (*TEXTS, TEMPLATE, TOKENS, ALIGNMENT, PART) or named.partition(".")[2] in SIZES


def _value(source: _Source, kind: int, entry: int, read: bool) -> Value | None:
    """The value if it is to be ``read``: a number, text, the numbers of an array, or the length of an array of text."""
    if kind == ARRAY:
        return _array(source, entry, read)
    if kind == STRING and read:
        return source.text(TEXT_BYTES)
    if kind not in LEAST:
        raise InputError("model.gguf_entry_kind", entry=entry, kind=kind)
    if read and kind in WHOLE:
        return source.number(NUMBERS[kind])
    source.skip(source.count(1, HEADER_BYTES, "model.things_bytes") if kind == STRING else LEAST[kind])
    return None


def _array(source: _Source, entry: int, read: bool) -> Value | None:
    kind = source.number("<I")
    if kind == ARRAY or kind not in LEAST:
        raise InputError("model.gguf_array_kind", entry=entry, kind=kind)
    count = source.count(LEAST[kind], MOST_ITEMS, "model.things_items")
    source.items += count
    if source.items > MOST_ITEMS:
        raise LimitExceeded("model.gguf_items", most=MOST_ITEMS)
    if kind == STRING:
        for _ in range(count):
            source.skip(source.count(1, HEADER_BYTES, "model.things_bytes"))
        return count
    if read and kind in WHOLE and count <= MOST_LAYERS:
        return tuple(source.number(NUMBERS[kind]) for _ in range(count))
    source.skip(count * LEAST[kind])
    return None


def _alignment(values: dict[bytes, Value]) -> int:
    alignment = values.get(ALIGNMENT.encode(), 32)
    if not isinstance(alignment, int) or not 8 <= alignment <= MOST_ALIGNMENT or alignment & (alignment - 1):
        raise InputError("model.gguf_alignment")
    return alignment


def _tensors(source: _Source, count: int, alignment: int) -> _Tensors:
    """Read the list of tensors and add them up."""
    if count * 24 > source.left:  # name, dimensions, type and offset take 24 bytes at the least
        raise InputError("model.claims_room", count=count, things=message("model.things_tensors"))
    names: set[bytes] = set()
    weights: Counter[str] = Counter()
    end = parameters = 0
    for number in range(1, count + 1):
        names.add(source.text(NAME_BYTES))
        dimensions = source.number("<I")
        if len(names) != number or dimensions > MOST_DIMENSIONS:
            raise InputError("model.gguf_tensor_twice", number=number, dimensions=dimensions)
        sizes = [source.number("<Q") for _ in range(dimensions)]
        kind, used = _used(sizes, source.number("<I"), number)
        offset = source.number("<Q")
        if offset % alignment:
            raise InputError("model.gguf_unaligned", number=number)
        end = max(end, offset + used)
        parameters += prod(sizes)
        weights[kind] += used
    return _Tensors(count, end, parameters, weights.most_common(1)[0][0] if weights else "")


def _used(sizes: list[int], kind: int, number: int) -> tuple[str, int]:
    """The name of a tensor's type and the bytes it takes: none are known of a type that is not in the table."""
    if not all(sizes) or kind > MOST_TYPE:
        raise InputError("model.gguf_tensor_size", number=number, kind=kind)
    if prod(sizes) > MOST_PARAMETERS:
        raise LimitExceeded("model.gguf_weights", number=number, most=MOST_PARAMETERS)
    name, block, block_bytes = TYPES.get(kind, (f"type {kind}", 1, 0))
    if sizes and sizes[0] % block:
        raise InputError("model.gguf_rows", number=number, kind=name)
    return name, prod(sizes) // block * block_bytes


def _header(values: dict[bytes, Value], tensors: _Tensors) -> Header:
    architecture, name, licence = (_text(values, key) for key in TEXTS)
    if not architecture and not values.get(PART.encode()):
        raise InputError("model.gguf_architecture")
    template = values.get(TEMPLATE.encode(), b"")
    template = template if isinstance(template, bytes) else b""
    vocabulary = values.get(TOKENS.encode(), 0)
    layers = _size(values, architecture, "block_count", MOST_LAYERS)
    return Header(
        format="gguf",
        architecture=architecture,
        name=name,
        licence=licence,
        quantisation=tensors.quantisation,
        parameters=tensors.parameters,
        tensors=tensors.count,
        context=_size(values, architecture, "context_length", MOST_CONTEXT),
        layers=layers,
        kv_numbers=_kv_numbers(values, architecture, layers),
        vocabulary=vocabulary if isinstance(vocabulary, int) else 0,
        template_characters=len(template.decode("utf-8", "replace")),
        template_sha256=hashlib.sha256(template).hexdigest() if template else "",
    )


def _kv_numbers(values: dict[bytes, Value], architecture: str, layers: int) -> int:
    """Key and value numbers of one token over all layers; 0 where a size is missing.

    An upper bound: layers that look back over a window only, or keep a compressed state, keep less.
    """
    heads = _sizes(values, architecture, "attention.head_count", MOST_WIDTH)
    kept = _sizes(values, architecture, "attention.head_count_kv", MOST_WIDTH) or heads
    width = _size(values, architecture, "embedding_length", MOST_WIDTH)
    usual = width // max(heads, default=0) if any(heads) else 0
    key = _size(values, architecture, "attention.key_length", MOST_WIDTH) or usual
    value = _size(values, architecture, "attention.value_length", MOST_WIDTH) or usual
    total = kept[0] * layers if len(kept) == 1 else sum(kept)
    return total * (key + value)


def _size(values: dict[bytes, Value], architecture: str, name: str, most: int) -> int:
    return max(_sizes(values, architecture, name, most), default=0)


def _sizes(values: dict[bytes, Value], architecture: str, name: str, most: int) -> tuple[int, ...]:
    """A size, or one a layer; raise ``InputError`` where it is not from 0 to ``most``."""
    value = values.get(f"{architecture}.{name}".encode(), ())
    numbers = (value,) if isinstance(value, int) else value if isinstance(value, tuple) else (-1,)
    if not all(0 <= number <= most for number in numbers):
        raise InputError("model.gguf_number", name=name, most=most)
    return numbers


def _text(values: dict[bytes, Value], key: str) -> str:
    value = values.get(key.encode(), b"")
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
    return "".join(character if character.isprintable() else " " for character in text[:SHOWN]).strip()
