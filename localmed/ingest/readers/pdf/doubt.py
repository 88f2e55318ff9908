"""Which pages have a text layer that is to be compared with what is printed (``layer.py`` compares). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from localmed.domain import Message
from localmed.ingest.page_quality import FEW, FOREIGN, ODD, OVERPRINTED, is_odd
from localmed.ingest.readers.pdf.text import Piece

ODD_LINES = 2  # a formula or a line of symbols stands alone
ODD_CHARACTERS = 0.04  # of a page's, in odd lines: addresses on the web and forms have fewer
OVER = 0.4  # of the area of a line that another covers
OVER_SHARE = 0.15  # of a page's characters


def doubt(pieces: Sequence[Piece], pictured: bool) -> Message | None:
    """Why the layer ``pieces`` is to be compared with the page; ``pictured``: pictures cover most of the page."""
    characters = sum(len(piece.text) for piece in pieces)
    if pictured and characters >= FEW:
        return FOREIGN
    odd = [len(piece.text) for piece in pieces if is_odd(piece.text)]
    if len(odd) >= ODD_LINES and sum(odd) > ODD_CHARACTERS * characters:
        return ODD
    over = sum(len(piece.text) for piece in _overprinted(pieces))
    return OVERPRINTED if over > OVER_SHARE * characters else None


def _overprinted(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces that another one covers; rows of one height are compared with those that begin above their end."""
    over: dict[int, Piece] = {}
    current: list[Piece] = []
    for piece in sorted(pieces, key=lambda one: one.y0):
        current = [other for other in current if other.y1 > piece.y0]
        for other in current:
            if _shared(piece, other) > OVER * min(_area(piece), _area(other)):
                over |= {id(piece): piece, id(other): other}
        current.append(piece)
    return list(over.values())


def _shared(piece: Piece, other: Piece) -> float:
    wide = min(piece.x1, other.x1) - max(piece.x0, other.x0)
    return max(wide, 0.0) * max(min(piece.y1, other.y1) - max(piece.y0, other.y0), 0.0)


def _area(piece: Piece) -> float:
    return (piece.x1 - piece.x0) * (piece.y1 - piece.y0)
