"""The roles: who is asked for what, as values. One call, ``perform(role, given)``, whatever serves the role.

More roles (passage relevance by a model, coherence, ...) join this file with the issue that needs them; a profile says
which implementation serves each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from localmed.domain import Evidence, Hit


@dataclass(frozen=True, slots=True)
class Role:
    """What is asked for, and where the method comes from. ``version`` of the prompt or rules goes into provenance."""

    name: str
    purpose: str
    version: str
    paper: str = ""


RELEVANCE = Role(
    "relevance", "Whether what was found can answer the question", "rules-1", "LINS, passage relevance agent (PRA)"
)
KEYWORDS = Role(
    "keywords", "The question's keywords, most important first", "ngrams-1", "LINS, keyword extraction agent (KEA)"
)
CITED_ANSWER = Role("cited_answer", "Statements that answer, each with its citation", "extractive-1", "LINS, MAIRAG")


@dataclass(frozen=True, slots=True)
class KeywordsInput:
    """At most ``most`` keywords are wanted. The result is a ``Keywords``."""

    question: str
    most: int


@dataclass(frozen=True, slots=True)
class Keywords:
    """The keywords, most important first; ``unknown`` are the question's words that the library does not hold."""

    words: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RelevanceInput:
    """``dense`` says whether the similarities of ``hits`` count, ``reranker`` whose scores they carry ("": nobody's).

    The result is a ``Relevance``.
    """

    question: str
    hits: tuple[Hit, ...]
    dense: bool
    reranker: str = ""


KEPT = 0.5  # of the threshold: beside a passage that answers, one less sure may add to it


@dataclass(frozen=True, slots=True)
class Relevance:
    """How likely each hit holds an answer, in the hits' order, and the threshold in force.

    ``unnamed`` are words of the question that no helpful hit holds: its subject may be another's.
    """

    probabilities: tuple[float, ...]
    threshold: float
    unnamed: tuple[str, ...] = ()

    @property
    def probability(self) -> float:
        """The highest."""
        return max(self.probabilities, default=0.0)

    @property
    def enough(self) -> bool:
        """Whether to answer."""
        return self.probability >= self.threshold

    def helpful(self, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
        """Those of ``hits`` that help (LINS, PRA: the passages that are kept): at least half as sure as to answer."""
        pairs = zip(hits, self.probabilities, strict=True)
        return tuple(hit for hit, probability in pairs if probability >= self.threshold * KEPT)


@dataclass(frozen=True, slots=True)
class AnswerInput:
    """The result is a tuple of ``Statement``: markers only from ``evidence``."""

    question: str
    evidence: tuple[Evidence, ...]
    dense: bool


class Performer(Protocol):
    """Serves roles."""

    def perform(self, role: Role, given: Any) -> Any:
        """Do what ``role`` asks with ``given`` (the role's input type) and return its output type."""
        ...
