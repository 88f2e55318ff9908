"""Tiny checkpoints with random weights, made where a test needs them: BGE-M3, cross-encoders, an E5-like encoder.

XLM-RoBERTa (Conneau et al. 2020) of two layers, 32 wide, over a vocabulary of single characters and a few words; the
judge of entailment also as BERT (two segments) and as DeBERTa-v2. They understand nothing; what they compute is what
the real ones would compute with these weights.
"""

from __future__ import annotations

import json
import os
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from localmed.models.checkpoint import Checkpoint
from localmed.process.environment import OFFLINE

WIDTH = 32
SEGMENTS = {"BertConfig": 2, "DebertaV2Config": 0}  # else one
NLI = ("contradiction", "entailment", "neutral")  # in the order of cross-encoder/nli-deberta-v3-base
LONG = 402  # of a fact checker, whose template alone has 150 pieces here
POSITIONS = 130  # two of them are never used, as in XLM-RoBERTa: texts of 128 pieces
WORDS = ("▁dose", "▁of", "▁the", "▁sepsis", "▁visiting", "▁hours", "▁paracetamol", "▁maximum")
ANSWER = ("▁1",)  # a piece by which a T5 tells 0 from 1
HAN = "普通病房的探视时间为每天至儿童发热可以用对乙酰氨基酚最大剂量是多少脓毒症什么时候"
MARKS = ("<s>", "<pad>", "</s>", "<unk>")


def make_bge_m3(folder: Path) -> Path:
    """Write an encoder with its two further heads; return ``folder``."""
    _saved(folder, "XLMRobertaModel", add_pooling_layer=False)
    import torch

    torch.save(torch.nn.Linear(WIDTH, WIDTH).state_dict(), folder / "colbert_linear.pt")
    torch.save(torch.nn.Linear(WIDTH, 1).state_dict(), folder / "sparse_linear.pt")
    return folder


def make_cross_encoder(folder: Path) -> Path:
    """Write a cross-encoder with one label; return ``folder``."""
    return _saved(folder, "XLMRobertaForSequenceClassification", {"num_labels": 1})


def make_nli(folder: Path, labels: Sequence[str] = NLI, kind: str = "XLMRoberta") -> Path:
    """Write a judge of entailment of the architecture ``kind``, its outputs called ``labels``; return ``folder``."""
    named = dict(enumerate(labels))
    numbers = {label: place for place, label in named.items()}
    _write_tokenizer(folder, segments=2 if kind == "Bert" else 1)
    return _saved(folder, f"{kind}ForSequenceClassification", {"id2label": named, "label2id": numbers})


def make_fact_checker(folder: Path, kind: str = "DebertaV2", labels: int = 2) -> Path:
    """Write a fact checker: of DeBERTa-v2 or ModernBERT (each token) with ``labels``, or a T5; return ``folder``."""
    if kind == "T5":
        _write_tokenizer(folder, further=ANSWER)
        return _saved(folder, "T5ForConditionalGeneration", {
            "vocab_size": len(_vocabulary(ANSWER)), "d_model": WIDTH, "d_kv": 16, "d_ff": 2 * WIDTH, "num_layers": 2,
            "num_heads": 2, "initializer_factor": 0.3, "pad_token_id": 1, "eos_token_id": 2,
            "decoder_start_token_id": 1,
        })  # fmt: skip
    marks = {"cls_token_id": 0, "bos_token_id": 0, "pad_token_id": 1, "sep_token_id": 2, "eos_token_id": 2}
    head = "TokenClassification" if kind == "ModernBert" else "SequenceClassification"
    more: dict[str, Any] = {"num_labels": labels, "max_position_embeddings": LONG}
    return _saved(folder, f"{kind}For{head}", more | (marks if kind == "ModernBert" else {}))


def make_spm_tokenizer(folder: Path) -> None:
    """Put a SentencePiece vocabulary in the place of ``tokenizer.json``, as DeBERTa-v3 is published."""
    import sentencepiece

    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    with (folder / "spm.model").open("wb") as stream:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([*(word[1:] for word in WORDS), string.ascii_letters, string.digits] * 9),
            model_writer=stream,
            vocab_size=120, character_coverage=1.0, hard_vocab_limit=False, pad_id=0, bos_id=1, eos_id=2, unk_id=3,
            bos_piece="[CLS]", eos_piece="[SEP]", pad_piece="[PAD]", unk_piece="[UNK]", minloglevel=2,
        )  # fmt: skip
    described = {"tokenizer_class": "DebertaV2Tokenizer", "model_max_length": POSITIONS - 2, "vocab_type": "spm"}
    (folder / "tokenizer_config.json").write_text(json.dumps(described), "utf-8")


def make_sentence_encoder(folder: Path, dense: int = 0) -> Path:
    """Write a mean-pooling encoder in sentence-transformers' format, with ``dense`` layers; return ``folder``."""
    _saved(folder, "XLMRobertaModel")
    kinds = ["Transformer", "Pooling", *["Dense"] * dense, "Normalize"]
    modules = [{"idx": n, "name": str(n), "path": f"{n}_{kind}" if n else "",
                "type": f"sentence_transformers.models.{kind}"} for n, kind in enumerate(kinds)]  # fmt: skip
    for module in modules[2:-1]:
        from sentence_transformers.sentence_transformer.modules import Dense

        within = folder / str(module["path"])
        within.mkdir()
        Dense(WIDTH, WIDTH, bias=False).save(str(within))
    (folder / "modules.json").write_text(json.dumps(modules), "utf-8")
    (folder / "1_Pooling").mkdir(exist_ok=True)
    pooling = {"word_embedding_dimension": WIDTH, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling), "utf-8")
    return folder


def lying(folder: Path, **facts: Any) -> Checkpoint:
    """The checkpoint in ``folder`` as its adapter is given it, without a registry."""
    return Checkpoint(folder.name, facts.pop("version", "0123456789ab"), lambda: folder, **facts)


def _saved(folder: Path, network: str, settings: Mapping[str, Any] = MappingProxyType({}), **options: Any) -> Path:
    """Write ``network`` (a class of transformers) with random weights, and a tokenizer if there is none."""
    os.environ.update(OFFLINE)
    import torch
    import transformers

    torch.manual_seed(0)
    if not folder.exists():
        _write_tokenizer(folder)
    kind = getattr(transformers, network)
    name = kind.config_class.__name__
    usual = {} if name == "T5Config" else {
        "vocab_size": len(_vocabulary()), "hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 2 * WIDTH, "max_position_embeddings": POSITIONS, "type_vocab_size": SEGMENTS.get(name, 1),
        "initializer_range": 0.5,  # far from nothing, so that texts differ
    }  # fmt: skip
    kind(kind.config_class(**{**usual, **settings}), **options).save_pretrained(folder)
    return folder


def _vocabulary(further: Sequence[str] = ()) -> list[tuple[str, float]]:
    """Pieces with their log probabilities: the longer the likelier."""
    characters = [*string.ascii_letters, *string.digits, *string.punctuation, *HAN, "▁"]
    pieces = dict.fromkeys([*characters, *(f"▁{letter}" for letter in string.ascii_lowercase), *WORDS, *further])
    return [*((mark, 0.0) for mark in MARKS), *((piece, len(piece) - 10.0) for piece in pieces), ("<mask>", 0.0)]


def _write_tokenizer(folder: Path, segments: int = 1, further: Sequence[str] = ()) -> None:
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.Unigram(_vocabulary(further), unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens([AddedToken(mark, special=True) for mark in (*MARKS, "<mask>")])
    second = segments - 1
    pair = f"<s> $A </s> $B:{second} </s>:{second}" if second else "<s> $A </s> </s> $B </s>"
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair=pair, special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    marks = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token"), MARKS, strict=True))
    described: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast" if second else "XLMRobertaTokenizer"}
    described |= {"cls_token": "<s>", "sep_token": "</s>", "mask_token": "<mask>", **marks}
    described["model_max_length"] = POSITIONS - 2
    if second:
        described["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    (folder / "tokenizer_config.json").write_text(json.dumps(described), "utf-8")
