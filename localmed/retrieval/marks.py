"""Marks the lines of sections that are nearest to the question, and tells what of the question a section lacks.

Marks follow meaning and the question's rare words; they may be wrong and hide nothing. Marked are lines within ``NEAR``
of the nearest line of all sections, a short paragraph as a whole, and every line that gives a range with a value of the
question. Not marked:

- lines that state nothing (a number, a bullet, a lone heading);
- table rows that were read with doubt, whose range lacks the question's number, or whose cells share no word with the
  question ("High" is no word);
- lines on a medicine that somebody is allergic to, as the question says;
- lines on normal kidneys if the question's are not, and on another medicine than the one asked about; table rows on
  medicines if none is asked about;
- sections that do not name the child, pregnancy or overdose asked about, or any condition or procedure; where the
  question names none, any medicine of it; where it names no medicine either, or a dangerous value, that ("K 6.8").

If the library lacks something of the question, only lines that name a medicine asked about, or give a range with a
value of it and name no medicine, are marked. A section lists the things of the question that it lacks (``lacks``).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from localmed.domain.findings import Line, Question, Reading, Section
from localmed.library.lexical import LexicalIndex
from localmed.retrieval.subjects import Subject, subjects
from localmed.retrieval.weights import of_terms
from localmed.text import measures, medicines, synonyms
from localmed.text.amounts import amounts
from localmed.text.furniture import states_nothing
from localmed.text.language import fold
from localmed.text.negation import denied, warns
from localmed.text.tables import Names

MARKS = 3  # in one section, besides their paragraphs
PARAGRAPH = 600  # characters of a paragraph that is marked whole
NEVER = -math.inf  # the score of a line that is not marked
NEAR = 0.15  # largest distance of a mark from the nearest line of all sections
WORDS = 0.2  # weight of a line's share of rare words beside its similarity; 0.1 to 0.3 give equal results
FEWER = 0.6  # by words alone: least share of the best line's score
ASKED = 0.1  # added to a line with an amount if the question asks for one
NAMED = ("conditions", "procedures")  # what is lacking if no section names it
GENERAL = frozenset({"infection", "alcohol", "allergy"})  # everyday words among the conditions

_ALLERGY = re.compile(r"allerg|过敏")
_CELL = re.compile(r"([^:：;；]{1,80})(?:: |：)([^;；]+)(?:[;；]|$)")  # of a table's row, see ingest/readers/tables.py
_DEGREE = re.compile(r"(?i)(?:very )?(?:low|high|mild|moderate|severe)(?: risk)?|极?[低中高轻重][度危]?")  # a cell

_medicines = lru_cache(20_000)(medicines.names)  # the lines of a library come again and again
_amounts = lru_cache(20_000)(amounts)
_ASKS_AMOUNT = re.compile(
    r"\b(?:doses?|dosage|dosing|how much|how many|m[gc]g?|micrograms?|units?|mls?|rate|strength)\b"
    r"|剂量|多少|用量|怎么用|毫克|几毫|几片|滴速|泵",
    re.IGNORECASE,
)
_Row = Sequence[tuple[str, str]]  # a table's row as (header, cell) pairs; empty for another line
Similar = Callable[[Sequence[str]], Mapping[str, Sequence[float]]]  # ids of passages -> each line's similarity


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a question asks about: its ``subjects`` that some document has, the medicines among them, those that
    somebody is ``allergic`` to, whether a text gives a range with a value of it, and what else decides on marks.
    """

    typed: str
    subjects: tuple[Subject, ...]
    medicines: tuple[Subject, ...]
    allergic: str
    holds: Callable[[str], bool] | None
    other_kidneys: bool
    an_amount: bool
    lacking: bool
    share: Callable[[str], float]

    def in_range(self, line: Line) -> bool:
        """Whether ``line`` gives a range with a value of the question."""
        return self.holds is not None and self.holds(line.text)

    def harms(self, line: Line) -> bool:
        """Whether ``line`` is on a medicine that somebody is allergic to: a row on it, or one without "allergy"."""
        row = _CELL.match(line.text) if begins_with_a_medicine(line.text) else None
        met = bool(self.allergic) and bool(medicines.met_by(self.allergic, row[2] if row else line.text))
        return met and (bool(row) or not _ALLERGY.search(fold(line.text)))


def _asked_about(read: Question, index: LexicalIndex, lacking: Sequence[str]) -> _Asked:
    both = f"{read.typed} {read.further}"
    weights = of_terms(both, index)
    known = tuple(one for one in subjects(read) if one.written not in lacking)
    return _Asked(
        read.typed,
        known,
        tuple(one for one in known if one.ingredients),
        ", ".join(one.written for one in medicines.allergens(both)),
        _holds(read),
        measures.of_other_kidneys(both),
        bool(_ASKS_AMOUNT.search(read.typed)),
        bool(lacking),
        lambda text: weights.coverage(index.analyse(text)),
    )


def _holds(read: Question) -> Callable[[str], bool] | None:
    """Whether a text gives a range with a value of a question, or what the value should be: a dangerous one by a
    reference range, another by a target too.
    """
    kinds = (measures.falls_in_sentence, measures.outside_reference) if read.beyond else ()
    return measures.range_of(read.with_units, *kinds)


def marked(
    sections: Sequence[Section], read: Question, index: LexicalIndex, similar: Similar, lacking: Sequence[str] = ()
) -> tuple[Section, ...]:
    """``sections`` with marks, and with what each lacks. ``lacking``: terms of the question that no document has."""
    near = similar(list(dict.fromkeys(line.passage.id for one in sections for line in one.lines)))
    asked = _asked_about(read, index, lacking)
    named = _things_of(read, bool(asked.medicines))
    made = []
    for one in sections:
        others, on = _on_others(one, asked)
        lacks = _lacks(one, asked, others)
        ranged = any(map(asked.in_range, one.lines))
        further, never = named.missing_in(one, ranged)
        never = never or any(it.written in lacks for it in asked.subjects if not it.ingredients)
        never = never or not (named.conditions or ranged or _names_a_medicine(one, asked))
        rows = [_cells(line) for line in one.lines]
        fits = _fitting(one.lines, rows, asked.typed)
        scores = _scores(one, asked, near, [never or it for it in _left_out(one, asked, rows, others, on, fits)])
        made.append((replace(one, lacks=tuple(dict.fromkeys((*lacks, *further)))), scores, fits))
    nearest = max((score for _, scores, _ in made for score in scores), default=0.0)
    return tuple(
        replace(one, lines=_with_marks(one.lines, scores, nearest - NEAR if near else FEWER * max(scores), asked, fits))
        for one, scores, fits in made
    )


def _on_others(section: Section, asked: _Asked) -> tuple[list[bool], list[bool]]:
    """Whether each line is on another medicine than those asked about, and whether it names one of them.

    If the section names one, or none is asked about, table rows on other medicines are; else all lines that name a
    medicine, or stand under the name of one.
    """
    wanted = asked.medicines
    of_lines = [_medicines(line.text) if wanted else frozenset[str]() for line in section.lines]
    on = [any(it.is_among(names) for it in wanted) for names in of_lines]
    if not wanted or any(it.is_among(_held(section, asked)) for it in wanted):
        return [
            (_warns_of(line.text, wanted) if its else begins_with_a_medicine(line.text))
            for line, its in zip(section.lines, on, strict=True)
        ], on
    below = _is_on_a_medicine(_above(section))
    named = zip(section.lines, of_lines, strict=True)
    return [below or bool(names and _is_on_a_medicine(line.text)) for line, names in named], on


def _warns_of(text: str, wanted: Sequence[Subject]) -> bool:
    """Whether ``text`` is a table row on another medicine that names those ``wanted`` only in a warning."""
    row = _CELL.findall(text)
    if not begins_with_a_medicine(text) or any(it.is_in(row[0][1]) for it in wanted):
        return False
    naming = [cell for _, cell in row[1:] if any(it.is_in(cell) for it in wanted)]
    return bool(naming) and all(map(warns, naming))


def _lacks(section: Section, asked: _Asked, others: Sequence[bool]) -> tuple[str, ...]:
    """The subjects that neither the section's lines, but those on ``others``, nor its headings name."""
    lines = (line.text for line, other in zip(section.lines, others, strict=True) if not other)
    own, held = " ".join((_above(section), *lines)), _held(section, asked)
    return tuple(it.written for it in asked.subjects if not (it.is_among(held) if it.ingredients else it.is_in(own)))


def _names_a_medicine(section: Section, asked: _Asked) -> bool:
    """Whether a section or its headings name a medicine asked about, or its class; true if none is asked about."""
    text = text_of(section)
    return not asked.medicines or any(medicines.named_in(one.written, text) for one in asked.medicines)


def _held(section: Section, asked: _Asked) -> frozenset[str]:
    """The medicines that a section and its headings name; none are looked for if none is asked about."""
    lines = (_medicines(line.text) for line in section.lines)
    return medicines.names(_above(section)).union(*lines) if asked.medicines else frozenset()


def _left_out(
    section: Section, asked: _Asked, rows: Sequence[_Row], others: Sequence[bool], on: Sequence[bool],
    fitting: Sequence[bool | None],
) -> list[bool]:  # fmt: skip
    """Whether each line is not to be marked by itself."""

    def shares_nothing(row: _Row) -> bool:
        return bool(row) and not asked.share(" ".join(cell for _, cell in row if not _DEGREE.fullmatch(cell)))

    def is_on_what_is_there(line: Line, its: bool) -> bool:
        return its or (asked.in_range(line) and not _is_on_a_medicine(line.text))

    return [
        other
        or asked.harms(line)
        or (not is_on_what_is_there(line, its) if asked.lacking else fits is False)
        or (fits is None and shares_nothing(row))
        or (asked.other_kidneys and measures.for_normal_kidneys(line.text))
        or _states_nothing(line)
        for line, row, other, fits, its in zip(section.lines, rows, others, fitting, on, strict=True)
    ]


def _scores(
    section: Section, asked: _Asked, near: Mapping[str, Sequence[float]], left_out: Sequence[bool]
) -> list[float]:
    """Each line's score; without similarities if the lines differ from the encoded ones."""
    counts = Counter(line.passage.id for line in section.lines)
    of_passage = {name: iter(near[name]) for name, count in counts.items() if len(near.get(name, ())) == count}
    nearest = [next(of_passage[line.passage.id]) if line.passage.id in of_passage else 0.0 for line in section.lines]
    return [
        NEVER
        if never
        else score + WORDS * asked.share(line.text) + (ASKED if asked.an_amount and _amounts(line.text) else 0.0)
        for line, score, never in zip(section.lines, nearest, left_out, strict=True)
    ]


def _with_marks(
    lines: tuple[Line, ...], scores: Sequence[float], least: float, asked: _Asked, fits: Sequence[bool | None]
) -> tuple[Line, ...]:
    """``lines`` with marks: the best with a positive score of at least ``least``, and those with a value's range.

    Of table rows with ranges the only one that ``fits`` a number of the question is marked too ("CURB-65 of 3").
    A short paragraph is marked whole: of two sentences in it the nearer one may be the less urgent.
    """
    order = sorted(range(len(lines)), key=lambda place: (-scores[place], place))[:MARKS]
    chosen = {place for place in order if scores[place] > 0 and scores[place] >= least}
    chosen |= {place for place, line in enumerate(lines) if scores[place] > NEVER and asked.in_range(line)}
    if sum(it is True for it in fits) == 1 and False in fits and scores[fits.index(True)] > NEVER:
        chosen.add(fits.index(True))
    for paragraph in paragraphs(lines):
        if chosen & {*paragraph} and sum(len(lines[place].text) for place in paragraph) <= PARAGRAPH:
            chosen |= {place for place in paragraph if scores[place] > NEVER}
    return tuple(
        Line(line.passage, line.start, line.end, place in chosen, line.breaks) for place, line in enumerate(lines)
    )


def paragraphs(lines: Sequence[Line]) -> Iterator[list[int]]:
    """The places of the lines of each paragraph; a table's row is one by itself."""
    paragraph: list[int] = []
    for place, line in enumerate(lines):
        if paragraph and (line.breaks or line.passage.table or line.passage.id != lines[place - 1].passage.id):
            yield paragraph
            paragraph = []
        paragraph.append(place)
    if paragraph:
        yield paragraph


def _above(section: Section) -> str:
    return " ".join((section.best.passage.title, *section.best.passage.headings))


def text_of(section: Section) -> str:
    """A section with its title and headings, folded."""
    return fold(" ".join((_above(section), *(line.text for line in section.lines))))


@dataclass(frozen=True, slots=True)
class _Things:
    """The conditions and procedures of a question, and its ``values``, as written, each with all names of it.

    ``dangerous``: the values are beyond a bound, and named as conditions are ("high potassium"). ``limits``: whether a
    line gives a range that begins a little further out.
    """

    conditions: Mapping[str, Names]
    values: Mapping[str, Names]
    limits: Mapping[str, Callable[[str], bool]]
    dangerous: bool

    def missing_in(self, section: Section, ranged: bool) -> tuple[tuple[str, ...], bool]:
        """What ``section`` does not name, and whether it is not on the question: it names no condition of it; or, where
        there is none, no value, a dangerous one not in its title or headings.

        ``ranged``: it gives a range with a value of the question, and so names it ("potassium of 6.5 or higher").
        """
        text = text_of(section)
        limited = {written for written, gives in self.limits.items() if any(gives(line.text) for line in section.lines)}
        conditions = [written for written, names in self.conditions.items() if not names.matches(text)]
        values = [written for written, names in self.values.items() if not names.matches(text)]
        where = fold(_above(section)) if self.dangerous else text
        if ranged and (self.dangerous or not self.conditions):
            return tuple(conditions), False
        if self.conditions:
            never = len(conditions) == len(self.conditions)
        else:
            named = limited or any(names.matches(where) for names in self.values.values())
            never = bool(self.values) and not named
        return (*conditions, *(written for written in values if written not in limited)), never


def _things_of(read: Question, of_medicine: bool) -> _Things:
    conditions = _conditions(read)
    values = _values(read, beyond=bool(conditions) or of_medicine)
    return _Things(
        conditions,
        values,
        {it.written: measures.limit_near(it.means, it.high) for it in read.beyond if it.high is not None},
        bool(read.beyond),
    )


def _conditions(read: Question) -> dict[str, Names]:
    """The conditions and procedures of a question as written, with all names of them and of broader ones within."""
    folded = fold(read.typed)
    typed = read.typed if len(read.typed) == len(folded) else folded
    return {
        typed[one.start : one.end]: Names({one.written, *one.names, *_broader(one.written)})
        for one in things(read, NAMED)
    }


def _values(read: Question, beyond: bool) -> dict[str, Names]:
    """The values of a question as written ("K 6.8"), with the names of one beyond a bound, else those of its measure.

    ``beyond``: only those beyond a bound; an eGFR goes with a dose by the other kidney value too.
    """
    values = [one for one in read.readings if not one.left_out and (one.called or any(measures.measured(one.means)))]
    names = {
        one.written: of_condition(one) if one.called else frozenset() if beyond else _of_measure(one) for one in values
    }
    return {written: Names(each) for written, each in names.items() if each}


def of_condition(one: Reading) -> frozenset[str]:
    """All names of what a value beyond a bound is called; INR is no name of a high INR."""
    called = [fold(name) for name in one.called]
    same = (it for name in called for it in synonyms.named(name) if it.written == name)
    return frozenset((*called, *(name for it in same for name in it.names)))


def _of_measure(one: Reading) -> frozenset[str]:
    return frozenset(name for it in synonyms.named(one.means) for name in it.names)


def things(read: Question, sorts: Sequence[str]) -> list[synonyms.Named]:
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


def _is_on_a_medicine(text: str) -> bool:
    """Whether ``text`` names a medicine; what is also measured in blood ("glucose") is none."""
    return any(one.is_medicine for one in medicines.mentions(text))


@lru_cache(20_000)
def begins_with_a_medicine(line: str) -> bool:
    """Whether ``line`` is a table row that begins with a medicine."""
    row = _CELL.match(line)
    return bool(row and row.end() < len(line) and medicines.ingredients(row[2]))


def _cells(line: Line) -> _Row:
    """The (header, cell) pairs of a table's row."""
    found = _CELL.findall(line.text) if line.passage.table else []
    return [(header.strip(), cell.strip()) for header, cell in found] if len(found) > 1 else []


def _fitting(lines: Sequence[Line], rows: Sequence[_Row], question: str) -> list[bool | None]:
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


def _holds_values(row: _Row, question: str) -> bool | None:
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
