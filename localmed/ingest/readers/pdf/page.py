"""One PDF page as pieces and tables, and what is wrong with it.

Rules: a page whose text mostly runs upwards or downwards (a table in landscape on a portrait page) is turned before it
is read; ``Piece.box`` is on the page as displayed. What else runs in another direction, beyond labels, is read
as a part of the page, turned likewise. A page over the bound on characters is cut in the order in
which it was printed. A page that MuPDF cannot read costs that page, not the file.

Not covered: what recurs on many pages (``reader.py``).
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
from localmed.ingest.readers.encoding import misread
from localmed.ingest.readers.pdf.grid import (
    Grid,
    as_tables,
    cell_lookup,
    drawn_grids,
    rules,
    separators,
    with_predicted,
)
from localmed.ingest.readers.pdf.layout import Placed
from localmed.ingest.readers.pdf.opening import picture
from localmed.ingest.readers.pdf.text import Piece, page_pieces, rounded, shown_box

# --- whether a text can be used ---------------------------------------------------------------------------------------

# A page on which nothing is printed is blank and needs nothing. A page with an image or outlines and no text needs OCR;
# so does one that an image covers while it holds little text (a stamp, a caption), and one whose text layer is garbled:
# characters that no reader can make out, Chinese read in the wrong encoding, letters that make no words, Chinese
# characters that no text uses. A page of figures alone is not judged by its letters.
#
# Not covered: a text layer in sound words that are not those of the page, single garbled words in sound text, and the
# pairs of letters of languages that are written in neither Latin nor Chinese script. A page of sequences of bases has
# the letters of no word and is called garbled, so that nothing is thrown away for being called so.

NO_TEXT = message("ocr.no_text")
TOO_LITTLE = message("ocr.little_text")
GARBLED = message("ocr.garbled")
# Reasons to compare a text layer with the page as printed; OCR reads the page if they differ.
FOREIGN = message("ocr.foreign")
ODD = message("ocr.odd")
OVERPRINTED = message("ocr.overprinted")
UNTRUE = (GARBLED, FOREIGN, ODD, OVERPRINTED)  # a text layer that is not to be used
REASONS = (NO_TEXT, TOO_LITTLE, *UNTRUE)

# The thresholds were set on the text pages of a clinical guide, a three-column gazette and a Chinese guide (none may be
# routed to OCR), their scans, and their text garbled on purpose; the figures are in tests/benchmarks/RESULTS.md.
UNREADABLE = "�"
MOST_UNREADABLE = 0.3  # share of characters; a line of unmapped symbols stays under 0.03
FEW = 200  # characters over an image that covers the page: stamps and captions have fewer, pages of text ~2,000
ENOUGH_PAIRS = 150  # of letters, before they say anything: some 30 words
LEAST_COMMON_PAIRS = 0.3  # of them; pages of English have > 0.6, lists of genes > 0.4, shifted letters mostly < 0.25
ODD_PAIRS, ODD_SHARE = 15, 0.35  # of one line: pairs of letters that say something, and the share that are common
ODD_SYMBOLS, ODD_LETTERS = 0.2, 8  # the share of symbols that prose does without; the least characters of such a line
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
    """Whether the text of a page, given as its pieces, can be read by nobody."""
    if unreadable_share(texts) > MOST_UNREADABLE:
        return True
    text = " ".join(texts)
    common, pairs = common_pairs(text)  # a font that numbers its glyphs as it likes makes an order that no word has
    han, characters = common_han(text)
    no_words = pairs >= ENOUGH_PAIRS and common < LEAST_COMMON_PAIRS
    return misread(text) or no_words or (characters >= ENOUGH_HAN and han < LEAST_COMMON_HAN)


def is_odd(line: str) -> bool:
    """Whether one line may come of a font without a usable map to characters; lists of symbols and genes may too."""
    characters = "".join(line.split())
    if len(characters) < ODD_LETTERS:
        return False
    if unreadable_share([line]) > 1 - ODD_SYMBOLS or "\ufffd" * 3 in line:
        return True
    share, pairs = common_pairs(line)
    return (pairs >= ODD_PAIRS and share < ODD_SHARE) or len(_SYMBOLS.findall(line)) > ODD_SYMBOLS * len(characters)


def unreadable_share(texts: Sequence[str]) -> float:
    """The share of characters that no reader can make out: replacement, private-use and unassigned ones."""
    characters = [character for text in texts for character in text if not character.isspace()]
    if not characters:
        return 0.0
    bad = sum(1 for one in characters if one == UNREADABLE or unicodedata.category(one) in {"Co", "Cn", "Cs"})
    return bad / len(characters)


def common_pairs(text: str) -> tuple[float, int]:
    """The share of neighbouring letters of Latin words that are a common pair, and how many pairs there are."""
    pairs = [first + second for word in _LETTERS.findall(text.casefold()) for first, second in pairwise(word)]
    return sum(pair in _PAIRS for pair in pairs) / max(1, len(pairs)), len(pairs)


def common_han(text: str) -> tuple[float, int]:
    """The share of Chinese characters that are among the common ones of mainland or Taiwan, and how many there are."""
    characters = _HAN.findall(text)
    return sum(map(_is_common, characters)) / max(1, len(characters)), len(characters)


def _is_common(character: str) -> bool:
    """Level 1 of GB 2312 (3,755 characters) or of Big5 (5,401): the standards sort by use."""
    simplified, traditional = character.encode("gb2312", "ignore"), character.encode("big5", "ignore")
    return b"\xb0" <= simplified[:1] <= b"\xd7" or b"\xa4" <= traditional[:1] <= b"\xc6"


# --- doubt ------------------------------------------------------------------------------------------------------------

# Which pages have a text layer that is to be compared with what is printed (``scan.py`` compares). Pure.

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
            if piece.shared(other) > OVER * min(piece.area, other.area):
                over |= {id(piece): piece, id(other): other}
        current.append(piece)
    return list(over.values())


# --- page -------------------------------------------------------------------------------------------------------------

DOUBTFUL = 0.03  # share worth telling the librarian; a line of unmapped symbols stays under it
FURNITURE = 600  # characters that headers and footers may hold; a page with more has text of its own
SCAN_COVERS = 0.5  # of the page
LABELS = 80  # characters in another direction: labels of axes and marks in the margin have fewer, tables more
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
    """What was read from one page. ``flaw`` says what is wrong with its text; ``remarks`` are what else a librarian
    must know of it.
    """

    number: int
    height: float
    pieces: tuple[Piece, ...] = ()
    grids: tuple[Grid, ...] = ()
    flaw: Message | None = None
    remarks: tuple[Message, ...] = ()
    turn: int = 0  # by how many degrees it was turned counterclockwise to be read
    blank: bool = False  # nothing is printed on it, so an empty text is right
    figures: tuple[Figure, ...] = ()
    separators: tuple[Placed, ...] = ()
    needs: Message | None = None  # why it needs OCR, one of ``REASONS``
    ocr: float | None = None  # how sure the engine was of what it read of it
    lost: bool = False  # OCR failed on it
    doubt: Message | None = None  # why its text is to be compared with OCR, one of ``UNTRUE``
    parts: tuple[Page, ...] = ()  # what is printed on it in other directions, as pages of their own

    @property
    def characters(self) -> int:
        """How many characters it holds."""
        return sum(len(piece.text) for piece in self.pieces) + sum(part.characters for part in self.parts)

    @property
    def garbled(self) -> bool:
        """Whether its text is not what is printed, and nothing better was found."""
        return self.needs in UNTRUE and self.ocr is None


def read_page(document: Any, index: int, bound: int) -> Page:
    """Page ``index`` (0-based) of ``document``, at most ``bound`` characters."""
    try:
        return _read(document[index], index + 1, bound)
    except Exception:  # a damaged page raises whatever MuPDF met; its message may hold text of the page
        return Page(index + 1, 0.0, flaw=message("pdf.page_damaged"))


def _read(page: Any, number: int, bound: int) -> Page:
    shown, before = page.rotation_matrix, page.rotation
    whole = _printed(page, number, shown)
    turn, *others = _turns(whole.pieces)
    parts = []
    for other in others:
        page.set_rotation((before + other) % 360)
        parts.append(_printed(page, number, shown, {90, 180, 270}))
    page.set_rotation((before + turn) % 360)
    if turn or others:
        whole = _printed(page, number, shown, {(other - turn) % 360 for other in others})
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
    images = [Figure(*shown_box(image["bbox"], page.rotation_matrix)) for image in page.get_image_info()]
    covered = sum(map(sheet.shared, images)) > SCAN_COVERS * sheet.area
    few = characters < FURNITURE
    blank = few and not images and len(page.get_cdrawings()) < OUTLINED_PATHS
    needs = why_ocr(characters, is_garbled(texts), few and covered, blank)
    return replace(
        whole, pieces=kept, remarks=remarks, blank=blank, needs=needs, doubt=None if needs else doubt(kept, covered),
        figures=tuple(image for image in images if _stands_alone(image, sheet, kept)), parts=tuple(parts),
    )  # fmt: skip


def _stands_alone(image: Figure, sheet: Placed, pieces: Sequence[Piece]) -> bool:
    """Whether ``image`` is large enough to set text around it, and has none printed over it."""
    wide = (image.x1 - image.x0) / max(sheet.x1 - sheet.x0, 1.0)
    tall = (image.y1 - image.y0) / max(sheet.y1 - sheet.y0, 1.0)
    fits = wide >= FIGURE_WIDE and tall >= FIGURE_TALL and wide * tall <= FIGURE_MOST
    return fits and not any(map(image.holds, pieces))


def _printed(page: Any, number: int, shown: Any, without: Collection[int] = ()) -> Page:
    """What is printed on ``page`` but for text that is turned by one of ``without`` degrees.

    Pieces inside tables are cut at the cells' borders. ``shown`` is the rotation of the page as displayed.
    """

    def pieces_in(grids: Sequence[Grid]) -> list[Piece]:
        every = page_pieces(page, cell_lookup(grids) if grids else None)
        return [piece for piece in every if piece.turn not in without]

    drawn = rules(page)
    ruled = drawn_grids(page, drawn)
    grids, pieces = as_tables(ruled or [], pieces_in)
    if not drawn.too_many and (more := with_predicted(page, pieces, grids)) != grids:
        grids, pieces = as_tables(more, pieces_in)
    inside = list(filter(Placed(*page.rect).holds, pieces))
    seen = _seen(page, inside)
    flaws = {
        "pdf.page_drawn": drawn.too_many,
        "pdf.page_tables": ruled is None,
        "pdf.page_outside": len(inside) < len(pieces),
        "pdf.page_white": len(seen) < len(inside),
    }
    remarks = [message(code) for code, flawed in flaws.items() if flawed][:1]
    back = page.derotation_matrix * shown
    places = (rounded(number, shown_box([round(side, 1) for side in piece.frame], back)) for piece in seen)
    placed = tuple(replace(piece, box=box) for piece, box in zip(seen, places, strict=True))
    turn = round(math.degrees(math.atan2(-back.b, back.a))) % 360
    parted = separators(drawn.across, seen, grids)
    return Page(number, page.rect.height, placed, tuple(grids), None, tuple(remarks), turn, separators=parted)


def _seen(page: Any, pieces: list[Piece]) -> list[Piece]:
    """``pieces`` without white ones on white: nobody reads them on the page, so nothing may be cited from them."""
    if not any(piece.white for piece in pieces):
        return pieces
    drawn, scale = picture(page, PROBE_DPI, PROBE_PIXELS, pymupdf.csGRAY)
    return [piece for piece in pieces if not piece.white or _inked(drawn, piece, scale)]


def _inked(picture: Any, piece: Piece, scale: float) -> bool:
    """Whether most of what lies under ``piece`` is darker than paper."""
    left, right = (max(0, min(picture.width, int(x * scale))) for x in (piece.x0, piece.x1))
    rows = range(max(0, int(piece.y0 * scale)), min(picture.height, int(piece.y1 * scale) + 1))
    samples, stride = picture.samples_mv, picture.stride
    under = b"".join(bytes(samples[row * stride + left : row * stride + right + 1]) for row in rows)
    return sum(value < PAPER for value in under) > INKED * len(under)


def _turns(pieces: Sequence[Piece]) -> list[int]:
    """By how many degrees most of the text is turned, and then other directions that hold more than labels."""
    turns: Counter[int] = Counter()
    for piece in pieces:
        turns[piece.turn] += len(piece.text)
    first, *others = turns.most_common() or [(0, 0)]
    return [first[0], *(turn for turn, characters in others if characters >= LABELS)]
