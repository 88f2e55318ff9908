"""What a search shows: sections, each whole, with the sentences nearest to the question marked.

A section is the passages of one heading of one document in reading order; its place is that of its best passage. What
only stands around the text (running heads, foot lines) is left out. The sentences nearest to the question are marked,
by meaning and by the question's rare words; the marks may be wrong and hide nothing. Never marked: what states nothing
by itself (a number, a bullet, a lone heading); a row of a table that was not read with certainty, of a range without a
number of the question, or of a degree ("Severity: High") that neither the question names nor a row for its number has;
what is about normal kidneys where those of the question are not; what is about another medicine than the one asked
about, or a medicine's row without all that is asked; and what does not name the child, the pregnancy or the overdose
asked about. Of rows of a table that are equally near all are marked, or none. Where the library lacks something of the
question, only lines that name a medicine asked about are marked. A section tells what of the question neither it nor
its headings name. A section of a study has the sentences that say whom the study is about, where a heading of the
document says that they do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from localmed.domain import Hit, Passage
from localmed.domain.findings import Line, Question, Section
from localmed.library.lexical import LexicalIndex
from localmed.retrieval.subjects import subjects
from localmed.retrieval.weights import of_terms
from localmed.text import measures, medicines, synonyms
from localmed.text.furniture import line_spans, states_nothing
from localmed.text.language import fold
from localmed.text.tables import Names, cues

LONGEST = 6_000  # characters of a section; of a longer one, what stands around its best passage
MARKS = 3  # in one section
WORDS = 0.2  # of a line's share of the question's rare words, beside its similarity; 0.1 to 0.3 are alike
FEWER = 0.6  # by words alone: of the most that a line holds
POPULATION = 300  # characters of what says whom a study is about; its first sentence is always whole
ALIKE = 0.02  # between the scores of two rows of a table that are equally near
NEAR = 0.15  # below the nearest line of all: what is further away is not marked beside its section's own nearest

_CELL = re.compile(r"([^:：;；]{1,80})(?:: |：)([^;；]+)(?:[;；]|$)")  # of a table's row, see ingest/readers/tables.py
_DEGREE = re.compile(
    r"(?:very )?(?:low|high|mild|moderate|medium|intermediate|severe|critical)|极?[低中高轻重][危度]|[低中高轻重]"
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
    """The first ``most`` sections that ``found`` stand in, best first; ``document`` gives a document's passages.

    ``studies`` tells whether a collection is of the literature; ``lacking`` is what of the question is in no document.
    """
    seen: set[str] = set()
    taken: list[Section] = []
    for hit in found:
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
    near = similar(list(dict.fromkeys(line.passage.id for one in taken for line in one.lines)))
    weights = of_terms(f"{read.typed} {read.further}", index)
    asked = [one for one in subjects(read) if one.written not in lacking]
    text = f"{read.typed} {read.further}"
    things = _things(read)
    other_kidneys = measures.of_other_kidneys(text)
    named = [one for one in asked if one.ingredients]

    def judged(one: Section) -> tuple[Section, list[float]]:
        above = " ".join((one.best.passage.title, *one.best.passage.headings))
        of_words = [weights.coverage(index.analyse(line.text)) for line in one.lines]
        of_lines = [medicines.names(line.text) if named else frozenset[str]() for line in one.lines]
        held = medicines.names(above).union(*of_lines) if named else frozenset[str]()
        on = [any(it.is_among(names) for it in named) for names in of_lines]
        rows = [begins_with_a_medicine(line.text) for line in one.lines]
        if any(it.is_among(held) for it in named):  # a table's row on another medicine is not on the one asked about
            others = [not its and row for row, its in zip(rows, on, strict=True)]
        else:  # nor is any line that names another, or stands below one, or a medicine's row without what is asked
            below = bool(named) and bool(medicines.ingredients(above))
            others = [
                below
                or bool(names and medicines.ingredients(line.text))
                or (row and not (_names_all(things, line.text) if things else share))
                for line, names, row, share in zip(one.lines, of_lines, rows, of_words, strict=True)
            ]
        own = " ".join((above, *(line.text for line, other in zip(one.lines, others, strict=True) if not other)))
        lacks = tuple(it.written for it in asked if not (it.is_among(held) if it.ingredients else it.is_in(own)))
        other_people = any(it.written in lacks for it in asked if not it.ingredients)
        values = _of_other_values(one.lines, read.typed)
        degrees = _of_other_degrees(one.lines, read.typed, document)
        unmarked = [
            other_people
            or other
            or (not its if lacking else value or degree)
            or (other_kidneys and measures.for_normal_kidneys(line.text))
            or _states_nothing(line)
            for line, other, value, degree, its in zip(one.lines, others, values, degrees, on, strict=True)
        ]
        counts = Counter(line.passage.id for line in one.lines)  # lines cut otherwise than when encoded: no marks
        of_passage = {name: iter(near[name]) for name, count in counts.items() if len(near.get(name, ())) == count}
        nearest = [next(of_passage[line.passage.id]) if line.passage.id in of_passage else 0.0 for line in one.lines]
        scores = [
            0.0 if other else score + WORDS * share
            for score, share, other in zip(nearest, of_words, unmarked, strict=True)
        ]
        return replace(one, lacks=lacks), scores

    made = [judged(one) for one in taken]
    nearest = max((score for _, scores in made for score in scores), default=0.0)
    return tuple(
        replace(one, lines=_marked(one.lines, scores, nearest - NEAR if near else FEWER * max(scores)))
        for one, scores in made
    )


def section_of(passage: Passage, document: Sequence[Passage]) -> tuple[Passage, ...]:
    """The passages of ``document``, in its order, that stand beside ``passage`` under the same headings."""
    groups = [tuple(group) for _, group in groupby(document, key=lambda one: one.headings)]
    return next((group for group in groups if passage.id in {one.id for one in group}), (passage,))


def _around(best: Passage, whole: Sequence[Passage]) -> tuple[Passage, ...]:
    """``whole``, or of one longer than ``LONGEST`` the passages around ``best`` that fit."""
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
    """The first sentences under the heading of ``document`` that says whom it is about."""
    passages = [one for one in document if cues("publications", "population").search(" ".join(one.headings[-1:]))]
    left = POPULATION
    for line in _lines(one for one in passages[:1] if one.headings[-1] != one.title):
        left -= line.end - line.start
        if left < 0 and left != POPULATION - (line.end - line.start):
            return
        yield line


def _marked(lines: tuple[Line, ...], scores: Sequence[float], least: float) -> tuple[Line, ...]:
    """``lines`` with the best marked, if it has a score, and the next ones that reach ``least``.

    Rows of tables that are as near as one that is left out are left out too.
    """
    order = sorted(range(len(lines)), key=lambda place: (-scores[place], place))
    near = [place for place in order[:MARKS] if place == order[0] or scores[place] >= least]
    chosen = [place for place in near if scores[place] > 0]
    left = [scores[place] for place in order if place not in chosen and scores[place] and lines[place].passage.table]
    if left:
        chosen = [place for place in chosen if not lines[place].passage.table or scores[place] - left[0] > ALIKE]
    return tuple(
        Line(line.passage, line.start, line.end, place in chosen, line.breaks) for place, line in enumerate(lines)
    )


def _things(read: Question) -> list[Names]:
    """What a question names but populations, as typed; else what it is read as but medicines."""
    typed, further = (
        [one for one in synonyms.named(text) if not one.asking and not synonyms.population(one.written)]
        for text in (read.typed, read.further)
    )
    return [Names(one.names) for one in typed or further if typed or not medicines.ingredients(one.written)]


def _names_all(things: Iterable[Names], text: str) -> bool:
    folded = fold(text)
    return all(one.matches(folded) for one in things)


def begins_with_a_medicine(line: str) -> bool:
    """Whether ``line`` is the row of a medicine in a table."""
    row = _CELL.match(line)
    return bool(row and row.end() < len(line) and medicines.ingredients(row[2]))


def _cells(line: Line) -> list[tuple[str, str]]:
    """The cells of a table's row, each with its header."""
    found = _CELL.findall(line.text) if line.passage.table else []
    return [(header.strip(), cell.strip()) for header, cell in found] if len(found) > 1 else []


def _of_other_values(lines: Sequence[Line], question: str) -> list[bool]:
    """Which lines are rows of tables for ranges that hold no number of the ``question`` of that kind.

    A lone number is such a range where others of its table are ranges. Cells behind the first count where the question
    gives a value of their measure; of the two blood pressures one is enough, but where an "and" stands in a cell.
    """
    rows = [_cells(line) for line in lines]
    held = [measures.falls_in(question, *row[0]) if row else None for row in rows]
    banded = {line.passage.id for line, one in zip(lines, held, strict=True) if one is not None}
    for place, (line, row) in enumerate(zip(lines, rows, strict=True)):
        if row and held[place] is None and line.passage.id in banded:
            held[place] = measures.falls_in(question, *row[0], lone=True)
    return [one is False or _is_of_others(row, question) for one, row in zip(held, rows, strict=True)]


def _is_of_others(row: Sequence[tuple[str, str]], question: str) -> bool:
    held: dict[str, bool] = {}
    both = any(cell in ("and", "和", "且") for _, cell in row)
    for header, cell in row:
        measure = measures.named(header)
        if measure and measure.name != "age" and measures.values(question, measure):
            falls = measures.falls_in(question, header, cell)
            kind = "" if "blood pressure" in measure.name and not both else measure.name
            if falls is not None:
                held[kind] = held.get(kind, False) or falls
    return not all(held.values())


def _of_other_degrees(lines: Sequence[Line], question: str, document: Callable[[str], Sequence[Passage]]) -> list[bool]:
    """Which lines are rows of tables for a degree that the ``question`` does not name beside a word of their header,
    title or headings, and that no row of the document has into which a number of the question falls."""
    made, said = [], dict[str, set[tuple[str, str]]]()
    for line in lines:
        row, of = _cells(line), line.passage.document_id
        other = bool(row) and bool(_DEGREE.fullmatch(fold(row[0][1])))
        if other and of not in said:
            rows = [_cells(one) for one in _lines(passage for passage in document(of) if passage.table)]
            falling = [one for one in rows if one and measures.falls_in(question, *one[0])]
            said[of] = {cell for one in falling for cell in one[1:]}
        made.append(other and row[0] not in said[of] and not _is_named(row[0], line.passage, question))
    return made


def _is_named(cell: tuple[str, str], passage: Passage, question: str) -> bool:
    """Whether ``question`` names the degree of ``cell``: "high severity", "moderate pneumonia", 中度."""
    degree, folded = fold(cell[1]), fold(question)
    if not degree.isascii():
        return len(degree) > 1 and degree in folded
    words = re.findall(r"[a-z]{4,}", fold(" ".join((cell[0], passage.title, *passage.headings))))
    beside = "|".join(dict.fromkeys(words)) or "(?!)"
    return bool(re.search(rf"(?<!very )\b{degree}[ -](?:{beside})|\b(?:{beside})(?: is|:| =)? {degree}\b", folded))


def _states_nothing(line: Line) -> bool:
    passage = line.passage
    return passage.doubtful or states_nothing(line.text, (passage.title, *passage.headings))
