"""What a search shows: sections, each whole, with the sentences nearest to the question marked.

A section is the passages of one heading of one document in reading order; its place is that of its best passage. What
only stands around the text (running heads, foot lines) is left out. The marks are chosen by the question's rare words
alone and may be wrong; they hide nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from localmed.clinical.furniture import furniture
from localmed.domain import Hit, Passage
from localmed.domain.findings import Line, Question, Section
from localmed.language import sentences
from localmed.library.lexical import LexicalIndex

LONGEST = 6_000  # characters of a section; of a longer one, what stands around its best passage
MARKS = 3  # in one section
NEAR = 0.6  # of the best sentence's weight: less is not marked


def sections(
    found: Sequence[Hit], read: Question, index: LexicalIndex, most: int, document: Callable[[str], Sequence[Passage]]
) -> Iterator[Section]:
    """The first ``most`` sections that ``found`` stand in, best first; ``document`` gives a document's passages."""
    seen: set[str] = set()
    count = 0
    for hit in found:
        if hit.passage.id in seen or count == most:
            continue
        whole = section_of(hit.passage, document(hit.passage.document_id))
        seen |= {passage.id for passage in whole}
        shown = _around(hit.passage, whole)
        lines = _marked(tuple(_lines(shown)), read, index)
        if lines:
            count += 1
            yield Section(hit, lines, len(shown) < len(whole))


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
        around, last = furniture(passage), 0
        spans = _rows(passage.text) if passage.table else sentences(passage.text)
        for start, end in spans:
            if start not in around:
                breaks = last == 0 or "\n" in passage.text[last:start]
                yield Line(passage, start, end, breaks=breaks)
            last = end


def _rows(text: str) -> list[tuple[int, int]]:
    spans, at = [], 0
    for line in text.split("\n"):
        if line.strip():
            spans.append((at, at + len(line)))
        at += len(line) + 1
    return spans


def _marked(lines: tuple[Line, ...], read: Question, index: LexicalIndex) -> tuple[Line, ...]:
    """``lines`` with those marked that hold most of the question's words, each weighed by how rare it is."""
    terms = list(dict.fromkeys(index.analyse(f"{read.typed} {read.further}", for_query=True)))
    weights = dict(zip(terms, index.rarity(terms), strict=True))
    scores = [sum(weights[term] for term in weights.keys() & set(index.analyse(line.text))) for line in lines]
    best = max(scores, default=0.0)
    order = sorted(range(len(lines)), key=lambda place: (-scores[place], place))[:MARKS]
    chosen = {place for place in order if best > 0 and scores[place] >= NEAR * best}
    return tuple(
        Line(line.passage, line.start, line.end, place in chosen, line.breaks) for place, line in enumerate(lines)
    )
