"""PDF reading against libraries: our reader, pymupdf4llm, pdfplumber and PyMuPDF's own text, on PDFs new to ours.

Not part of ``make bench``: the peers are no dependencies. Two sets, neither looked at while our reader was written:

- ``--tables DIR``: the ICDAR 2013 table competition (67 PDFs of governments and the European Union, 156 tables): a PDF
  and its ``-str.xml`` with every cell. A row is right if one row of a reader's output holds the text of all its cells
  (two at least), and *alone* if that output row holds no other row below the first two of a table, which may be headers
  that a row repeats. A cell is recovered if any output row
  holds its text. Only rows count: a reader that gives a table as running text has recovered none of it.
- ``--printed DIR``: documents printed by Chromium from pages of our own layout (``pdf_printed.py``): guidelines with
  boxes and lists, journals in two columns with footnotes, leaflets in three columns, Chinese in one and two columns,
  tables over two pages. The truth is what was printed: sentences whole and right within one block, those out of order,
  table rows as above, and headings (F1 of their texts).

Each reader runs once per file in a process of its own: seconds of processor time without its imports, peak memory.

    python -m tests.benchmarks.pdf_peers --tables DIR --printed DIR [--peers PYTHON] [--only READER ...]

``--peers`` is an interpreter that has pymupdf4llm and pdfplumber.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import unicodedata
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.reading_order import misplaced

WORKER = Path(__file__).with_name("pdf_peers_worker.py")
READERS = ("localmed", "pymupdf4llm", "pdfplumber", "pymupdf")
TELLING = 12  # characters of a row; shorter ones ("1 2") stand in many others by chance
SECONDS = 300  # of one file; one that takes longer counts as read empty


@dataclass(frozen=True, slots=True)
class Output:
    """What a reader made of a file: blocks in reading order, table rows, headings; seconds; peak memory in MiB."""

    blocks: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    seconds: float = 0.0
    memory: float = 0.0
    failed: bool = False


def output(reader: str, python: str, path: Path) -> Output:
    """Read ``path`` by ``reader`` in a process of its own."""
    command = [python, str(WORKER), reader, str(path)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=True, cwd=Path(__file__).parents[2])
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return Output(failed=True)
    values: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    blocks, rows, headings = (tuple(values[name]) for name in ("blocks", "rows", "headings"))
    return Output(blocks, rows, headings, values["seconds"], values["memory"])


def plain(text: str) -> str:
    """``text`` without white space, hyphenation and markup, so that readers are not told apart by spacing."""
    folded = re.sub(r"</?[a-z]+>", "", unicodedata.normalize("NFKC", text).casefold())
    return re.sub(r"[\s*_|`~\\\u00ad\u2010-\u2015\u2022-]+", "", folded)


def icdar_rows(truth: Path) -> list[list[str]]:
    """The rows of all tables of a file: the texts of their cells that hold any."""
    rows: dict[tuple[str, str, int], list[str]] = {}
    for number, table in enumerate(ElementTree.parse(truth).iter("table")):
        for region in table.iter("region"):
            for cell in region.iter("cell"):
                text = plain(cell.findtext("content") or "")
                if text:
                    key = (str(number), str(region.get("id")), int(cell.get("start-row", "0")))
                    rows.setdefault(key, []).append(text)
    return list(rows.values())


def counted_rows(truth: Sequence[Sequence[str]], rows: Sequence[str]) -> dict[str, int]:
    """Rows and cells of ``truth`` that stand in ``rows``, and how many there are of each."""
    texts = [plain(row) for row in rows]
    full = [cells for cells in truth if len(cells) > 1]
    whole = [[text for text in texts if all(cell in text for cell in cells)] for cells in full]
    body = [cells for cells in full[2:] if sum(map(len, cells)) >= TELLING]
    alone = sum(
        any(not any(all(cell in text for cell in other) for other in body if other != cells) for text in matches)
        for cells, matches in zip(full, whole, strict=True)
    )
    cells = [cell for row in truth for cell in row]
    return {
        "rows": len(full), "whole": sum(map(bool, whole)), "alone": alone,
        "cells": len(cells), "recovered": sum(any(cell in text for text in texts) for cell in cells),
    }  # fmt: skip


def heading_counts(truth: Sequence[str], headings: Sequence[str]) -> dict[str, int]:
    """Headings that are right, printed, and claimed."""
    printed, claimed = {plain(text) for text in truth}, {plain(text) for text in headings}
    return {"printed": len(printed), "claimed": len(claimed), "right": len(printed & claimed)}


def sentence_counts(truth: Sequence[str], blocks: Sequence[str]) -> dict[str, int]:
    """Sentences that stand whole and right in one block, and those among them that are out of order."""
    texts = [plain(block) for block in blocks]
    offsets = [sum(map(len, texts[:number])) for number in range(len(texts))]
    positions: list[int | None] = []
    for sentence in map(plain, truth):
        starts = (offset + text.find(sentence) for offset, text in zip(offsets, texts, strict=True) if sentence in text)
        positions.append(next(starts, None))
    return {
        "sentences": len(truth),
        "found": sum(place is not None for place in positions),
        "order": misplaced(positions),
    }


def measured(reader: str, python: str, files: Sequence[Path], printed: bool) -> Iterator[tuple[Path, dict[str, float]]]:
    """One dictionary of counts a file."""
    for path in files:
        made = output(reader, python, path)
        counts: dict[str, float] = {"seconds": made.seconds, "memory": made.memory, "failed": made.failed}
        if printed:
            truth = json.loads(path.with_suffix(".json").read_text("utf-8"))
            rows = [[plain(cell) for cell in row if plain(cell)] for row in truth["rows"]]
            counts |= sentence_counts(truth["sentences"], made.blocks) | heading_counts(
                truth["headings"], made.headings
            )
            counts |= counted_rows(rows, made.rows)
        else:
            counts |= counted_rows(icdar_rows(path.with_name(path.stem + "-str.xml")), made.rows)
        yield path, counts


def summary(counts: Sequence[dict[str, float]]) -> str:
    """One line of figures over all files."""

    def total(name: str) -> float:
        return sum(row.get(name, 0) for row in counts)

    def share(part: str, whole: str) -> str:
        return f"{total(part) / total(whole):.3f}" if total(whole) else "-"

    figures = [f"rows whole {share('whole', 'rows')}", f"alone {share('alone', 'rows')}",
               f"cells {share('recovered', 'cells')}"]  # fmt: skip
    if total("sentences"):
        precision, recall = (total("right") / (total(name) or 1) for name in ("claimed", "printed"))
        both = 2 * precision * recall / (precision + recall or 1)
        figures += [f"sentences {share('found', 'sentences')}", f"out of order {total('order'):.0f}",
                    f"headings F1 {both:.3f}"]  # fmt: skip
    times, memory = [row["seconds"] for row in counts], max(row["memory"] for row in counts)
    figures += [f"median {statistics.median(times):.2f} s", f"in all {sum(times):.0f} s", f"peak {memory:.0f} MiB",
                f"failed {total('failed'):.0f}"]  # fmt: skip
    return ", ".join(figures)


def main() -> None:
    """Print a line a reader and set; with ``--files`` one a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name in ("tables", "printed"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--only", nargs="*", default=READERS)
    parser.add_argument("--files", action="store_true")
    options = parser.parse_args()
    for folder, printed in ((options.tables, False), (options.printed, True)):
        files = sorted(path for path in folder.rglob("*.pdf")) if folder else []
        for reader in options.only if files else ():
            python = sys.executable if reader == "localmed" else options.peers
            counts = list(measured(reader, python, files, printed))
            print(f"{'printed' if printed else 'tables'} ({len(files)} files), {reader}: "
                  f"{summary([row for _, row in counts])}", flush=True)  # fmt: skip
            for path, row in counts if options.files else ():
                print(f"  {path.name}: {json.dumps(row)}")


if __name__ == "__main__":
    main()
