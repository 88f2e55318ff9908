"""Relevance (LINS, PRA) without a language model: the fitted judge of ``retrieval.relevance`` as a role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from localmed.agents import asking
from localmed.agents.roles import Rules
from localmed.config import AskSettings
from localmed.domain import Hit
from localmed.language import detect
from localmed.library.lexical import LexicalIndex
from localmed.retrieval.across import fitted_across, other_language, probabilities
from localmed.retrieval.bridge import NAMED_ONLY, Bridge
from localmed.retrieval.calibration import Calibration, served
from localmed.retrieval.relevance import NAMELESS, WEAK, judged, reason
from localmed.retrieval.topics import topics

CHANCE = 0.1  # least probability of the best of a search's first passages at which the others are read


class RelevanceRules:
    """Whether passages hold an answer, by signals of the words and the reranker's score."""

    def __init__(
        self,
        index: LexicalIndex,
        encoder: str,
        settings: AskSettings,
        bridge: Bridge = NAMED_ONLY,
        own: Sequence[Calibration] = (),
    ) -> None:
        """``index`` weighs words; ``encoder`` is the slug of the one whose similarities hits carry.

        ``bridge`` knows names in another language; ``own`` are the site's calibrations.
        """
        self._index, self._encoder, self._settings, self._bridge = index, encoder, settings, bridge
        self._own = own

    def rules(self) -> Rules:
        """The roles it serves."""
        return {asking.RELEVANCE.name: self.judge}

    def judge(self, task: asking.RelevanceInput) -> asking.Relevance:
        """How likely each hit holds an answer, and why none does."""
        if task.dense and other_language(task.language, task.hits):
            return self._across(task)
        judge = served(self._own, self._encoder if task.dense else "", task.reranker, task.language)
        read = judged(task.question, task.hits, self._index, judge)
        if any(one.nameless for _, one in read):
            return _not_told(task.hits)
        settings = self._settings
        threshold = judge.threshold(settings.risk, settings.confidence, settings.unanswerable)
        relevance = asking.Relevance(tuple(row[0] for row in read), threshold, calibrated=judge.calibrated)
        if relevance.enough:
            return relevance
        least = judge.threshold(settings.unsure, settings.confidence, settings.unanswerable)
        likely = tuple(chance if chance >= least and one.whole else 0.0 for chance, one in read)
        relevance = replace(relevance, likely=likely)
        likeliest = [one for _, one in sorted(read, key=lambda row: -row[0])]
        return replace(relevance, reason=reason(task.question, likeliest, self._index))

    def promising(self, question: str, hits: Sequence[Hit], reranker: str) -> bool:
        """Whether a search with ``hits``, reranked, may yet answer: a tier without a chance is left before it is read.

        With a reranker whose scores nothing was fitted on every search may.
        """
        judge = served(self._own, self._encoder, reranker, detect(question))
        chances = (row[0] for row in judged(question, hits, self._index, judge))
        return not judge.calibrated or any(chance >= CHANCE for chance in chances)

    def _across(self, task: asking.RelevanceInput) -> asking.Relevance:
        """The same of passages that are all in another language."""
        if topics(task.question, self._index).nameless:
            return _not_told(task.hits)
        judge = fitted_across(self._encoder)
        values = probabilities(task.question, task.hits, self._bridge, self._index, judge)
        return asking.Relevance(values, judge.threshold, reason=WEAK)


def _not_told(hits: Sequence[Hit]) -> asking.Relevance:
    """No hit helps a question that does not say what it is about."""
    return asking.Relevance((0.0,) * len(hits), 1.0, reason=NAMELESS)
