"""``graph.sqlite``: the concept graph of one generation. Names, definitions, relations and cross references.

Every row names its source file, and every file is a document of the catalogue: rows of a superseded or withdrawn file
are hidden from the next look-up on. A look-up reads one concept and its direct relations, so cycles of ``is_a`` are
harmless. Every row has a checksum of its values that is compared when it is read; a decayed row is ``Damaged``.

The file may have gigabytes (UMLS). A generation that does not change it shares it with its parent; ``GraphBuild``
copies it before the first change.
"""

from __future__ import annotations

import difflib
import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localmed.domain import Passage, digest
from localmed.domain.errors import Damaged
from localmed.library import generations
from localmed.library.migrations import GRAPH, add_checksum_functions, migrate, open_database
from localmed.library.reading import open_immutable, open_published
from localmed.library.terms import KINDS, Term, folded
from localmed.text.language import detect

FILE = "graph.sqlite"
TABLES = ("concepts", "names", "relations", "xrefs")  # with a column ``source``
_COLUMNS = {  # that a row's checksum covers
    "sources": "id, document, collection, title, edition",
    "concepts": "id, source, name, definition",
    "names": "folded, concept, source, text, language, kind",
    "relations": "subject, predicate, object, detail, source",
    "xrefs": "concept, target, source",
    "totals": "collection, concepts",
}
RELATIONS_READ = 10_000  # of one concept; a few UMLS hubs have more
NAMES_READ = 500  # of one concept, and rows of one ambiguous name
NEAR_READ = 1_000  # names before and after a misspelt one to compare with: ~50 ms
NEAR = 5  # suggested
CACHE_KIB = 262_144  # while writing: the index pages of a few million rows
_SUMMED = 2  # first schema with checksums; the one before is read without
_SIMILAR = 0.6  # difflib's ratio below which two names look nothing alike


@dataclass(frozen=True, slots=True)
class Source:
    """A file from which rows came; ``document`` is its id in the catalogue."""

    document: str
    collection: str
    title: str
    edition: str


@dataclass(frozen=True, slots=True)
class Name:
    """A name of a concept; ``kind`` is one of ``terms.KINDS``."""

    text: str
    language: str
    kind: str


@dataclass(frozen=True, slots=True)
class Concept:
    """A concept, merged from every source that describes it. ``defined_in`` is the source of its definition."""

    id: str
    name: str
    collection: str
    definition: str = ""
    defined_in: Source | None = None
    names: tuple[Name, ...] = ()
    xrefs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Relation:
    """``subject predicate object`` according to one source; an unknown name is the id."""

    subject: str
    subject_name: str
    predicate: str
    object: str
    object_name: str
    detail: str
    source: Source


class Graph:
    """One file, read-only unless ``writable``; an empty graph without a path. One thread at a time."""

    def __init__(self, path: Path | None, writable: bool = False) -> None:
        """Open ``path``; raise ``Damaged`` if it is missing or unreadable."""
        if path is None:
            self._database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            migrate(self._database, GRAPH, FILE)
        elif writable:
            self._database = open_database(path, GRAPH)
            for pragma in ("journal_mode = MEMORY", "synchronous = OFF", f"cache_size = -{CACHE_KIB}"):
                self._database.execute(f"PRAGMA {pragma}")  # a build that dies is thrown away; the swap syncs the file
            self._database.execute("BEGIN")
        else:
            if not path.exists():
                raise Damaged("library.missing", path=str(path))
            self._database, _ = open_published(path, GRAPH)
        self._database.execute("PRAGMA temp_store = MEMORY")
        self._hidden: frozenset[str] = frozenset()
        self._database.execute("CREATE TEMP TABLE hidden (source INTEGER PRIMARY KEY)")
        add_checksum_functions(self._database)
        self._database.create_function("cited_as", 2, digest, deterministic=True)
        summed = self._database.execute("PRAGMA user_version").fetchone()[0] >= _SUMMED and not writable
        for table, columns in _COLUMNS.items():  # look-ups read these views, which hide rows and compare checksums
            shown = "source NOT IN (SELECT source FROM hidden)" if table in TABLES else "1"
            sound = f"sound(digest, {columns})" if summed else "1"
            view = f"SELECT {columns} FROM {table} WHERE {shown} AND {sound}"  # noqa: S608
            self._database.execute(f"CREATE TEMP VIEW shown_{table} AS {view}")

    def close(self) -> None:
        """Count, add checksums and commit (if writable), then close. Counting millions of rows takes seconds."""
        if self._database.in_transaction:
            self._database.execute("DELETE FROM totals")
            self._database.execute(
                "INSERT INTO totals (collection, concepts) SELECT collection, COUNT(DISTINCT concepts.id)"
                " FROM concepts JOIN sources ON sources.id = source GROUP BY collection"
            )
            for table, columns in _COLUMNS.items():
                self._database.execute(f"UPDATE {table} SET digest = checksum({columns}) WHERE digest IS NULL")  # noqa: S608
            self._database.execute("COMMIT")
        self._database.close()

    def put_source(self, source: Source) -> int:
        """Begin the rows of ``source``, replacing those of its document; return its number. End with ``keep`` or
        ``undo``.
        """
        self._database.execute("SAVEPOINT source")
        self.remove([source.document])
        query = "INSERT INTO sources (document, collection, title, edition) VALUES (?, ?, ?, ?)"
        values = (source.document, source.collection, source.title, source.edition)
        return int(self._database.execute(query, values).lastrowid or 0)

    def add(self, source: int, terms: Iterable[Term]) -> None:
        """Store ``terms``; the language of a name is detected if its source does not state it."""
        execute, many = self._database.execute, self._database.executemany
        for term in terms:
            to = term.replaced_by or term.id
            if not term.replaced_by and (term.name or term.definition):
                execute(
                    "INSERT INTO concepts (id, source, name, definition) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
                    " name = iif(name = '', excluded.name, name),"
                    " definition = iif(definition = '', excluded.definition, definition)",
                    (term.id, source, term.name, term.definition),
                )
            own = ((term.name, "", "name"),) if term.name else ()
            rows = [
                (folded(text), to, source, text, language or detect(text), "replaced" if term.replaced_by else kind)
                for text, language, kind in (*own, *term.names)
            ]
            many("INSERT OR IGNORE INTO names VALUES (?, ?, ?, ?, ?, ?, NULL)", rows)
            relations = [(*relation, source) for relation in term.relations]
            many("INSERT OR IGNORE INTO relations VALUES (?, ?, ?, ?, ?, NULL)", relations)
            many("INSERT OR IGNORE INTO xrefs VALUES (?, ?, ?, NULL)", [(term.id, xref, source) for xref in term.xrefs])

    def keep(self, source: int, edition: str = "") -> tuple[int, int]:
        """End ``put_source``, with the edition that the file states; return its concepts and relations (counts)."""
        if edition:
            self._database.execute("UPDATE sources SET edition = ? WHERE id = ?", (edition, source))
        self._database.execute("RELEASE source")
        counts = (f"SELECT COUNT(*) FROM {table} WHERE source = ?" for table in ("concepts", "relations"))  # noqa: S608
        concepts, relations = (int(self._database.execute(count, (source,)).fetchone()[0]) for count in counts)
        return concepts, relations

    def undo(self) -> None:
        """Revert everything since ``put_source``."""
        self._database.execute("ROLLBACK TO source")
        self._database.execute("RELEASE source")

    def remove(self, documents: Iterable[str]) -> None:
        """Remove the rows of these documents."""
        for document in documents:
            row = self._database.execute("SELECT id FROM sources WHERE document = ?", (document,)).fetchone()
            if row:
                for table in TABLES:
                    self._database.execute(f"DELETE FROM {table} WHERE source = ?", row)  # noqa: S608
                self._database.execute("DELETE FROM sources WHERE id = ?", row)

    def documents(self) -> list[str]:
        """Return the ids of the documents in the graph."""
        return [row[0] for row in self._database.execute("SELECT document FROM shown_sources")]

    def hide(self, documents: Collection[str]) -> None:
        """Hide the rows of these documents (replacing earlier ones) atomically."""
        if self._hidden == frozenset(documents):
            return
        self._database.execute("SAVEPOINT hiding")
        self._database.execute("DELETE FROM hidden")
        query = "INSERT INTO hidden SELECT id FROM shown_sources WHERE document = ?"
        self._database.executemany(query, [(document,) for document in documents])
        self._database.execute("RELEASE hiding")
        self._hidden = frozenset(documents)

    def counts(self) -> dict[str, int]:
        """Return the number of concepts of each collection."""
        shown = "SELECT collection FROM shown_sources WHERE id NOT IN (SELECT source FROM hidden)"
        return dict(
            self._database.execute(f"SELECT collection, concepts FROM shown_totals WHERE collection IN ({shown})")  # noqa: S608
        )

    def find(self, name: str) -> list[tuple[str, Name]]:
        """Return the concepts with this name or id, best first, each with the name that matched."""
        spelling = " ".join(name.split())
        rows = self._rows(
            "SELECT concept, text, language, kind FROM shown_names WHERE folded = ? LIMIT ?",
            (folded(spelling), NAMES_READ),
        )
        matches = [(concept, Name(text, language, kind)) for concept, text, language, kind in rows]
        matches.sort(key=lambda match: (_distance(match[1], spelling), match[0]))
        by_id = [identifier for identifier in dict.fromkeys((spelling, spelling.upper())) if self._exists(identifier)]
        best = dict.fromkeys(by_id, Name(spelling, "", "name"))
        for concept, matched in matches:
            if self._exists(concept):
                best.setdefault(concept, matched)
        return list(best.items())

    def concept(self, concept: str) -> Concept | None:
        """Return a concept merged from all sources; ``None`` if no source has it."""
        rows = self._rows("SELECT source, name, definition FROM shown_concepts WHERE id = ?", (concept,))
        if not rows:
            return None
        sources = self._sources()
        rows.sort(key=lambda row: (not row[1], sources[row[0]].collection, row[0]))
        defined = max(rows, key=lambda row: len(row[2]))
        names = self._rows(
            "SELECT DISTINCT text, language, kind FROM shown_names WHERE concept = ? AND kind <> 'replaced' LIMIT ?",
            (concept, NAMES_READ),
        )
        return Concept(
            concept,
            rows[0][1] or (names[0][0] if names else concept),
            sources[rows[0][0]].collection,
            defined[2],
            sources[defined[0]] if defined[2] else None,
            tuple(
                sorted(
                    (Name(*row) for row in names),
                    key=lambda name: (KINDS.index(name.kind), name.language, name.text.casefold()),
                )
            ),
            tuple(row[0] for row in self._xrefs(concept)),
        )

    def defining(self, prefix: str) -> list[Concept]:
        """Return at most two concepts whose definition has a citation id that starts with ``prefix``."""
        query = (
            "SELECT DISTINCT concepts.id FROM concepts JOIN sources ON sources.id = source"
            " WHERE definition <> '' AND substr(cited_as(document, concepts.id), 1, ?) = ? LIMIT 2"
        )
        concepts = (self.concept(row[0]) for row in self._rows(query, (len(prefix), prefix)))
        return [concept for concept in concepts if concept]

    def same(self, concept: str) -> list[str]:
        """Return concepts of other sources with the same meaning: a cross reference links them, or both refer to one
        UMLS concept.

        Other shared codes do not count: different diseases share an ICD-10 code.
        """
        codes = [row[0] for row in self._xrefs(concept)]
        meanings = [code for code in (concept, *codes) if code.startswith("C") and code[1:].isdigit()]  # UMLS concepts
        referring = self._rows(
            "SELECT DISTINCT concept FROM shown_xrefs WHERE target IN (SELECT value FROM json_each(?)) LIMIT ?",
            (json.dumps([concept, *meanings]), NAMES_READ),
        )
        family = concept.partition(":")[0]
        candidates = dict.fromkeys([*codes, *(row[0] for row in referring)])
        return [
            candidate
            for candidate in candidates
            if candidate != concept
            and (":" not in candidate or candidate.partition(":")[0] != family)
            and self._exists(candidate)
        ]

    def relations(self, concepts: Sequence[str]) -> list[Relation]:
        """Return the relations of ``concepts`` at either end, within bounds; each once, from its newest source."""
        rows = self._rows(
            "WITH ends AS (SELECT value FROM json_each(?))"
            " SELECT subject, predicate, object, detail, source FROM shown_relations WHERE subject IN ends"
            " UNION SELECT subject, predicate, object, detail, source FROM shown_relations"
            " WHERE object IN ends LIMIT ?",
            (json.dumps(concepts), RELATIONS_READ),
        )
        sources = self._sources()
        rows.sort(key=lambda row: sources[row[4]].edition, reverse=True)
        once = {tuple(row[:4]): row[4] for row in reversed(rows)}
        query = "SELECT id, name FROM shown_concepts WHERE id IN (SELECT value FROM json_each(?)) AND name <> ''"
        ends = sorted({end for row in rows for end in (row[0], row[2])})
        names = dict(reversed(self._rows(query, (json.dumps(ends),))))
        return [
            Relation(subject, names.get(subject, subject), predicate, target, names.get(target, target), detail, of)
            for (subject, predicate, target, detail), of in ((key, sources[number]) for key, number in once.items())
        ]

    def near(self, name: str) -> list[str]:
        """Return at most ``NEAR`` names that look like ``name``, best first: continuations, then similar spellings."""
        start = folded(name)
        if not start:
            return []
        query = "SELECT DISTINCT text FROM shown_names WHERE folded >= ? AND folded < ? LIMIT ?"
        longer = [row[0] for row in self._rows(query, (start, start + "\U0010ffff", NEAR))]
        alike = {folded(text): text for text in self._around(start)}
        close = difflib.get_close_matches(start, alike, NEAR, _SIMILAR)
        return list(dict.fromkeys([*longer, *(alike[spelling] for spelling in close)]))[:NEAR]

    def _around(self, name: str) -> list[str]:
        """Return the neighbours of ``name`` in the alphabet, preferred names last."""
        before = "SELECT text, kind FROM shown_names WHERE folded < ? ORDER BY folded DESC LIMIT ?"
        after = "SELECT text, kind FROM shown_names WHERE folded >= ? ORDER BY folded LIMIT ?"
        rows = [row for query in (before, after) for row in self._rows(query, (name, NEAR_READ))]
        return [text for text, kind in sorted(rows, key=lambda row: -KINDS.index(row[1]))]

    def _exists(self, concept: str) -> bool:
        return bool(self._rows("SELECT 1 FROM shown_concepts WHERE id = ? LIMIT 1", (concept,)))

    def _xrefs(self, concept: str) -> list[tuple[Any, ...]]:
        query = "SELECT DISTINCT target FROM shown_xrefs WHERE concept = ? ORDER BY target LIMIT ?"
        return self._rows(query, (concept, NAMES_READ))

    def _sources(self) -> dict[int, Source]:
        rows = self._database.execute("SELECT id, document, collection, title, edition FROM shown_sources")
        return {row[0]: Source(*row[1:]) for row in rows}

    def _rows(self, query: str, values: Sequence[str | int]) -> list[tuple[Any, ...]]:
        return self._database.execute(query, values).fetchall()


def _distance(name: Name, spelling: str) -> tuple[bool, int, bool]:
    """How a name differs from the ``spelling`` asked for: letters, kind, capitals."""
    return name.text.casefold() != spelling.casefold(), KINDS.index(name.kind), name.text != spelling


# --- definitions as passages ----------------------------------------------------------------------------------------


def cited_passage(concept: Concept) -> Passage | None:
    """Return the definition of ``concept`` as a passage of its file, for citing and opening (``with_prefix``)."""
    source = concept.defined_in
    if source is None:
        return None
    text = f"{concept.name}: {' '.join(concept.definition.split())}"
    return Passage(
        digest(source.document, concept.id),
        source.document,
        source.collection,
        detect(concept.definition),
        source.edition,
        source.title,
        (concept.name,),
        text,
        f"0-{len(text)}",
    )


def with_prefix(graph: Graph, prefix: str) -> list[Passage]:
    """Return at most two definitions as passages whose id starts with ``prefix``."""
    passages = (cited_passage(concept) for concept in graph.defining(prefix))
    return [passage for passage in passages if passage and passage.id.startswith(prefix)]


class GraphBuild:
    """``graph.sqlite`` in the clone ``building`` of the generation ``parent`` (0: none)."""

    def __init__(self, building: Path, data: Path, parent: int) -> None:
        """Migrate a graph of an older schema; leave any other alone."""
        self._path, self._building, self._data, self._parent = building / FILE, building, data, parent
        self._open: Graph | None = None
        if outdated(self._path):
            self.writable()

    def writable(self) -> Graph:
        """Return the graph, copied from the parent's first if shared."""
        if self._open is None:
            if self._parent:
                with generations.lease(self._data, self._parent) as parent:
                    generations.unshare(parent, self._building, FILE)
            self._open = Graph(self._path, writable=True)
        return self._open

    def remove(self, documents: Sequence[str]) -> None:
        """Remove the rows of ``documents``; nothing is copied if the graph has none of them."""
        known: list[str] = []
        if self._open is None and self._path.exists():
            with closing(Graph(self._path)) as graph:
                known = graph.documents()
        if self._open or not set(known).isdisjoint(documents):
            self.writable().remove(documents)

    def close(self) -> None:
        """Commit, if it was opened."""
        if self._open:
            self._open.close()
            self._open = None


def outdated(path: Path) -> bool:
    """Whether the graph at ``path`` has an older schema."""
    if not path.exists():
        return False
    with closing(open_immutable(path)) as database, suppress(sqlite3.DatabaseError):  # opening it reports the fault
        return int(database.execute("PRAGMA user_version").fetchone()[0]) < len(GRAPH)
    return False
