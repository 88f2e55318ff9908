"""Differences between sections: two editions of one document, or two documents of one title.

Sections of one heading in two editions stand newest first; a difference is shown by sentences that are alike but for
numbers, else by a sentence that only one edition has, a marked one first. Two documents of one title and heading are
compared by sentences alike but for numbers only. Other documents are not compared: a rule on amounts of one medicine
told nothing apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from localmed.domain import Conflict, ConflictKind, Evidence, ShownLine, ShownSection
from localmed.text.furniture import states_nothing
from localmed.text.language import fold, words

COMPARED = 3  # first sections in which documents of one title are compared
ALIKE = 0.7  # least share of common words of a sentence in two editions
Line = tuple[Evidence, ShownLine]
Lines = list[Line]
_NUMBER = re.compile(r"\d+(?:[.,·]\d+)*")


def newest_first(sections: list[ShownSection], known: Mapping[str, Evidence]) -> tuple[ShownSection, ...]:
    """``sections`` with editions of one document sorted newest first."""
    of = {piece.marker: piece for piece in known.values()}
    ordered = list(sections)
    for place in range(len(ordered)):
        one = of[ordered[place].best]
        later = [
            at
            for at in range(place + 1, len(ordered))
            if _editions(one, of[ordered[at].best]) and of[ordered[at].best].edition > one.edition
        ]
        if later:
            newest = max(later, key=lambda at: of[ordered[at].best].edition)
            ordered[place], ordered[newest] = ordered[newest], ordered[place]
    return tuple(ordered)


def _namesakes(one: Evidence, other: Evidence) -> bool:
    """Whether both are from two documents of one title, under one heading."""
    return one.passage.document_id != other.passage.document_id and _heading(one) == _heading(other)


def _editions(one: Evidence, other: Evidence) -> bool:
    """Whether both are from two editions of one document of a collection."""
    dated = bool(one.edition) and bool(other.edition) and one.edition != other.edition
    return dated and one.passage.collection == other.passage.collection and _namesakes(one, other)


def _heading(piece: Evidence) -> tuple[object, ...]:
    return tuple(word for word in words(piece.document_title) if not word.isdigit()), piece.passage.headings[-1:]


def differences(sections: Sequence[ShownSection], evidence: Iterable[Evidence]) -> Iterator[Conflict]:
    """Conflicts between documents of one title under one heading; of two editions the newer is "ours".

    For editions, any sentence that only one has; for other documents, sentences that differ only in numbers.
    """
    known = {piece.marker: piece for piece in evidence}
    for place, first in enumerate(sections):
        for second in sections[place + 1 :]:
            one, other = known[first.best], known[second.best]
            mine, theirs = ([(known[line.marker], line) for line in it.lines] for it in (first, second))
            if _editions(one, other):
                pair = _other_sentence(mine, theirs) or _only_in_one(mine, theirs)
                pair, dates = (pair, (one.edition, other.edition)) if one.edition > other.edition else (None, ())
            else:
                near = second in sections[:COMPARED] and _namesakes(one, other)
                pair, dates = _other_sentence(mine, theirs) if near else None, ()
            if pair:
                (our, ours), (their, its) = pair
                yield Conflict(
                    ConflictKind.EDITION if dates else ConflictKind.DOSE,
                    our.marker,
                    their.marker,
                    our.citation(ours.start, ours.end),
                    their.citation(its.start, its.end),
                    dates,
                )


def _other_sentence(mine: Lines, theirs: Lines) -> tuple[Line, Line] | None:
    """Two lines that are alike but for their numbers, one of them marked if any line is."""
    unmarked = not any(line.marked for _, line in (*mine, *theirs))
    for ours in (it for it in mine if not states_nothing(_words(*it))):
        for its in theirs:
            if (unmarked or ours[1].marked or its[1].marked) and _other_numbers(_words(*ours), _words(*its)):
                return ours, its
    return None


def _only_in_one(mine: Lines, theirs: Lines) -> tuple[Line, Line] | None:
    """The first line that only one side has, with such a line of the other side or its first line; or ``None``."""
    fresh, gone = _only(mine, theirs), _only(theirs, mine)
    return ((fresh or mine)[0], (gone or theirs)[0]) if fresh or gone else None


def _only(ours: Lines, theirs: Lines) -> Lines:
    """The lines of ``ours`` that ``theirs`` lack, marked ones first."""
    said = {fold(_words(*it)) for it in theirs}
    only = [it for it in ours if not states_nothing(_words(*it)) and fold(_words(*it)) not in said]
    return sorted(only, key=lambda it: not it[1].marked)


def _other_numbers(one: str, other: str) -> bool:
    """Whether two sentences have nearly the same words and other numbers."""
    mine, its = set(words(_NUMBER.sub(" ", one))), set(words(_NUMBER.sub(" ", other)))
    alike = bool(mine | its) and len(mine & its) >= ALIKE * len(mine | its)
    return alike and sorted(_NUMBER.findall(one)) != sorted(_NUMBER.findall(other))


def _words(piece: Evidence, line: ShownLine) -> str:
    return piece.passage.text[line.start : line.end]
