"""Dense search for other processes: the model host keeps open the indexes that commands ask for.

Importing LanceDB costs a command more time than all the rest of a question; who only searches need not. The caller
holds the lease on the generation, so that nothing is removed while it is searched. One thread at a time.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.domain import SearchFilter
from localmed.errors import Damaged, NoLibrary
from localmed.library import generations
from localmed.library.dense import FOLDER, DenseIndex

if TYPE_CHECKING:
    from localmed.ports import Vectors

OPEN = 2  # indexes: the generation being served, and the one before while questions to it end


class Nearest:
    """The dense indexes of a data folder, each opened when it is first asked for."""

    def __init__(self, data: Path) -> None:
        """Nothing is opened yet."""
        self._data = data
        self._opened: dict[tuple[str, int], DenseIndex] = {}

    def warm(self) -> None:
        """Open the index being served, if there is a library."""
        with suppress(NoLibrary, Damaged):
            self._index(generations.current(self._data).name)

    def __call__(
        self, generation: str, vector: Vectors, limit: int, filters: SearchFilter
    ) -> list[tuple[str, str, float]]:
        """See ``DenseIndex.search``; raise ``Damaged`` if ``generation`` is none or has no index."""
        return self._index(generation).search(vector, limit, filters)

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
