"""The sentence or row of a source that is for a value which the question or the record gives.

A small model picks another row of a table, correctly quoted: 40 mg of enoxaparin "with normal kidney function" for a
patient whose clearance is 20 mL/min. Where nothing that is shown is for a value that was given, what the same source
says for that value is quoted beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from localmed.clinical import measures
from localmed.clinical.medicines import names
from localmed.domain import Evidence, Origin, Statement
from localmed.domain.patient import Measured
from localmed.verification import cases, citations
from localmed.verification.matching import split

MOST = 2  # values that something is quoted for


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
