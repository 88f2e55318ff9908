"""The order of hits and sections beside the search's: what a question names decides where nearness cannot.

Each rule was measured on questions of many authors (docs/experiments.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import groupby, permutations
from statistics import median

from localmed.domain import Hit, Passage
from localmed.domain.findings import Question, Section
from localmed.retrieval.guide import named as department_named
from localmed.retrieval.marks import NAMED, of_condition, text_of, things
from localmed.text import measures, synonyms
from localmed.text.furniture import line_spans
from localmed.text.language import content_words, detect, fold
from localmed.text.negation import after_denial, denied
from localmed.text.tables import Names

FIRST = 3  # sections that are seen: entries of dictionaries stand behind them
DEPARTMENTS = range(8, 400)  # headings of a guide to departments; a book has more
ENTRIES, ENTRY = 20, {"en": 120, "zh": 40}  # headings of a dictionary at least; characters of most entries at most
_PLACE = re.compile(
    r"\b(?:where|phones?|telephone|ext(?:ension)?|floors?|opening|hours|refer\w*|clinics?|departments?)\b"
    r"|哪|几楼|电话|分机|门诊|科室|挂号"
)
_BEYOND = re.compile(r"\b(?:on|with|in|for|of|after|at|since|by)\b")  # "won't wake up on morphine"
_ABLE = re.compile(r"\b(?:can|able to) (?!not\b|hardly\b|barely\b|only\b)(\w+)")
_CLAUSE = re.compile(r"[,.;:?!，。；：？！](?!\d)|\b(?:and|but)\b")

Analyse = Callable[[str], Iterable[str]]  # a text -> its index terms
Document = Callable[[str], Sequence[Passage]]  # a document's id -> its passages


def of_sections(found: Sequence[Section], read: Question, analyse: Analyse, document: Document) -> tuple[Section, ...]:
    """The marked sections ``found`` in the order in which they are shown; some lose their marks."""
    return _entries_later(_fullest_first(_fitting(found, read.typed, analyse), read), read.typed, analyse, document)


def _fullest_first(found: Sequence[Section], read: Question) -> Sequence[Section]:
    """``found`` with sections on a dangerous value before others, of these what lacks less first; without such a value
    one of the first few that lacks nothing before others.

    "INR 9, vitamin K": what is to be done at such an INR before what to eat.
    """
    values = {one.written for one in read.beyond}
    if values and not things(read, NAMED):
        return sorted(found, key=lambda one: len(one.lacks) if values & {*one.lacks} else 0)
    place = next((place for place, one in enumerate(found[:FIRST]) if not one.lacks), 0)
    return (*found[place : place + 1], *found[:place], *found[place + 1 :])


def _entries_later(
    found: Sequence[Section], question: str, analyse: Analyse, document: Document
) -> tuple[Section, ...]:
    """``found`` with entries of dictionaries and of the guide to departments without marks, behind the first others.

    "INR 8.4, what to do?" asks for no definition; "what is the INR?" does, and so does what only an entry names.
    """
    asked, where = {*analyse(" ".join(content_words(fold(question))))}, bool(_PLACE.search(fold(question)))
    fewest, more = [*sorted(len(one.lacks) for one in found), 0, 0][:2]

    @cache
    def has_entries(name: str) -> bool:
        return _is_dictionary(document(name)) or (not where and _is_guide(document(name)))

    def is_entry(one: Section) -> bool:
        named = {*analyse(" ".join(one.best.passage.headings[-1:]))}
        asked_for = asked <= named or len(one.lacks) == fewest < more
        return not asked_for and has_entries(one.best.passage.document_id)

    entries = [is_entry(one) for one in found]
    plain = [one.without_marks() if it else one for one, it in zip(found, entries, strict=True)]
    later = [plain[place] for place in range(min(FIRST, len(found))) if entries[place]]
    others = [one for place, one in enumerate(plain) if place >= FIRST or not entries[place]]
    return (*others[:FIRST], *later, *others[FIRST:])


def _is_guide(document: Sequence[Passage]) -> bool:
    """Whether most headings of ``document`` name departments."""
    headings = {one.headings[-1] for one in document if one.headings}
    return len(headings) in DEPARTMENTS and 2 * sum(map(bool, map(department_named, headings))) > len(headings)


def _is_dictionary(document: Sequence[Passage]) -> bool:
    """Whether ``document`` has many headings with a few words each."""
    lengths = [sum(len(one.text) for one in group) for _, group in groupby(document, key=lambda one: one.headings)]
    return len(lengths) >= ENTRIES and median(lengths) <= ENTRY[detect(document[0].text)]


def with_range(found: Sequence[Hit], question: str) -> list[Hit]:
    """``found``; a passage with a range that holds a value of the question is the second at the latest, if any has one.

    "INR 8.5": what is to be done "when the INR is above 5.0" has one word in common with the question. It is the first
    if the one before it says only what the value should be.
    """
    holds = measures.range_of(question, measures.falls_in_sentence)
    if not found or holds is None:
        return list(found)
    aims = measures.range_of(question, measures.misses_target, measures.outside_reference)
    lines = [[hit.passage.text[slice(*span)] for span in line_spans(hit.passage)] for hit in found]
    place = next((place for place, texts in enumerate(lines) if any(map(holds, texts))), 0)
    first = 0 if aims and any(map(aims, lines[0])) else 1
    return [*found[:first], found[place], *found[first:place], *found[place + 1 :]] if place > first else list(found)


def _heading(passage: Passage) -> str:
    """The last heading above a passage, folded; "" if it is the document's title."""
    last = fold(" ".join(passage.headings[-1:]))
    return "" if last == fold(passage.title) else last


def _fitting(found: Sequence[Section], question: str, analyse: Analyse) -> Sequence[Section]:
    """``found``; where of two headings of one document only one fits the question, this one first, the other unmarked.

    One denies what the question does; one denies what somebody can; or one says the opposite ("unconscious, not
    awake").

    "Can swallow" and "cannot swallow" have one meaning to encoders, and nearly the same words. Only a denial counts:
    what a question says is mostly what the whole document is about.
    """

    def words(clause: str) -> tuple[frozenset[str], frozenset[str]]:
        """The content words of a clause that it says, and that it denies."""
        reach = _BEYOND.split(after_denial(fold(clause)))[0]
        no = frozenset(analyse(" ".join(content_words(reach))))
        return frozenset(analyse(" ".join(content_words(clause)))) - no, no

    ordered, clauses = list(found), [words(clause) for clause in _CLAUSE.split(question)]
    denied_words = frozenset[str]().union(*(no for _, no in clauses)).difference(*(yes for yes, _ in clauses))
    folded, opposites = fold(question), _opposites(question)
    able = (match[1] for match in _ABLE.finditer(folded) if not denied(folded, match.start()))
    able_words = frozenset(analyse(" ".join(able))) - denied_words
    contrary = list[Section]()
    if not (denied_words or able_words or opposites):
        return found
    heads = [(words(" ".join(one.best.passage.headings[-1:])), _heading(one.best.passage)) for one in found]
    for (first, (says, above)), (second, (says_too, below)) in permutations(zip(found, heads, strict=True), 2):
        of_one = first.best.passage.document_id == second.best.passage.document_id
        fits = (
            says[0] & says_too[1] & denied_words
            or says[1] & says_too[0] & able_words
            or any(not_so.matches(above) and not so.matches(above) and so.matches(below) for so, not_so in opposites)
        )
        if of_one and fits:
            contrary.append(first)
            if ordered.index(first) < ordered.index(second):
                ordered.remove(second)
                ordered.insert(ordered.index(first), second)
    return [one.without_marks() if one in contrary else one for one in ordered]


def _opposites(question: str) -> list[tuple[Names, Names]]:
    """The names of each thing that a question says, and what one of them denies: "not awake"."""
    folded = fold(question)
    named = [one for one in synonyms.named(folded) if not folded[: one.start].endswith("not ")]
    said = [one.names for one in named if not denied(folded, one.start)]
    return [(Names(names), Names(no)) for names in said if (no := [one[4:] for one in names if one[:4] == "not "])]


def others_answer_better(read: Question, own: Sequence[Section], others: Sequence[Section]) -> bool:
    """Whether only ``others`` are on what the question names.

    Either one of them names all of it and none of ``own`` does, or only they have a condition of the question in a
    title or heading, all of its conditions and procedures in one section, or a range that a value of it is in.
    """
    holds = measures.range_of(read.with_units)

    def ranged(sections: Sequence[Section]) -> bool:
        return holds is not None and any(holds(line.text) for one in sections for line in one.lines)

    called = (name for one in read.beyond for name in of_condition(one))
    names = Names({*called, *(name for one in things(read, ("conditions",)) for name in one.names)})

    def headed(sections: Sequence[Section]) -> bool:
        return any(names.matches(fold(" ".join((it.best.passage.title, *it.best.passage.headings)))) for it in sections)

    each = [Names(one.names) for one in things(read, NAMED)]

    def on_all(sections: Sequence[Section]) -> bool:
        return len(each) > 1 and any(it.marks and all(of.matches(text_of(it)) for of in each) for it in sections)

    complete = any(it.marks and not it.lacks for it in others) and all(it.lacks for it in own)
    return complete or any(only(others) and not only(own) for only in (headed, on_all, ranged))
