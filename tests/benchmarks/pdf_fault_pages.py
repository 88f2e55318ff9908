"""PDF pages with known faults, made of the starter corpus's texts, and what is printed on each (``pdf_faults.py``)."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pymupdf

from tests.benchmarks.pdf_printed import CHINESE, ENGLISH, medicines, texts


@dataclass(frozen=True)
class Look:
    """How a page is set."""

    language: str
    font: str
    size: float = 10.0
    width: float = 420.0
    height: float = 595.0
    margin: float = 40.0
    leading: float = 1.35


@dataclass
class Sheet:
    """What is printed on a page: lines (x, baseline, text), rules, and the text in reading order."""

    look: Look
    lines: list[tuple[float, float, str]] = field(default_factory=list)
    rules: list[tuple[float, float, float, float]] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What is printed, in reading order."""
        return "\n".join(self.printed)


Maker = Callable[[Sheet], Any]  # a one-page document


def wrapped(text: str, look: Look, width: float) -> list[str]:
    """``text`` in lines of ``width`` points."""
    font = pymupdf.Font(look.font)
    parts = list(text) if look.language == "zh" else re.findall(r"\S+\s*", text)
    lines, line = [], ""
    for part in parts:
        if line and font.text_length((line + part).rstrip(), look.size) > width:
            lines.append(line.rstrip())
            line = ""
        line += part
    return [*lines, line.rstrip()]


def columns(look: Look, pool: list[str], count: int, gutter: float, rows: int, by_row: bool = False) -> Sheet:
    """``count`` columns of prose with ``gutter`` points between them; ``by_row``: lines take turns in the file."""
    sheet = Sheet(look)
    width = (look.width - 2 * look.margin - (count - 1) * gutter) / count
    text = ("" if look.language == "zh" else " ").join(pool)
    lines = wrapped(text, look, width)[: rows * count]
    for number, line in enumerate(lines):
        column, row = divmod(number, rows)
        place = look.margin + column * (width + gutter), look.margin + 20 + row * look.size * look.leading
        sheet.lines.append((*place, line))
    sheet.printed = lines
    if by_row:
        sheet.lines.sort(key=lambda line: line[1])
    return sheet


def prose(look: Look, pool: list[str], rows: int = 14) -> Sheet:
    """One column."""
    return columns(look, pool, 1, 0.0, rows)


def table(look: Look, pool: list[str], start: int, above: int = 3, side: int = 3) -> Sheet:
    """A few lines of prose and a ruled formulary below."""
    sheet = prose(look, pool, above)
    top = look.margin + 20 + above * look.size * look.leading + 10
    body = medicines(60)
    cells = [[cell[:24] for cell in row[:side]] for row in (body[0], *body[start : start + 5])]
    wide, tall = (look.width - 2 * look.margin) / side, 1.8 * look.size
    for number in range(len(cells) + 1):
        sheet.rules.append((look.margin, top + number * tall, look.width - look.margin, top + number * tall))
    for number in range(side + 1):
        sheet.rules.append((look.margin + number * wide, top, look.margin + number * wide, top + len(cells) * tall))
    for number, row in enumerate(cells):
        for place, cell in enumerate(row):
            sheet.lines.append((look.margin + place * wide + 3, top + number * tall + 1.3 * look.size, cell))
    paired = [cell for pair in zip(*cells[:2], strict=True) for cell in pair]  # rows are read with their headers
    sheet.printed = [*sheet.printed, *paired, *(cell for row in cells[2:] for cell in row)]
    return sheet


# --- how a sheet is printed -------------------------------------------------------------------------------------------


def plain(sheet: Sheet, mode: int = 0, onto: Any = None) -> Any:
    """As it should be."""
    document = onto or pymupdf.open()
    page = document[0] if onto else document.new_page(width=sheet.look.width, height=sheet.look.height)
    writer, font = pymupdf.TextWriter(page.rect), pymupdf.Font(sheet.look.font)
    for x, y, text in sheet.lines:
        writer.append((x, y), text, font=font, fontsize=sheet.look.size)
    writer.write_text(page, render_mode=mode)
    for x0, y0, x1, y1 in sheet.rules:
        page.draw_line((x0, y0), (x1, y1), width=0.6)
    return document


def pictured(sheet: Sheet, dpi: int = 150, turn: int = 0) -> Any:
    """A scan: the picture alone, turned by ``turn`` degrees."""
    whole = plain(sheet)[0].get_pixmap(dpi=dpi)
    wide, tall = sheet.look.width, sheet.look.height
    document = pymupdf.open()
    page = document.new_page(width=tall if turn % 180 else wide, height=wide if turn % 180 else tall)
    page.insert_image(page.rect, stream=whole.tobytes("png"), rotate=turn, keep_proportion=False)
    return document


def turned(sheet: Sheet, turn: int, shown: int = 0) -> Any:
    """The text printed turned by ``turn`` degrees; ``shown`` is the page's own rotation."""
    source, look = plain(sheet), sheet.look
    document = pymupdf.open()
    wide, tall = (look.height, look.width) if turn % 180 else (look.width, look.height)
    page = document.new_page(width=wide, height=tall)
    page.show_pdf_page(page.rect, source, 0, rotate=turn)
    page.set_rotation(shown)
    return document


def beside(upright: Sheet, lying: Sheet, turn: int) -> Any:
    """``upright`` in the upper half of a page, ``lying`` turned in the lower half."""
    document = pymupdf.open()
    look = upright.look
    page = document.new_page(width=look.width, height=look.height + lying.look.width)
    page.show_pdf_page(pymupdf.Rect(0, 0, look.width, look.height), plain(upright), 0)
    below = pymupdf.Rect(0, look.height, lying.look.height, look.height + lying.look.width)
    page.show_pdf_page(below, plain(lying), 0, rotate=turn)
    return document


def wrong_layer(sheet: Sheet, seed: int, share: float, numbers: float, mode: int = 3) -> Any:
    """A picture of the page over (``mode`` 0) or under invisible (3) text in which letters and numbers are wrong."""
    chance = random.Random(seed)
    odd = "日曰己已未末人入土士干千王玉大太" if sheet.look.language == "zh" else "lI1rnmcoeaOQ0uvwtf"

    def worsened(text: str) -> str:
        letters = [
            chance.choice("0123456789OZq") if one.isdigit() and chance.random() < numbers
            else chance.choice(odd) if one.isalpha() and chance.random() < share else one
            for one in text
        ]  # fmt: skip
        return "".join(letters)

    bad = replace_lines(sheet, [(x, y, worsened(text)) for x, y, text in sheet.lines])
    picture = plain(sheet)[0].get_pixmap(dpi=150).tobytes("png")
    document = pymupdf.open()
    page = document.new_page(width=sheet.look.width, height=sheet.look.height)
    if mode == 3:
        page.insert_image(page.rect, stream=picture)
    plain(bad, mode, document)
    if mode != 3:
        page.insert_image(page.rect, stream=picture)
    document.set_metadata({"producer": "OCR Scanner 2.1", "creator": "Scan to PDF"})
    return document


def replace_lines(sheet: Sheet, lines: list[tuple[float, float, str]]) -> Sheet:
    """``sheet`` with other lines and no rules."""
    return replace(sheet, lines=lines, rules=[])


def unmapped(sheet: Sheet, kind: str, lines: slice = slice(None)) -> Any:
    """The font of ``lines`` has no map (``none``), a shifted one (``shift``), or one in order of use (``order``)."""
    chosen = sheet.lines[lines]
    document = plain(replace(sheet, lines=[line for line in sheet.lines if line not in chosen]))
    before = {font[0] for font in document[0].get_fonts()}
    plain(replace(sheet, lines=chosen, rules=[]), onto=document)
    fonts = [font[0] for font in document[0].get_fonts() if font[0] not in before]
    characters = dict.fromkeys("".join(text for _, _, text in chosen))
    font = pymupdf.Font(sheet.look.font)
    codes = {
        one: ord(one) - 29 if kind == "shift" and 32 <= ord(one) < 0x3000 else 33 + number % 94
        for number, one in enumerate(characters)
    }
    for xref in fonts:
        if kind == "none":
            document.xref_set_key(xref, "ToUnicode", "null")
            continue
        target = document.get_new_xref()
        document.update_object(target, "<<>>")
        pairs = "\n".join(f"<{font.has_glyph(ord(one)):04x}> <{codes[one]:04x}>" for one in characters)
        cmap = (
            "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def\n"
            "1 begincodespacerange <0000> <ffff> endcodespacerange\n"
            f"{len(characters)} beginbfchar\n{pairs}\nendbfchar\nendcmap end end"
        )
        document.update_stream(target, cmap.encode())
        document.xref_set_key(xref, "ToUnicode", f"{target} 0 R")
    return document


def doubled(sheet: Sheet, right: float, down: float, by_word: bool = False) -> Any:
    """Everything twice, moved by so many points; the second time word by word."""
    document, font, size = plain(sheet), pymupdf.Font(sheet.look.font), sheet.look.size
    again = []
    for x, y, text in sheet.lines:
        for word in re.finditer(r"\S+", text) if by_word else [re.fullmatch(r".*", text)]:
            if word:
                again.append((x + right + font.text_length(text[: word.start()], size), y + down, word[0]))
    return plain(replace_lines(sheet, again), onto=document)


def spaced(sheet: Sheet, gap: int) -> Any:
    """Columns of a typewriter page: each row one string, columns ``gap`` blanks apart."""
    rows: dict[float, list[str]] = {}
    for _, y, text in sorted(sheet.lines, key=lambda line: (line[1], line[0])):
        rows.setdefault(y, []).append(text)
    wide = max(len(text) for texts_ in rows.values() for text in texts_) + gap
    lines = [(sheet.look.margin / 2, y, "".join(text.ljust(wide) for text in row).rstrip()) for y, row in rows.items()]
    return plain(replace_lines(sheet, lines))


# --- the pages --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A page: its name, its fault, what is printed on it, and how its file is made."""

    name: str
    fault: str
    text: str
    make: Callable[[], Any]


def pools(held: bool) -> tuple[list[str], list[str]]:
    """English and Chinese sentences; the halves share none."""
    english = texts(ENGLISH[3:] if held else ENGLISH[:3], "en")
    chinese = texts(CHINESE[2:] if held else CHINESE[:2], "zh")
    return english, chinese


def held() -> Iterator[Case]:
    """The half that was kept back; the other half, on which the rules were made, is gone."""
    english, chinese = pools(held=True)
    en, zh = Look("en", "tiro", 11, 480, 640, 44, 1.25), Look("zh", "cjk", 11, 460, 620, 36, 1.5)
    mono = Look("en", "cour", 9, 520, 560, 42, 1.4)

    def case(name: str, fault: str, sheet: Sheet, make: Maker, text: str = "") -> Case:
        return Case(name, fault, text or sheet.text, lambda: make(sheet))

    yield case("layer-serif", "layer", prose(en, english, 18), lambda sheet: wrong_layer(sheet, 11, 0.05, 0.4))
    yield case("layer-table", "layer", table(en, english[6:], 14), lambda sheet: wrong_layer(sheet, 12, 0.03, 0.5))
    yield case("layer-zh-light", "layer", prose(zh, chinese, 12), lambda sheet: wrong_layer(sheet, 13, 0.04, 0.5))
    yield case("layer-columns", "layer", columns(en, english[9:], 2, 20, 20),
               lambda sheet: wrong_layer(sheet, 14, 0.1, 0.2, 0))  # fmt: skip
    yield case("turned-270-zh", "turned", prose(zh, chinese[2:], 13), lambda sheet: turned(sheet, 270))
    yield case("turned-shown", "turned", prose(mono, english[4:], 16), lambda sheet: turned(sheet, 90, 180))
    yield case("turned-90-table", "turned", table(en, english[2:], 20, 5), lambda sheet: turned(sheet, 90))
    upright, lying = table(en, english[12:], 8), prose(replace(en, width=440, height=260), english[20:], 9)
    yield case("half-turned-prose", "turned", upright, lambda sheet: beside(sheet, lying, 270),
               upright.text + lying.text)  # fmt: skip
    yield case("scan-90-zh", "turned", prose(zh, chinese[5:], 12), lambda sheet: pictured(sheet, turn=90))
    yield case("no-map-zh", "map", prose(zh, chinese[6:], 12), lambda sheet: unmapped(sheet, "none"))
    yield case("map-by-order", "map", prose(mono, english[7:], 15), lambda sheet: unmapped(sheet, "order"))
    yield case("half-shifted", "map", prose(en, english[10:], 18),
               lambda sheet: unmapped(sheet, "shift", slice(6, 14)))  # fmt: skip
    yield case("lines-no-map", "map", prose(en, english[14:], 18),
               lambda sheet: unmapped(sheet, "none", slice(2, 5)))  # fmt: skip
    yield case("doubled-zh", "doubled", prose(zh, chinese[1:], 13), lambda sheet: doubled(sheet, 0.6, 1.4))
    yield case("doubled-table", "doubled", table(en, english[5:], 26, 6), lambda sheet: doubled(sheet, 1.3, 0.4))
    yield case("doubled-words", "doubled", prose(mono, english[8:], 16), lambda sheet: doubled(sheet, 2.2, 0.9, True))
    yield case("columns-three", "columns", columns(replace(en, size=8), english, 3, 8, 26, True), plain)
    yield case("columns-two-zh", "columns", columns(replace(zh, size=9), chinese, 2, 8, 24, True), plain)
    typewriter = columns(Look("en", "cour", 7, 640, 420), english[6:], 3, 40, 18)
    yield case("columns-typed-three", "columns", typewriter, lambda sheet: spaced(sheet, 2))
    yield case("columns-scan-zh", "columns", columns(replace(zh, size=9), chinese[4:], 2, 9, 20), pictured)


def controls() -> Iterator[Case]:
    """The same layouts of both halves without a fault, and a sound OCR layer."""
    for number, is_held in enumerate((False, True)):
        english, chinese = pools(is_held)
        en, zh = (Look("en", "tiro" if is_held else "helv"), Look("zh", "cjk"))
        sheets = {
            "prose": prose(en, english[3:]),
            "prose-zh": prose(zh, chinese[1:]),
            "table": table(en, english, 5 + number),
            "columns": columns(en, english[7:], 2, 18, 22),
            "columns-zh": columns(zh, chinese[3:], 2, 18, 20),
        }
        for name, sheet in sheets.items():
            yield Case(f"{name}-{number}", "none", sheet.text, lambda sheet=sheet: plain(sheet))  # type: ignore[misc]
        for name in ("prose", "prose-zh"):
            sheet = sheets[name]
            yield Case(f"{name}-layer-{number}", "none", sheet.text,
                       lambda sheet=sheet: wrong_layer(sheet, 0, 0.0, 0.0))  # type: ignore[misc]  # fmt: skip


HALVES: dict[str, Callable[[], Iterator[Case]]] = {"held": held, "control": controls}
