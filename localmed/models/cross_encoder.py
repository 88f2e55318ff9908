"""Cross-encoders: two texts read as one by a network with a classifier on top, loaded by transformers.

``CrossEncoder`` reranks (Nogueira & Cho 2019; bge-reranker-v2-m3 and any other with one label); ``NliCrossEncoder``
judges entailment. Tests hold the scores against FlagEmbedding and sentence-transformers, which load the same class in
the same way. Weights are read from safetensors only; code in a checkpoint is never run; a
classifier that the checkpoint does not hold is an error, where the library would make one of random numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from localmed.domain import message
from localmed.domain.ports import Stance
from localmed.models.checkpoint import CONFIG, WEIGHTS, Checkpoint
from localmed.models.network import PASSAGE_TOKENS, RESERVED_POSITIONS, Cost, Network, arithmetic, device_of

NEEDED = (WEIGHTS, "tokenizer*")  # tokenizer.json, or tokenizer_config.json beside a vocabulary
QUESTION_TOKENS = 256  # that a reranker reads, so that a long question leaves room for the passage


def load(checkpoint: Checkpoint, exact: bool) -> Network:
    """The classifier of ``checkpoint``; ``exact`` forces float32. Raise ``ModelError`` if it is damaged or not one."""
    folder = checkpoint.complete(*NEEDED)
    tokens = min(PASSAGE_TOKENS, checkpoint.number("max_position_embeddings") - RESERVED_POSITIONS)
    with checkpoint.loading():
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer
        from transformers.utils import logging

        logging.disable_progress_bar()
        logging.set_verbosity_error()
        here = {"local_files_only": True, "trust_remote_code": False}
        tokenizer = AutoTokenizer.from_pretrained(str(folder), **here)
        model, report = AutoModelForSequenceClassification.from_pretrained(
            str(folder), use_safetensors=True, dtype=torch.float32, output_loading_info=True, **here
        )
    checkpoint.refuse_unfilled([*report["missing_keys"], *(mismatch[0] for mismatch in report["mismatched_keys"])])
    device, dtype = device_of(torch), arithmetic(torch, exact)
    model = model.to(device=device, dtype=dtype).eval()
    return Network(torch, tokenizer, model, device, tokens, Cost.of(model.config, dtype))


def labels_of(checkpoint: Checkpoint) -> tuple[str, ...]:
    """The names of the outputs in their order, as ``config.json`` gives them (``id2label``); empty if it does not."""
    checkpoint.complete(*NEEDED)
    values = checkpoint.read()
    named = values.get("id2label") if isinstance(values, dict) else None
    if not isinstance(named, dict) or set(named) != {str(number) for number in range(len(named))}:
        return ()
    return tuple(str(named[str(number)]).strip().lower() for number in range(len(named)))


class CrossEncoder:
    """``Reranker``: a question and a passage read as one text; a sigmoid of its one label."""

    def __init__(self, checkpoint: Checkpoint, exact: bool = False) -> None:
        """Nothing is loaded before the first question. ``exact`` forces float32."""
        self._checkpoint, self._exact = checkpoint, exact

    @cached_property
    def name(self) -> str:
        """The checkpoint's name and fingerprint; loads nothing. Raise ``ModelError`` if it has not just one label."""
        labels = labels_of(self._checkpoint)
        if len(labels) != 1:
            raise self._checkpoint.unusable(ValueError(), message("model.one_label", file=CONFIG))
        return f"{self._checkpoint.name} {self._checkpoint.version}"

    @cached_property
    def network(self) -> Network:
        """The model, loaded."""
        _ = self.name  # before seconds of loading
        return load(self._checkpoint, self._exact)

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> list[float]:
        """See ``Reranker.score``: from 0 to 1."""
        del keep
        if not passages:
            return []
        network = self.network
        questions = [self._cut(network, question)] * len(passages)
        rows = network.tokenizer(questions, list(passages), truncation="only_second", max_length=network.tokens)
        scores = [0.0] * len(passages)
        for places, output in network.batches(rows, lambda inputs: network.model(**inputs).logits):
            judged = network.finite(output).view(-1).sigmoid().tolist()
            for place, score in zip(places, judged, strict=True):
                scores[place] = score
        return scores

    def _cut(self, network: Network, question: str) -> str:
        """``question``, or its beginning if it is longer than ``QUESTION_TOKENS`` or half of what the model reads."""
        most = min(QUESTION_TOKENS, network.tokens // 2)
        encoded = network.tokenizer(question, add_special_tokens=False, truncation=True, max_length=most + 1)
        pieces = encoded["input_ids"]
        return question if len(pieces) <= most else str(network.tokenizer.decode(pieces[:most]))


# --- entailment -------------------------------------------------------------------------------------------------------


LABELS = ("entailment", "neutral", "contradiction")  # in the order of ``Stance``
UNREAD = Stance(0.0, 1.0, 0.0)


class NliCrossEncoder:
    """``Entailment`` on a registered checkpoint. Not thread-safe by contract: one owner at a time."""

    def __init__(self, checkpoint: Checkpoint, exact: bool = False) -> None:
        """Nothing is loaded before the first pair. ``exact`` forces float32."""
        self._checkpoint, self._exact = checkpoint, exact

    @property
    def name(self) -> str:
        """The checkpoint's name and fingerprint; loads nothing. Raise ``ModelError`` if its labels are not told."""
        _ = self.order
        return f"{self._checkpoint.name} {self._checkpoint.version}"

    @property
    def languages(self) -> tuple[str, ...]:
        """Those of its manifest."""
        return self._checkpoint.languages

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Where each of ``LABELS`` stands among the network's outputs; raise ``ModelError`` if that is not told."""
        named = labels_of(self._checkpoint)
        if sorted(named) != sorted(LABELS):
            problem = message("model.label_names", file=CONFIG, labels=tuple(LABELS))
            raise self._checkpoint.unusable(ValueError(), problem)
        return tuple(named.index(label) for label in LABELS)

    @cached_property
    def network(self) -> Network:
        """The model, loaded."""
        _ = self.order  # before seconds of loading
        return load(self._checkpoint, self._exact)

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
        for places, output in network.batches(rows, lambda inputs: network.model(**inputs).logits):
            judged = network.finite(output).softmax(dim=-1)[:, self.order].tolist()  # (B, 3)
            for place, probabilities in zip(places, judged, strict=True):
                stances[read[place]] = Stance(*probabilities)
        return stances

    def _readable(self, network: Network, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """The places of pairs whose hypothesis leaves at least half of what the model reads to the premise."""
        most, hypotheses = network.tokens // 2, [hypothesis for _, hypothesis in pairs]
        encoded = network.tokenizer(hypotheses, add_special_tokens=False, truncation=True, max_length=most + 1)
        return [place for place, pieces in enumerate(encoded["input_ids"]) if len(pieces) <= most]
