"""Answers quoted whole: the section that a quotation stands in, or of a long one what belongs to the quotation.

A rule cannot tell which of a section's sentences an answer could do without (the route of a dose, what to do next), so
a section of at most ``WHOLE`` characters of prose is quoted as it stands. Of a longer one:

- *Paragraphs*: the line that a quoted sentence stands in, if that is no longer.
- *Lists*: an item or the line that leads in to it (it ends with a colon) brings the others, over the borders of
  passages, at most ``ITEMS`` of them; where there are more it is said that the list continues.
- *Sentences*: one that the end of its passage cuts goes on to its own end.
- *Warnings* (``negation.toml``): each sentence of the section that forbids, stops or warns, the rest of a paragraph
  that begins with one, and each sentence that says to act at once.
- *Rows*: a row of a table brings those of the same stub (its first cell); one whose stub is a limit or a range brings
  the whole table, since another row may be the one that applies, and so do two rows of a short table.

What neither answers nor warns (``Quoted.beyond``) is shown behind what does.

A list is a run of lines with one sentence each: what is read of a document keeps no other mark of it. Rows of tables
carry their header. What only stands around the text (``furniture``) is never added.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from localmed.clinical.tables import cues
from localmed.domain import Citation, Passage
from localmed.language import sentences
from localmed.verification.furniture import furniture
from localmed.verification.subjects import of_range

WHOLE = 700  # characters of prose that are quoted as they stand; three of four sections of a guideline have no more
ITEMS = 20  # of a list that are quoted
WORDY = 300  # characters from which a line is a paragraph, not an item
ENDS = tuple('.!?。！？…;；:：)）”"')
LEADS_IN = (":", "：")

_LINE = re.compile(r"[^\n]+")
_FIRST_CELL = re.compile(r"([^:：\n]+)[:：]\s*(.*?)\s*(?:[;；]|$)")

Section = tuple[Passage, ...]  # the passages under one heading, in their order
Span = tuple[str, int, int]  # a passage's id, start and end


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence ``start:end`` of passage number ``place`` of a section; ``line`` counts its lines throughout."""

    place: int
    start: int
    end: int
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """A row ``start:end`` of a table's passage: its text, and its first cell with the ``label`` that heads it."""

    passage: Passage
    start: int
    end: int
    text: str
    label: str
    stub: str


@dataclass(frozen=True, slots=True)
class Quoted:
    """What an answer quotes of a section, in its order; ``last`` is the passage in which a list goes on.

    ``beyond`` are those of the ``spans`` that only complete the section: they neither answer nor warn. ``lists`` are
    those that stand in lists, which keep their order, ``warnings`` those that warn or say to act at once, ``cautions``
    those of them that warn, outside of lists.
    """

    spans: tuple[tuple[Passage, int, int], ...]
    last: Passage | None = None
    beyond: frozenset[Span] = frozenset()
    lists: frozenset[Span] = frozenset()
    warnings: frozenset[Span] = frozenset()
    cautions: frozenset[Span] = frozenset()


def whole(citations: Sequence[Citation], section: Section) -> Quoted:
    """What belongs to ``citations``, which stand in ``section``, with themselves."""
    split = list(_split(section))
    lines = [list(line) for _, line in groupby(split, key=lambda sentence: sentence.line)]
    chosen = {(sentence.place, sentence.start) for sentence in split if _cited(sentence, citations, section)}
    warnings = _warnings(lines)
    leading = {key for key in warnings if key in _leads(split)}
    listed, last = _lists(lines, chosen | leading)
    needed = chosen | listed | _rest(split, chosen, section) | warnings
    kept = needed | _paragraphs(lines, chosen)
    prose = [one for one in split if (one.place, one.start) in kept]
    rows, own_rows = _rows(citations, section, split)
    named = {(one.place, one.start): (section[one.place].id, one.start, one.end) for one in prose}
    beyond = {name for key, name in named.items() if key not in needed}
    beyond |= {(row.passage.id, row.start, row.end) for row in rows if row not in own_rows}
    spans = (*((row.passage, row.start, row.end) for row in rows),
             *((section[one.place], one.start, one.end) for one in prose))  # fmt: skip
    in_lists = frozenset(named[key] for key in listed if key in named)
    warned = frozenset(named[key] for key in warnings if key in named)
    cautions = frozenset(named[key] for key in _with(lines, "cautions") - listed if key in named)
    return Quoted(spans, None if last is None else section[last], frozenset(beyond), in_lists, warned, cautions)


def _leads(split: Sequence[Sentence]) -> frozenset[tuple[int, int]]:
    """The sentences that lead in to a list."""
    return frozenset((sentence.place, sentence.start) for sentence in split if sentence.text.endswith(LEADS_IN))


def _split(section: Section) -> Iterator[Sentence]:
    line = 0
    for place, passage in enumerate(section):
        line += 1
        if passage.table:
            continue
        last, around = 0, furniture(passage)
        for start, end in sentences(passage.text):
            line += "\n" in passage.text[last:start]
            if start not in around:
                yield Sentence(place, start, end, line, passage.text[start:end])
            last = end


def _cited(sentence: Sentence, citations: Sequence[Citation], section: Section) -> bool:
    passage = section[sentence.place].id
    return any(one.passage_id == passage and one.start < sentence.end and sentence.start < one.end for one in citations)


def _rows(citations: Sequence[Citation], section: Section, prose: Sequence[Sentence]) -> tuple[list[Row], list[Row]]:
    """The rows that are quoted, in their order, and those of them that are cited or of the same stub.

    All of a section that is short with them are quoted, and of others what belongs to the cited ones.
    """
    rows = [_row(passage, *match.span()) for passage in section if passage.table
            for match in _LINE.finditer(passage.text)]  # fmt: skip
    cited = [row for row in rows if any(
        one.passage_id == row.passage.id and one.start < row.end and row.start < one.end for one in citations
    )]  # fmt: skip
    own = [row for row in rows if any(row is one or _same_stub(one, row) for one in cited)]
    if _length(prose) + sum(len(row.text) for row in rows) <= WHOLE:
        return rows, own
    tables = [one.passage for one in cited]
    whole_tables = {id(table) for table in tables if tables.count(table) > 1 and len(table.text) <= WHOLE}
    together = [
        row
        for row in rows
        if id(row.passage) in whole_tables or any(row is one or _together(one, row) for one in cited)
    ]
    return together, own


def _row(passage: Passage, start: int, end: int) -> Row:
    text = passage.text[start:end]
    first = _FIRST_CELL.match(text)
    return Row(passage, start, end, text, *(first.groups() if first else ("", "")))


def _together(cited: Row, row: Row) -> bool:
    """Whether ``row`` belongs to ``cited``; one whose stub is empty is headed by a later label of the same header."""
    headed = bool(cited.label) and f"{row.label}:" in cited.text.replace("：", ":")
    return headed and (cited.stub == row.stub or bool(of_range(cited.stub)))


def _same_stub(cited: Row, row: Row) -> bool:
    return _together(cited, row) and cited.stub == row.stub


def _lists(
    lines: Sequence[Sequence[Sentence]], chosen: Collection[tuple[int, int]]
) -> tuple[set[tuple[int, int]], int | None]:
    """The items, with their lead-in, of the lists that hold one of ``chosen``; and where one of them goes on."""
    added: set[tuple[int, int]] = set()
    last = None
    for run in _runs(lines):
        keys = [(sentence.place, sentence.start) for sentence in run]
        if not set(keys).isdisjoint(chosen):
            added |= set(keys[: ITEMS + 1])
            last = keys[ITEMS + 1][0] if len(keys) > ITEMS + 1 else last
    return added, last


def _runs(lines: Sequence[Sequence[Sentence]]) -> Iterator[list[Sentence]]:
    """Each list: its items, after the sentence that leads in to it where one does."""
    run: list[Sentence] = []
    for line in (*lines, ()):
        item = len(line) == 1 and len(line[0].text) < WORDY and not line[0].text.endswith(LEADS_IN)
        if item:
            run.append(line[0])
            continue
        if len(run) > 1:
            yield run
        run = [line[-1]] if line and line[-1].text.endswith(LEADS_IN) else []


def _rest(split: Sequence[Sentence], chosen: Collection[tuple[int, int]], section: Section) -> set[tuple[int, int]]:
    """What goes on with a sentence that the end of its passage cut."""
    added = set()
    for at, sentence in enumerate(split[:-1]):
        cut = sentence.end == len(section[sentence.place].text.rstrip()) and not sentence.text.endswith(ENDS)
        key, following = (sentence.place, sentence.start), split[at + 1]
        if cut and (key in chosen or key in added) and following.text[:1].islower():
            added.add((following.place, following.start))
    return added


def _paragraphs(lines: Sequence[Sequence[Sentence]], chosen: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
    """All of a short section; of a longer one the short paragraphs that hold one of ``chosen``."""
    whole = lines if _length(sentence for line in lines for sentence in line) <= WHOLE else ()
    beside = [line for line in lines if not {(one.place, one.start) for one in line}.isdisjoint(chosen)]
    kept = (line for line in whole or beside if whole or _length(line) <= WHOLE)
    return {(sentence.place, sentence.start) for line in kept for sentence in line}


def _length(sentences: Iterable[Sentence]) -> int:
    return sum(len(sentence.text) for sentence in sentences)


def _warnings(lines: Sequence[Sequence[Sentence]]) -> set[tuple[int, int]]:
    """The sentences that warn or say to act at once."""
    urgent = cues("negation", "urgent")
    at_once = (sentence for line in lines for sentence in line if urgent.search(sentence.text))
    return _with(lines, "warns") | {(sentence.place, sentence.start) for sentence in at_once}


def _with(lines: Sequence[Sequence[Sentence]], words: str) -> set[tuple[int, int]]:
    """The sentences with one of ``words`` of negation; of a line that begins with one all."""
    cue = cues("negation", words)
    return {
        (sentence.place, sentence.start)
        for line in lines
        for sentence in line
        if cue.search(line[0].text) or cue.search(sentence.text)
    }


def section_of(passage: Passage, document: Sequence[Passage]) -> Section:
    """The passages of ``document``, in its order, that stand beside ``passage`` under the same headings."""
    groups = [tuple(group) for _, group in groupby(document, key=lambda one: one.headings)]
    return next((group for group in groups if passage.id in {one.id for one in group}), (passage,))
