"""The starter judge of entailment: rules where they are sure, a small model of our own for the rest. English only.

The model is a multinomial logistic regression over what the rules read of a pair (``stance_rules.signals``) and the
similarity of the two by the starter encoder. It is trained on pairs from our own sentence frames
(``localmed/training/entailment.py``). HealthVer's development pairs only chose its features, class biases and
temperature.

Measured on HealthVer's test pairs (1,823 of 230 claims about COVID-19; tests/benchmarks/RESULTS.md): accuracy 0.51,
macro-F1 0.48, against 0.40 and 0.19 of the majority class, 0.43 and 0.38 of word overlap, 0.46 and 0.42 of the rules
alone. Of what it calls entailment 53 % is, of neutral 56 %, of contradiction 34 %; of the contradictions there are it
finds 32 %, and calls 29 % of them entailment. On COVID-Fact, where one changed word refutes a claim, it is no use:
accuracy 0.45 where always saying no has 0.69. It weighs evidence for a reader; alone it decides nothing.
A caller that acts on a contradiction should ask for a high probability. In another language than English nothing is
claimed: a caller asks ``languages`` first. Of a long premise the encoder reads the first 256 word pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from localmed.errors import ModelError
from localmed.ports import Embedder, Stance
from localmed.verification.stance_rules import Signals, signals, sure

# The signals that the model reads, in the order of its coefficients; then the similarity and three products. Amounts
# and medicines are the rules'. Left out for a worse macro-F1 on the development pairs: premise_denies, number, and
# polarity times similarity.
READ = (
    "coverage", "reverse", "premise_valence", "hypothesis_valence", "hypothesis_denies", "premise_doubts",
    "denial_differs", "polarity", "opposites", "direction",
)  # fmt: skip
FEATURES = (
    *READ, "similarity", "denial_differs x similarity", "denial_differs x coverage", "polarity x coverage",
)  # fmt: skip

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Weights:
    """The model: log-probabilities are ``features @ coefficients + biases``, normalised over the three labels.

    ``coefficients`` (F, 3) and ``biases`` (3,) are in the order entailment, neutral, contradiction; ``encoder`` is the
    slug of the encoder whose similarities they were trained on.
    """

    coefficients: Floats
    biases: Floats
    encoder: str

    @classmethod
    def of(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Weights:
        """The weights in a file's ``arrays``; raise ``ModelError`` if they are those of another model."""
        try:
            found = cls(arrays["coefficients"], arrays["biases"], str(arrays["encoder"]))
            read = tuple(map(str, arrays["features"]))
        except (KeyError, TypeError) as error:
            raise ModelError(f"the entailment weights lack {error}", "Install localmed again") from None
        if read != FEATURES or found.coefficients.shape != (len(FEATURES), 3) or found.biases.shape != (3,):
            raise ModelError("the entailment weights are for other features than this version's", "Train them again")
        return found

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """As stored."""
        return {
            "coefficients": self.coefficients,
            "biases": self.biases,
            "encoder": np.array(self.encoder),
            "features": np.array(FEATURES),
        }

    def probabilities(self, read: Floats) -> Floats:
        """Probabilities (N, 3) of the features (N, F)."""
        scores = read @ self.coefficients + self.biases
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        found: Floats = scores / scores.sum(axis=1, keepdims=True)
        return found


class StarterEntailment:
    """``Entailment`` by rules and the trained ``weights``; shares ``encoder``, whose owner is this one's owner."""

    languages = ("en",)

    def __init__(self, encoder: Embedder, weights: Weights) -> None:
        """Raise ``ModelError`` unless ``encoder`` is the one that the weights were trained on."""
        if encoder.identity.slug != weights.encoder:
            raise ModelError(
                f"the starter entailment model goes with {weights.encoder}, not with {encoder.identity.slug}",
                "Train it again on this encoder, or choose another judge: localmed models use entailment NAME",
            )
        self._encoder, self._weights = encoder, weights

    @property
    def name(self) -> str:
        """What judges, and which encoder it uses."""
        return f"starter 1 ({self._encoder.identity.name})"

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        """See ``Entailment``."""
        if not pairs:
            return []
        read = [signals(premise, hypothesis) for premise, hypothesis in pairs]
        judged = self._weights.probabilities(features(read, similarities(self._encoder, pairs)))
        near = likenesses(self._encoder, pairs)
        stances = [sure(each) or Stance(*map(float, row)) for each, row in zip(read, judged, strict=True)]
        return [replace(each, likeness=alike) for each, alike in zip(stances, near, strict=True)]


def starter(arrays: Mapping[str, npt.NDArray[Any]], shared: Embedder, own: Callable[[], Embedder]) -> StarterEntailment:
    """The judge with the weights in ``arrays``, on ``shared`` where they were trained on that encoder, else ``own``."""
    weights = Weights.of(arrays)
    return StarterEntailment(shared if shared.identity.slug == weights.encoder else own(), weights)


def features(read: Sequence[Signals], similar: Floats) -> Floats:
    """What the model reads of N pairs, (N, F): ``FEATURES`` in their order."""
    columns = {name: np.array([getattr(each, name) for each in read], np.float64) for name in READ}
    differs, shared = columns["denial_differs"], columns["coverage"]
    return np.column_stack(
        [*columns.values(), similar, differs * similar, differs * shared, columns["polarity"] * shared]
    )


def similarities(encoder: Embedder, pairs: Sequence[tuple[str, str]]) -> Floats:
    """The cosine of each pair, (N,); a text that occurs twice is encoded once."""
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    vectors = encoder.encode(texts, "passage").astype(np.float64)
    place = {text: number for number, text in enumerate(texts)}
    first, second = ([place[pair[side]] for pair in pairs] for side in (0, 1))
    found: Floats = np.einsum("nd,nd->n", vectors[first], vectors[second])
    return found


def likenesses(encoder: Embedder, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """The cosine of each pair's hypothesis and the line of its premise that is nearest to it, in one call.

    A sentence alone tells more of a paraphrase than a passage with its titles, which say the subject of every sentence.
    """
    lines = [premise.splitlines() or [premise] for premise, _ in pairs]
    texts = list(dict.fromkeys(text for (_, said), each in zip(pairs, lines, strict=True) for text in (said, *each)))
    vectors = dict(zip(texts, encoder.encode(texts, "passage").astype(np.float64), strict=True))
    return [
        max(float(vectors[said] @ vectors[line]) for line in each) for (_, said), each in zip(pairs, lines, strict=True)
    ]
