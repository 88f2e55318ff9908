"""Possible conflicts between what an answer cites and what a source of the next tier says: a dose, or a newer edition.

Local guidance leads an answer, but not blindly (LINS's HERD stops at the first helpful tier and would not see this).
Compared are quotations, two at a time, by rules that would rather miss a difference than claim one:

- *The same thing*: both sources speak of a word of the question; if both quotations name something of their own, they
  share one such word; they do not name different medicines.
- *The same circumstances*: where both say which (route, whom, illness, starting or highest dose, how often), they say
  the same. What a clause leaves open its sentence says, and what that leaves open the headings. What is said of severe
  illness only is not compared with what is said of illness in general, nor "below" with "above".
- *Another amount*: of the same kind of unit, after conversion, and neither amount is met by any of the other quotation.
  A percentage counts only where a target is meant, of one and the same group: not as an outcome of a study, nor as a
  strength, which names a product. What must not be done is no amount, unless it is a limit; nor is what a medicine is
  diluted in.
- *A newer edition*: a later date, most of the titles' words in common, the same people and illness in both titles; an
  article of a journal is no edition of a guideline.

Not covered: numbers in words, doses that follow from a calculation, tables read column against column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from localmed.clinical.medicines import ingredients, last_before
from localmed.clinical.negation import denies
from localmed.domain import Caution, Citation, Conflict, ConflictKind, Evidence, Quantity
from localmed.language import fold
from localmed.verification.amounts import Amount, amounts
from localmed.verification.subjects import FAMILIES, circumstances, compatible, salient, side, title_words

MOST = 3  # differing doses told; more would hide the answer
AMOUNTS = 20  # compared of one quotation; a sentence has a few, a table row a dozen
TITLE_SHARED = 0.75  # of the words of both titles (Dice), for two documents to be editions of one
THOUSANDFOLD = 1000.0  # mg for micrograms: the mistake to look for first

_MEANT = re.compile(
    r"target|goal|below|above|at least|less than|more than|hba1c|saturation|spo2|目标|低于|高于|控制|饱和度|以上|以下"
)
_STRENGTH = re.compile(
    r"\s*(?:w/v|w/w|saline|sodium|hypertonic|glucose|dextrose|albumin|solution|cream|ointment|gel"
    r"|的?(?:氯化钠|盐水|葡萄糖|白蛋白|溶液|乳膏|软膏))"
)
_EXCEPT = re.compile(r"\b(?:unless|except)|除非|除外")
_DILUTED = re.compile(
    r"(?:\b(?:in|into|dilut\w+ (?:with|to)|made up to)(?: (?:at least|about))?|溶于|加入|加至|稀释[于至到])\s*$"
)


@dataclass(frozen=True, slots=True)
class Cited:
    """A citation and the evidence that it stands in."""

    citation: Citation
    evidence: Evidence

    @property
    def quote(self) -> str:
        """What the source says, word for word."""
        return self.citation.quote

    @property
    def headings(self) -> str:
        """What the quotation stands under."""
        return " ".join((self.evidence.document_title, *self.evidence.passage.headings))


@dataclass(frozen=True, slots=True)
class Stated:
    """An amount, of which medicines it may be, and what is said of each of the ``FAMILIES`` of circumstances.

    ``side`` is that of the amount which is spoken of: ``below``, ``above`` or nothing.
    """

    amount: Amount
    medicines: frozenset[str]
    circumstances: tuple[frozenset[str], ...]
    side: str

    def of_family(self, family: str) -> frozenset[str]:
        """What is said of one family."""
        return self.circumstances[FAMILIES.index(family)]


def conflicts(question: str, ours: Sequence[Cited], theirs: Sequence[Cited]) -> tuple[Conflict, ...]:
    """What ``theirs`` may hold against ``ours``: doses, one a pair of sources and at most ``MOST``; then an edition.

    A pure function of the question and the quotations; it never says who is right.
    """
    subject = salient(question)
    doses: dict[tuple[str, str], Conflict] = {}
    for own_quote in ours:
        for other_quote in theirs:
            for dose in _doses(own_quote, other_quote) if same_thing(subject, own_quote, other_quote) else ():
                doses.setdefault((dose.marker, dose.against), dose)
    return (*list(doses.values())[:MOST], *_newer(subject, ours, theirs))


def same_thing(subject: frozenset[str], own_quote: Cited, other_quote: Cited) -> bool:
    """Whether two quotations speak of one thing, which is (part of) the ``subject`` of the question."""
    if (
        not subject
        & salient(f"{own_quote.headings} {own_quote.quote}")
        & salient(f"{other_quote.headings} {other_quote.quote}")
    ):
        return False
    return compatible(salient(own_quote.quote), salient(other_quote.quote))


def _doses(own_quote: Cited, other_quote: Cited) -> Iterator[Conflict]:
    """The amounts of one quotation that the other contradicts."""
    mine, yours = _stated(own_quote), _stated(other_quote)
    for one in mine:
        against = [other for other in yours if _comparable(one, other)]
        if any(one.amount.agrees(other.amount) for other in against):
            continue
        for other in against:
            if not any(
                other.amount.agrees(stated.amount) for stated in mine if stated.amount.kind == other.amount.kind
            ):
                yield _dose(own_quote, one, other_quote, other)


def _stated(cited: Cited) -> list[Stated]:
    """The amounts of a quotation that can be compared, with what stands around each, from near to far."""
    comparable = [amount for amount in amounts(cited.quote) if _counts(amount, cited.quote)]
    return [_in_context(amount, cited) for amount in comparable[:AMOUNTS]]


def _counts(amount: Amount, quote: str) -> bool:
    """Whether an amount is one that a source stands for."""
    if denies(amount.clause):
        return False
    if amount.kind == "mL":
        return not _DILUTED.search(amount.clause[: amount.at])
    if amount.kind == "%":
        strength = _STRENGTH.match(amount.clause, amount.end)
        return bool(_MEANT.search(amount.clause)) and not strength and not _EXCEPT.search(fold(quote))
    return True


def _in_context(amount: Amount, cited: Cited) -> Stated:
    around = (amount.clause, cited.quote, cited.headings)
    named = (last_before(amount.clause[: amount.at]), *map(ingredients, around))
    families = tuple(_first(circumstances(text, family) for text in around) for family in FAMILIES)
    return Stated(amount, _first(named), families, side(amount.clause[: amount.at], amount.clause[amount.end :]))


def _first(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    """The first that names anything."""
    return next((names for names in sets if names), frozenset())


def _comparable(one: Stated, other: Stated) -> bool:
    """Whether two amounts are of one kind, of the same medicine and in the same circumstances, as far as is said."""
    return (
        one.amount.kind == other.amount.kind
        and compatible(one.medicines, other.medicines)
        and all(compatible(*pair) for pair in zip(one.circumstances, other.circumstances, strict=True))
        and {one.side, other.side} != {"below", "above"}
        and ("severe" in one.of_family("severity")) == ("severe" in other.of_family("severity"))
        and (one.amount.kind != "%" or _one_group(one, other))
    )


def _one_group(one: Stated, other: Stated) -> bool:
    """Whether two targets are surely of the same people: adults are meant where nobody is named."""
    return one.of_family("condition") == other.of_family("condition") and (
        one.of_family("people") - {"adults"} == other.of_family("people") - {"adults"}
    )


def _dose(own_quote: Cited, one: Stated, other_quote: Cited, other: Stated) -> Conflict:
    low, high = sorted((one.amount.high, other.amount.high))
    caution = Caution.NONE
    if high >= low * THOUSANDFOLD > 0:
        caution = Caution.THOUSANDFOLD
    elif one.circumstances != other.circumstances:
        caution = Caution.CIRCUMSTANCES
    return Conflict(
        ConflictKind.DOSE,
        own_quote.evidence.marker,
        other_quote.evidence.marker,
        own_quote.citation,
        other_quote.citation,
        amounts=tuple(
            Quantity(amount.low, amount.high, amount.kind, amount.written) for amount in (one.amount, other.amount)
        ),
        caution=caution,
    )


def _newer(subject: frozenset[str], ours: Sequence[Cited], theirs: Sequence[Cited]) -> Iterator[Conflict]:
    """The newest of ``theirs``, if it is later than all of ``ours`` and of the subject of one of them."""
    dated = [own_quote for own_quote in ours if own_quote.evidence.edition]
    newest = max((own_quote.evidence.edition for own_quote in dated), default="9999")
    later = [other_quote for other_quote in theirs if _later(other_quote.evidence.edition, newest)]
    for other in sorted(later, key=lambda quotation: quotation.evidence.edition, reverse=True):
        for own in dated:
            if _editions_of_one(subject, own.evidence, other.evidence):
                yield _edition(own, other)
                return


def _edition(own: Cited, other: Cited) -> Conflict:
    mine, yours = own.evidence, other.evidence
    dates = (mine.edition, yours.edition)
    return Conflict(ConflictKind.EDITION, mine.marker, yours.marker, own.citation, other.citation, editions=dates)


def _later(one: str, other: str) -> bool:
    """Whether date ``one`` is surely later: a year is not later than a day in it."""
    return one[: len(other)] > other[: len(one)]


def _editions_of_one(subject: frozenset[str], one: Evidence, other: Evidence) -> bool:
    """Whether two sources may be editions of one: of one sort, with one title, of the same people and illness."""
    if bool(one.publication_types) != bool(other.publication_types):  # an article of a journal, and something else
        return False
    return _one_title(subject, one.document_title, other.document_title)


def _one_title(subject: frozenset[str], one: str, other: str) -> bool:
    if not subject & salient(one) & salient(other):
        return False
    mine, yours = circumstances(one, "people"), circumstances(other, "people")
    if not compatible(mine, yours) or mine - {"adults"} != yours - {"adults"}:
        return False
    if circumstances(one, "condition") != circumstances(other, "condition"):
        return False
    words, others = title_words(one), title_words(other)
    return 2 * len(words & others) >= TITLE_SHARED * (len(words) + len(others))
