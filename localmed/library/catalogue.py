"""``library.sqlite``: collections, files and documents of one generation. Swapped together with the indexes.

A *file* is what was imported, a *document* what was read from it (one, or thousands from a JSONL). A *mark* is a
librarian's decision about a document; it outlives re-imports, which the document's own row does not. A withdrawal that
the source states stands before any mark.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from localmed.domain import Collection, Document, Kind, Status
from localmed.errors import Damaged, UnknownName
from localmed.library.migrations import LIBRARY, open_database
from localmed.library.summaries import Summaries

FILE = "library.sqlite"
COLUMNS = (
    "id",
    "collection",
    "content",
    "file_sha256",
    "title",
    "edition",
    "language",
    "status",
    "replaced_by",
    "passages",
)
_DOCUMENT_FIELDS = tuple(each.name for each in fields(Document))
_TUPLES = ("identifiers", "publication_types", "mesh", "notes")


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """A file that was imported: ``recipe`` is how (reader version, chunking, mapping), ``root`` the folder given."""

    collection: str
    path: str
    sha256: str
    recipe: str
    root: str = ""


class Catalogue:
    """The SQLite file of one generation, read-only unless ``writable``."""

    def __init__(self, path: Path, writable: bool = False) -> None:
        """Open ``path``; a published generation's file is never written, not even to migrate it."""
        if writable:
            self._database = open_database(path, LIBRARY)
            self._database.execute("PRAGMA synchronous = OFF")  # the swap syncs the file
            self._database.execute("BEGIN")
            return
        self._database = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
        )
        try:
            version = self._database.execute("PRAGMA user_version").fetchone()[0]
        except sqlite3.DatabaseError as error:
            raise Damaged(f"{path} cannot be read ({error})", "Go back with: localmed generations rollback") from None
        if version != len(LIBRARY):
            raise Damaged(
                f"{path} has schema {version}, this localmed reads {len(LIBRARY)}", "Run: localmed generations upgrade"
            )

    def close(self) -> None:
        """Commit (if writable) and close."""
        if self._database.in_transaction:
            self._database.execute("COMMIT")
        self._database.close()

    @property
    def summaries(self) -> Summaries:
        """The guideline map of this generation."""
        return Summaries(self._database)

    # --- collections -----------------------------------------------------------------------------------------------

    def collections(self) -> list[Collection]:
        """All collections, first priority first."""
        rows = self._database.execute(
            "SELECT name, title, priority, language, source, licence, kind FROM collections ORDER BY priority, name"
        )
        return [replace(Collection(*row), kind=Kind(row[-1])) for row in rows]

    def collection(self, name: str) -> Collection:
        """The collection ``name``; raise ``UnknownName`` with the names there are."""
        known = {each.name: each for each in self.collections()}
        if name not in known:
            there = ", ".join(known) or "none yet"
            raise UnknownName(
                f"there is no collection {name!r}", f"Collections: {there}. Make one with: localmed collections create"
            )
        return known[name]

    def put_collection(self, collection: Collection) -> None:
        """Add or replace a collection."""
        values = (
            collection.name,
            collection.title,
            collection.priority,
            collection.language,
            collection.source,
            collection.licence,
            collection.kind.value,
        )
        self._database.execute("INSERT OR REPLACE INTO collections VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    # --- files -----------------------------------------------------------------------------------------------------

    def files(self, collection: str, root: str | None = None) -> dict[str, ImportedFile]:
        """The files of a collection by path, all or those imported from the folder ``root``."""
        query = "SELECT collection, path, sha256, recipe, root FROM files WHERE collection = ?"
        rows = self._database.execute(query, (collection,))
        found = (ImportedFile(*row) for row in rows)
        return {each.path: each for each in found if root is None or each.root == root}

    def file(self, collection: str, path: str) -> ImportedFile | None:
        """The row of one file, if it was imported."""
        query = "SELECT collection, path, sha256, recipe, root FROM files WHERE collection = ? AND path = ?"
        row = self._database.execute(query, (collection, path)).fetchone()
        return ImportedFile(*row) if row else None

    def put_file(self, file: ImportedFile) -> None:
        """Add or replace a file's row."""
        values = (file.collection, file.path, file.sha256, file.recipe, file.root)
        self._database.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?)", values)

    def remove_file(self, collection: str, path: str) -> None:
        """Remove a file's row (its documents are removed by ``remove_documents``)."""
        self._database.execute("DELETE FROM files WHERE collection = ? AND path = ?", (collection, path))

    # --- documents -------------------------------------------------------------------------------------------------

    def document(self, prefix: str) -> Document:
        """The document whose id starts with ``prefix``; raise ``UnknownName`` if none or several do."""
        found = self._documents("id >= ? AND id < ? LIMIT 2", (prefix, prefix + "g"))
        if len(found) == 1:
            return found[0]
        problem = "no document's id starts" if not found else "several documents' ids start"
        raise UnknownName(f"{problem} with what was given", "List documents with: localmed documents list")

    def by_ids(self, ids: Iterable[str]) -> dict[str, Document]:
        """Those of ``ids`` that exist."""
        found: dict[str, Document] = {}
        for each in ids:
            for document in self._documents("id = ?", (each,)):
                found[document.id] = document
        return found

    def documents(self, collection: str = "", status: str = "") -> list[Document]:
        """All documents, or those of a collection or a status, by collection and title."""
        return self._documents(
            "(? = '' OR collection = ?) AND (? = '' OR status = ?) ORDER BY collection, title, id",
            (collection, collection, status, status),
        )

    def of_file(self, collection: str, path: str) -> list[Document]:
        """The documents read from one file."""
        return self._documents("collection = ? AND file = ?", (collection, path))

    def with_content(self, collection: str, content: str) -> list[Document]:
        """The documents of a collection whose extracted text is the same."""
        return self._documents("content = ? AND collection = ?", (content, collection))

    def ids_with(self, contents: Iterable[str]) -> set[str]:
        """The ids of all documents whose content digest is among ``contents``."""
        query = "SELECT id FROM documents WHERE content = ?"
        return {row[0] for content in contents for row in self._database.execute(query, (content,))}

    def identified(self, identifiers: Iterable[str]) -> list[Document]:
        """The documents that have one of ``identifiers`` (``pmid:123``). Reads every row: none is indexed so."""
        names = sorted(set(identifiers))
        holds = [json.dumps(name, ensure_ascii=False) for name in names]
        where = " OR ".join(["instr(more, ?) > 0"] * len(names))
        found = self._documents(where, tuple(holds)) if names else []
        return [each for each in found if not set(names).isdisjoint(each.identifiers)]

    def not_current(self) -> dict[str, Status]:
        """The status of every document that is not current."""
        rows = self._database.execute("SELECT id, status FROM documents WHERE status <> 'current'")
        return {row[0]: Status(row[1]) for row in rows}

    def put_document(self, document: Document) -> None:
        """Add or replace a document; a mark on it overrides the status it comes with, unless that is withdrawn."""
        marked = self.marked(document)
        more = {name: getattr(marked, name) for name in _DOCUMENT_FIELDS if name not in COLUMNS}
        row = [getattr(marked, name) for name in COLUMNS]
        self._database.execute(
            f"INSERT OR REPLACE INTO documents ({', '.join(COLUMNS)}, file, more) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",  # noqa: S608
            (*row, marked.source, json.dumps(more, ensure_ascii=False)),
        )

    def remove_documents(self, ids: Iterable[str]) -> None:
        """Remove documents' rows."""
        self._database.executemany("DELETE FROM documents WHERE id = ?", [(each,) for each in ids])

    def rename(self, old: str, new: str) -> None:
        """What was decided about the document ``old``, and what it replaces, holds for ``new`` (its file was moved)."""
        self._database.execute("UPDATE OR REPLACE marks SET document = ? WHERE document = ?", (new, old))
        self._database.execute("UPDATE marks SET replaced_by = ? WHERE replaced_by = ?", (new, old))
        self._database.execute("UPDATE documents SET replaced_by = ? WHERE replaced_by = ?", (new, old))

    def mark(self, document: Document, status: Status, replaced_by: str, reason: str) -> None:
        """Record a librarian's decision about a document and put it into effect."""
        time = datetime.now(UTC).isoformat(timespec="seconds")
        values = (document.id, status.value, replaced_by, reason, time)
        self._database.execute("INSERT OR REPLACE INTO marks VALUES (?, ?, ?, ?, ?)", values)
        self.put_document(document)

    def counts(self) -> dict[str, tuple[int, int]]:
        """Documents and passages of each collection."""
        rows = self._database.execute("SELECT collection, COUNT(*), SUM(passages) FROM documents GROUP BY collection")
        return {name: (documents, passages) for name, documents, passages in rows}

    def passages_by_document(self) -> dict[str, int]:
        """How many passages each document should have."""
        return dict(self._database.execute("SELECT id, passages FROM documents WHERE passages > 0"))

    def marked(self, document: Document) -> Document:
        """``document`` with the librarian's decision about it, as it would be stored.

        A retraction may come after a mark was made, so no mark lifts one.
        """
        if document.status is Status.WITHDRAWN:
            return document
        row = self._database.execute(
            "SELECT status, replaced_by FROM marks WHERE document = ?", (document.id,)
        ).fetchone()
        if not row:
            return document
        successor = row[1] or ("" if row[0] == Status.CURRENT else document.replaced_by)
        return replace(document, status=Status(row[0]), replaced_by=successor)

    def _documents(self, where: str, values: tuple[Any, ...]) -> list[Document]:
        query = f"SELECT {', '.join(COLUMNS)}, more FROM documents WHERE {where}"  # noqa: S608  (no input in the text)
        return [_document(row) for row in self._database.execute(query, values)]


def _document(row: tuple[Any, ...]) -> Document:
    values = dict(zip(COLUMNS, row, strict=False)) | json.loads(row[-1])
    values["status"] = Status(values["status"])
    values["relations"] = tuple((kind, target) for kind, target in values["relations"])
    values |= {name: tuple(values[name]) for name in _TUPLES}
    return Document(**values)


def originals_of(generation: Path) -> set[str]:
    """The hashes of the files that ``generation`` was made from, whatever its schema."""
    uri = f"{(generation / FILE).absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as database:
        rows = database.execute("SELECT sha256 FROM files UNION SELECT file_sha256 FROM documents")
        return {row[0] for row in rows}


def totals(counts: dict[str, tuple[int, int]]) -> tuple[int, int]:
    """Documents and passages of all collections together."""
    return sum(pair[0] for pair in counts.values()), sum(pair[1] for pair in counts.values())
