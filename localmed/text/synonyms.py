"""Names of the same thing in both languages (``synonyms.toml``, ``medicines.toml``), and where a question names one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from localmed.text import medicines
from localmed.text.language import fold
from localmed.text.tables import Names, key, listed, table


@dataclass(frozen=True, slots=True)
class Named:
    """A term at ``start:end`` of a text with all its ``names``; ``asking``: an aspect ("dose"), no subject."""

    start: int
    end: int
    written: str
    names: tuple[str, ...]
    asking: bool = False


def named(text: str) -> list[Named]:
    """The medicines and synonyms of ``text``, in order, without overlaps."""
    folded = fold(text)
    mentioned = [
        Named(mention.start, mention.end, mention.written, _of_medicine(mention))
        for mention in medicines.mentions(text)
    ]
    names, groups = _groups()
    matches = names.matches(folded)
    longer = [one for one in matches if one.name in _in_section("conditions")]  # "high potassium" is no potassium
    mentioned = [
        thing
        for thing in mentioned
        if not any(
            one.start <= thing.start and thing.end <= one.end and one.name != key(thing.written) for one in longer
        )
    ]
    taken = [(thing.start, thing.end) for thing in mentioned]
    for match in matches:
        if not any(match.start < end and start < match.end for start, end in taken):
            written = folded[match.start : match.end]
            asking = match.name in _in_section("asking")
            mentioned.append(Named(match.start, match.end, written, groups[match.name], asking))
    return sorted(mentioned, key=lambda thing: thing.start)


def _of_medicine(mention: medicines.Mention) -> tuple[str, ...]:
    """All names of a medicine and its class, or of a class and its members."""
    written = _groups()[1].get(key(mention.written), ())
    related = medicines.class_names if mention.ingredients else medicines.members
    of_class = [name for one in mention.classes for name in related(one)]
    return tuple(
        dict.fromkeys(
            (mention.written, *mention.ingredients, *medicines.same(mention.ingredients), *written, *of_class)
        )
    )


def is_in(section: str, written: str) -> bool:
    """Whether ``written`` is a name of a section of the table: "conditions", "populations"."""
    return key(fold(written)) in _in_section(section)


def population(written: str) -> tuple[str, ...]:
    """The names of a population, with those of conditions that only it has."""
    return _populations().get(key(fold(written)), ())


@cache
def _populations() -> Mapping[str, tuple[str, ...]]:
    made: dict[str, tuple[str, ...]] = {}
    for line in filter(None, map(str.strip, table("synonyms")["same"]["populations"].splitlines())):
        own = [name for part in fold(line).split("|") for name in listed(part)]
        theirs = [key(name) for name in listed(table("synonyms")["theirs"].get(own[0], ""))]
        names = (*own, *(name for one in theirs for name in _groups()[1][one]))
        made |= dict.fromkeys(map(key, names), names)
    return made


@cache
def _in_section(name: str) -> frozenset[str]:
    lines = table("synonyms")["same"][name].splitlines()
    return frozenset(key(name) for line in lines for part in fold(line).split("|") for name in listed(part))


@cache
def _groups() -> tuple[Names, Mapping[str, tuple[str, ...]]]:
    groups: dict[str, tuple[str, ...]] = {}
    for section in table("synonyms")["same"].values():
        for line in filter(None, map(str.strip, section.splitlines())):
            group = tuple(name for part in fold(line).split("|") for name in listed(part))
            for name in group:
                groups[key(name)] = tuple(dict.fromkeys((*groups.get(key(name), ()), *group)))
    return Names(groups), groups
