"""The bilingual bridge: what a question names, under its names in another language.

Names come from ``text/`` (medicines with their brands, synonyms), from the concept graph and from the site's own
glossary, a table of two columns (``search.glossary``). Abbreviations and numbers are written alike in both languages.
What no table knows is left to the encoder, which compares meanings.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from localmed.domain.errors import BadSettings
from localmed.library.graph import Graph
from localmed.process.files import contents
from localmed.text import language, synonyms
from localmed.text.tables import Names, key

MOST = 64  # names of all that a question names: the lexical search reads no more
LOOKED_UP = 24  # words and runs of words that are looked up in the concept graph, a few microseconds each
RUN = 3  # words of a name in the concept graph, at most
GLOSSARY_BYTES = 4_000_000  # some 100,000 terms
_ALIKE = re.compile(r"(?<![A-Za-z])[A-Z][A-Za-z]{0,3}[A-Z0-9][A-Za-z0-9-]*|\d+(?:\.\d+)?")
_LATIN = re.compile(r"[A-Za-z][A-Za-z0-9-]+|\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Term:
    """Something that a question names as ``written``, and its ``names`` in the other language."""

    written: str
    names: tuple[str, ...]
    asking: bool = False  # what is asked of a thing ("dose"), no thing


class Bridge:
    """The names of one library and one site. Nothing is read before the first question across languages."""

    def __init__(self, graph: Callable[[], Graph] | None = None, glossary: str = "") -> None:
        """``glossary`` is the path of the site's table, "" for none."""
        self._graph, self._path = graph, glossary

    def terms(self, question: str, target: str) -> tuple[Term, ...]:
        """What ``question`` names, by its names in the language ``target``; what has none is left out."""
        by_name = dict[str, Term]()
        for term in self._named(question):
            fitting = tuple(name for name in term.names if _is_in(name, target))
            before = by_name.get(term.written)
            if fitting:
                names = dict.fromkeys((*(before.names if before else ()), *fitting))
                by_name[term.written] = Term(term.written, tuple(names), term.asking)
        return tuple(by_name.values())

    def words(self, question: str, target: str) -> str:
        """The words by which ``question`` is searched in the language ``target``."""
        names = [name for term in self.terms(question, target) for name in term.names][:MOST]
        alike = (_LATIN if target == "en" else _ALIKE).findall(question)
        return " ".join(dict.fromkeys((*names, *alike)))

    def _named(self, question: str) -> Iterator[Term]:
        for thing in synonyms.named(question):
            yield Term(thing.written, thing.names, thing.asking)
        folded, (table, rows) = language.fold(question), self._glossary
        for match in table.matches(folded):
            yield Term(match.name, rows[match.name])
        yield from self._of_graph(question)

    def _of_graph(self, question: str) -> Iterator[Term]:
        graph = self._graph() if self._graph else None
        if graph is None or not graph.counts():
            return
        for run in _runs(question)[:LOOKED_UP]:
            for concept, _ in graph.find(run)[:1]:
                known = graph.concept(concept)
                yield Term(run, tuple(name.text for name in known.names) if known else ())

    @property
    def own_terms(self) -> Mapping[str, tuple[str, ...]]:
        """The site's own terms, each with its other names."""
        return self._glossary[1]

    @property
    def _glossary(self) -> tuple[Names, dict[str, tuple[str, ...]]]:
        path = Path(self._path)
        return _read_glossary(self._path, path.stat().st_mtime_ns if self._path and path.is_file() else 0)


@lru_cache(maxsize=2)
def _read_glossary(path: str, changed: int) -> tuple[Names, dict[str, tuple[str, ...]]]:
    """The site's table, last ``changed`` then, by each name; raise ``BadSettings`` for a file that is none."""
    del changed
    rows: dict[str, tuple[str, ...]] = {}
    for pair in _pairs(path) if path else ():
        for one, other in (pair, pair[::-1]):
            name = key(language.fold(one))
            rows[name] = (*rows.get(name, ()), other)
    return Names(rows), rows


def _pairs(path: str) -> list[tuple[str, str]]:
    try:
        text = contents(Path(path), GLOSSARY_BYTES).decode("utf-8-sig")
        rows = csv.reader(text.splitlines(), delimiter="\t" if "\t" in text else ",")
        return [(one, other) for row in rows if len(row) >= 2 and (one := row[0].strip()) and (other := row[1].strip())]
    except (UnicodeDecodeError, csv.Error):
        raise BadSettings("settings.glossary", path=path) from None


def _runs(question: str) -> list[str]:
    """The words of ``question`` and those that follow one another, longest first."""
    words = language.content_words(language.fold(question))
    between = "" if language.detect(question) == "zh" else " "
    return [
        between.join(words[start : start + length])
        for length in range(RUN, 0, -1)
        for start in range(len(words) - length + 1)
    ]


def _is_in(name: str, target: str) -> bool:
    return language.detect(name) == target
