"""The concept graph of the generation being built: shared with the one before until somebody changes it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from localmed.library import generations
from localmed.library.graph import FILE, Graph
from localmed.library.migrations import GRAPH


class GraphBuild:
    """``graph.sqlite`` in the clone ``building`` of the generation ``parent`` (0 where there is none)."""

    def __init__(self, building: Path, data: Path, parent: int) -> None:
        """Bring a graph of an older schema to today's; leave any other alone."""
        self._path, self._building, self._data, self._parent = building / FILE, building, data, parent
        self._open: Graph | None = None
        if outdated(self._path):
            self.writable()

    def writable(self) -> Graph:
        """The graph, which shares no bytes with the generation before from now on."""
        if self._open is None:
            if self._parent:
                with generations.lease(self._data, self._parent) as parent:
                    generations.unshare(parent, self._building, FILE)
            self._open = Graph(self._path, writable=True)
        return self._open

    def remove(self, documents: Sequence[str]) -> None:
        """Remove what came from ``documents``; nothing is copied for those that the graph does not know."""
        if self._open or self._holds(documents):
            self.writable().remove(documents)

    def close(self) -> None:
        """Commit, if it was opened."""
        if self._open:
            self._open.close()
            self._open = None

    def _holds(self, documents: Sequence[str]) -> bool:
        if not self._path.exists():
            return False
        with closing(Graph(self._path)) as graph:
            return not set(graph.documents()).isdisjoint(documents)


def outdated(path: Path) -> bool:
    """Whether there is a graph at ``path`` of an older schema than today's."""
    if not path.exists():
        return False
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        return int(database.execute("PRAGMA user_version").fetchone()[0]) < len(GRAPH)
    except sqlite3.DatabaseError:
        return False  # whoever opens it says what is wrong with it
    finally:
        database.close()
