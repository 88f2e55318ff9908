"""Suggests titles, headings and medicines of the library while a question is typed.

A table of names for each generation and reader is built at the first key and kept in memory. A name fits if each typed
word begins one of its words (in Chinese: is in it), or a word of another name of a medicine in it. Documents not in
force are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from threading import Lock

from localmed.domain import Kind, Status
from localmed.library.library import Library
from localmed.text import medicines
from localmed.text.language import HAN, fold

MOST = 8  # shown
READ = 20_000  # first passages whose headings are read: some 0.5 s
TABLES = 8  # kept, one for each generation and set of readable collections
LONGEST = 120  # characters of a name
_NO_HEADINGS = (Kind.LITERATURE,)  # an abstract's headings say nothing: Methods, Results
_BETWEEN = " · "
_CHINESE = re.compile(f"[{HAN}]")


@dataclass(frozen=True, slots=True)
class Name:
    """A suggestion as shown and folded, and its documents (none: a medicine)."""

    shown: str
    folded: str
    documents: frozenset[str]


def suggestions(library: Library, typed: str) -> Iterator[str]:
    """At most ``MOST`` names that fit ``typed``, titles first."""
    words = fold(typed).split()
    if len("".join(words)) < 2 and not _CHINESE.search(typed):
        return iter(())
    fitting = (name for name in _names(library) if all(_begins(name.folded, word) for word in words))
    return islice((name.shown for name in fitting if _may_answer(library, name)), MOST)


def _begins(name: str, word: str) -> bool:
    return word in name if _CHINESE.search(word) else f" {word}" in f" {name}"


def _may_answer(library: Library, name: Name) -> bool:
    return not name.documents or any(library.status(one) is Status.CURRENT for one in name.documents)


_TABLES: dict[tuple[str, str, frozenset[str]], tuple[Name, ...]] = {}
_MAKING = Lock()  # one table for all who type meanwhile


def _names(library: Library) -> tuple[Name, ...]:
    key = (str(library.path), library.manifest.created, library.hidden)  # a number may come again
    with _MAKING:
        if key not in _TABLES:
            while len(_TABLES) >= TABLES:
                del _TABLES[next(iter(_TABLES))]
            _TABLES[key] = tuple(_made(library))
        return _TABLES[key]


def _made(library: Library) -> Iterator[Name]:
    kinds = {collection.name: collection.kind for collection in library.catalogue.collections()}
    titles: dict[str, set[str]] = {}
    headings: dict[str, set[str]] = {}
    for document in library.catalogue.documents():
        titles.setdefault(document.title, set()).add(document.id)
    for passage in islice(library.lexical.all_passages(), READ):  # of every collection, those hidden included
        own = [one for one in passage.headings if one != passage.title]
        if own and kinds.get(passage.collection, Kind.LITERATURE) not in _NO_HEADINGS:
            headings.setdefault(_BETWEEN.join((own[-1], passage.title)), set()).add(passage.document_id)
    for names in (titles, headings):
        for shown in sorted(names, key=len):
            if 0 < len(shown) <= LONGEST:
                yield Name(shown, _as_typed(shown), frozenset(names[shown]))
    for shown in medicines.listed_names():
        if library.lexical.holds(shown):
            yield Name(shown, _as_typed(shown), frozenset())


def _as_typed(shown: str) -> str:
    """``shown`` folded, with all names of the medicines in it."""
    others = (name for one in medicines.mentions(shown) for name in medicines.same(one.ingredients))
    return " ".join(fold(" ".join((shown, *others))).replace("(", " ").replace("-", " ").split())
