"""The lexical index: Tantivy, BM25 (Robertson & Zaragoza 2009) over title and text. It also holds the passages.

Passage text lives here once: Tantivy's document store is compressed, immutable (so generations share it by hard link)
and answers twenty lookups by id in about a millisecond; Lance holds only vectors and what dense search filters by.

Words come from ``language.words``; English stemming and stop words are added by the analyser below. Queries are built
from terms, never parsed, so any text is a valid query.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from math import log
from pathlib import Path
from typing import Any

import tantivy

from localmed.domain import Box, Passage, SearchFilter, Span
from localmed.errors import Busy, Damaged
from localmed.language import question_words, words

ANALYSER = "localmed_words"
LONGEST_WORD = 60  # characters; longer runs are base64, sequences or noise
NO_LIMIT = 99999999  # after every edition number
RAW = ("id", "document", "collection", "language")  # fields matched as a whole
STORED = ("id", "document")


def raw_fields(builder: tantivy.SchemaBuilder) -> None:
    """What every index filters by: the ``RAW`` fields and the edition as a number."""
    for name in RAW:
        builder.add_text_field(name, stored=name in STORED, tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("edition", indexed=True, fast=True)


def raw_values(passage: Passage) -> dict[str, str | int]:
    """A passage's values for ``raw_fields``."""
    return {
        "id": passage.id,
        "document": passage.document_id,
        "collection": passage.collection,
        "language": passage.language,
        "edition": edition_number(passage.edition),
    }


def edition_number(edition: str, pad: str = "0") -> int:
    """``"2024-05"`` -> 20240500: ISO dates as numbers that compare; 0: none. ``pad`` fills the rest."""
    digits = "".join(character for character in edition if character.isdigit())[:8]
    return int(digits.ljust(8, pad)) if digits else 0


def edition_range(wanted: SearchFilter) -> tuple[int, int]:
    """The inclusive range of ``edition_number`` that ``wanted`` allows."""
    low = edition_number(wanted.edition_from) or (1 if wanted.edition_to else 0)  # what has no date is in no range
    high = edition_number(wanted.edition_to, "9") if wanted.edition_to else NO_LIMIT
    return low, high


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    raw_fields(builder)
    builder.add_text_field("title", tokenizer_name=ANALYSER, index_option="freq")
    builder.add_text_field("text", tokenizer_name=ANALYSER, index_option="position")
    builder.add_bytes_field("body", stored=True)
    return builder.build()


def _analyser() -> tantivy.TextAnalyzer:
    chain = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    steps = (
        tantivy.Filter.remove_long(LONGEST_WORD),
        tantivy.Filter.ascii_fold(),
        tantivy.Filter.stopword("english"),
        tantivy.Filter.stemmer("english"),
    )
    for step in steps:
        chain = chain.filter(step)
    return chain.build()


class LexicalIndex:
    """One index folder, opened for reading; ``writer`` opens it for writing (in a generation being built)."""

    def __init__(self, folder: Path) -> None:
        """Open the index in ``folder``, or make an empty one if the folder is empty or missing."""
        folder.mkdir(parents=True, exist_ok=True)
        self._schema = _schema()
        try:
            self._index = tantivy.Index(self._schema, path=str(folder))
        except ValueError as error:
            raise Damaged(f"the lexical index cannot be opened ({error})", "Run: localmed generations verify") from None
        self._analyser = _analyser()
        self._index.register_tokenizer(ANALYSER, self._analyser)
        self._searcher = self._index.searcher()

    def __len__(self) -> int:
        """The number of passages."""
        return int(self._searcher.num_docs)

    def reload(self) -> None:
        """See what a writer has committed."""
        self._index.reload()
        self._searcher = self._index.searcher()

    def writer(self, memory: int) -> LexicalWriter:
        """A writer with a heap of ``memory`` bytes; raise ``Busy`` if there is one already."""
        try:
            return LexicalWriter(self._index.writer(heap_size=memory, num_threads=1))
        except ValueError as error:
            raise Busy(f"the lexical index is being written ({error})", "Wait for the other writer") from None

    # --- reading ---------------------------------------------------------------------------------------------------

    def search(
        self, question: str, limit: int, wanted: SearchFilter, title_boost: float, most_terms: int
    ) -> list[tuple[str, str, float]]:
        """The best ``limit`` passages as ``(id, document, BM25 score)``, best first; empty if no word is known."""
        query = self.query(question, wanted, title_boost, most_terms)
        return self._run(query, limit) if query is not None and limit > 0 else []

    def query(self, question: str, wanted: SearchFilter, title_boost: float, most_terms: int) -> tantivy.Query | None:
        """The query that ``search`` runs; ``None`` if the index knows no word of the question."""
        terms = self.terms(question, most_terms)
        if not terms:
            return None
        should = tantivy.Occur.Should
        parts = [(should, self._term("text", term)) for term in terms]
        parts += [(should, tantivy.Query.boost_query(self._term("title", term), title_boost)) for term in terms]
        return self._limited(tantivy.Query.boolean_query(parts), wanted)

    def search_all(
        self, keywords: Sequence[str], limit: int, wanted: SearchFilter, title_boost: float
    ) -> list[tuple[str, str, float]]:
        """As ``search``, but every term of every one of ``keywords`` must occur in the passage or its title."""
        terms = list(dict.fromkeys(term for each in keywords for term in self.analyse(each, for_query=True)))
        if not terms or limit < 1:
            return []
        must = [(tantivy.Occur.Must, self._anywhere(term, title_boost)) for term in terms]
        return self._run(self._limited(tantivy.Query.boolean_query(must), wanted), limit)

    def holds(self, keyword: str) -> bool:
        """Whether ``keyword`` has terms, and each occurs somewhere in the index."""
        terms = self.analyse(keyword, for_query=True)
        return bool(terms) and all(
            self._searcher.doc_freq("text", term) or self._searcher.doc_freq("title", term) for term in terms
        )

    def binding(self, phrase: str) -> float:
        """How firmly the words of ``phrase`` belong together: of the texts that hold the rarest, the share (0 to 1)
        in which all stand side by side; 1 for a single word, 0 if one occurs in no text. A blank may hold a stop word.
        """
        terms = self.analyse(phrase, for_query=True)
        rarest = min((self._searcher.doc_freq("text", term) for term in terms), default=0)
        if len(terms) < 2 or not rarest:
            return float(bool(rarest))
        gaps = len(words(phrase, for_query=True)) - len(terms)
        query = tantivy.Query.phrase_query(self._schema, "text", list(terms), slop=gaps)
        return int(self._searcher.search(query, limit=1, count=True).count or 0) / rarest

    def terms(self, question: str, most: int) -> list[str]:
        """The index terms of ``question``, each once: those that occur in the index, at most ``most``, rarest first."""
        analysed = dict.fromkeys(self._analyser.analyze(" ".join(question_words(question))))
        counted = [
            (self._searcher.doc_freq("text", term) + self._searcher.doc_freq("title", term), term) for term in analysed
        ]
        known = [(count, term) for count, term in counted if count]
        return [term for _, term in sorted(known, key=lambda pair: pair[0])[:most]]

    def rarity(self, terms: Sequence[str]) -> list[float]:
        """The inverse document frequency of each term, as in BM25, natural logarithm."""
        total = max(len(self), 1)
        counts = [max(self._searcher.doc_freq("text", term), self._searcher.doc_freq("title", term)) for term in terms]
        return [log(1 + (total - count + 0.5) / (count + 0.5)) for count in counts]

    def analyse(self, text: str, for_query: bool = False) -> list[str]:
        """The index terms of any text, in order, repeats kept."""
        return list(self._analyser.analyze(" ".join(words(text, for_query))))

    def passages(self, ids: Sequence[str]) -> dict[str, Passage]:
        """The passages of those ``ids`` that exist."""
        if not ids:
            return {}
        query = tantivy.Query.term_set_query(self._schema, "id", list(ids))
        found = self._searcher.search(query, limit=len(ids), count=False).hits
        loaded = [load(self._searcher.doc(address)) for _, address in found]
        return {passage.id: passage for passage in loaded}

    def with_prefix(self, prefix: str) -> list[Passage]:
        """At most two passages whose id starts with ``prefix``."""
        ids = [term for term, _ in self._searcher.terms_with_prefix("id", prefix, limit=2)]
        return list(self.passages(ids).values())

    def of_document(self, document: str) -> list[Passage]:
        """All passages of a document in their order."""
        return sorted(self.each(self._term("document", document)), key=_position)

    def each(self, query: tantivy.Query | None = None) -> Iterator[Passage]:
        """Every passage, or every one that ``query`` matches, in no order."""
        chosen = query or tantivy.Query.all_query()
        count = max(len(self), 1)
        for _, address in self._searcher.search(chosen, limit=count, count=False).hits:
            yield load(self._searcher.doc(address))

    def count(self, field: str, value: str) -> int:
        """How many passages have ``value`` in a raw field (``document``, ``collection``, ``id``)."""
        result = self._searcher.search(self._term(field, value), limit=1, count=True)
        return int(result.count)

    def _run(self, query: tantivy.Query, limit: int) -> list[tuple[str, str, float]]:
        return best(self._searcher, query, limit)

    def _anywhere(self, term: str, title_boost: float) -> tantivy.Query:
        """``term`` in the text or the title."""
        should = tantivy.Occur.Should
        title = tantivy.Query.boost_query(self._term("title", term), title_boost)
        return tantivy.Query.boolean_query([(should, self._term("text", term)), (should, title)])

    def _term(self, field: str, value: str) -> tantivy.Query:
        return tantivy.Query.term_query(self._schema, field, value, index_option="basic" if field in RAW else "freq")

    def _limited(self, query: tantivy.Query, wanted: SearchFilter) -> tantivy.Query:
        return limited(self._schema, query, wanted)


def limited(schema: tantivy.Schema, query: tantivy.Query, wanted: SearchFilter) -> tantivy.Query:
    """``query`` and the filter's conditions, which do not score; for an index with the ``RAW`` fields and editions."""
    conditions = []
    if wanted.collections:
        conditions.append(tantivy.Query.term_set_query(schema, "collection", list(wanted.collections)))
    if wanted.documents:
        conditions.append(tantivy.Query.term_set_query(schema, "document", list(wanted.documents)))
    if wanted.language:
        conditions.append(tantivy.Query.term_query(schema, "language", wanted.language, index_option="basic"))
    if wanted.edition_from or wanted.edition_to:
        low, high = edition_range(wanted)
        conditions.append(tantivy.Query.range_query(schema, "edition", tantivy.FieldType.Integer, low, high))
    must = [(tantivy.Occur.Must, tantivy.Query.const_score_query(each, 0.0)) for each in conditions]
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, query), *must]) if must else query


def best(searcher: tantivy.Searcher, query: tantivy.Query, limit: int) -> list[tuple[str, str, float]]:
    """The best ``limit`` passages as ``(id, document, score)``, best first."""
    rows = []
    for score, address in searcher.search(query, limit=limit, count=False).hits:
        body = searcher.doc(address)
        rows.append((str(body.get_first("id")), str(body.get_first("document")), float(score)))
    return rows


class Writer:
    """Deletes; nothing is seen before ``finish``. Its kinds add."""

    def __init__(self, writer: tantivy.IndexWriter) -> None:
        """Wrap an open Tantivy writer."""
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
        """Throw away what is not committed."""
        self._writer.rollback()


class LexicalWriter(Writer):
    """Adds passages with their text."""

    def add(self, passages: Iterable[Passage]) -> None:
        """Add passages (the caller has deleted older ones of the same document)."""
        for passage in passages:
            self._writer.add_document(
                tantivy.Document(
                    **raw_values(passage),
                    title=" ".join(words(" ".join((passage.title, *passage.headings)))),
                    text=" ".join(words(passage.text)),
                    body=dump(passage).encode(),
                )
            )


def dump(passage: Passage) -> str:
    """The stored form of a passage: JSON; spans as flat rows to stay small."""
    values = asdict(passage)
    values["spans"] = [
        (span.start, span.end, span.box.page, span.box.x0, span.box.y0, span.box.x1, span.box.y1)
        for span in passage.spans
    ]
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def load(document: tantivy.Document) -> Passage:
    """The passage of a stored document."""
    values: dict[str, Any] = json.loads(bytes(document.get_first("body")))
    values["spans"] = tuple(Span(start, end, Box(*box)) for start, end, *box in values["spans"])
    values["headings"] = tuple(values["headings"])
    return Passage(**values)


def _position(passage: Passage) -> tuple[int, int]:
    start, _, end = passage.locator.partition("-")
    return int(start), int(end)
