"""The UMLS Metathesaurus tables that make a graph: MRCONSO (names), MRDEF (definitions), MRREL (relations).

The number of fields identifies the table. Suppressed rows and other languages than requested (default: English and
Chinese) are skipped; each relation is taken once, although MRREL lists it from both ends. Codes of vocabularies that
other sources use become cross references. Rows of one concept are adjacent and are read together.

Field names are those of the UMLS Reference Manual, chapter 3. Not covered: semantic types, attributes, hierarchies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from localmed.domain import message
from localmed.domain.errors import InputError
from localmed.ingest.graphs.lines import NAME_CHARACTERS, canonical, read_lines
from localmed.ingest.parsed import Fault, FieldMapping, Unusable
from localmed.ingest.readers.values import one_line
from localmed.library.terms import Term

# Fields of each table, with the empty one that the closing bar makes.
CONSO, DEF, REL = 19, 9, 17
LANGUAGES = ("ENG", "CHI")
GROUP = 1_000  # rows of one concept sent together: a hub of MRREL has hundreds of thousands

_CODES = {"ENG": "en", "CHI": "zh"}
_SUPPRESSED = frozenset("OEY")
_CUI = re.compile(r"C\d{7,8}")
_SHORT = frozenset({"AB", "ACR"})  # term types: abbreviation, acronym
# Vocabularies whose codes other sources use; a code of any other only fills the disk.
_CROSS = frozenset({"MSH", "ICD10", "ICD10CM", "ICD9CM", "OMIM", "SNOMEDCT_US", "DRUGBANK", "NCI", "RXNORM"})
# REL without RELA, said from one end only: (predicate, whether CUI1 is its subject).
_GENERIC: dict[str, tuple[str, bool | None]] = {
    "PAR": ("child_of", True), "CHD": ("child_of", False), "RB": ("narrower_than", True),
    "RN": ("narrower_than", False), "SIB": ("sibling_of", None), "RO": ("related_to", None),
    "RQ": ("possibly_related_to", None), "RU": ("related_to", None), "RL": ("similar_to", None),
    "SY": ("synonym_of", None),
}  # fmt: skip


def read(path: Path, mapping: FieldMapping) -> Iterator[Term | Fault]:
    """The terms of one table, the rows of a concept together."""
    languages = tuple(mapping.options.get("languages") or LANGUAGES)
    waiting: list[Term] = []
    known = False
    for line in read_lines(path):
        if isinstance(line, Fault):
            yield line
            continue
        if not line.text:
            continue
        try:
            term = _term(line.text.split("|"), languages)
        except Unusable as error:
            yield line.fault(error.reason)
            continue
        known = True
        if term is None:
            continue
        if waiting and (waiting[0].id != term.id or len(waiting) >= GROUP):
            yield _merge(waiting)
            waiting = []
        waiting.append(replace(term, end=line.end))
    if waiting:
        yield _merge(waiting)
    if not known:
        raise InputError("graph.umls", name=path.name)


def _term(row: Sequence[str], languages: Sequence[str]) -> Term | None:
    """The term of one row, None if it is skipped; raise ``Unusable`` if it belongs to none of the tables."""
    taking = {CONSO: _name, DEF: _definition, REL: _relation}.get(len(row))
    if taking is None or row[-1]:
        raise Unusable(message("graph.umls_fields", count=len(row) - 1))
    if not _CUI.fullmatch(row[0]):
        raise Unusable(message("graph.no_cui"))
    return taking(row, languages)


def _name(row: Sequence[str], languages: Sequence[str]) -> Term | None:
    cui, language, status, _, form, _, preferred, *_, source, kind, code, text, _, suppress, _, _ = row
    text = one_line(text)
    if not 0 < len(text) <= NAME_CHARACTERS:
        raise Unusable(message("graph.no_name"))
    if suppress in _SUPPRESSED or language not in languages:
        return None
    chosen = (status, form, preferred, language) == ("P", "PF", "Y", "ENG")
    xrefs = (canonical(f"{source}:{code}"),) if source in _CROSS and code and " " not in code else ()
    names = ((text, _CODES.get(language, ""), "abbreviation" if kind in _SHORT else "exact"),)
    return Term(cui, text if chosen else "", names=names, xrefs=xrefs)


def _definition(row: Sequence[str], languages: Sequence[str]) -> Term | None:
    del languages
    text = one_line(row[5])
    if not text:
        raise Unusable(message("graph.no_definition"))
    return None if row[6] in _SUPPRESSED else Term(row[0], definition=text)


def _relation(row: Sequence[str], languages: Sequence[str]) -> Term | None:
    """``RELA`` reads from the second concept to the first, and so do the general relations that are not reversed."""
    del languages
    first, second, rel, rela, source, direction, suppress = row[0], row[4], row[3], row[7], row[10], row[13], row[14]
    if not _CUI.fullmatch(second):
        raise Unusable(message("graph.relates_no_cui"))
    if suppress in _SUPPRESSED or first == second or direction == "N":  # N: the other row of the pair is the source's
        return None
    if rela in ("isa", "inverse_isa"):
        subject, predicate, target = (second, "is_a", first) if rela == "isa" else (first, "is_a", second)
    elif rela:
        subject, predicate, target = second, rela, first
    elif rel in _GENERIC:
        predicate, forward = _GENERIC[rel]
        subject, target = sorted((first, second)) if forward is None else (first, second)[:: 1 if forward else -1]
    else:
        return None  # XR (no relation), AQ and QB (which qualifiers a heading may take), DEL
    return Term(first, relations=((subject, predicate, target, source),))


def _merge(terms: Sequence[Term]) -> Term:
    """Merge the rows of one concept: its preferred English name, else its first; its longest definition."""
    names = [name[0] for term in terms for name in sorted(term.names, key=lambda name: name[1] != "en")]
    return Term(
        terms[0].id,
        next((term.name for term in terms if term.name), names[0] if names else ""),
        max((term.definition for term in terms), key=len),
        tuple(dict.fromkeys(name for term in terms for name in term.names)),
        tuple(dict.fromkeys(relation for term in terms for relation in term.relations)),
        tuple(dict.fromkeys(xref for term in terms for xref in term.xrefs)),
        end=terms[-1].end,
    )
