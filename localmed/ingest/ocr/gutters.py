"""Lines that the engine read over the white between two columns of a picture, and where to part them.

Rules: a gutter is where several lines begin below each other and those to the left of it end. A line that runs over it
is parted if the picture is white there: a heading over both columns has ink in that place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

LEAST = 5  # lines that begin at the right of a gutter
SAME_EDGE = 0.6  # of the height of a line, by which their beginnings differ
INSIDE = 3.0  # heights that a line reaches over a gutter on both sides
NARROWEST = 0.4  # of the height of a line, of a gutter
MOST_OVER = 0.6  # of the lines at its right: where more run over it, it is no gutter
INK = 60  # levels of grey darker than paper

Frame = tuple[float, float, float, float]  # x0, y0, x1, y1 in pixels


def over_gutters(picture: Any, lines: Sequence[Frame]) -> Iterator[Frame]:
    """The white of a gutter inside each of ``lines`` that runs over one; ``picture`` is (H, W, 3) of bytes."""
    tall = median([y1 - y0 for _, y0, _, y1 in lines] or [0.0])
    for left, right, top, bottom in _gutters(lines, tall):
        for line in lines:
            middle = (line[1] + line[3]) / 2
            if top < middle < bottom and _over(line, left, right, tall) and _white(picture, left, right, line):
                yield left, line[1], right, line[3]


def _gutters(lines: Sequence[Frame], tall: float) -> Iterator[Frame]:
    """Left and right edge, top and bottom of each gutter."""
    begun: list[float] = []
    for edge in sorted(line[0] for line in lines):
        starts = [line for line in lines if abs(line[0] - edge) < SAME_EDGE * tall]
        if len(starts) < LEAST or any(abs(edge - other) < tall for other in begun):
            continue
        begun.append(edge)
        right = median(line[0] for line in starts)
        top, bottom = min(line[1] for line in starts) - 2 * tall, max(line[3] for line in starts) + 2 * tall
        beside = [line for line in lines if line[1] > top and line[3] < bottom and line[0] < right - INSIDE * tall]
        ends = [line[2] for line in beside if line[2] < right]
        over = len(beside) - len(ends)
        if len(ends) >= LEAST and over <= MOST_OVER * len(starts) and right - max(ends) > NARROWEST * tall:
            yield max(ends), right, top, bottom


def _over(line: Frame, left: float, right: float, tall: float) -> bool:
    return line[0] < left - INSIDE * tall and line[2] > right + INSIDE * tall


def _white(picture: Any, left: float, right: float, line: Frame) -> bool:
    """Whether nothing is printed in most of the gutter at the height of ``line``."""
    margin = (right - left) / 5
    part = picture[int(line[1]) : int(line[3]) + 1, int(left + margin) : int(right - margin) + 1]
    return bool(part.size) and int(part.max()) - int(part.min()) < INK
