"""A document's design and level of evidence by publication type.

The table is ``publications.toml``; it is not GRADE. Types are PubMed's names, in whatever case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from localmed.domain import Evidence, Kind
from localmed.text.tables import table


@cache
def _types() -> Mapping[str, Mapping[str, Any]]:
    return {name.lower(): entry for name, entry in table("publications")["types"].items()}


def level(evidence: Evidence) -> tuple[str, int]:
    """The type of a source as the table calls it, and its level, 1 the highest (0 where the table has none)."""
    stated = {name.lower() for name in evidence.publication_types}
    kinds = table("publications")["kinds"]
    kind = evidence.kind.value if evidence.kind.value in kinds else "unknown"
    name = next((name for name, entry in _types().items() if name in stated and "level" in entry), kind)
    return name, int(_types().get(name, kinds.get(name, {}))["level"])


def named(design: str, language: str) -> str:
    """The shown name of a type of ``level``."""
    kinds = table("publications")["kinds"]
    entry = _types().get(design) or kinds.get(design, kinds["unknown"])
    return str(entry["zh" if language == "zh" else "en"])


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
