"""Tiny checkpoints with random weights in BGE-M3's and bge-reranker-v2-m3's formats, made where a test needs them.

XLM-RoBERTa (Conneau et al. 2020) of two layers, 32 wide, over a vocabulary of single characters and a few words. They
understand nothing; what they compute is what the real ones would compute with these weights.
"""

from __future__ import annotations

import json
import os
import string
from pathlib import Path
from typing import Any

from localmed.config import OFFLINE

WIDTH = 32
POSITIONS = 130  # two of them are never used, as in XLM-RoBERTa: texts of 128 pieces
WORDS = ("▁dose", "▁of", "▁the", "▁sepsis", "▁visiting", "▁hours", "▁paracetamol", "▁maximum")
HAN = "普通病房的探视时间为每天至儿童发热可以用对乙酰氨基酚最大剂量是多少脓毒症什么时候"
MARKS = ("<s>", "<pad>", "</s>", "<unk>")


def make_bge_m3(folder: Path, seed: int = 0) -> Path:
    """Write an encoder with its two further heads; return ``folder``."""
    torch = _torch(seed)
    from transformers import XLMRobertaModel

    _write_tokenizer(folder)
    XLMRobertaModel(_config(), add_pooling_layer=False).save_pretrained(folder)
    torch.save(torch.nn.Linear(WIDTH, WIDTH).state_dict(), folder / "colbert_linear.pt")
    torch.save(torch.nn.Linear(WIDTH, 1).state_dict(), folder / "sparse_linear.pt")
    return folder


def make_cross_encoder(folder: Path, seed: int = 0) -> Path:
    """Write a cross-encoder with one label; return ``folder``."""
    _torch(seed)
    from transformers import XLMRobertaForSequenceClassification

    _write_tokenizer(folder)
    XLMRobertaForSequenceClassification(_config(num_labels=1)).save_pretrained(folder)
    return folder


def _torch(seed: int) -> Any:
    os.environ.update(OFFLINE)
    import torch

    torch.manual_seed(seed)
    return torch


def _config(**more: Any) -> Any:
    from transformers import XLMRobertaConfig

    return XLMRobertaConfig(
        vocab_size=len(_vocabulary()),
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=2 * WIDTH,
        max_position_embeddings=POSITIONS,
        type_vocab_size=1,
        initializer_range=0.5,  # far from nothing, so that texts differ
        **more,
    )


def _vocabulary() -> list[tuple[str, float]]:
    """Pieces with their log probabilities: the longer the likelier."""
    characters = [*string.ascii_letters, *string.digits, *string.punctuation, *HAN, "▁"]
    pieces = dict.fromkeys([*characters, *(f"▁{each}" for each in string.ascii_lowercase), *WORDS])
    return [*((mark, 0.0) for mark in MARKS), *((piece, len(piece) - 10.0) for piece in pieces), ("<mask>", 0.0)]


def _write_tokenizer(folder: Path) -> None:
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.Unigram(_vocabulary(), unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens([AddedToken(mark, special=True) for mark in (*MARKS, "<mask>")])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    marks = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token"), MARKS, strict=True))
    described = {"tokenizer_class": "XLMRobertaTokenizer", "cls_token": "<s>", "sep_token": "</s>",
                 "mask_token": "<mask>", "model_max_length": POSITIONS - 2, **marks}  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(described), "utf-8")
