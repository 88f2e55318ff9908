"""One open generation: what retrieval reads, and the builder of the next one.

``Library.open`` leases the generation being served. Searches leave out documents that may not answer on the day
(``holding.py``). A library is opened for one reader: collections hidden from them are not in its catalogue, graph or
passages, and every index is searched within the others.

``build`` is the only way to change anything: clone, apply, compare the indexes with the catalogue, publish.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

import numpy as np

from localmed.config import LibrarySettings
from localmed.domain import Collection, Document, Message, Passage, SearchFilter, Status
from localmed.domain.errors import Damaged, NoLibrary, UnknownName, WrongEncoder
from localmed.library import generations, originals, pruning
from localmed.library.catalogue import FILE as CATALOGUE
from localmed.library.catalogue import Catalogue
from localmed.library.dense import FOLDER as DENSE
from localmed.library.dense import DenseIndex
from localmed.library.generations import Patience
from localmed.library.graph import FILE as GRAPH
from localmed.library.graph import Graph, GraphBuild, with_prefix
from localmed.library.holding import Found, Holding, Search, search_allowed, today
from localmed.library.in_force import have_copy, in_force, newest
from localmed.library.lexical import LexicalIndex, SparseIndex, Writer
from localmed.library.reading import missing, name_damage, reading_stored, require_unaltered
from localmed.library.remarks import Remark, remarks
from localmed.library.state import connect
from localmed.library.vectors import Encoded
from localmed.process.files import Opener, open_regular, told_if_full

if TYPE_CHECKING:
    from localmed.domain.ports import EncoderIdentity, Vectors, Weights

Nearest = Callable[["Vectors", int, SearchFilter], Found]
Similarities = Callable[["Vectors", Sequence[str]], dict[str, list[float]]]
LEXICAL = "lexical"
SPARSE = "sparse"  # only with a sparse encoder
DENSE_BATCH = 4096  # rows a write to Lance: every write adds a fragment, and fragments slow each search


class Library(AbstractContextManager["Library"]):
    """A leased generation, read-only. One thread at a time; close it, or use it as a context manager."""

    def __init__(self, data: Path, generation: Path, lease: IO[bytes], hidden: frozenset[str], day: str) -> None:
        self.data, self.hidden = data, hidden
        self.path = generation
        self._lease = lease
        self.manifest = generations.read_manifest(generation)
        self.catalogue = Catalogue(generation / CATALOGUE, hidden=hidden)
        self._within = tuple(collection.name for collection in self.catalogue.collections()) if hidden else None
        self.lexical = LexicalIndex(generation / LEXICAL, self._within)
        self._dense: DenseIndex | None = None
        self._nearest: Nearest | None = None
        self._similarities: Similarities | None = None
        self._sparse: SparseIndex | None = None
        self._graph: Graph | None = None
        self.holding = Holding(data, self.catalogue, day)

    @classmethod
    def open(cls, data: Path, hidden: frozenset[str] = frozenset(), day: str = "") -> Library:
        """Open the generation being served, without the collections ``hidden`` from the reader, as of ``day`` (default:
        today).

        Raise ``NoLibrary`` or ``Damaged``.
        """
        with generations.lease(data) as generation:
            return cls.of(data, generation, hidden, day or today())

    @classmethod
    def of(cls, data: Path, generation: Path, hidden: frozenset[str], day: str, *, checked: bool = False) -> Library:
        """Open, with a lease of its own, a generation that the caller protects from removal.

        ``checked``: its files are known to be unaltered.
        """
        lease = generations.take_lease(generation)
        if lease is None:
            raise Damaged("generation.incomplete", name=generation.name)
        try:
            if not checked:
                require_unaltered(generation)
            with name_damage(generation), reading_stored("library.unreadable", path=str(generation)):
                return cls(data, generation, lease, hidden, day)
        except BaseException:
            lease.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the lease."""
        self.catalogue.close()
        if self._graph:
            self._graph.close()
        self._lease.close()

    @property
    def dense(self) -> DenseIndex:
        """The dense index, opened at first use (LanceDB takes two seconds to import)."""
        if self._dense is None:
            self._dense = DenseIndex(self.path)
        return self._dense

    @property
    def sparse(self) -> SparseIndex:
        """The sparse index, opened at first use; only generations of a sparse encoder have one."""
        if self._sparse is None:
            self._sparse = SparseIndex(self.path / SPARSE, self._within)
        return self._sparse

    @property
    def graph(self) -> Graph:
        """The concept graph without sources that may not answer or be read now; empty if none was imported."""
        if self._graph is None:
            self._graph = Graph(self.path / GRAPH if GRAPH in self.manifest.files else None)
        sources = self._graph.documents()
        shown = self.catalogue.by_ids(sources) if self.hidden else sources
        self._graph.hide(
            [source for source in sources if source not in shown or self.status(source) is not Status.CURRENT]
        )
        return self._graph

    def require(self, encoder: EncoderIdentity) -> None:
        """Raise ``WrongEncoder`` unless the vectors are ``encoder``'s; vectors of sentences may be missing."""
        if self.manifest.encoder not in (encoder.stored_as, encoder.slug):
            raise WrongEncoder("library.encoder", built_with=self.manifest.encoder, encoder=encoder.stored_as)

    def search_lexical(self, question: str, limit: int, filters: SearchFilter, title_boost: float, terms: int) -> Found:
        """Return the best passages by BM25 whose documents may answer."""
        search = partial(self.lexical.search, question, title_boost=title_boost, most_terms=terms)
        return self._allowed(search, limit, filters)

    def search_all(self, name: str, limit: int) -> Found:
        """Return the best passages that contain every word of ``name`` and whose documents may answer."""
        return self._allowed(partial(self.lexical.search_all, [name], title_boost=1.0), limit, SearchFilter())

    def search_dense(self, vector: Vectors, limit: int, filters: SearchFilter) -> Found:
        """Return the nearest passages to ``vector`` whose documents may answer."""
        search = self._nearest or self.dense.search
        within = self._readable(filters)
        return self._allowed(partial(search, vector), limit, within) if within else []

    def sentence_similarities(self, questions: Vectors, passages: Sequence[str]) -> dict[str, list[float]]:
        """See ``DenseIndex.similarities``."""
        return (self._similarities or self.dense.similarities)(questions, passages)

    def searched_by(self, nearest: Nearest, similarities: Similarities) -> None:
        """Let another process that has the dense index open do its searches."""
        self._nearest, self._similarities = nearest, similarities

    def search_sparse(self, weights: Weights, limit: int, filters: SearchFilter) -> Found:
        """Return the best passages by the dot product of token weights whose documents may answer."""
        return self._allowed(partial(self.sparse.search, weights), limit, filters)

    def status(self, document: str) -> Status:
        """Return the status of a document now (``holding.py``)."""
        return self.holding.statuses().get(document, Status.CURRENT)

    def passages(self, ids: Sequence[str]) -> dict[str, Passage]:
        """Return the existing passages among ``ids``."""
        with name_damage(self.path):
            return self.lexical.passages(ids)

    def cited(self, document: Document) -> Document:
        """Return ``document``, about to be cited; raise ``Damaged`` if its status contradicts its own row."""
        if not self.holding.agrees(document):
            raise missing(self.path, document.id)
        return document

    def passage(self, prefix: str) -> Passage:
        """Return the passage or definition whose id starts with ``prefix`` (6 or more characters); raise
        ``UnknownName``.
        """
        long_enough = len(prefix) >= 6
        matches = [*self.lexical.with_prefix(prefix), *with_prefix(self.graph, prefix)] if long_enough else []
        if len(matches) != 1:
            raise UnknownName("search.passage_none")
        return matches[0]

    def _readable(self, filters: SearchFilter) -> SearchFilter | None:
        """Limit ``filters`` to the readable collections; ``None`` if they name no such collection."""
        if self._within is None:
            return filters
        names = tuple(name for name in self._within if not filters.collections or name in filters.collections)
        return replace(filters, collections=names) if names else None

    def _allowed(self, search: Search, limit: int, filters: SearchFilter) -> Found:
        """Return the best ``limit`` passages of ``search`` that may answer, without those switched off."""
        statuses, off = self.holding.statuses(), self.switched_off
        with name_damage(self.path):
            most = limit + len(off) if limit > 0 else limit
            found = search_allowed(search, most, filters, statuses, lambda: self.catalogue.passages_by_document())
        return [row for row in found if row[0] not in off][:limit] if off else found

    @property
    def remarks(self) -> Mapping[str, Remark]:
        """The remarks on single passages, by passage id."""
        return remarks(self.data)

    @property
    def switched_off(self) -> frozenset[str]:
        """The passages that a librarian has switched off: no question finds them."""
        return frozenset(remark.passage for remark in self.remarks.values() if remark.off)

    def document_passages(self, document: str) -> list[Passage]:
        """Return the passages of a document in order, without those switched off."""
        off = self.switched_off
        return [passage for passage in self.lexical.of_document(document) if passage.id not in off]


class Builder:
    """The generation being built. Changes apply to the clone; nothing is served before ``publish``."""

    def __init__(self, data: Path, encoder: EncoderIdentity, settings: LibrarySettings, reindex: bool = False) -> None:
        """Clone the current generation; the caller holds the writer lock (see ``build``)."""
        self._data, self._encoder, self._settings = data, encoder, settings
        if not reindex:
            with suppress(NoLibrary):
                built_with = generations.served_manifest(data).encoder
                if built_with != encoder.stored_as:
                    raise WrongEncoder("library.import_encoder", built_with=built_with, encoder=encoder.stored_as)
        connect(data).close()
        have_copy(data)
        in_force(data)  # raises for a journal that was cut: the new manifest would accept its end
        originals.sweep(data)
        self.path, self.parent = self.begin()
        self.graph = GraphBuild(self.path, data, self.parent)
        self.catalogue = Catalogue(self.path / CATALOGUE, writable=True)
        self._dense: DenseIndex | None = None
        self.lexical = LexicalIndex(self.path / LEXICAL, make=True)  # shows this build's changes from ``settle`` on
        self._writer = self.lexical.writer(settings.writer_memory_bytes)
        if reindex:
            for name in (DENSE, SPARSE):
                shutil.rmtree(self.path / name, ignore_errors=True)
        if encoder.sparse:
            (self.path / SPARSE).mkdir(exist_ok=True)
        self._sparse = SparseIndex(self.path / SPARSE, make=True) if encoder.sparse else None
        self._sparse_writer = self._sparse.writer(settings.writer_memory_bytes) if self._sparse is not None else None
        self._originals: set[str] = set()
        self._doomed: list[str] = []
        self._passages: list[Passage] = []
        self._vectors: list[Vectors] = []
        self._sentences: list[Vectors] = []
        self._settled = False
        self.changed = False

    def begin(self) -> tuple[Path, int]:
        """Return the folder to build in, and the number of the generation that it clones (0: none)."""
        return generations.start_build(self._data)

    @property
    def dense(self) -> DenseIndex:
        """The dense index of the clone."""
        if self._dense is None:
            self._dense = DenseIndex(self.path, self._encoder.dimensions)
        return self._dense

    def keep(self, source: Path, most: int, opened: Opener = open_regular) -> str:
        """Store a file of at most ``most`` bytes among the originals; return its sha256."""
        sha256 = originals.keep(self._data, source, most, opened)
        self._originals.add(sha256)
        return sha256

    def put(self, document: Document) -> None:
        """Add or replace a document's description; ``add`` takes its passages."""
        self.catalogue.put_document(document)
        self.changed = True

    def add(self, passages: Sequence[Passage], encoded: Encoded) -> None:
        """Add encoded passages of documents that were ``put``."""
        self._delete()
        self._writer.add(passages)
        self.add_vectors(passages, encoded)

    def add_vectors(self, passages: Sequence[Passage], encoded: Encoded) -> None:
        """Add vectors of passages whose texts are stored already (a reindexing)."""
        if self._sparse_writer:
            self._sparse_writer.add(passages, encoded.weights)
        self._passages.extend(passages)
        self._vectors.append(encoded.vectors)
        self._sentences += encoded.sentences
        if len(self._passages) >= DENSE_BATCH:
            self._write_dense()
        self.changed = True

    def renew(self) -> None:
        """Store passages without a digest again with one."""
        self._writer.renew(self.lexical)

    def put_collection(self, collection: Collection) -> None:
        """Add or change a collection's description."""
        self.catalogue.put_collection(collection)
        self.changed = True

    def remove_collection(self, name: str) -> None:
        """Remove an empty collection."""
        self.catalogue.remove_collection(name)
        self.changed = True

    def mark(self, document: Document, status: Status, replaced_by: str, reason: str) -> None:
        """Record a librarian's decision about a document; it outlives re-imports."""
        self.catalogue.mark(document, status, replaced_by, reason)
        self.changed = True

    def remove(self, documents: Iterable[str]) -> None:
        """Remove documents from the catalogue now, and from every index before the next addition."""
        ids = list(documents)
        if ids:
            self._doomed.extend(ids)
            self.catalogue.remove_documents(ids)
            self.graph.remove(ids)
            self.changed = True

    def _delete(self) -> None:
        if self._doomed:
            self._write_dense()
            for writer in self._writers:
                writer.delete_documents(self._doomed)
            self.dense.delete_documents(self._doomed)
            self._doomed = []

    def _write_dense(self) -> None:
        if self._passages:
            self.dense.add(self._passages, np.concatenate(self._vectors), self._sentences)
            self._passages, self._vectors, self._sentences = [], [], []

    def settle(self) -> None:
        """Flush additions and removals, so that they can be read; nothing may be added afterwards."""
        if not self._settled:
            self._delete()
            self._write_dense()
            for writer in self._writers:
                writer.finish()
            self.lexical.reload()
            if self._sparse is not None:
                self._sparse.reload()
            self._settled = True

    def publish(self, reason: Message) -> int:
        """Check and publish; return the new generation's number. ``reason`` describes the change."""
        self.settle()
        self.dense.tidy(self._settings.index_above)
        counts = self.catalogue.counts().values()
        documents, passages = sum(count for count, _ in counts), sum(count for _, count in counts)
        self._compare(passages)
        self.catalogue.close()
        self.graph.close()
        originals.sync(self._data, self._originals)
        number = generations.publish(
            self._data,
            self.path,
            self.parent,
            reason,
            self._encoder.stored_as,
            documents,
            passages,
            newest(self._data),
        )
        with suppress(Damaged):  # unreadable history of served generations; ``generations prune`` reports it
            pruning.prune(self._data, self._settings.keep_generations)
        return number

    def discard(self) -> None:
        """Remove the build; published generations are unaffected."""
        with suppress(sqlite3.Error):
            self.catalogue.close()
            self.graph.close()
        for writer in self._writers:
            with suppress(ValueError, RuntimeError):  # already finished
                writer.abandon()
        generations.abandon_build(self._data)

    @property
    def _writers(self) -> list[Writer]:
        return [self._writer, self._sparse_writer] if self._sparse_writer else [self._writer]

    def _compare(self, passages: int) -> None:
        """Raise ``Damaged`` unless the indexes and the catalogue have the same number of passages."""
        lexical, dense = len(self.lexical), len(self.dense)
        sparse = passages if self._sparse is None else len(self._sparse)
        if not lexical == dense == sparse == passages:
            raise Damaged("library.counts", lexical=lexical, dense=dense, sparse=sparse, passages=passages)


Built = TypeVar("Built", bound=Builder)


def build(
    data: Path,
    encoder: EncoderIdentity,
    settings: LibrarySettings,
    reindex: bool = False,
    patience: Patience = generations.AT_ONCE,
) -> AbstractContextManager[Builder]:
    """Take the writer lock and make a builder (see ``building``).

    ``reindex`` drops all vectors and weights of the clone: every passage must be encoded again.
    """
    return building(data, partial(Builder, data, encoder, settings, reindex), patience)


@contextmanager
def building(data: Path, begin: Callable[[], Built], patience: Patience) -> Iterator[Built]:
    """Take the writer lock and call ``begin``; whatever is not published is discarded, also on Ctrl-C."""
    with told_if_full(data), closing(generations.lock_writer(data, patience)):
        try:
            builder = begin()
        except BaseException:
            generations.abandon_build(data)
            raise
        try:
            yield builder
        finally:
            builder.discard()
