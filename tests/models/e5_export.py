"""The built-in encoder's weights as sentence-transformers reads them: torch computes the same vectors of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import torch
from tokenizers.processors import TemplateProcessing

from localmed.models import e5

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


def export(folder: Path) -> None:
    """Write multilingual-e5-small, unpacked to float32, as sentence-transformers reads it; its prefix is in no file."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    packed = e5.open_weights()
    config = BertConfig(
        vocab_size=e5.VOCABULARY, hidden_size=e5.DIMENSIONS, num_hidden_layers=e5.LAYERS, num_attention_heads=e5.HEADS,
        intermediate_size=e5.WIDE, max_position_embeddings=e5.MAX_TOKENS, layer_norm_eps=e5.EPSILON,
    )  # fmt: skip
    model = BertModel(config, add_pooling_layer=False)
    weights = {name: torch.from_numpy(values.copy()) for name, values in named(packed)}
    words = packed.blocks("emb.word", e5.VOCABULARY, e5.DIMENSIONS)
    model.load_state_dict(weights | {"embeddings.word_embeddings.weight": torch.from_numpy(e5.unpack(words))})
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
            yield f"{target}.weight", e5.unpack(packed.blocks(f"{source}.w", rows, columns))
        else:
            yield f"{target}.weight", packed.plain(f"{source}.w", (rows,))
        yield f"{target}.bias", packed.plain(f"{source}.b", (rows,))
