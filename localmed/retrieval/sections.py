"""Builds sections from hits, in order, with the sentences nearest to the question marked (``marks``).

A section has the passages of one heading of one document in reading order, without running heads and foot lines; its
rank is that of its best passage. A study's section has the sentences on its population, if a heading of the document
introduces them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from localmed.domain import Hit, Passage
from localmed.domain.findings import Line, Question, Section
from localmed.library.lexical import LexicalIndex
from localmed.retrieval import order
from localmed.retrieval.marks import Similar, marked
from localmed.text.furniture import line_spans
from localmed.text.tables import cues

LONGEST = 6_000  # characters of a section; a longer one is cut around its best passage
POPULATION = 300  # characters on a study's population; the first sentence is always whole


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
    for hit in order.with_range(found, read.with_units):
        if hit.passage.id in seen or len(taken) == most:
            continue
        passages = document(hit.passage.document_id)
        whole = section_of(hit.passage, passages)
        seen |= {passage.id for passage in whole}
        shown = _around(hit.passage, whole)
        if lines := tuple(lines_of(shown)):
            study = studies(hit.passage.collection)
            population = tuple(_population(passages)) if study else ()
            taken.append(Section(hit, lines, len(shown) < len(whole), study, population))
    return order.of_sections(marked(taken, read, index, similar, lacking), read, index.analyse, document)


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


def lines_of(passages: Iterable[Passage]) -> Iterator[Line]:
    """The sentences and rows of ``passages``, without running heads and foot lines."""
    for passage in passages:
        last = 0
        for start, end in line_spans(passage):
            yield Line(passage, start, end, breaks=last == 0 or "\n" in passage.text[last:start])
            last = end


def _population(document: Iterable[Passage]) -> Iterator[Line]:
    """The first sentences under the heading of ``document`` on its population."""
    passages = [one for one in document if cues("publications", "population").search(" ".join(one.headings[-1:]))]
    left = POPULATION
    for line in lines_of(one for one in passages[:1] if one.headings[-1] != one.title):
        left -= line.end - line.start
        if left < 0 and left != POPULATION - (line.end - line.start):
            return
        yield line
