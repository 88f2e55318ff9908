"""What an import leaves as it is, though it has changed: files on hold, and those that are being written just now."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from localmed.domain import Message, message
from localmed.ingest.sources import Source


@dataclass(frozen=True, slots=True)
class Leaving:
    """``held`` are hashes of files by path ("": the file stays though it is gone); ``written_since`` is a time."""

    held: Mapping[str, frozenset[str]] = field(default_factory=dict)
    written_since: float = math.inf  # seconds since 1970

    def why(self, source: Source, most: int) -> Message | None:
        """Why ``source`` (of at most ``most`` bytes) is left as it is; None if it is not."""
        hashes = self.held.get(str(source.path), frozenset())
        if hashes and source.sha256(most) in hashes:
            return message("import.held")
        return message("import.being_written") if self._written(source) else None

    def removable(self, paths: Iterable[str]) -> list[str]:
        """Those of ``paths``, which are gone, that may go."""
        return [path for path in paths if "" not in self.held.get(path, ())]

    def _written(self, source: Source) -> bool:
        try:
            return source.path.stat().st_mtime >= self.written_since
        except OSError:
            return False
