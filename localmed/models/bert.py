"""The layers of BERT (Devlin et al. 2019), for the encoders that come as packages; and reranking by their tokens.

Loading them through transformers costs four seconds of a cold question; and in bfloat16, with passages of like length
together, they run about three times as fast as sentence-transformers in float32 (tests/benchmarks/RESULTS.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal

from localmed import hooks, interrupts
from localmed.environment import before_models
from localmed.errors import ModelError
from localmed.ports import EncoderIdentity

if TYPE_CHECKING:
    from torch import Tensor

    from localmed.ports import Vectors

PASSAGE_PIECES = 160  # read of a passage: half the time of all 256, and no worse (tuning questions of MedQuAD)
KEPT = 500  # passages of which the token vectors stay in memory, 120 KB each at most
BATCH = 16  # measured on 2 cores: 8 to 32 are within 2 % of each other
ALONE = 96  # tokens that one core reads as fast as two, or faster: they wait for each other at every layer
PADDED = 2  # a text is padded to at most so many times its length: sentences beside a question of 512 tokens cost 2 s


def alike(lengths: Sequence[int], most: int = BATCH) -> Iterator[list[int]]:
    """The places of texts of ``lengths`` tokens in batches of like length, ``most`` in each, longest first."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if batch and (len(batch) == most or PADDED * lengths[place] < lengths[batch[0]]):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def padded_rows(rows: int) -> int:
    """``rows`` rounded up to one of few numbers: less than an eighth more, or than 16.

    torch (oneDNN) prepares itself for every number of rows that it meets in bfloat16, and gives little of that back: in
    160 calls with questions and sentences a process grew from 476 to 773 MiB, with this to 562 by the fiftieth and no
    further.
    """
    step = 1 << max(4, rows.bit_length() - 4)
    return -(-rows // step) * step


@dataclass(frozen=True, slots=True)
class Bert:
    """The network. ``weights`` are named as transformers names them; ``words`` gives token ids (B, T) as (B, T, D)."""

    torch: Any
    weights: Mapping[str, Tensor]
    words: Callable[[Tensor], Tensor]
    layers: int
    heads: int
    epsilon: float

    def batches(self, pieces: Sequence[list[int]], most: int = BATCH) -> Iterator[tuple[list[int], Tensor, Tensor]]:
        """The texts in batches of like length: their places, last hidden states (B, T, D) and mask (B, T)."""
        caller, done = hooks.active(), 0
        with self.torch.inference_mode():
            for places in alike([len(ids) for ids in pieces], most):
                caller.cancel.check()
                yield places, *self._forward([pieces[place] for place in places])
                done += len(places)
                caller.progress(done, len(pieces), "")

    def _forward(self, batch: list[list[int]]) -> tuple[Tensor, Tensor]:
        """Token ids -> last hidden states (B, T, D) and mask (B, T); a question and its like on one core.

        The number of threads is the process's: its models work one at a time (``one_owner``).
        """
        cores = self.torch.get_num_threads()
        if cores == 1 or len(batch) * max(map(len, batch)) > ALONE:
            return self._read(batch)
        self.torch.set_num_threads(1)
        try:
            return self._read(batch)
        finally:
            self.torch.set_num_threads(cores)

    def _read(self, batch: list[list[int]]) -> tuple[Tensor, Tensor]:
        """Embeddings and all layers."""
        length = max(map(len, batch))
        ids = self.torch.tensor([row + [0] * (length - len(row)) for row in batch])  # (B, T)
        mask = self.torch.tensor([[True] * len(row) + [False] * (length - len(row)) for row in batch])
        hidden = self.words(ids)  # (B, T, D)
        hidden = hidden + self.weights["embeddings.position_embeddings.weight"][:length]
        hidden = hidden + self.weights["embeddings.token_type_embeddings.weight"][0]
        hidden = self._norm(hidden, "embeddings.LayerNorm")
        for layer in range(self.layers):
            hidden = self._layer(hidden, mask[:, None, None, :], f"encoder.layer.{layer}.")
        return hidden, mask

    def _layer(self, hidden: Tensor, mask: Tensor, name: str) -> Tensor:
        functional = self.torch.nn.functional
        batch, length, width = hidden.shape

        def heads(part: str) -> Tensor:  # (B, T, D) -> (B, H, T, D/H)
            projected = self._linear(hidden, f"{name}attention.self.{part}")
            return projected.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

        mixed = functional.scaled_dot_product_attention(heads("query"), heads("key"), heads("value"), attn_mask=mask)
        mixed = mixed.transpose(1, 2).reshape(batch, length, width)
        hidden = self._norm(
            hidden + self._linear(mixed, f"{name}attention.output.dense"), f"{name}attention.output.LayerNorm"
        )
        wide = functional.gelu(self._linear(hidden, f"{name}intermediate.dense"))
        return self._norm(hidden + self._linear(wide, f"{name}output.dense"), f"{name}output.LayerNorm")

    def _linear(self, values: Tensor, name: str) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        functional, rows = self.torch.nn.functional, values.flatten(0, -2)  # (R, D)
        padded = functional.pad(rows, (0, 0, 0, padded_rows(len(rows)) - len(rows)))
        projected: Tensor = functional.linear(padded, weight, bias)[: len(rows)]
        return projected.view(*values.shape[:-1], -1)

    def _norm(self, values: Tensor, name: str) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        normed: Tensor = self.torch.nn.functional.layer_norm(values, weight.shape, weight, bias, self.epsilon)
        return normed


@dataclass(frozen=True, slots=True)
class Loaded:
    """An encoder's tokenizer and network. ``ids``: token ids of texts, with the model's marks, cut to its length."""

    ids: Callable[[Sequence[str]], list[list[int]]]
    word: Callable[[int], bool]  # whether a token is (part of) a word, no punctuation and no mark of the model's
    network: Bert


class BertEncoder:
    """An ``Embedder`` by the mean of BERT's last hidden states. Not thread-safe by contract: one owner at a time."""

    def __init__(self, exact: bool = False) -> None:
        """Nothing is loaded before the first ``encode``. ``exact`` forces float32, as does a CPU without bfloat16."""
        self._exact = exact

    @cached_property
    def _loaded(self) -> Loaded:
        try:
            load_torch()
            return self._load()
        except (ImportError, OSError, metadata.PackageNotFoundError) as error:
            raise ModelError("model.starter_encoder", kind=type(error).__name__) from error

    def _load(self) -> Loaded:
        raise NotImplementedError

    @property
    def identity(self) -> EncoderIdentity:
        """Name and version; the arithmetic (bfloat16 or float32) is not part of it: vectors agree to 0.999."""
        raise NotImplementedError

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Vectors:
        """See ``Embedder.encode``; questions and passages are encoded alike."""
        del kind
        return self._means(texts)

    def _means(self, texts: Sequence[str]) -> Vectors:
        """A unit vector for each text, the mean of its tokens': (N, D) in float32."""
        pieces, network = self.pieces(texts), self._loaded.network
        means = network.torch.empty(len(pieces), self.identity.dimensions)
        for places, hidden, mask in network.batches(pieces):
            real = mask[..., None].float()
            means[places] = (hidden.float() * real).sum(1) / real.sum(1)
        vectors: Vectors = network.torch.nn.functional.normalize(means, dim=1).numpy()
        return vectors

    def pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of ``texts`` as the model reads them, its marks included."""
        return self._loaded.ids(texts)

    def words(self, pieces: Sequence[int]) -> list[bool]:
        """Which tokens are (parts of) words, not punctuation or the model's own marks."""
        return [self._loaded.word(piece) for piece in pieces]

    def token_vectors(self, pieces: Sequence[list[int]]) -> list[Tensor]:
        """A unit vector for each token of each text: tensors (T, D), in their order.

        Each text is read alone: beside others its vectors would have other last bits.
        """
        network = self._loaded.network
        vectors: dict[int, Tensor] = {}
        for places, hidden, mask in network.batches(pieces, 1):
            unit = network.torch.nn.functional.normalize(hidden, dim=2)
            vectors.update({index: unit[row][mask[row]] for row, index in enumerate(places)})
        return [vectors[index] for index in range(len(pieces))]


class MaxSim:
    """``Reranker`` by late interaction: MaxSim of ColBERT (Khattab & Zaharia 2020; Dual-RAG's second stage).

    Each word piece of the question (punctuation and the model's marks left out) looks for the piece of the passage
    nearest to it; the passage scores the mean of those similarities. The encoder was not trained for it, yet its
    pieces tell symptoms from causes of the same disease where one vector a passage does not
    (tests/benchmarks/RESULTS.md). Passages are encoded when asked, not stored: their token vectors would take a
    hundred times the room of their own vectors. Those of the last ``KEPT`` stay in memory: a ward asks of the same
    passages again, within one conversation most of all, and reading them is most of an answer's time. What a question
    finds does not depend on what was asked before: a passage has the same vectors each time it is read.
    """

    def __init__(self, encoder: BertEncoder) -> None:
        """Share ``encoder``'s weights."""
        self._encoder = encoder
        self._kept: dict[str, Tensor] = {}  # in the order of their last use

    @property
    def name(self) -> str:
        """The encoder's name and version, and how much of a passage is read."""
        identity = self._encoder.identity
        return f"MaxSim over {identity.name} {identity.version}, {PASSAGE_PIECES} pieces"

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> list[float]:
        """See ``Reranker.score``: from -1 to 1."""
        if not passages:
            return []
        kept = {passage: self._kept[passage] for passage in passages if passage in self._kept}
        fresh = [passage for passage in dict.fromkeys(passages) if passage not in kept]
        first, *others = self._encoder.pieces([question, *fresh])
        question_vectors, *read = self._encoder.token_vectors([first, *(other[:PASSAGE_PIECES] for other in others)])
        kept |= zip(fresh, read, strict=True)
        if keep:
            self._keep(kept)
        words = self._encoder.words(first)
        chosen = question_vectors[words] if any(words) else question_vectors
        return [float((chosen @ kept[passage].T).max(dim=1).values.float().mean()) for passage in passages]

    def _keep(self, read: Mapping[str, Tensor]) -> None:
        for passage, vectors in read.items():
            self._kept.pop(passage, None)
            self._kept[passage] = vectors
        for passage in list(self._kept)[:-KEPT]:
            del self._kept[passage]


def load_torch() -> None:
    """Load torch whole, in a process that is prepared for it; raise ``ImportError`` where there is none."""
    before_models()
    with interrupts.held():
        import torch  # noqa: F401


def arithmetic(torch: Any, exact: bool) -> Any:
    """The number type to compute in: float32 where ``exact`` is asked for or this CPU has no bfloat16 hardware."""
    return torch.float32 if exact or not fast_bfloat16(torch) else torch.bfloat16


def fast_bfloat16(torch: Any) -> bool:
    """Whether this CPU multiplies bfloat16 in hardware; without it bfloat16 is slower than float32."""
    return any(getattr(torch.cpu, name, bool)() for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
