"""Readers of terminologies: terms instead of documents, one bounded line at a time, a fault for each bad line.

Rules: UTF-8, with or without a byte-order mark; UTF-16 is refused, because it has no lines of bytes. Invisible
characters are removed as from documents; a line with a NUL is refused.

Ids have one spelling (``canonical``), so that sources meet: ``UMLS_CUI:C0011849`` is ``C0011849``, and a DrugBank code
is the same with and without its prefix. A vocabulary's edition (``SNOMEDCT_US_2025_09_01``) is dropped.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from localmed.domain import Message, message
from localmed.domain.errors import InputError, reason
from localmed.ingest.parsed import Fault, FieldMapping, Unusable
from localmed.ingest.readers.encoding import bounded_lines, clean
from localmed.ingest.readers.values import one_line
from localmed.library.terms import Term

LINE_BYTES = 2**20  # the longest definition in UMLS has some 30 KB
NAME_CHARACTERS = 3_000  # UMLS allows 3,000 bytes for a name; what is longer is no name
_MARK = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_ID = re.compile(r"\S{1,200}")
_BARE = re.compile(r"(?:UMLS(?:_CUI)?:(C\d{7,8})|(?:drugbank|DRUGBANK|DrugBank):(DB\d{5}))")
_EDITION = re.compile(r"(?:_\d{4})(?:_\d\d)*$")
_SPELLINGS = {"MSH": "MESH", "MeSH": "MESH", "ICD10": "ICD10", "ICD-10": "ICD10", "MIM": "OMIM", "NCIT": "NCI"}


@dataclass(frozen=True, slots=True)
class Numbered:
    """One line without its end, its number from 1, and the file's bytes up to its end."""

    number: int
    end: int
    text: str

    def fault(self, why: Message) -> Fault:
        """A fault for this line."""
        return Fault(message("reader.line", number=self.number), why)


def read_lines(path: Path) -> Iterator[Numbered | Fault]:
    """The lines of ``path``, blank ones too; raise ``InputError`` if it cannot be read or is UTF-16."""
    try:
        with path.open("rb") as stream:
            if stream.read(2) in _UTF16:
                raise InputError("graph.utf16", name=path.name)
            stream.seek(0)
            yield from _numbered_lines(stream)
    except OSError as error:
        raise InputError("reader.cannot_read", name=path.name, reason=reason(error)) from None


def is_id(text: str) -> bool:
    """Whether ``text`` can be a concept's id: no blanks, at most 200 characters."""
    return bool(_ID.fullmatch(text))


def canonical(code: str) -> str:
    """``code`` in the graph's spelling; one without a prefix is unchanged."""
    if bare := _BARE.fullmatch(code):
        return bare[1] or bare[2]
    prefix, colon, rest = code.partition(":")
    if not colon:
        return code
    prefix = _EDITION.sub("", prefix)
    return f"{_SPELLINGS.get(prefix, prefix)}:{rest}"


def _numbered_lines(stream: BinaryIO) -> Iterator[Numbered | Fault]:
    for number, raw in enumerate(bounded_lines(stream, LINE_BYTES), start=1):
        line = Numbered(number, stream.tell(), "")
        if len(raw) > LINE_BYTES:
            yield line.fault(message("reader.line_long", most=LINE_BYTES))
        elif b"\x00" in raw:
            yield line.fault(message("graph.nul"))
        else:
            try:
                text = (raw.removeprefix(_MARK) if number == 1 else raw).decode("utf-8")
            except UnicodeDecodeError:
                yield line.fault(message("graph.not_utf8"))
            else:
                yield replace(line, text=clean(text.rstrip("\r\n")))


# --- tables and interactions ------------------------------------------------------------------------------------------

# Tables with a header and a term a row: id, name, and its parent, its cross references or both.
#
# The Disease Ontology publishes its hierarchy and mappings so (``HumanDO.tsv``, ``MESHinDO.tsv``). A manifest's
# ``[fields]`` may rename the columns. A term with several parents has a row for each; a parent is an id or a name.
#
# Tables of interacting drugs (``read_interactions``) have no header: name, id, name, id, separated by ``$``, as in the
# two lists of the U.S. Office of the National Coordinator (ONC) mapped to DrugBank ids. A pair has no order. The
# manifest states a list's ``severity``, and another ``delimiter``.
#
# Not covered: cells of several lines.

COLUMNS = {"id": "id", "name": "label", "parent": "subClassOf", "xrefs": "xrefs"}  # as the Disease Ontology names them
PAIR = 4  # columns of a table of interactions

Row = tuple[Numbered, dict[str, str]]


def read_crossrefs(path: Path, mapping: FieldMapping) -> Iterator[Term | Fault]:
    """The terms of a table, whose rows are read first: a parent may precede its own row."""
    rows: list[Row] = []
    for item in _table_rows(path, mapping):
        if isinstance(item, Fault):
            yield item
        else:
            rows.append(item)
    ids: dict[str, str] = {}
    for _, cells in rows:
        ids.setdefault(cells["name"], cells["id"])
    for line, cells in rows:
        parent = ids.get(cells["parent"], cells["parent"])
        links = ((cells["id"], "is_a", parent, ""),) if parent and parent != cells["id"] else ()
        xrefs = tuple(dict.fromkeys(canonical(code) for code in cells["xrefs"].replace(",", " ").split()))
        yield Term(cells["id"], cells["name"], relations=links, xrefs=xrefs, end=line.end)


def _table_rows(path: Path, mapping: FieldMapping) -> Iterator[Row | Fault]:
    places: dict[str, int] = {}
    delimiter = "\t"
    for line in read_lines(path):
        if isinstance(line, Fault):
            yield line
        elif not line.text.strip():
            continue
        elif not places:
            delimiter = "\t" if "\t" in line.text else ","
            places = _places(path, _table_cells(line, delimiter), mapping)
        else:
            yield _table_row(line, _table_cells(line, delimiter), places)


def _places(path: Path, header: list[str] | Fault, mapping: FieldMapping) -> dict[str, int]:
    """The position of each of our columns; raise ``InputError`` for a header without id or name."""
    names = [] if isinstance(header, Fault) else [name.strip() for name in header]
    called = COLUMNS | {ours: theirs for ours, theirs in mapping.fields.items() if isinstance(theirs, str)}
    places = {ours: names.index(called[ours]) for ours in COLUMNS if called[ours] in names}
    if not {"id", "name"} <= set(places):
        raise InputError("graph.no_columns", name=path.name, id=called["id"], label=called["name"])
    places["columns"] = len(names)
    return places


def _table_row(line: Numbered, cells: list[str] | Fault, places: dict[str, int]) -> Row | Fault:
    if isinstance(cells, Fault):
        return cells
    if len(cells) != places["columns"]:
        return line.fault(message("graph.columns", count=len(cells), expected=places["columns"]))
    row = {ours: one_line(cells[places[ours]]) if ours in places else "" for ours in COLUMNS}
    if not is_id(row["id"]):
        return line.fault(message("graph.no_id"))
    if not 0 < len(row["name"]) <= NAME_CHARACTERS:
        return line.fault(message("graph.no_name"))
    return line, row


def _table_cells(line: Numbered, delimiter: str) -> list[str] | Fault:
    try:
        return next(csv.reader([line.text], delimiter=delimiter, strict=True))
    except (csv.Error, StopIteration):
        return line.fault(message("graph.row_quotes"))


def read_interactions(path: Path, mapping: FieldMapping) -> Iterator[Term | Fault]:
    """Both drugs of every row, and their interaction with the first."""
    delimiter = str(mapping.options.get("delimiter") or "$")
    severity = str(mapping.options.get("severity", ""))
    for line in read_lines(path):
        if isinstance(line, Fault):
            yield line
        elif line.text.strip():
            yield from _interacting(line, delimiter, severity)


def _interacting(line: Numbered, delimiter: str, severity: str) -> Iterator[Term | Fault]:
    cells = [one_line(cell) for cell in line.text.split(delimiter)]
    if len(cells) == PAIR + 1 and not cells[-1]:  # the separator ends the line as well
        cells.pop()
    if len(cells) != PAIR:
        yield line.fault(message("graph.columns", count=len(cells), expected=PAIR))
        return
    drugs = {canonical(cells[place + 1]): cells[place] for place in (0, 2)}
    if not all(map(is_id, drugs)) or not all(0 < len(name) <= NAME_CHARACTERS for name in drugs.values()):
        yield line.fault(message("graph.no_drug"))
    elif len(drugs) < 2:
        yield line.fault(message("graph.same_drug"))
    else:
        first, second = sorted(drugs)
        pair = ((first, "interacts_with", second, severity),)
        yield Term(first, drugs[first], relations=pair, end=line.end)
        yield Term(second, drugs[second], end=line.end)


# --- UMLS -------------------------------------------------------------------------------------------------------------

# The UMLS Metathesaurus tables that make a graph: MRCONSO (names), MRDEF (definitions), MRREL (relations).
#
# The number of fields identifies the table. Suppressed rows and other languages than requested (default: English and
# Chinese) are skipped; each relation is taken once, although MRREL lists it from both ends. Codes of vocabularies that
# other sources use become cross references. Rows of one concept are adjacent and are read together.
#
# Field names are those of the UMLS Reference Manual, chapter 3. Not covered: semantic types, attributes, hierarchies.

# Fields of each table, with the empty one that the closing bar makes.
CONSO, DEF, REL = 19, 9, 17
UMLS_LANGUAGES = ("ENG", "CHI")
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


def read_umls(path: Path, mapping: FieldMapping) -> Iterator[Term | Fault]:
    """The terms of one table, the rows of a concept together."""
    languages = tuple(mapping.options.get("languages") or UMLS_LANGUAGES)
    waiting: list[Term] = []
    known = False
    for line in read_lines(path):
        if isinstance(line, Fault):
            yield line
            continue
        if not line.text:
            continue
        try:
            term = _umls_term(line.text.split("|"), languages)
        except Unusable as error:
            yield line.fault(error.reason)
            continue
        known = True
        if term is None:
            continue
        if waiting and (waiting[0].id != term.id or len(waiting) >= GROUP):
            yield _merge_rows(waiting)
            waiting = []
        waiting.append(replace(term, end=line.end))
    if waiting:
        yield _merge_rows(waiting)
    if not known:
        raise InputError("graph.umls", name=path.name)


def _umls_term(row: Sequence[str], languages: Sequence[str]) -> Term | None:
    """The term of one row, None if it is skipped; raise ``Unusable`` if it belongs to none of the tables."""
    taking = {CONSO: _umls_name, DEF: _umls_definition, REL: _umls_relation}.get(len(row))
    if taking is None or row[-1]:
        raise Unusable(message("graph.umls_fields", count=len(row) - 1))
    if not _CUI.fullmatch(row[0]):
        raise Unusable(message("graph.no_cui"))
    return taking(row, languages)


def _umls_name(row: Sequence[str], languages: Sequence[str]) -> Term | None:
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


def _umls_definition(row: Sequence[str], languages: Sequence[str]) -> Term | None:
    del languages
    text = one_line(row[5])
    if not text:
        raise Unusable(message("graph.no_definition"))
    return None if row[6] in _SUPPRESSED else Term(row[0], definition=text)


def _umls_relation(row: Sequence[str], languages: Sequence[str]) -> Term | None:
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


def _merge_rows(terms: Sequence[Term]) -> Term:
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


# --- OBO --------------------------------------------------------------------------------------------------------------

# OBO 1.2 and 1.4, the format of the Disease Ontology and the Symptom Ontology.
#
# ``[Term]`` stanzas are read: names, definitions, synonyms with their scope (an acronym by its synonym type), ``is_a``
# and ``relationship``, cross references. An obsolete term is no concept; its names lead to its replacement, if stated,
# and an ``alt_id`` to its term. A bad line is a fault and the rest of its stanza is read.
#
# Not covered: ``intersection_of`` and other logical definitions, ``[Typedef]`` and ``[Instance]`` stanzas, imports.

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


def read_obo(path: Path, mapping: FieldMapping) -> Iterator[Term | Fault]:
    """The terms of an OBO file."""
    del mapping
    edition, stanza, header = "", None, True
    for line in read_lines(path):
        if isinstance(line, Fault):
            yield line
        elif head := _HEAD.fullmatch(line.text):
            yield from _stanza_terms(stanza, edition, line.end)
            stanza, header = _Stanza(line) if head[1] == "Term" else None, False
        elif header:
            date = _DATE.search(line.text) if line.text.startswith("data-version:") else None
            edition = edition or (date[0] if date else "")
        elif stanza and line.text.strip():
            try:
                _read_tag(stanza, line.text)
            except Unusable as error:
                yield line.fault(error.reason)
    yield from _stanza_terms(stanza, edition, path.stat().st_size)


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


def _stanza_terms(stanza: _Stanza | None, edition: str, end: int) -> Iterator[Term | Fault]:
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
