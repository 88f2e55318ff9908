"""The best passages whose documents may answer: any index is searched for more until enough of them are found.

Where few documents may answer (``search --status superseded``), or most of the best may not, their ids are given to the
index instead, some at a time: asking for ever more passages would end at what the model host gives in one search.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from localmed import hooks
from localmed.domain import SearchFilter, Status

Found = list[tuple[str, str, float]]  # (passage id, document id, score), best first
Search = Callable[[int, SearchFilter], Found]

MOST_PASSAGES = 20_000  # asked of an index at once; the model host gives 100,000
IDS_A_SEARCH = 1_000  # documents named in one search; the model host takes 1,024 texts


def allowed(
    search: Search,
    limit: int,
    filters: SearchFilter,
    status_of: Mapping[str, Status],
    documents: Callable[[], Iterable[str]],
) -> Found:
    """The best ``limit`` passages of documents with a status that ``filters`` name.

    ``status_of`` holds the documents that are not current; ``documents`` gives the ids of all. Pending ones never
    answer.
    """
    if limit < 1:
        return []
    statuses = {*filters.statuses} - {Status.PENDING}
    if Status.CURRENT not in statuses:
        return _among(search, limit, filters, [name for name, status in status_of.items() if status in statuses])
    number = limit
    while number <= max(limit, MOST_PASSAGES):
        hooks.check()
        rows = search(number, filters)
        kept = [row for row in rows if status_of.get(row[1], Status.CURRENT) in statuses]
        if len(kept) >= limit or len(rows) < number:
            return kept[:limit]
        number *= 4
    return _among(
        search, limit, filters, [name for name in documents() if status_of.get(name, Status.CURRENT) in statuses]
    )


def _among(search: Search, limit: int, filters: SearchFilter, documents: Collection[str]) -> Found:
    """The best ``limit`` passages of ``documents``, as far as ``filters`` allow them."""
    named = set(filters.documents)
    chosen = sorted(name for name in documents if not named or name in named)
    rows: Found = []
    for start in range(0, len(chosen), IDS_A_SEARCH):
        rows += search(limit, replace(filters, documents=tuple(chosen[start : start + IDS_A_SEARCH])))
    return sorted(rows, key=lambda row: -row[2])[:limit]
