"""Sets the PDFs of the starter corpus from the Markdown beside this file: ``python make_pdfs.py [--out FOLDER]``.

Each goes into the folder of the collection whose manifest (``starter-NAME.toml``) describes it.

The same sources give the same bytes: dates come from the edition, and there is no random file
identifier. Only the fonts inside PyMuPDF are used (Helvetica, and Droid Sans Fallback for Chinese), each cut down to
the characters that occur. The Markdown understood is what the sources use and no more: headings, paragraphs, ``- ``
and ``1. `` lists, and tables.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pymupdf

HERE = Path(__file__).parent
MANIFESTS = tuple(sorted(HERE.parent.glob("starter-*.toml")))
DEFAULT_OUT = HERE.parent / "starter"

A4 = (595.0, 842.0)  # points
MARGIN = 48.0
GUTTER = 22.0  # between two columns
LEADING = 1.4  # line height over type size
CELL = 3.5  # padding inside a table cell
NAVY, GREY, RULE = (0.06, 0.22, 0.42), (0.35, 0.38, 0.42), (0.6, 0.66, 0.72)
PALE, TINT = (0.87, 0.92, 0.97), (0.99, 0.95, 0.85)
HEADING_SIZE = {1: 1.75, 2: 1.22, 3: 1.06}  # over the body size
LATIN_EXTRA = "–≥≤×·°²•"  # outside ASCII, but drawn better by Helvetica than by the Chinese font
NOTICES = ("For demonstration", "仅供演示")

# A token is what a line may not break inside: a number and its unit, a word, or one Chinese character with the
# punctuation that clings to it.
UNIT = r"[(≥<]?\d[\d.,/]* (?:%|mg|mL|g|kg|mmHg|mmol|units|micrograms|minutes|months|hours|days)(?![a-z])"
WIDE = r"\u3000-\u9fff\uff00-\uffef“”"
TOKEN = re.compile(rf"[（《“]*(?:(?:{UNIT})?[^\s{WIDE}]*|[{WIDE}])[，。；：、）》”？！]*\s*")
ITEM = re.compile(r"(-|\d+\.) (.*)")

FONTS = {"latin": pymupdf.Font("helv"), "bold": pymupdf.Font("hebo"), "cjk": pymupdf.Font("cjk")}


@dataclass(frozen=True)
class Block:
    """A piece of the source: ``kind`` is heading, paragraph, item (``mark`` is its bullet or number) or table."""

    kind: str
    text: str = ""
    level: int = 0
    mark: str = ""
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Layout:
    """How one PDF is set; see ``layout.toml``."""

    columns: int = 1
    size: float = 10.0
    landscape: bool = False
    tables: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class Facts:
    """What the manifest says of the document."""

    title: str
    edition: str
    language: str


def parse(source: str) -> Iterator[Block]:
    """Yield the blocks of a Markdown source, in order."""
    for chunk in re.split(r"\n\s*\n", source.strip()):
        lines = chunk.splitlines()
        if chunk.startswith("#"):
            marks, _, text = chunk.partition(" ")
            yield Block("heading", text, level=len(marks))
        elif chunk.startswith("|"):
            cells = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
            yield Block("table", rows=tuple(row for row in cells if not set("".join(row)) <= {"-"}))
        elif ITEM.match(chunk):
            for mark, text in (match.groups() for match in map(ITEM.match, lines) if match):
                yield Block("item", text, mark="•" if mark == "-" else mark)
        else:
            yield Block("paragraph", " ".join(lines))


def runs(text: str, bold: bool) -> Iterator[tuple[str, str]]:
    """Split ``text`` into (font name, characters) runs."""

    def font(char: str) -> str:
        return ("bold" if bold else "latin") if char.isascii() or char in LATIN_EXTRA else "cjk"

    for name, chars in groupby(text, key=font):
        yield name, "".join(chars)


def width(text: str, size: float, bold: bool = False) -> float:
    """The width of ``text`` in points, trailing space left out."""
    return float(sum(FONTS[name].text_length(part, size) for name, part in runs(text.rstrip(), bold)))


def wrap(text: str, size: float, limit: float, bold: bool = False) -> list[str]:
    """Break ``text`` into lines no wider than ``limit`` points."""
    lines, line = [], ""
    for token in filter(None, TOKEN.findall(text)):
        if line and width(line + token, size, bold) > limit:
            lines.append(line.rstrip())
            line = ""
        line += token
    return [*lines, line.rstrip()] if line else lines


@dataclass
class Sheet:
    """The PDF being set: where the next line goes, column by column and page by page."""

    layout: Layout
    fonts: tuple[str, ...]
    pdf: Any = field(default_factory=pymupdf.open)
    shape: Any = None
    column: int = 0
    top: float = MARGIN
    y: float = 0.0
    outline: list[list[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.new_page()

    @property
    def paper(self) -> tuple[float, float]:
        return (A4[1], A4[0]) if self.layout.landscape else A4

    @property
    def bottom(self) -> float:
        return self.paper[1] - MARGIN - 12

    @property
    def column_width(self) -> float:
        count = self.layout.columns
        return (self.paper[0] - 2 * MARGIN - GUTTER * (count - 1)) / count

    @property
    def left(self) -> float:
        return MARGIN + self.column * (self.column_width + GUTTER)

    def new_page(self) -> None:
        """Close the page being drawn and open the next."""
        self.close_page()
        page = self.pdf.new_page(width=self.paper[0], height=self.paper[1])
        for name in self.fonts:
            page.insert_font(fontname=name, fontbuffer=FONTS[name].buffer)
        self.shape = page.new_shape()
        self.column, self.top = 0, MARGIN + 16
        self.y = self.top

    def close_page(self) -> None:
        """Put what was drawn onto the page."""
        if self.shape is not None:
            self.shape.commit()

    def need(self, height: float) -> None:
        """Go on to the next column or page unless ``height`` points are free."""
        if self.y + height <= self.bottom:
            return
        if self.column + 1 < self.layout.columns:
            self.column, self.y = self.column + 1, self.top
        else:
            self.new_page()

    def start_columns(self) -> None:
        """Begin the columns here, below what spans the page."""
        self.column, self.top = 0, self.y

    def put(self, x: float, text: str, size: float, bold: bool = False, colour: tuple[float, ...] = (0, 0, 0)) -> None:
        """Draw one line at ``x``, its box beginning at the current height."""
        for name, part in runs(text, bold):
            heavy = bold and name == "cjk"  # the Chinese font has no bold: its outline is drawn too
            self.shape.insert_text(
                (x, self.y + size),
                part,
                fontname=name,
                fontsize=size,
                color=colour,
                fill=colour,
                render_mode=2 if heavy else 0,
                border_width=0.03,
            )
            x += FONTS[name].text_length(part, size)

    def box(self, rect: tuple[float, float, float, float], fill: tuple[float, ...] | None, rule: bool) -> None:
        """Draw a rectangle, filled, ruled or both."""
        self.shape.draw_rect(rect)
        self.shape.finish(fill=fill, color=RULE if rule else None, width=0.6)


def set_lines(sheet: Sheet, text: str, indent: float = 0.0) -> None:
    """Set running text, line by line, in the current column."""
    size = sheet.layout.size
    for line in wrap(text, size, sheet.column_width - indent):
        sheet.need(size * LEADING)
        sheet.put(sheet.left + indent, line, size)
        sheet.y += size * LEADING


def set_heading(sheet: Sheet, block: Block) -> None:
    """Set a heading, kept with the lines that follow it."""
    size = sheet.layout.size * HEADING_SIZE[block.level]
    lines = wrap(block.text, size, sheet.column_width, bold=True)
    sheet.need(len(lines) * size * 1.3 + 4 * sheet.layout.size * LEADING)
    if sheet.y > sheet.top:
        sheet.y += size * 0.5
    sheet.outline.append([block.level, block.text, sheet.pdf.page_count])
    for line in lines:
        sheet.put(sheet.left, line, size, bold=True, colour=NAVY)
        sheet.y += size * 1.3
    sheet.y += size * 0.2


def set_item(sheet: Sheet, block: Block) -> None:
    """Set a list item with a hanging indent."""
    sheet.need(sheet.layout.size * LEADING)
    sheet.put(sheet.left + 2, block.mark, sheet.layout.size)
    set_lines(sheet, block.text, indent=14)
    sheet.y += sheet.layout.size * 0.25


def set_row(sheet: Sheet, row: tuple[str, ...], widths: list[float], header: bool) -> None:
    """Set one ruled table row at the current height; the caller has made room."""
    size, top, x = sheet.layout.size * 0.95, sheet.y, sheet.left
    height = row_height(sheet, row, widths, header)
    for cell, cell_width in zip(row, widths, strict=True):
        sheet.box((x, top, x + cell_width, top + height), PALE if header else None, rule=True)
        sheet.y = top + CELL
        for line in wrap(cell, size, cell_width - 2 * CELL, header):
            sheet.put(x + CELL, line, size, bold=header)
            sheet.y += size * 1.3
        x += cell_width
    sheet.y = top + height


def row_height(sheet: Sheet, row: tuple[str, ...], widths: list[float], header: bool) -> float:
    """The height of a table row, which is that of its tallest cell."""
    size = sheet.layout.size * 0.95
    cells = zip(row, widths, strict=True)
    lines = max(len(wrap(cell, size, cell_width - 2 * CELL, header)) for cell, cell_width in cells)
    return lines * size * 1.3 + 2 * CELL


def set_table(sheet: Sheet, rows: tuple[tuple[str, ...], ...], weights: tuple[float, ...]) -> None:
    """Set a table; its header is repeated wherever it goes on in a new column or page."""
    widths = [sheet.column_width * weight / sum(weights) for weight in weights]
    header = rows[0]
    room = row_height(sheet, header, widths, True)
    sheet.need(room + row_height(sheet, rows[1], widths, False))
    set_row(sheet, header, widths, header=True)
    for row in rows[1:]:
        before = (sheet.column, sheet.pdf.page_count)
        sheet.need(row_height(sheet, row, widths, False))
        if (sheet.column, sheet.pdf.page_count) != before:
            set_row(sheet, header, widths, header=True)
        set_row(sheet, row, widths, header=False)
    sheet.y += sheet.layout.size * 0.9


def set_title(sheet: Sheet, title: Block, notice: Block) -> None:
    """Set the title and the tinted notice across the whole page."""
    size, full = sheet.layout.size, sheet.paper[0] - 2 * MARGIN
    sheet.outline.append([1, title.text, 1])
    for line in wrap(title.text, size * HEADING_SIZE[1], full, bold=True):
        sheet.put(MARGIN, line, size * HEADING_SIZE[1], bold=True, colour=NAVY)
        sheet.y += size * HEADING_SIZE[1] * 1.3
    sheet.y += size * 0.5
    lines = wrap(notice.text, size, full - 16)
    sheet.box((MARGIN, sheet.y, MARGIN + full, sheet.y + len(lines) * size * LEADING + 10), TINT, rule=False)
    sheet.y += 5
    for line in lines:
        sheet.put(MARGIN + 8, line, size)
        sheet.y += size * LEADING
    sheet.y += 5 + size
    sheet.start_columns()


def set_running_lines(sheet: Sheet, facts: Facts) -> None:
    """Set the head and foot of every page: who, what, which edition, which page, and what it must not be used for."""
    chinese = facts.language == "zh"
    owner, notice = (
        ("演示医院", "仅供演示，不得用于临床")
        if chinese
        else ("Demonstration Hospital", f"{NOTICES[0]}, not for clinical use")
    )
    right, count = sheet.paper[0] - MARGIN, sheet.pdf.page_count
    for number, page in enumerate(sheet.pdf, 1):
        sheet.shape = page.new_shape()
        place = f"第{number}页，共{count}页" if chinese else f"Page {number} of {count}"
        foot = f"{'版本日期：' if chinese else 'Edition '}{facts.edition}   {notice}"
        for y, left_text, right_text in ((30.0, owner, facts.title), (sheet.paper[1] - 42, foot, place)):
            sheet.y = y
            sheet.put(MARGIN, left_text, 8, colour=GREY)
            sheet.put(right - width(right_text, 8), right_text, 8, colour=GREY)
        for y in (MARGIN - 4, sheet.paper[1] - 48):
            sheet.shape.draw_line((MARGIN, y), (right, y))
            sheet.shape.finish(color=RULE, width=0.6)
        sheet.close_page()


def typeset(source: str, layout: Layout, facts: Facts) -> Any:
    """Return the finished PDF, not yet saved."""
    title, notice, *blocks = parse(source)
    if title.text != facts.title or not notice.text.startswith(NOTICES) or facts.edition not in notice.text:
        raise SystemExit(f"{title.text}: title, notice and edition must agree with the manifest")
    fonts = tuple(FONTS) if facts.language == "zh" else ("latin", "bold")  # an unused font would be kept whole
    sheet, tables = Sheet(layout, fonts), iter(layout.tables)
    set_title(sheet, title, notice)
    for block in blocks:
        match block.kind:
            case "heading":
                set_heading(sheet, block)
            case "item":
                set_item(sheet, block)
            case "table":
                set_table(sheet, block.rows, next(tables))
            case _:
                set_lines(sheet, block.text)
                sheet.y += layout.size * 0.6
    sheet.close_page()
    set_running_lines(sheet, facts)
    finish(sheet, facts)
    return sheet.pdf


def finish(sheet: Sheet, facts: Facts) -> None:
    """Add bookmarks, language and fixed dates, and cut the fonts down to what is used."""
    date = f"D:{facts.edition.replace('-', '')}000000Z"
    keywords = f"{NOTICES[0]}, not for clinical use"
    about = {"title": facts.title, "author": "Demonstration Hospital", "creator": "localmed", "producer": "PyMuPDF"}
    sheet.pdf.set_metadata({**about, "subject": keywords, "creationDate": date, "modDate": date})
    sheet.pdf.set_toc(sheet.outline)
    sheet.pdf.set_language(facts.language)
    sheet.pdf.subset_fonts()


def read_layouts() -> dict[str, Layout]:
    """The PDFs to make, by name without ending."""
    table = tomllib.loads((HERE / "layout.toml").read_text(encoding="utf-8"))
    return {
        name: Layout(**{**entry, "tables": tuple(map(tuple, entry.get("tables", ())))}) for name, entry in table.items()
    }


def read_facts() -> dict[str, tuple[str, Facts]]:
    """Every described file's folder within the corpus, and its facts."""
    written = {}
    for manifest in MANIFESTS:
        folder = manifest.stem.removeprefix("starter-")
        for name, entry in tomllib.loads(manifest.read_text(encoding="utf-8")).get("documents", {}).items():
            written[name] = folder, Facts(entry["title"], entry["edition"], entry["language"])
    return written


def main() -> None:
    """Set every PDF into its collection's folder below the output folder."""
    parser = argparse.ArgumentParser(description="Set the PDFs of the starter corpus.")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="folder to write to")
    out: Path = parser.parse_args().out
    described = read_facts()
    for name, layout in read_layouts().items():
        folder, facts = described[f"{name}.pdf"]
        source = (HERE / f"{name}.md").read_text(encoding="utf-8")
        pdf = typeset(source, layout, facts)
        (out / folder).mkdir(exist_ok=True)
        pdf.save(out / folder / f"{name}.pdf", garbage=4, deflate=True, deflate_fonts=True, no_new_id=True)


if __name__ == "__main__":
    main()
