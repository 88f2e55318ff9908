"""Common parts of every Tantivy index of a generation: open, count, reload, filter, write by one writer.

Each kind of index adds its own fields and searches. All have ``RAW`` and the edition, so one filter fits all. An index
is immutable once written.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tantivy

from localmed.domain import Message, Passage, SearchFilter
from localmed.domain.errors import Busy, UnreadableIndex, reason
from localmed.library.reading import reading_stored

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
