"""Which stored documents a file's records repeat or replace, while an import is changing them.

``Twins``: a content is stored once in a collection. What is stored from a file that this import reads again does not
count, for it is about to be replaced; nor does what a file holds that was read and then refused. A stored document
whose file is gone gives way to the same content elsewhere: the file was moved.

``Versions``, where a manifest says ``[options] versions = "latest"``: which file holds the newest version of a record.
PubMed revises a record by publishing it again in a later file. Such a record's document is keyed by the record alone,
not by its file, so that its id, its marks and its withdrawal stay from version to version; the file whose name sorts
last wins, since PubMed numbers its files through; a file that is gone or read again now does not count. A file that is
only missing still does, for its deletions and retractions hold, unless one of its name is read: it was moved. Files are
read last first, so most older versions are passed over before anything is written.

``NearCopies``: a withdrawn document that comes back with a few words changed, under another name or in another
collection, is held for the librarian, who alone can tell a corrected edition from a copy of what was recalled.

Not covered: a file name that does not tell the order; two versions within one file (the reader's business).
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
        if stored is None or stored.source in self._replaced:
            return ""
        if Path(stored.source).name == Path(document.source).name and not Path(stored.source).exists():
            return ""  # the file was moved
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


class Twins:
    """Contents and their documents, of one import into one collection."""

    def __init__(self, catalogue: Catalogue, replaced: Iterable[str]) -> None:
        """``replaced`` are the paths of the files that this import reads again."""
        self._catalogue = catalogue
        self._replaced = set(replaced)
        self._accepted: dict[str, str] = {}  # content -> document id

    def of(self, document: Document) -> str:
        """The id of another document with the same content that stays; "" if there is none."""
        accepted = self._accepted.get(document.content, document.id)
        if accepted != document.id:
            return accepted
        return next((stored.id for stored in self._stored(document) if Path(stored.source).exists()), "")

    def moved(self, document: Document) -> list[Document]:
        """The stored documents with the same content whose files are gone."""
        return [stored for stored in self._stored(document) if not Path(stored.source).exists()]

    def accept(self, contents: Mapping[str, str]) -> None:
        """A file was taken: its documents (content -> id) are stored from now on."""
        self._accepted |= contents

    def refuse(self, collection: str, path: str) -> list[Document]:
        """A file was refused and keeps what was stored of it; return those whose content another has taken since."""
        self._replaced.discard(path)
        stored = self._catalogue.of_file(collection, path)
        return [document for document in stored if self._accepted.get(document.content, document.id) != document.id]

    def _stored(self, document: Document) -> list[Document]:
        documents = self._catalogue.with_content(document.collection, document.content)
        return [stored for stored in documents if stored.id != document.id and stored.source not in self._replaced]


class NearCopies:
    """The withdrawn documents that a document of an import may be a near copy of."""

    def __init__(self, catalogue: Catalogue, withdrawn: Iterable[Withdrawal]) -> None:
        """``withdrawn`` are those in force that have a sketch; none: everything is taken."""
        self._catalogue = catalogue
        self._entries = tuple(withdrawn)
        self._by_hash: dict[str, list[int]] = {}
        for number, entry in enumerate(self._entries):
            for start in range(0, len(entry.sketch), HEX):
                self._by_hash.setdefault(entry.sketch[start : start + HEX], []).append(number)

    def of(self, document: Document, texts: Iterable[str]) -> tuple[Withdrawal, float] | None:
        """The withdrawn document that ``document`` with the passages ``texts`` resembles most, and how much.

        None where that is too little, where it is itself withdrawn (then it is stored and does not answer), and where
        it is stored as it is: somebody has taken it before.
        """
        if not self._entries or self._is_known(document):
            return None
        text = sketch(texts)
        near = [(entry, likeness(text, entry.sketch)) for entry in self._sharing(text)]
        return max((pair for pair in near if pair[1] >= ALIKE), key=lambda pair: pair[1], default=None)

    def _sharing(self, text: str) -> list[Withdrawal]:
        """The entries that share a quarter of their hashes with the sketch ``text``: no other can be alike."""
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
