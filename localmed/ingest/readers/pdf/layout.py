"""Finds the reading order of a page by a recursive cut into columns and bands. Pure geometry, no PDF library.

Rules, in order:
1. Items that share a height form a band. Neighbouring bands stay together while one vertical white strip (a gutter)
   runs through all of them, so a full-width heading or table ends the columns above it and starts those below.
2. A group with gutters is read column by column, left to right; each column is cut again by the same rules.
3. A strip is a gutter only between text columns: list labels ("1.", "a.") and cells of an unruled table are read row by
   row.
4. Large headings at the top of a page precede the columns below.

Not covered: columns read right to left, and text that flows around a shape that is not a rectangle.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Generic, TypeVar

GUTTER_EMS = 0.45  # of the body size; three-column government print has gutters of 1 em, word spaces stay under 0.8
CORE = 0.6  # of a line's height that its letters fill; ascenders of tight lines overlap their neighbours
COLUMN_EMS = 7.0  # least width of the median line of a text column; labels and table cells are narrower
COLUMN_ROWS = 2  # least lines of a column
TOP_HEADING = 1.15  # of the body size: a heading that stands above all columns
TRAILING_HEADING = 1.1  # of the body size: a heading at the foot of a group belongs to what follows
APART_SIZES, APART_EMS = 1.6, 3.0  # a heading and the imprint at the other side of a masthead
CAPTION_GAP = 1.5  # distance of a caption from the text above over that from its table
CENTRED = 6.0  # points by which a centred caption may miss the middle of its table
MOST_COLUMNS = 40  # strips in one group; an index in small print has 8, a hostile page may have thousands
DEEPEST = 24  # nesting of cuts; print has 3 or 4, a hostile page must not exhaust the stack


@dataclass(frozen=True, slots=True)
class Placed:
    """An item with a place on the page, in points, and a type size."""

    x0: float
    y0: float
    x1: float
    y1: float
    size: float = field(default=0.0, kw_only=True)

    @property
    def frame(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom."""
        return self.x0, self.y0, self.x1, self.y1

    @property
    def centre(self) -> float:
        """The x coordinate of its middle."""
        return (self.x0 + self.x1) / 2

    @property
    def middle(self) -> float:
        """The y coordinate of its middle."""
        return (self.y0 + self.y1) / 2

    @property
    def area(self) -> float:
        """In square points."""
        return (self.x1 - self.x0) * (self.y1 - self.y0)

    def shared(self, other: Placed) -> float:
        """The common area with ``other``."""
        wide, tall = min(self.x1, other.x1) - max(self.x0, other.x0), min(self.y1, other.y1) - max(self.y0, other.y0)
        return max(wide, 0.0) * max(tall, 0.0)

    def contains(self, other: Placed) -> bool:
        """Whether the middle of ``other`` lies inside; false for coordinates that are not numbers."""
        return self.x0 <= other.centre <= self.x1 and self.y0 <= other.middle <= self.y1


Item = TypeVar("Item", bound=Placed)
Interval = tuple[float, float]


@dataclass(slots=True)
class _Group(Generic[Item]):
    """Bands that are read together, and the stretches of the x axis that their items cover."""

    bands: list[list[Item]]
    covered: list[Interval]

    @property
    def items(self) -> list[Item]:
        return [item for band in self.bands for item in band]


def reading_order(items: Sequence[Item], body: float) -> list[list[Item]]:
    """Divide ``items`` into regions in reading order, each a run of one column from top to bottom.

    ``body`` is the size of the running text, in points.
    """
    bands, count = _bands(items), 0
    while count < len(bands) and all(item.size >= TOP_HEADING * body for item in bands[count]):
        if _gutters(_covered(bands[count]), body):
            break  # headings side by side belong to their columns
        count += 1
    if count in (0, len(bands)):
        return _order_bands(bands, body, DEEPEST)
    return [[item for band in bands[:count] for item in band], *_order_bands(bands[count:], body, DEEPEST)]


def rows(items: Sequence[Item]) -> list[list[Item]]:
    """Divide the ``items`` of one region into printed rows, each from left to right."""
    printed: list[list[Item]] = []
    for item in sorted(items, key=lambda one: (_core(one)[0] + _core(one)[1], one.x0)):
        if printed and _same_row(printed[-1], item):
            printed[-1].append(item)
        else:
            printed.append([item])
    return [sorted(row, key=lambda one: one.x0) for row in printed]


def _same_row(row: Sequence[Placed], item: Placed) -> bool:
    """Whether ``item`` and the first of ``row`` share over half of the smaller core, not far and unlike in size."""
    top, bottom = _core(row[0])
    upper, lower = _core(item)
    shared = min(bottom, lower) - max(top, upper)
    small, large = sorted((row[-1].size, item.size))
    apart = 0 < APART_SIZES * small < large and item.x0 - row[-1].x1 > APART_EMS * large
    return shared > 0.5 * min(bottom - top, lower - upper) and not apart


def _core(item: Placed) -> Interval:
    margin = (item.y1 - item.y0) * (1 - CORE) / 2
    return item.y0 + margin, item.y1 - margin


def _bands(items: Sequence[Item]) -> list[list[Item]]:
    """Cut ``items`` at every height that no item crosses."""
    bands: list[list[Item]] = []
    bottom = 0.0
    for item in sorted(items, key=lambda one: _core(one)[0]):
        upper, lower = _core(item)
        if not bands or upper >= bottom:
            bands.append([])
            bottom = lower
        bands[-1].append(item)
        bottom = max(bottom, lower)
    return bands


def _order_bands(bands: list[list[Item]], body: float, depth: int) -> list[list[Item]]:
    regions: list[list[Item]] = []
    single = False  # whether the last region has one column and may be continued
    for group in _groups(bands, body):
        columns = _columns(group, body) if depth else []
        if len(columns) > 1:
            regions.extend(region for column in columns for region in _order_bands(_bands(column), body, depth - 1))
            single = False
            continue
        lines = [item for row in rows(group.items) for item in row]
        if single:
            regions[-1] += lines
        else:
            regions.append(lines)
        single = True
    return regions


def _groups(bands: list[list[Item]], body: float) -> list[_Group[Item]]:
    groups: list[_Group[Item]] = []
    for band in bands:
        covered = _covered(band)
        last = groups[-1] if groups else None
        if last is not None and _gutters(last.covered, body):
            both = _union([*last.covered, *covered])
            if _gutters(both, body):
                last.bands.append(band)
                last.covered = both
                continue
        group = _Group([band], covered)
        _take_back(groups, group, body)
        groups.append(group)
    return groups


def _take_back(groups: list[_Group[Item]], group: _Group[Item], body: float) -> None:
    """Move earlier bands into ``group``: those with its gutter, and the headings that belong to it."""
    if groups and _gutters(groups[-1].covered, body):
        _take_headings(groups[-1], group, body)
        if not groups[-1].bands:
            groups.pop()
        return
    while groups and not _gutters(groups[-1].covered, body):
        wider = _union([*groups[-1].covered, *group.covered])
        if not _gutters(wider, body):
            return
        group.bands[:0] = groups.pop().bands
        group.covered = wider


def _take_headings(before: _Group[Item], group: _Group[Item], body: float) -> None:
    if len(before.bands) > 1 and _is_caption(before.bands[-1], before, group):
        group.bands.insert(0, before.bands.pop())
        return
    while before.bands and all(item.size >= TRAILING_HEADING * body for item in before.bands[-1]):
        band = before.bands.pop()
        group.bands.insert(0, band)
        group.covered = _union([*group.covered, *_covered(band)])


def _is_caption(band: Sequence[Item], before: _Group[Item], group: _Group[Item]) -> bool:
    """Whether ``band`` is one row in one column, nearer to ``group`` than to the text above or centred over it."""
    if len(rows(band)) > 1 or len(_covered(band)) > 1:
        return False
    (start, end), (left, right) = _covered(band)[0], (group.covered[0][0], group.covered[-1][1])
    column = next(one for one in before.covered if one[0] <= start <= one[1])
    if abs(start + end - left - right) < 2 * CENTRED and start - column[0] > 2 * CENTRED:
        return True
    above = min(item.y0 for item in band) - max(item.y1 for one in before.bands[:-1] for item in one)
    below = min(item.y0 for item in group.bands[0]) - max(item.y1 for item in band)
    return above > CAPTION_GAP * max(below, 1.0)


def _covered(items: Sequence[Placed]) -> list[Interval]:
    return _union([(item.x0, item.x1) for item in items])


def _union(intervals: Sequence[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _gutters(covered: list[Interval], body: float) -> list[Interval]:
    """The sufficiently wide white strips between covered stretches."""
    pairs = itertools.pairwise(covered)
    return [(left[1], right[0]) for left, right in pairs if right[0] - left[1] >= GUTTER_EMS * body]


def _columns(group: _Group[Item], body: float) -> list[list[Item]]:
    """The columns of ``group``; a part that is no text column is merged with its neighbour."""
    items, gutters = group.items, _gutters(group.covered, body)
    if len(gutters) >= MOST_COLUMNS:
        return [items]
    edges = [(gutter[0] + gutter[1]) / 2 for gutter in gutters]
    columns: list[list[Item]] = [[] for _ in range(len(edges) + 1)]
    for item in items:
        columns[sum(1 for edge in edges if item.x0 > edge)].append(item)
    columns = [column for column in columns if column]
    while len(columns) > 1:
        narrow = next((index for index, column in enumerate(columns) if not _is_column(column, body)), None)
        if narrow is None:
            break
        other = narrow + 1 if narrow + 1 < len(columns) else narrow - 1
        columns[min(narrow, other)] += columns[max(narrow, other)]
        del columns[max(narrow, other)]
    return columns


def _is_column(items: Sequence[Placed], body: float) -> bool:
    lines = rows(items)
    widths = [max(item.x1 for item in row) - min(item.x0 for item in row) for row in lines]
    tall = max(item.y1 - item.y0 for item in items) > 4 * body  # a table or figure is a column by itself
    return tall or (len(lines) >= COLUMN_ROWS and median(widths) >= COLUMN_EMS * body)
