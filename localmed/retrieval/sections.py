"""Builds sections from hits and marks the sentences nearest to the question.

A section has the passages of one heading of one document in reading order, without running heads and foot lines; its
rank is that of its best passage. Marks follow meaning and the question's rare words; they may be wrong and hide
nothing. Not marked:

- lines that state nothing (a number, a bullet, a lone heading);
- table rows that were read with doubt, whose range lacks the question's number, or whose cells share no word with the
  question ("High" is no word);
- lines on a medicine that somebody is allergic to, as the question says;
- lines on normal kidneys if the question's are not, and on another medicine than the one asked about; table rows on
  medicines if none is asked about;
- sections that do not name the child, pregnancy or overdose asked about, or any condition or procedure; where the
  question names none and no medicine, a value of it ("K 6.8").

If the library lacks something of the question, only lines that name a medicine asked about, or give a range with a
value of it, are marked. A section lists the things of the question that it lacks (``lacks``). A study's section has the
sentences on its population, if a heading of the document introduces them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, groupby

from localmed.domain import Hit, Passage
from localmed.domain.findings import Line, Question, Section
from localmed.library.lexical import LexicalIndex
from localmed.retrieval.subjects import allergens, subjects
from localmed.retrieval.weights import of_terms
from localmed.text import measures, medicines, synonyms
from localmed.text.amounts import amounts
from localmed.text.furniture import line_spans, states_nothing
from localmed.text.language import content_words, fold
from localmed.text.negation import after_denial, denied
from localmed.text.tables import Names, cues

FIRST = 4  # hits that are surely seen
LONGEST = 6_000  # characters of a section; a longer one is cut around its best passage
MARKS = 3  # in one section
PARAGRAPH = 600  # characters of a paragraph that is marked whole
NEVER = -math.inf  # the score of a line that is not marked
WORDS = 0.2  # weight of a line's share of rare words beside its similarity; 0.1 to 0.3 give equal results
FEWER = 0.6  # by words alone: least share of the best line's score
POPULATION = 300  # characters on a study's population; the first sentence is always whole
NEAR = 0.15  # largest distance of a mark from the nearest line of all sections

ASKED = 0.1  # added to a line with an amount if the question asks for one
NAMED = ("conditions", "procedures")  # what is lacking if no section names it
GENERAL = frozenset({"infection", "alcohol"})  # everyday words among the conditions

_BEYOND = re.compile(r"\b(?:on|with|in|for|of|after|at|since|by)\b")  # "won't wake up on morphine"
_ABLE = re.compile(r"\b(?:can|able to) (?!not\b|hardly\b|barely\b|only\b)(\w+)")
_ALLERGY = re.compile(r"allerg|过敏")
_CLAUSE = re.compile(r"[,.;:?!，。；：？！](?!\d)|\b(?:and|but)\b")
_CELL = re.compile(r"([^:：;；]{1,80})(?:: |：)([^;；]+)(?:[;；]|$)")  # of a table's row, see ingest/readers/tables.py
_DEGREE = re.compile(r"(?i)(?:very )?(?:low|high|mild|moderate|severe)(?: risk)?|极?[低中高轻重][度危]?")  # a cell

_medicines = lru_cache(20_000)(medicines.names)  # the lines of a library come again and again
_amounts = lru_cache(20_000)(amounts)
_ASKS_AMOUNT = re.compile(
    r"\b(?:doses?|dosage|dosing|how much|how many|m[gc]g?|micrograms?|units?|mls?|rate|strength)\b"
    r"|剂量|多少|用量|怎么用|毫克|几毫|几片|滴速|泵",
    re.IGNORECASE,
)
Similar = Callable[[Sequence[str]], Mapping[str, Sequence[float]]]  # ids of passages -> each line's similarity


def sections(
    found: Sequence[Hit],
    read: Question,
    index: LexicalIndex,
    most: int,
    document: Callable[[str], Sequence[Passage]],
    similar: Similar,
    studies: Callable[[str], bool] = lambda _: False,
    lacking: Sequence[str] = (),
) -> tuple[Section, ...]:
    """The first ``most`` sections of the hits ``found``, best first.

    ``document`` gives a document's passages; ``studies``: whether a collection is literature; ``lacking``: terms of the
    question that no document has.
    """
    seen: set[str] = set()
    taken: list[Section] = []
    headed = _with_heading(found, f"{read.typed} {read.further}", document, min(most, FIRST))
    for hit in _with_range(headed, read.typed):
        if hit.passage.id in seen or len(taken) == most:
            continue
        passages = document(hit.passage.document_id)
        whole = section_of(hit.passage, passages)
        seen |= {passage.id for passage in whole}
        shown = _around(hit.passage, whole)
        if lines := tuple(_lines(shown)):
            study = studies(hit.passage.collection)
            population = tuple(_population(passages)) if study else ()
            taken.append(Section(hit, lines, len(shown) < len(whole), study, population))
    taken = _as_denied(taken, read.typed, index.analyse)
    near = similar(list(dict.fromkeys(line.passage.id for one in taken for line in one.lines)))
    weights = of_terms(f"{read.typed} {read.further}", index)
    asked = [one for one in subjects(read) if one.written not in lacking]
    other_kidneys = measures.of_other_kidneys(f"{read.typed} {read.further}")
    named = [one for one in asked if one.ingredients]
    allergic = allergens(read)

    def harms(line: Line) -> bool:
        """Whether a line is on a medicine that somebody is allergic to: a row on it, or a line without "allergy"."""
        row = _CELL.match(line.text) if begins_with_a_medicine(line.text) else None
        met = bool(allergic) and bool(medicines.met_by(allergic, row[2] if row else line.text))
        return met and (bool(row) or not _ALLERGY.search(fold(line.text)))

    an_amount = bool(_ASKS_AMOUNT.search(read.typed))

    def share(text: str) -> float:
        return weights.coverage(index.analyse(text))

    holds = measures.range_of(read.typed)

    def in_range(line: Line) -> bool:
        return holds is not None and holds(line.text)

    def scored(one: Section) -> tuple[Section, list[float]]:
        above = " ".join((one.best.passage.title, *one.best.passage.headings))
        of_lines = [_medicines(line.text) if named else frozenset[str]() for line in one.lines]
        held = medicines.names(above).union(*of_lines) if named else frozenset[str]()
        on = [any(it.is_among(names) for it in named) for names in of_lines]
        if not named or any(it.is_among(held) for it in named):  # table rows on other medicines do not count
            others = [not its and begins_with_a_medicine(line.text) for line, its in zip(one.lines, on, strict=True)]
        else:  # lines that name another medicine, or under its heading, do not count
            below = bool(medicines.ingredients(above))
            others = [
                below or bool(names and _is_on_a_medicine(line.text))
                for line, names in zip(one.lines, of_lines, strict=True)
            ]
        own = " ".join((above, *(line.text for line, other in zip(one.lines, others, strict=True) if not other)))
        lacks = tuple(it.written for it in asked if not (it.is_among(held) if it.ingredients else it.is_in(own)))
        other_people = any(it.written in lacks for it in asked if not it.ingredients)
        rows = [_cells(line) for line in one.lines]
        unmarked = [
            other_people
            or other
            or harms(line)
            or (not its and not ranged if lacking else fits is False)
            or (fits is None and bool(row) and not share(" ".join(it for _, it in row if not _DEGREE.fullmatch(it))))
            or (other_kidneys and measures.for_normal_kidneys(line.text))
            or _states_nothing(line)
            for line, row, other, fits, its, ranged in zip(
                one.lines,
                rows,
                others,
                _fitting(one.lines, rows, read.typed),
                on,
                map(in_range, one.lines),
                strict=True,
            )
        ]
        counts = Counter(line.passage.id for line in one.lines)  # no marks if the lines differ from the encoded ones
        of_passage = {name: iter(near[name]) for name, count in counts.items() if len(near.get(name, ())) == count}
        nearest = [next(of_passage[line.passage.id]) if line.passage.id in of_passage else 0.0 for line in one.lines]
        scores = [
            NEVER if other else score + WORDS * share(line.text) + (ASKED if an_amount and _amounts(line.text) else 0.0)
            for line, score, other in zip(one.lines, nearest, unmarked, strict=True)
        ]
        return replace(one, lacks=lacks), scores

    conditions, names = _conditions(read)
    if not conditions and not named:
        conditions, names = _values(read)
    unnamed = [  # "potassium of 6.5 or higher" names a high potassium
        bool(conditions) and not names.matches(_text(one)) and not any(map(in_range, one.lines)) for one in taken
    ]
    made = [
        (replace(one, lacks=tuple(dict.fromkeys((*one.lacks, *conditions)))), [NEVER] * len(scores))
        if lacks
        else (one, scores)
        for (one, scores), lacks in zip(map(scored, taken), unnamed, strict=True)
    ]
    nearest = max((score for _, scores in made for score in scores), default=0.0)
    return tuple(
        replace(one, lines=_marked(one.lines, scores, nearest - NEAR if near else FEWER * max(scores), in_range))
        for one, scores in made
    )


def _with_range(found: Sequence[Hit], question: str) -> list[Hit]:
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


def _with_heading(
    found: Sequence[Hit], question: str, document: Callable[[str], Sequence[Passage]], place: int
) -> list[Hit]:
    """``found``, with a passage of the first documents whose heading names what the question does as the ``place``-th.

    "NEWS 7, lactate 4, which antibiotic?" has most words in common with the section on lactate. Nothing is moved for
    what the headings of the first ones name.
    """
    before, after = found[: place - 1], found[place - 1 :]
    headed = [_heading(hit.passage) for hit in before]
    folded = fold(question)
    for thing in synonyms.named(folded):
        names = Names(thing.names)
        no_subject = thing.asking or GENERAL & {*thing.names} or denied(folded, thing.start)
        if no_subject or any(map(names.matches, headed)):
            continue
        for name in dict.fromkeys(hit.passage.document_id for hit in before):
            for passage in document(name):
                heading = _heading(passage)
                if any(not denied(heading, match.start) for match in names.matches(heading)):
                    hit = next((hit for hit in found if hit.passage.id == passage.id), Hit(passage))
                    return [*before, hit, *(it for it in after if it != hit)]
    return list(found)


def _heading(passage: Passage) -> str:
    """The last heading above a passage, folded; "" if it is the document's title."""
    last = fold(" ".join(passage.headings[-1:]))
    return "" if last == fold(passage.title) else last


def _as_denied(found: Sequence[Section], question: str, analyse: Callable[[str], Iterable[str]]) -> list[Section]:
    """``found`` with the heading that fits first, where of two of one document only one fits the question: one denies
    what the question does; one denies what somebody can; or one says the opposite ("unconscious, not awake").

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
    if not (denied_words or able_words or opposites):
        return ordered
    heads = [(words(" ".join(one.best.passage.headings[-1:])), _heading(one.best.passage)) for one in found]
    for (first, (says, above)), (second, (says_too, below)) in combinations(zip(found, heads, strict=True), 2):
        of_one = first.best.passage.document_id == second.best.passage.document_id
        fits = (
            says[0] & says_too[1] & denied_words
            or says[1] & says_too[0] & able_words
            or any(not_so.matches(above) and not so.matches(above) and so.matches(below) for so, not_so in opposites)
        )
        if of_one and fits and ordered.index(first) < ordered.index(second):
            ordered.remove(second)
            ordered.insert(ordered.index(first), second)
    return ordered


def _opposites(question: str) -> list[tuple[Names, Names]]:
    """The names of each thing that a question says, and what one of them denies: "not awake"."""
    folded = fold(question)
    things = [one for one in synonyms.named(folded) if not folded[: one.start].endswith("not ")]
    said = [one.names for one in things if not denied(folded, one.start)]
    return [(Names(names), Names(no)) for names in said if (no := [one[4:] for one in names if one[:4] == "not "])]


def others_answer_better(read: Question, own: Sequence[Section], others: Sequence[Section]) -> bool:
    """Whether only ``others`` are on what the question names.

    Either one of them names all of it and none of ``own`` does, or only they have a condition of the question in a
    title or heading, all of its conditions and procedures in one section, or a range that a value of it is in.
    """
    holds = measures.range_of(read.typed)

    def ranged(sections: Sequence[Section]) -> bool:
        return holds is not None and any(holds(line.text) for one in sections for line in one.lines)

    names = Names({name for one in _asked(read, ("conditions",)) for name in one.names})

    def headed(sections: Sequence[Section]) -> bool:
        return any(names.matches(fold(" ".join((it.best.passage.title, *it.best.passage.headings)))) for it in sections)

    each = [Names(one.names) for one in _asked(read, NAMED)]

    def on_all(sections: Sequence[Section]) -> bool:
        return len(each) > 1 and any(it.marks and all(of.matches(_text(it)) for of in each) for it in sections)

    complete = any(it.marks and not it.lacks for it in others) and all(it.lacks for it in own)
    return complete or any(only(others) and not only(own) for only in (headed, on_all, ranged))


def _text(section: Section) -> str:
    """A section with its title and headings, folded."""
    passage = section.best.passage
    return fold(" ".join((passage.title, *passage.headings, *(line.text for line in section.lines))))


def _conditions(read: Question) -> tuple[tuple[str, ...], Names]:
    """The conditions and procedures of a question as written; all names of them and of broader conditions within."""
    asked = _asked(read, NAMED)
    names = {name for one in asked for name in (one.written, *one.names, *_broader(one.written))}
    folded = fold(read.typed)
    typed = read.typed if len(read.typed) == len(folded) else folded
    return tuple(dict.fromkeys(typed[one.start : one.end] for one in asked)), Names(names)


def _values(read: Question) -> tuple[tuple[str, ...], Names]:
    """The values of a question as written ("K 6.8"); the names of what was measured, and of the conditions."""
    named = [
        (one.written, synonyms.named(one.means))
        for one in read.readings
        if not one.left_out and any(measures.measured(one.means))
    ]
    names = {name for _, things in named for thing in things for name in thing.names}
    return tuple(written for written, things in named if things), Names(names)


def _asked(read: Question, sorts: Sequence[str]) -> list[synonyms.Named]:
    """The things of these ``sorts`` that a question names and does not deny."""
    folded = fold(read.typed)
    return [
        one
        for one in synonyms.named(folded)
        if any(synonyms.is_in(sort, one.written) for sort in sorts)
        and not GENERAL & {*one.names}
        and not denied(folded, one.start)
    ]


def _broader(written: str) -> Iterator[str]:
    """The names of conditions that stand within the name of another one."""
    parts = written.split() if written.isascii() else [*written]
    joint = " " if written.isascii() else ""
    for start in range(len(parts)):
        for end in range(start + 1, len(parts) + (start > 0)):
            within = synonyms.named(joint.join(parts[start:end]))
            yield from (name for it in within if synonyms.is_in("conditions", it.written) for name in it.names)


def section_of(passage: Passage, document: Sequence[Passage]) -> tuple[Passage, ...]:
    """The passages of ``document`` in sequence with ``passage`` under the same headings."""
    groups = [tuple(group) for _, group in groupby(document, key=lambda one: one.headings)]
    return next((group for group in groups if passage.id in {one.id for one in group}), (passage,))


def _around(best: Passage, whole: Sequence[Passage]) -> tuple[Passage, ...]:
    """``whole``, or the passages around ``best`` that fit into ``LONGEST``."""
    at = next((place for place, passage in enumerate(whole) if passage.id == best.id), 0)
    first = last = at
    length, grows = len(whole[at].text), True
    while grows:
        grows = False
        for place in (last + 1, first - 1):
            if 0 <= place < len(whole) and length + len(whole[place].text) <= LONGEST:
                length, grows = length + len(whole[place].text), True
                first, last = min(first, place), max(last, place)
    return tuple(whole[first : last + 1])


def _lines(passages: Iterable[Passage]) -> Iterator[Line]:
    for passage in passages:
        last = 0
        for start, end in line_spans(passage):
            yield Line(passage, start, end, breaks=last == 0 or "\n" in passage.text[last:start])
            last = end


def _population(document: Iterable[Passage]) -> Iterator[Line]:
    """The first sentences under the heading of ``document`` on its population."""
    passages = [one for one in document if cues("publications", "population").search(" ".join(one.headings[-1:]))]
    left = POPULATION
    for line in _lines(one for one in passages[:1] if one.headings[-1] != one.title):
        left -= line.end - line.start
        if left < 0 and left != POPULATION - (line.end - line.start):
            return
        yield line


def _marked(
    lines: tuple[Line, ...], scores: Sequence[float], least: float, sure: Callable[[Line], bool]
) -> tuple[Line, ...]:
    """``lines`` with marks: the best with a positive score of at least ``least``, and those that are ``sure``.

    A short paragraph is marked whole: of two sentences in it the nearer one may be the less urgent.
    """
    order = sorted(range(len(lines)), key=lambda place: (-scores[place], place))[:MARKS]
    chosen = {place for place in order if scores[place] > 0 and scores[place] >= least}
    chosen |= {place for place, line in enumerate(lines) if scores[place] > NEVER and sure(line)}
    for paragraph in _paragraphs(lines):
        if chosen & {*paragraph} and sum(len(lines[place].text) for place in paragraph) <= PARAGRAPH:
            chosen |= {place for place in paragraph if scores[place] > NEVER}
    return tuple(
        Line(line.passage, line.start, line.end, place in chosen, line.breaks) for place, line in enumerate(lines)
    )


def _paragraphs(lines: Sequence[Line]) -> Iterator[list[int]]:
    """The places of the lines of each paragraph; a table's row is one by itself."""
    paragraph: list[int] = []
    for place, line in enumerate(lines):
        if paragraph and (line.breaks or line.passage.table or line.passage.id != lines[place - 1].passage.id):
            yield paragraph
            paragraph = []
        paragraph.append(place)
    yield paragraph


def _is_on_a_medicine(text: str) -> bool:
    """Whether ``text`` names a medicine; what is also measured in blood ("glucose") is none."""
    return any(one.ingredients and one.classes for one in medicines.mentions(text))


@lru_cache(20_000)
def begins_with_a_medicine(line: str) -> bool:
    """Whether ``line`` is a table row that begins with a medicine."""
    row = _CELL.match(line)
    return bool(row and row.end() < len(line) and medicines.ingredients(row[2]))


def _cells(line: Line) -> list[tuple[str, str]]:
    """The (header, cell) pairs of a table's row."""
    found = _CELL.findall(line.text) if line.passage.table else []
    return [(header.strip(), cell.strip()) for header, cell in found] if len(found) > 1 else []


def _fitting(lines: Sequence[Line], rows: Sequence[Sequence[tuple[str, str]]], question: str) -> list[bool | None]:
    """Whether each row's range contains a number of the ``question``; ``None`` for a line without a range.

    A lone number is a range if its table has ranges. Further cells count if the question gives a value of their
    measure. One of two blood pressures is enough unless a cell says "and".
    """
    held = [measures.falls_in(question, *row[0]) if row else None for row in rows]
    banded = {line.passage.id for line, one in zip(lines, held, strict=True) if one is not None}
    for place, (line, row) in enumerate(zip(lines, rows, strict=True)):
        if row and held[place] is None and line.passage.id in banded:
            held[place] = measures.falls_in(question, *row[0], lone=True)
        further = _holds_values(row, question)
        held[place] = held[place] if further is None else held[place] is not False and further
    return held


def _holds_values(row: Sequence[tuple[str, str]], question: str) -> bool | None:
    """Whether the cells' ranges contain the values that ``question`` gives; ``None`` without such values."""
    held: dict[str, bool] = {}
    both = any(cell in ("and", "和", "且") for _, cell in row)
    for header, cell in row:
        measure = measures.named(header)
        if measure and measure.name != "age" and measures.values(question, measure):
            falls = measures.falls_in(question, header, cell)
            kind = "" if "blood pressure" in measure.name and not both else measure.name
            if falls is not None:
                held[kind] = held.get(kind, False) or falls
    return all(held.values()) if held else None


def _states_nothing(line: Line) -> bool:
    passage = line.passage
    return passage.doubtful or states_nothing(line.text, (passage.title, *passage.headings))
