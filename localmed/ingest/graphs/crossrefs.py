"""Tables with a header and a term a row: id, name, and its parent, its cross references or both.

The Disease Ontology publishes its hierarchy and mappings so (``HumanDO.tsv``, ``MESHinDO.tsv``). A manifest's
``[fields]`` may rename the columns. A term with several parents has a row for each; a parent is an id or a name.

Tables of interacting drugs (``read_interactions``) have no header: name, id, name, id, separated by ``$``, as in the
two lists of the U.S. Office of the National Coordinator (ONC) mapped to DrugBank ids. A pair has no order. The
manifest states a list's ``severity``, and another ``delimiter``.

Not covered: cells of several lines.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from localmed.domain import message
from localmed.domain.errors import InputError
from localmed.ingest.graphs.lines import NAME_CHARACTERS, Numbered, canonical, is_id, read_lines
from localmed.ingest.parsed import Fault, FieldMapping
from localmed.ingest.readers.values import one_line
from localmed.library.terms import Term

COLUMNS = {"id": "id", "name": "label", "parent": "subClassOf", "xrefs": "xrefs"}  # as the Disease Ontology names them
PAIR = 4  # columns of a table of interactions

Row = tuple[Numbered, dict[str, str]]


def read(path: Path, mapping: FieldMapping) -> Iterator[Term | Fault]:
    """The terms of a table, whose rows are read first: a parent may precede its own row."""
    rows: list[Row] = []
    for item in _rows(path, mapping):
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


def _rows(path: Path, mapping: FieldMapping) -> Iterator[Row | Fault]:
    places: dict[str, int] = {}
    delimiter = "\t"
    for line in read_lines(path):
        if isinstance(line, Fault):
            yield line
        elif not line.text.strip():
            continue
        elif not places:
            delimiter = "\t" if "\t" in line.text else ","
            places = _places(path, _cells(line, delimiter), mapping)
        else:
            yield _row(line, _cells(line, delimiter), places)


def _places(path: Path, header: list[str] | Fault, mapping: FieldMapping) -> dict[str, int]:
    """The position of each of our columns; raise ``InputError`` for a header without id or name."""
    names = [] if isinstance(header, Fault) else [name.strip() for name in header]
    called = COLUMNS | {ours: theirs for ours, theirs in mapping.fields.items() if isinstance(theirs, str)}
    places = {ours: names.index(called[ours]) for ours in COLUMNS if called[ours] in names}
    if not {"id", "name"} <= set(places):
        raise InputError("graph.no_columns", name=path.name, id=called["id"], label=called["name"])
    places["columns"] = len(names)
    return places


def _row(line: Numbered, cells: list[str] | Fault, places: dict[str, int]) -> Row | Fault:
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


def _cells(line: Numbered, delimiter: str) -> list[str] | Fault:
    try:
        return next(csv.reader([line.text], delimiter=delimiter, strict=True))
    except (csv.Error, StopIteration):
        return line.fault(message("graph.row_quotes"))


# --- interactions ----------------------------------------------------------------------------------------------------


def read_interactions(path: Path, mapping: FieldMapping) -> Iterator[Term | Fault]:
    """Both drugs of every row, and their interaction with the first."""
    delimiter = str(mapping.options.get("delimiter") or "$")
    severity = str(mapping.options.get("severity", ""))
    for line in read_lines(path):
        if isinstance(line, Fault):
            yield line
        elif line.text.strip():
            yield from _terms(line, delimiter, severity)


def _terms(line: Numbered, delimiter: str, severity: str) -> Iterator[Term | Fault]:
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
