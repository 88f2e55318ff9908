"""Keywords without a chat model: n-grams that the library holds, by rarity and likeness to the question (LINS, KEA).

And source planning: the question and its keywords go to every source there is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from localmed.answering import planning
from localmed.answering.asking import KEYWORDS, Keywords, KeywordsInput, QuestionInput
from localmed.answering.roles import Rules
from localmed.answering.source_plan import GRAPH, QUESTION_CHARACTERS, SOURCES, SourcePlan
from localmed.domain.ports import Embedder
from localmed.library.lexical import LexicalIndex
from localmed.retrieval.keywords import BOUND, NGram, candidates, outermost, ranked
from localmed.text import language

READ = 4_000  # characters of a question that keywords are taken from; as many as a search reads


class KeywordRules:
    """The role of keywords by rule, over one library."""

    def __init__(self, index: LexicalIndex, encoder: Embedder, compared: int) -> None:
        """``compared`` n-grams are encoded to rank them."""
        self._index, self._encoder, self._compare = index, encoder, compared

    def rules(self) -> Rules:
        """The roles it serves."""
        return {KEYWORDS.name: self.extract}

    def extract(self, task: KeywordsInput) -> Keywords:
        """N-grams that the library holds, by rarity and likeness to the question."""
        question = task.question[:READ]
        known = [candidate for candidate in candidates(question) if self._index.holds(candidate)]
        terms = [self._weighed(text) for text in known if " " not in text or self._index.binding(text) >= BOUND]
        grams = outermost(terms, self._compare)
        if grams and language.detect(question) in self._encoder.identity.languages:
            # The question alone, as a search reads it: beside others its vector has other last bits.
            vector = self._encoder.encode([question], "query")[0]
            similarities = self._encoder.encode([gram.text for gram in grams], "query") @ vector
            grams = [replace(gram, similarity=float(near)) for gram, near in zip(grams, similarities, strict=True)]
        unknown = [term for term in dict.fromkeys(language.content_words(question)) if not self._index.holds(term)]
        return Keywords(ranked(grams, task.most), tuple(unknown))

    def _weighed(self, text: str) -> NGram:
        terms = tuple(self._index.analyse(text, for_query=True))
        return NGram(text, terms, sum(self._index.rarity(terms)) / len(terms))


# --- source planning --------------------------------------------------------------------------------------------------


def planning_rules(keywords: Callable[[KeywordsInput], Keywords]) -> Rules:
    """The roles of planning; ``keywords`` is what names a question's keywords."""

    def terms(task: QuestionInput) -> tuple[str, ...]:
        return keywords(KeywordsInput(task.question, planning.TERMS)).words[: planning.TERMS]

    def plan(task: planning.PlanInput) -> SourcePlan:
        named = terms(task)
        question = task.question[:QUESTION_CHARACTERS]
        queries = tuple(dict.fromkeys((question, " ".join(named)))) if named else (question,)
        chosen = {source: queries for source in SOURCES if source in task.sources}
        pairs = tuple((term, question) for term in named) if GRAPH in task.sources else ()
        return SourcePlan(**chosen, graph=pairs)

    return {
        planning.PLAN.name: plan,
        planning.GRAPH_TERMS.name: terms,
        planning.PSEUDO_DOCUMENT.name: pseudo_document,
        planning.FEEDBACK.name: feedback,
    }


def pseudo_document(task: planning.PseudoInput) -> str:
    """Without a model nothing is made up: the question stands for itself."""
    return task.question


def feedback(task: planning.FoundInput) -> planning.Feedback:
    """The score is the relevance of the best passage; rules have nothing to suggest."""
    return planning.Feedback(round(planning.BEST * task.probability))
