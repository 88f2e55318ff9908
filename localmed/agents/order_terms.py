"""The terms of an order by rule (LINS, medical term extraction agent): exactly as written, with their place.

What tells a term, the longest at each place first: a name of the concept graph or of the library (a document's title, a
heading, a row of a table), our lists of medicines, conditions, tests and treatments, an abbreviation of orders or one
that the text spells out, the ending of a medicine's or a disease's name, and what stands beside a dose. A term takes
the adjectives before it and the dosage form after it. No two overlap. A negation that governs a term is kept beside it.

Not covered: terms that nothing above tells; what a word means here (a "drain" that is a verb).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from localmed.agents import order_vocabulary as words
from localmed.agents.order_abbreviations import ENGLISH, EVERY, bare, is_written_so
from localmed.agents.order_terms_zh import chinese
from localmed.agents.orders import OrderTerm
from localmed.clinical.medicines import names as medicines
from localmed.language import detect, fold
from localmed.library.terms import singular

LONGEST = 6  # words of a term's name
NAMED = 400  # names asked of graph and library for one order: each costs up to a millisecond

Known = Callable[[str], bool]  # whether the graph or the library has a name

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9'’/.-]*[A-Za-z0-9]|[A-Za-z0-9]")
_POINTED = re.compile(r"(?<![A-Za-z.])(?:[A-Za-z]\.){2,4}(?![A-Za-z])")
_BETWEEN = re.compile(r"[ \t-]+")
_DOSE_AFTER = re.compile(r"\s*(?:\(?[A-Z]?\)?\s*)?\d[\d.,/]*\s?-?(?:mg|mcg|g|ml|units?|meq|%|iu)\b", re.IGNORECASE)
_NEGATION = re.compile(
    r"\b(no|not|never|without|denies|denied|avoid|stop|discontinue|hold|none of|negative for|do not (?:take|use"
    r"|give))\b"
    r"[^.;:\n,]{0,40}$",
    re.IGNORECASE,
)
# What follows these is a circumstance: "hold if INR" does not hold the INR.
_ELSEWHERE = re.compile(r"\b(?:if|when|unless|until|while|for|because|with|after|before|than)\b", re.IGNORECASE)
_TAKEN = re.compile(
    r"\b(?:tak(?:e|es|ing)|medications?(?: (?:are|were|include[sd]?))?|prescribed|on|start(?:ed)?|continued?|finished"
    r"|listed as|given|using|uses?|includ(?:es?|ing)|discharged home on|switched to|better than)[:\s]+(?:her |his "
    r"|the |only )?$"
)
_LISTED = re.compile(r"\s*(?:,|;|and|or|/|\d{1,2}\.)?\s*")
_CAPITALISED = re.compile(r"[A-Z][a-z]{3,}\b")
# Capitalised words that begin sentences or name no medicine.
_ORDINARY = frozenset(
    re.findall(
        r"\S+",
        """
        the this that these those there their they then patient patients plan none follow followup please home
        office regular instructed mother father family doctor clinic hospital monday tuesday wednesday thursday
        friday saturday sunday january february march april june july august september october november december
        discharge discharged advised recommend recommended return continue start stop hold take give apply check
        call with without when while after before also currently other over same she her his him occasional
        significant listed prescribed recently caucasian african american center manor room emergency department
        medicine surgery unknown negative positive denies
        """,
    )
)
_BODY = "|".join(sorted(map(re.escape, words.BODY), key=len, reverse=True))
_FINDING = "|".join(sorted(map(re.escape, words.FINDINGS), key=len, reverse=True))
_OF_BODY = re.compile(
    rf"\b(?:{_BODY})(?: and (?:{_BODY}))? (?:{_FINDING})\b"
    rf"|\b(?:ct|mri|x-rays?|ultrasound|biopsy|scan|pain|swelling|fracture|cancer|infection|inflammation|ct scan"
    rf"|mri scan)"
    rf" (?:scan )?(?:of|in|to) (?:the |her |his |your |both )?(?:(?:left|right|lower|upper) )?(?:{_BODY})\b",
    re.IGNORECASE,
)
_OF_BODY_KINDS = (
    (re.compile(r"\b(?:ct|mri|x-?rays?|ultrasound|biopsy|scan|exam)\b", re.IGNORECASE), "test"),
    (re.compile(r"\b(?:surgery|replacement|transplant)\b", re.IGNORECASE), "treatment"),
)
_LISTS: tuple[tuple[frozenset[str], str], ...] = (
    (words.MEDICINES, "medicine"), (words.CLASSES, "medicine"), (words.CONDITIONS, "condition"),
    (words.TESTS, "test"), (words.TREATMENTS, "treatment"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int
    end: int


@cache
def _table() -> dict[str, str]:
    """Every listed phrase, with plurals cut, and its kind; of two lists the first."""
    found: dict[str, str] = {}
    for names, kind in _LISTS:
        for name in names:
            found.setdefault(_key(name), kind)
    return found


def _key(phrase: str) -> str:
    return " ".join(singular(each.strip(".,'’")) for each in fold(phrase).replace("-", " ").split())


def terms(order: str, known: Known = lambda _: False, spelled: Mapping[str, str] | None = None) -> list[OrderTerm]:
    """The terms of ``order``, in its order; ``known`` is asked for names, ``spelled`` holds what the text spells "
    "out."""
    if detect(order) == "zh":
        return chinese(order, known)
    taken = [False] * len(order)
    found: list[OrderTerm] = []
    for start, end, kind in _candidates(order, known, spelled or {}):
        left, right = _widened(order, start, end, kind, taken)
        if not any(taken[left:right]):
            taken[left:right] = [True] * (right - left)
            found.append(OrderTerm(order[left:right], left, right, kind, _negation(order, left)))
    return sorted(found, key=lambda each: each.start)


def _candidates(order: str, known: Known, spelled: Mapping[str, str]) -> Iterator[tuple[int, int, str]]:
    """What tells a term, surest and longest first; later ones that overlap are dropped."""
    spans = [_Word(match[0], *match.span()) for match in _WORD.finditer(order)]
    for match in _OF_BODY.finditer(order):
        yield *match.span(), next((kind for pattern, kind in _OF_BODY_KINDS if pattern.search(match[0])), "condition")
    yield from _listed(order, spans)
    yield from _known(order, spans, known)
    yield from _abbreviations(order, spans, spelled)
    yield from _by_ending(spans)
    yield from _beside_dose(order, spans)
    yield from _in_lists_of_medicines(order)


def _listed(order: str, spans: list[_Word]) -> Iterator[tuple[int, int, str]]:
    for first, last in _runs(order, spans):
        if kind := _table().get(_key(order[spans[first].start : spans[last].end])):
            yield spans[first].start, spans[last].end, kind


def _known(order: str, spans: list[_Word], known: Known) -> Iterator[tuple[int, int, str]]:
    """Names of the graph and the library; common words alone are none."""
    asked = 0
    for first, last in _runs(order, spans):
        text = order[spans[first].start : spans[last].end]
        if len(text) < 4 or _key(text) in _ORDINARY or text.isdigit():
            continue
        asked += 1
        if asked > NAMED:
            return
        if known(text):
            yield spans[first].start, spans[last].end, "term"


def _runs(order: str, spans: list[_Word]) -> Iterator[tuple[int, int]]:
    """First and last word of every run without punctuation inside, longest first."""
    for length in range(LONGEST, 0, -1):
        for first in range(len(spans) - length + 1):
            last = first + length - 1
            gaps = (order[a.end : b.start] for a, b in zip(spans[first:last], spans[first + 1 : last + 1], strict=True))
            if all(_BETWEEN.fullmatch(gap) for gap in gaps):
                yield first, last


def _abbreviations(order: str, spans: list[_Word], spelled: Mapping[str, str]) -> Iterator[tuple[int, int, str]]:
    for match in (*EVERY.finditer(order), *_POINTED.finditer(order)):
        if match.re is EVERY or bare(match[0]) in ENGLISH:
            yield *match.span(), "abbreviation"
    for each in spans:
        known = bare(each.text) in ENGLISH and is_written_so(each.text, order)
        if each.text in spelled or (known and not each.text.istitle()):
            yield each.start, each.end, "abbreviation"


def _by_ending(spans: list[_Word]) -> Iterator[tuple[int, int, str]]:
    for each in spans:
        word = each.text.lower()
        if medicines(word):
            yield each.start, each.end, "medicine"
        elif words.ENDINGS.fullmatch(word) and word not in words.NO_ENDINGS:
            yield each.start, each.end, "condition"


def _beside_dose(order: str, spans: list[_Word]) -> Iterator[tuple[int, int, str]]:
    """A word before an amount is a medicine: "Micronase 2.5 mg"."""
    for each in spans:
        name = each.text.isalpha() and len(each.text) > 3 and _key(each.text) not in _ORDINARY
        if name and _DOSE_AFTER.match(order, each.end) and _key(each.text) not in _DOSE_WORDS:
            yield each.start, each.end, "medicine"


def _in_lists_of_medicines(order: str) -> Iterator[tuple[int, int, str]]:
    """Capitalised words after "taking", "listed as" and the like, and those listed after them."""
    for match in _CAPITALISED.finditer(order):
        before = order[: match.start()].lower()
        if match[0].lower() not in _ORDINARY and _TAKEN.search(before):
            yield *match.span(), "medicine"
            yield from _continued(order, match.end())


def _continued(order: str, place: int) -> Iterator[tuple[int, int, str]]:
    while (joint := _LISTED.match(order, place)) and (match := _CAPITALISED.match(order, joint.end())):
        if match[0].lower() in _ORDINARY or not joint[0].strip():
            return
        yield *match.span(), "medicine"
        place = match.end()


def _widened(order: str, start: int, end: int, kind: str, taken: list[bool]) -> tuple[int, int]:
    """``start:end`` with the adjectives before it and, of a medicine, the dosage form after it."""
    if kind == "abbreviation":
        return start, end
    while (before := _LAST.search(order, 0, start)) and not any(taken[before.start() : start]):
        if before["word"].lower() not in words.MODIFIERS:
            break
        start = before.start("word")
    while kind == "medicine" and (after := _NEXT.match(order, end)) and after["word"].lower() in words.FORMS:
        end = after.end("word")
    return start, end


_LAST = re.compile(r"(?P<word>[A-Za-z-]+) $")
_NEXT = re.compile(r" (?P<word>nasal (?:inhaler|spray)|(?:eye|ear) drops|[A-Za-z]+)\b")
_DOSE_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
        dose being was were been take taking with plus than about give every total maximum sodium least most
        from only low
        """,
    )
)


def _negation(order: str, start: int) -> str:
    """The word before a term, in its clause, that denies, stops or forbids it; "" if there is none."""
    found = _NEGATION.search(order, max(0, start - 60), start)
    return found[1].lower() if found and not _ELSEWHERE.search(found[0]) else ""
