"""Whether two sentences of one answer can both be right: the same thing with opposite signs, sides or amounts.

Each is read as the source of the other, by the rules that compare a sentence with its source: only where their clauses
share most words, so that two sentences about different patients are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from localmed.clinical import negation
from localmed.domain import Statement
from localmed.verification import bindings, opposites
from localmed.verification.clauses import Clause, of_statement, share

ALIKE = 0.6  # of each clause that the other holds: with less they may speak of different things


def disagreeing(statements: Sequence[Statement]) -> Iterator[tuple[int, int]]:
    """The places of those that say otherwise than one another, of the same document."""
    for one, first in enumerate(statements):
        for other, second in enumerate(statements[:one]):
            if _documents(first) & _documents(second) and disagree(first.text, second.text):
                yield other, one


def disagree(one: str, other: str) -> bool:
    """Whether the two cannot both be right, as far as words tell."""
    mine, theirs = of_statement(one), of_statement(other)
    return any(
        _against(clause, near) or _against(near, clause)
        for clause in mine
        for near in theirs
        if min(share(clause, near), share(near, clause)) >= ALIKE
    )


def _against(clause: Clause, other: Clause) -> bool:
    if opposites.opposed((clause,), (other,)) or bindings.other_side((clause,), (other,)):
        return True
    denies = negation.denies(clause.text) != negation.denies(other.text)
    return denies and not (negation.doubtful(clause.text) | negation.doubtful(other.text))


def _documents(statement: Statement) -> frozenset[str]:
    return frozenset(citation.document_id for citation in statement.citations)


def places(pairs: Iterable[tuple[int, int]]) -> frozenset[int]:
    """All places that ``pairs`` name."""
    return frozenset(place for pair in pairs for place in pair)
