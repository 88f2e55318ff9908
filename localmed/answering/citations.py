"""What of an answer's statements is shown, what they cite, and the verdict of a quotation.

A quotation is cut out of its passage where it is made (``Evidence.quotation``), so that it is the source's own words to
the character; what a model or a person wrote is checked in ``check.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from localmed.domain import Evidence, Statement, Support, Verdict, message

JUDGE = message("support.judge.quotation")


def verbatim(quotation: Statement) -> Statement:
    """``quotation`` with its verdict."""
    return replace(quotation, verdict=Verdict(Support.VERBATIM, JUDGE, message("citation.verbatim")))


def shown(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """The statements that are not withheld."""
    return tuple(statement for statement in statements if not statement.withheld)


def cited(statements: Iterable[Statement], evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The evidence that ``statements`` cite, in its own order."""
    markers = {citation.marker for statement in statements for citation in statement.citations}
    return tuple(piece for piece in evidence if piece.marker in markers)
