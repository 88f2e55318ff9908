"""Whether a model says the same again: long-text uncertainty (LUQ, Zhang et al. 2024; Omni-RAG, A.3).

Each sentence of an answer is held against other answers of the same model to the same question, drawn with a
temperature. How far an answer supports a sentence is ``entailment / (entailment + contradiction)``: what it leaves open
does not count. The agreement is the mean over sentences and answers, from 0 to 1; LUQ's uncertainty is one minus it.
High agreement is no sign of truth: a model may say the same wrong thing each time.
"""

from __future__ import annotations

from collections.abc import Sequence

from localmed.domain.ports import Stance

TEMPERATURE = 0.7  # of the samples (Omni-RAG, A.3, with nine of them)


def pairs(sentences: Sequence[str], samples: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """(premise, hypothesis): every sample with every sentence."""
    return tuple((sample, sentence) for sample in samples for sentence in sentences)


def agreement(stances: Sequence[Stance]) -> float | None:
    """The mean support of the judged pairs; ``None`` where nobody judged, or every sample leaves everything open."""
    sides = [(stance.entailment, stance.contradiction) for stance in stances if stance.judged]
    supports = [entailed / (entailed + against) for entailed, against in sides if entailed + against > 0]
    return sum(supports) / len(supports) if supports else None
