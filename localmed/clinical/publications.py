"""What sort of source a document is, by publication type alone: how far up its design stands, and what that is called.

The table is ``publications.toml``; it is not GRADE. Types are PubMed's names, in whatever case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from localmed.clinical.tables import table
from localmed.domain import Evidence, Kind


@cache
def _types() -> Mapping[str, Mapping[str, Any]]:
    return {name.lower(): entry for name, entry in table("publications")["types"].items()}


def level(evidence: Evidence, language: str = "en") -> tuple[str, str]:
    """The type of a source in words, and its level, 1 the highest ("" where the table has none)."""
    stated = {name.lower() for name in evidence.publication_types}
    kinds = table("publications")["kinds"]
    named = (entry for name, entry in _types().items() if name in stated and "level" in entry)
    entry = next(named, None) or kinds.get(evidence.kind.value, kinds["unknown"])
    return entry["zh" if language == "zh" else "en"], str(entry["level"]) if entry["level"] else ""


def base(publication_types: Iterable[str], kind: Kind = Kind.OTHER) -> int:
    """The base of the best of ``publication_types``, 7 to 1; where none is known, that of the kind of collection."""
    bases = [entry["base"] for name in publication_types if "base" in (entry := _types().get(name.lower(), {}))]
    kinds = table("publications")["kinds"]
    return int(max(bases, default=kinds.get(kind.value, {}).get("base", kinds["unknown"]["base"])))


@cache
def of_standing(standing: str) -> frozenset[str]:
    """The types, in small letters, that say that an article is ``retracted``, or a ``notice`` of another one."""
    return frozenset(name for name, entry in _types().items() if entry.get("standing") == standing)


@cache
def of_jats() -> Mapping[str, str]:
    """PubMed's name for each article-type of JATS."""
    return {entry["jats"]: name for name, entry in table("publications")["types"].items() if "jats" in entry}
