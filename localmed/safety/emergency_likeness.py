"""How like a complaint is to emergencies in patients' words: what the table of red flags has no wording for.

A linear score over the complaint's words and pairs of words (Chinese: runs of one to three characters) and the vector
of multilingual-e5-small. Its weights were fitted (``tests/benchmarks/train_emergencies.py``) on complaints of our own
and on development cases; a score above the bound of its language counts. It can only add to what the table reads, never
take away; what it adds is told as "not sure". A long complaint is scored as a whole and sentence by sentence.
"""

from __future__ import annotations

from pathlib import Path

from localmed.answering.asking import QuestionInput
from localmed.answering.guidance import EMERGENCY
from localmed.answering.roles import Rules
from localmed.domain.ports import Embedder
from localmed.safety.safety_likeness import SENTENCES, Weights, loaded, terms
from localmed.text.language import sentences

WEIGHTS = Path(__file__).with_name("emergency_likeness.npz")
LANGUAGES = ("en", "zh")
READ = 4_000  # characters that are scored
WHOLE = 300  # characters up to which a complaint is scored as a whole only, as the ones that it was fitted on


class EmergencyLikeness:
    """The role ``emergency_likeness``; with another encoder than the one that was fitted it says no."""

    def __init__(self, encoder: Embedder) -> None:
        """Nothing is loaded before the first complaint."""
        self._encoder = encoder

    def rules(self) -> Rules:
        """The role it serves."""
        return {EMERGENCY.name: self.likened}

    def likened(self, task: QuestionInput) -> bool:
        """Whether the complaint, or a sentence of a long one, scores above the bound."""
        weights = fitted(task.language)
        texts = [text for text in _pieces(task.question[:READ]) if _known(weights, text, task.language)]
        if not texts or weights.encoder != self._encoder.identity.slug:
            return False
        vectors = self._encoder.encode(texts, "query").astype("float64")
        return bool(weights.scores(texts, task.language, vectors).max() > 0)


def fitted(language: str) -> Weights:
    """The weights of ``language`` that come with the package."""
    return loaded(WEIGHTS, LANGUAGES)[language]


def _known(weights: Weights, text: str, language: str) -> bool:
    """Whether one word of ``text`` was ever seen: a vector alone says too little of "x"."""
    return any(term in weights.terms for term in terms(text, language))


def _pieces(text: str) -> list[str]:
    pieces = [text[start:end] for start, end in sentences(text)] if len(text) > WHOLE else []
    return [text, *pieces[-SENTENCES:]]
