"""The guideline map (LINS, "Local guidelines database"): a guideline is found by its summary, then read.

A question is compared with every guideline's summary: by meaning where the encoder knows its language, else by the
share of its weight that the summary's words hold. What is found is opened: its best passages become candidates and its
rank joins the fusion (see ``search``), or the whole document is read where it fits (``to_read``). Brute force over the
vectors, which is exact. A library without guidelines costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from localmed.config import SearchSettings
from localmed.domain import SearchFilter, Status
from localmed.library.library import Library
from localmed.library.summaries import Summarised
from localmed.library.tantivy_index import edition_number, edition_range
from localmed.retrieval.weights import weigh

if TYPE_CHECKING:
    from localmed.ports import Vectors


class GuidelineMap:
    """The summaries of one open library."""

    def __init__(self, library: Library, settings: SearchSettings) -> None:
        """Nothing is read before the first ``find``."""
        self._library, self._settings = library, settings

    def __bool__(self) -> bool:
        """Whether there is anything to find."""
        return bool(self._settings.guidelines and self._settings.guideline_weight and len(self._library.guidelines))

    def find(self, question: str, vector: Vectors | None, filters: SearchFilter) -> tuple[str, ...]:
        """The ids of the guidelines about ``question``, best first, at most ``search.guidelines`` of them.

        ``vector`` (D) is the question's, ``None`` where the encoder does not know its language. A search within
        documents that are named already needs no map.
        """
        if filters.documents or not self:
            return ()
        table = self._library.guidelines
        if vector is None:
            least = self._settings.guideline_coverage
            scores = table.coverage(weigh(question, self._library.lexical).weights)
        else:
            least = self._settings.guideline_similarity
            scores = table.similarities(vector)
        guidelines: list[str] = []
        for row in np.argsort(-scores, kind="stable"):
            if len(guidelines) == self._settings.guidelines or scores[row] < least:
                break
            if self._allowed(table.documents[row], filters):
                guidelines.append(table.documents[row].document)
        return tuple(guidelines)

    def bonus(self, opened: Sequence[str]) -> Callable[[str], float] | None:
        """What the fusion adds to a document by its rank among ``opened``; ``None`` where the map found nothing.

        The map orders guidelines among themselves. Of other documents it knows nothing, so they gain what the first
        guideline gains: otherwise it would push down the leaflet or the formulary that a question is about.
        """
        if not opened:
            return None
        weight, k, table = self._settings.guideline_weight, self._settings.rrf_k, self._library.guidelines
        ranked = dict.fromkeys(table.ids, 0.0)
        ranked |= {guideline: weight / (k + rank) for rank, guideline in enumerate(opened, 1)}
        return lambda document: ranked.get(document, weight / (k + 1))

    def _allowed(self, summarised: Summarised, filters: SearchFilter) -> bool:
        """Whether ``filters`` let the document answer."""
        low, high = edition_range(filters)
        status = self._library.status(summarised.document)
        return (
            (not filters.collections or summarised.collection in filters.collections)
            and (not filters.language or summarised.language == filters.language)
            and low <= edition_number(summarised.edition) <= high
            and status in filters.statuses
            and status is not Status.PENDING
        )
