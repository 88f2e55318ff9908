"""Tables of drugs that interact, without a header: name, id, name, id, separated by ``$``.

The two lists of the U.S. Office of the National Coordinator (ONC), mapped to DrugBank ids, come so: the high-priority
pairs and those that need not interrupt anybody. A pair has no order. How severe a list's pairs are stands in the
manifest (``severity``), because the file does not say; another separator likewise (``delimiter``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from localmed.domain import message
from localmed.ingest.graphs.lines import NAME_CHARACTERS, Numbered, canonical, is_id, lines, one_line
from localmed.ingest.parsed import Fault, FieldMapping
from localmed.library.terms import Term

COLUMNS = 4


def read(path: Path, mapping: FieldMapping) -> Iterator[Term | Fault]:
    """Both drugs of every row, and their interaction with the first."""
    delimiter = str(mapping.options.get("delimiter") or "$")
    severity = str(mapping.options.get("severity", ""))
    for line in lines(path):
        if isinstance(line, Fault):
            yield line
        elif line.text.strip():
            yield from _terms(line, delimiter, severity)


def _terms(line: Numbered, delimiter: str, severity: str) -> Iterator[Term | Fault]:
    cells = [one_line(cell) for cell in line.text.split(delimiter)]
    if len(cells) == COLUMNS + 1 and not cells[-1]:  # the separator ends the line as well
        cells.pop()
    if len(cells) != COLUMNS:
        yield line.fault(message("graph.columns", count=len(cells), expected=COLUMNS))
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
