"""The characters of one PDF page as clean, placed pieces of printed lines.

Rules: coordinates are those of the page as it is displayed (its rotation applied), in points, origin top left. A piece
is a run of characters on one baseline; it ends at a gap too wide for a word space and at the border of a table cell,
because MuPDF joins neighbouring cells that touch. Stored text is not NFKC-normalised, but what breaks search or hides
meaning is repaired: control, zero-width and bidirectional characters go, ligatures are spelt out, radicals that stand
for Chinese characters become them, symbol-font bullets become bullets, and small raised digits become Unicode
superscripts, so that 10 to the sixth is not read as 106.

Not covered: text drawn as outlines or images (the page then has no pieces), and right-to-left scripts.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import pymupdf

from localmed.ingest.ocr.gutters import gutters

GAP_EMS = 1.0  # justified lines stretch word spaces to about 0.8 em; column gutters are 1 em and more
NARROW_EMS = 0.4  # where a column begins: narrower is a word space
SUPERSCRIPT_SHARE = 0.8  # a raised digit is set at 60-70 % of its line; full-size raised text is a table's own offset
MARK_CHARACTERS, MOST_MARKS = 4, 500  # of a mark, and on a page
MARK_SIZE = 0.9  # of its line's type, at most
FACE_LETTERS = 2  # raised notes are figures or one letter
OVERPRINT = 0.5  # of its width: an accent printed over its letter, as typesetting programs do
SAME_PLACE = 1.5  # points; fake bold prints a line twice within a point
ECHO = (
    0.4  # of the type size, by which a second print of a line is moved: shadows are, lines of a paragraph 1.0 and more
)
ECHO_ROW = 12.0  # points, the height in which second prints are looked for
WHITE = 0xFFFFFF
KIND_FLAGS = {"superscript": 1, "bold": 16}  # span flags, PyMuPDF
SYNTHETIC_BOLD = 8  # char_flags: bold by name or by stroking

FLAGS = (
    pymupdf.TEXTFLAGS_RAWDICT
    & ~pymupdf.TEXT_PRESERVE_LIGATURES
    & ~pymupdf.TEXT_PRESERVE_IMAGES
    & ~pymupdf.TEXT_CID_FOR_UNKNOWN_UNICODE  # an unknown glyph must show as unreadable, not as a random letter
)

_SUPERSCRIPTS = str.maketrans("0123456789+-−()", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁾")
_SYMBOLS = {0xF0B7: "•", 0xF0A7: "▪", 0xF0D8: "➢", 0xF0FC: "✓", 0xF06F: "□", 0xF0A8: "□", 0xF0FE: "☑", 0xF06C: "●"}
_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}
_RADICALS = {point: unicodedata.normalize("NFKC", chr(point)) for point in range(0x2E80, 0x2FE0)}
# The supplement's radicals have no NFKC mapping; those that are whole characters, after EquivalentUnifiedIdeograph.
_RADICALS |= dict(
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
_CLEAN: dict[int, str | None] = {**_DROPPED, **_SYMBOLS, **_LIGATURES, **_RADICALS, **_SPACES}
_CJK = re.compile(r"[⺀-〿぀-ヿ㐀-䶿一-鿿豈-﫿＀-￯]")

_LEADERS = re.compile(r"\s*(?:[.·…]\s?){5,}")
# Word processors set figures among Chinese with a little air, which MuPDF reports as a space here and not there.
_CJK_SPACE = re.compile(r"(?<=[㐀-䶿一-鿿]) (?=[\d、-】！-，：-？])|(?<=[\d%℃、-】！-，：-？]) (?=[㐀-䶿一-鿿])")

Face = tuple[bool, float, str]  # script is Chinese, size in points, family
_ACCENTS = dict(
    zip("`´ˆ˜¨˚ˇ¸˘˙˝˛¯", "\u0300\u0301\u0302\u0303\u0308\u030a\u030c\u0327\u0306\u0307\u030b\u0328\u0304", strict=True)
)
_BULLET = re.compile(r"^([•▪●■□❑☐☑✓➢◦◆►])(?=[^\W_])")

CellOf = Callable[[float, float], int]  # the table cell at a point of the page, -1 outside tables


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of characters on one baseline, with the face that most of it is set in.

    ``faces`` are those that set ``FACE_LETTERS`` or more letters of one script: a row may begin bold and small and go
    on as running text. ``turn`` is by how many degrees the page must be turned clockwise for it to read from left to
    right; ``cell`` is the table cell it stands in, -1 outside tables; ``white`` text may be there to be hidden.
    """

    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    size: float
    family: str = ""
    bold: bool = False
    turn: int = 0
    cell: int = -1
    white: bool = False
    faces: frozenset[Face] = frozenset()

    @property
    def upright(self) -> bool:
        """Whether it reads from left to right on the page as displayed."""
        return self.turn == 0

    @property
    def middle(self) -> float:
        """The height of its middle on the page."""
        return (self.y0 + self.y1) / 2


def cleaned(text: str) -> str:
    """``text`` without characters that hide or break, spaces single; a soft hyphen stays a hyphen at the end only."""
    text = re.sub(r"\xad(?!\s*$)", "", text).replace("\xad", "-").translate(_CLEAN)
    text = _LEADERS.sub(" … ", text)
    if len(text) > 1 and not is_cjk(text[1]):
        text = _BULLET.sub(r"\1 ", text)
    return _CJK_SPACE.sub("", re.sub(r" {2,}", " ", text)).strip()


def is_cjk(character: str) -> bool:
    """Whether ``character`` is Chinese, Japanese or full-width, and so takes no word space."""
    return bool(_CJK.match(character))


def joined(first: str, second: str) -> str:
    """Two neighbouring runs of one row as one: a space between words, nothing between Chinese characters."""
    if not first or not second or (is_cjk(first[-1]) and is_cjk(second[0])):
        return first + second
    return f"{first} {second}"


def row_text(row: Sequence[Piece]) -> str:
    """The pieces of one printed row as one text: wide white between two Chinese words is a space too."""
    text = ""
    for index, piece in enumerate(row):
        wide = index > 0 and piece.x0 - row[index - 1].x1 > 0.5 * piece.size
        if index and not wide and _raised(piece, row[index - 1]):
            text += piece.text.translate(_SUPERSCRIPTS)
        else:
            text = f"{text} {piece.text}" if wide else joined(text, piece.text)
    return text


def _raised(piece: Piece, before: Piece) -> bool:
    """Whether ``piece`` is a small raised number after ``before`` that MuPDF took for a line of its own."""
    small = piece.size < SUPERSCRIPT_SHARE * before.size
    return small and piece.text.isdigit() and piece.y1 < before.y1 - 0.2 * before.size


def page_pieces(page: Any, cell_of: CellOf | None = None) -> list[Piece]:
    """The pieces of ``page`` in no particular order, each printed text once."""
    matrix = page.rotation_matrix
    blocks = page.get_text("rawdict", flags=FLAGS, sort=False)["blocks"]
    lines = _with_marks([line for block in blocks for line in block.get("lines", ())])
    pieces = [piece for line in lines for piece in _line_pieces(line, matrix, cell_of)]
    if edges := _edges(pieces):
        pieces = [piece for line in lines for piece in _line_pieces(line, matrix, cell_of, edges)]
    by_place: dict[tuple[str, int, int], Piece] = {}
    for piece in pieces:
        by_place.setdefault((piece.text, round(piece.x0 / SAME_PLACE), round(piece.y0 / SAME_PLACE)), piece)
    return _without_echoes(list(by_place.values()))


def _with_marks(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """``lines`` with small figures and signs set in where room was left for them; MuPDF may make lines of them.

    Read after its line, "1.73 m² is" would be "1.73 m is 2". Letters stay apart, or they would change a word.
    """
    level = [line for line in lines if tuple(line["dir"]) == (1.0, 0.0)]
    short = [line for line in level if sum(len(span["chars"]) for span in line["spans"]) <= MARK_CHARACTERS]
    for mark in [line for line in short if not any(char["c"].isalpha() for char, _ in _chars(line))][:MOST_MARKS]:
        host = next((line for line in level if _has_room(line, mark)), None)
        if host is not None:
            host["spans"] = _marked(host, mark)
            lines = [line for line in lines if line is not mark]
    return lines


def _chars(line: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The characters of ``line``, each with its span."""
    return [(char, span) for span in line["spans"] for char in span["chars"]]


def _has_room(line: dict[str, Any], mark: dict[str, Any]) -> bool:
    (x0, y0, x1, y1), (left, top, right, bottom) = mark["bbox"], line["bbox"]
    if not (left < x0 and x1 < right and top < (y0 + y1) / 2 < bottom):
        return False
    small = mark["spans"][0]["size"] <= MARK_SIZE * line["spans"][0]["size"]
    return small and not any(x0 < sum(char["bbox"][::2]) / 2 < x1 for char, _ in _chars(line) if char["c"] != " ")


def _marked(line: dict[str, Any], mark: dict[str, Any]) -> list[dict[str, Any]]:
    """The spans of ``line`` with those of ``mark`` in their place."""
    raised = mark["bbox"][3] < line["bbox"][3] - 0.2 * line["spans"][0]["size"]
    both = [*_chars(line), *((char, {**span, "raised": raised}) for char, span in _chars(mark))]
    return [{**span, "chars": [char]} for char, span in sorted(both, key=lambda one: one[0]["bbox"][0])]


def _edges(pieces: Sequence[Piece]) -> list[float]:
    """Where columns begin whose gutter is so narrow that MuPDF joined lines over it."""
    frames = [(piece.x0, piece.y0, piece.x1, piece.y1) for piece in pieces if piece.upright]
    tall = median([y1 - y0 for _, y0, _, y1 in frames] or [0.0])
    edges = [right for _, right, _, _ in gutters(frames, tall)]
    return [edge for edge in edges if any(x0 < edge - tall < edge + tall < x1 for x0, _, x1, _ in frames)]


def _without_echoes(pieces: list[Piece]) -> list[Piece]:
    """``pieces`` without what is printed a second time over a piece that says it already, as shadows and fake bold."""
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
    """Whether ``piece`` stands on ``other``, moved by less than half a letter; a mark of any size stands inside it."""
    slack = ECHO * other.size
    inside = other.x0 - slack <= piece.x0 and piece.x1 <= other.x1 + slack
    if len(piece.text) == 1 and piece.text == other.text[0] and other.x0 <= piece.x0 < piece.x1 <= other.x1:
        return abs(piece.middle - other.middle) <= 4 * SAME_PLACE
    shift = max(abs(piece.y0 - other.y0), abs(piece.y1 - other.y1))
    return inside and shift <= slack and piece.turn == other.turn and abs(piece.size - other.size) < 0.05 * other.size


@dataclass(slots=True)
class _Run:
    """Characters gathered for one piece: text and box, and how many characters each face set."""

    cell: int
    text: list[str]
    boxes: list[Any]
    faces: dict[tuple[float, str, bool], int]
    letters: Counter[Face] = field(default_factory=Counter)
    white: bool = True
    last: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)

    def add(self, character: str, box: tuple[float, float, float, float]) -> None:
        """Add ``character``; an accent printed over a letter, before or after it, becomes one character with it."""
        both = _accented(self.text[-1], character) if self.text else ""
        if both and min(self.last[2], box[2]) - max(self.last[0], box[0]) > OVERPRINT * (box[2] - box[0]):
            self.text[-1] = both
        else:
            self.text.append(character)
        self.last = box


def _line_pieces(
    line: dict[str, Any], matrix: Any, cell_of: CellOf | None, edges: Sequence[float] = ()
) -> Iterator[Piece]:
    turn = _turn(line["dir"], matrix)
    for run in _runs(line["spans"], matrix, cell_of, turn == 0, edges):
        piece = _piece(run, turn)
        if piece is not None:
            yield piece


def _accented(first: str, second: str) -> str:
    """The two as one character where one is a bare accent and the other a letter that can carry it, else ""."""
    accent, letter = (first, second) if first in _ACCENTS else (second, first)
    if accent not in _ACCENTS or not letter.isalpha():
        return ""
    both = unicodedata.normalize("NFC", ("i" if letter == "ı" else letter) + _ACCENTS[accent])
    return both if len(both) == 1 else ""


def _turn(direction: Sequence[float], matrix: Any) -> int:
    x = direction[0] * matrix.a + direction[1] * matrix.c
    y = direction[0] * matrix.b + direction[1] * matrix.d
    if abs(y) <= abs(x):
        return 0 if x > 0 else 180
    return 90 if y < 0 else 270


def _runs(
    spans: list[dict[str, Any]], matrix: Any, cell_of: CellOf | None, upright: bool, edges: Sequence[float] = ()
) -> Iterator[_Run]:
    tallest = max((span["size"] for span in spans), default=0.0)
    run = _Run(-1, [], [], {})
    end = None
    for span in spans:
        face = (round(span["size"], 1), _family(span["font"]), _bold(span))
        raised = bool(span["flags"] & KIND_FLAGS["superscript"]) and span["size"] < SUPERSCRIPT_SHARE * tallest
        raised = span.get("raised", raised)
        for char in span["chars"]:
            box = shown_box(char["bbox"], matrix)
            cell = cell_of((box[0] + box[2]) / 2, (box[1] + box[3]) / 2) if cell_of else -1
            blank = char["c"].isspace()
            gap = end is not None and upright and not blank and _parted(box[0], end, span["size"], edges)
            if run.text and (gap or (cell != run.cell and not blank)):
                yield run
                run = _Run(cell, [], [], {})
            if not blank:
                run.cell, end = cell, box[2]
                run.white = run.white and span["color"] == WHITE
                run.boxes.append(box)
                run.faces[face] = run.faces.get(face, 0) + 1
                if char["c"].isalpha():
                    run.letters[is_cjk(char["c"]), *face[:2]] += 1
            run.add(char["c"].translate(_SUPERSCRIPTS) if raised else char["c"], box)
    yield run


def _parted(start: float, end: float, size: float, edges: Sequence[float]) -> bool:
    """Whether what ends at ``end`` and what begins at ``start`` are two runs; at an edge of columns they soon are."""
    if start - end > NARROW_EMS * size and any(abs(start - edge) < SAME_PLACE for edge in edges):
        return True
    return start - end > GAP_EMS * size


def _piece(run: _Run, turn: int) -> Piece | None:
    text = cleaned("".join(run.text))
    if not text or not run.boxes:
        return None
    size, family, _ = max(run.faces, key=lambda face: run.faces[face])
    bold = all(face[2] for face in run.faces)  # a bold word within a line does not make the line a heading
    x0, y0 = min(box[0] for box in run.boxes), min(box[1] for box in run.boxes)
    x1, y1 = max(box[2] for box in run.boxes), max(box[3] for box in run.boxes)
    faces = frozenset(face for face, count in run.letters.items() if count >= FACE_LETTERS)
    return Piece(text, x0, y0, x1, y1, size, family, bold, turn, run.cell, run.white, faces)


def shown_box(box: Sequence[float], matrix: Any) -> tuple[float, float, float, float]:
    """``box`` on the page as displayed; plain arithmetic, since a page has thousands of characters."""
    ax, ay = box[0] * matrix.a + box[1] * matrix.c + matrix.e, box[0] * matrix.b + box[1] * matrix.d + matrix.f
    bx, by = box[2] * matrix.a + box[3] * matrix.c + matrix.e, box[2] * matrix.b + box[3] * matrix.d + matrix.f
    return min(ax, bx), min(ay, by), max(ax, bx), max(ay, by)


def _family(font: str) -> str:
    return re.split(r"[-,]", font.partition("+")[2] or font)[0].removesuffix("MT").removesuffix("PS")


def _bold(span: dict[str, Any]) -> bool:
    return bool(span["flags"] & KIND_FLAGS["bold"]) or bool(span.get("char_flags", 0) & SYNTHETIC_BOLD)
