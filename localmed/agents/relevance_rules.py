"""Relevance (LINS, PRA) without a language model: the fitted judge of ``retrieval.relevance`` as a role."""

from __future__ import annotations

from dataclasses import replace

from localmed.agents import asking
from localmed.agents.roles import Rules
from localmed.config import AskSettings
from localmed.library.lexical import LexicalIndex
from localmed.retrieval.relevance import fitted, judged, reason


class RelevanceRules:
    """Whether passages hold an answer, by signals of the words and the reranker's score."""

    def __init__(self, index: LexicalIndex, encoder: str, settings: AskSettings) -> None:
        """``index`` weighs words; ``encoder`` is the slug of the one whose similarities hits carry."""
        self._index, self._encoder, self._settings = index, encoder, settings

    def rules(self) -> Rules:
        """The roles it serves."""
        return {asking.RELEVANCE.name: self.judge}

    def judge(self, task: asking.RelevanceInput) -> asking.Relevance:
        """How likely each hit holds an answer, and why none does."""
        judge = fitted(self._encoder if task.dense else "", task.reranker, task.language)
        read = judged(task.question, task.hits, self._index, judge)
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
