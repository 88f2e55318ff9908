"""Cross-encoders: a network with a classifier that reads two texts as one, loaded by transformers.

``CrossEncoder`` reranks (Nogueira & Cho 2019; bge-reranker-v2-m3 and any other with one label); ``NliCrossEncoder``
judges entailment. Tests compare the scores with FlagEmbedding and sentence-transformers. Weights are read from
safetensors only, code in a checkpoint is never run, and a missing classifier is an error, where the library would make
a random one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from localmed.domain import message
from localmed.domain.ports import Stance
from localmed.models.checkpoint import CONFIG, WEIGHTS, Checkpoint
from localmed.models.network import PASSAGE_TOKENS, RESERVED_POSITIONS, Network, arithmetic

NEEDED = (WEIGHTS, "tokenizer*")  # tokenizer.json, or tokenizer_config.json beside a vocabulary
QUESTION_TOKENS = 256  # limit for a reranker, so that a long question leaves room for the passage


class Classifier:
    """A checkpoint loaded by transformers. Not thread-safe: one owner at a time."""

    loaded_by = "AutoModelForSequenceClassification"

    def __init__(self, checkpoint: Checkpoint, exact: bool = False) -> None:
        """``exact`` forces float32. Nothing is loaded before the first text."""
        self._checkpoint, self._exact = checkpoint, exact

    @cached_property
    def name(self) -> str:
        """Name and fingerprint, without loading; raise ``ModelError`` if the checkpoint is of another kind."""
        self._checkpoint.complete(*NEEDED)
        self.check()
        return f"{self._checkpoint.name} {self._checkpoint.version}"

    @property
    def languages(self) -> tuple[str, ...]:
        """The manifest's languages."""
        return self._checkpoint.languages

    def check(self) -> None:
        """Raise ``ModelError`` if ``config.json`` describes another kind of network, which would load all the same."""
        raise NotImplementedError

    def config(self) -> dict[str, Any]:
        """``config.json``, empty if it is no table."""
        values = self._checkpoint.read()
        return values if isinstance(values, dict) else {}

    def numbers(self, torch: Any) -> Any:
        """The number type to compute with."""
        return arithmetic(torch, self._exact)

    @cached_property
    def network(self) -> Network:
        """The loaded model."""
        _ = self.name  # fail before loading takes seconds
        checkpoint, folder = self._checkpoint, self._checkpoint.complete(*NEEDED)
        with checkpoint.loading():
            import torch
            import transformers

            here = {"local_files_only": True, "trust_remote_code": False}
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **here)
            model, report = getattr(transformers, self.loaded_by).from_pretrained(
                str(folder), use_safetensors=True, dtype=torch.float32, output_loading_info=True, **here
            )
        checkpoint.refuse_missing([*report["missing_keys"], *(mismatch[0] for mismatch in report["mismatched_keys"])])
        positions = getattr(model.config, "max_position_embeddings", PASSAGE_TOKENS + RESERVED_POSITIONS)
        tokens = min(PASSAGE_TOKENS, int(positions) - RESERVED_POSITIONS)
        return Network.place(torch, tokenizer, model, model.config, tokens, self.numbers(torch))

    def logits(self, inputs: dict[str, Any]) -> Any:
        """The outputs of a batch: (B, labels)."""
        return self.network.model(**inputs).logits

    def labels(self) -> tuple[str, ...]:
        """The output names in order, from ``id2label`` of ``config.json``; () if it has none."""
        named = self.config().get("id2label")
        if not isinstance(named, dict) or set(named) != {str(number) for number in range(len(named))}:
            return ()
        return tuple(str(named[str(number)]).strip().lower() for number in range(len(named)))


class CrossEncoder(Classifier):
    """A ``Reranker`` that reads question and passage as one text; the sigmoid of its single label."""

    def check(self) -> None:
        """See ``Classifier``: one label."""
        if len(self.labels()) != 1:
            raise self._checkpoint.load_error(ValueError(), message("model.one_label", file=CONFIG))

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> list[float]:
        """See ``Reranker.score``: from 0 to 1."""
        del keep
        if not passages:
            return []
        network = self.network
        questions = [self._cut(network, question)] * len(passages)
        rows = network.tokenizer(questions, list(passages), truncation="only_second", max_length=network.tokens)
        return network.each(rows, self.logits, lambda logits: logits.view(-1).sigmoid())

    def _cut(self, network: Network, question: str) -> str:
        """``question``, cut to ``QUESTION_TOKENS`` or half of the model's input."""
        most = min(QUESTION_TOKENS, network.tokens // 2)
        encoded = network.tokenizer(question, add_special_tokens=False, truncation=True, max_length=most + 1)
        pieces = encoded["input_ids"]
        return question if len(pieces) <= most else str(network.tokenizer.decode(pieces[:most]))


# --- entailment -------------------------------------------------------------------------------------------------------


LABELS = ("entailment", "neutral", "contradiction")  # in the order of ``Stance``
UNREAD = Stance(0.0, 1.0, 0.0)


class NliCrossEncoder(Classifier):
    """An ``Entailment`` judge with three named labels."""

    def check(self) -> None:
        """See ``Classifier``: three labels, named."""
        _ = self.order

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The index of each of ``LABELS`` among the outputs; raise ``ModelError`` if they are not named."""
        named = self.labels()
        if sorted(named) != sorted(LABELS):
            problem = message("model.label_names", file=CONFIG, labels=tuple(LABELS))
            raise self._checkpoint.load_error(ValueError(), problem)
        return tuple(named.index(label) for label in LABELS)

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        """See ``Entailment.judge``."""
        stances = [UNREAD] * len(pairs)
        if not pairs:
            return stances
        network = self.network
        read = self._readable(network, pairs)
        if not read:
            return stances
        premises, hypotheses = zip(*(pairs[place] for place in read), strict=True)
        rows = network.tokenizer(list(premises), list(hypotheses), truncation="only_first", max_length=network.tokens)
        judged = network.each(rows, self.logits, lambda logits: logits.softmax(dim=-1)[:, self.order])  # (B, 3)
        for place, probabilities in zip(read, judged, strict=True):
            stances[place] = Stance(*probabilities)
        return stances

    def _readable(self, network: Network, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """The indexes of pairs whose hypothesis leaves at least half of the input to the premise."""
        most, hypotheses = network.tokens // 2, [hypothesis for _, hypothesis in pairs]
        encoded = network.tokenizer(hypotheses, add_special_tokens=False, truncation=True, max_length=most + 1)
        return [place for place, pieces in enumerate(encoded["input_ids"]) if len(pieces) <= most]
