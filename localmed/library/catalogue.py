"""``library.sqlite``: collections, files and documents of one generation. Swapped together with the indexes.

A *file* was imported; a *document* was read from it (one, or thousands from a JSONL). A *mark* is a librarian's
decision about a document. Marks and fields that a librarian has set (``governed``) outlive re-imports; a document's row
does not. A withdrawal that the source states overrides any mark.

A reader's catalogue lacks the collections ``hidden`` from them: every query reads views with the tables' names. The
same views add the columns that older schemas lack.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection as Container
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

from localmed.domain import Collection, Document, Kind, Status, message
from localmed.domain.errors import UnknownName, UnreadableIndex
from localmed.library.governed import GOVERNANCE, Governed, governance_of
from localmed.library.journal import now
from localmed.library.migrations import LIBRARY, open_database
from localmed.library.reading import open_immutable, open_published, reading_stored
from localmed.messages import as_json, from_json

FILE = "library.sqlite"
COLUMNS = ("id", "collection", "content", "file_sha256", "title", "edition", "language", "status", "replaced_by",
           "passages")  # fmt: skip
_MORE = tuple(field.name for field in fields(Document) if field.name not in (*COLUMNS, "governance"))
_STORED = (*COLUMNS, *GOVERNANCE, "more")
_DIGESTED = (*_STORED, "file")  # covered by a row's digest
_GONE = ("document", "collection", "title", "edition", "replaced_by", "time")
_GOVERNED = 3  # first schema with governance
_OLDEST = 2  # oldest readable schema; the one before had no kinds of collections
_TUPLES = ("identifiers", "publication_types", "mesh", "tags")


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """An imported file: ``recipe`` is how it was read (reader version, chunking, mapping), ``root`` its folder."""

    collection: str
    path: str
    sha256: str
    recipe: str
    root: str = ""


class Catalogue:
    """The SQLite file of one generation, read-only unless ``writable``."""

    def __init__(self, path: Path, writable: bool = False, hidden: Container[str] = ()) -> None:
        """Open ``path`` without the collections ``hidden`` from the reader (read-only)."""
        self._writable, self._hidden = writable, bool(hidden)
        if writable:
            self._database = open_database(path, LIBRARY)
            self._database.create_function("row_digest", -1, _row_digest, deterministic=True)
            self._database.execute("PRAGMA synchronous = OFF")  # the swap syncs the file
            self._database.execute("BEGIN")
            return
        self._database, version = open_published(path, LIBRARY, _OLDEST)
        self._show(version, hidden)

    def _show(self, version: int, hidden: Container[str]) -> None:
        """Create views in place of the tables: without ``hidden`` collections, with columns that schema ``version``
        lacks.
        """
        execute = self._database.execute
        execute("PRAGMA temp_store = MEMORY")
        execute("CREATE TEMP TABLE hidden (name TEXT PRIMARY KEY)")
        self._database.executemany("INSERT INTO hidden VALUES (?)", [(name,) for name in hidden])
        lacking = (*(GOVERNANCE if version < _GOVERNED else ()), *(("digest",) if version < len(LIBRARY) else ()))
        missing = "".join(f", '' AS {name}" for name in lacking)
        execute(f"CREATE TEMP VIEW every AS SELECT *{missing} FROM main.documents")  # noqa: S608
        execute("CREATE TEMP VIEW documents AS SELECT * FROM every WHERE collection NOT IN (SELECT name FROM hidden)")
        for table, column in (("collections", "name"), ("files", "collection")):
            shown = f"SELECT * FROM main.{table} WHERE {column} NOT IN (SELECT name FROM hidden)"  # noqa: S608
            execute(f"CREATE TEMP VIEW {table} AS {shown}")
        nothing = ", ".join(f"'' AS {name}" for name in _GONE)
        removed = "main.gone" if version >= _GOVERNED else f"(SELECT {nothing} WHERE 0)"
        execute(f"CREATE TEMP VIEW every_gone AS SELECT * FROM {removed}")  # noqa: S608
        execute("CREATE TEMP VIEW gone AS SELECT * FROM every_gone WHERE collection NOT IN (SELECT name FROM hidden)")
        if version < _GOVERNED:
            execute("CREATE TEMP VIEW governed AS SELECT '' AS document, '' AS field, '' AS value, '' AS time WHERE 0")

    def close(self) -> None:
        """Commit (if writable) and close."""
        if self._database.in_transaction:
            columns = ", ".join(_DIGESTED)
            self._database.execute(f"UPDATE documents SET digest = row_digest({columns}) WHERE digest = ''")  # noqa: S608
            self._database.execute("COMMIT")
        self._database.close()

    @property
    def governed(self) -> Governed:
        """The fields that a librarian has set on documents."""
        return Governed(self._database)

    def collections(self) -> list[Collection]:
        """Return all collections, first priority first."""
        rows = self._database.execute(
            "SELECT name, title, priority, language, source, licence, kind FROM collections ORDER BY priority, name"
        )
        with reading_stored("library.database_damaged"):
            return [replace(Collection(*row), kind=Kind(row[-1])) for row in rows]

    def collection(self, name: str) -> Collection:
        """Return the collection ``name``; raise ``UnknownName`` with the known names."""
        known = {collection.name: collection for collection in self.collections()}
        if name not in known:
            raise UnknownName("collections.unknown", name=name, known=tuple(known))
        return known[name]

    def put_collection(self, collection: Collection) -> None:
        """Add or replace a collection."""
        names = ("name", "title", "priority", "language", "source", "licence")
        values = (*(getattr(collection, name) for name in names), collection.kind.value)
        self._database.execute("INSERT OR REPLACE INTO collections VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def remove_collection(self, name: str) -> None:
        """Remove a collection's description and its files' rows; ``remove_documents`` removes its documents."""
        self._database.execute("DELETE FROM files WHERE collection = ?", (name,))
        self._database.execute("DELETE FROM collections WHERE name = ?", (name,))

    def files(self, collection: str, root: str | None = None) -> dict[str, ImportedFile]:
        """Return the files of a collection by path, all or those imported from the folder ``root``."""
        query = "SELECT collection, path, sha256, recipe, root FROM files WHERE collection = ?"
        rows = self._database.execute(query, (collection,))
        imported = (ImportedFile(*row) for row in rows)
        return {file.path: file for file in imported if root is None or file.root == root}

    def file(self, collection: str, path: str) -> ImportedFile | None:
        """Return the row of one file, ``None`` if it was not imported."""
        query = "SELECT collection, path, sha256, recipe, root FROM files WHERE collection = ? AND path = ?"
        row = self._database.execute(query, (collection, path)).fetchone()
        return ImportedFile(*row) if row else None

    def put_file(self, file: ImportedFile) -> None:
        """Add or replace a file's row."""
        values = (file.collection, file.path, file.sha256, file.recipe, file.root)
        self._database.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?)", values)

    def remove_file(self, collection: str, path: str) -> None:
        """Remove a file's row; ``remove_documents`` removes its documents."""
        self._database.execute("DELETE FROM files WHERE collection = ? AND path = ?", (collection, path))

    def document(self, prefix: str) -> Document:
        """Return the document whose id starts with ``prefix``; raise ``UnknownName`` if none or several do."""
        matches = self._documents("id >= ? AND id < ? LIMIT 2", (prefix, prefix + "g"))
        if len(matches) == 1:
            return matches[0]
        raise UnknownName("documents.id_none")

    def by_ids(self, ids: Iterable[str]) -> dict[str, Document]:
        """Return the existing documents among ``ids``."""
        return {name: document for name in ids for document in self._documents("id = ?", (name,))}

    def documents(self, collection: str = "", status: str = "") -> list[Document]:
        """Return all documents, or those of a collection or a status, by collection and title."""
        return self._documents(
            "(? = '' OR collection = ?) AND (? = '' OR status = ?) ORDER BY collection, title, id",
            (collection, collection, status, status),
        )

    def of_file(self, collection: str, path: str) -> list[Document]:
        """Return the documents read from one file."""
        return self._documents("collection = ? AND file = ?", (collection, path))

    def with_content(self, collection: str, content: str) -> list[Document]:
        """Return the documents of a collection with the same extracted text."""
        return self._documents("content = ? AND collection = ?", (content, collection))

    def ids_with(self, contents: Iterable[str]) -> set[str]:
        """Return the ids of all documents whose content digest is among ``contents``."""
        query = "SELECT id FROM documents WHERE content = ?"
        return {row[0] for content in contents for row in self._database.execute(query, (content,))}

    def identified(self, identifiers: Iterable[str]) -> list[Document]:
        """Return the documents with one of ``identifiers`` (``pmid:123``). Reads every row: there is no index."""
        names = sorted(set(identifiers))
        holds = [json.dumps(name, ensure_ascii=False) for name in names]
        where = " OR ".join(["instr(more, ?) > 0"] * len(names))
        documents = self._documents(where, tuple(holds)) if names else []
        return [document for document in documents if not set(names).isdisjoint(document.identifiers)]

    def not_current(self) -> dict[str, tuple[Status, str]]:
        """Return status and successor of every document that is not current, hidden ones included."""
        rows = self._database.execute(f"SELECT id, status, replaced_by FROM {self._every} WHERE status <> 'current'")  # noqa: S608
        with reading_stored("library.database_damaged"):
            return {row[0]: (Status(row[1]), row[2]) for row in rows}

    def pending(self, day: str) -> set[str]:
        """Return the documents that are not yet effective on ``day``, hidden ones included."""
        query = f"SELECT id FROM {self._every} WHERE effective_from <> '' AND effective_from > ?"  # noqa: S608
        return {row[0] for row in self._database.execute(query, (day,))}

    def overdue(self, day: str) -> dict[str, str]:
        """Return the documents whose review is overdue on ``day``, each with its date."""
        query = (
            "SELECT id, review_by FROM documents WHERE review_by <> '' AND review_by < substr(?, 1, length(review_by))"
        )
        return dict(self._database.execute(query, (day,)))

    def lacking(self) -> tuple[int, int]:
        """Return the numbers of documents without an owner and without a date of review, superseded ones left out."""
        query = "SELECT SUM(owner = ''), SUM(review_by = '') FROM documents WHERE status <> 'superseded'"
        unowned, undated = self._database.execute(query).fetchone()
        return unowned or 0, undated or 0

    def succeeding(self, document: str) -> tuple[str, list[str]]:
        """Return the successor of a document ("" for none) and the ids that it replaces, removed documents included."""
        both = "(SELECT id, replaced_by FROM documents UNION ALL SELECT document, replaced_by FROM gone)"
        execute = self._database.execute
        after = execute(f"SELECT replaced_by FROM {both} WHERE id = ?", (document,)).fetchone()  # noqa: S608
        where = "replaced_by = ? AND replaced_by <> ''"  # the second for the index, which holds no others
        before = execute(f"SELECT id FROM {both} WHERE {where} ORDER BY id", (document,))  # noqa: S608
        return (self._shown(after[0]) if after else ""), [row[0] for row in before]

    def hides(self, document: str) -> bool:
        """Whether a document, present or removed, is in a collection that is hidden from the reader."""
        both = "(SELECT id, collection FROM every UNION ALL SELECT document, collection FROM every_gone)"
        query = f"SELECT 1 FROM {both} WHERE id = ? AND collection IN (SELECT name FROM hidden)"  # noqa: S608
        return self._hidden and self._database.execute(query, (document,)).fetchone() is not None

    def shows_file(self, sha256: str) -> bool:
        """Whether a document or file that the reader may see has the original ``sha256``."""
        query = "SELECT 1 FROM documents WHERE file_sha256 = ? UNION ALL SELECT 1 FROM files WHERE sha256 = ?"
        return not self._hidden or self._database.execute(query, (sha256, sha256)).fetchone() is not None

    def _shown(self, document: str) -> str:
        """Return ``document``, "" if it is hidden."""
        return "" if document and self.hides(document) else document

    def removed(self, document: str) -> tuple[str, str, str] | None:
        """Return title, edition and day of removal of a removed document that replaced another or was replaced."""
        row = self._database.execute("SELECT title, edition, time FROM gone WHERE document = ?", (document,)).fetchone()
        return (row[0], row[1], row[2][:10]) if row else None

    def put_document(self, document: Document) -> None:
        """Add or replace a document; a mark overrides its status, unless that is withdrawn."""
        marked = self.marked(document)
        values = [getattr(marked, name) for name in COLUMNS] + [getattr(marked.governance, name) for name in GOVERNANCE]
        stored = {name: getattr(marked, name) for name in _MORE}
        stored["notes"] = [as_json(note) for note in marked.notes]
        more = json.dumps(stored, ensure_ascii=False)
        columns, marks = ", ".join(_DIGESTED), ", ".join("?" * len(_DIGESTED))
        query = f"INSERT OR REPLACE INTO documents ({columns}) VALUES ({marks})"  # noqa: S608
        self._database.execute(query, (*values, more, marked.source))
        self._database.execute("DELETE FROM gone WHERE document = ?", (marked.id,))

    def remove_documents(self, ids: Iterable[str]) -> None:
        """Remove documents' rows; keep a record of those that replace another or are replaced."""
        time = now()
        for document in ids:
            self._database.execute(
                "INSERT OR REPLACE INTO gone SELECT id, collection, title, edition, replaced_by, ? FROM documents AS it"
                " WHERE id = ? AND (replaced_by <> '' OR EXISTS"
                " (SELECT 1 FROM documents WHERE replaced_by = it.id AND replaced_by <> ''))",
                (time, document),
            )
            self._database.execute("DELETE FROM documents WHERE id = ?", (document,))

    def rename(self, old: str, new: str) -> None:
        """Transfer decisions about the document ``old``, and its replacements, to ``new`` (its file was moved)."""
        self._database.execute("UPDATE OR REPLACE marks SET document = ? WHERE document = ?", (new, old))
        self._database.execute("UPDATE marks SET replaced_by = ? WHERE replaced_by = ?", (new, old))
        self._database.execute("UPDATE documents SET replaced_by = ?, digest = '' WHERE replaced_by = ?", (new, old))
        self._database.execute("DELETE FROM gone WHERE document = ?", (old,))
        self._database.execute("UPDATE gone SET replaced_by = ? WHERE replaced_by = ?", (new, old))
        self.governed.rename(old, new)

    def mark(self, document: Document, status: Status, replaced_by: str, reason: str) -> None:
        """Record a librarian's decision about a document and apply it."""
        values = (document.id, status.value, replaced_by, reason, now())
        self._database.execute("INSERT OR REPLACE INTO marks VALUES (?, ?, ?, ?, ?)", values)
        self.put_document(document)

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return the numbers of documents and passages of each collection."""
        rows = self._database.execute("SELECT collection, COUNT(*), SUM(passages) FROM documents GROUP BY collection")
        return {name: (documents, passages) for name, documents, passages in rows}

    def languages(self) -> tuple[str, ...]:
        """Return the languages of the documents."""
        return tuple(row[0] for row in self._database.execute("SELECT DISTINCT language FROM documents ORDER BY 1"))

    def passages_by_document(self) -> dict[str, int]:
        """Return the recorded number of passages of each document."""
        return dict(self._database.execute("SELECT id, passages FROM documents WHERE passages > 0"))

    def marked(self, document: Document) -> Document:
        """Return ``document`` with the librarian's decisions applied, as it would be stored.

        A retraction may come after a mark was made, so no mark lifts one.
        """
        document = self.governed.apply(document)
        if document.status is Status.WITHDRAWN:
            return document
        row = self._database.execute(
            "SELECT status, replaced_by FROM marks WHERE document = ?", (document.id,)
        ).fetchone()
        if not row:
            return document
        successor = row[1] or ("" if row[0] == Status.CURRENT else document.replaced_by)
        return replace(document, status=Status(row[0]), replaced_by=successor)

    @property
    def _every(self) -> str:
        """The table of all documents, hidden ones included: whether one answers does not depend on the reader."""
        return "main.documents" if self._writable else "every"

    def _documents(self, where: str, values: tuple[Any, ...]) -> list[Document]:
        query = f"SELECT {', '.join(_DIGESTED)}, digest FROM documents WHERE {where}"  # noqa: S608  (no input in the text)
        with reading_stored("library.database_damaged"):
            documents = [_document(row) for row in self._database.execute(query, values)]
        if not self._hidden:
            return documents
        return [replace(document, replaced_by=self._shown(document.replaced_by)) for document in documents]


def _row_digest(*values: Any) -> str:
    return hashlib.sha256(json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()


def _document(row: tuple[Any, ...]) -> Document:
    """Return the document of a row; raise ``Damaged`` if it was altered. Older rows have no digest."""
    *values, recorded = row
    if recorded and _row_digest(*values) != recorded:
        raise UnreadableIndex("library.row_changed", document=str(values[0])[:12])
    stored = dict(zip(_DIGESTED, values, strict=True))
    facts = {name: stored[name] for name in COLUMNS} | json.loads(stored["more"])
    facts["status"] = Status(facts["status"])
    facts["relations"] = tuple((kind, target) for kind, target in facts["relations"])
    facts |= {name: tuple(facts.get(name, ())) for name in _TUPLES}
    facts["notes"] = tuple(  # an older version stored text in one language
        message("literal", text=note) if isinstance(note, str) else from_json(note) for note in facts["notes"]
    )
    return Document(**facts, governance=governance_of(stored))


def originals_of(generation: Path) -> set[str]:
    """Return the hashes of the files that ``generation`` was made from, for any schema."""
    with closing(open_immutable(generation / FILE)) as database:
        rows = database.execute("SELECT sha256 FROM files UNION SELECT file_sha256 FROM documents")
        return {row[0] for row in rows}


# --- differences of two generations ----------------------------------------------------------------------------------


def differences(before: Path, after: Path) -> list[ImportedFile]:
    """Return the files that ``after`` has added or read differently, and without a hash those that it has removed."""
    old, new = _files(before), _files(after)
    changed = [file for key, file in new.items() if old.get(key) != file]
    return changed + [replace(file, sha256="") for key, file in old.items() if key not in new]


Pair = tuple[Document | None, Document | None]  # a document before and after


def document_changes(before: Path, after: Path, most: int) -> list[Pair]:
    """Return the first ``most`` documents of changed files, before and after the change."""
    files = dict.fromkeys((one.collection, one.path) for one in differences(before, after))

    def pairs() -> Iterator[Pair]:
        with closing(Catalogue(before / FILE)) as old, closing(Catalogue(after / FILE)) as new:
            for file in files:
                was, now = ({one.id: one for one in catalogue.of_file(*file)} for catalogue in (old, new))
                for name in sorted({*was, *now}):
                    if was.get(name) != now.get(name):
                        yield was.get(name), now.get(name)

    return list(islice(pairs(), most))


def only_empty_collections(before: Path, after: Path) -> bool:
    """Whether the only additions of generation ``after`` are collections without documents."""
    with closing(Catalogue(before / FILE)) as old, closing(Catalogue(after / FILE)) as new:
        known = old.collections()
        made = [it for it in new.collections() if it not in known]
        beside = [it for it in new.collections() if it in known]
        return bool(made) and beside == known and new.documents() == old.documents()


def _files(generation: Path) -> dict[tuple[str, str], ImportedFile]:
    with closing(Catalogue(generation / FILE)) as catalogue:
        names = [collection.name for collection in catalogue.collections()]
        return {(name, path): file for name in names for path, file in catalogue.files(name).items()}
