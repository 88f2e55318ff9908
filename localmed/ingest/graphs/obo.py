"""OBO 1.2 and 1.4, the format of the Disease Ontology and the Symptom Ontology.

``[Term]`` stanzas are read: names, definitions, synonyms with their scope (an acronym by its synonym type), ``is_a``
and ``relationship``, cross references. An obsolete term is no concept; its names lead to its replacement, if stated,
and an ``alt_id`` to its term. A bad line is a fault and the rest of its stanza is read.

Not covered: ``intersection_of`` and other logical definitions, ``[Typedef]`` and ``[Instance]`` stanzas, imports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from localmed.domain import message
from localmed.ingest.graphs.lines import Numbered, canonical, is_id, read_lines
from localmed.ingest.parsed import Fault, FieldMapping, Unusable
from localmed.ingest.readers.values import one_line
from localmed.library.terms import Term

_HEAD = re.compile(r"\[(\w+)\]\s*")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(.*)', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": " ", "W": " ", "t": " "}
_COMMENT = re.compile(r"\s+\{[^{}]*\}\s*(?:!\s.*)?$|\s+!\s.*")  # after a value: "{qualifier}", "! name of the target"
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_OBSOLETE = re.compile(r"obsolete[ _]", re.IGNORECASE)
_SCOPES = {"EXACT": "exact", "NARROW": "narrow", "BROAD": "broad", "RELATED": "related"}
_ACRONYM = re.compile(r"OMO:0003012|abbreviation|acronym", re.IGNORECASE)  # synonym types that say so


@dataclass(slots=True)
class _Stanza:
    line: Numbered
    id: str = ""
    name: str = ""
    definition: str = ""
    names: list[tuple[str, str, str]] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)  # (predicate, target)
    xrefs: list[str] = field(default_factory=list)
    older: list[str] = field(default_factory=list)
    replaced_by: str = ""
    obsolete: bool = False


def read(path: Path, mapping: FieldMapping) -> Iterator[Term | Fault]:
    """The terms of an OBO file."""
    del mapping
    edition, stanza, header = "", None, True
    for line in read_lines(path):
        if isinstance(line, Fault):
            yield line
        elif head := _HEAD.fullmatch(line.text):
            yield from _terms(stanza, edition, line.end)
            stanza, header = _Stanza(line) if head[1] == "Term" else None, False
        elif header:
            date = _DATE.search(line.text) if line.text.startswith("data-version:") else None
            edition = edition or (date[0] if date else "")
        elif stanza and line.text.strip():
            try:
                _read_tag(stanza, line.text)
            except Unusable as error:
                yield line.fault(error.reason)
    yield from _terms(stanza, edition, path.stat().st_size)


def _read_tag(stanza: _Stanza, text: str) -> None:
    """Read one line of a stanza; raise ``Unusable`` with a reason that quotes none of it."""
    tag, colon, value = text.partition(":")
    value = value.strip()
    if not colon or " " in tag:
        raise Unusable(message("graph.no_tag"))
    if tag == "id":
        if stanza.id:
            raise Unusable(message("graph.second_id"))
        stanza.id = _target(value)
    elif tag == "name":
        stanza.name = _text(_COMMENT.sub("", value))
    elif tag == "def":
        stanza.definition = _quoted(value)[0]
    elif tag == "synonym":
        stanza.names.append(_synonym(value))
    elif tag == "is_a":
        stanza.links.append(("is_a", _target(value)))
    elif tag == "relationship":
        predicate, _, target = value.partition(" ")
        stanza.links.append((_target(predicate), _target(target)))
    elif tag == "xref":
        stanza.xrefs.append(canonical(_target(value.split(' "')[0])))
    elif tag == "alt_id":
        stanza.older.append(_target(value))
    elif tag == "replaced_by":
        stanza.replaced_by = _target(value)
    elif tag == "is_obsolete":
        stanza.obsolete = value.startswith("true")


def _terms(stanza: _Stanza | None, edition: str, end: int) -> Iterator[Term | Fault]:
    """A stanza's term and the redirections to it."""
    if stanza is None:
        return
    if not stanza.id or not stanza.name:
        missing = "graph.term_without_name" if stanza.id else "graph.term_without_id"
        yield stanza.line.fault(message(missing))
        return
    if stanza.obsolete:
        name = _OBSOLETE.sub("", stanza.name, count=1)
        if stanza.replaced_by:
            yield Term(stanza.id, name, names=tuple(stanza.names), replaced_by=stanza.replaced_by, end=end)
        return
    links = tuple((stanza.id, predicate, target, "") for predicate, target in stanza.links if target != stanza.id)
    names, xrefs = tuple(dict.fromkeys(stanza.names)), tuple(dict.fromkeys(stanza.xrefs))
    yield Term(stanza.id, stanza.name, stanza.definition, names, links, xrefs, edition=edition, end=end)
    yield from (Term(old, old, replaced_by=stanza.id, end=end) for old in stanza.older)


def _synonym(value: str) -> tuple[str, str, str]:
    text, rest = _quoted(value)
    declared = rest.split("[")[0].split()
    scope = declared[0] if declared else "RELATED"  # what the format assumes
    if scope not in _SCOPES:
        raise Unusable(message("graph.scope"))
    acronym = len(declared) > 1 and bool(_ACRONYM.search(declared[1]))
    return text, "", "abbreviation" if acronym else _SCOPES[scope]


def _quoted(value: str) -> tuple[str, str]:
    match = _QUOTED.match(value)
    if not match:
        raise Unusable(message("graph.quotes"))
    return _text(match[1]), match[2]


def _text(value: str) -> str:
    text = one_line(_ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), value))
    if not text:
        raise Unusable(message("graph.empty_text"))
    return text


def _target(value: str) -> str:
    target = _ESCAPE.sub(r"\1", _COMMENT.sub("", f" {value}").strip())
    if not is_id(target):
        raise Unusable(message("graph.names_no_id"))
    return target
