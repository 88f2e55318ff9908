"""Finds stored documents that the records of an import repeat or replace.

``Twins``: a collection stores each content once. Documents of files that are read again or were refused do not count.
A document whose file is gone gives way to the same content elsewhere: the file was moved.

``Versions``, for manifests with ``[options] versions = "latest"``: PubMed revises a record by publishing it in a later
file. Such a document is keyed by the record alone, so its id, marks and withdrawal last; the file whose name sorts
last wins. A missing file still counts, because its deletions and retractions hold, unless a file of its name is read:
it was moved. Files are read last first, so most older versions are skipped unwritten.

``NearCopies``: a withdrawn document that comes back slightly changed is held for the librarian, who alone can
distinguish a corrected edition from a copy.

Not covered: file names that do not sort by age; two versions within one file (the reader's task).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from localmed.domain import Document
from localmed.ingest.sources import Source, largest_first
from localmed.library.catalogue import Catalogue
from localmed.library.journal import Withdrawal
from localmed.library.sketches import ALIKE, HEX, likeness, sketch


def file_order(path: str) -> tuple[str, str]:
    """The sort key of a file: its name, whatever its folder."""
    return Path(path).name, path


def reading_order(sources: Iterable[Source], known: Collection[str], latest: bool) -> list[Source]:
    """``sources`` in reading order: the last file first if versions count (``latest``), else ``known`` files first."""
    if latest:
        return sorted(sources, key=lambda source: file_order(str(source.path)), reverse=True)
    # Known files own their documents; the others may be copies
    return sorted(sources, key=lambda source: (str(source.path) not in known, largest_first(source)))


class Versions:
    """Records and their files, for one import into one collection."""

    def __init__(self, catalogue: Catalogue, replaced: Iterable[str]) -> None:
        """``replaced`` are the paths of files that this import reads again or that are gone."""
        self._catalogue = catalogue
        self._replaced = set(replaced)
        self._accepted: dict[str, str] = {}  # document id -> path

    def newer(self, document: Document) -> str:
        """The path of the file with a newer version of ``document``; "" if there is none."""
        if (accepted := self._accepted.get(document.id, document.source)) != document.source:
            return accepted
        stored = self.stored(document)
        if stored is None or stored.source in self._replaced:
            return ""
        if Path(stored.source).name == Path(document.source).name and not Path(stored.source).exists():
            return ""  # the file was moved
        return stored.source if file_order(stored.source) > file_order(document.source) else ""

    def stored(self, document: Document) -> Document | None:
        """The version of ``document`` stored from another file."""
        stored = self._catalogue.by_ids([document.id]).get(document.id)
        return stored if stored and stored.source != document.source else None

    def accept(self, documents: Iterable[str], path: str) -> None:
        """Record that the file ``path`` was taken with these document ids."""
        self._accepted |= dict.fromkeys(documents, path)

    def refuse(self, path: str) -> None:
        """Record that the file ``path`` was refused and keeps its stored documents."""
        self._replaced.discard(path)


class Twins:
    """Contents and their documents, for one import into one collection."""

    def __init__(self, catalogue: Catalogue, replaced: Iterable[str]) -> None:
        """``replaced`` are the paths of files that this import reads again."""
        self._catalogue = catalogue
        self._replaced = set(replaced)
        self._accepted: dict[str, str] = {}  # content -> document id

    def find(self, document: Document) -> str:
        """The id of another document with the same content that stays; "" if there is none."""
        if (accepted := self._accepted.get(document.content, document.id)) != document.id:
            return accepted
        return next((stored.id for stored in self._stored(document) if Path(stored.source).exists()), "")

    def moved(self, document: Document) -> list[Document]:
        """The stored documents with the same content whose files are gone."""
        return [stored for stored in self._stored(document) if not Path(stored.source).exists()]

    def accept(self, contents: Mapping[str, str]) -> None:
        """Record the documents (content -> id) of a file that was taken."""
        self._accepted |= contents

    def refuse(self, collection: str, path: str) -> list[Document]:
        """Record that a file was refused; return its stored documents whose content another file has taken over."""
        self._replaced.discard(path)
        stored = self._catalogue.of_file(collection, path)
        return [document for document in stored if self._accepted.get(document.content, document.id) != document.id]

    def _stored(self, document: Document) -> list[Document]:
        documents = self._catalogue.with_content(document.collection, document.content)
        return [stored for stored in documents if stored.id != document.id and stored.source not in self._replaced]


class NearCopies:
    """The withdrawn documents of which an imported document may be a near-copy."""

    def __init__(self, catalogue: Catalogue, withdrawn: Iterable[Withdrawal]) -> None:
        """``withdrawn`` are those in force that have a sketch."""
        self._catalogue = catalogue
        self._entries = tuple(withdrawn)
        self._by_hash: dict[str, list[int]] = {}
        for number, entry in enumerate(self._entries):
            for start in range(0, len(entry.sketch), HEX):
                self._by_hash.setdefault(entry.sketch[start : start + HEX], []).append(number)

    def find(self, document: Document, texts: Iterable[str]) -> tuple[Withdrawal, float] | None:
        """The withdrawn document most similar to ``document`` with the passages ``texts``, and the similarity.

        None if that is too low, or if the document is itself withdrawn or already stored: somebody has accepted it.
        """
        if not self._entries or self._is_known(document):
            return None
        text = sketch(texts)
        near = [(entry, likeness(text, entry.sketch)) for entry in self._sharing(text)]
        return max((pair for pair in near if pair[1] >= ALIKE), key=lambda pair: pair[1], default=None)

    def _sharing(self, text: str) -> list[Withdrawal]:
        """The entries that share a quarter of their hashes with the sketch ``text``; no other can be alike."""
        shared: Counter[int] = Counter()
        for start in range(0, len(text), HEX):
            shared.update(self._by_hash.get(text[start : start + HEX], ()))
        least = len(text) // HEX / 4
        return [self._entries[number] for number, count in shared.items() if count >= least]

    def _is_known(self, document: Document) -> bool:
        if any(document.id == entry.document or document.content == entry.content for entry in self._entries):
            return True
        stored = self._catalogue.by_ids([document.id]).get(document.id)
        return stored is not None and stored.content == document.content
