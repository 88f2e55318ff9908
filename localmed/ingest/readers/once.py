"""Each record of a file once: what comes again under the same key is refused, since the first was read already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from localmed.ingest.parsed import Fault, Record


def once(items: Iterable[Record | Fault], where: str = "{}") -> Iterator[Record | Fault]:
    """``items`` with a fault in place of a record whose key came before; ``where`` is how a fault calls a key."""
    seen: set[str] = set()
    for item in items:
        if isinstance(item, Fault):
            yield item
        elif item.key in seen:
            yield Fault(where.format(item.key), "comes twice in the file; the first was read")
        else:
            seen.add(item.key)
            yield item
