"""Entailment by an NLI cross-encoder: premise and hypothesis read as one text, three labels (Bowman et al. 2015).

Rules: which label is which is read from the checkpoint's ``id2label``, whatever its order; names that are not exactly
entailment, neutral and contradiction are an error, never a guess. A premise too long for the model is cut at its end;
a hypothesis is not: one that takes more than half of what the model reads is neutral, since nobody has read it whole.
It claims the languages of its manifest, else English.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from localmed.domain import message
from localmed.models import cross_encoder
from localmed.models.checkpoint import CONFIG, Checkpoint
from localmed.ports import Stance

if TYPE_CHECKING:
    from localmed.models.network import Network

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
        named = cross_encoder.labels_of(self._checkpoint)
        if sorted(named) != sorted(LABELS):
            problem = message("model.label_names", file=CONFIG, labels=tuple(LABELS))
            raise self._checkpoint.unusable(ValueError(), problem)
        return tuple(named.index(label) for label in LABELS)

    @cached_property
    def network(self) -> Network:
        """The model, loaded."""
        _ = self.order  # before seconds of loading
        return cross_encoder.load(self._checkpoint, self._exact)

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
