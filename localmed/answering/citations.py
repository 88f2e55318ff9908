"""Markers and quotations: every citation exists, and is quoted to the character (an ask's own check is ``check.py``).

A marker that was not minted with the evidence is rejected; a quotation that is not, to the character, the cited stretch
of its passage is withheld; so is a statement left without a citation. What is withheld stays in the answer as a
visible gap. Statements in the model's own words are ``unchecked`` here: entailment judges those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from localmed.domain import Citation, Evidence, Message, Origin, Statement, Support, Verdict, Verification, message

JUDGE = message("support.judge.quotation")


def check(statements: Sequence[Statement], evidence: Sequence[Evidence]) -> tuple[tuple[Statement, ...], Verification]:
    """The statements with their verdicts, and the account of the check."""
    known = {piece.marker: piece for piece in evidence}
    rejected = sum(citation.marker not in known for statement in statements for citation in statement.citations)
    checked = tuple(_checked(statement, known) for statement in statements)
    withheld = sum(statement.withheld for statement in checked)
    return checked, Verification(len(checked), withheld, rejected, (JUDGE,))


def _checked(statement: Statement, known: dict[str, Evidence]) -> Statement:
    citations = tuple(citation for citation in statement.citations if citation.marker in known)
    if not citations:
        return _withheld(statement, citations, message("citation.none_exists"))
    false = [citation.marker for citation in citations if not exact(citation, known[citation.marker])]
    if false:
        return _withheld(statement, citations, message("citation.misquoted", marker=false[0]))
    if statement.origin is not Origin.EXTRACTIVE:
        verdict = Verdict(Support.UNCHECKED, JUDGE, message("citation.not_judged"))
        return replace(statement, citations=citations, verdict=verdict)
    if statement.text not in {citation.quote for citation in citations}:
        return _withheld(statement, citations, message("citation.no_quotation"))
    verdict = Verdict(Support.VERBATIM, JUDGE, message("citation.verbatim"))
    return replace(statement, citations=citations, verdict=verdict)


def shown(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """The statements that are not withheld."""
    return tuple(statement for statement in statements if not statement.withheld)


def cited(statements: Iterable[Statement], evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The evidence that ``statements`` cite, in its own order."""
    markers = {citation.marker for statement in statements for citation in statement.citations}
    return tuple(piece for piece in evidence if piece.marker in markers)


def exact(citation: Citation, evidence: Evidence) -> bool:
    """Whether ``citation`` quotes its evidence to the character, and marks no box that these do not stand in."""
    passage = evidence.passage
    start, end = citation.start, citation.end
    return (
        (citation.passage_id, citation.document_id) == (passage.id, passage.document_id)
        and 0 <= start < end <= len(passage.text)
        and passage.text[start:end] == citation.quote
        and set(citation.boxes) <= set(passage.boxes(start, end))
    )


def _withheld(statement: Statement, citations: tuple[Citation, ...], reason: Message) -> Statement:
    verdict = Verdict(Support.UNSUPPORTED, JUDGE, reason)
    return replace(statement, citations=citations, verdict=verdict, withheld=True)
