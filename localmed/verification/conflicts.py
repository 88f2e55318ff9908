"""Possible conflicts between what an answer cites and what a source of the next tier says: a dose, or a newer edition.

Local guidance leads an answer, but not blindly (LINS's HERD stops at the first helpful tier and would not see this).
Compared are quotations, two at a time, by rules that would rather miss a difference than claim one:

- *The same thing*: both sources speak of a word of the question; if both quotations name something of their own, they
  share one such word; they do not name different medicines.
- *The same circumstances*: where both say which (route, whom, illness, starting or highest dose, how often), they say
  the same. What a clause leaves open its sentence says, and what that leaves open the headings.
- *Another amount*: of the same kind of unit, after conversion, and neither amount is met by any of the other quotation.
  A percentage counts only where a target or a strength is meant, not as an outcome of a study.
- *A newer edition*: a later date, and half of the titles' words in common.

Not covered: numbers in words, doses that follow from a calculation, tables read column against column, medicines under
two names (paracetamol and acetaminophen are two here).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from localmed.domain import Conflict, ConflictKind, Evidence
from localmed.verification.amounts import Amount, amounts
from localmed.verification.subjects import FAMILIES, circumstances, compatible, medicine_before, medicines, salient

MOST = 3  # differing doses told; more would hide the answer
AMOUNTS = 20  # compared of one quotation; a sentence has a few, a table row a dozen
TITLE_SHARED = 0.5  # of the words of both titles (Dice), for two documents to be of one subject
THOUSANDFOLD = 1000.0  # mg for micrograms: the mistake to look for first

_MEANT = re.compile(
    r"target|goal|below|above|at least|less than|more than|solution|cream|strength|hba1c|saturation|spo2"
    r"|目标|低于|高于|控制|溶液|乳膏|浓度|饱和度|以上|以下"
)


@dataclass(frozen=True, slots=True)
class Cited:
    """A quotation and the evidence that it stands in."""

    quote: str
    evidence: Evidence

    @property
    def headings(self) -> str:
        """What the quotation stands under."""
        return " ".join((self.evidence.document_title, *self.evidence.passage.headings))


@dataclass(frozen=True, slots=True)
class Stated:
    """An amount, of which medicines it may be, and what is said of each of the ``FAMILIES`` of circumstances."""

    amount: Amount
    medicines: frozenset[str]
    circumstances: tuple[frozenset[str], ...]


def conflicts(question: str, ours: Sequence[Cited], theirs: Sequence[Cited]) -> tuple[Conflict, ...]:
    """What ``theirs`` may hold against ``ours``: doses, one a pair of sources and at most ``MOST``; then an edition.

    A pure function of the question and the quotations; it never says who is right.
    """
    subject = salient(question)
    doses: dict[tuple[str, str], Conflict] = {}
    for our in ours:
        for their in theirs:
            for found in _doses(our, their) if same_thing(subject, our, their) else ():
                doses.setdefault((found.marker, found.against), found)
    return (*list(doses.values())[:MOST], *_newer(subject, ours, theirs))


def same_thing(subject: frozenset[str], our: Cited, their: Cited) -> bool:
    """Whether two quotations speak of one thing, which is (part of) the ``subject`` of the question."""
    if not subject & salient(f"{our.headings} {our.quote}") & salient(f"{their.headings} {their.quote}"):
        return False
    return compatible(salient(our.quote), salient(their.quote))


def _doses(our: Cited, their: Cited) -> Iterator[Conflict]:
    """The amounts of one quotation that the other contradicts."""
    mine, yours = _stated(our), _stated(their)
    for one in mine:
        against = [other for other in yours if _comparable(one, other)]
        if any(one.amount.agrees(other.amount) for other in against):
            continue
        for other in against:
            if not any(other.amount.agrees(each.amount) for each in mine if each.amount.kind == other.amount.kind):
                yield _dose(our.evidence.marker, one, their.evidence.marker, other)


def _stated(cited: Cited) -> list[Stated]:
    """The amounts of a quotation that can be compared, with what stands around each, from near to far."""
    found = [each for each in amounts(cited.quote) if each.kind != "%" or _MEANT.search(each.clause)]
    return [_in_context(each, cited) for each in found[:AMOUNTS]]


def _in_context(amount: Amount, cited: Cited) -> Stated:
    around = (amount.clause, cited.quote, cited.headings)
    named = (medicine_before(amount.clause[: amount.at]), *map(medicines, around))
    said = tuple(_first(circumstances(text, family) for text in around) for family in FAMILIES)
    return Stated(amount, _first(named), said)


def _first(found: Iterable[frozenset[str]]) -> frozenset[str]:
    """The first that names anything."""
    return next((each for each in found if each), frozenset())


def _comparable(one: Stated, other: Stated) -> bool:
    """Whether two amounts are of one kind, of the same medicine and in the same circumstances, as far as is said."""
    return (
        one.amount.kind == other.amount.kind
        and compatible(one.medicines, other.medicines)
        and all(compatible(*pair) for pair in zip(one.circumstances, other.circumstances, strict=True))
    )


def _dose(marker: str, one: Stated, against: str, other: Stated) -> Conflict:
    reason = f"Source {marker} says {one.amount.written}, source {against} says {other.amount.written}"
    low, high = sorted((one.amount.high, other.amount.high))
    if high >= low * THOUSANDFOLD > 0:
        reason += ": a thousandfold or more apart"
    elif one.circumstances != other.circumstances:
        reason += ": they may speak of different patients or ways of giving it"
    return Conflict(ConflictKind.DOSE, marker, against, reason)


def _newer(subject: frozenset[str], ours: Sequence[Cited], theirs: Sequence[Cited]) -> Iterator[Conflict]:
    """The newest of ``theirs``, if it is later than all of ``ours`` and of the subject of one of them."""
    dated = [each.evidence for each in ours if each.evidence.edition]
    newest = max((each.edition for each in dated), default="9999")
    later = [each.evidence for each in theirs if _later(each.evidence.edition, newest)]
    for other in sorted(later, key=lambda each: each.edition, reverse=True):
        for own in dated:
            if _one_subject(subject, own.document_title, other.document_title):
                reason = f"Source {other.marker} is of {other.edition}, source {own.marker} of {own.edition}"
                yield Conflict(ConflictKind.EDITION, own.marker, other.marker, reason)
                return


def _later(one: str, other: str) -> bool:
    """Whether date ``one`` is surely later: a year is not later than a day in it."""
    return one[: len(other)] > other[: len(one)]


def _one_subject(subject: frozenset[str], one: str, other: str) -> bool:
    mine, yours = salient(one), salient(other)
    shared = mine & yours
    return bool(shared & subject) and 2 * len(shared) >= TITLE_SHARED * (len(mine) + len(yours))
