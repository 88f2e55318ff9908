"""The layers of BERT (Devlin et al. 2019) as an onnxruntime graph, with matrices in their original 4 bits.

The graph is written here as ONNX protocol buffers (https://onnx.ai, opset 17), so that onnxruntime alone runs the
encoder: torch and transformers would add 1.3 GB and seconds of import. Matrices stay packed (onnxruntime's
``MatMulNBits``) and are multiplied in float32: vectors agree with torch's to the sixth digit. With 8-bit activations
(``accuracy_level`` 4) they agree to 0.9997 and are no faster.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from localmed.process import hooks, interrupts

if TYPE_CHECKING:
    from localmed.domain.ports import Vectors

BATCH = 16  # texts; more are no faster
BATCH_TOKENS = 2048  # padding included: attention over sixteen texts of 512 tokens would take 200 MB at once
PADDED = 2  # longest padding, as a multiple of a text's length: sentences batched with 512 tokens cost 2 s
IR_VERSION, OPSET, MICROSOFT = 8, 17, "com.microsoft"
BLOCK = 32  # weights that share a scale
FLOAT32 = 1  # value of ``accuracy_level``
KINDS = {"float32": 1, "uint8": 2, "int32": 6, "int64": 7}  # number types of ONNX


class Weights(Protocol):
    """The tensors of a BERT by the names in ``build_graph`` with ``.w`` or ``.b``."""

    def blocks(self, name: str, rows: int, columns: int) -> Any:
        """A matrix (rows, columns / 32) of llama.cpp's Q4_0: ``scale`` and ``nibbles`` of each block."""
        ...

    def plain(self, name: str, shape: tuple[int, ...]) -> Any:
        """A tensor in float32."""
        ...


class Network:
    """A loaded graph. Not thread-safe: one owner at a time."""

    def __init__(self, graph: bytes) -> None:
        """Raise ``ImportError`` if onnxruntime is not installed."""
        with interrupts.delayed():
            import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # errors
        # Set here: by default onnxruntime binds its threads to cores, whatever else runs there.
        options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # other processes need the cores
        options.enable_cpu_mem_arena = False  # it would keep the memory of the longest batch
        self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def batches(self, lengths: Sequence[int], embedded: Any) -> Iterator[tuple[list[int], Vectors]]:
        """Texts of ``lengths`` tokens in batches: their indexes, and the means of their last hidden states (B, D).

        ``embedded`` returns the padded token vectors of the texts at some indexes: (B, T, D).
        """
        caller, done = hooks.active(), 0
        for places in make_batches(lengths):
            caller.cancel.check()
            tokens = np.array([lengths[place] for place in places], np.int32)
            (hidden,) = self._session.run(None, {"embedded": embedded(places), "lengths": tokens})
            real = (np.arange(hidden.shape[1]) < tokens[:, None]).astype(np.float32)  # (B, T)
            yield places, (real[:, None] @ hidden)[:, 0] / tokens[:, None]
            done += len(places)
            caller.progress(done, len(lengths), "")


def make_batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The indexes of texts of ``lengths`` tokens in batches of similar length, longest first."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        longest = lengths[batch[0]] if batch else 0
        full = len(batch) == BATCH or (len(batch) + 1) * longest > BATCH_TOKENS
        if batch and (full or PADDED * lengths[place] < longest):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


# --- the graph --------------------------------------------------------------------------------------------------------


def build_graph(weights: Weights, layers: int, heads: int, width: int, wide: int, epsilon: float) -> bytes:
    """``embedded`` (B, T, D) and ``lengths`` (B,) -> the last hidden states (B, T, D)."""
    made = _Graph(weights)
    hidden = made.add("LayerNormalization", "embedded", *made.norm("emb.ln", width), axis=-1, epsilon=epsilon)
    for layer in range(layers):
        name = f"l{layer}"
        asked, keys, values = (
            made.add("Add", made.product(hidden, f"{name}.{part}", width, width), made.bias(f"{name}.{part}", width))
            for part in "qkv"
        )
        mixed = made.add("MultiHeadAttention", asked, keys, values, "", "lengths", domain=MICROSOFT, num_heads=heads)
        mixed = made.product(mixed, f"{name}.ao", width, width)
        hidden = made.add_and_normalise(hidden, mixed, f"{name}.ao", f"{name}.aln", width, epsilon)
        spread = made.product(hidden, f"{name}.fi", wide, width)
        spread = made.add("BiasGelu", spread, made.bias(f"{name}.fi", wide), domain=MICROSOFT)
        narrow = made.product(spread, f"{name}.fo", width, wide)
        hidden = made.add_and_normalise(hidden, narrow, f"{name}.fo", f"{name}.oln", width, epsilon)
    inputs = [_value("embedded", "float32", "B", "T", width), _value("lengths", "int32", "B")]
    return made.model(inputs, _value(hidden, "float32", "B", "T", width))


class _Graph:
    """Nodes and tensors in the order in which they were added."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._nodes: list[bytes] = []
        self._tensors: list[bytes] = []

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: int | float) -> str:
        """Add a node; return its output's name. "" is an omitted input."""
        output = f"n{len(self._nodes)}"
        described = [(5, _attribute(name, value)) for name, value in attributes.items()]
        names = [*((1, name) for name in inputs), (2, output)]
        self._nodes.append(_message(*names, (4, operator), *described, (7, domain)))
        return output

    def product(self, values: str, name: str, rows: int, columns: int) -> str:
        """``values`` (..., columns) times the transposed matrix ``name`` (rows, columns)."""
        blocks = self._weights.blocks(f"{name}.w", rows, columns)
        matrix = self._tensor(reorder_nibbles(blocks["nibbles"]))
        scales = self._tensor(blocks["scale"].astype(np.float32).ravel())
        sizes = {"K": columns, "N": rows, "bits": 4, "block_size": BLOCK, "accuracy_level": FLOAT32}
        return self.add("MatMulNBits", values, matrix, scales, domain=MICROSOFT, **sizes)

    def add_and_normalise(self, hidden: str, added: str, bias: str, norm: str, width: int, epsilon: float) -> str:
        """The sum of ``hidden``, ``added`` and ``bias``, normalised by the tensors ``norm``."""
        inputs = (added, hidden, *self.norm(norm, width), self.bias(bias, width))
        return self.add("SkipLayerNormalization", *inputs, domain=MICROSOFT, epsilon=epsilon)

    def norm(self, name: str, width: int) -> tuple[str, str]:
        return self._tensor(self._weights.plain(f"{name}.w", (width,))), self.bias(name, width)

    def bias(self, name: str, width: int) -> str:
        return self._tensor(self._weights.plain(f"{name}.b", (width,)))

    def _tensor(self, values: Any) -> str:
        name = f"t{len(self._tensors)}"
        sizes = [(1, size) for size in values.shape]
        self._tensors.append(_message(*sizes, (2, KINDS[values.dtype.name]), (8, name), (9, values.tobytes())))
        return name

    def model(self, inputs: Sequence[bytes], output: bytes) -> bytes:
        nodes, tensors = [(1, node) for node in self._nodes], [(5, tensor) for tensor in self._tensors]
        whole = _message(*nodes, (2, "bert"), *tensors, *((11, value) for value in inputs), (12, output))
        versions = [_message((1, domain), (2, version)) for domain, version in (("", OPSET), (MICROSOFT, 1))]
        return _message((1, IR_VERSION), (7, whole), *((8, version) for version in versions))


def reorder_nibbles(nibbles: Any) -> Any:
    """Reorder llama.cpp's blocks (weights 0 and 16 in one byte) for onnxruntime (weights 0 and 1 in one byte)."""
    single = np.concatenate((nibbles & 15, nibbles >> 4), axis=-1)
    return single[..., 0::2] | single[..., 1::2] << 4


# --- protocol buffers: numbers of fields by onnx.proto ----------------------------------------------------------------


def _message(*fields: tuple[int, int | float | str | bytes]) -> bytes:
    return b"".join(_field(number, value) for number, value in fields)


def _field(number: int, value: int | float | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    coded = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(coded)) + coded


def _varint(value: int) -> bytes:
    value &= 2**64 - 1  # two's complement
    coded = bytearray()
    while value > 127:
        coded.append(value & 127 | 128)
        value >>= 7
    return bytes((*coded, value))


def _attribute(name: str, value: int | float) -> bytes:
    place, kind = (2, 1) if isinstance(value, float) else (3, 2)
    return _message((1, name), (place, value), (20, kind))


def _value(name: str, kind: str, *sizes: int | str) -> bytes:
    """An input or output; a size is a number or the name of a dynamic one."""
    shape = _message(*((1, _message((1 if isinstance(size, int) else 2, size))) for size in sizes))
    return _message((1, name), (2, _message((1, _message((1, KINDS[kind]), (2, shape))))))
