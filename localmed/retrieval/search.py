"""Hybrid search over one open library: dense and lexical candidates, fused.

Dense search takes part only when the question's language is one the encoder knows; otherwise search is lexical and
says so. Any text is a valid question: one without a single searchable word finds nothing, which is not an error.

A search limited to a language that was not asked in goes across: by meaning, and by the names that a bilingual bridge
knows (``Bridge``). Its passages compete among themselves only: beside them those of the question's own language would
all come first.

Fusion is reciprocal rank fusion (Cormack, Clarke & Büttcher 2009) at two levels: passages, and the documents they come
from. Each index gives two rankings: its passages, and their documents by best passage. A passage scores the sum of
``weight / (k + rank)`` over all of them. Passages of one document otherwise crowd the list and push the right document
of the other index down: on MedQuAD's known items the second level raised MRR@10 by 0.07 on the questions it was chosen
on (docs/experiments.md).

The first fused passages are then ordered by the sentence, in its context of title and headings, that is nearest to the
question, with the fused score and the share of the question's rare words that the passage holds beside it. A telephone
extension or the number of a form that few of them hold comes first: meaning says nothing of it.
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

# Reranking: the first passages that fusion found are read again with the question, and put in a new order.
#
# The order is by the reranker's score together with the lexical and the fused one, each made comparable over the
# passages at hand (mean 0, deviation 1). The lexical score is what a reranker by meaning lacks: rare words that are the
# same. The weights were chosen on MedQuAD's tuning questions (docs/experiments.md). A passage that has a phrase of the
# question word for word stays at least where words ranked it. Passages further down keep their places.

PHRASE = 5  # words (pairs of Chinese characters) in a row that a passage has as the question has them
CONTENT = 3  # of them at least are no filler


def rerank(question: str, hits: Sequence[Hit], reranker: Reranker, settings: SearchSettings) -> tuple[Hit, ...]:
    """``hits`` with the first ``settings.rerank`` ones in their new order.

    A passage that the lexical search did not find counts as the lowest one that it did.
    """
    read, rest = hits[: settings.rerank], hits[settings.rerank :]
    scores = list(reranker.score(question, [hit.passage.in_context for hit in read], keep=True))
    parts = (
        (1.0, scores),
        (settings.rerank_lexical_weight, _lexical(read)),
        (settings.rerank_fused_weight, [hit.score for hit in read]),
    )
    order = _kept(best_first(parts), [_verbatim_rank(question, hit) for hit in read])
    return (*(replace(read[place], rerank_score=float(scores[place])) for place in order), *rest)


def best_first(parts: Sequence[tuple[float, Sequence[float]]]) -> list[int]:
    """The places by the sum of weighted scores, each made comparable; equal ones stay as they were."""
    weighted = [[weight * score for score in standardised(scores)] for weight, scores in parts]
    together = [sum(column) for column in zip(*weighted, strict=True)]
    return sorted(range(len(together)), key=lambda place: -together[place])


def _kept(order: Sequence[int], most: Sequence[int | None]) -> list[int]:
    """``order`` where no place stands further down than its entry in ``most`` allows; None allows all."""
    kept = list(order)
    for place in sorted(order, key=lambda place: (most[place] is None, most[place] or 0)):
        allowed = most[place]
        if allowed is not None and kept.index(place) > allowed:
            kept.remove(place)
            kept.insert(allowed, place)
    return kept


def _verbatim_rank(question: str, hit: Hit) -> int | None:
    """The lexical rank of a passage that has a phrase of ``question`` word for word; None of any other."""
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
    """``scores`` with mean 0 and standard deviation 1; all 0 where they are equal."""
    if not scores:
        return []
    mean, deviation = fmean(scores), pstdev(scores)
    return [(score - mean) / deviation if deviation else 0.0 for score in scores]


# --- the bilingual bridge ---------------------------------------------------------------------------------------------

# What a question names, under its names in another language. Names come from ``text/`` (medicines with their brands,
# synonyms), from the concept graph and from the site's own glossary, a table of two columns (``search.glossary``).
# Abbreviations and numbers are written alike in both languages. What no table knows is left to the encoder.

MOST = 64  # names of all that a question names: the lexical search reads no more
LOOKED_UP = 24  # words and runs of words that are looked up in the concept graph, a few microseconds each
RUN = 3  # words of a name in the concept graph, at most
GLOSSARY_BYTES = 4_000_000  # some 100,000 terms
_ALIKE = re.compile(r"(?<![A-Za-z])[A-Z][A-Za-z]{0,3}[A-Z0-9][A-Za-z0-9-]*|\d+(?:\.\d+)?")
_LATIN = re.compile(r"[A-Za-z][A-Za-z0-9-]+|\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Term:
    """Something that a question names as ``written``, and its ``names`` in the other language."""

    written: str
    names: tuple[str, ...]
    asking: bool = False  # what is asked of a thing ("dose"), no thing


class Bridge:
    """The names of one library and one site. Nothing is read before the first question across languages."""

    def __init__(self, graph: Callable[[], Graph] | None = None, glossary: str = "") -> None:
        """``glossary`` is the path of the site's table, "" for none."""
        self._graph, self._path = graph, glossary

    def terms(self, question: str, target: str) -> tuple[Term, ...]:
        """What ``question`` names, by its names in the language ``target``; what has none is left out."""
        by_name = dict[str, Term]()
        for term in self._named(question):
            fitting = tuple(name for name in term.names if _is_in(name, target))
            before = by_name.get(term.written)
            if fitting:
                names = dict.fromkeys((*(before.names if before else ()), *fitting))
                by_name[term.written] = Term(term.written, tuple(names), term.asking)
        return tuple(by_name.values())

    def words(self, question: str, target: str) -> str:
        """The words by which ``question`` is searched in the language ``target``."""
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
        """The site's own terms, each with its other names."""
        return self._glossary[1]

    @property
    def _glossary(self) -> tuple[Names, dict[str, tuple[str, ...]]]:
        path = Path(self._path)
        return _read_glossary(self._path, path.stat().st_mtime_ns if self._path and path.is_file() else 0)


@lru_cache(maxsize=2)
def _read_glossary(path: str, changed: int) -> tuple[Names, dict[str, tuple[str, ...]]]:
    """The site's table, last ``changed`` then, by each name; raise ``BadSettings`` for a file that is none."""
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
    """The words of ``question`` and those that follow one another, longest first."""
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

# An extension, a form's number ("6152", "px-417"). Years, numbers with decimals and amounts ("1000 mg") are none.
_CODE = re.compile(r"(?<![\w.,/-])(?:(?!(?:19|20)\d\d\b)\d{4,}|[a-z]{1,5}-\d{2,}[a-z]?)(?!\w|[.,]\d)", re.ASCII)
MOST_CODED = 5  # passages that hold a code of the question; what more of them hold does not single one out
MOST_NAMES = 60  # of a thing: a medicine with all its brands, a class with its members
Rows = list[tuple[str, str, float]]  # (passage, document, score), best first
Ranking = Sequence[tuple[str, str]]  # (passage, document), best first


class HybridSearch:
    """One-method search; holds nothing of one question for the next."""

    def __init__(
        self, library: Library, encoder: Embedder, settings: SearchSettings, reranker: Reranker | None = None
    ) -> None:
        """Search ``library``, whose vectors must be ``encoder``'s (raise ``WrongEncoder`` if not)."""
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
        """The best ``limit`` passages for ``question``, best first.

        Without ``reranked`` in the order of the fused rankings, which a window shows at once; by words alone where the
        encoder does not answer, so that a window finds passages while its models are down. How the question was
        ``read`` is searched for besides.
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
        # One by meaning knows the encoder's languages, but ranks those of another no better than the fusion does.
        reranker = self._reranker if known and reranked and not across else None
        near: float | None = None
        taken = max(limit, settings.rerank if reranker else 0, settings.sentences if vector is not None else 0)
        hits = self._hits(fused[:taken], lexical, _merged(dense, besides))
        if vector is not None and settings.dense_weight and settings.sentences and not across:
            questions = np.stack([vector] if written_out is None else [vector, written_out])
            hits, near = self._by_sentence(f"{text} {further}", questions, hits)
        if reranker:  # whose first hit is another: limits of its scores were measured of none
            hits, near = rerank(read.written_out or text if read else text, hits, reranker, settings), None
        hits = hits[:limit]
        use_dense = vector is not None and bool(settings.dense_weight)
        closeness = said(near, self._encoder.identity.name, settings)
        return Found(hits, use_dense, spoken, reranker.name if reranker else "", closeness, near)

    def similarities(self, read: Question, passages: Sequence[str]) -> Mapping[str, Sequence[float]]:
        """How near each line of ``passages`` is to the question as it was ``read``; {} where nobody can tell."""
        texts = [one[: self._settings.query_characters] for one in (read.typed, read.written_out) if one]
        if language.detect(read.typed) not in self._encoder.identity.languages:
            return {}
        with suppress(ModelError):
            return self._library.sentence_similarities(self._encoder.encode(texts, "query"), passages)
        return {}

    def _by_sentence(
        self, text: str, questions: Vectors, hits: tuple[Hit, ...]
    ) -> tuple[tuple[Hit, ...], float | None]:
        """``hits`` with the first ones in the order of the sentence nearest to one of ``questions`` (Q, D).

        And how near the first one is (``closeness``); None where the library keeps no sentences.
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
        """The question's vector (D), and its token weights where they count."""
        if not self._settings.sparse_weight:
            return self._encoder.encode([question], "query")[0], {}
        vectors, weights = encode_both(self._encoder, [question], "query")
        return vectors[0], weights[0]

    def _both(self, named: str, vector: Vectors | None, number: int, filters: SearchFilter) -> tuple[Rows, Rows]:
        """The best passages by words and, where there is a vector, by meaning; an index of weight 0 is not asked."""
        settings, lexical, dense = self._settings, [], []
        if settings.lexical_weight and named:
            boost, terms = settings.title_boost, settings.query_terms
            lexical = self._library.search_lexical(named, number, filters, boost, terms)
        if settings.dense_weight and vector is not None:
            dense = self._library.search_dense(vector, number, filters)
        return lexical, dense

    def _hits(self, fused: list[tuple[str, float]], lexical: Rows, dense: Rows) -> tuple[Hit, ...]:
        """The hits, each with its ranks and scores by words and by meaning; one that lacks a ranking has -1 there."""
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
    """The places of ``hits`` that hold a code of the question ``text``; none where too many do."""
    asked = _codes(text)
    held = {place for place, hit in enumerate(hits) if asked & _codes(searched_text(hit.passage))} if asked else set()
    return held if len(held) <= MOST_CODED else set()


def _codes(text: str) -> set[str]:
    return set(_CODE.findall(dose(counted=True).sub(" ", text.lower())))


def other_names(question: str, index: LexicalIndex) -> str:
    """The names that the library has of what it does not know by the name in ``question``, "" where there are none.

    In the question's language only.
    """
    unknown = (named for named in synonyms.named(question) if not named.asking and not index.holds(named.written))
    names = (name for named in unknown for name in named.names[:MOST_NAMES] if detect(name) == detect(named.written))
    return " ".join(name for name in names if index.holds(name))


def _merged(rows: Rows, further: Rows) -> Rows:
    """``rows``, then those of ``further`` that are not among them."""
    known = {passage for passage, _, _ in rows}
    return [*rows, *(row for row in further if row[0] not in known)]


# --- fusion -----------------------------------------------------------------------------------------------------------


def fuse(rankings: Sequence[tuple[Ranking, float]], k: int) -> list[tuple[str, float]]:
    """Fuse weighted rankings into ``(passage, score)``, best first; ties by passage id, so the order never varies."""
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
