"""Whom and what a question is about: population, subtype of a disease, setting, purpose (``qualifiers.toml``).

Rules: every qualifier that a question names must be named in a passage, its title or its headings, else the passage
speaks of others. A question about treatment is not answered by a passage under a heading of prevention that does not
name treatment.

Not covered: subjects and qualifiers that the table does not list, and what a passage is limited to where the question
names no qualifier. What is usually meant where nothing is said (type 2, community-acquired) need not be named.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache

from localmed.clinical.tables import Names, in_characters, key, listed, table
from localmed.domain import Passage
from localmed.language import HAN, fold

PREVENTION = "prevention"
NONE = "none"


def differing(question: str, passage: Passage, whole: str = "") -> tuple[str, ...]:
    """The words of ``question`` by which ``passage`` speaks of somebody or something else; empty if it may fit.

    ``whole`` is what ``question`` is a part of: whom that is about, this is about.
    """
    required = _populations(whole) | qualifiers(question)
    treatment = _treatment(question) if PREVENTION not in required else ""
    if not required and not treatment:
        return ()
    named = qualifiers("\n".join((passage.title, *passage.headings, passage.text)))
    lacking = [
        written for qualifier, written in required.items() if qualifier not in named and _excluded(qualifier, named)
    ]
    if treatment and not _treatment(passage.text):
        heading = qualifiers("\n".join((passage.title, *passage.headings)))
        lacking += [treatment] if PREVENTION in heading else []
    return tuple(dict.fromkeys(lacking))


def _populations(text: str) -> dict[str, str]:
    named = qualifiers(text) if text else {}
    return {name: named[name] for name in listed(table("qualifiers")["populations"]) if name in named}


def _excluded(qualifier: str, named: Mapping[str, str]) -> bool:
    """Whether a passage that does not name ``qualifier`` speaks of another: always, but for what is usually meant."""
    usual = table("qualifiers")["unless"].get(qualifier)
    return usual is None or any(other in named for other in listed(usual))


def qualifiers(text: str) -> dict[str, str]:
    """The qualifiers that ``text`` names, each with the first words that name it."""
    names, rows = _names()
    written: dict[str, str] = {}
    for match in names.matches(fold(text)):
        for qualifier in rows[match.name]:
            if qualifier != NONE:
                written.setdefault(qualifier, match.name)
    return written


def people(folded: str) -> list[tuple[int, int]]:
    """Where ``folded`` names somebody with their title."""
    return [match.span() for match in _people().finditer(folded)]


@cache
def _people() -> re.Pattern[str]:
    titles = table("qualifiers")["people"]
    before = "|".join(map(re.escape, listed(titles["before"])))
    return re.compile(rf"\b(?:{before})\.?\s+[a-z'-]{{2,}}|[{HAN}](?:{in_characters(titles['behind'])})")


def usual(row: str, named: Collection[str]) -> bool:
    """Whether ``row`` is meant where nothing else is said, and ``named`` are none of the rows that say else."""
    return row in table("qualifiers")["unless"] and not _excluded(row, dict.fromkeys(named, ""))


def _treatment(text: str) -> str:
    """The first word of ``text`` that names treatment; "" if none does."""
    return next((match.name for match in _treatments().matches(fold(text))), "")


@cache
def _names() -> tuple[Names, dict[str, tuple[str, ...]]]:
    return _rows("names")


def _rows(*sections: str) -> tuple[Names, dict[str, tuple[str, ...]]]:
    rows: dict[str, tuple[str, ...]] = {}
    for section in sections:
        for qualifier, names in table("qualifiers")[section].items():
            for name in listed(fold(names)):
                rows[key(name)] = (*rows.get(key(name), ()), qualifier)
    return Names(rows), rows


@cache
def _treatments() -> Names:
    return Names(listed(table("qualifiers")["treatment"]["names"]))
