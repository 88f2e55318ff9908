"""Reads one PDF page as pieces and tables, and finds its flaws.

Rules: a page whose text mostly runs upwards or downwards (a landscape table on a portrait page) is turned before
reading; ``Piece.box`` refers to the page as displayed. Other text in another direction, beyond labels, is turned and
read as a part of the page. A page over the bound on characters is cut in printing order. A page that MuPDF cannot
read does not cost the file.

Not covered: lines that recur on many pages (``reader.py``).
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

import pymupdf

from localmed.domain import Message, message
from localmed.ingest.readers.encoding import is_misread
from localmed.ingest.readers.pdf.grid import (
    Grid,
    cell_lookup,
    find_drawn,
    find_rules,
    find_separators,
    keep_tables,
    with_predicted,
)
from localmed.ingest.readers.pdf.layout import Placed
from localmed.ingest.readers.pdf.opening import picture
from localmed.ingest.readers.pdf.text import Piece, display_frame, read_pieces, to_box

# --- is a text layer usable? ------------------------------------------------------------------------------------------

# A blank page needs nothing. OCR is needed for images or outlines without text, for a large image with little text (a
# stamp, a caption), and for a garbled text layer: unreadable characters, Chinese in the wrong encoding, letters that
# form no words, Chinese characters that no text uses. Figures alone are not judged.
#
# Not covered: a layer of sound words that differs from the page, single garbled words, languages in other scripts. A
# page of base sequences has no words and counts as garbled, so a garbled layer stays unless OCR replaces it.

NO_TEXT = message("ocr.no_text")
TOO_LITTLE = message("ocr.little_text")
GARBLED = message("ocr.garbled")
# Reasons to compare a text layer with the printed page; OCR reads the page if they differ.
FOREIGN = message("ocr.foreign")
ODD = message("ocr.odd")
OVERPRINTED = message("ocr.overprinted")
UNTRUE = (GARBLED, FOREIGN, ODD, OVERPRINTED)  # the text layer must not be used
REASONS = (NO_TEXT, TOO_LITTLE, *UNTRUE)

# Thresholds were set on text pages of a clinical guide, a three-column gazette and a Chinese guide (none may need OCR),
# their scans, and deliberately garbled text; the figures are in tests/benchmarks/RESULTS.md.
UNREADABLE = "�"
MOST_UNREADABLE = 0.3  # share of characters; a line of unmapped symbols stays under 0.03
FEW = 200  # characters over an image that covers the page: stamps and captions have fewer, pages of text ~2,000
ENOUGH_PAIRS = 150  # pairs of letters needed for a judgement, ~30 words
LEAST_COMMON_PAIRS = 0.3  # of them; pages of English have > 0.6, lists of genes > 0.4, shifted letters mostly < 0.25
ODD_PAIRS, ODD_SHARE = 15, 0.35  # of one line: pairs needed, and the least share of common ones
ODD_SYMBOLS, ODD_LETTERS = 0.2, 8  # of one line: the largest share of symbols, and the least characters
ENOUGH_HAN = 50  # Chinese characters
LEAST_COMMON_HAN = 0.6  # of them; pages of Chinese have > 0.94, characters drawn at random < 0.4

# The 100 pairs of letters that English medical text uses most: 75 % of its pairs, ~13 % of shuffled letters.
_PAIRS = frozenset(
    re.findall(
        r"\w+",
        "th in he re on er an ti at es or is en al nd se ar ro te to om di of le it ed ne ma io ea me nt st ha ca "
        "as ic ve de si ng co pe ra ri li el lo ch ce ur ou ct ia us ll ta ns op sy ge ho ot pr ec os so nc no be "
        "la fo tr pl pa ac hi mp ss mo ol et il id ts rs wh ow rm ab ie fe na bl pt ly wi ut mi od",
    )
)
_SYMBOLS = re.compile(r"[!\"#$&*+<=>?@\\^`{|}~\[\]\ufffd]")
_LETTERS = re.compile(r"(?<![a-z0-9])[a-z]{4,}(?![a-z0-9])")  # neither units, abbreviations nor symbols of genes
_HAN = re.compile(r"[㐀-䶿一-鿿]")


def why_ocr(characters: int, garbled: bool, imaged: bool, blank: bool) -> Message | None:
    """Why a page with ``characters`` of text needs OCR: one of ``REASONS``, None if it does not.

    ``imaged``: an image covers most of it; ``blank``: there is no image and next to nothing is drawn.
    """
    if garbled:
        return GARBLED
    if not characters:
        return None if blank else NO_TEXT
    return TOO_LITTLE if imaged and characters < FEW else None


def is_garbled(texts: Sequence[str]) -> bool:
    """Whether the text of a page, given as its pieces, is unreadable."""
    if unreadable_share(texts) > MOST_UNREADABLE:
        return True
    text = " ".join(texts)
    common, pairs = common_pairs(text)  # a font with arbitrary glyph numbers yields letters in the order of no word
    no_words = pairs >= ENOUGH_PAIRS and common < LEAST_COMMON_PAIRS
    han = _HAN.findall(text)
    rare_han = len(han) >= ENOUGH_HAN and sum(map(_is_common, han)) < LEAST_COMMON_HAN * len(han)
    return is_misread(text) or no_words or rare_han


def is_odd(line: str) -> bool:
    """Whether a line looks like a font without a usable character map; lists of symbols and genes look alike."""
    characters = "".join(line.split())
    if len(characters) < ODD_LETTERS:
        return False
    if unreadable_share([line]) > 1 - ODD_SYMBOLS or "\ufffd" * 3 in line:
        return True
    share, pairs = common_pairs(line)
    return (pairs >= ODD_PAIRS and share < ODD_SHARE) or len(_SYMBOLS.findall(line)) > ODD_SYMBOLS * len(characters)


def unreadable_share(texts: Sequence[str]) -> float:
    """The share of replacement, private-use and unassigned characters."""
    characters = [character for text in texts for character in text if not character.isspace()]
    if not characters:
        return 0.0
    bad = sum(1 for one in characters if one == UNREADABLE or unicodedata.category(one) in {"Co", "Cn", "Cs"})
    return bad / len(characters)


def common_pairs(text: str) -> tuple[float, int]:
    """The share of common pairs among neighbouring letters of Latin words, and the number of pairs."""
    pairs = [first + second for word in _LETTERS.findall(text.casefold()) for first, second in pairwise(word)]
    return sum(pair in _PAIRS for pair in pairs) / max(1, len(pairs)), len(pairs)


def _is_common(character: str) -> bool:
    """Whether a Chinese character is in level 1 of GB 2312 (3,755) or Big5 (5,401), which are sorted by use."""
    simplified, traditional = character.encode("gb2312", "ignore"), character.encode("big5", "ignore")
    return b"\xb0" <= simplified[:1] <= b"\xd7" or b"\xa4" <= traditional[:1] <= b"\xc6"


# --- doubtful text layers ---------------------------------------------------------------------------------------------

# ``scan.py`` compares a doubtful layer with the printed page: one over or under pictures (another OCR program may have
# written it), with odd lines (a font without a usable character map), or with lines printed over each other.

ODD_LINES = 2  # a formula or a line of symbols stands alone
ODD_CHARACTERS = 0.04  # of a page's, in odd lines: addresses on the web and forms have fewer
OVER = 0.4  # of the area of a line that another covers
OVER_SHARE = 0.15  # of a page's characters


def _find_doubt(pieces: Sequence[Piece], pictured: bool) -> Message | None:
    """Why to compare the layer ``pieces`` with the page; ``pictured``: pictures cover most of the page."""
    characters = sum(len(piece.text) for piece in pieces)
    if pictured and characters >= FEW:
        return FOREIGN
    odd = [len(piece.text) for piece in pieces if is_odd(piece.text)]
    if len(odd) >= ODD_LINES and sum(odd) > ODD_CHARACTERS * characters:
        return ODD
    over: dict[int, Piece] = {}  # pieces that another one covers
    current: list[Piece] = []
    for piece in sorted(pieces, key=lambda one: one.y0):
        current = [other for other in current if other.y1 > piece.y0]
        for other in current:
            if piece.shared(other) > OVER * min(piece.area, other.area):
                over |= {id(piece): piece, id(other): other}
        current.append(piece)
    return OVERPRINTED if sum(len(piece.text) for piece in over.values()) > OVER_SHARE * characters else None


# --- page -------------------------------------------------------------------------------------------------------------

DOUBTFUL = 0.03  # share of unreadable characters to report; a line of unmapped symbols stays below it
FURNITURE = 600  # characters of headers and footers at most; a page with more has text of its own
SCAN_COVERS = 0.5  # of the page
LABELS = 80  # characters in another direction: axis labels and margin marks have fewer, tables more
OUTLINED_PATHS = 200  # drawn paths; a page of text drawn as outlines has thousands, an empty form a few dozen
PROBE_DPI = 50.4  # shows whether anything lies behind a line
PROBE_PIXELS = 1500  # a side
PAPER = 245  # of 255: lighter is blank paper
INKED = 0.6  # of the pixels under white text; under print that runs through it, a third is
FIGURE_WIDE, FIGURE_TALL = 0.25, 0.04  # of the page: smaller images stand in the text like letters
FIGURE_MOST = 0.8  # of the page: larger ones are backgrounds


class Figure(Placed):
    """An image that text is set around."""


@dataclass(frozen=True, slots=True)
class Page:
    """The content of one page. ``flaw`` is a fault of its text; ``remarks`` are further notes for the librarian."""

    number: int
    height: float
    pieces: tuple[Piece, ...] = ()
    grids: tuple[Grid, ...] = ()
    flaw: Message | None = None
    remarks: tuple[Message, ...] = ()
    turn: int = 0  # degrees by which it was turned counterclockwise before reading
    blank: bool = False  # nothing is printed on it, so empty text is correct
    figures: tuple[Figure, ...] = ()
    separators: tuple[Placed, ...] = ()
    needs: Message | None = None  # why it needs OCR, one of ``REASONS``
    ocr: float | None = None  # mean confidence of OCR
    lost: bool = False  # OCR failed on it
    doubt: Message | None = None  # why to compare its text with OCR, one of ``UNTRUE``
    parts: tuple[Page, ...] = ()  # text in other directions, as pages of its own

    @property
    def characters(self) -> int:
        """The number of characters, parts included."""
        return sum(len(piece.text) for piece in self.pieces) + sum(part.characters for part in self.parts)

    @property
    def garbled(self) -> bool:
        """Whether the text layer is wrong and OCR did not replace it."""
        return self.needs in UNTRUE and self.ocr is None


def read_page(document: Any, index: int, bound: int) -> Page:
    """Read page ``index`` (0-based) of ``document``, at most ``bound`` characters."""
    try:
        return _read(document[index], index + 1, bound)
    except Exception:  # a damaged page raises many errors; their messages may contain text of the page
        return Page(index + 1, 0.0, flaw=message("pdf.page_damaged"))


def _read(page: Any, number: int, bound: int) -> Page:
    shown, before = page.rotation_matrix, page.rotation
    whole = _read_printed(page, number, shown)
    turns: Counter[int] = Counter()
    for piece in whole.pieces:
        turns[piece.turn] += len(piece.text)
    (turn, _), *less = turns.most_common() or [(0, 0)]
    others = [other for other, count in less if count >= LABELS]
    parts = []
    for other in others:
        page.set_rotation((before + other) % 360)
        parts.append(_read_printed(page, number, shown, {90, 180, 270}))
    page.set_rotation((before + turn) % 360)
    if turn or others:
        whole = _read_printed(page, number, shown, {(other - turn) % 360 for other in others})
    texts = [piece.text for piece in whole.pieces]
    if unreadable_share(texts) > MOST_UNREADABLE:
        return Page(number, whole.height, needs=GARBLED)
    kept = whole.pieces[: bisect_right(list(accumulate(map(len, texts))), bound)]
    remarks, share = whole.remarks, unreadable_share(texts[: len(kept)])
    if len(kept) < len(texts):
        remarks = (message("pdf.page_cut", most=bound),)
    elif not remarks and share > DOUBTFUL:
        remarks = (message("pdf.page_doubtful", share=share),)
    sheet, characters = Placed(*page.rect), sum(map(len, texts[: len(kept)]))
    images = [Figure(*display_frame(image["bbox"], page.rotation_matrix)) for image in page.get_image_info()]
    covered = sum(map(sheet.shared, images)) > SCAN_COVERS * sheet.area
    few = characters < FURNITURE
    blank = few and not images and len(page.get_cdrawings()) < OUTLINED_PATHS
    needs = why_ocr(characters, is_garbled(texts), few and covered, blank)
    return replace(
        whole,
        pieces=kept,
        remarks=remarks,
        blank=blank,
        needs=needs,
        doubt=None if needs else _find_doubt(kept, covered),
        figures=tuple(image for image in images if _stands_alone(image, sheet, kept)),
        parts=tuple(parts),
    )


def _stands_alone(image: Figure, sheet: Placed, pieces: Sequence[Piece]) -> bool:
    """Whether text is set around ``image``: it is large enough, and no text is printed over it."""
    wide = (image.x1 - image.x0) / max(sheet.x1 - sheet.x0, 1.0)
    tall = (image.y1 - image.y0) / max(sheet.y1 - sheet.y0, 1.0)
    fits = wide >= FIGURE_WIDE and tall >= FIGURE_TALL and wide * tall <= FIGURE_MOST
    return fits and not any(map(image.contains, pieces))


def _read_printed(page: Any, number: int, shown: Any, without: Collection[int] = ()) -> Page:
    """The pieces and tables of ``page`` without text that is turned by one of ``without`` degrees.

    Pieces inside tables are cut at the cells' borders. ``shown`` is the rotation of the page as displayed.
    """

    def pieces_in(grids: Sequence[Grid]) -> list[Piece]:
        every = read_pieces(page, cell_lookup(grids) if grids else None)
        return [piece for piece in every if piece.turn not in without]

    drawn = find_rules(page)
    ruled = find_drawn(page, drawn)
    grids, pieces = keep_tables(ruled or [], pieces_in)
    if not drawn.too_many and (more := with_predicted(page, pieces, grids)) != grids:
        grids, pieces = keep_tables(more, pieces_in)
    inside = list(filter(Placed(*page.rect).contains, pieces))
    seen = _visible(page, inside)
    flaws = {
        "pdf.page_drawn": drawn.too_many,
        "pdf.page_tables": ruled is None,
        "pdf.page_outside": len(inside) < len(pieces),
        "pdf.page_white": len(seen) < len(inside),
    }
    remarks = [message(code) for code, flawed in flaws.items() if flawed][:1]
    back = page.derotation_matrix * shown
    places = (to_box(number, display_frame([round(side, 1) for side in piece.frame], back)) for piece in seen)
    placed = tuple(replace(piece, box=box) for piece, box in zip(seen, places, strict=True))
    turn = round(math.degrees(math.atan2(-back.b, back.a))) % 360
    parted = find_separators(drawn.across, seen, grids)
    return Page(number, page.rect.height, placed, tuple(grids), None, tuple(remarks), turn, separators=parted)


def _visible(page: Any, pieces: list[Piece]) -> list[Piece]:
    """``pieces`` without white text on white: nobody can see it, so nothing may be cited from it."""
    if not any(piece.white for piece in pieces):
        return pieces
    drawn, scale = picture(page, PROBE_DPI, PROBE_PIXELS, pymupdf.csGRAY)
    return [piece for piece in pieces if not piece.white or _inked(drawn, piece, scale)]


def _inked(picture: Any, piece: Piece, scale: float) -> bool:
    left, right = (max(0, min(picture.width, int(x * scale))) for x in (piece.x0, piece.x1))
    rows = range(max(0, int(piece.y0 * scale)), min(picture.height, int(piece.y1 * scale) + 1))
    samples, stride = picture.samples_mv, picture.stride
    under = b"".join(bytes(samples[row * stride + left : row * stride + right + 1]) for row in rows)
    return sum(value < PAPER for value in under) > INKED * len(under)
