"""What our reader makes of PDFs that it was not written on; other libraries' figures stand in the experiments.

The ICDAR 2013 table competition (``icdar2013`` of the data: 67 PDFs of governments and the European Union, each with a
``-str.xml`` that has every cell). A row is right if one row of the output holds the text of all its cells (two at
least), and a cell is recovered if any output row holds its text: a table read as running text has recovered none of it.

Documents printed by Chromium from pages of our own layout (``pdf_printed.py``): guidelines with boxes and lists,
journals in two columns with footnotes, leaflets in three columns, Chinese in one and two columns, tables over two
pages. A sentence is right if it stands whole within one block; those out of order, and headings (F1), are counted too.
"""

from __future__ import annotations

import re
import unicodedata
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from localmed.ingest.parsed import FieldMapping, SourceRecord
from localmed.ingest.readers.pdf.reader import read
from localmed.ingest.reading import text_of
from tests.benchmarks.common import Place, Row
from tests.benchmarks.pdf_printed import Page, printed
from tests.benchmarks.reading_order import misplaced


def run(place: Place) -> list[Row]:
    """The rows of both sets."""
    tables, documents = Counter[str](), Counter[str]()
    files = sorted((place.data / "icdar2013").rglob("*.pdf"))
    for path in files:
        tables += rows_and_cells(icdar_rows(path.with_name(path.stem + "-str.xml")), texts(path)["row"])
    made = printed(place.work / "printed")
    for path, page in made.items():
        documents += sentences_and_headings(page, texts(path))
    of = f"{len(files)} PDFs that the reader was not written on"
    how = "own layouts, English and Chinese"
    whole, cells, sentences = (
        f"{found / max(1, total):.3f}"
        for found, total in (
            (tables["whole"], tables["rows"]),
            (tables["recovered"], tables["cells"]),
            (documents["found"], documents["sentences"]),
        )
    )
    both = 2 * documents["right"] / max(1, documents["claimed"] + documents["headings"])
    rows = [
        Row("Rows of ICDAR 2013's tables whole in one row of the output, ours", "", whole, "-", of),
        Row("Cells of ICDAR 2013's tables recovered, ours", "", cells, "-", of),
        Row(f"Sentences of {len(made)} printed documents whole in one block, ours", "",
            f"{sentences}, {documents['order']} out of order", "-", how),
        Row(f"Headings of {len(made)} printed documents, F1, ours", "", f"{both:.3f}", "-", how),
    ]  # fmt: skip
    return rows if files else rows[2:]


def texts(path: Path) -> dict[str, list[str]]:
    """The texts of prose (""), of table rows and of headings, in reading order."""
    (record,) = (entry for entry in read(path, FieldMapping()) if isinstance(entry, SourceRecord))
    found: dict[str, list[str]] = {"row": [], "heading": [], "": []}
    for block in record.blocks:
        found[block.kind if block.kind in found else ""].append(plain(text_of(block.lines)[0]))
    return found


def plain(text: str) -> str:
    """``text`` without white space, hyphenation and markup."""
    folded = re.sub(r"</?[a-z]+>", "", unicodedata.normalize("NFKC", text).casefold())
    return re.sub(r"[\s*_|`~\\\u00ad\u2010-\u2015\u2022-]+", "", folded)


def icdar_rows(truth: Path) -> list[list[str]]:
    """The rows of all tables of a file: the texts of their cells that hold any."""
    rows: dict[tuple[int, str, int], list[str]] = {}
    for number, table in enumerate(ElementTree.parse(truth).iter("table")):
        for region in table.iter("region"):
            for cell in region.iter("cell"):
                if text := plain(cell.findtext("content") or ""):
                    key = (number, str(region.get("id")), int(cell.get("start-row", "0")))
                    rows.setdefault(key, []).append(text)
    return list(rows.values())


def rows_and_cells(truth: Sequence[Sequence[str]], rows: Sequence[str]) -> Counter[str]:
    """Rows and cells of ``truth`` that stand in ``rows``, and how many there are of each."""
    full = [cells for cells in truth if len(cells) > 1]
    cells = [cell for row in truth for cell in row]
    return Counter(
        rows=len(full),
        whole=sum(any(all(cell in text for cell in row) for text in rows) for row in full),
        cells=len(cells),
        recovered=sum(any(cell in text for text in rows) for cell in cells),
    )


def sentences_and_headings(page: Page, found: dict[str, list[str]]) -> Counter[str]:
    """Sentences that stand whole in one block, those among them that are out of order, and headings."""
    blocks = found[""]
    offsets = [sum(map(len, blocks[:number])) for number in range(len(blocks))]
    positions: list[int | None] = []
    for sentence in map(plain, page.sentences):
        starts = (at + text.find(sentence) for at, text in zip(offsets, blocks, strict=True) if sentence in text)
        positions.append(next(starts, None))
    headings, claimed = {plain(text) for text in page.headings}, {*found["heading"]}
    return Counter(
        sentences=len(positions),
        found=sum(place is not None for place in positions),
        order=misplaced(positions),
        headings=len(headings),
        claimed=len(claimed),
        right=len(headings & claimed),
    )
