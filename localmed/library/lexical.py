"""The Tantivy indexes of a generation: words by BM25 (Robertson & Zaragoza 2009), and a sparse encoder's token weights.

All have the fields ``RAW`` and the edition, so one filter fits all. An index is immutable once written and shared by
hard link.

The lexical index covers title and text and also stores the passages, in Tantivy's document store, which is compressed
and answers twenty lookups by id in about a millisecond. Words come from ``language.words``; the analyser below adds
English stemming and stop words. Queries are built from terms, never parsed, so any text is a valid query.

For a reader with hidden collections all statistics cover the readable collections only: term frequencies are counted
within them, and scores are recomputed (``_rescored``), because Tantivy's cover the whole index.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tantivy

from localmed.domain import Box, Message, Passage, SearchFilter, Span
from localmed.domain.errors import Busy, UnreadableIndex, reason
from localmed.library.reading import reading_stored
from localmed.text.language import content_words, question_words, words
from localmed.text.spelling import allowed, errors, is_near

if TYPE_CHECKING:
    from localmed.domain.ports import Weights

RAW = ("id", "document", "collection", "language")  # fields matched as a whole
STORED = ("id", "document")


class _Searcher:
    """Tantivy's searcher; errors while it reads stored data become ``Damaged``."""

    def __init__(self, searcher: Any, kind: str) -> None:
        self._searcher, self._kind = searcher, kind

    def __getattr__(self, name: str) -> Any:
        with reading_stored("library.index", kind=self._kind):
            value = getattr(self._searcher, name)
        if not callable(value):
            return value

        def call(*arguments: Any, **options: Any) -> Any:
            with reading_stored("library.index", kind=self._kind):
                return value(*arguments, **options)

        setattr(self, name, call)
        return call


class TantivyIndex:
    """One index folder, opened for reading; subclasses open it for writing (in a generation being built)."""

    def __init__(
        self, kind: str, folder: Path, schema: tantivy.Schema, within: Sequence[str] | None = None, make: bool = False
    ) -> None:
        """Open the index in ``folder``; raise ``Damaged``, which names ``kind``, if there is none.

        ``make`` creates an empty one in an empty folder. Searches return only passages of the collections ``within``.
        """
        self._kind, self._schema, self._within = kind, schema, within
        try:
            path = str(folder) if make else self._openable(folder)
            self._index = tantivy.Index(schema, path=path) if make else tantivy.Index.open(path)
        except ValueError as error:
            raise UnreadableIndex("library.index", kind=kind, error=reason(error)) from None
        self._searcher = _Searcher(self._index.searcher(), kind)

    def __len__(self) -> int:
        return int(self._searcher.num_docs)

    def _openable(self, folder: Path) -> str:
        """Return ``folder``; if it is read-only, a folder of links to its files: Tantivy creates a lock file even to
        read.
        """
        if os.access(folder, os.W_OK) or not folder.is_dir():
            return str(folder)
        links = tempfile.mkdtemp(prefix="localmed-index-")
        weakref.finalize(self, shutil.rmtree, links, ignore_errors=True)
        for file in folder.iterdir():
            if file.suffix != ".lock":
                (Path(links) / file.name).symlink_to(file.resolve())
        return links

    def reload(self) -> None:
        """Show what a writer has committed."""
        self._index.reload()
        self._searcher = _Searcher(self._index.searcher(), self._kind)

    def _writer(self, memory: int) -> tantivy.IndexWriter:
        try:
            return self._index.writer(heap_size=memory, num_threads=1)
        except ValueError as error:
            raise Busy(
                "library.index_writing", kind=self._kind, error=Message("system.failed", (("detail", str(error)),))
            ) from None

    def _best(self, query: tantivy.Query, limit: int) -> list[tuple[str, str, float]]:
        """Return the best ``limit`` passages as ``(id, document, score)``, best first."""
        rows = []
        for score, address in self._searcher.search(query, limit=limit, count=False).hits:
            body = self._searcher.doc(address)
            rows.append((str(body.get_first("id")), str(body.get_first("document")), float(score)))
        return rows

    def _limited(self, query: tantivy.Query, filters: SearchFilter) -> tantivy.Query:
        """Add the conditions of ``filters`` to ``query``, without scores."""
        named = (("collection", filters.collections or None), ("document", filters.documents or None))
        conditions = [
            tantivy.Query.term_set_query(self._schema, field, list(values))
            for field, values in (("collection", self._within), *named)
            if values is not None
        ]
        if filters.language:
            conditions.append(
                tantivy.Query.term_query(self._schema, "language", filters.language, index_option="basic")
            )
        if filters.edition_from or filters.edition_to:
            low, high = edition_range(filters)
            conditions.append(tantivy.Query.range_query(self._schema, "edition", tantivy.FieldType.Integer, low, high))
        must = [(tantivy.Occur.Must, tantivy.Query.const_score_query(condition, 0.0)) for condition in conditions]
        return tantivy.Query.boolean_query([(tantivy.Occur.Must, query), *must]) if must else query


class Writer:
    """Deletes documents; subclasses add them. Changes are visible after ``finish``."""

    def __init__(self, writer: tantivy.IndexWriter) -> None:
        self._writer = writer

    def delete_documents(self, documents: Iterable[str]) -> None:
        """Delete every passage of the documents."""
        for document in documents:
            self._writer.delete_documents_by_term("document", document)

    def finish(self) -> None:
        """Commit and wait for merges, so that no thread touches the folder afterwards."""
        self._writer.commit()
        self._writer.wait_merging_threads()

    def abandon(self) -> None:
        """Discard uncommitted changes."""
        self._writer.rollback()


def raw_fields(builder: tantivy.SchemaBuilder) -> None:
    """Add the fields that every index filters by: ``RAW`` and the edition as a number."""
    for name in RAW:
        builder.add_text_field(name, stored=name in STORED, tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("edition", indexed=True, fast=True)


def raw_values(passage: Passage) -> dict[str, str | int]:
    """Return a passage's values for ``raw_fields``."""
    return {
        "id": passage.id,
        "document": passage.document_id,
        "collection": passage.collection,
        "language": passage.language,
        "edition": edition_number(passage.edition),
    }


NO_LIMIT = 99999999  # after every edition number


def edition_number(edition: str, pad: str = "0") -> int:
    """Convert an ISO date to a comparable number, ``"2024-05"`` to 20240500; 0 for none. ``pad`` fills missing
    digits.
    """
    digits = "".join(character for character in edition if character.isdigit())[:8]
    return int(digits.ljust(8, pad)) if digits else 0


def edition_range(filters: SearchFilter) -> tuple[int, int]:
    """Return the inclusive range of ``edition_number`` that ``filters`` allow."""
    low = edition_number(filters.edition_from) or (1 if filters.edition_to else 0)  # undated ones are in no range
    high = edition_number(filters.edition_to, "9") if filters.edition_to else NO_LIMIT
    return low, high


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


# --- token weights ----------------------------------------------------------------------------------------------------

# Learned token weights (BGE-M3's lexical retrieval; Chen et al. 2024) are stored in steps of 1/64, so each is off by at
# most 1/128. A passage is the terms ``token_steps`` of its tokens. A question looks up each token with all occurring
# steps and scores each hit by a constant, the question's weight times the steps': the sum is exactly the dot product of
# the question's weights with the stored ones. Only generations of a sparse encoder have this index.


STEP = 1 / 64  # of a weight; BGE-M3's lie between 0 and 0.6, mostly
MOST_STEPS = 255  # a weight above 4 counts as 4
MOST_TOKENS = 64  # of a question, about 50 words; each is looked up with every weight it is stored with
FIELD = "weights"


class SparseIndex(TantivyIndex):
    """One index folder, opened for reading; ``writer`` opens it for writing (in a generation being built)."""

    def __init__(self, folder: Path, within: Sequence[str] | None = None, make: bool = False) -> None:
        """Open the index in ``folder``; with ``make``, create an empty one if the folder is empty."""
        builder = tantivy.SchemaBuilder()
        raw_fields(builder)
        builder.add_text_field(FIELD, tokenizer_name="whitespace", index_option="basic")
        super().__init__("sparse", folder, builder.build(), within, make)

    def writer(self, memory: int) -> SparseWriter:
        """Return a writer with a heap of ``memory`` bytes; raise ``Busy`` if there is one already."""
        return SparseWriter(self._writer(memory))

    def search(self, weights: Weights, limit: int, filters: SearchFilter) -> list[tuple[str, str, float]]:
        """Return the best ``limit`` passages with a common token as ``(id, document, dot product)``, best first.

        Only the ``MOST_TOKENS`` largest of ``weights`` count.
        """
        heaviest = sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_TOKENS]
        clauses = [clause for token, weight in heaviest for clause in self._clauses(token, weight)]
        if not clauses or limit < 1:
            return []
        query = tantivy.Query.boolean_query([(tantivy.Occur.Should, clause) for clause in clauses])
        return self._best(self._limited(query, filters), limit)

    def _clauses(self, token: int, weight: float) -> list[tantivy.Query]:
        stored = self._searcher.terms_with_prefix(FIELD, f"{token}_", limit=MOST_STEPS)
        return [
            tantivy.Query.const_score_query(
                tantivy.Query.term_query(self._schema, FIELD, term, index_option="basic"),
                weight * int(term.rpartition("_")[2]) * STEP,
            )
            for term, _ in stored
        ]


class SparseWriter(Writer):
    """Adds passages with their weights."""

    def add(self, passages: Sequence[Passage], weights: Sequence[Weights]) -> None:
        """Add passages; the caller has deleted older ones of the same document."""
        for passage, token_weights in zip(passages, weights, strict=True):
            self._writer.add_document(tantivy.Document(**raw_values(passage), **{FIELD: token_terms(token_weights)}))


def token_terms(weights: Weights) -> str:
    """Convert ``{17: 0.25}`` to ``"17_16"``, the field's text; weights that round to zero are left out."""
    return " ".join(f"{token}_{number}" for token, weight in weights.items() if (number := steps(weight)))


def steps(weight: float) -> int:
    """Return a weight as a number of ``STEP``."""
    return min(round(weight / STEP), MOST_STEPS)
