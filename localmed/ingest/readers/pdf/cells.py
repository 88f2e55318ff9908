"""Cells in, cells out: whether all that is printed in a table's cells stands in the rows made of it.

Rules: a piece of a cell is kept if a line of some row stands where it is printed and holds its text, if it is of a
header that a row names, or of one that was already there on the page before. What is left over is counted by cells,
for a note to the librarian. White space, dots that lead the eye and marks between cells do not count; figures are
compared in compatibility form, since raised ones are rewritten.

Not covered: whether a cell came into the right row, which no page says of itself (``tests/benchmarks/tables_pdf.py``).
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from localmed.domain import Box
from localmed.ingest.parsed import Block
from localmed.ingest.readers.pdf.text import Piece

TOLERANCE = 1.0  # points; boxes are rounded to tenths
TALLEST = 14_400.0  # points of a page, by ISO 32000; a hostile font may be taller

_MARKS = re.compile(r"[\s;:,.…·\u2060]+")


def lost(pieces: Sequence[Piece], blocks: Sequence[Block], repeated: Iterable[str]) -> int:
    """How many cells hold something of a table's ``pieces`` that is neither in ``blocks`` nor a ``repeated`` header."""
    lines = [(line.box, _bare(line.text)) for block in blocks for line in block.lines if line.box]
    heights: dict[int, list[tuple[Box, str]]] = defaultdict(list)  # a page may have thousands of cells
    for box, text in lines:
        for height in range(int(max(0.0, box.y0 - TOLERANCE)), int(min(TALLEST, box.y1 + TOLERANCE)) + 1):
            heights[height].append((box, text))
    left = [piece for piece in pieces if not _shown(piece, heights[int(piece.middle)])]
    top = min((box.y0 for box, _ in lines), default=float("inf"))
    named = "\n".join([*(text for _, text in lines), *map(_bare, repeated)])
    return len({piece.cell for piece in left if piece.middle > top or _bare(piece.text) not in named})


def notes(lost: Mapping[int, int]) -> Iterator[str]:
    """What a librarian is told of ``lost``: the number of such cells by page."""
    for page, cells in lost.items():
        yield f"page {page}: text of {cells} table cell{'s' if cells > 1 else ''} is in no row; check the page"


def _shown(piece: Piece, lines: Sequence[tuple[Box, str]]) -> bool:
    text = _bare(piece.text)
    return not text or any(_holds(box, piece) and text in line for box, line in lines)


def _holds(box: Box, piece: Piece) -> bool:
    across = box.x0 - TOLERANCE <= (piece.x0 + piece.x1) / 2 <= box.x1 + TOLERANCE
    return across and box.y0 - TOLERANCE <= piece.middle <= box.y1 + TOLERANCE


def _bare(text: str) -> str:
    return _MARKS.sub("", unicodedata.normalize("NFKC", text))
