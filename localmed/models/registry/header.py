"""Reads the header of a model file in a child process and checks that the file is complete.

GGUF (little-endian; version 2 and 3)::

    "GGUF"  version u32  tensors u64  entries u64
    entries x  (key string, kind u32, value)          a string is a u64 length and its bytes
    tensors x  (name string, dimensions u32, sizes u64 each, type u32, offset u64)
    padding to the alignment, then the tensors' data

safetensors: a u64 length, that many bytes of JSON (tensor name -> dtype, shape, data_offsets), then the data.

At most ``HEADER_BYTES`` are read. The data must fit into the file, so that a truncated copy is reported here and does
not crash the library. A chat template in a GGUF is a program; it is never run. A hostile header can at worst end its
child, which is limited in memory and time. Run as ``... FILE PARENT``, this module prints one line of JSON,
``["header", {...}]`` or ``["error", {...}]``, which the parent validates.

Not covered: big-endian files, version 1, and the quality of the weights.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

from localmed.domain import errors, message
from localmed.domain.codec import Codec
from localmed.domain.errors import InputError, LimitExceeded, reason
from localmed.process import children, confined

SECONDS = 120.0  # wall clock; a large header takes one, more on a slow disk
COMMAND = children.command("localmed.models.registry.header")
MEMORY_BYTES = 512 * 2**20  # address space; a vocabulary of 262,144 takes 60 MiB in all
CPU_SECONDS = 30  # such a header takes about one
HEADER_BYTES = 256 * 2**20  # large vocabularies take 20 MiB
VERSIONS = (2, 3)  # of GGUF
MOST = 2**30  # largest size or number of tokens
MOST_LAYERS = 4_096  # models have up to ~130
MOST_DIMENSIONS = 4
STRING, ARRAY = 8, 9
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}  # by kind
BLOCKS = {  # type of a tensor: (weights in a block, bytes of a block); newer versions of GGUF add types one by one
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
    11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 16: (256, 66), 17: (256, 74), 18: (256, 98),
    19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4),
    27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17),
}  # fmt: skip
UNKNOWN_TYPE = (1, 0)

Value = int | float | bytes | tuple[int, ...] | None
_ANSWER_BYTES = 2**20  # a header sent as JSON has a few hundred


@dataclass(frozen=True, slots=True)
class Header:
    """What a model file states about itself.

    ``kv_numbers`` counts the numbers that one token adds to the key-value cache, over all layers; 0 if unknown.
    """

    format: str  # "gguf" or "safetensors"
    architecture: str = ""
    context: int = 0  # tokens that it was trained to read
    kv_numbers: int = 0


def inspect(path: Path, command: Sequence[str] = COMMAND, seconds: float = SECONDS) -> Header:
    """The header of ``path``; raise ``InputError`` (``LimitExceeded``) if it cannot be a model."""
    try:
        answer = children.answer([*command, str(path.absolute())], b"", seconds, _ANSWER_BYTES)
        kind, *values = json.loads(answer)
        if kind == "header":
            header: Header = Codec(()).decode(values[0], Header)
            return header
        error = errors.from_json(values[0], InputError)
    except TimeoutError:
        error = LimitExceeded("model.header_slow", seconds=seconds)
    except children.Failed as failure:
        error = InputError("model.header_crash", how=failure.how)
    except (ValueError, TypeError, LookupError, RecursionError):
        error = InputError("model.header_crash", how=message("process.nonsense"))
    raise error.within(path.name)


# --- in the child -----------------------------------------------------------------------------------------------------


def main() -> None:
    """Answer for one file."""
    _, replies = confined.take_streams()
    confined.die_with_parent(int(sys.argv[2]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides what ends
    confined.limit(MEMORY_BYTES, CPU_SECONDS)
    replies.write(json.dumps(answer(Path(sys.argv[1]))).encode("ascii") + b"\n")
    replies.flush()
    os._exit(0)


def answer(path: Path) -> list[Any]:
    """The reply for ``path``."""
    try:
        with path.open("rb") as stream:
            header = READERS[path.suffix.lower()](stream, os.fstat(stream.fileno()).st_size)
        return ["header", dataclasses.asdict(header)]
    except InputError as error:
        refused = error
    except MemoryError:
        refused = LimitExceeded("model.header_memory", most=MEMORY_BYTES // 2**20)
    except OSError as error:
        refused = InputError("file.unreadable", file=path.name, reason=reason(error))
    return ["error", errors.as_json(refused)]


class _Source:
    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream, self._left, self._begin = stream, min(size, HEADER_BYTES), min(size, HEADER_BYTES)

    @property
    def position(self) -> int:
        return self._begin - self._left

    def take(self, count: int) -> bytes:
        if count > self._left or len(data := self._stream.read(count)) != count:
            raise InputError("model.header_cut")
        self._left -= count
        return data

    def number(self, layout: str) -> Any:
        return struct.unpack(f"<{layout}", self.take(struct.calcsize(f"<{layout}")))[0]

    def text(self) -> bytes:
        return self.take(self.number("Q"))

    def value(self, kind: int) -> Value:
        """A value of ``kind``; of an array only integers, up to one a layer."""
        if kind == STRING:
            return self.text()
        if kind in NUMBERS:
            number: int | float = self.number(NUMBERS[kind])
            return number
        inner, count = (self.number("I"), self.number("Q")) if kind == ARRAY else (-1, 0)
        if inner == STRING:
            for _ in range(count):
                self.text()
        elif inner in NUMBERS:
            data = self.take(count * struct.calcsize(f"<{NUMBERS[inner]}"))
            if count <= MOST_LAYERS and NUMBERS[inner] not in "fd":
                return struct.unpack(f"<{count}{NUMBERS[inner]}", data)
        else:  # an unknown kind, or an array of arrays
            raise _damaged_error()
        return None


def read_gguf(stream: BinaryIO, size: int) -> Header:
    """The header of a GGUF of ``size`` bytes; raise ``InputError`` if it cannot be a model."""
    source = _Source(stream, size)
    if not size or source.take(min(4, size)) != b"GGUF":
        raise InputError("model.no_gguf" if size else "model.file_empty")
    version = source.number("I")
    if version not in VERSIONS:
        raise InputError("model.gguf_version", version=version, known=VERSIONS)
    tensors, entries = source.number("Q"), source.number("Q")
    values: dict[bytes, Value] = {}
    for _ in range(entries):
        key = source.text()
        if key in values:
            raise _damaged_error()
        values[key] = source.value(source.number("I"))
    alignment = values.get(b"general.alignment", 32)
    if not isinstance(alignment, int) or not 8 <= alignment <= 2**16 or alignment & (alignment - 1):
        raise _damaged_error()
    end = max((_end_of_tensor(source, alignment) for _ in range(tensors)), default=0)
    missing = -(-source.position // alignment) * alignment + end - size
    if not tensors or missing > 0:
        raise InputError("model.ends_early", count=missing) if tensors else InputError("model.no_tensors")
    named = values.get(b"general.architecture")
    architecture = named.decode("utf-8", "replace") if isinstance(named, bytes) else ""
    if not architecture and not values.get(b"split.no"):  # only the first of several files describes the model
        raise InputError("model.gguf_architecture")
    sizes = {name: _sizes(values, f"{architecture}.{name}".encode()) for name in SIZES}
    printable = "".join(filter(str.isprintable, architecture[:100]))
    return Header("gguf", printable, max(sizes["context_length"], default=0), _kv_numbers(sizes))


def _end_of_tensor(source: _Source, alignment: int) -> int:
    """The end of the next tensor, relative to the beginning of the data."""
    source.text()
    if (dimensions := source.number("I")) > MOST_DIMENSIONS:
        raise _damaged_error()
    sizes = [source.number("Q") for _ in range(dimensions)]
    block, block_bytes = BLOCKS.get(source.number("I"), UNKNOWN_TYPE)
    offset = source.number("Q")
    if offset % alignment or not all(sizes) or (sizes and sizes[0] % block):
        raise _damaged_error()
    end: int = offset + prod(sizes) // block * block_bytes
    return end


SIZES = ("block_count", "context_length", "embedding_length", "attention.head_count", "attention.head_count_kv",
         "attention.key_length", "attention.value_length")  # fmt: skip


def _sizes(values: dict[bytes, Value], key: bytes) -> tuple[int, ...]:
    value = values.get(key, ())
    numbers = (value,) if isinstance(value, int) else value if isinstance(value, tuple) else (-1,)
    if not all(0 <= number <= MOST for number in numbers):
        raise _damaged_error()
    return numbers


def _kv_numbers(sizes: dict[str, tuple[int, ...]]) -> int:
    """Key and value numbers of one token over all layers; 0 if a size is missing.

    An upper bound: layers with a sliding window or a compressed state need less.
    """
    layers, _, width, heads, kept, key, value = sizes.values()
    usual = max(width, default=0) // max(heads) if any(heads) else 0
    kept = kept or heads
    total = kept[0] * max(layers, default=0) if len(kept) == 1 else sum(kept)
    return total * sum(max(given, default=0) or usual for given in (key, value))


def read_safetensors(stream: BinaryIO, size: int) -> Header:
    """See ``read_gguf``."""
    if not size:
        raise InputError("model.file_empty")
    source = _Source(stream, size)
    try:
        entries = json.loads(source.text())
        ends = [int(entry["data_offsets"][1]) for name, entry in entries.items() if name != "__metadata__"]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise _damaged_error() from None
    if not ends or max(ends) != size - source.position:
        missing = max(ends, default=0) - size + source.position
        raise InputError("model.ends_early", count=missing) if missing > 0 else _damaged_error()
    return Header("safetensors")


def _damaged_error() -> InputError:
    return InputError("model.header_damaged")


READERS = {".gguf": read_gguf, ".safetensors": read_safetensors}  # by file suffix

if __name__ == "__main__":
    main()
