"""What the header of a model file says, the value that the registry keeps; and the header of a safetensors file.

That is read without the library: a u64 length (little-endian), that many bytes of JSON (tensor name -> dtype, shape,
data_offsets), then the data. Rules: the length is bounded before anything is read; the tensors must cover the data
without gap or overlap, as the library demands. Called in a child process (``inspecting``); messages hold counts, never
text of the file.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from math import prod
from typing import Any, BinaryIO

from localmed.domain.errors import InputError, LimitExceeded


@dataclass(frozen=True, slots=True)
class Header:
    """Facts that a model file states of itself. Text from it is cut short and holds printable characters only.

    ``kv_numbers`` are the numbers that one token adds to the cache of keys and values, over all layers; 0 where the
    file does not say. Of a chat template only length and sha256 are kept: it is code, and is never run.
    """

    format: str  # "gguf" or "safetensors"
    architecture: str = ""
    name: str = ""
    licence: str = ""
    quantisation: str = ""  # the kind that most of the weights' bytes have
    parameters: int = 0
    tensors: int = 0
    context: int = 0  # tokens that it was trained to read
    layers: int = 0
    kv_numbers: int = 0
    vocabulary: int = 0
    template_characters: int = 0
    template_sha256: str = ""


# --- safetensors ------------------------------------------------------------------------------------------------------


HEADER_BYTES = 16 * 2**20  # the longest headers of checkpoints in many layers have about 1 MiB
MOST_DIMENSIONS = 16
SHOWN = 20  # characters kept of a dtype


def read(stream: BinaryIO, size: int) -> Header:
    """The header of the file of ``size`` bytes open as ``stream``; raise ``InputError`` if it cannot be a model."""
    if size < 8:
        raise InputError("model.header_cut" if size else "model.file_empty")
    length = int.from_bytes(stream.read(8), "little")
    if length > HEADER_BYTES:
        raise LimitExceeded("model.header_claims", length=length, most=HEADER_BYTES)
    if length > size - 8:
        raise InputError("model.header_room", length=length)
    try:
        entries = json.loads(stream.read(length), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise InputError("model.header_json") from None
    return _added_up(entries, size - 8 - length)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError
    return entries


def _added_up(entries: Any, data: int) -> Header:
    """The header's sums; raise ``InputError`` if the tensors are not exactly the ``data`` bytes that follow."""
    if not isinstance(entries, dict):
        raise InputError("model.header_table")
    entries.pop("__metadata__", None)
    weights: Counter[str] = Counter()
    places, parameters = [], 0
    for number, entry in enumerate(entries.values(), 1):
        dtype, shape, (start, end) = _tensor(entry, number)
        weights[dtype] += end - start
        parameters += prod(shape)
        places.append((start, end))
    position = 0
    for start, end in sorted(places):
        if start != position or end < start:
            raise InputError("model.tensor_gap")
        position = end
    if not places or position != data:
        if not places:
            raise InputError("model.no_tensors")
        raise InputError("model.tensor_bytes", taken=position, count=data)
    kind = weights.most_common(1)[0][0]
    return Header("safetensors", quantisation=kind, parameters=parameters, tensors=len(places))


def _tensor(entry: Any, number: int) -> tuple[str, list[int], tuple[int, int]]:
    try:
        dtype, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    except (KeyError, TypeError, ValueError):
        raise InputError("model.header_tensor", number=number) from None
    numbers = [*shape, start, end] if isinstance(shape, list) else [None]
    whole = all(type(number_) is int and 0 <= number_ < 2**63 for number_ in numbers)
    if not isinstance(dtype, str) or not dtype.isalnum() or not whole or len(numbers) > MOST_DIMENSIONS + 2:
        raise InputError("model.header_tensor", number=number)
    return dtype[:SHOWN], shape, (start, end)
