"""The guideline map's store: one summary a guideline, in ``library.sqlite``, swapped with what it summarises.

A summary says which sentences it was made of (``places``: passage id and characters), so that each of its words can be
looked up. It is kept under the digest of the document's content and the recipe it was made by: while both stand it is
not made again. ``SummaryTable`` is what is searched, read once an open library: 5,000 guidelines of 384 dimensions are
8 MB of vectors and about as much of words.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from localmed.domain import Kind
from localmed.library.reading import stored_bytes

if TYPE_CHECKING:
    from localmed.ports import Vectors

# A summary is stale once its document is gone, says something else, or belongs to no collection of guidelines.
_STANDING = """
    SELECT documents.id FROM documents JOIN collections ON collections.name = documents.collection
    WHERE collections.kind = ? AND documents.content = summaries.content AND documents.id = summaries.document
"""


@dataclass(frozen=True, slots=True)
class Place:
    """A sentence of a summary: the characters ``start:end`` of a passage."""

    passage: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What a guideline is about: its title, its outline and sentences of it. ``words`` are its index terms."""

    document: str
    content: str
    recipe: str
    text: str
    places: tuple[Place, ...]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summarised:
    """A summary's document, as far as filters ask about it."""

    document: str
    collection: str
    language: str
    edition: str


class Summaries:
    """The table ``summaries`` of an open catalogue; written only in a generation that is being built."""

    def __init__(self, database: sqlite3.Connection) -> None:
        """Use ``Catalogue.summaries``."""
        self._database = database

    def __len__(self) -> int:
        """How many there are."""
        return int(self._database.execute("SELECT COUNT(*) FROM summaries").fetchone()[0])

    def of(self, document: str) -> Summary | None:
        """The summary of a document, if it has one."""
        query = "SELECT document, content, recipe, text, places, words FROM summaries WHERE document = ?"
        row = self._database.execute(query, (document,)).fetchone()
        if not row:
            return None
        known, content, recipe, text, places, words = row
        with stored_bytes("library.database_damaged"):
            return Summary(
                known, content, recipe, text, tuple(Place(*load) for load in json.loads(places)), tuple(words.split())
            )

    def recipes(self) -> dict[str, tuple[str, str]]:
        """Document -> (content, recipe) of every summary."""
        rows = self._database.execute("SELECT document, content, recipe FROM summaries")
        return {document: (content, recipe) for document, content, recipe in rows}

    def put(self, summary: Summary, vector: Vectors | None) -> None:
        """Add or replace a summary; ``vector`` (D) is ``None`` where the encoder does not know the language."""
        places = json.dumps([(place.passage, place.start, place.end) for place in summary.places])
        encoded = b"" if vector is None else np.asarray(vector, np.float32).tobytes()
        values = (summary.document, summary.content, summary.recipe, summary.text, places, " ".join(summary.words))
        self._database.execute("INSERT OR REPLACE INTO summaries VALUES (?, ?, ?, ?, ?, ?, ?)", (*values, encoded))

    def sweep(self) -> int:
        """Remove the stale ones; return how many."""
        query = f"DELETE FROM summaries WHERE NOT EXISTS ({_STANDING})"  # noqa: S608  (no input in the text)
        return self._database.execute(query, (Kind.GUIDELINE.value,)).rowcount

    def table(self) -> SummaryTable:
        """All of them, to be searched."""
        query = """
            SELECT documents.id, collection, language, edition, words, vector
            FROM summaries JOIN documents ON documents.id = summaries.document ORDER BY documents.id
        """
        rows = self._database.execute(query).fetchall()
        with stored_bytes("library.database_damaged"):
            documents = tuple(Summarised(*row[:4]) for row in rows)
            return SummaryTable(documents, _stacked([row[5] for row in rows]), [row[4] for row in rows])


class SummaryTable:
    """The summaries of one generation in memory, row by row."""

    def __init__(self, documents: tuple[Summarised, ...], vectors: Vectors, words: list[str]) -> None:
        """``vectors`` (N, D) has zeros where there is none; ``words`` are each row's terms, apart by blanks."""
        self.documents, self.vectors = documents, vectors
        self._words = [f" {word} " for word in words]  # scanned: a dictionary of their terms takes longer to make

    def __len__(self) -> int:
        """How many summaries."""
        return len(self.documents)

    def similarities(self, vector: Vectors) -> Vectors:
        """The cosine similarity of every row to a unit ``vector`` (D): (N); 0 where the row has no vector."""
        if not self.vectors.shape[1]:
            return np.zeros(len(self), np.float32)
        similar: Vectors = self.vectors @ vector
        return similar

    def coverage(self, weights: Mapping[str, float]) -> Vectors:
        """The share of the terms' weight that every row holds: (N), from 0 to 1."""
        held = np.zeros(len(self), np.float32)
        for term, weight in weights.items():
            held += np.array([weight if f" {term} " in word else 0.0 for word in self._words], np.float32)
        return held / max(sum(weights.values()), 1e-9)

    @cached_property
    def ids(self) -> frozenset[str]:
        """The documents that have a summary."""
        return frozenset(document.document for document in self.documents)


def _stacked(encoded: list[bytes]) -> Vectors:
    """The stored vectors as (N, D), zeros for those that are missing; (N, 0) if all are."""
    dimensions = max((len(vector) for vector in encoded), default=0) // 4
    vectors = np.zeros((len(encoded), dimensions), np.float32)
    for row, vector in enumerate(encoded):
        if vector:
            vectors[row] = np.frombuffer(vector, np.float32)
    return vectors
