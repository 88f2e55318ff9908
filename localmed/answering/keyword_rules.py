"""Keywords without a chat model: n-grams that the library holds, by rarity and likeness to the question (LINS, KEA)."""

from __future__ import annotations

from dataclasses import replace

from localmed.answering.asking import KEYWORDS, Keywords, KeywordsInput
from localmed.answering.roles import Rules
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
