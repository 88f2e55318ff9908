"""The sentence or row of a source that is for a value which the question or the record gives.

A small model picks another row of a table, correctly quoted: 40 mg of enoxaparin "with normal kidney function" for a
patient whose clearance is 20 mL/min. Such a dose is withheld (``of_another``), also where a cell is copied without
the one that says for whom. Where nothing that is shown is for a value that was given, what the same source says for
that value is quoted beside it (``missing``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from localmed.clinical import measures
from localmed.clinical.medicines import names
from localmed.domain import Evidence, Origin, Passage, Statement
from localmed.domain.patient import Measured
from localmed.verification import cases, citations
from localmed.verification.intervals import DOSES, Interval, intervals
from localmed.verification.matching import split

MOST = 2  # values that something is quoted for


def of_another(statement: str, context: Sequence[str], passages: Sequence[Passage]) -> bool:
    """Whether ``statement`` gives a dose that its sources have for other values than one it names or ``context`` gives.

    Only where they say for that value something else of the same medicine. A statement that names its own band is for
    whom that says; a dose that they have without any value as well is no other row's, but for a row that is for this.
    """
    values = [value for text in (*context, statement) for value in cases.given_values(text)]
    doses = _doses(statement)
    if not values or not doses or cases.banded(values, statement):
        return False
    named = names(statement)
    lines = [line for line in _lines(passages) if not named or not names(line) or names(line) & named]
    return any(_other_row(value, doses, lines) for value in values)


def _other_row(value: Measured, doses: Sequence[Interval], lines: Sequence[str]) -> bool:
    own = [dose for line in lines if cases.fits(value, line) for dose in _doses(line)]
    theirs = [dose for line in lines if cases.for_another([value], line) for dose in _doses(line)]
    return any(_held(dose, theirs) and own and not _held(dose, own) for dose in doses)


def _lines(passages: Sequence[Passage]) -> list[str]:
    return [sentence.text for passage in passages for sentence in split(passage)]


def _doses(text: str) -> list[Interval]:
    return [number for number in intervals(text) if number.kind in DOSES]


def _held(dose: Interval, others: Sequence[Interval]) -> bool:
    return any(dose.meets(other) for other in others)


def missing(context: Sequence[str], statements: Sequence[Statement], evidence: Sequence[Evidence]) -> list[Statement]:
    """What of the cited documents is for a value of ``context``, beside a model's ``statements`` of which none is."""
    if not any(statement.origin is Origin.GENERATED for statement in statements):
        return []
    shown = citations.shown(statements)
    values = [value for text in context for value in measures.measured(text)]
    lacking = [value for value in values if not any(cases.fits(value, one.text) for one in shown)]
    quoted = (next(_for(value, shown, evidence), None) for value in dict.fromkeys(lacking))
    return list({one.text: one for one in quoted if one}.values())[:MOST]


def _for(value: Measured, shown: Sequence[Statement], evidence: Sequence[Evidence]) -> Iterator[Statement]:
    documents = {citation.document_id for statement in shown for citation in statement.citations}
    named = names(" ".join(statement.text for statement in shown))
    for piece in evidence:
        for sentence in split(piece.passage) if piece.passage.document_id in documents else ():
            if cases.fits(value, sentence.text) and names(sentence.text) & named:
                yield piece.quotation(sentence.start, sentence.end)
