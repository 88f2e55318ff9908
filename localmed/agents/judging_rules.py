"""The badge's criteria by rule, without a chat model: how near cited sentences are to the question, and the verdicts.

``related`` and ``answers``: the similarity of the question and the nearest cited sentence (read with its title and last
heading); in a language that the encoder does not know the share of the question's weight that the cited passages hold.
A question all of whose things one cited sentence names, with its title and headings and under whatever name, and to
which it gives the values asked for, is related, and answered where the similarity does not speak against it.
Unlikeness alone is no evidence: what is quoted is unrelated only where it speaks of another medicine, an opposite or
another age (``verification.scope``), and is not like the question either.
``grounded``: every sentence is a quotation or was shown to be supported when it was checked; one whose support was not
shown is not.

Thresholds were chosen on one half of LiveQA's test questions with human grades of MedQuAD's answers, and measured on
the other (tests/benchmarks/badges.py); ``MEASURED`` says what came out, for every reader of a badge. Chinese was not
measured, nor was what the names of a sentence add.
"""

from __future__ import annotations

from collections.abc import Sequence

from localmed.agents.judging import BADGE, JudgingInput
from localmed.agents.roles import Rules
from localmed.domain import BadgeJudge, Statement, Support
from localmed.library.lexical import LexicalIndex
from localmed.ports import Embedder
from localmed.retrieval.relevance import searched_text, weigh
from localmed.retrieval.signals import Query
from localmed.retrieval.topics import terms_of
from localmed.verification import scope
from localmed.verification.badge import Criteria, Vote

RULES = "rules"
COMPARED = 12  # cited sentences whose meaning is compared with the question's: 0.1 s on two cores
ANSWERS, RELATED = 0.6, 0.42  # least similarity: few false greens before few missed ones
ANSWERS_BY_WORDS, RELATED_BY_WORDS = 0.6, 0.4  # least share of the question's weight, where no similarity is known
NAMED = 0.95  # least share of the weight of a question's things that a cited sentence with its headings names
MEASURED = BadgeJudge(RULES, "MedQuAD", (("answers", 0.13),))  # on graded answers
_CARRIED = (Support.VERBATIM, Support.SUPPORTED)


class JudgingRules:
    """The role ``badge`` by rule."""

    def __init__(self, index: LexicalIndex, encoder: Embedder) -> None:
        """``index`` weighs words; ``encoder`` compares meanings in the languages it knows."""
        self._index, self._encoder = index, encoder

    def rules(self) -> Rules:
        """The role it serves."""
        return {BADGE.name: self.judge}

    def judge(self, task: JudgingInput) -> Vote:
        """The vote of the rules."""
        grounded = carried(task.statements)
        if task.language not in self._encoder.identity.languages:
            share, named = self._share(task), self._named(task)
            answers = share >= ANSWERS_BY_WORDS or named
            related = share >= RELATED_BY_WORDS or named or not self._against(task)
            return Vote(Criteria(answers, related, grounded), BadgeJudge(RULES))
        near, named = self._similarity(task), self._named(task)
        answers = near >= ANSWERS or (named and near >= RELATED)
        related = near >= RELATED or named or not self._against(task)
        return Vote(Criteria(answers, related, grounded), MEASURED)

    def _against(self, task: JudgingInput) -> bool:
        return scope.against(task.question, task.statements, task.evidence)

    def _named(self, task: JudgingInput) -> bool:
        """Whether a cited sentence with its title and headings names all that is asked about, and gives the values."""
        query = Query.of(task.question, self._index)
        passages = {piece.marker: piece.passage for piece in task.evidence}
        cited = [(passages[one.marker], one.quote) for statement in task.statements for one in statement.citations
                 if one.marker in passages]  # fmt: skip
        return any(
            query.fills(quote)
            and query.topics.coverage(terms_of(" ".join((passage.title, *passage.headings, quote)), self._index))
            >= NAMED
            for passage, quote in cited
        )

    def _share(self, task: JudgingInput) -> float:
        question = weigh(task.question, self._index)
        held = [term for piece in task.evidence for term in self._index.analyse(searched_text(piece.passage))]
        return question.coverage(held)

    def _similarity(self, task: JudgingInput) -> float:
        """Of the question and the cited sentence nearest to it; 0 where nothing is cited."""
        titles = {piece.marker: (piece.passage.title, *piece.passage.headings[-1:]) for piece in task.evidence}
        cited = dict.fromkeys(
            ". ".join((*titles[citation.marker], citation.quote))
            for statement in task.statements
            for citation in statement.citations
            if citation.marker in titles
        )
        texts = list(cited)[:COMPARED]
        if not texts:
            return 0.0
        vectors = self._encoder.encode([task.question, *texts], "passage")
        return float((vectors[1:] @ vectors[0]).max())


def carried(statements: Sequence[Statement]) -> bool:
    """Whether each of ``statements`` was quoted, or shown to be supported by what it cites; of none, no."""
    return bool(statements) and all(
        statement.verdict and statement.verdict.support in _CARRIED for statement in statements
    )
