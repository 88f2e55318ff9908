"""The lexical index: Tantivy, BM25 (Robertson & Zaragoza 2009) over title and text. It also stores the passages.

Passages are stored only here: Tantivy's document store is compressed, immutable (generations share it by hard link) and
answers twenty lookups by id in about a millisecond. Words come from ``language.words``; the analyser below adds English
stemming and stop words. Queries are built from terms, never parsed, so any text is a valid query.

For a reader with hidden collections all statistics cover the readable collections only: term frequencies are counted
within them, and scores are recomputed (``_rescored``), because Tantivy's cover the whole index.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from math import log
from pathlib import Path
from typing import Any

import tantivy

from localmed.domain import Box, Passage, SearchFilter, Span
from localmed.domain.errors import UnreadableIndex
from localmed.library.tantivy_index import RAW, TantivyIndex, Writer, raw_fields, raw_values
from localmed.text.language import content_words, question_words, words
from localmed.text.spelling import allowed, errors, is_near

ANALYSER = "localmed_words"
LONGEST_WORD = 60  # characters; longer runs are base64, sequences or noise
K1, B = 1.2, 0.75  # of BM25, as Tantivy has them
SPELT = 20  # passages that are read for the spelling of a word
RESCORED = 500  # passages, half a millisecond each; the rest keep their order


class LexicalIndex(TantivyIndex):
    """One index folder, opened for reading; ``writer`` opens it for writing (in a generation being built)."""

    def __init__(self, folder: Path, within: Sequence[str] | None = None, make: bool = False) -> None:
        """Open the index in ``folder``; with ``make``, create an empty one if the folder is empty or missing."""
        if make:
            folder.mkdir(parents=True, exist_ok=True)
        builder = tantivy.SchemaBuilder()
        raw_fields(builder)
        builder.add_text_field("title", tokenizer_name=ANALYSER, index_option="freq")
        builder.add_text_field("text", tokenizer_name=ANALYSER, index_option="position")
        builder.add_bytes_field("body", stored=True)
        super().__init__("lexical", folder, builder.build(), within, make)
        chain = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
        chain = chain.filter(tantivy.Filter.remove_long(LONGEST_WORD)).filter(tantivy.Filter.ascii_fold())
        chain = chain.filter(tantivy.Filter.stopword("english")).filter(tantivy.Filter.stemmer("english"))
        self._analyser = chain.build()
        self._counts: dict[tuple[str, str], int] = {}  # readable passages by field and term
        self._index.register_tokenizer(ANALYSER, self._analyser)

    def writer(self, memory: int) -> LexicalWriter:
        """Return a writer with a heap of ``memory`` bytes; raise ``Busy`` if there is one already."""
        return LexicalWriter(self._writer(memory))

    def search(
        self, question: str, limit: int, filters: SearchFilter, title_boost: float, most_terms: int
    ) -> list[tuple[str, str, float]]:
        """Return the best ``limit`` passages as ``(id, document, BM25 score)``, best first."""
        query = self.query(question, filters, title_boost, most_terms)
        if query is None or limit < 1:
            return []
        return self._rescored(query, self.terms(question, most_terms), limit, title_boost)

    def query(self, question: str, filters: SearchFilter, title_boost: float, most_terms: int) -> tantivy.Query | None:
        """Return the query that ``search`` runs; ``None`` if the index has no word of the question."""
        terms = self.terms(question, most_terms)
        if not terms:
            return None
        should = tantivy.Occur.Should
        parts = [(should, self._term("text", term)) for term in terms]
        parts += [(should, tantivy.Query.boost_query(self._term("title", term), title_boost)) for term in terms]
        return self._limited(tantivy.Query.boolean_query(parts), filters)

    def search_all(
        self, keywords: Sequence[str], limit: int, filters: SearchFilter, title_boost: float
    ) -> list[tuple[str, str, float]]:
        """Search for passages that contain every term of every one of ``keywords`` in text or title."""
        terms = list(dict.fromkeys(term for keyword in keywords for term in self.analyse(keyword, for_query=True)))
        if not terms or limit < 1:
            return []
        should, must = tantivy.Occur.Should, []
        for term in terms:
            title = tantivy.Query.boost_query(self._term("title", term), title_boost)
            either = tantivy.Query.boolean_query([(should, self._term("text", term)), (should, title)])
            must.append((tantivy.Occur.Must, either))
        return self._rescored(self._limited(tantivy.Query.boolean_query(must), filters), terms, limit, title_boost)

    def _rescored(
        self, query: tantivy.Query, terms: Sequence[str], limit: int, title_boost: float
    ) -> list[tuple[str, str, float]]:
        """Return the best passages of ``query`` about ``terms``, scored by readable passages only."""
        if self._within is None:
            return self._best(query, limit)
        rows = self._best(query, 2 * limit)
        passages = self.passages([row[0] for row in rows[:RESCORED]])
        texts = {name: self.analyse(passage.text) for name, passage in passages.items()}
        titles = {name: self.analyse(" ".join((it.title, *it.headings))) for name, it in passages.items()}
        scores = self._bm25("text", terms, texts)
        for name, score in self._bm25("title", terms, titles).items():
            scores[name] += title_boost * score
        least = min(scores.values(), default=0.0)
        again = [(name, document, scores.get(name, least)) for name, document, _ in rows]
        return sorted(again, key=lambda row: -row[2])[:limit]

    def _bm25(self, field: str, terms: Sequence[str], texts: Mapping[str, list[str]]) -> dict[str, float]:
        """Return the score of each of ``texts`` (their terms); their mean length approximates that of all passages."""
        mean = sum(map(len, texts.values())) / max(len(texts), 1) or 1.0
        weights = {term: self._rarity(self._frequency(field, term)) for term in terms}
        scores = {}
        for name, words_held in texts.items():
            counts, norm = Counter(words_held), K1 * (1 - B + B * len(words_held) / mean)
            scores[name] = sum(
                weight * counts[term] * (K1 + 1) / (counts[term] + norm) for term, weight in weights.items()
            )
        return scores

    def _frequency(self, field: str, term: str) -> int:
        if self._within is None:
            return int(self._searcher.doc_freq(field, term))
        if (field, term) not in self._counts:
            query = self._limited(self._term(field, term), SearchFilter())
            count = int(self._searcher.search(query, limit=1, count=True).count or 0)
            if not count:
                return 0  # not cached: an unknown word may be a patient's name
            self._counts[field, term] = count
        return self._counts[field, term]

    @property
    def _readable(self) -> int:
        if self._within is None:
            return len(self)
        if ("", "") not in self._counts:
            self._counts["", ""] = sum(self.count("collection", name) for name in self._within)
        return self._counts["", ""]

    def _rarity(self, count: int) -> float:
        total = max(self._readable, 1)
        return log(1 + (total - count + 0.5) / (count + 0.5))

    def holds(self, keyword: str) -> bool:
        """Whether ``keyword`` has terms and each occurs in the index."""
        terms = self.analyse(keyword, for_query=True)
        return bool(terms) and all(self._frequency("text", term) or self._frequency("title", term) for term in terms)

    def spelling(self, word: str) -> str:
        """Return the likely spelling of ``word`` (lower case, Latin) in a passage or above it; "" if it occurs itself
        or nothing is near.
        """
        stem = next(iter(self.analyse(word)), "")
        if not stem or self.holds(word):
            return ""
        for most in range(1, allowed(word) + 1):
            queries = [
                tantivy.Query.fuzzy_term_query(self._schema, field, stem, distance=most) for field in ("text", "title")
            ]
            rows = [row for query in queries for row in self._best(self._limited(query, SearchFilter()), SPELT)]
            found = self.passages([row[0] for row in rows])
            texts = (" ".join((it.title, *it.headings, it.text)) for it in found.values())
            near = {one for text in texts for one in words(text) if is_near(word, one)}
            if near := {one for one in near if content_words(one)}:  # "trough" must not become "through"
                return min(near, key=lambda one: (errors(word, one), one))
        return ""

    def terms(self, question: str, most: int) -> list[str]:
        """Return the distinct terms of ``question`` that occur in the index, rarest first, at most ``most``."""
        analysed = dict.fromkeys(self._analyser.analyze(" ".join(question_words(question))))
        counted = [(self._frequency("text", term) + self._frequency("title", term), term) for term in analysed]
        known = [(count, term) for count, term in counted if count]
        return [term for _, term in sorted(known, key=lambda pair: pair[0])[:most]]

    def rarity(self, terms: Sequence[str]) -> list[float]:
        """Return the inverse document frequency of each term, as in BM25 (natural logarithm)."""
        return [self._rarity(max(self._frequency("text", term), self._frequency("title", term))) for term in terms]

    def analyse(self, text: str, for_query: bool = False) -> list[str]:
        """Return the index terms of any text in order, with repeats."""
        return list(self._analyser.analyze(" ".join(words(text, for_query))))

    def passages(self, ids: Sequence[str]) -> dict[str, Passage]:
        """Return the existing passages among ``ids``."""
        if not ids:
            return {}
        query = tantivy.Query.term_set_query(self._schema, "id", list(ids))
        addresses = self._searcher.search(query, limit=len(ids), count=False).hits
        loaded = [load(self._searcher.doc(address)) for _, address in addresses]
        return {passage.id: passage for passage in loaded if self._within is None or passage.collection in self._within}

    def with_prefix(self, prefix: str) -> list[Passage]:
        """Return at most two passages whose id starts with ``prefix``."""
        ids = [term for term, _ in self._searcher.terms_with_prefix("id", prefix, limit=2)]
        return list(self.passages(ids).values())

    def of_document(self, document: str) -> list[Passage]:
        """Return the passages of a document in order, unless its collection is hidden."""
        passages = sorted(
            self.all_passages(self._term("document", document)),
            key=lambda passage: [int(end) for end in passage.locator.split("-")],
        )
        return [passage for passage in passages if self._within is None or passage.collection in self._within]

    def all_passages(self, query: tantivy.Query | None = None) -> Iterator[Passage]:
        """Yield the passages that ``query`` matches (default: all), in no order."""
        chosen = query or tantivy.Query.all_query()
        count = max(len(self), 1)
        for _, address in self._searcher.search(chosen, limit=count, count=False).hits:
            yield load(self._searcher.doc(address))

    def without_digest(self) -> set[str]:
        """Return the documents with a passage that was stored without a digest."""
        everything = self._searcher.search(tantivy.Query.all_query(), limit=max(len(self), 1), count=False)
        stored = (self._searcher.doc(address) for _, address in everything.hits)
        return {str(row.get_first("document")) for row in stored if bytes(row.get_first("body")).startswith(b"{")}

    def count(self, field: str, value: str) -> int:
        """Return the number of passages with ``value`` in a raw field (``document``, ``collection``, ``id``)."""
        result = self._searcher.search(self._term(field, value), limit=1, count=True)
        return int(result.count)

    def _term(self, field: str, value: str) -> tantivy.Query:
        return tantivy.Query.term_query(self._schema, field, value, index_option="basic" if field in RAW else "freq")


class LexicalWriter(Writer):
    """Adds passages with their text."""

    def add(self, passages: Iterable[Passage]) -> None:
        """Add passages; the caller has deleted older ones of the same document."""
        for passage in passages:
            self._writer.add_document(
                tantivy.Document(
                    **raw_values(passage),
                    title=" ".join(words(" ".join((passage.title, *passage.headings)))),
                    text=" ".join(words(passage.text)),
                    body=dump(passage),
                )
            )

    def renew(self, index: LexicalIndex) -> None:
        """Store the documents of ``index`` that have a passage without a digest again."""
        for document in index.without_digest():
            passages = index.of_document(document)
            self.delete_documents([document])
            self.add(passages)


def dump(passage: Passage) -> bytes:
    """Return the stored form of a passage: its digest, a blank, and JSON with spans as flat rows."""
    values = asdict(passage)
    if not passage.doubtful:
        del values["doubtful"]  # as older versions stored it
    if not passage.found:
        del values["found"], values["lead"]
    values["spans"] = [
        (span.start, span.end, span.box.page, span.box.x0, span.box.y0, span.box.x1, span.box.y1)
        for span in passage.spans
    ]
    body = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return hashlib.sha256(body).hexdigest().encode() + b" " + body


def load(document: tantivy.Document) -> Passage:
    """Return the passage of a stored document; raise ``Damaged`` if it was altered.

    A passage without a digest is accepted (``generations upgrade`` adds one).
    """
    try:
        passage = parse_passage(bytes(document.get_first("body")))
    except (ValueError, TypeError, LookupError, RecursionError):
        raise UnreadableIndex("library.passage_changed", passage=str(document.get_first("id"))[:12]) from None
    if (passage.id, passage.document_id) != (document.get_first("id"), document.get_first("document")):
        raise UnreadableIndex("library.passage_changed", passage=passage.id[:12])
    return passage


def parse_passage(stored: bytes) -> Passage:
    """Return the passage that ``dump`` stored; raise ``ValueError`` or an error of malformed JSON otherwise."""
    if not stored.startswith(b"{"):
        recorded, _, stored = stored.partition(b" ")
        if hashlib.sha256(stored).hexdigest().encode() != recorded:
            raise ValueError("the digest does not match")
    values: dict[str, Any] = json.loads(stored.decode("utf-8", "surrogatepass"))
    values["spans"] = tuple(Span(start, end, Box(*box)) for start, end, *box in values["spans"])
    values |= {name: tuple(values[name]) for name in ("headings", "found") if name in values}
    return Passage(**values)
