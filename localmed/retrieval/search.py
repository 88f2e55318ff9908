"""Hybrid search over one open library: dense and lexical candidates, fused.

Dense search needs a question in a language of the encoder; otherwise search is lexical and the result says so. A text
without searchable words finds nothing and is no error.

A search limited to another language than the question's uses meaning and the names of a bilingual ``Bridge``. Its
passages compete only with each other: otherwise those in the question's language would all come first.

Fusion is reciprocal rank fusion (Cormack, Clarke & Büttcher 2009) of passages and of their documents. Each index gives
two rankings: its passages, and their documents by best passage. A passage scores the sum of ``weight / (k + rank)``
over all rankings. Without the second level the passages of one document crowd the list; it raised MRR@10 on MedQuAD's
known items by 0.07 on the questions it was chosen on (docs/experiments.md).

The first fused passages are then sorted by their nearest sentence in the context of title and headings, combined with
the fused score and the share of the question's rare words. A telephone extension or form number that few passages have
comes first: the encoder does not see it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

import numpy as np

from localmed.config import SearchSettings
from localmed.domain import Hit, SearchFilter
from localmed.domain.errors import BadSettings, ModelError
from localmed.domain.findings import Found
from localmed.domain.ports import Embedder, Reranker, encode_both
from localmed.library.graph import Graph
from localmed.library.lexical import LexicalIndex
from localmed.library.library import Library
from localmed.library.reading import missing
from localmed.process import hooks
from localmed.process.files import contents
from localmed.retrieval.closeness import HELD, said
from localmed.retrieval.weights import of_terms, searched_text
from localmed.text import language, synonyms
from localmed.text.language import detect, question_words, words
from localmed.text.tables import Names, key
from localmed.text.units import dose

if TYPE_CHECKING:
    from localmed.domain.findings import Question
    from localmed.domain.ports import Vectors, Weights

# --- rerank -----------------------------------------------------------------------------------------------------------

# The first fused passages are sorted by the reranker's, the lexical and the fused score, each standardised (mean 0,
# deviation 1). The lexical score adds identical rare words. The weights were chosen on MedQuAD's tuning questions
# (docs/experiments.md). A passage with a phrase of the question word for word keeps at least its lexical rank.

PHRASE = 5  # consecutive words (pairs of Chinese characters) of the question in a passage
CONTENT = 3  # least number of content words among them


def rerank(question: str, hits: Sequence[Hit], reranker: Reranker, settings: SearchSettings) -> tuple[Hit, ...]:
    """``hits`` with the first ``settings.rerank`` in a new order.

    A passage that lexical search did not find gets the lowest lexical score.
    """
    read, rest = hits[: settings.rerank], hits[settings.rerank :]
    scores = list(reranker.score(question, [hit.passage.in_context for hit in read], keep=True))
    parts = (
        (1.0, scores),
        (settings.rerank_lexical_weight, _lexical(read)),
        (settings.rerank_fused_weight, [hit.score for hit in read]),
    )
    order = _keep_ranks(best_first(parts), [_verbatim_rank(question, hit) for hit in read])
    return (*(replace(read[place], rerank_score=float(scores[place])) for place in order), *rest)


def best_first(parts: Sequence[tuple[float, Sequence[float]]]) -> list[int]:
    """The places sorted by the sum of weighted standardised scores; stable."""
    weighted = [[weight * score for score in standardised(scores)] for weight, scores in parts]
    together = [sum(column) for column in zip(*weighted, strict=True)]
    return sorted(range(len(together)), key=lambda place: -together[place])


def _keep_ranks(order: Sequence[int], most: Sequence[int | None]) -> list[int]:
    """``order`` with no place below its limit in ``most``; ``None`` is no limit."""
    kept = list(order)
    for place in sorted(order, key=lambda place: (most[place] is None, most[place] or 0)):
        allowed = most[place]
        if allowed is not None and kept.index(place) > allowed:
            kept.remove(place)
            kept.insert(allowed, place)
    return kept


def _verbatim_rank(question: str, hit: Hit) -> int | None:
    """The lexical rank of a passage with a phrase of ``question`` word for word, or ``None``."""
    if hit.lexical_rank < 0:
        return None
    terms, content = words(question, for_query=True), set(question_words(question))
    held = f" {' '.join(words(hit.passage.text, for_query=True))} "
    phrases = (terms[at : at + PHRASE] for at in range(len(terms) - PHRASE + 1))
    verbatim = any(len(content.intersection(one)) >= CONTENT and f" {' '.join(one)} " in held for one in phrases)
    return hit.lexical_rank if verbatim else None


def _lexical(hits: Sequence[Hit]) -> list[float]:
    lowest = min((hit.lexical_score for hit in hits if hit.lexical_score is not None), default=0.0)
    return [lowest if hit.lexical_score is None else hit.lexical_score for hit in hits]


def standardised(scores: Sequence[float]) -> list[float]:
    """``scores`` with mean 0 and standard deviation 1; all 0 if they are equal."""
    if not scores:
        return []
    mean, deviation = fmean(scores), pstdev(scores)
    return [(score - mean) / deviation if deviation else 0.0 for score in scores]


# --- the bilingual bridge ---------------------------------------------------------------------------------------------

# Translates the terms of a question. Names come from ``text/`` (medicines with brands, synonyms), the concept graph and
# the site's glossary, a table of two columns (``search.glossary``). Abbreviations and numbers are the same in both
# languages. Unknown terms are left to the encoder.

MOST = 64  # names for one question: lexical search reads no more
LOOKED_UP = 24  # words and runs of words looked up in the concept graph, a few microseconds each
RUN = 3  # words of a name in the concept graph at most
GLOSSARY_BYTES = 4_000_000  # some 100,000 terms
_ALIKE = re.compile(r"(?<![A-Za-z])[A-Z][A-Za-z]{0,3}[A-Z0-9][A-Za-z0-9-]*|\d+(?:\.\d+)?")
_LATIN = re.compile(r"[A-Za-z][A-Za-z0-9-]+|\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Term:
    """A term as ``written`` in a question, and its ``names`` in the other language."""

    written: str
    names: tuple[str, ...]
    asking: bool = False  # an aspect ("dose"), not a thing


class Bridge:
    """The names of one library and one site, read at the first question across languages."""

    def __init__(self, graph: Callable[[], Graph] | None = None, glossary: str = "") -> None:
        """``glossary``: path of the site's table, or ""."""
        self._graph, self._path = graph, glossary

    def terms(self, question: str, target: str) -> tuple[Term, ...]:
        """The terms of ``question`` that have names in the language ``target``."""
        by_name = dict[str, Term]()
        for term in self._named(question):
            fitting = tuple(name for name in term.names if _is_in(name, target))
            before = by_name.get(term.written)
            if fitting:
                names = dict.fromkeys((*(before.names if before else ()), *fitting))
                by_name[term.written] = Term(term.written, tuple(names), term.asking)
        return tuple(by_name.values())

    def words(self, question: str, target: str) -> str:
        """The words to search for ``question`` in the language ``target``."""
        names = [name for term in self.terms(question, target) for name in term.names][:MOST]
        alike = (_LATIN if target == "en" else _ALIKE).findall(question)
        return " ".join(dict.fromkeys((*names, *alike)))

    def _named(self, question: str) -> Iterator[Term]:
        for thing in synonyms.named(question):
            yield Term(thing.written, thing.names, thing.asking)
        folded, (table, rows) = language.fold(question), self._glossary
        for match in table.matches(folded):
            yield Term(match.name, rows[match.name])
        yield from self._of_graph(question)

    def _of_graph(self, question: str) -> Iterator[Term]:
        graph = self._graph() if self._graph else None
        if graph is None or not graph.counts():
            return
        for run in _runs(question)[:LOOKED_UP]:
            for concept, _ in graph.find(run)[:1]:
                known = graph.concept(concept)
                yield Term(run, tuple(name.text for name in known.names) if known else ())

    @property
    def own_terms(self) -> Mapping[str, tuple[str, ...]]:
        """The site's terms with their other names."""
        return self._glossary[1]

    @property
    def _glossary(self) -> tuple[Names, dict[str, tuple[str, ...]]]:
        path = Path(self._path)
        return _read_glossary(self._path, path.stat().st_mtime_ns if self._path and path.is_file() else 0)


@lru_cache(maxsize=2)
def _read_glossary(path: str, changed: int) -> tuple[Names, dict[str, tuple[str, ...]]]:
    """The site's glossary by name; ``changed`` keys the cache. Raise ``BadSettings`` if unreadable."""
    del changed
    rows: dict[str, tuple[str, ...]] = {}
    for pair in _pairs(path) if path else ():
        for one, other in (pair, pair[::-1]):
            name = key(language.fold(one))
            rows[name] = (*rows.get(name, ()), other)
    return Names(rows), rows


def _pairs(path: str) -> list[tuple[str, str]]:
    try:
        text = contents(Path(path), GLOSSARY_BYTES).decode("utf-8-sig")
        rows = csv.reader(text.splitlines(), delimiter="\t" if "\t" in text else ",")
        return [(one, other) for row in rows if len(row) >= 2 and (one := row[0].strip()) and (other := row[1].strip())]
    except (UnicodeDecodeError, csv.Error):
        raise BadSettings("settings.glossary", path=path) from None


def _runs(question: str) -> list[str]:
    """Runs of consecutive words of ``question``, longest first."""
    words = language.content_words(language.fold(question))
    between = "" if language.detect(question) == "zh" else " "
    return [
        between.join(words[start : start + length])
        for length in range(RUN, 0, -1)
        for start in range(len(words) - length + 1)
    ]


def _is_in(name: str, target: str) -> bool:
    return language.detect(name) == target


# --- search -----------------------------------------------------------------------------------------------------------

# Extensions and form numbers ("6152", "px-417"), not years, decimals or amounts ("1000 mg").
_CODE = re.compile(r"(?<![\w.,/-])(?:(?!(?:19|20)\d\d\b)\d{4,}|[a-z]{1,5}-\d{2,}[a-z]?)(?!\w|[.,]\d)", re.ASCII)
MOST_CODED = 5  # passages with a code of the question; a code in more of them does not single one out
MOST_NAMES = 60  # of one term: a medicine with all brands, a class with its members
Rows = list[tuple[str, str, float]]  # (passage, document, score), best first
Ranking = Sequence[tuple[str, str]]  # (passage, document), best first


class HybridSearch:
    """Hybrid search; keeps nothing between questions."""

    def __init__(
        self, library: Library, encoder: Embedder, settings: SearchSettings, reranker: Reranker | None = None
    ) -> None:
        """Raise ``WrongEncoder`` if the vectors of ``library`` are another encoder's."""
        self.bridge = Bridge(lambda: library.graph, settings.glossary)
        library.require(encoder.identity)
        self._library, self._encoder, self._settings, self._reranker = library, encoder, settings, reranker

    def search(
        self,
        question: str,
        filters: SearchFilter,
        limit: int,
        reranked: bool = True,
        read: Question | None = None,
    ) -> Found:
        """The best ``limit`` passages for ``question`` as it was ``read``, best first.

        Without ``reranked`` in fused order, which a window shows at once, and by words alone if the encoder fails.
        """
        settings = self._settings
        text = question[: settings.query_characters]
        spoken = language.detect(text)
        number = max(settings.candidates, limit)
        across = filters.language if filters.language not in ("", spoken) else ""
        known = {spoken, across or spoken} <= {*self._encoder.identity.languages} and bool(language.words(text))
        further = read.further if read else ""
        own = "" if across else f"{text} {other_names(text, self._library.lexical)} {further}"
        named = self.bridge.words(f"{text} {further}", across) if across else own
        vector: Vectors | None = None
        written_out: Vectors | None = None
        weights: Weights = {}
        with nullcontext() if reranked else suppress(ModelError):
            vector, weights = self._encoded(text) if known else (None, {})
            if known and read and read.written_out:
                written_out = self._encoder.encode([read.written_out[: settings.query_characters]], "query")[0]
        hooks.check()
        lexical, dense = self._both(named, vector, number, filters)
        besides = self._both("", written_out, number, filters)[1]
        weighted = (
            (lexical, settings.lexical_weight),
            (dense, settings.dense_weight),
            (besides, settings.dense_weight),
            (self._library.search_sparse(weights, number, filters) if weights else [], settings.sparse_weight),
        )
        rankings = [([(passage, document) for passage, document, _ in rows], weight) for rows, weight in weighted]
        fused = fuse(rankings, settings.rrf_k)
        # Across languages a reranker is no better than the fusion.
        reranker = self._reranker if known and reranked and not across else None
        near: float | None = None
        taken = max(limit, settings.rerank if reranker else 0, settings.sentences if vector is not None else 0)
        hits = self._hits(fused[:taken], lexical, _merged(dense, besides))
        if vector is not None and settings.dense_weight and settings.sentences and not across:
            questions = np.stack([vector] if written_out is None else [vector, written_out])
            hits, near = self._by_sentence(f"{text} {further}", questions, hits)
        if reranker:  # its scores have no measured limits
            hits, near = rerank(read.written_out or text if read else text, hits, reranker, settings), None
        hits = hits[:limit]
        use_dense = vector is not None and bool(settings.dense_weight)
        closeness = said(near, self._encoder.identity.name, settings)
        return Found(hits, use_dense, spoken, reranker.name if reranker else "", closeness, near)

    def similarities(self, read: Question, passages: Sequence[str]) -> Mapping[str, Sequence[float]]:
        """The similarities of each passage's lines to the question; {} if the encoder lacks its language or fails."""
        texts = [one[: self._settings.query_characters] for one in (read.typed, read.written_out) if one]
        if language.detect(read.typed) not in self._encoder.identity.languages:
            return {}
        with suppress(ModelError):
            return self._library.sentence_similarities(self._encoder.encode(texts, "query"), passages)
        return {}

    def _by_sentence(
        self, text: str, questions: Vectors, hits: tuple[Hit, ...]
    ) -> tuple[tuple[Hit, ...], float | None]:
        """``hits`` with the first ones sorted by the sentence nearest to one of ``questions`` (Q, D).

        Also the score of the first (``closeness``), ``None`` for a library without sentences.
        """
        settings, index = self._settings, self._library.lexical
        near, rest = hits[: settings.sentences], hits[settings.sentences :]
        found = self._library.sentence_similarities(questions, [hit.passage.id for hit in near])
        if not found:
            return hits, None
        nearest = [max(found.get(hit.passage.id, ()), default=hit.similarity or 0.0) for hit in near]
        weights = of_terms(text, index)
        held = [weights.coverage(index.analyse(searched_text(hit.passage))) for hit in near]
        parts = (
            (1.0, nearest),
            (settings.sentence_fused_weight, [hit.score for hit in near]),
            (settings.sentence_words_weight, held),
        )
        coded = _coded(text, near)
        order = sorted(best_first(parts), key=lambda place: place not in coded)
        ordered = (*(replace(near[place], nearest=nearest[place]) for place in order), *rest)
        return ordered, nearest[order[0]] + HELD * held[order[0]] if order else None

    def _encoded(self, question: str) -> tuple[Vectors, Weights]:
        """The question's vector (D), and its token weights if the settings use them."""
        if not self._settings.sparse_weight:
            return self._encoder.encode([question], "query")[0], {}
        vectors, weights = encode_both(self._encoder, [question], "query")
        return vectors[0], weights[0]

    def _both(self, named: str, vector: Vectors | None, number: int, filters: SearchFilter) -> tuple[Rows, Rows]:
        """The best passages by words and by meaning; an index of weight 0 is not searched."""
        settings, lexical, dense = self._settings, [], []
        if settings.lexical_weight and named:
            boost, terms = settings.title_boost, settings.query_terms
            lexical = self._library.search_lexical(named, number, filters, boost, terms)
        if settings.dense_weight and vector is not None:
            dense = self._library.search_dense(vector, number, filters)
        return lexical, dense

    def _hits(self, fused: list[tuple[str, float]], lexical: Rows, dense: Rows) -> tuple[Hit, ...]:
        """The hits with ranks and scores by words and by meaning; rank -1 for a missing one."""
        passages = self._library.passages([passage for passage, _ in fused])
        by_words, by_meaning = (
            {passage: (rank, score) for rank, (passage, _, score) in enumerate(rows)} for rows in (lexical, dense)
        )
        hits = []
        for passage, score in fused:
            lexical_rank, lexical_score = by_words.get(passage, (-1, None))
            dense_rank, similarity = by_meaning.get(passage, (-1, None))
            if passage not in passages:
                raise missing(self._library.path, passage)
            hits.append(Hit(passages[passage], score, similarity, dense_rank, lexical_rank, lexical_score))
        return tuple(hits)


def _coded(text: str, hits: Sequence[Hit]) -> set[int]:
    """The places of ``hits`` with a code of the question ``text``; none if there are too many."""
    asked = _codes(text)
    held = {place for place, hit in enumerate(hits) if asked & _codes(searched_text(hit.passage))} if asked else set()
    return held if len(held) <= MOST_CODED else set()


def _codes(text: str) -> set[str]:
    return set(_CODE.findall(dose(counted=True).sub(" ", text.lower())))


def other_names(question: str, index: LexicalIndex) -> str:
    """Other names that the library has for terms of ``question`` that it lacks, in the question's language."""
    unknown = (named for named in synonyms.named(question) if not named.asking and not index.holds(named.written))
    names = (name for named in unknown for name in named.names[:MOST_NAMES] if detect(name) == detect(named.written))
    return " ".join(name for name in names if index.holds(name))


def _merged(rows: Rows, further: Rows) -> Rows:
    """``rows``, then those of ``further`` that they lack."""
    known = {passage for passage, _, _ in rows}
    return [*rows, *(row for row in further if row[0] not in known)]


# --- fusion -----------------------------------------------------------------------------------------------------------


def fuse(rankings: Sequence[tuple[Ranking, float]], k: int) -> list[tuple[str, float]]:
    """Fuse weighted rankings into ``(passage, score)``, best first; ties by passage id."""
    scores: dict[str, float] = {}
    documents: dict[str, float] = {}
    owner: dict[str, str] = {}
    for ranking, weight in rankings:
        for rank, (passage, document) in enumerate(ranking, 1):
            scores[passage] = scores.get(passage, 0.0) + weight / (k + rank)
            owner[passage] = document
        for rank, document in enumerate(dict.fromkeys(document for _, document in ranking), 1):
            documents[document] = documents.get(document, 0.0) + weight / (k + rank)
    total: Mapping[str, float] = {passage: score + documents[owner[passage]] for passage, score in scores.items()}
    return sorted(total.items(), key=lambda pair: (-pair[1], pair[0]))
