"""Gathers printed rows into paragraphs, finds headings, and joins paragraphs across columns and pages.

Rules: a new paragraph begins after a wide gap, at a change of size or face, at a list label, at an indent, and after a
short row that the next word would have fitted into. A heading is short and larger than the body, bold in a document
that is not, in a rare face, or numbered like a Chinese heading. A paragraph that stops in mid-sentence at the foot of a
column or page is joined with its continuation, over footnotes in smaller type.

Not covered: drop capitals, and verse.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from localmed.ingest import line_ends
from localmed.ingest.readers.pdf.layout import rows as printed_rows
from localmed.ingest.readers.pdf.text import SAME_SIZE, Piece, is_cjk, join_row

SMALLEST = 4.0  # points, least body size: smaller print is illegible, and sizes of 0 occur
WIDE_GAP = 1.3  # of the column's usual line distance
INDENT_EMS = 0.7
SHORT_ROW = 0.35  # of the column's width left white: the line was ended on purpose, whatever its last character
SLACK_EMS = 1.2  # white beyond the next word that makes a break intended
BIG = 1.12  # of the body size
HEADING_ROWS = 4
HEADING_CHARACTERS = 200
CJK_HEADING_CHARACTERS = 45
RARE_FACE = 0.2  # of the document's characters: a face used for less may mark headings
RARE_SIZE = 0.9  # of the body size: smaller print in another face is a caption
JOIN_OVER = 12  # footnotes between the two halves of a paragraph; government print has up to 8 in a column
BESIDE_EMS = 1.7  # from a line to the next; two lines on, it is more than twice the size
SAME_COLUMN = 2.0  # points between where its lines begin
APART_EMS = 4.0  # between the parts of one row: running text has no such gaps
FULL_ROW = 0.8  # of the column, above which a last row may continue elsewhere

SENTENCE_END = re.compile(r"[.!?:;。！？：；…][\"'”’）)\]」』⁰¹²³⁴⁵⁶⁷⁸⁹,]*$")
LABEL = re.compile(
    r"^(?:[•▪●■□❑☐☑✓➢◦○‣–—·*-]\s|[•▪●■□❑☐☑✓➢◦‣]"
    r"|(?:\d{1,2}(?:\.\d{1,2}){0,3}[.)]|\(?[a-zA-Z]\)|[a-zA-Z]\.|\(?[ivxIVX]{1,5}[.)]|\(\d{1,2}\)|\d{1,2}\.\d{1,2})\s?(?=\S|$)"
    r"|[①-⑳]|[（(][一二三四五六七八九十\d]{1,3}[）)]|[一二三四五六七八九十]{1,3}、|\d{1,2}[、．]|第[一二三四五六七八九十\d]{1,3}[章节条])"
)
_CJK_LEVELS = (
    re.compile(r"^(?:第[一二三四五六七八九十百\d]{1,3}[章篇]|附\s?录\s?\d{0,2}|附件\s?\d{0,2})"),
    re.compile(r"^(?:[一二三四五六七八九十]{1,3}、|第[一二三四五六七八九十\d]{1,3}节)"),
    re.compile(r"^[（(][一二三四五六七八九十]{1,3}[）)]"),
)
_CONTENTS = re.compile(r"…\s*\d+$")  # a line of a table of contents
_CAPTION = re.compile(r"^(?:表|图|Table|TABLE|Figure|FIGURE|Fig\.)\s?[\dA-Z]")


@dataclass(frozen=True, slots=True)
class Body:
    """The running text of a document; ``faces`` are the shares of (script is Chinese, family)."""

    size: float
    bold: bool
    faces: dict[tuple[bool, str], float]


@dataclass(slots=True)
class Paragraph:
    """Rows of one paragraph; ``left`` and ``right`` are the edges of their column."""

    rows: list[Piece]
    left: float
    right: float

    @property
    def text(self) -> str:
        """The joined text of its rows."""
        whole = line_ends.Joined()
        for row in self.rows:
            whole.add(row.text)
        return whole.text

    @property
    def size(self) -> float:
        """The size of most rows."""
        return Counter(row.size for row in self.rows).most_common(1)[0][0]

    @property
    def full(self) -> bool:
        """Whether the last row reaches the right edge, so that the paragraph may continue elsewhere."""
        return self.rows[-1].x1 >= self.left + FULL_ROW * (self.right - self.left)


def find_body(pieces: Iterable[Piece]) -> Body:
    """Find the size, weight and faces of the running text, by characters."""
    sizes: Counter[float] = Counter()
    bold: Counter[bool] = Counter()
    faces: Counter[tuple[bool, str]] = Counter()
    for piece in pieces:
        length = len(piece.text)
        sizes[round(piece.size * 2) / 2] += length
        bold[piece.bold] += length
        faces[piece.script, piece.family] += length
    total = max(1, faces.total())
    shares = {face: count / total for face, count in faces.items()}
    return Body(max(sizes.most_common(1)[0][0], SMALLEST) if sizes else SMALLEST, bold[True] > bold[False], shares)


def column_rows(pieces: Sequence[Piece]) -> list[Piece]:
    """The printed rows of one region, neighbouring pieces joined."""
    printed = printed_rows(pieces)
    rows = [
        replace(
            join_row(row),
            apart=any(right.x0 - left.x1 > APART_EMS * left.size for left, right in itertools.pairwise(row)),
        )
        for row in printed
    ]
    torn: set[int] = set()
    for index in range(1, len(rows) - 1):
        if _lies_between(*rows[index - 1 : index + 2]):
            torn |= {index - 1, index, index + 1}
            column = max(row.x0 for row in rows[index - 1 : index + 2])
            for step in (-1, 1):  # and the items of the list before and after
                at = index + 2 * step
                while 0 <= at < len(rows) and any(abs(piece.x0 - column) < SAME_COLUMN for piece in printed[at]):
                    torn.add(at)
                    at += step
    return [replace(row, between=True) if index in torn else row for index, row in enumerate(rows)]


def _lies_between(above: Piece, row: Piece, below: Piece) -> bool:
    """Whether ``row`` lies beside two lines of one text, as in two-column lists with centred items."""
    sizes = [above.size, row.size, below.size]
    if not row.upright or below.y1 - above.y1 > BESIDE_EMS * min(sizes) or min(sizes) < RARE_SIZE * max(sizes):
        return False
    left = row.x1 < min(above.x0, below.x0)
    return left or row.x0 > max(above.x1, below.x1)


def paragraphs(rows: Sequence[Piece]) -> list[Paragraph]:
    """Gather the rows of one region into paragraphs."""
    if not rows:
        return []
    left, right = min(row.x0 for row in rows), max(row.x1 for row in rows)
    steps = [
        (below.y1 - above.y1) / max(above.size, 1.0)
        for above, below in itertools.pairwise(rows)
        if abs(above.size - below.size) <= SAME_SIZE * above.size and below.y1 > above.y1
    ]
    pitch = min(median(steps), 2.2) if steps else 1.5  # usual distance between neighbouring rows, in ems
    gathered = [Paragraph([rows[0]], left, right)]
    for index in range(1, len(rows)):
        after = rows[index + 1] if index + 1 < len(rows) else None
        if _begins(gathered[-1], rows[index], after, pitch):
            gathered.append(Paragraph([], left, right))
        gathered[-1].rows.append(rows[index])
    return gathered


def _begins(current: Paragraph, row: Piece, after: Piece | None, pitch: float) -> bool:
    last = current.rows[-1]
    step = (row.y1 - last.y1) / max(last.size, row.size, 1.0)
    if step > WIDE_GAP * max(pitch, 1.0) or step < -1 or not row.upright or not last.upright:
        return True
    if not row.shares_size(last) or _face_changes(current, row):
        return True
    labelled = bool(LABEL.match(current.rows[0].text))
    if LABEL.match(row.text) and not _in_sentence(current, row, labelled):
        return True
    if labelled and row.x0 > current.rows[0].x0 + INDENT_EMS * row.size:
        return False  # hangs under its label
    if _CONTENTS.search(last.text):
        return True
    if _centred(current, last) and _centred(current, row):
        return False
    return _indented(current, row, after) or _left_short(current, row)


def _face_changes(current: Paragraph, row: Piece) -> bool:
    if row.bold != all(one.bold for one in current.rows):
        return row.bold or len(current.rows) <= HEADING_ROWS
    last = current.rows[-1]
    if row.shares_family(last) or (current.full and row.drawn and last.drawn):
        return False
    return row.cjk == last.cjk and all(one.family == last.family for one in current.rows)


def _in_sentence(current: Paragraph, row: Piece, labelled: bool) -> bool:
    """Whether the label of ``row`` is a number that wrapped in mid-sentence."""
    last = current.rows[-1]
    aligned = abs(row.x0 - last.x0) < INDENT_EMS * row.size
    same_level = labelled and len(current.rows) == 1
    return current.full and aligned and not SENTENCE_END.search(last.text) and not same_level


def _centred(current: Paragraph, row: Piece) -> bool:
    left, right = row.x0 - current.left, current.right - row.x1
    return left > 2 * row.size and abs(left - right) < row.size


def _indented(current: Paragraph, row: Piece, after: Piece | None) -> bool:
    """Whether ``row`` is indented like a first line, or outdented like a new item."""
    em = INDENT_EMS * row.size
    shift = row.x0 - current.rows[-1].x0
    if shift > em:
        hanging = len(current.rows) == 1 and (after is None or after.x0 > row.x0 - em)
        return not hanging or bool(SENTENCE_END.search(current.rows[-1].text) and not LABEL.match(current.rows[0].text))
    if abs(shift) < em and len(current.rows) == 1 and row.x0 > current.left + em:
        # Two rows indented alike: both are first lines if the text returns to the edge, or the first one ended.
        back = after is not None and after.x0 < row.x0 - em
        return bool(SENTENCE_END.search(current.rows[-1].text)) and (back or after is None)
    return shift < -em and len(current.rows) > 1


def _left_short(current: Paragraph, row: Piece) -> bool:
    """Whether the previous row was ended on purpose: the next word would have fitted."""
    last = current.rows[-1]
    white = current.right - last.x1
    word = row.size if row.text and is_cjk(row.text[0]) else 0.5 * row.size * len(row.text.split(" ", 1)[0])
    if white < word + SLACK_EMS * row.size:
        return False
    ended = bool(SENTENCE_END.search(last.text))
    return ended or (white > SHORT_ROW * (current.right - current.left) and not row.text[0].islower())


def is_heading(paragraph: Paragraph, body: Body) -> bool:
    """Whether the type and wording of ``paragraph`` are those of a heading."""
    text, rows = paragraph.text, paragraph.rows
    cjk = rows[0].cjk
    if len(rows) > HEADING_ROWS or sum(character.isalpha() for character in text) < 2 or not rows[0].upright:
        return False
    if _CONTENTS.search(text):
        return False
    if len(text) > (CJK_HEADING_CHARACTERS if cjk else HEADING_CHARACTERS) or _CAPTION.match(text):
        return False
    if cjk and chinese_level(text) and not re.search(r"[。；，：].", text):
        return True
    if re.search(r"[.。;；,，]$", text) or text[0] in "•▪●■□❑☐☑✓➢◦○‣" or "http" in text or "www." in text:
        return False
    if paragraph.size >= BIG * body.size:
        return True
    if not cjk and (text[0] == "[" or text.split()[0].islower()):
        return False  # a bold word or date that ended on a line of its own
    if paragraph.size < 0.8 * body.size:
        return False
    bold = all(row.bold for row in rows) and not body.bold
    if cjk and re.search(r"[，。；]", text):
        return False
    rare = all(body.faces.get((row.cjk, row.family), 0.0) < RARE_FACE for row in rows) and len(text) <= 100
    return bold or (rare and not text.endswith((":", "：")) and paragraph.size >= RARE_SIZE * body.size)


def chinese_level(text: str) -> int:
    """1 for a chapter or appendix, 2 for ``一、``, 3 for ``（一）``, else 0."""
    return next((level for level, pattern in enumerate(_CJK_LEVELS, 1) if pattern.match(text)), 0)


def levels(headings: Sequence[Paragraph], body: Body) -> list[int]:
    """The level of each heading, 1 to 3: by Chinese numbering, else by size, the largest first."""
    counts = Counter(round(one.size, 1) for one in headings if one.size >= BIG * body.size)
    often = [size for size, count in counts.items() if count > 1]  # sizes unique to a title page are no levels
    ranks: list[float] = []
    for size in sorted(often or counts, reverse=True):
        if not ranks or size < ranks[-1] * (1 - SAME_SIZE):
            ranks.append(size)
    numbers: list[int] = []
    for heading in headings:
        rank = sum(size > heading.size * (1 + SAME_SIZE) for size in ranks) + 1
        numbered = chinese_level(heading.text) if heading.rows[0].cjk else 0
        numbers.append(numbered or min(rank, 3))
    return numbers


def _continues(first: Paragraph, second: Paragraph) -> bool:
    last, start = first.rows[-1], second.rows[0]
    if not (last.upright and start.upright) or abs(last.size - start.size) > SAME_SIZE * last.size:
        return False
    if last.apart or start.apart:
        return False
    if SENTENCE_END.search(last.text) or LABEL.match(start.text) or last.cjk != start.cjk:
        return False
    same_family = last.family == start.family or (last.drawn and start.drawn)
    if last.bold != start.bold or not (same_family or start.text[0].islower()):
        return False
    indented = start.x0 - second.left > INDENT_EMS * start.size
    if start.cjk:
        return first.full and not indented
    return start.text[0].islower() or last.text.endswith("-") or (first.full and not indented)


def join_over_breaks(parts: Sequence[Paragraph | None], opens: set[int]) -> None:
    """Join split paragraphs among ``parts``. ``opens`` are the indexes at which a column or page begins.

    ``None`` is a heading or a table row; nothing is joined across it.
    """
    places = sorted(opens)
    for index, after in itertools.pairwise([*places, len(parts)]):
        second = parts[index] if index < len(parts) else None
        if second is None or not second.rows:
            continue
        before = _half_before(parts, index, second.rows[0].size)
        if before is not None and _continues(before, second):
            _append(before, second)
        _join_note(parts, index, after)


def _append(first: Paragraph, second: Paragraph) -> None:
    first.rows = first.rows + second.rows
    first.left, first.right = second.left, second.right
    second.rows = []


def _join_note(kept: Sequence[Paragraph | None], index: int, after: int) -> None:
    """Join a footnote that stops in mid-sentence before ``index`` with its continuation before ``after``."""
    first = next((one for one in reversed(kept[:index]) if one is None or one.rows), None)
    column = [one for one in kept[index:after] if one is not None and one.rows]
    if first is None or not column or first.size > column[0].size * (1 - SAME_SIZE):
        return
    second = next((one for one in column if one.rows[0].shares_size(first.rows[-1])), None)
    if second is not None and second.rows[0].text[0].islower() and _continues(first, second):
        _append(first, second)


def _half_before(kept: Sequence[Paragraph | None], index: int, size: float) -> Paragraph | None:
    for place in range(index - 1, max(-1, index - 1 - JOIN_OVER), -1):
        one = kept[place]
        if one is None:
            return None
        if one.rows and one.size > size * (1 - SAME_SIZE):
            return one
    return None
