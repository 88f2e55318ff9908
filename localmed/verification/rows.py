"""Whether a statement says of one row of a table what stands in another: "moderate: drowsy", which is the severe one's.

A row is named by its first cell. Where a statement names one row and no other, its numbers must not stand only in other
rows, nor its words in another one alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from localmed.language import fold
from localmed.verification import clauses
from localmed.verification.intervals import Interval, intervals
from localmed.verification.matching import Window, words

LEAST = 2  # words of another row, with none of the own one


@dataclass(frozen=True, slots=True)
class Row:
    """The words of a row's first cell, and the words and numbers of the others."""

    label: frozenset[str]
    words: frozenset[str]
    numbers: tuple[Interval, ...]


def other_row(statement: str, window: Window) -> bool:
    """Whether the statement gives another row's number or words than those of the row that it names."""
    table = [row for line in dict.fromkeys(window.around.splitlines()) if (row := _row(line))]
    own_words = words(statement)
    named = [row for row in table if (own := _distinct(row, table)) and own <= own_words]
    if len(named) != 1:
        return False
    others = [row for row in table if row is not named[0]]
    for number in intervals(statement):
        if not _held(number, named[0]) and any(_held(number, row) for row in others):
            return True
    rest = own_words - named[0].label
    return not rest & named[0].words and any(len(rest & row.words) >= LEAST for row in others)


def _row(line: str) -> Row | None:
    cells = [cell.partition(":")[2] for cell in clauses.CELL.split(fold(line))]
    if len(cells) < 2 or not all(cell.strip() for cell in cells):
        return None
    rest = " ".join(cells[1:])
    label = frozenset[str]() if intervals(cells[0]) else words(cells[0])  # a band of values names by these
    return Row(label, words(rest), tuple(intervals(line)))


def _distinct(row: Row, table: list[Row]) -> frozenset[str]:
    return row.label - frozenset[str]().union(*(other.label for other in table if other is not row))


def _held(number: Interval, row: Row) -> bool:
    return any(number.meets(other) or other.holds(number) for other in row.numbers)
