"""Which file holds the newest version of a record, where a manifest says ``[options] versions = "latest"``.

PubMed revises a record by publishing it again in a later file. Rules: such a record's document is keyed by the record
alone, not by its file, so that its id, its marks and its withdrawal stay from version to version; the file whose name
sorts last wins, since PubMed numbers its files through; a file that is gone or read again now does not count. A file
that is only missing still does, for its deletions and retractions hold, unless one of its name is read: it was moved.
Files are read last first, so most older versions are passed over before anything is written.

Not covered: a file name that does not tell the order; two versions within one file (the reader's business).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from localmed.domain import Document
from localmed.ingest.sources import Source, largest_first
from localmed.library.catalogue import Catalogue


def order(path: str) -> tuple[str, str]:
    """What files are ordered by: their names, whatever folder they are in."""
    return Path(path).name, path


def in_order(sources: Iterable[Source], known: Collection[str], latest: bool) -> list[Source]:
    """``sources`` as they are read: files that are ``known`` first, since theirs are the documents, not their copies'.

    Where versions count (``latest``), the last comes first.
    """
    if latest:
        return sorted(sources, key=lambda source: order(str(source.path)), reverse=True)
    return sorted(sources, key=lambda source: (str(source.path) not in known, largest_first(source)))


def _moved(old: str, new: str) -> bool:
    """Whether ``new`` is the file ``old`` in another folder."""
    return Path(old).name == Path(new).name and not Path(old).exists()


class Versions:
    """Records and their files, of one import into one collection."""

    def __init__(self, catalogue: Catalogue, replaced: Iterable[str]) -> None:
        """``replaced`` are the paths of the files that this import reads again or that are gone."""
        self._catalogue = catalogue
        self._replaced = set(replaced)
        self._accepted: dict[str, str] = {}  # document id -> path

    def newer(self, document: Document) -> str:
        """The path of the file that holds a newer version of ``document``; "" if there is none."""
        accepted = self._accepted.get(document.id, document.source)
        if accepted != document.source:
            return accepted
        stored = self.stored(document)
        if stored is None or stored.source in self._replaced or _moved(stored.source, document.source):
            return ""
        return stored.source if order(stored.source) > order(document.source) else ""

    def stored(self, document: Document) -> Document | None:
        """The version of ``document`` that stands in the catalogue from another file."""
        stored = self._catalogue.by_ids([document.id]).get(document.id)
        return stored if stored and stored.source != document.source else None

    def accept(self, documents: Iterable[str], path: str) -> None:
        """A file was taken: these ids are its from now on."""
        self._accepted |= dict.fromkeys(documents, path)

    def refuse(self, path: str) -> None:
        """A file was refused and keeps what was stored of it."""
        self._replaced.discard(path)
