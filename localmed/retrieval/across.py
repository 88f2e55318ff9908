"""May a passage in another language answer the question? What can be told without reading both: a few cautious signals.

A question and its answer in another language share no words but those that a bilingual bridge knows (``bridge``) and
what is written alike. The signals are the similarity, and whether what the question names, under its names there,
stands in the passage and in a sentence that gives the value asked for. Half of the questions that these were fitted on
had no answer, most of them about the very document that was found; of such no signal by meaning could tell (areas under
the curve 0.51 to 0.65, the reranker's score no better), the names could (0.79). So the threshold is high, and with an
encoder that the weights were not fitted for nothing is answered: the nearest passages are shown.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import exp

from localmed import language
from localmed.clinical import asking
from localmed.domain import Hit, Passage
from localmed.library.lexical import LexicalIndex
from localmed.retrieval.bridge import Bridge
from localmed.retrieval.relevance import NEVER

NAMES = ("similarity", "held", "sentence", "unfilled", "named")
ENOUGH = 3  # topics named; more say no more
UNKNOWN = 0.5  # share of nothing
_ROW = re.compile(r"[^\n]+")


@dataclass(frozen=True, slots=True)
class AcrossQuery:
    """A question as it is held against passages in another language.

    Its topics, each by the terms of its names, and the values that it asks for.
    """

    topics: tuple[tuple[frozenset[str], ...], ...]
    slots: tuple[asking.Slot, ...]

    @classmethod
    def of(cls, question: str, target: str, bridge: Bridge, index: LexicalIndex) -> AcrossQuery:
        """``question``, of which the bridge knows names in the language ``target``."""
        analysed = [
            tuple(filter(None, (frozenset(index.analyse(name, for_query=True)) for name in term.names)))
            for term in bridge.terms(question, target)
            if not term.asking
        ]
        return cls(tuple(filter(None, analysed)), asking.slots(question))

    def held(self, terms: frozenset[str]) -> float:
        """The share of the topics that ``terms`` name."""
        named = [any(name <= terms for name in names) for names in self.topics]
        return sum(named) / len(named) if named else UNKNOWN

    def signals(self, hit: Hit, index: LexicalIndex, least: float) -> tuple[float, ...]:
        """Those of ``hit`` in the order of ``NAMES``; ``least`` is the similarity of what only words found."""
        passage = hit.passage
        context = frozenset(index.analyse(" ".join((passage.title, *passage.headings))))
        sentences = list(_sentences(passage))
        terms = [frozenset(index.analyse(sentence)) | context for sentence in sentences]
        fill = [self._fills(sentence) for sentence in sentences]
        return (
            least if hit.similarity is None else hit.similarity,
            self.held(context.union(*terms)),
            max((self.held(held) for held, filled in zip(terms, fill, strict=True) if filled), default=0.0),
            float(bool(self.slots) and not any(fill)),
            min(len(self.topics), ENOUGH) / ENOUGH,
        )

    def _fills(self, sentence: str) -> bool:
        folded = language.fold(sentence)
        return all(slot.fills.search(folded) for slot in self.slots)


def _sentences(passage: Passage) -> list[str]:
    if passage.table:
        return _ROW.findall(passage.text)
    return [passage.text[start:end] for start, end in language.sentences(passage.text)]


@dataclass(frozen=True, slots=True)
class AcrossJudge:
    """The weights of the signals in the order of ``NAMES``, the intercept, and the threshold (above 1: no answers)."""

    weights: tuple[float, ...]
    intercept: float
    threshold: float

    def probability(self, values: Sequence[float]) -> float:
        """That a passage with the signals ``values`` holds an answer."""
        total = sum(weight * value for weight, value in zip(self.weights, values, strict=True))
        return 1 / (1 + exp(-total - self.intercept))


def probabilities(
    question: str, hits: Sequence[Hit], bridge: Bridge, index: LexicalIndex, judge: AcrossJudge
) -> tuple[float, ...]:
    """That each of ``hits``, all in another language than ``question``, holds an answer; 0 where nothing is named."""
    query = AcrossQuery.of(question, hits[0].passage.language, bridge, index)
    least = min((hit.similarity for hit in hits if hit.similarity is not None), default=0.0)
    read = (query.signals(hit, index, least) for hit in hits)
    return tuple(judge.probability(values) if query.topics else 0.0 for values in read)


def other_language(question_language: str, hits: Sequence[Hit]) -> bool:
    """Whether all of ``hits`` are in one other language than the question, of those that can be told."""
    languages = {hit.passage.language for hit in hits}
    return len(languages) == 1 and languages.isdisjoint({question_language, ""})


@cache
def fitted_across(encoder: str) -> AcrossJudge:
    """The judge for ``encoder`` (its slug); for another than it was fitted for it answers nothing."""
    row = tomllib.loads(files(__package__).joinpath("across.toml").read_text("utf-8"))
    weights = tuple(float(row["weights"][name]) for name in NAMES)
    threshold = float(row["threshold"]) if row["encoder"] == encoder else NEVER
    return AcrossJudge(weights, float(row["intercept"]), threshold)
