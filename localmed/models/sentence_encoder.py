"""Dense encoders in the format of sentence-transformers (Reimers & Gurevych 2019), such as EmbeddingGemma.

``modules.json``, without which the library would guess, must list a transformer, one pooling, optionally dense layers
and optionally a normalisation. Prefixes come from the manifest, never from the checkpoint. Weights are read from
safetensors only, and code in a checkpoint is never run. Not thread-safe: one owner at a time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from localmed.domain import message
from localmed.domain.ports import EncoderIdentity
from localmed.models.checkpoint import WEIGHTS, Checkpoint, find_missing
from localmed.models.network import PASSAGE_TOKENS, RESERVED_POSITIONS, Network, arithmetic, cpu_arithmetic

if TYPE_CHECKING:
    from torch import Tensor

    from localmed.domain.ports import Vectors

MODULES, DENSE_WEIGHTS = "modules.json", "model.safetensors"
FAMILY = "sentence_transformers."
KINDS, OPTIONAL = ("Transformer", "Pooling"), ("Dense", "Normalize")  # any number of dense layers
NO_FLOAT16 = "gemma"  # Gemma's activations overflow in float16


class SentenceEncoder:
    """An ``Embedder`` on a registered checkpoint."""

    def __init__(self, checkpoint: Checkpoint, exact: bool = False) -> None:
        """``exact`` forces float32. Nothing is loaded before the first text."""
        self._checkpoint, self._exact = checkpoint, exact

    @cached_property
    def identity(self) -> EncoderIdentity:
        """Name and fingerprint, without loading; raise ``ModelError`` if it is no such encoder."""
        model = self._checkpoint
        model.complete(WEIGHTS)
        self._refuse_other_modules(model.read(MODULES))
        return EncoderIdentity(model.name, model.version, model.number("hidden_size"), model.languages)

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Vectors:
        """See ``Embedder.encode``; each text gets the manifest's prefix of its kind."""
        vectors = np.empty((len(texts), self.identity.dimensions), np.float32)
        if not texts:
            return vectors
        network = self.network
        prefix = self._checkpoint.query_prefix if kind == "query" else self._checkpoint.passage_prefix
        whole = [prefix + text for text in texts]
        rows = network.tokenizer(whole, truncation=True, max_length=network.tokens)["input_ids"]
        for places, output in network.in_batches([len(row) for row in rows], lambda chosen: self._run(whole, chosen)):
            unit = network.torch.nn.functional.normalize(network.finite(output), dim=-1)
            vectors[places] = unit.numpy()
        return vectors

    def _run(self, texts: Sequence[str], places: Sequence[int]) -> Tensor:
        chosen = [texts[place] for place in places]
        # prompt="": the checkpoint's prompt would be added to the manifest's prefix.
        vectors: Tensor = self.network.model.encode(
            chosen, prompt="", batch_size=len(chosen), convert_to_tensor=True, show_progress_bar=False
        )
        return vectors

    @cached_property
    def network(self) -> Network:
        """The loaded model; importing the library takes seconds."""
        width, folder = self.identity.dimensions, self._checkpoint.complete(MODULES, WEIGHTS)
        with self._checkpoint.loading("workstation"):
            import torch
            from sentence_transformers import SentenceTransformer

            model = SentenceTransformer(
                str(folder),
                device="cpu",
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True, "dtype": torch.float32},
            )
            missing = find_missing(folder, model.transformers_model.state_dict(), WEIGHTS)
        self._checkpoint.refuse_missing(missing)
        if model.get_embedding_dimension() != width:
            problem = message("model.vector_width", found=model.get_embedding_dimension() or 0, width=width)
            raise self._checkpoint.load_error(ValueError(), problem)
        config = model.transformers_model.config
        positions = getattr(config, "max_position_embeddings", PASSAGE_TOKENS) - RESERVED_POSITIONS
        model.max_seq_length = min(PASSAGE_TOKENS, positions, model.max_seq_length or PASSAGE_TOKENS)
        numbers = cpu_arithmetic if config.model_type.startswith(NO_FLOAT16) else arithmetic
        dtype = numbers(torch, self._exact)
        return Network.place(torch, model.tokenizer, model, config, model.max_seq_length, dtype)

    def _refuse_other_modules(self, modules: Any) -> None:
        """Raise ``ModelError`` unless ``modules`` are ``KINDS``, any dense layers, at most one normalisation."""
        listed = modules if isinstance(modules, list) else []
        types = [str(module.get("type", "")) if isinstance(module, dict) else "" for module in listed]
        kinds = [type_.rpartition(".")[2] for type_ in types if type_.startswith(FAMILY)]
        dense, last = OPTIONAL
        layers = kinds[:-1] if kinds[-1:] == [last] else kinds
        paths = [str(module.get("path", "")) for module in listed[len(KINDS) : len(layers)] if isinstance(module, dict)]
        known = len(kinds) == len(types) and layers == [*KINDS, *[dense] * (len(layers) - len(KINDS))]
        if not known or not all(re.fullmatch(r"\w+", path) for path in paths):
            problem = message("model.other_modules", file=MODULES, needed=KINDS, optional=OPTIONAL)
            raise self._checkpoint.load_error(ValueError(), problem)
        for path in paths:  # without this file the library would look for a pickle
            self._checkpoint.complete(f"{path}/{DENSE_WEIGHTS}")
