"""What there is in place of a judge of entailment where no model serves one: likeness alone, and no judgement.

A rule or a small model of our own cannot tell whether a text supports a statement: what stood here before (a logistic
regression over word signals) had macro-F1 0.48 on HealthVer's test pairs and called 30 % of altered statements
supported. So every pair is "not judged"; what a text says word for word is known by rule (``verbatim``). Likeness is
the cosine of a statement and the nearest line of the text, by the starter encoder: the sentence check of a model's
words uses it (``comparison``), whose weights were fitted on that encoder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from localmed.ports import NOT_JUDGED, Embedder, Stance

ENCODER = "multilingual-e5-small-q4"
NAME = "none"  # who judges


class LikenessOnly:
    """``Entailment`` that judges nothing and compares; shares ``encoder``, whose owner is this one's owner."""

    name = NAME
    languages = ()

    def __init__(self, shared: Embedder, own: Callable[[], Embedder]) -> None:
        """Compare by the ``shared`` encoder if it is the starter's, else by ``own``, made at the first use."""
        self._shared, self._own = shared, own
        self._encoder: Embedder | None = shared if shared.identity.name == ENCODER else None

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        """See ``Entailment``: each pair not judged, with its likeness."""
        if pairs and self._encoder is None:
            self._encoder = self._own()
        near = likenesses(self._encoder, pairs) if self._encoder and pairs else ()
        return [replace(NOT_JUDGED, likeness=value) for value in near]


def likenesses(encoder: Embedder, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """The cosine of each pair's hypothesis and the line of its premise that is nearest to it, in one call.

    A sentence alone tells more of a paraphrase than a passage with its titles, which say the subject of every sentence.
    """
    lines = [premise.splitlines() or [premise] for premise, _ in pairs]
    texts = list(
        dict.fromkeys(text for (_, hypothesis), own in zip(pairs, lines, strict=True) for text in (hypothesis, *own))
    )
    vectors = dict(zip(texts, encoder.encode(texts, "passage").astype(np.float64), strict=True))
    return [
        max(float(vectors[hypothesis] @ vectors[line]) for line in own)
        for (_, hypothesis), own in zip(pairs, lines, strict=True)
    ]
