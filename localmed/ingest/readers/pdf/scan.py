"""Pages that need OCR, read by it: the same pieces that text pages are made of.

Rules: a scan that lies askew is straightened before its lines are put in order, and each line gets its box on the page
as displayed; sizes that differ by little are one size, because the height of a line's box depends on its letters; lines
that the engine is not sure of are left out and counted. Where the engine reads hardly more than a page's own text, that
text stays alone; where it reads more, that text stays as it is (engines lose raised figures), and what stands elsewhere
is added. Only a text layer that is garbled, or that a sample of its lines shows to be wrong, is replaced. A page that
OCR does not read is named with the reason and keeps what it has.

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
from localmed.domain import Message, message
from localmed.ingest.ocr import child as ocr
from localmed.ingest.ocr.child import Frame
from localmed.ingest.ocr.pages import TRIES, Failure, Ocr, Place, Scan, Seen
from localmed.ingest.parsed import Working
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
from localmed.ingest.readers.pdf.page import FOREIGN, NO_TEXT, ODD, REASONS, UNTRUE, Page, is_odd
from localmed.ingest.readers.pdf.text import Piece, around, cleaned, confidence, is_cjk, rounded

# --- whether a text layer says what is printed ------------------------------------------------------------------------

# A layer is doubted where a picture lies under or over most of the page (another OCR program may have written it),
# where lines are made of letters and symbols as no text is (a font without a usable map), and where lines are printed
# over each other. Up to ``SAMPLE`` lines are read by OCR, those with figures first, since a wrong amount does more harm
# than a wrong letter. Lines of which the engine is not sure say nothing. A wrong letter outside the sample stays.

SAMPLE = 12  # lines of a page, ~0.2 s each
NUMBERED = 8  # of them with figures
SHORTEST = 3  # letters and figures; page numbers and marks say nothing of a layer
SURE = 0.8  # confidence of a line that may speak against the layer
ENOUGH = 2  # lines
ALIKE = 0.93  # of letters and figures in common, the mean of the lines; sound layers of scans have > 0.97
FEW_NUMBERED = 4  # of so few lines with figures, one that differs is too many; else two


def sample(page: Page) -> list[Piece]:
    """The lines of ``page`` to compare."""
    lines = [piece for piece in page.pieces if piece.upright and len(_plain(piece.text)) >= SHORTEST]
    if page.doubt == ODD:
        return _spread([piece for piece in page.pieces if piece.upright and is_odd(piece.text)], SAMPLE)
    numbered = [line for line in lines if _numbers(line.text)]
    chosen = _spread(numbered, NUMBERED)
    return chosen + _spread([line for line in lines if not _numbers(line.text)], SAMPLE - len(chosen))


def places(page: Page, lines: Sequence[Piece]) -> list[Place]:
    """Where ``lines`` stand on ``page`` as displayed, and by how many quarters clockwise to turn them to be read."""
    boxes = [line.box for line in lines if line.box]
    return [(box.x0, box.y0, box.x1, box.y1, page.turn // 90) for box in boxes]


def judged(page: Page, lines: Sequence[Piece], readings: Sequence[tuple[str, float]] | Failure) -> Page:
    """``page`` after OCR of ``lines``: found true, to be read by OCR instead (``needs``), or with a remark."""
    settled = replace(page, doubt=None)
    if isinstance(readings, Failure):
        return unchecked(page)
    pairs = [(line.text, text) for line, (text, sure) in zip(lines, readings, strict=False) if sure >= SURE]
    if len(pairs) < ENOUGH:
        return unchecked(page) if page.doubt == FOREIGN else settled
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


def unchecked(page: Page) -> Page:
    """``page`` whose layer could not be compared."""
    return replace(page, doubt=None, remarks=(*page.remarks, message("ocr.unchecked", why=page.doubt or FOREIGN)))


def _plain(text: str) -> str:
    return "".join(one for one in unicodedata.normalize("NFKC", text).casefold() if one.isalnum())


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d+", unicodedata.normalize("NFKC", text))


def _spread(lines: Sequence[Piece], most: int) -> list[Piece]:
    """At most ``most`` of ``lines``, from all over the page."""
    return [lines[number * len(lines) // most] for number in range(most)] if len(lines) > most else list(lines)


LEAST_CONFIDENCE = 0.6  # of a line; below it stand specks, logos and handwriting
DOUBTFUL = 0.85  # mean confidence of a page that is worth a look; sound scans have > 0.95
MORE = 1.5  # times the characters of a page's own text: fewer are the same text, which needs no reading
COVERED = 0.5  # of the length of a line that OCR read, by the page's own text: less, and it says something else too
SAME_ROW = 0.5  # of the lower of two boxes, that they must share
LONG = 3.0  # times as wide as tall: such a line shows how the page lies
TYPE_SIZE = 0.85  # of the height of a line's box, which reaches from above the capitals to below the g
MARGIN = 0.2  # of its height, by which a box is wider than its line: columns stand closer than boxes can
ROUGH = 0.3  # share by which boxes of one type size differ
SIZE_STEP = 0.25  # of the body size, for larger and smaller type


@dataclass(frozen=True, slots=True)
class _Straight:
    """A page as it was read, without its slant: lines, printed rules, and its size in points."""

    lines: tuple[Piece, ...]
    rules: tuple[Frame, ...]
    width: float
    height: float


def read_scans(
    path: Path, pages: list[Page], bounds: ReadBounds, engine: Ocr | None = None, kept: Path | None = None
) -> Iterator[Working]:
    """Replace those of ``pages`` that need OCR, where it is wanted and installed; yields before each such page.

    A page whose text layer is in doubt is compared first. ``kept`` is a folder for what OCR reads.
    """
    scans = [index for index, page in enumerate(pages) if page.needs or page.doubt]
    if not bounds.ocr or not (engine or ocr.installed()):
        pages[:] = [unchecked(page) if page.doubt else page for page in pages]
        return
    if not scans:
        return
    straightened: dict[int, _Straight] = {}
    with closing(engine or Ocr(bounds, kept=kept)) as reader:
        for index in scans:
            if pages[index].doubt:
                yield Working(pages[index].number, len(pages), ocr=True)
                chosen = sample(pages[index])
                readings = reader.lines(path, pages[index].number, places(pages[index], chosen))
                pages[index] = judged(pages[index], chosen, readings)
                if not pages[index].needs:
                    continue
            for _ in range(TRIES):
                yield Working(pages[index].number, len(pages), ocr=True)
                scan = reader.read(path, pages[index].number)
                if isinstance(scan, Scan) or not scan.again:
                    break
            pages[index], straight = _taken(pages[index], scan)
            if straight:
                straightened[index] = straight
    size, families = _typical(pages, [line for straight in straightened.values() for line in straight.lines])
    for index, straight in straightened.items():
        page = pages[index]
        pieces = [*page.pieces, *(_piece(line, size, families) for line in straight.lines)]
        placed, grids, rules = with_tables(pieces, straight.rules, straight.width, straight.height)
        pages[index] = replace(page, pieces=tuple(placed), grids=tuple(grids), separators=rules)


def _taken(page: Page, scan: Scan | Failure) -> tuple[Page, _Straight | None]:
    """``page`` with what OCR came to, and what it read if that counts."""
    needs = page.needs or NO_TEXT
    if isinstance(scan, Failure):
        return replace(page, flaw=message("ocr.failed", needs=needs, why=scan.why), lost=True), None
    every = _straightened(scan, page.number)
    sure = [line for line in every.lines if line.ocr is not None and line.ocr >= LEAST_CONFIDENCE]
    own = [] if page.needs in UNTRUE else [_moved(piece, page, scan) for piece in page.pieces]
    lines = tuple(line for line in sure if _covered(line, own) < COVERED)
    if own and (not lines or sum(len(line.text) for line in sure) < MORE * page.characters):
        return replace(page, needs=None), None
    if not lines:
        return replace(page, flaw=message("ocr.found_nothing", needs=needs)), None
    mean, left_out = confidence(lines), len(every.lines) - len(sure)
    remarks = page.remarks if own else ()
    if mean is not None and mean < DOUBTFUL:
        remarks += (message("ocr.doubtful"),)
    if left_out:
        remarks += (message("ocr.lines_left_out", count=left_out),)
    read = Page(page.number, every.height, tuple(own), needs=page.needs, remarks=remarks, ocr=mean)
    return read, replace(every, lines=lines)


def _moved(piece: Piece, page: Page, scan: Scan) -> Piece:
    """``piece`` of the page's own text where it stands on the straightened page."""
    box = piece.box or rounded(page.number, piece.frame)
    x, y = _turned((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2, scan.turn, scan.width, scan.height)
    x, y = _level(x, y, _slant(scan.lines))
    wide, tall = (box.x1 - box.x0) / 2, (box.y1 - box.y0) / 2
    if scan.turn % 2:
        wide, tall = tall, wide
    turn = (piece.turn + 90 * scan.turn + page.turn) % 360
    return replace(piece, x0=x - wide, y0=y - tall, x1=x + wide, y1=y + tall, cell=None, turn=turn)


def _covered(line: Piece, others: Sequence[Piece]) -> float:
    """The share of the length of ``line`` that lies under those of ``others`` that stand on its row."""
    length = 0.0
    for other in others:
        lower = min(line.y1 - line.y0, other.y1 - other.y0)
        if min(line.y1, other.y1) - max(line.y0, other.y0) > SAME_ROW * lower:
            length += max(0.0, min(line.x1, other.x1) - max(line.x0, other.x0))
    return length / (line.x1 - line.x0)


def _straightened(scan: Scan, page: int) -> _Straight:
    """``scan`` without its slant; boxes are those of the page as displayed."""
    slant = _slant(scan.lines)
    wide, tall = (scan.height, scan.width) if scan.turn % 2 else (scan.width, scan.height)
    lines = []
    for seen in scan.lines:
        (ax, ay), (bx, by), (cx, cy), (dx, dy) = (_level(x, y, slant) for x, y in seen.corners)
        frame = (min(ax, dx), (ay + by) / 2, max(bx, cx), (cy + dy) / 2)
        text = cleaned(seen.text)
        if text and frame[0] < frame[2] and frame[1] < frame[3]:
            shown = [_turned(x, y, -scan.turn % 4, wide, tall) for x, y in seen.corners]
            box = rounded(page, around((x, y, x, y) for x, y in shown))
            lines.append(Piece(*frame, text, box=box, ocr=seen.confidence))
    rules = tuple((*_level(x0, y0, slant), *_level(x1, y1, slant)) for x0, y0, x1, y1 in scan.rules)
    return _Straight(tuple(lines), rules, wide, tall)


def _level(x: float, y: float, slant: float) -> tuple[float, float]:
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


def _turned(x: float, y: float, turn: int, width: float, height: float) -> tuple[float, float]:
    """A place on a page of ``width`` and ``height`` after it was turned counterclockwise by ``turn`` quarters."""
    return {1: (y, width - x), 2: (width - x, height - y), 3: (height - y, x)}.get(turn, (x, y))


def _typical(pages: Sequence[Page], every: Sequence[Piece]) -> tuple[tuple[float, float], dict[bool, str]]:
    """The height of the scans' usual line with the type size it stands for, and the face of each script.

    Both are the text pages' where there are some, so that a scan between them is set like them.
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


def _piece(line: Piece, typical: tuple[float, float], families: dict[bool, str]) -> Piece:
    usual, size = typical
    ratio = (line.y1 - line.y0) / usual
    if abs(ratio - 1) > ROUGH:
        size *= max(SIZE_STEP, round(ratio / SIZE_STEP) * SIZE_STEP)
    margin = min(MARGIN * (line.y1 - line.y0), (line.x1 - line.x0) / 4)
    family = families.get(line.script, "")
    return replace(line, x0=line.x0 + margin, x1=line.x1 - margin, size=size, family=family)


def summaries(pages: Sequence[Page]) -> Iterator[tuple[Message, list[int], float, float]]:
    """Of each reason for OCR: the numbers of the pages that were read so, and their mean and least confidence."""
    for reason in REASONS:
        read = [(page.number, page.ocr) for page in pages if page.ocr is not None and page.needs == reason]
        if read:
            numbers, means = zip(*read, strict=True)
            yield reason, list(numbers), sum(means) / len(means), min(means)


def remedy(pages: Sequence[Page], bounds: ReadBounds) -> Message:
    """What to do with a file that has no page with text."""
    if not any(page.needs for page in pages) or any(page.flaw and page.needs for page in pages):
        return message("ocr.get_copy")
    if not bounds.ocr:
        return message("ocr.switch_on")
    return message("ocr.install")


# --- the tables of a scanned page -------------------------------------------------------------------------------------

# Its printed rules and what OCR read are set on an empty page and searched as on any. What runs through printed lines
# of text is no rule but strokes of its letters. A line of text belongs to the cell that its middle stands in. Not
# covered: a line of text that the engine read across two cells, cells told apart by shading.

LAPS = 3.0  # points by which a rule is drawn longer: printed ones often stop short of those they meet
THROUGH = 0.3  # of a rule's length within lines of text: it is made of letters
DESCENT = 0.22  # of the height of a line's box, below its base
INSIDE = 0.15  # of the height of a line of text: nearer its edge a rule underlines it or parts it from the next cell


def with_tables(
    pieces: Sequence[Piece], printed: Sequence[Frame], width: float, height: float
) -> tuple[list[Piece], list[Grid], tuple[Placed, ...]]:
    """``pieces`` with their cells, the tables, and the rules that part the page; ``printed`` are straightened rules."""

    def in_cells(grids: Sequence[Grid]) -> list[Piece]:
        cell_at = cell_lookup(grids)
        return [replace(piece, cell=cell_at(piece.centre, piece.middle)) for piece in pieces]

    drawn = [_extended(*level) for level in map(_leveled, printed) if not _through(level, pieces)]
    with pymupdf.open() as document:
        page = _page(document, drawn, width, height)
        for piece in pieces:  # the search for borders leaves out cells without text; whole words would widen cells
            page.insert_text((piece.centre, piece.middle), "x", fontsize=1)
        known = rules(page)
        ruled, placed = as_tables(drawn_grids(page, known) or [], in_cells)
        page = _page(document, drawn, width, height)
        for piece in pieces:
            _set(page, piece)
        grids, placed = as_tables(with_predicted(page, placed, ruled), in_cells)
    return placed, grids, separators(known.across, placed, grids)


def _page(document: pymupdf.Document, drawn: Sequence[Frame], width: float, height: float) -> pymupdf.Page:
    """A new page with the lines ``drawn``."""
    page = document.new_page(width=max(width, 1.0), height=max(height, 1.0))
    for x0, y0, x1, y1 in drawn:
        page.draw_line((x0, y0), (x1, y1), width=0.5)
    return page


def _set(page: pymupdf.Page, piece: Piece) -> None:
    """Print ``piece`` on ``page`` in its box; not a turned one, which is in no table."""
    if not piece.upright:
        return
    font = "china-s" if any(map(is_cjk, piece.text)) else "helv"
    tall = piece.y1 - piece.y0
    size = min((piece.x1 - piece.x0) / (pymupdf.get_text_length(piece.text, font, 1) or 1.0), tall)
    page.insert_text((piece.x0, piece.y1 - DESCENT * tall), piece.text, fontname=font, fontsize=max(size, 1.0))


def _leveled(rule: Frame) -> Frame:
    """``rule`` exactly level or upright."""
    x0, y0, x1, y1 = rule
    if abs(x1 - x0) > abs(y1 - y0):
        middle = (y0 + y1) / 2
        return min(x0, x1), middle, max(x0, x1), middle
    middle = (x0 + x1) / 2
    return middle, min(y0, y1), middle, max(y0, y1)


def _extended(x0: float, y0: float, x1: float, y1: float) -> Frame:
    return (x0 - LAPS, y0, x1 + LAPS, y1) if y0 == y1 else (x0, y0 - LAPS, x1, y1 + LAPS)


def _through(rule: Frame, pieces: Sequence[Piece]) -> bool:
    x0, y0, x1, y1 = rule
    shared = 0.0
    for piece in pieces:
        margin = INSIDE * (piece.y1 - piece.y0)
        if y0 == y1 and piece.y0 + margin < y0 < piece.y1 - margin:
            shared += max(0.0, min(x1, piece.x1) - max(x0, piece.x0))
        elif x0 == x1 and piece.x0 + margin < x0 < piece.x1 - margin:
            shared += max(0.0, min(y1, piece.y1) - max(y0, piece.y0))
    return shared > THROUGH * max(x1 - x0, y1 - y0)
