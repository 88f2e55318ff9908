"""Pages that need OCR, read by it and put in place of what the file had: the same pieces that text pages are made of.

Rules: a scan that lies askew is straightened before its lines are put in order, and each line gets its box on the page
as displayed; sizes that differ by little are one size, because the height of a line's box depends on its letters; lines
that the engine is not sure of are left out and counted; where the engine reads hardly more than a page's own text, that
text stays. A page that OCR does not read is named with the reason and keeps nothing of a garbled text layer.

Not covered: text in figures of pages that have text of their own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from localmed.config import ReadBounds
from localmed.domain import Box
from localmed.ingest import ocr, page_quality
from localmed.ingest.ocr_pages import Frame, Ocr, Scan, Scanned, Seen
from localmed.ingest.parsed import Block, Line, Working
from localmed.ingest.readers.pdf_page import Page
from localmed.ingest.readers.pdf_scan_tables import with_tables
from localmed.ingest.readers.pdf_text import Piece, cleaned, is_cjk

LEAST_CONFIDENCE = 0.6  # of a line; below it stand specks, logos and handwriting
DOUBTFUL = 0.85  # mean confidence of a page that is worth a look; sound scans have > 0.95
MORE = 1.5  # times the characters of a page's own text: fewer are the same text, which needs no reading
LONG = 3.0  # times as wide as tall: such a line shows how the page lies
TYPE_SIZE = 0.85  # of the height of a line's box, which reaches from above the capitals to below the g
ROUGH = 0.3  # share by which boxes of one type size differ
SIZE_STEP = 0.25  # of the body size, for larger and smaller type


@dataclass(frozen=True, slots=True)
class _Straight:
    """A page as it was read, without its slant: lines, printed rules, and its size in points."""

    lines: tuple[Scanned, ...]
    rules: tuple[Frame, ...]
    width: float
    height: float


def read_scans(path: Path, pages: list[Page], bounds: ReadBounds, engine: Ocr | None = None) -> Iterator[Working]:
    """Replace those of ``pages`` that need OCR, where it is wanted and installed; yields before each such page."""
    wanted = [index for index, page in enumerate(pages) if page.needs]
    if not wanted or not bounds.ocr or not (engine or ocr.installed()):
        return
    found: dict[int, _Straight] = {}
    with closing(engine or Ocr(bounds)) as asked:
        for index in wanted:
            yield Working(pages[index].number)
            pages[index], straight = _taken(pages[index], asked.read(path, pages[index].number))
            if straight:
                found[index] = straight
    size, families = _typical(pages, [line for straight in found.values() for line in straight.lines])
    for index, straight in found.items():
        pieces = [_piece(line, size, families) for line in straight.lines]
        placed, grids, rules = with_tables(pieces, straight.rules, straight.width, straight.height)
        pages[index] = replace(pages[index], pieces=placed, grids=grids, separators=rules, scan=straight.lines)


def confidence(lines: Sequence[Scanned]) -> float:
    """The mean confidence by characters."""
    return sum(each.confidence * len(each.text) for each in lines) / max(1, sum(len(each.text) for each in lines))


def placed(blocks: Sequence[Block], pages: Sequence[Page]) -> list[Block]:
    """``blocks`` with the lines of pages read by OCR where they stand as displayed, and how sure the engine was."""
    scans = {page.number: page.scan for page in pages if page.scan}
    if not scans:
        return list(blocks)
    return [Block(block.kind, tuple(_line(line, scans) for line in block.lines), block.level) for block in blocks]


def _line(line: Line, scans: dict[int, tuple[Scanned, ...]]) -> Line:
    box = line.box
    inside = [each for each in scans.get(box.page, ()) if _holds(box, each.frame)] if box else []
    if not inside:
        return line
    shown = [each.box for each in inside]
    x0, y0 = min(each.x0 for each in shown), min(each.y0 for each in shown)
    x1, y1 = max(each.x1 for each in shown), max(each.y1 for each in shown)
    return Line(line.text, Box(shown[0].page, x0, y0, x1, y1), round(confidence(inside), 3))


def _holds(box: Box, frame: Frame) -> bool:
    x, y = (frame[0] + frame[2]) / 2, (frame[1] + frame[3]) / 2
    return box.x0 - 0.1 <= x <= box.x1 + 0.1 and box.y0 - 0.1 <= y <= box.y1 + 0.1


def _taken(page: Page, scan: Scan | str) -> tuple[Page, _Straight | None]:
    """``page`` with what OCR came to, and what it read if that counts."""
    if isinstance(scan, str):
        return replace(page, flaw=f"{page.needs}, OCR failed: {scan}"), None
    every = _straightened(scan, page.number)
    lines = tuple(each for each in every.lines if each.confidence >= LEAST_CONFIDENCE)
    characters = sum(len(each.text) for each in lines)
    if page.characters and characters < MORE * page.characters:
        return replace(page, needs=""), None
    if not lines:
        return replace(page, flaw=f"{page.needs}, OCR found no text (a picture?)"), None
    remark = _remark(lines, len(every.lines) - len(lines))
    return Page(page.number, every.height, needs=page.needs, remark=remark), replace(every, lines=lines)


def _remark(lines: Sequence[Scanned], left_out: int) -> str:
    remarks = []
    if confidence(lines) < DOUBTFUL:
        remarks.append("OCR was not sure of its text: compare it with the page")
    if left_out:
        remarks.append(f"{left_out} lines that OCR could not read were left out")
    return "; ".join(remarks)


def _straightened(scan: Scan, page: int) -> _Straight:
    """``scan`` without its slant; boxes are those of the page as displayed."""
    slant = _slant(scan.lines)
    cos, sin = math.cos(slant), math.sin(slant)

    def level(x: float, y: float) -> tuple[float, float]:
        return x * cos + y * sin, y * cos - x * sin

    found = []
    for seen in scan.lines:
        (ax, ay), (bx, by), (cx, cy), (dx, dy) = (level(x, y) for x, y in seen.corners)
        frame = (min(ax, dx), (ay + by) / 2, max(bx, cx), (cy + dy) / 2)
        text = cleaned(seen.text)
        if text and frame[0] < frame[2] and frame[1] < frame[3]:
            found.append(Scanned(text, frame, _displayed(seen, scan, page), seen.confidence))
    rules = tuple((*level(x0, y0), *level(x1, y1)) for x0, y0, x1, y1 in scan.rules)
    wide, tall = (scan.height, scan.width) if scan.turn % 2 else (scan.width, scan.height)
    return _Straight(tuple(found), rules, wide, tall)


def _slant(lines: Sequence[Seen]) -> float:
    """By how many radians the lines fall to the right: the median of the long ones."""
    slants = []
    for line in lines:
        (ax, ay), (bx, by), _, (dx, dy) = line.corners
        if math.hypot(bx - ax, by - ay) > LONG * math.hypot(dx - ax, dy - ay) and bx > ax:
            slants.append(math.atan2(by - ay, bx - ax))
    return median(slants) if slants else 0.0


def _displayed(seen: Seen, scan: Scan, page: int) -> Box:
    places = [_turned_back(x, y, scan) for x, y in seen.corners]
    xs, ys = [x for x, _ in places], [y for _, y in places]
    return Box(page, *(round(value, 1) for value in (min(xs), min(ys), max(xs), max(ys))))


def _turned_back(x: float, y: float, scan: Scan) -> tuple[float, float]:
    if scan.turn == 1:
        return scan.width - y, x
    if scan.turn == 2:
        return scan.width - x, scan.height - y
    return (y, scan.height - x) if scan.turn == 3 else (x, y)


def _typical(pages: Sequence[Page], every: Sequence[Scanned]) -> tuple[tuple[float, float], dict[bool, str]]:
    """The height of the scans' usual line with the type size it stands for, and the face of each script.

    Both are the text pages' where there are some, so that a scan between them is set like them.
    """
    long = [each for each in every if each.frame[2] - each.frame[0] > LONG * (each.frame[3] - each.frame[1])]
    usual = median([each.frame[3] - each.frame[1] for each in long or every] or [1.0])
    sizes: Counter[float] = Counter()
    faces: Counter[tuple[bool, str]] = Counter()
    for page in pages:
        for piece in page.pieces:
            sizes[round(piece.size, 1)] += len(piece.text)
            faces[is_cjk(piece.text[len(piece.text) // 2]), piece.family] += len(piece.text)
    size = TYPE_SIZE * usual
    if sizes and abs(sizes.most_common(1)[0][0] - size) < ROUGH * size:
        size = sizes.most_common(1)[0][0]
    families: dict[bool, str] = {}
    for (cjk, family), _ in faces.most_common():
        families.setdefault(cjk, family)
    return (usual, size), families


def _piece(line: Scanned, typical: tuple[float, float], families: dict[bool, str]) -> Piece:
    usual, size = typical
    ratio = (line.frame[3] - line.frame[1]) / usual
    if abs(ratio - 1) > ROUGH:
        size *= max(SIZE_STEP, round(ratio / SIZE_STEP) * SIZE_STEP)
    return Piece(line.text, *line.frame, size, families.get(is_cjk(line.text[len(line.text) // 2]), ""))


def summaries(pages: Sequence[Page]) -> Iterator[tuple[str, list[int], float, float]]:
    """Of each reason for OCR: the numbers of the pages that were read so, and their mean and least confidence."""
    for reason in page_quality.REASONS:
        read = [page for page in pages if page.scan and page.needs == reason]
        if read:
            means = [confidence(page.scan) for page in read]
            yield reason, [page.number for page in read], sum(means) / len(means), min(means)


def remedy(pages: Sequence[Page], bounds: ReadBounds) -> str:
    """What to do with a file that has no page with text."""
    if not any(page.needs for page in pages) or any("OCR" in page.flaw for page in pages):
        return "Get a copy with a text layer"
    if not bounds.ocr:
        return "Set read.ocr = true in the settings, or get a copy with a text layer"
    return 'Install the OCR engine (pip install "localmed[ocr]") and import it again, or get a copy with a text layer'
