"""The dense index: LanceDB, one vector a passage, vectors of its sentences, and the columns that dense search filters
by.

Up to ``index_above`` rows a search compares every vector. Above that an IVF index of half-precision partitions
(IVF_HNSW_SQ, Malkov & Yashunin 2018) selects candidates, which the full vectors rescore. Rows added after an index was
built are compared one by one until there are enough to extend it.

Vectors are unit length, so the dot product is the cosine similarity; similarities are returned, not distances. Vectors
of sentences (or rows of a table) are float16, in order, and read for candidates only.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from localmed.domain import Passage, SearchFilter
from localmed.domain.errors import Damaged, NoLibrary
from localmed.library import generations
from localmed.library.lexical import edition_number, edition_range
from localmed.library.reading import reading_stored

if TYPE_CHECKING:
    from localmed.domain.ports import Vectors

TABLE = "passages"
FOLDER = f"{TABLE}.lance"
REMOTE = "lance_namespace_urllib3_client"  # of LanceDB: its clients of a catalogue on a network, not used here
COMPACT_FRAGMENTS = 48  # more make every search slower; compacting rewrites the table, so not at every import
COMPACT_VERSIONS = 200  # each keeps a small file and the rows it deleted
EXTEND_SHARE = 0.1  # of the rows: more unindexed ones than this cost a search more than the index saves
PROBES = 24  # partitions searched, where there are several
REFINE = 2  # times the limit, rescored with the full vectors; 4 takes twice the time and finds no more of the true ten
IDS_A_DELETE = 500  # in one SQL expression
OPEN = 2  # indexes: the generation being served, and the one before while questions to it end


@contextmanager
def _without_init(name: str) -> Iterator[None]:
    """Import modules of the package ``name`` within the block without running its ``__init__``.

    LanceDB needs a few classes of ``REMOTE.models``; the package's ``__init__`` creates clients of 366 calls, nearly
    half of LanceDB's import time. After the block the package imports as usual.
    """
    found = None if name in sys.modules else find_spec(name)
    if found is None or found.submodule_search_locations is None:
        yield
        return
    package = ModuleType(name)
    package.__path__ = found.submodule_search_locations
    sys.modules[name] = package
    try:
        yield
    finally:
        if sys.modules.get(name) is package:
            del sys.modules[name]


class DenseIndex:
    """The table in one generation's folder. Deletes and adds only while the generation is being built."""

    def __init__(self, folder: Path, dimensions: int = 0) -> None:
        """Open the table (``FOLDER``) in ``folder``; with ``dimensions``, create it if it does not exist.

        Raise ``Damaged`` if there is none.
        """
        if not dimensions and not (folder / FOLDER).is_dir():
            raise Damaged("library.no_dense_index", generation=folder.name)
        import pyarrow

        with _without_init(REMOTE):
            import lancedb  # lazily: 1.5 seconds

        logging.getLogger("lance").setLevel(logging.ERROR)
        self._arrow = pyarrow
        self._connection = lancedb.connect(folder)
        self._schema = pyarrow.schema(
            [
                *((name, pyarrow.string()) for name in ("id", "document", "collection", "language")),
                ("edition", pyarrow.int32()),
                ("vector", pyarrow.list_(pyarrow.float32(), dimensions)),
                ("sentences", pyarrow.binary()),
            ]
        )
        if (folder / FOLDER).exists():
            with reading_stored("library.index", kind="dense"):
                self._table = self._connection.open_table(TABLE)
        else:
            self._table = self._connection.create_table(TABLE, schema=self._schema)

    def __len__(self) -> int:
        return int(self._table.count_rows())

    def search(self, vector: Vectors, limit: int, filters: SearchFilter) -> list[tuple[str, str, float]]:
        """Return the nearest ``limit`` passages to ``vector`` (D,) as ``(id, document, cosine similarity)``, best
        first.
        """
        query = self._table.search(vector, vector_column_name="vector").distance_type("dot")
        query = query.select(["id", "document", "_distance"]).limit(limit)
        if condition := _condition(filters):
            query = query.where(condition, prefilter=True)
        with reading_stored("library.index", kind="dense"):
            rows = self.tuned(query).to_arrow()
        columns = (rows["id"].to_pylist(), rows["document"].to_pylist(), rows["_distance"].to_pylist())
        return [(passage, document, 1.0 - distance) for passage, document, distance in zip(*columns, strict=True)]

    @staticmethod
    def tuned(query: Any) -> Any:
        """Set this index's search effort on a Lance query."""
        return query.nprobes(PROBES).refine_factor(REFINE)

    def delete_documents(self, documents: Iterable[str]) -> None:
        """Delete every row of the documents."""
        ids = list(documents)
        for start in range(0, len(ids), IDS_A_DELETE):
            self._table.delete(f"document IN ({_quoted(ids[start : start + IDS_A_DELETE])})")

    def add(self, passages: Sequence[Passage], vectors: Vectors, sentences: Sequence[Vectors]) -> None:
        """Add ``passages`` with their ``vectors`` (N, D) and those of the ``sentences`` (S, D) of each."""
        arrow = self._arrow
        columns: list[Any] = [
            arrow.array([getattr(passage, name) for passage in passages], arrow.string())
            for name in ("id", "document_id", "collection", "language")
        ]
        columns.append(arrow.array([edition_number(passage.edition) for passage in passages], arrow.int32()))
        columns.append(arrow.FixedSizeListArray.from_arrays(vectors.reshape(-1), vectors.shape[1]))
        columns.append(arrow.array([one.astype(np.float16).tobytes() for one in sentences], arrow.binary()))
        self._table.add(arrow.Table.from_arrays(columns, schema=self._schema))

    def similarities(self, questions: Vectors, ids: Sequence[str]) -> dict[str, list[float]]:
        """Return for each passage the similarity of each sentence to the nearest of ``questions`` (Q, D).

        Empty for an index without vectors of sentences (older versions).
        """
        if not ids or "sentences" not in self._table.schema.names:
            return {}
        query = self._table.search().where(f"id IN ({_quoted(ids)})").select(["id", "sentences"])
        with reading_stored("library.index", kind="dense"):
            rows = query.limit(len(ids)).to_arrow()
            stored = [
                np.frombuffer(row, np.float16).reshape(-1, questions.shape[1]) for row in rows["sentences"].to_pylist()
            ]
        # a flipped bit may make a NaN, which must not upset the whole order
        near = [
            np.nan_to_num(one.astype(np.float32) @ questions.T, posinf=0.0, neginf=0.0).max(axis=1) for one in stored
        ]
        return dict(zip(rows["id"].to_pylist(), (one.tolist() for one in near), strict=True))

    def tidy(self, index_above: int) -> None:
        """Build the index when it is due; compact and extend the table when enough changes have accumulated.

        Not at every import: it rewrites the table, and an import should cost as much as its change.
        """
        rows = len(self)
        indexed = [index.name for index in self._table.list_indices() if index.columns == ["vector"]]
        if not indexed and rows > index_above:
            from lancedb.index import Bitmap, BTree, IvfHnswSq

            self._table.create_index("vector", config=IvfHnswSq(distance_type="dot"))
            for name in ("collection", "language"):
                self._table.create_index(name, config=Bitmap())
            self._table.create_index("id", config=BTree())
        elif self._needs_compacting(rows, indexed):
            self.compact()

    def compact(self) -> None:
        """Remove deleted rows and older versions, and extend the index."""
        with warnings.catch_warnings():  # about other users of older versions: nobody else opens the clone
            warnings.simplefilter("ignore", UserWarning)
            self._table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)

    def _needs_compacting(self, rows: int, indexed: Sequence[str]) -> bool:
        if indexed and self._table.index_stats(indexed[0]).num_unindexed_rows > EXTEND_SHARE * rows:
            return True
        fragments = self._table.stats()["fragment_stats"]["num_fragments"]
        return bool(fragments > COMPACT_FRAGMENTS or len(self._table.list_versions()) > COMPACT_VERSIONS)


def _condition(filters: SearchFilter) -> str:
    parts = []
    if filters.collections:
        parts.append(f"collection IN ({_quoted(filters.collections)})")
    if filters.documents:
        parts.append(f"document IN ({_quoted(filters.documents)})")
    if filters.language:
        parts.append(f"language = {_quoted([filters.language])}")
    if filters.edition_from or filters.edition_to:
        low, high = edition_range(filters)
        parts.append(f"edition >= {low} AND edition <= {high}")
    return " AND ".join(parts)


def _quoted(values: Iterable[str]) -> str:
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)


class Nearest:
    """The dense indexes of a data folder, opened at first use: the model host's dense search for other processes.

    LanceDB's import takes longer than the rest of a command's question, so the model host keeps the indexes open. The
    caller holds the generation's lease, so that nothing is removed during a search. One thread at a time.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self._opened: dict[tuple[str, int], DenseIndex] = {}

    def warm(self) -> None:
        """Open the index being served, if there is a library."""
        with suppress(NoLibrary, Damaged), generations.lease(self._data) as generation:
            self._index(generation.name)

    def search(
        self, generation: str, vector: Vectors, limit: int, filters: SearchFilter
    ) -> list[tuple[str, str, float]]:
        """See ``DenseIndex.search``; raise ``Damaged`` if ``generation`` does not exist or has no index."""
        return self._index(generation).search(vector, limit, filters)

    def similarities(self, generation: str, questions: Vectors, ids: Sequence[str]) -> dict[str, list[float]]:
        """See ``DenseIndex.similarities``; raise ``Damaged`` like ``search``."""
        return self._index(generation).similarities(questions, ids)

    def _index(self, generation: str) -> DenseIndex:
        folder = generations.folder(self._data) / generation
        if not generation.isdigit() or not (folder / FOLDER).is_dir():
            raise Damaged("generation.no_dense")
        key = (generation, folder.stat().st_ino)  # a number may come again, after a build that failed
        if key not in self._opened:
            while len(self._opened) >= OPEN:
                del self._opened[next(iter(self._opened))]
            self._opened[key] = DenseIndex(folder)
        return self._opened[key]
