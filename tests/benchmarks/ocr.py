"""What OCR of scans is worth: errors of the imported text against the engine's own on the same pictures, and routing.

Character error rate (CER): the Levenshtein distance of a page's text to what is printed there, over the printed
characters; both without blanks and in NFKC, since the blanks between Chinese characters and Latin figures are a matter
of taste. The engine's own text is its lines in its own order. The printed text of the two-column scans is the text
layer of the page that was scanned, in that file's order. As the order of lines can cost more than their letters, the
share of characters missing or extra whatever their place is given too (``loose``).

    python -m tests.benchmarks.run --data DIR --only ocr
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from localmed.config import ReadBounds
from localmed.ingest.ocr import child as ocr
from localmed.ingest.parsed import SourceRecord
from localmed.ingest.parsing import Parser
from localmed.ingest.readers.pdf.opening import open_document, raster
from localmed.ingest.readers.pdf.page import read_page
from tests.benchmarks.common import Place, Row, met

SCANS = (  # file, what is printed, language
    ("pdf_scanned/cdc_outpatient_scan_p7-10.pdf", "pdf_scanned/cdc_outpatient_scan_p7-10.gt.txt", "en"),
    ("pdf_scanned/nhc_diet_scan_zh_tables.pdf", "pdf_scanned/nhc_diet_scan_zh_tables.gt.txt", "zh"),
    ("pdf_layout/linn_scan_2col_imageonly.pdf", "pdf_layout/linn_scan_2col_groundtruth.txt", "en"),
)
TEXTS = (  # files whose pages have text; those that are pictures of a form or scanned after all
    ("pdf_en/cdc_infection_prevention_outpatient_2016.pdf", ()),
    ("pdf_zh/nhc_hypertension_diet_guide_2023.pdf", ()),
    ("pdf_layout/federal_register_3col.pdf", (8,)),
    ("pdf_layout/pypdf_2col_lorem.pdf", ()),
    ("pdf_scanned/cdc_mixed_text_and_scan.pdf", (3, 4, 5, 6)),
)
_PAGES = re.compile(r"=== source page \d+ ===\n")


@dataclass(frozen=True)
class Errors:
    """Errors of one way over the pages of a file, and the printed characters."""

    placed: int = 0
    loose: int = 0
    printed: int = 0

    def __add__(self, other: Errors) -> Errors:
        return Errors(self.placed + other.placed, self.loose + other.loose, self.printed + other.printed)

    @property
    def cer(self) -> float:
        """The character error rate."""
        return self.placed / max(1, self.printed)

    @property
    def loose_rate(self) -> float:
        """Characters missing or extra, whatever their place, over the printed ones."""
        return self.loose / max(1, self.printed)


def plain(text: str) -> str:
    """``text`` without blanks and invisible marks, in NFKC."""
    folded = unicodedata.normalize("NFKC", text)
    return "".join(
        character for character in folded if not character.isspace() and unicodedata.category(character) != "Cf"
    )


def distance(first: str, second: str) -> int:
    """The Levenshtein distance, a row of the table at a time."""
    target = np.array([ord(character) for character in second], np.int64)
    steps = np.arange(len(target) + 1)
    row = steps.copy()
    for number, character in enumerate(first, 1):
        below = np.empty_like(row)
        below[0] = number
        below[1:] = np.minimum(row[:-1] + (target != ord(character)), row[1:] + 1)
        row = np.minimum.accumulate(below - steps) + steps
    return int(row[-1])


def errors(printed: str, read: str) -> Errors:
    """The errors of ``found`` on one page."""
    truth, text = plain(printed), plain(read)
    extra, missing = Counter(text) - Counter(truth), Counter(truth) - Counter(text)
    return Errors(distance(truth, text), max(extra.total(), missing.total()), len(truth))


def printed_pages(file: Path) -> list[str]:
    """What is printed, page by page."""
    text = file.read_text("utf-8")
    return _PAGES.split(text)[1:] or [text]


def imported_pages(file: Path, count: int) -> list[str]:
    """The text of each page as the import has it."""
    with Parser() as parser:
        (record,) = parser.parse(file, bounds=ReadBounds())
    assert isinstance(record, SourceRecord)
    return pages_of(record, count)


def pages_of(record: SourceRecord, count: int) -> list[str]:
    """The record's text, page by page, each printed line once: table rows repeat their headers and merged cells."""
    pages: list[dict[Any, str]] = [{} for _ in range(count)]
    headers: set[tuple[int, str]] = set()
    for block in record.blocks:
        for line in block.lines:
            if line.box and line.box not in pages[line.box.page - 1]:
                text = _once(line.text, line.box.page, headers) if block.kind == "row" else line.text
                pages[line.box.page - 1][line.box] = text
    return ["\n".join(page.values()) for page in pages]


def _once(text: str, page: int, headers: set[tuple[int, str]]) -> str:
    """A line of a table's cell without the marks between cells, and without a header that the page has had already."""
    header, mark, rest = text.rstrip("；;").partition("：")
    if not mark:
        return header
    known = (page, header) in headers
    headers.add((page, header))
    return rest if known else f"{header}\n{rest}"


def engines_pages(file: Path, count: int) -> tuple[list[str], float]:
    """The text of each page as the engine has it, called with its own settings, and its seconds a page."""
    import rapidocr

    engine = rapidocr.RapidOCR(params={"Global.log_level": "critical"})
    texts, began = [], time.perf_counter()
    for page in range(1, count + 1):
        picture, *_ = raster(file, page, ocr.DPI, ocr.MOST_PIXELS)
        texts.append("\n".join(engine(picture).txts or ()))
    return texts, (time.perf_counter() - began) / count


def scan(place: Place, name: str, truth: str, language: str) -> list[Row]:
    """The rows of one scan."""
    printed = printed_pages(place.data / truth)
    began = time.perf_counter()
    ours = imported_pages(place.data / name, len(printed))
    seconds = (time.perf_counter() - began) / len(printed)
    theirs, alone = engines_pages(place.data / name, len(printed))
    mine, its = (
        sum((errors(*pair) for pair in zip(printed, texts, strict=True)), Errors()) for texts in (ours, theirs)
    )
    file = Path(name).stem
    how = (
        f"{len(printed)} pages, {mine.printed:,} characters, {ocr.DPI} dpi; {seconds:.1f} s a page of import on one "
        f"thread, engine alone {alone:.1f} s on all; loose {mine.loose_rate:.1%} against "
        f"{its.loose_rate:.1%}; page numbers and running headers, which the import leaves out, count as its errors"
    )
    rates = f"{mine.cer:.1%} against {its.cer:.1%}"
    return [Row(f"OCR of {file} ({language}): CER of the import against the engine's own text", "not worse", rates,
                met(mine.cer <= its.cer), how)]  # fmt: skip


def routing(place: Place) -> Row:
    """Pages of text that would be given to OCR, and scanned ones that would not."""
    wrong, pages = [], 0
    for name, scanned in TEXTS:
        with open_document(place.data / name) as document:
            texts = [read_page(document, index, 60_000) for index in range(document.page_count)]
        pages += len(texts)
        routed = {page.number for page in texts if page.needs}
        wrong += [f"{Path(name).name} {number}" for number in sorted(routed ^ set(scanned))]
    how = "text pages of five files and 5 scanned ones among them, one of which is a form printed as a picture"
    return Row("pages routed to OCR wrongly or missed", "0", f"{len(wrong)} of {pages}", met(not wrong), how)


def run(place: Place) -> list[Row]:
    """All rows."""
    rows = [row for entry in SCANS for row in scan(place, *entry)]
    return [*rows, routing(place)]
