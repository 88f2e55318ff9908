"""Whether a page's text layer says what is printed: OCR of a sample of its lines against the layer.

Rules: a layer is doubted where a picture lies under or over most of the page (another OCR program may have written it),
where lines are made of letters and symbols as no text is (a font without a usable map), and where lines are printed
over each other. Up to ``SAMPLE`` lines are read by OCR, those with figures first, since a wrong amount does more harm
than a wrong letter. Lines of which the engine is not sure say nothing.

Not covered: a wrong letter or figure outside the sample.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from localmed.domain import Box, Message, message
from localmed.ingest.ocr.pages import Failure, Place
from localmed.ingest.page_quality import FOREIGN, ODD, is_odd
from localmed.ingest.readers.pdf.page import Page, placed_back
from localmed.ingest.readers.pdf.text import Piece

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
    return chosen + _spread([line for line in lines if line not in numbered], SAMPLE - len(chosen))


def places(page: Page, lines: Sequence[Piece]) -> list[Place]:
    """Where ``lines`` stand on ``page`` as displayed, and by how many quarters clockwise to turn them to be read."""
    return [_place(page, line) for line in lines]


def _place(page: Page, line: Piece) -> Place:
    box = Box(page.number, line.x0, line.y0, line.x1, line.y1)
    turn = 0
    if page.back is not None:
        box = placed_back(box, page.back)
        turn = round(math.degrees(math.atan2(-page.back.b, page.back.a)))
    return box.x0, box.y0, box.x1, box.y1, turn % 360 // 90


def judged(page: Page, lines: Sequence[Piece], readings: Sequence[tuple[str, float]] | Failure) -> Page:
    """``page`` after OCR of ``lines``: found true, to be read by OCR instead (``needs``), or with a remark."""
    settled = replace(page, doubt=None)
    if isinstance(readings, Failure):
        return unchecked(page)
    pairs = [(line.text, text) for line, (text, sure) in zip(lines, readings, strict=False) if sure >= SURE]
    if len(pairs) < ENOUGH:
        return unchecked(page) if page.doubt == FOREIGN else settled
    length = sum(max(len(_plain(own)), len(_plain(read))) for own, read in pairs)
    alike = sum(likeness(own, read) * max(len(_plain(own)), len(_plain(read))) for own, read in pairs) / max(1, length)
    numbered = [(own, read) for own, read in pairs if _numbers(own) or _numbers(read)]
    wrong = sum(_numbers(own) != _numbers(read) for own, read in numbered)
    if alike < ALIKE or wrong > 1 or (wrong and len(numbered) < FEW_NUMBERED):
        return replace(settled, needs=page.doubt)
    if wrong:
        return _with_remark(settled, message("ocr.unlike", count=wrong, compared=len(pairs)))
    return settled


def unchecked(page: Page) -> Page:
    """``page`` whose layer could not be compared."""
    return _with_remark(replace(page, doubt=None), message("ocr.unchecked", why=page.doubt or FOREIGN))


def _with_remark(page: Page, remark: Message) -> Page:
    return replace(page, remarks=(*page.remarks, remark))


def likeness(first: str, second: str) -> float:
    """The share of letters and figures that two lines have in common, in their order."""
    return SequenceMatcher(None, _plain(first), _plain(second), autojunk=False).ratio()


def _plain(text: str) -> str:
    return "".join(one for one in unicodedata.normalize("NFKC", text).casefold() if one.isalnum())


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d+", unicodedata.normalize("NFKC", text))


def _spread(lines: Sequence[Piece], most: int) -> list[Piece]:
    """At most ``most`` of ``lines``, from all over the page."""
    return [lines[number * len(lines) // most] for number in range(most)] if len(lines) > most else list(lines)
