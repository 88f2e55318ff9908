"""Twenty PDF pages with known faults: are they read right, or at least noticed?

Each page is made here, of the starter corpus's texts: a wrong OCR layer under a picture of the right text, pages and
tables that lie on their side, fonts without a usable map to characters, lines drawn twice, columns whose lines take
turns in the file. Their texts, fonts and layouts are not those that the rules were made on; they were looked at once.
Controls are the same layouts without a fault.

A page is **read right** if its text differs from what is printed in at most ``MOST_ERRORS`` of the characters, order
included, and every number on it is there; it is **noticed** if the file is refused or a note warns of the page.

    python -m tests.benchmarks.pdf_faults [--half held|control] [--only NAME] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from localmed.config import ReadBounds
from localmed.domain import Message
from localmed.domain.errors import InputError
from localmed.ingest.parsed import SourceRecord
from localmed.ingest.parsing import Parser
from tests.benchmarks.common import Place, Row, met
from tests.benchmarks.ocr import errors
from tests.benchmarks.pdf_fault_pages import HALVES, Case

MOST_ERRORS = 0.05  # of the characters: OCR of clean print makes 1 %, an exchanged line 5 to 10 %
# Notes that say of a page that its text is not to be trusted; that it was read by OCR or has a header says nothing.
WARNINGS = frozenset(
    re.findall(
        r"\S+",
        """
        ocr.needs ocr.may_need ocr.failed ocr.found_nothing ocr.doubtful ocr.lines_left_out ocr.unlike ocr.unchecked
        pdf.page_doubtful pdf.page_damaged pdf.page_cut pdf.page_tables pdf.page_drawn pdf.cells_lost
        """,
    )
)


@dataclass(frozen=True)
class Outcome:
    """What the import made of a page: its error rate, numbers that are missing, codes of its warnings, seconds."""

    case: Case
    cer: float
    missing: int
    warnings: tuple[str, ...]
    seconds: float

    @property
    def right(self) -> bool:
        """Whether it was read right."""
        return self.cer <= MOST_ERRORS and not self.missing

    @property
    def good(self) -> bool:
        """Whether it was read right or noticed."""
        return self.right or bool(self.warnings)


def codes(note: object) -> Iterator[str]:
    """The codes in a message, its parameters' included."""
    if isinstance(note, Message):
        yield note.code
        for _, value in note.parameters:
            yield from codes(value)


def text_of(record: SourceRecord) -> str:
    """The text as printed: a table's header once, not in each of its rows."""
    texts: dict[str, None] = {}
    for number, (block, line) in enumerate((part, line) for part in record.blocks for line in part.lines):
        if block.kind != "row":
            texts[f"{line.text}\0{number}"] = None
            continue
        header, mark, rest = re.sub(r"[;；]$", "", line.text).partition("：" if "：" in line.text else ": ")
        texts |= {header: None, f"{rest}\0{number}": None} if mark else {f"{header}\0{number}": None}
    return "\n".join(text.partition("\0")[0] for text in texts)


def outcome(case: Case, folder: Path) -> Outcome:
    """Make the page of ``case`` in ``folder`` and parse it as an import does."""
    path = folder / f"{case.name}.pdf"
    document = case.make()
    document.save(str(path), garbage=3, deflate=True)
    began = time.perf_counter()
    try:
        with Parser() as parser:
            (record,) = parser.parse(path, bounds=ReadBounds())
    except InputError as error:
        return Outcome(case, 1.0, 0, (error.messages[0].code,), time.perf_counter() - began)
    assert isinstance(record, SourceRecord)
    text = text_of(record)
    wrong = errors(case.text, text)
    missing = Counter(re.findall(r"\d+", case.text)) - Counter(re.findall(r"\d+", text))
    warned = tuple(code for note in record.notes for code in codes(note) if code in WARNINGS)
    return Outcome(case, wrong.cer, missing.total(), warned, time.perf_counter() - began)


def outcomes(half: str, only: Sequence[str] = (), keep: Path | None = None) -> Iterator[Outcome]:
    """The outcome of each page of ``half``."""
    with tempfile.TemporaryDirectory() as folder:
        for case in HALVES[half]():
            if not only or case.name in only:
                yield outcome(case, keep or Path(folder))


def run(place: Place) -> list[Row]:
    """The rows of both halves and of the controls."""
    del place
    seen = list(outcomes("held"))
    good, right = sum(one.good for one in seen), sum(one.right for one in seen)
    failed = ", ".join(one.case.name for one in seen if not one.good) or "none"
    how = (
        f"made by this file: wrong OCR layers, turned text and tables, fonts without a map, lines drawn twice, "
        f"interleaved columns; read right {right}; neither: {failed}"
    )
    first = Row("PDF pages with known faults (held half): read right or noticed", ">= 90 %", f"{good} of {len(seen)}",
                met(good >= 0.9 * len(seen)), how)  # fmt: skip
    seen = list(outcomes("control"))
    warned, wrong = sum(bool(one.warnings) for one in seen), sum(not one.right for one in seen)
    how = f"the same layouts without a fault, 4 of {len(seen)} with a sound OCR layer; {wrong} not read right"
    return [first, Row("PDF pages without a fault: warned of", "0", f"{warned} of {len(seen)}", met(not warned), how)]


def main() -> None:
    """Print the outcome of each page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--half", choices=tuple(HALVES), default="held")
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    seen = []
    for one in outcomes(options.half, options.only, options.keep):
        seen.append(one)
        state = "right" if one.right else "noticed" if one.warnings else "WRONG"
        print(f"{one.case.name:20} {state:8} cer {one.cer:6.1%} missing {one.missing:2} {one.seconds:5.1f} s "
              f"{' '.join(one.warnings)}", flush=True)  # fmt: skip
    print(f"{sum(one.right for one in seen)} right, {sum(one.good for one in seen)} right or noticed of {len(seen)}, "
          f"{sum(bool(one.warnings) for one in seen)} warned of")  # fmt: skip


if __name__ == "__main__":
    main()
