"""The starter encoder against sentence-transformers in float32, in turn in one process on the same passages."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from tokenizers.processors import TemplateProcessing

from localmed.models import e5
from localmed.models.e5 import E5, Uncentred
from tests.benchmarks.common import Row, met

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

LAYER = {  # the file's names of a layer's tensors and those of transformers, rows and columns
    "q": ("attention.self.query", e5.DIMENSIONS, e5.DIMENSIONS),
    "k": ("attention.self.key", e5.DIMENSIONS, e5.DIMENSIONS),
    "v": ("attention.self.value", e5.DIMENSIONS, e5.DIMENSIONS),
    "ao": ("attention.output.dense", e5.DIMENSIONS, e5.DIMENSIONS),
    "aln": ("attention.output.LayerNorm", e5.DIMENSIONS, 0),
    "fi": ("intermediate.dense", e5.WIDE, e5.DIMENSIONS),
    "fo": ("output.dense", e5.DIMENSIONS, e5.WIDE),
    "oln": ("output.LayerNorm", e5.DIMENSIONS, 0),
}
PASSAGES = 64
RUNS = 5
LEAST = 1.0  # both compute in float32; what is gained are the packages that are not needed


def run(texts: Sequence[str]) -> list[Row]:
    """Passages a second of the built-in encoder against sentence-transformers on the same weights."""
    from sentence_transformers import SentenceTransformer

    with tempfile.TemporaryDirectory() as unpacked:
        export(Path(unpacked))
        return [_speed(E5(), SentenceTransformer(unpacked, device="cpu"), texts[:PASSAGES])]


def export(folder: Path) -> None:
    """Write multilingual-e5-small, unpacked to float32, as sentence-transformers reads it; its prefix is in no file."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    packed = e5.packed()
    config = BertConfig(
        vocab_size=e5.VOCABULARY, hidden_size=e5.DIMENSIONS, num_hidden_layers=e5.LAYERS, num_attention_heads=e5.HEADS,
        intermediate_size=e5.WIDE, max_position_embeddings=e5.MAX_TOKENS, layer_norm_eps=e5.EPSILON,
    )  # fmt: skip
    model = BertModel(config, add_pooling_layer=False)
    weights = {name: torch.from_numpy(values.copy()) for name, values in named(packed)}
    words = packed.blocks("emb.word", e5.VOCABULARY, e5.DIMENSIONS)
    model.load_state_dict(weights | {"embeddings.word_embeddings.weight": torch.from_numpy(e5.unpacked(words))})
    tokenizer = packed.tokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", packed.first), ("</s>", packed.last)]
    )
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="\0<pad>", model_max_length=e5.MAX_TOKENS)
    model.save_pretrained(folder)
    wrapped.save_pretrained(folder)
    transformer = Transformer(str(folder))
    SentenceTransformer(modules=[transformer, Pooling(e5.DIMENSIONS), Normalize()]).save(str(folder))


def named(packed: e5.Packed) -> Iterator[tuple[str, Any]]:
    """Every tensor but the words' table, by the names of transformers."""
    yield "embeddings.position_embeddings.weight", packed.plain("emb.pos", (e5.MAX_TOKENS, e5.DIMENSIONS))
    yield "embeddings.token_type_embeddings.weight", packed.plain("emb.type", (-1, e5.DIMENSIONS))
    for end, part in (("w", "weight"), ("b", "bias")):
        yield f"embeddings.LayerNorm.{part}", packed.plain(f"emb.ln.{end}", (e5.DIMENSIONS,))
    for layer, (short, (name, rows, columns)) in product(range(e5.LAYERS), LAYER.items()):
        source, target = f"l{layer}.{short}", f"encoder.layer.{layer}.{name}"
        if columns:
            yield f"{target}.weight", e5.unpacked(packed.blocks(f"{source}.w", rows, columns))
        else:
            yield f"{target}.weight", packed.plain(f"{source}.w", (rows,))
        yield f"{target}.bias", packed.plain(f"{source}.b", (rows,))


def _speed(ours: E5, peer: SentenceTransformer, texts: Sequence[str]) -> Row:
    packed = e5.packed()
    normalised = [packed.normalised(e5.PREFIXES["passage"] + text) for text in texts]  # its tokenizer does not
    calls: dict[str, Callable[[], np.ndarray]] = {  # type: ignore[type-arg]
        "ours": lambda: Uncentred(ours).encode(texts, "passage"),
        "peer": lambda: np.asarray(peer.encode(normalised, normalize_embeddings=True, batch_size=32)),
    }
    speeds: dict[str, list[float]] = {"ours": [], "peer": []}
    vectors = {side: call() for side, call in calls.items()}  # also warms up
    for _ in range(RUNS):
        for side, call in calls.items():
            began = time.perf_counter()
            call()
            speeds[side].append(len(texts) / (time.perf_counter() - began))
    fast, slow = statistics.median(speeds["ours"]), statistics.median(speeds["peer"])
    similarity = float(np.min(np.sum(vectors["ours"] * vectors["peer"], axis=1)))
    how = f"{len(texts)} MedQuAD passages, median of {RUNS} alternating runs; smallest cosine between {similarity:.4f}"
    measured = f"{fast / slow:.2f}x ({fast:.0f} against {slow:.0f} passages/s)"
    what = "e5 against sentence-transformers float32"
    return Row(what, f">= {LEAST}x", measured, met(fast / slow >= LEAST), how)
