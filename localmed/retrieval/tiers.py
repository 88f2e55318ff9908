"""Collections as tiers (LINS, Hierarchical Retrieval Database; for evidence-based practice HERD).

Evidence for one patient is searched tier by tier; other questions search all tiers at once. A preset lists tiers of
kinds or collection names; without one, collections of equal priority make a tier. A collection belongs to the first
tier that names it. Names that the library lacks and empty collections are skipped, and a note says so.

HERD's tiers are guidelines, PubMed and Bing. Without a network an imported PubMed baseline is the second, and imported
books and encyclopaedias are the third.
"""

from __future__ import annotations

from collections.abc import Collection as Container
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from localmed.domain import Collection, SearchFilter


@dataclass(frozen=True, slots=True)
class Tier:
    """``collections`` searched together, ``skipped`` names, and whether the tier is the ``whole`` library. ``outside``
    are the titles of collections that no tier names, in the last one.
    """

    collections: tuple[str, ...]
    skipped: tuple[str, ...] = ()
    whole: bool = False
    outside: tuple[str, ...] = ()

    def limit(self, filters: SearchFilter) -> SearchFilter:
        """``filters`` within this tier. The whole library needs no condition, which is faster."""
        return replace(filters, collections=() if self.whole else self.collections)


def by_priority(collections: Sequence[Collection], filled: Container[str]) -> tuple[Tier, ...]:
    """Tiers of equal priority, lowest number first; ``filled`` names the collections with passages.

    Empty collections are not reported: nobody named them.
    """
    in_order = sorted(collections, key=lambda collection: collection.priority)
    groups = groupby(in_order, key=lambda collection: collection.priority)
    tiers = (_tier([collection.name for collection in group], filled) for _, group in groups)
    return tuple(replace(tier, skipped=()) for tier in tiers if tier.collections)


def by_preset(
    preset: Sequence[Sequence[str]], collections: Sequence[Collection], filled: Container[str]
) -> tuple[Tier, ...]:
    """The tiers of ``preset`` over ``collections``."""
    placed: set[str] = set()
    tiers = []
    for names in preset:
        there = {
            name: [collection.name for collection in collections if name in (collection.kind.value, collection.name)]
            for name in names
        }
        members = [member for name in names for member in there[name] if member not in placed]
        placed.update(members)
        tiers.append(_tier(dict.fromkeys(members), filled, [name for name in names if not there[name]]))
    return tuple(tiers)


def tiers_of(
    preset: Sequence[Sequence[str]], collections: Sequence[Collection], filled: Container[str], only: Container[str]
) -> tuple[Tier, ...]:
    """The tiers of a question by ``preset``, or by priority without one, within the collections ``only``, if any.

    A collection of ``only`` that the preset lacks comes after its tiers.
    """
    chosen = [collection for collection in collections if not only or collection.name in only]
    tiers = by_preset(preset, chosen, filled) if preset else by_priority(chosen, filled)
    if only:
        tiers = tuple(replace(tier, skipped=tuple(name for name in tier.skipped if name in only)) for tier in tiers)
        placed = {name for tier in tiers for name in (*tier.collections, *tier.skipped)}
        tiers += by_priority([collection for collection in chosen if collection.name not in placed], filled)
        return tuple(tier for tier in tiers if tier.collections or tier.skipped)
    whole = {collection.name for collection in collections if collection.name in filled}
    placed = {name for tier in tiers for name in tier.collections}
    outside = tuple(one.title for one in collections if one.name in whole - placed)
    last = (replace(tier, outside=outside) for tier in tiers[-1:])
    return tuple(replace(tier, whole=set(tier.collections) == whole) for tier in (*tiers[:-1], *last))


def _tier(names: Iterable[str], filled: Container[str], missing: Iterable[str] = ()) -> Tier:
    there = list(names)
    empty = [name for name in there if name not in filled]
    return Tier(tuple(name for name in there if name in filled), (*missing, *empty))
