"""BGE-M3 (Chen et al. 2024) and cross-encoders such as bge-reranker-v2-m3, loaded by FlagEmbedding from local folders.

FlagEmbedding loads the checkpoints and owns their networks; the batches are made here, because its own ``encode`` and
``compute_score`` run the first batch twice and draw progress bars. Tests hold the results against those two.

On a GPU the arithmetic is half precision; on a CPU bfloat16 where the processor has it, else float32. A checkpoint that
is not complete is refused: FlagEmbedding would fill a missing head with random numbers, or look for a hub. Not
thread-safe by contract: one owner at a time.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from localmed.config import OFFLINE
from localmed.errors import ModelError
from localmed.models.minilm import fast_bfloat16
from localmed.ports import EncoderIdentity, Weights

if TYPE_CHECKING:
    from torch import Tensor

    from localmed.ports import Vectors

LANGUAGES = ("en", "zh")  # those that ``language.detect`` tells apart; the model knows about a hundred
PASSAGE_TOKENS = 1024  # 1,000 Chinese characters with title and headings are about 700 pieces; the rest is cut
QUESTION_TOKENS = 256  # that a cross-encoder reads, so that a long question leaves room for the passage
BATCH = 32  # texts of at most 1,024 pieces: 3 GiB of activations in half precision, at the most
RESERVED_POSITIONS = 2  # XLM-RoBERTa counts positions from the padding's number + 1

WHOLE_BYTES = 8 * 2**20  # files up to this size are fingerprinted whole (BGE-M3's two heads take 4 MiB)
SAMPLES = 1024  # blocks read of a larger one: every 2 MiB of BGE-M3, so that no layer is passed over
SAMPLE_BYTES = 4096

Batch = tuple[list[int], list[list[int]], Any]  # the texts' places, their pieces, what the network returned


@dataclass(frozen=True, slots=True)
class Network:
    """A loaded checkpoint: its tokenizer and its network, on the device that it runs on."""

    torch: Any
    tokenizer: Any
    model: Any
    device: str
    tokens: int  # the longest text

    def batches(self, pieces: Sequence[list[int]], forward: Callable[[dict[str, Tensor]], Any]) -> Iterator[Batch]:
        """Run ``forward`` over ``pieces``, texts of like length together; raise ``ModelError`` if it fails."""
        order = sorted(range(len(pieces)), key=lambda index: -len(pieces[index]))
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            batch = [pieces[index] for index in chosen]
            try:
                with self.torch.inference_mode():
                    output = forward(self._padded(batch))
            except RuntimeError as error:  # out of memory, mostly
                raise ModelError(
                    f"a model failed on {len(batch)} texts ({type(error).__name__})",
                    "End other programs that use the GPU, or set other [models] in the settings",
                ) from error
            yield chosen, batch, output

    def _padded(self, batch: Sequence[list[int]]) -> dict[str, Tensor]:
        """Input ids and attention mask, (B, T) both."""
        length = max(map(len, batch))
        padding = self.tokenizer.pad_token_id
        ids = [row + [padding] * (length - len(row)) for row in batch]
        mask = [[1] * len(row) + [0] * (length - len(row)) for row in batch]
        return {
            "input_ids": self.torch.tensor(ids, device=self.device),
            "attention_mask": self.torch.tensor(mask, device=self.device),
        }


class Checkpoint:
    """A folder with a model. Nothing is loaded before ``network``."""

    def __init__(self, folder: Path, kind: Literal["BGEM3FlagModel", "FlagReranker"], exact: bool) -> None:
        """``kind`` is FlagEmbedding's class for it; ``exact`` forces float32."""
        self._folder, self._kind, self._exact = folder.absolute(), kind, exact

    @property
    def name(self) -> str:
        """The folder's name."""
        return self._folder.name

    @property
    def width(self) -> int:
        """The vectors' dimensions."""
        return self._size("hidden_size")

    def _size(self, name: str) -> int:
        """A number of ``config.json``."""
        try:
            return int(json.loads(self._files()[0].read_text("utf-8"))[name])
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise self._unusable(error) from error

    @cached_property
    def version(self) -> str:
        """12 hex characters that tell checkpoints apart: a sha256 over samples of their files.

        Enough to keep two trainings of one model from mixing; that no byte has changed is for their manifest's hashes.
        """
        sha256 = hashlib.sha256()
        for path in self._files():
            sha256.update(f"{path.name} {path.stat().st_size}\n".encode())
            for block in _samples(path):
                sha256.update(block)
        return sha256.hexdigest()[:12]

    @cached_property
    def network(self) -> Network:
        """The model, loaded (FlagEmbedding takes ten seconds to import)."""
        self._files()
        os.environ.update(OFFLINE)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # theirs
                loaded, torch = self._load()
        except Exception as error:  # whatever a damaged checkpoint raises in four libraries
            raise self._unusable(error) from error
        device = "cuda" if torch.cuda.is_available() else "cpu"
        half = torch.float16 if device == "cuda" else torch.bfloat16 if fast_bfloat16(torch) else torch.float32
        model = loaded.model.to(device=device, dtype=torch.float32 if self._exact else half).eval()
        tokens = min(PASSAGE_TOKENS, self._size("max_position_embeddings") - RESERVED_POSITIONS)
        return Network(torch, loaded.tokenizer, model, device, tokens)

    def _load(self) -> tuple[Any, Any]:
        import FlagEmbedding
        import torch
        from transformers.utils import logging

        logging.disable_progress_bar()
        logging.set_verbosity_error()
        # One device: given none, it takes all GPUs and starts a process for each.
        return getattr(FlagEmbedding, self._kind)(str(self._folder), use_fp16=False, devices="cpu"), torch

    def _files(self) -> list[Path]:
        """The files that make the model, ``config.json`` first; raise ``ModelError`` if one is missing."""
        heads = ("sparse_linear.pt", "colbert_linear.pt") if self._kind == "BGEM3FlagModel" else ()
        named = [self._folder / name for name in ("config.json", "tokenizer.json", *heads)]
        weights = sorted(self._folder.glob("*.safetensors")) or sorted(self._folder.glob("pytorch_model*.bin"))
        missing = [path.name for path in named if not path.is_file()] + ([] if weights else ["model.safetensors"])
        if missing:
            raise ModelError(
                f"the model {self.name} is not complete: {self._folder} has no {missing[0]}",
                f"Copy the whole checkpoint {self.name} there, or set other [models] or another profile",
            )
        return named + weights

    def _unusable(self, error: Exception) -> ModelError:
        if isinstance(error, ImportError):
            what = f"the model {self.name} needs FlagEmbedding, which cannot be imported ({type(error).__name__})"
            return ModelError(what, 'Install localmed with its extra: pip install "localmed[workstation]"')
        what = f"the model {self.name} in {self._folder} cannot be loaded ({type(error).__name__})"
        return ModelError(what, "Copy the checkpoint there again: a file of it is damaged or of another model")


class BgeM3:
    """``SparseEncoder``: unit vectors and token weights from one pass; token vectors for late interaction."""

    def __init__(self, folder: Path, exact: bool = False) -> None:
        """Nothing is loaded before the first text. ``exact`` forces float32."""
        self._checkpoint = Checkpoint(folder, "BGEM3FlagModel", exact)

    @cached_property
    def identity(self) -> EncoderIdentity:
        """The checkpoint's name and fingerprint; loads nothing."""
        return EncoderIdentity(
            self._checkpoint.name, self._checkpoint.version, self._checkpoint.width, LANGUAGES, sparse=True
        )

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Vectors:
        """See ``Embedder.encode``; questions and passages are encoded alike."""
        return self.encode_both(texts, kind)[0]

    def encode_both(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> tuple[Vectors, list[Weights]]:
        """See ``SparseEncoder.encode_both``; a piece that occurs several times counts with its largest weight."""
        del kind
        network = self._checkpoint.network
        vectors = np.empty((len(texts), self.identity.dimensions), np.float32)
        weights: list[Weights] = [{}] * len(texts)
        for chosen, batch, output in self._run(texts, return_dense=True, return_sparse=True):
            unit = network.torch.nn.functional.normalize(output["dense_vecs"].float(), dim=-1)
            vectors[chosen] = unit.cpu().numpy()
            impacts = output["sparse_vecs"].squeeze(-1).float().cpu().tolist()  # (B, T)
            for place, row, values in zip(chosen, batch, impacts, strict=True):
                weights[place] = self._weights(row, values)
        return vectors, weights

    def token_vectors(self, texts: Sequence[str]) -> list[Tensor]:
        """A unit vector for each piece of each text but its first mark: tensors (T - 1, D), in their order."""
        found: dict[int, Tensor] = {}
        for chosen, batch, output in self._run(texts, return_dense=False, return_colbert_vecs=True):
            for place, row, vectors in zip(chosen, batch, output["colbert_vecs"], strict=True):
                found[place] = vectors[: len(row) - 1]
        return [found[place] for place in range(len(texts))]

    def _run(self, texts: Sequence[str], **wanted: bool) -> Iterator[Batch]:
        if not texts:
            return iter(())
        network = self._checkpoint.network
        pieces = network.tokenizer(list(texts), truncation=True, max_length=network.tokens)["input_ids"]
        return network.batches(pieces, lambda inputs: network.model(inputs, **wanted))

    def _weights(self, pieces: Sequence[int], values: Sequence[float]) -> Weights:
        """The weights above 0 of a text's own pieces; ``values`` go on over the padding."""
        weights: dict[int, float] = {}
        for piece, value in zip(pieces, values, strict=False):
            if value > weights.get(piece, 0.0):
                weights[piece] = value
        for mark in self._marks:
            weights.pop(mark, None)
        return weights

    @cached_property
    def _marks(self) -> tuple[int, ...]:
        return tuple(self._checkpoint.network.tokenizer.all_special_ids)


class MultiVector:
    """``Reranker``: BGE-M3's late interaction, each token of the question with the nearest one of the passage."""

    def __init__(self, encoder: BgeM3) -> None:
        """Share ``encoder``'s weights, whose owner is this one's owner."""
        self._encoder = encoder

    @cached_property
    def name(self) -> str:
        """The checkpoint's name and fingerprint; loads nothing."""
        identity = self._encoder.identity
        return f"multi-vectors of {identity.name} {identity.version}"

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """See ``Reranker.score``: from -1 to 1, the mean over the tokens of the question."""
        if not passages:
            return []
        asked, *read = self._encoder.token_vectors([question, *passages])
        return [float((asked @ each.T).max(dim=1).values.float().mean()) for each in read]


class CrossEncoder:
    """``Reranker``: a question and a passage read as one text (Nogueira & Cho 2019); a sigmoid of its one label."""

    def __init__(self, folder: Path, exact: bool = False) -> None:
        """Nothing is loaded before the first question. ``exact`` forces float32."""
        self._checkpoint = Checkpoint(folder, "FlagReranker", exact)

    @cached_property
    def name(self) -> str:
        """The checkpoint's name and fingerprint; loads nothing."""
        return f"{self._checkpoint.name} {self._checkpoint.version}"

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """See ``Reranker.score``: from 0 to 1."""
        if not passages:
            return []
        network = self._checkpoint.network
        asked = [self._cut(network, question)] * len(passages)
        pieces = network.tokenizer(asked, list(passages), truncation="only_second", max_length=network.tokens)
        scores = [0.0] * len(passages)
        for chosen, _, output in network.batches(pieces["input_ids"], lambda inputs: network.model(**inputs)):
            judged = output.logits.view(-1).float().sigmoid().tolist()
            for place, score in zip(chosen, judged, strict=True):
                scores[place] = score
        return scores

    def _cut(self, network: Network, question: str) -> str:
        """``question``, or its beginning if it is longer than ``QUESTION_TOKENS`` or half of what the model reads."""
        most = min(QUESTION_TOKENS, network.tokens // 2)
        encoded = network.tokenizer(question, add_special_tokens=False, truncation=True, max_length=most + 1)
        pieces = encoded["input_ids"]
        return question if len(pieces) <= most else str(network.tokenizer.decode(pieces[:most]))


def _samples(path: Path) -> Iterator[bytes]:
    """The whole of a small file, evenly spaced blocks of a large one."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        if size <= WHOLE_BYTES:
            yield stream.read()
            return
        for number in range(SAMPLES):
            stream.seek(number * (size - SAMPLE_BYTES) // (SAMPLES - 1))
            yield stream.read(SAMPLE_BYTES)
