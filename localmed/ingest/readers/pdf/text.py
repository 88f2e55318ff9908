"""Extracts the characters of one PDF page as clean, placed pieces of printed lines.

Rules: coordinates are points of the page as displayed (its rotation applied), origin top left. A piece is a run of
characters on one baseline. It ends at a gap wider than a word space and at the border of a table cell, because MuPDF
joins neighbouring cells that touch. Text is not NFKC-normalised, but repaired: control, zero-width and bidirectional
characters are removed, ligatures spelt out, radicals mapped to their Chinese characters, symbol-font bullets to
bullets, and small raised digits to Unicode superscripts (10 to the sixth is not 106).

Not covered: text drawn as outlines or images (no pieces), and right-to-left scripts.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

import pymupdf

from localmed.domain import Box
from localmed.ingest.ocr.child import Frame, gutters
from localmed.ingest.readers.pdf.layout import Placed

GAP_EMS = 1.0  # justified lines stretch word spaces to about 0.8 em; column gutters are 1 em and more
NARROW_EMS = 0.4  # of a gap at the edge of a column; narrower is a word space
SUPERSCRIPT_SHARE = 0.8  # a raised digit is set at 60-70 % of its line; full-size raised text is a table's own offset
MARK_CHARACTERS, MOST_MARKS = 4, 500  # of a mark, and on a page
MARK_SIZE = 0.9  # of its line's type, at most
FACE_LETTERS = 2  # raised notes are figures or one letter
SAME_SIZE = 0.08  # share; sizes within it are one
OVERPRINT = 0.5  # of its width: an accent printed over its letter, as typesetting programs do
SAME_PLACE = 1.5  # points; fake bold prints a line twice within a point
ECHO = 0.4  # of the type size, by which a second print of a line is moved: lines of a paragraph are 1.0 and more
ECHO_ROW = 12.0  # points, the height in which second prints are looked for
WHITE = 0xFFFFFF
SUPERSCRIPT, BOLD = 1, 16  # span flags of PyMuPDF
SYNTHETIC_BOLD = 8  # char_flags: bold by name or by stroking

FLAGS = (
    pymupdf.TEXTFLAGS_RAWDICT
    & ~pymupdf.TEXT_PRESERVE_LIGATURES
    & ~pymupdf.TEXT_PRESERVE_IMAGES
    & ~pymupdf.TEXT_CID_FOR_UNKNOWN_UNICODE  # an unknown glyph must show as unreadable, not as a random letter
)

_SUPERSCRIPTS = str.maketrans("0123456789+-−()", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁾")
_SYMBOLS = {0xF0B7: "•", 0xF0A7: "▪", 0xF0D8: "➢", 0xF0FC: "✓", 0xF06F: "□", 0xF0A8: "□", 0xF0FE: "☑", 0xF06C: "●"}
_COMPATIBLE = {p: unicodedata.normalize("NFKC", chr(p)) for p in (*range(0x2E80, 0x2FE0), *range(0xFB00, 0xFB07))}
# Radicals of the supplement without NFKC mapping; those of whole characters, after EquivalentUnifiedIdeograph.
_COMPATIBLE |= dict(
    zip(
        map(
            ord,
            "⺁⺄⺈⺊⺌⺍⺎⺐⺒⺓⺗⺜⺝⺞⺠⺧⺩⺪⺫⺬⺮⺶⺷⺻⺼⺽⻁⻄⻅⻆⻉⻊⻋⻑⻓⻔⻗⻘⻙⻚⻛⻜⻝⻡⻢⻣⻤⻥⻦⻧⻨⻩⻪⻫⻬⻭⻮⻯⻰⻱⻲",
        ),
        "厂乙刀卜小小兀尢巳幺心日月歺民牛王疋目示竹羊羊聿肉臼虎西见角贝足车長长门雨青韦页风飞食首马骨鬼鱼鸟卤麦黄黾斉齐歯齿竜龙龜亀",
        strict=True,
    )
)
_SPACES = {0x09: " ", 0x0A: " ", 0x0D: " ", 0xA0: " ", 0x2028: " ", 0x2029: " "}
_DROPPED = {
    point: None
    for point in (*range(0x10000), *range(0xE0000, 0xE0080))
    if unicodedata.category(chr(point)) in {"Cc", "Cf"} and point not in _SPACES and point != 0xAD
}
_CLEAN: dict[int, str | None] = {**_DROPPED, **_SYMBOLS, **_COMPATIBLE, **_SPACES}
_CJK = re.compile(r"[⺀-〿぀-ヿ㐀-䶿一-鿿豈-﫿＀-￯]")

_LEADERS = re.compile(r"\s*(?:[.·…]\s?){5,}")
# Word processors set figures among Chinese with a little air, which MuPDF reports as a space here and not there.
_CJK_SPACE = re.compile(r"(?<=[㐀-䶿一-鿿]) (?=[\d、-】！-，：-？])|(?<=[\d%℃、-】！-，：-？]) (?=[㐀-䶿一-鿿])")

Face = tuple[bool, float, str]  # script is Chinese, size in points, family
_ACCENTS = dict(
    zip("`´ˆ˜¨˚ˇ¸˘˙˝˛¯", "\u0300\u0301\u0302\u0303\u0308\u030a\u030c\u0327\u0306\u0307\u030b\u0328\u0304", strict=True)
)
_BULLET = re.compile(r"^([•▪●■□❑☐☑✓➢◦◆►])(?=[^\W_])")


@dataclass(frozen=True, slots=True)
class Cell(Placed):
    """A cell of a table; ``rows`` and ``columns`` are half-open ranges."""

    rows: tuple[int, int]
    columns: tuple[int, int]


CellOf = Callable[[float, float], Cell | None]  # the table cell at a point of the page


@dataclass(frozen=True, slots=True)
class Piece(Placed):
    """A run of characters on one baseline, or a whole printed row, with the face of most of its characters.

    ``faces`` are the faces with at least ``FACE_LETTERS`` letters of one script: a row may begin bold and small and
    continue as running text. ``turn`` is the clockwise rotation in degrees that makes the text read from left to right.
    ``white`` text may be hidden text. ``box`` is the place on the page as displayed, if the page was turned or
    straightened before reading. ``ocr`` is the engine's confidence, None for the file's own text.
    """

    text: str
    family: str = ""
    bold: bool = False
    turn: int = 0
    cell: Cell | None = None
    white: bool = False
    faces: frozenset[Face] = frozenset()
    box: Box | None = None
    ocr: float | None = None
    apart: bool = False  # of a row: wide gaps between its parts, as in headers, footers and forms
    between: bool = False  # of a row: belongs to a list in columns whose rows are not aligned

    @property
    def upright(self) -> bool:
        """Whether the text runs from left to right on the page as displayed."""
        return self.turn == 0

    @property
    def cjk(self) -> bool:
        """Whether most letters are Chinese."""
        letters = [character for character in self.text if character.isalpha()]
        return sum(map(is_cjk, letters)) * 2 > len(letters)

    @property
    def script(self) -> bool:
        """Whether the middle character is Chinese."""
        return is_cjk(self.text[len(self.text) // 2])

    @property
    def drawn(self) -> bool:
        """Whether the font is drawn in the file (Type 3): such fonts have no name, and one face has many of them."""
        return self.family.startswith("Type3")

    def shares_size(self, other: Piece) -> bool:
        """Whether both have words of one size."""
        sizes, others = ({row.size, *(size for _, size, _ in row.faces)} for row in (self, other))
        return any(abs(one - another) <= SAME_SIZE * another for one in sizes for another in others)

    def shares_family(self, other: Piece) -> bool:
        """Whether both have words of one font family, each in its main script."""
        families, others = (
            {row.family, *(family for cjk, _, family in row.faces if cjk == row.cjk)} for row in (self, other)
        )
        return bool(families & others)


def enclose(frames: Iterable[Frame]) -> Frame:
    """The smallest frame around all ``frames``."""
    lefts, tops, rights, bottoms = zip(*frames, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def to_box(page: int, frame: Sequence[float]) -> Box:
    """``frame`` on ``page`` as stored, rounded to tenths of a point."""
    return Box(page, *(round(value, 1) for value in frame))


def join_row(row: Sequence[Piece]) -> Piece:
    """Join the pieces of one printed row, with the face of the longest one."""
    most = max(row, key=lambda piece: len(piece.text))
    x0, y0, x1, y1 = (round(value, 1) for value in enclose(piece.frame for piece in row))
    boxes = [piece.box for piece in row if piece.box]
    box = Box(boxes[0].page, *enclose((box.x0, box.y0, box.x1, box.y1) for box in boxes)) if boxes else None
    sure = mean_confidence(row)
    text = row[0].text
    for before, piece in itertools.pairwise(row):
        small = piece.size < SUPERSCRIPT_SHARE * before.size
        if piece.x0 - before.x1 > 0.5 * piece.size:  # also between two Chinese words
            text = f"{text} {piece.text}"
        elif small and piece.text.isdigit() and piece.y1 < before.y1 - 0.2 * before.size:
            text += piece.text.translate(_SUPERSCRIPTS)  # MuPDF made a line of a raised number
        else:
            text = join_runs(text, piece.text)
    return replace(
        most, x0=x0, y0=y0, x1=x1, y1=y1, text=text, bold=all(piece.bold for piece in row), box=box,
        faces=frozenset(face for piece in row for face in piece.faces), ocr=None if sure is None else round(sure, 3),
    )  # fmt: skip


def mean_confidence(pieces: Sequence[Piece]) -> float | None:
    """The mean OCR confidence of ``pieces``, weighted by characters; None without OCR."""
    read = [(piece.ocr, len(piece.text)) for piece in pieces if piece.ocr is not None]
    return sum(sure * length for sure, length in read) / sum(length for _, length in read) if read else None


def clean_text(text: str) -> str:
    """Remove hidden characters, repeated spaces, and soft hyphens, except one at the end, which becomes a hyphen."""
    text = re.sub(r"\xad(?!\s*$)", "", text).replace("\xad", "-").translate(_CLEAN)
    text = _LEADERS.sub(" … ", text)
    if len(text) > 1 and not is_cjk(text[1]):
        text = _BULLET.sub(r"\1 ", text)
    return _CJK_SPACE.sub("", re.sub(r" {2,}", " ", text)).strip()


def is_cjk(character: str) -> bool:
    """Whether ``character`` is Chinese, Japanese or full-width, and so takes no word space."""
    return bool(_CJK.match(character))


def join_runs(first: str, second: str) -> str:
    """Join two neighbouring runs of one row: a space between words, nothing between Chinese characters."""
    if not first or not second or (is_cjk(first[-1]) and is_cjk(second[0])):
        return first + second
    return f"{first} {second}"


def read_pieces(page: Any, cell_of: CellOf | None = None) -> list[Piece]:
    """Read the pieces of ``page`` in no particular order; text that is printed twice counts once."""
    matrix = page.rotation_matrix
    blocks = page.get_text("rawdict", flags=FLAGS, sort=False)["blocks"]
    lines = _insert_marks([line for block in blocks for line in block.get("lines", ())])
    pieces = [piece for line in lines for piece in _line_pieces(line, matrix, cell_of)]
    # columns behind gutters so narrow that MuPDF joined lines across them
    frames = [piece.frame for piece in pieces if piece.upright]
    tall = median([y1 - y0 for _, y0, _, y1 in frames] or [0.0])
    edges = [
        edge
        for _, edge, _, _ in gutters(frames, tall)
        if any(x0 < edge - tall < edge + tall < x1 for x0, _, x1, _ in frames)
    ]
    if edges:
        pieces = [piece for line in lines for piece in _line_pieces(line, matrix, cell_of, edges)]
    return _drop_echoes(pieces)


def _insert_marks(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Insert small figures and signs, of which MuPDF may make lines, into the gaps of ``lines`` where they belong.

    Otherwise "1.73 m² is" would be read as "1.73 m is 2". Letters stay apart, because they could change a word.
    """
    level = [line for line in lines if tuple(line["dir"]) == (1.0, 0.0)]
    short = [line for line in level if sum(len(span["chars"]) for span in line["spans"]) <= MARK_CHARACTERS]
    for mark in [line for line in short if not any(char["c"].isalpha() for char, _ in _chars(line))][:MOST_MARKS]:
        host = next((line for line in level if _has_room(line, mark)), None)
        if host is not None:
            raised = mark["bbox"][3] < host["bbox"][3] - 0.2 * host["spans"][0]["size"]
            both = [*_chars(host), *((char, {**span, "raised": raised}) for char, span in _chars(mark))]
            both.sort(key=lambda one: one[0]["bbox"][0])
            host["spans"] = [{**span, "chars": [char]} for char, span in both]
            lines = [line for line in lines if line is not mark]
    return lines


def _chars(line: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(char, span) for span in line["spans"] for char in span["chars"]]


def _has_room(line: dict[str, Any], mark: dict[str, Any]) -> bool:
    (x0, y0, x1, y1), (left, top, right, bottom) = mark["bbox"], line["bbox"]
    if not (left < x0 and x1 < right and top < (y0 + y1) / 2 < bottom):
        return False
    small = mark["spans"][0]["size"] <= MARK_SIZE * line["spans"][0]["size"]
    return small and not any(x0 < sum(char["bbox"][::2]) / 2 < x1 for char, _ in _chars(line) if char["c"] != " ")


def _drop_echoes(pieces: list[Piece]) -> list[Piece]:
    """Remove text that is printed a second time over itself, as shadow or fake bold."""
    rows: dict[int, list[tuple[Piece, str]]] = {}
    kept = []
    for piece in sorted(pieces, key=lambda one: -len(one.text)):
        row, text = int(piece.middle // ECHO_ROW), "".join(piece.text.split())
        near = [other for number in (row - 1, row, row + 1) for other in rows.get(number, ())]
        if not any(text in printed and _printed_over(piece, other) for other, printed in near):
            kept.append(piece)
            rows.setdefault(row, []).append((piece, text))
    places = {id(piece) for piece in kept}
    return [piece for piece in pieces if id(piece) in places]


def _printed_over(piece: Piece, other: Piece) -> bool:
    """Whether ``piece`` lies on ``other``, moved by less than half a letter; a mark of any size lies inside it."""
    slack = ECHO * other.size
    inside = other.x0 - slack <= piece.x0 and piece.x1 <= other.x1 + slack
    if len(piece.text) == 1 and piece.text == other.text[0] and other.x0 <= piece.x0 < piece.x1 <= other.x1:
        return abs(piece.middle - other.middle) <= 4 * SAME_PLACE
    shift = max(abs(piece.y0 - other.y0), abs(piece.y1 - other.y1))
    return inside and shift <= slack and piece.turn == other.turn and abs(piece.size - other.size) < 0.05 * other.size


@dataclass(slots=True)
class _Run:
    """The characters of one piece: text, places, and the number of characters of each face."""

    cell: Cell | None = None
    text: list[str] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    faces: Counter[tuple[float, str, bool]] = field(default_factory=Counter)
    letters: Counter[Face] = field(default_factory=Counter)
    white: bool = True
    last: Frame = (0.0, 0.0, 0.0, 0.0)

    def add(self, character: str, frame: Frame) -> None:
        """Add ``character``; an accent printed over a letter, before or after it, becomes one character with it."""
        both = _combine_accent(self.text[-1], character) if self.text else ""
        if both and min(self.last[2], frame[2]) - max(self.last[0], frame[0]) > OVERPRINT * (frame[2] - frame[0]):
            self.text[-1] = both
        else:
            self.text.append(character)
        self.last = frame

    def piece(self, turn: int) -> Iterator[Piece]:
        """The piece, if there is any text."""
        text = clean_text("".join(self.text))
        if text and self.frames:
            size, family, _ = max(self.faces, key=lambda face: self.faces[face])
            bold = all(face[2] for face in self.faces)  # a bold word within a line does not make the line a heading
            faces = frozenset(face for face, count in self.letters.items() if count >= FACE_LETTERS)
            yield Piece(*enclose(self.frames), text, family, bold, turn, self.cell, self.white, faces, size=size)


def _line_pieces(
    line: dict[str, Any], matrix: Any, cell_of: CellOf | None, edges: Sequence[float] = ()
) -> Iterator[Piece]:
    turn, spans = _turn_of(line["dir"], matrix), line["spans"]
    tallest = max((span["size"] for span in spans), default=0.0)
    run, end = _Run(), None
    for span in spans:
        size, font = span["size"], span["font"].partition("+")[2] or span["font"]
        family = re.split(r"[-,]", font)[0].removesuffix("MT").removesuffix("PS")
        bold = bool(span["flags"] & BOLD or span.get("char_flags", 0) & SYNTHETIC_BOLD)
        face = (round(size, 1), family, bold)
        raised = span.get("raised", span["flags"] & SUPERSCRIPT and size < SUPERSCRIPT_SHARE * tallest)
        for char in span["chars"]:
            frame = display_frame(char["bbox"], matrix)
            cell = cell_of((frame[0] + frame[2]) / 2, (frame[1] + frame[3]) / 2) if cell_of else None
            blank = char["c"].isspace()
            gap = 0.0 if end is None or turn else frame[0] - end
            narrow = gap > NARROW_EMS * size and any(abs(frame[0] - edge) < SAME_PLACE for edge in edges)
            if run.text and not blank and (gap > GAP_EMS * size or narrow or cell is not run.cell):
                yield from run.piece(turn)
                run = _Run(cell)
            if not blank:
                run.cell, end = cell, frame[2]
                run.white = run.white and span["color"] == WHITE
                run.frames.append(frame)
                run.faces[face] += 1
                if char["c"].isalpha():
                    run.letters[is_cjk(char["c"]), *face[:2]] += 1
            run.add(char["c"].translate(_SUPERSCRIPTS) if raised else char["c"], frame)
    yield from run.piece(turn)


def _combine_accent(first: str, second: str) -> str:
    """A bare accent and a letter combined, in either order; "" if there is no such character."""
    accent, letter = (first, second) if first in _ACCENTS else (second, first)
    if accent not in _ACCENTS or not letter.isalpha():
        return ""
    both = unicodedata.normalize("NFC", ("i" if letter == "ı" else letter) + _ACCENTS[accent])
    return both if len(both) == 1 else ""


def _turn_of(direction: Sequence[float], matrix: Any) -> int:
    x = direction[0] * matrix.a + direction[1] * matrix.c
    y = direction[0] * matrix.b + direction[1] * matrix.d
    if abs(y) <= abs(x):
        return 0 if x > 0 else 180
    return 90 if y < 0 else 270


def display_frame(box: Sequence[float], matrix: Any) -> Frame:
    """``box`` on the page as displayed; plain arithmetic, because a page has thousands of characters."""
    ax, ay = box[0] * matrix.a + box[1] * matrix.c + matrix.e, box[0] * matrix.b + box[1] * matrix.d + matrix.f
    bx, by = box[2] * matrix.a + box[3] * matrix.c + matrix.e, box[2] * matrix.b + box[3] * matrix.d + matrix.f
    return min(ax, bx), min(ay, by), max(ax, bx), max(ay, by)
