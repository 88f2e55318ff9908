"""Which document of a collection has a content, while an import is changing them.

Rules: a content is stored once in a collection. What is stored from a file that this import reads again does not
count, for it is about to be replaced; nor does what a file holds that was read and then refused. A stored document
whose file is gone gives way to the same content elsewhere: the file was moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from localmed.domain import Document
from localmed.library.catalogue import Catalogue


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
