"""BGE-M3 (Chen et al. 2024), loaded by FlagEmbedding from a registered folder: dense, sparse and multi-vector.

FlagEmbedding loads the network; ``Network`` makes the batches, because FlagEmbedding's ``encode`` runs the first batch
twice and draws progress bars. Tests compare the results with it. An incomplete checkpoint is refused: FlagEmbedding
would make a random head or search a hub. Not thread-safe: one owner at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from localmed.domain.ports import EncoderIdentity, Weights
from localmed.models.checkpoint import WEIGHTS, Checkpoint, find_missing
from localmed.models.network import (
    PASSAGE_TOKENS,
    RESERVED_POSITIONS,
    Batch,
    Network,
    Rows,
    arithmetic,
)

if TYPE_CHECKING:
    from torch import Tensor

    from localmed.domain.ports import Vectors

NEEDED = ("tokenizer.json", "sparse_linear.pt", "colbert_linear.pt")
OLDER_WEIGHTS = "pytorch_model*.bin"  # BGE-M3's original format; torch reads tensors only and runs nothing


def load(checkpoint: Checkpoint, exact: bool) -> Network:
    """Load the network of ``checkpoint``; ``exact`` forces float32. Importing FlagEmbedding takes ten seconds."""
    folder = checkpoint.complete(*NEEDED)
    weights = OLDER_WEIGHTS if any(folder.glob(OLDER_WEIGHTS)) and not any(folder.glob(WEIGHTS)) else WEIGHTS
    checkpoint.complete(weights)
    tokens = min(PASSAGE_TOKENS, checkpoint.number("max_position_embeddings") - RESERVED_POSITIONS)
    with checkpoint.loading("workstation"):
        import FlagEmbedding
        import torch

        # By default it would use all GPUs and start a process for each.
        loaded = FlagEmbedding.BGEM3FlagModel(str(folder), use_fp16=False, devices="cpu")
        body = loaded.model.model
        missing = find_missing(folder, body.state_dict(), weights)
    checkpoint.refuse_missing(missing)
    return Network.place(torch, loaded.tokenizer, loaded.model, body.config, tokens, arithmetic(torch, exact))


class BgeM3:
    """A ``SparseEncoder``: unit vectors and token weights from one pass; token vectors for late interaction."""

    def __init__(self, checkpoint: Checkpoint, exact: bool = False) -> None:
        """``exact`` forces float32. Nothing is loaded before the first text."""
        self._checkpoint, self._exact = checkpoint, exact

    @cached_property
    def identity(self) -> EncoderIdentity:
        """The checkpoint's name and fingerprint, without loading."""
        model = self._checkpoint
        model.complete(*NEEDED)
        return EncoderIdentity(model.name, model.version, model.number("hidden_size"), model.languages, sparse=True)

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Vectors:
        """See ``Embedder.encode``; questions and passages are encoded alike."""
        return self.encode_both(texts, kind)[0]

    def encode_both(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> tuple[Vectors, list[Weights]]:
        """See ``SparseEncoder.encode_both``; a repeated token has its largest weight."""
        del kind
        network, rows = self.network, self._rows(texts)
        vectors = np.empty((len(texts), self.identity.dimensions), np.float32)
        weights: list[Weights] = [{}] * len(texts)
        for chosen, output in self._run(rows, return_dense=True, return_sparse=True):
            dense = network.finite(output["dense_vecs"])  # (B, D)
            vectors[chosen] = network.torch.nn.functional.normalize(dense, dim=-1).numpy()
            impacts = network.finite(output["sparse_vecs"].squeeze(-1)).tolist()  # (B, T)
            for place, values in zip(chosen, impacts, strict=True):
                weights[place] = self._weights(rows["input_ids"][place], values)
        return vectors, weights

    def token_vectors(self, texts: Sequence[str]) -> list[Tensor]:
        """A unit vector for each token of each text except the first special token: tensors (T - 1, D)."""
        by_place: dict[int, Tensor] = {}
        rows = self._rows(texts)
        for chosen, output in self._run(rows, return_dense=False, return_colbert_vecs=True):
            for place, vectors in zip(chosen, output["colbert_vecs"], strict=True):
                by_place[place] = vectors[: len(rows["input_ids"][place]) - 1]
        return [by_place[place] for place in range(len(texts))]

    @cached_property
    def network(self) -> Network:
        """The loaded model."""
        return load(self._checkpoint, self._exact)

    def _rows(self, texts: Sequence[str]) -> Rows:
        """The tokens of ``texts``, cut to the model's input; loads nothing if there are no texts."""
        if not texts:
            return {"input_ids": []}
        network = self.network
        pieces = network.tokenizer(list(texts), truncation=True, max_length=network.tokens)["input_ids"]
        return {"input_ids": pieces}

    def _run(self, rows: Rows, **outputs: bool) -> Iterator[Batch]:
        return self.network.batches(rows, lambda inputs: self.network.model(inputs, **outputs))

    def _weights(self, pieces: Sequence[int], values: Sequence[float]) -> Weights:
        """The positive weights of a text's tokens, without special tokens; ``values`` continue over the padding."""
        weights: dict[int, float] = {}
        for piece, value in zip(pieces, values, strict=False):
            if value > weights.get(piece, 0.0):
                weights[piece] = value
        for mark in self._marks:
            weights.pop(mark, None)
        return weights

    @cached_property
    def _marks(self) -> tuple[int, ...]:
        return tuple(self.network.tokenizer.all_special_ids)


class MultiVector:
    """A ``Reranker`` by BGE-M3's late interaction: each question token with its nearest passage token."""

    def __init__(self, encoder: BgeM3) -> None:
        """Share the weights of ``encoder`` and its owner."""
        self._encoder = encoder

    @cached_property
    def name(self) -> str:
        """The checkpoint's name and fingerprint, without loading."""
        identity = self._encoder.identity
        return f"multi-vectors of {identity.name} {identity.version}"

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> list[float]:
        """See ``Reranker.score``: from -1 to 1, the mean over the question's tokens."""
        del keep
        if not passages:
            return []
        question_vectors, *read = self._encoder.token_vectors([question, *passages])
        return [float((question_vectors @ vectors.T).max(dim=1).values.float().mean()) for vectors in read]
