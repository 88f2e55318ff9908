"""The rules of a PDF page that run over several columns: what stands above one is read before what stands below.

Rules: a level rule counts if it is wider than any one of several columns can be, belongs to no table, and touches no
text, which would make it an underline.

Not covered: white space alone that a reader takes for the end of a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localmed.ingest.readers.pdf.grid import SAME_EDGE, Grid, Rectangle
from localmed.ingest.readers.pdf.text import Piece

WIDE = 0.6  # of the width of the page's text


@dataclass(frozen=True, slots=True)
class Separator:
    """A level rule between parts of a page."""

    x0: float
    y0: float
    x1: float
    y1: float
    size: float = 0.0


def separators(across: Sequence[Rectangle], pieces: Sequence[Piece], grids: Sequence[Grid]) -> tuple[Separator, ...]:
    """Those of the level rules ``across`` that part a page of ``pieces`` and ``grids``."""
    upright = [piece for piece in pieces if piece.upright]
    if not upright:
        return ()
    width = max(piece.x1 for piece in upright) - min(piece.x0 for piece in upright)
    wide = [rule for rule in across if rule[2] - rule[0] >= WIDE * width]
    return tuple(Separator(*rule) for rule in wide if not _touches(rule, upright) and not _of_table(rule, grids))


def _touches(rule: Rectangle, pieces: Sequence[Piece]) -> bool:
    return any(
        piece.y0 < rule[3] and rule[1] < piece.y1 and piece.x0 < rule[2] and rule[0] < piece.x1 for piece in pieces
    )


def _of_table(rule: Rectangle, grids: Sequence[Grid]) -> bool:
    return any(grid.y0 - SAME_EDGE <= rule[1] <= grid.y1 + SAME_EDGE for grid in grids)
