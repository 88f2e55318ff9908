"""Reads PDF pages by OCR into the same pieces that text pages consist of.

Rules: a skewed scan is straightened before its lines are ordered. Similar type sizes count as one, because the height
of a line's box depends on its letters. Uncertain lines are left out and counted. The page's own text stays (engines
lose raised figures), and OCR adds lines elsewhere where it reads clearly more. Only a text layer that is garbled, or
that disagrees with a sample of its lines, is replaced. A page that OCR fails on is named and keeps its text.

Not covered: text in figures of pages that have text of their own.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from statistics import median

import pymupdf

from localmed.config import ReadBounds
from localmed.domain import message
from localmed.ingest.ocr import child as ocr
from localmed.ingest.ocr.child import Frame
from localmed.ingest.ocr.pages import TRIES, Failure, Ocr, Scan, Seen
from localmed.ingest.parsed import Working
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
from localmed.ingest.readers.pdf.page import FOREIGN, NO_TEXT, ODD, UNTRUE, Page, is_odd
from localmed.ingest.readers.pdf.text import Piece, clean_text, enclose, is_cjk, mean_confidence, to_box

# --- does the text layer match the printed page? ----------------------------------------------------------------------

# OCR reads up to ``SAMPLE`` lines of a doubtful layer (``page.py``), lines with figures first: a wrong amount does more
# harm than a wrong letter. Uncertain readings do not count. A wrong letter outside the sample stays.

SAMPLE = 12  # lines of a page, ~0.2 s each
NUMBERED = 8  # of them with figures
SHORTEST = 3  # letters and figures; excludes page numbers and marks
SURE = 0.8  # least confidence of a reading that counts
ENOUGH = 2  # lines
ALIKE = 0.93  # share of common letters and figures, mean of the lines; sound layers of scans have > 0.97
FEW_NUMBERED = 4  # lines with figures: one difference refutes a smaller sample, two a larger one


def _sample_lines(page: Page) -> list[Piece]:
    upright = [piece for piece in page.pieces if piece.upright]
    if page.doubt == ODD:
        return _spread([piece for piece in upright if is_odd(piece.text)], SAMPLE)
    lines = [piece for piece in upright if len(_plain(piece.text)) >= SHORTEST]
    chosen = _spread([line for line in lines if _numbers(line.text)], NUMBERED)
    return chosen + _spread([line for line in lines if not _numbers(line.text)], SAMPLE - len(chosen))


def _spread(lines: Sequence[Piece], most: int) -> list[Piece]:
    return [lines[number * len(lines) // most] for number in range(most)] if len(lines) > most else list(lines)


def _judge_layer(page: Page, lines: Sequence[Piece], readings: Sequence[tuple[str, float]] | Failure) -> Page:
    """``page`` after OCR of ``lines``: confirmed, in need of OCR (``needs``), or with a remark."""
    settled = replace(page, doubt=None)
    if isinstance(readings, Failure):
        return _mark_unchecked(page)
    pairs = [(line.text, text) for line, (text, sure) in zip(lines, readings, strict=False) if sure >= SURE]
    if len(pairs) < ENOUGH:
        return _mark_unchecked(page) if page.doubt == FOREIGN else settled
    plain = [(_plain(own), _plain(read)) for own, read in pairs]
    alike = sum(max(map(len, both)) * SequenceMatcher(None, *both, autojunk=False).ratio() for both in plain)
    alike /= max(1, sum(max(map(len, both)) for both in plain))
    numbered = [(_numbers(own), _numbers(read)) for own, read in pairs if _numbers(own + read)]
    wrong = sum(own != read for own, read in numbered)
    if alike < ALIKE or wrong > 1 or (wrong and len(numbered) < FEW_NUMBERED):
        return replace(settled, needs=page.doubt)
    if wrong:
        return replace(settled, remarks=(*page.remarks, message("ocr.unlike", count=wrong, compared=len(pairs))))
    return settled


def _mark_unchecked(page: Page) -> Page:
    """``page`` with a remark that its layer could not be compared."""
    return replace(page, doubt=None, remarks=(*page.remarks, message("ocr.unchecked", why=page.doubt or FOREIGN)))


def _plain(text: str) -> str:
    return "".join(one for one in unicodedata.normalize("NFKC", text).casefold() if one.isalnum())


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d+", unicodedata.normalize("NFKC", text))


# --- pages by OCR -----------------------------------------------------------------------------------------------------

LEAST_CONFIDENCE = 0.6  # of a line; specks, logos and handwriting score lower
DOUBTFUL = 0.85  # mean confidence below which a page needs a look; sound scans have > 0.95
MORE = 1.5  # times the characters of the page's own text, for OCR to add anything
COVERED = 0.5  # share of an OCR line's length under the page's own text; a less covered line is new text
SAME_ROW = 0.5  # of the lower of two boxes, that they must share
LONG = 3.0  # width over height of a line that shows the slant of its page
TYPE_SIZE = 0.85  # of the height of a line's box, which extends from above the capitals to below the g
MARGIN = 0.2  # of a line's height, by which its box is too wide: columns stand closer than boxes can
ROUGH = 0.3  # share by which boxes of one type size differ
SIZE_STEP = 0.25  # of the body size, for larger and smaller type


@dataclass(frozen=True, slots=True)
class _Straight:
    """A scanned page without its slant: lines, printed rules, and its size in points."""

    lines: tuple[Piece, ...]
    rules: tuple[Frame, ...]
    width: float
    height: float


def read_scans(
    path: Path, pages: list[Page], bounds: ReadBounds, engine: Ocr | None = None, kept: Path | None = None
) -> Iterator[Working]:
    """Replace those of ``pages`` that need OCR, where it is enabled and installed; yield before each such page.

    A page with a doubtful text layer is compared first. ``kept`` is a folder for OCR results.
    """
    if not bounds.ocr or not (engine or ocr.installed()):
        pages[:] = [_mark_unchecked(page) if page.doubt else page for page in pages]
        return
    scans = [index for index, page in enumerate(pages) if page.needs or page.doubt]
    if not scans:
        return
    straightened: dict[int, _Straight] = {}
    with closing(engine or Ocr(bounds, kept=kept)) as reader:
        for index in scans:
            page = pages[index]
            if page.doubt:
                yield Working(page.number, len(pages), ocr=True)
                chosen, turn = _sample_lines(page), page.turn // 90
                places = [(box.x0, box.y0, box.x1, box.y1, turn) for line in chosen if (box := line.box)]
                page = pages[index] = _judge_layer(page, chosen, reader.lines(path, page.number, places))
                if not page.needs:
                    continue
            for _ in range(TRIES):
                yield Working(page.number, len(pages), ocr=True)
                scan = reader.read(path, page.number)
                if isinstance(scan, Scan) or not scan.again:
                    break
            pages[index], straight = _apply_scan(page, scan)
            if straight:
                straightened[index] = straight
    size, families = _typical_type(pages, [line for straight in straightened.values() for line in straight.lines])
    for index, straight in straightened.items():
        pieces = [*pages[index].pieces, *(_set_type(line, size, families) for line in straight.lines)]
        placed, grids, separators = place_in_tables(pieces, straight.rules, straight.width, straight.height)
        pages[index] = replace(pages[index], pieces=tuple(placed), grids=tuple(grids), separators=separators)


def _apply_scan(page: Page, scan: Scan | Failure) -> tuple[Page, _Straight | None]:
    """``page`` after OCR, and the OCR text if it is used."""
    needs = page.needs or NO_TEXT
    if isinstance(scan, Failure):
        return replace(page, flaw=message("ocr.failed", needs=needs, why=scan.why), lost=True), None
    every = _straighten(scan, page.number)
    sure = [line for line in every.lines if line.ocr is not None and line.ocr >= LEAST_CONFIDENCE]
    own = [] if page.needs in UNTRUE else [_move_to_scan(piece, page, scan) for piece in page.pieces]
    lines = tuple(line for line in sure if _covered_share(line, own) < COVERED)
    if own and (not lines or sum(len(line.text) for line in sure) < MORE * page.characters):
        return replace(page, needs=None), None
    if not lines:
        return replace(page, flaw=message("ocr.found_nothing", needs=needs)), None
    mean, left_out = mean_confidence(lines), len(every.lines) - len(sure)
    remarks = page.remarks if own else ()
    if mean is not None and mean < DOUBTFUL:
        remarks += (message("ocr.doubtful"),)
    if left_out:
        remarks += (message("ocr.lines_left_out", count=left_out),)
    read = Page(page.number, every.height, tuple(own), needs=page.needs, remarks=remarks, ocr=mean)
    return read, replace(every, lines=lines)


def _move_to_scan(piece: Piece, page: Page, scan: Scan) -> Piece:
    """``piece`` of the page's own text at its place on the straightened page."""
    box = piece.box or to_box(page.number, piece.frame)
    x, y = _turn_point((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2, scan.turn, scan.width, scan.height)
    x, y = _level_point(x, y, _slant(scan.lines))
    wide, tall = (box.x1 - box.x0) / 2, (box.y1 - box.y0) / 2
    if scan.turn % 2:
        wide, tall = tall, wide
    turn = (piece.turn + 90 * scan.turn + page.turn) % 360
    return replace(piece, x0=x - wide, y0=y - tall, x1=x + wide, y1=y + tall, cell=None, turn=turn)


def _covered_share(line: Piece, others: Sequence[Piece]) -> float:
    """The share of the length of ``line`` under those of ``others`` on its row."""
    length = 0.0
    for other in others:
        lower = min(line.y1 - line.y0, other.y1 - other.y0)
        if min(line.y1, other.y1) - max(line.y0, other.y0) > SAME_ROW * lower:
            length += max(0.0, min(line.x1, other.x1) - max(line.x0, other.x0))
    return length / (line.x1 - line.x0)


def _straighten(scan: Scan, page: int) -> _Straight:
    """``scan`` without its slant; boxes are those of the page as displayed."""
    slant = _slant(scan.lines)
    wide, tall = (scan.height, scan.width) if scan.turn % 2 else (scan.width, scan.height)
    lines = []
    for seen in scan.lines:
        (ax, ay), (bx, by), (cx, cy), (dx, dy) = (_level_point(x, y, slant) for x, y in seen.corners)
        frame = (min(ax, dx), (ay + by) / 2, max(bx, cx), (cy + dy) / 2)
        text = clean_text(seen.text)
        if text and frame[0] < frame[2] and frame[1] < frame[3]:
            displayed = [_turn_point(x, y, -scan.turn % 4, wide, tall) for x, y in seen.corners]
            box = to_box(page, enclose((x, y, x, y) for x, y in displayed))
            lines.append(Piece(*frame, text, box=box, ocr=seen.confidence))
    rules = tuple((*_level_point(x0, y0, slant), *_level_point(x1, y1, slant)) for x0, y0, x1, y1 in scan.rules)
    return _Straight(tuple(lines), rules, wide, tall)


def _level_point(x: float, y: float, slant: float) -> tuple[float, float]:
    cos, sin = math.cos(slant), math.sin(slant)
    return x * cos + y * sin, y * cos - x * sin


def _slant(lines: Sequence[Seen]) -> float:
    """By how many radians the lines fall to the right: the median of the long ones."""
    slants = []
    for line in lines:
        (ax, ay), (bx, by), _, (dx, dy) = line.corners
        if math.hypot(bx - ax, by - ay) > LONG * math.hypot(dx - ax, dy - ay) and bx > ax:
            slants.append(math.atan2(by - ay, bx - ax))
    return median(slants) if slants else 0.0


def _turn_point(x: float, y: float, turn: int, width: float, height: float) -> tuple[float, float]:
    """The point on a page of ``width`` and ``height`` after ``turn`` quarter turns counterclockwise."""
    return {1: (y, width - x), 2: (width - x, height - y), 3: (height - y, x)}.get(turn, (x, y))


def _typical_type(pages: Sequence[Page], every: Sequence[Piece]) -> tuple[tuple[float, float], dict[bool, str]]:
    """The height of the scans' usual line with its type size, and the font family of each script.

    Size and families come from the text pages where there are some, so that a scan between them looks alike.
    """
    long = [line for line in every if line.x1 - line.x0 > LONG * (line.y1 - line.y0)]
    usual = median([line.y1 - line.y0 for line in long or every] or [1.0])
    sizes: Counter[float] = Counter()
    faces: Counter[tuple[bool, str]] = Counter()
    for piece in (piece for page in pages for piece in page.pieces):
        sizes[round(piece.size, 1)] += len(piece.text)
        faces[piece.script, piece.family] += len(piece.text)
    size = TYPE_SIZE * usual
    if sizes and abs(sizes.most_common(1)[0][0] - size) < ROUGH * size:
        size = sizes.most_common(1)[0][0]
    return (usual, size), {cjk: family for (cjk, family), _ in reversed(faces.most_common())}


def _set_type(line: Piece, typical: tuple[float, float], families: dict[bool, str]) -> Piece:
    usual, size = typical
    ratio = (line.y1 - line.y0) / usual
    if abs(ratio - 1) > ROUGH:
        size *= max(SIZE_STEP, round(ratio / SIZE_STEP) * SIZE_STEP)
    margin = min(MARGIN * (line.y1 - line.y0), (line.x1 - line.x0) / 4)
    family = families.get(line.script, "")
    return replace(line, x0=line.x0 + margin, x1=line.x1 - margin, size=size, family=family)


# --- tables of a scanned page -----------------------------------------------------------------------------------------

# Printed rules and OCR text are set on an empty page, and tables are searched for as on any page. A rule that runs
# through lines of text consists of strokes of their letters and is dropped. A line of text belongs to the cell around
# its middle. Not covered: a line that the engine read across two cells, cells separated by shading only.

LAPS = 3.0  # points by which a rule is drawn longer: printed ones often stop short of those they meet
THROUGH = 0.3  # of a rule's length within lines of text: it is made of letters
DESCENT = 0.22  # of the height of a line's box, below its base
INSIDE = 0.15  # of the height of a line of text: a rule nearer its edge underlines it or borders the next cell


def place_in_tables(
    pieces: Sequence[Piece], printed: Sequence[Frame], width: float, height: float
) -> tuple[list[Piece], list[Grid], tuple[Placed, ...]]:
    """``pieces`` with their cells, the tables, and the rules that divide the page; ``printed`` are straight rules."""

    def in_cells(grids: Sequence[Grid]) -> list[Piece]:
        cell_at = cell_lookup(grids)
        return [replace(piece, cell=cell_at(piece.centre, piece.middle)) for piece in pieces]

    drawn = list(_true_rules(printed, pieces))
    with pymupdf.open() as document:
        page = _ruled_page(document, drawn, width, height)
        for piece in pieces:  # the search for borders drops cells without text; whole words would widen cells
            page.insert_text((piece.centre, piece.middle), "x", fontsize=1)
        known = find_rules(page)
        ruled, placed = keep_tables(find_drawn(page, known) or [], in_cells)
        page = _ruled_page(document, drawn, width, height)
        for piece in pieces:
            if piece.upright:  # a turned piece is in no table
                font = "china-s" if any(map(is_cjk, piece.text)) else "helv"
                tall = piece.y1 - piece.y0
                size = min((piece.x1 - piece.x0) / (pymupdf.get_text_length(piece.text, font, 1) or 1.0), tall)
                base = (piece.x0, piece.y1 - DESCENT * tall)
                page.insert_text(base, piece.text, fontname=font, fontsize=max(size, 1.0))
        grids, placed = keep_tables(with_predicted(page, placed, ruled), in_cells)
    return placed, grids, find_separators(known.across, placed, grids)


def _ruled_page(document: pymupdf.Document, drawn: Sequence[Frame], width: float, height: float) -> pymupdf.Page:
    page = document.new_page(width=max(width, 1.0), height=max(height, 1.0))
    for x0, y0, x1, y1 in drawn:
        page.draw_line((x0, y0), (x1, y1), width=0.5)
    return page


def _true_rules(printed: Sequence[Frame], pieces: Sequence[Piece]) -> Iterator[Frame]:
    """The ``printed`` rules that are no strokes of letters, exactly level or upright and longer by ``LAPS``."""
    for x0, y0, x1, y1 in printed:
        level = abs(x1 - x0) > abs(y1 - y0)
        start, end = sorted((x0, x1) if level else (y0, y1))
        at = (y0 + y1) / 2 if level else (x0 + x1) / 2
        inside = 0.0
        for piece in pieces:
            margin = INSIDE * (piece.y1 - piece.y0)
            sides = ((piece.x0, piece.x1), (piece.y0, piece.y1))
            along, beside = sides if level else sides[::-1]
            if beside[0] + margin < at < beside[1] - margin:
                inside += max(0.0, min(end, along[1]) - max(start, along[0]))
        if inside <= THROUGH * (end - start):
            start, end = start - LAPS, end + LAPS
            yield (start, at, end, at) if level else (at, start, at, end)
