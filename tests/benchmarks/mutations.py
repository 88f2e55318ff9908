"""Files made bad in every way that damage, and harm on purpose, takes: from sound seeds, the same for the same number.

``mutated(seed, ending, others, number)`` changes one file. What a disk, a cable or a bad program does: flipped bytes,
cut ends, lost and doubled pieces, two files in one. What an attacker does: nesting without end, counts and lengths
without measure, members of a zip that lie about themselves.
"""

from __future__ import annotations

import io
import random
import re
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import docx
import openpyxl
import pptx

from tests.ingest.readers.pdf import fixtures as pdf_fixtures

FIXTURES = Path(__file__).parents[1] / "ingest" / "fixtures"
HUGE = (b"0", b"-1", b"65536", b"2147483647", b"-2147483648", b"4294967296", b"99999999999999999999")
DEEP = 20_000  # elements or objects within each other; libxml2 takes 256, our readers' recursion far fewer
MOST_BYTES = 4 * 2**20  # of a mutated file

Change = Callable[[bytes, random.Random, Sequence[bytes]], bytes]


def seeds(folder: Path) -> dict[str, list[bytes]]:
    """Sound files by their ending, made by our own code."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {".pdf": _pdfs(folder), ".docx": [_word(folder)], ".pptx": [_slides(folder)], ".xlsx": [_sheet(folder)]}
    xml = [path.read_bytes() for path in sorted(FIXTURES.glob("*.xml"))]
    return {ending: [path.read_bytes() for path in paths] for ending, paths in made.items()} | {".xml": xml}


def mutated(seed: bytes, ending: str, others: Sequence[bytes], number: int) -> tuple[str, bytes]:
    """``seed`` changed by mutation ``number``: the name of the change and the file."""
    dice = random.Random(f"{ending} {number}")
    own = PDF if ending == ".pdf" else XML if ending == ".xml" else ZIP
    changes = [*ANY.items(), *own.items(), *own.items()]  # what is made for the format gets further into its reader
    name, change = changes[number % len(changes)]
    return name, change(seed, dice, others)[:MOST_BYTES]


# --- any file --------------------------------------------------------------------------------------------------------


def flipped(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """Up to one byte in fifty is another."""
    changed = bytearray(seed)
    for _ in range(dice.choice((1, 4, 16, 64, max(1, len(seed) // 50)))):
        changed[dice.randrange(len(changed))] = dice.randrange(256)
    return bytes(changed)


def cut(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """The end is missing."""
    return seed[: dice.randrange(1, len(seed))]


def beheaded(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """The beginning is missing, or rubbish stands before it."""
    if dice.random() < 0.5:
        return seed[dice.randrange(1, min(len(seed), 2_000)) :]
    return dice.randbytes(dice.randrange(1, 2_000)) + seed


def lost(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """A piece is missing in the middle."""
    start, end = sorted(dice.randrange(len(seed)) for _ in range(2))
    return seed[:start] + seed[end:]


def doubled(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """A piece comes again, up to a thousand times."""
    start, end = sorted(dice.randrange(len(seed)) for _ in range(2))
    return seed[:end] + seed[start:end] * dice.choice((1, 10, 1_000)) + seed[end:]


def spliced(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """Half of one file and half of another."""
    other = dice.choice(others)
    return seed[: dice.randrange(1, len(seed))] + other[dice.randrange(len(other)) :]


def zeroed(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """A sector was never written."""
    start = dice.randrange(len(seed))
    return seed[:start] + bytes(min(4_096, len(seed) - start)) + seed[start + 4_096 :]


ANY: dict[str, Change] = {
    change.__name__: change for change in (flipped, cut, beheaded, lost, doubled, spliced, zeroed)
}  # fmt: skip


# --- PDF ---------------------------------------------------------------------------------------------------------


def numbers(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """Some numbers of the file are none that can be: lengths, counts, sizes of pages, references."""
    chance = dice.choice((0.005, 0.05, 0.3))
    return re.sub(rb"(?<=[ \[])\d+", lambda match: dice.choice(HUGE) if dice.random() < chance else match[0], seed)


def names(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """Keys stand in each other's place."""
    keys = sorted(set(re.findall(rb"/[A-Z]\w+", seed))) or [b"/Type"]
    old, new = dice.choice(keys), dice.choice(keys)
    return seed.replace(old, new)


def circle(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """References lead to other objects, perhaps back to where they stand."""
    objects = sorted(set(re.findall(rb"\b(\d+) 0 obj", seed))) or [b"1"]
    return re.sub(
        rb"\b\d+ 0 R", lambda match: dice.choice(objects) + b" 0 R" if dice.random() < 0.2 else match[0], seed
    )


def deep(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """Arrays or dictionaries within each other, without end."""
    at = dice.choice([match.end() for match in re.finditer(rb"<<", seed)] or [0])
    opening = dice.choice((b"/Kids [" * DEEP, b"/A <<" * DEEP, b"/B [" * DEEP + b"]" * DEEP))
    return seed[:at] + opening + seed[at:]


PDF: dict[str, Change] = {change.__name__: change for change in (numbers, names, circle, deep)}


# --- XML ---------------------------------------------------------------------------------------------------------


def nested(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """An element within itself, without end, closed or not."""
    at, tag = _element(seed, dice)
    many = dice.choice((300, DEEP))
    closing = (b"</%s>" % tag) * many if dice.random() < 0.7 else b""
    return seed[:at] + (b"<%s>" % tag) * many + closing + seed[at:]


def repeated(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """An element tens of thousands of times."""
    at, tag = _element(seed, dice)
    return seed[:at] + b"<%s>9999999999</%s>" % (tag, tag) * 50_000 + seed[at:]


def entities(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """Entities that grow, or that point outside."""
    laughs = b"".join(b'<!ENTITY a%d "%s">' % (level + 1, b"&a%d;" % level * 10) for level in range(9))
    outside = dice.choice((b'<!ENTITY a9 SYSTEM "file:///etc/passwd">', b'<!ENTITY a9 SYSTEM "http://127.0.0.1:9/x">'))
    kind = b'<!ENTITY a0 "ha">' + laughs if dice.random() < 0.5 else outside
    body = re.sub(rb"^\s*(<\?xml.*?\?>)?\s*(<!DOCTYPE[^\[>]*(\[.*?\])?\s*>)?", b"", seed, flags=re.DOTALL)
    match = re.match(rb"<(\w+)", body)
    root = match[1] if match else b"x"
    return b"<!DOCTYPE %s [%s]>" % (root, kind) + body.replace(b"</", b"&a9;</", dice.choice((1, 50)))


def attributes(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """Thousands of attributes, or one without end."""
    at, tag = _element(seed, dice)
    many = b" ".join(b'a%d="1"' % number for number in range(20_000))
    attribute = dice.choice((many, b'a="' + b"x" * 2_000_000 + b'"'))
    return seed[:at] + b"<%s %s/>" % (tag, attribute) + seed[at:]


def texts(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """What stands in some elements is empty, endless, a number without measure, or no character at all."""
    odd = (b"", b"x" * 1_000_000, *HUGE, b"&#0;", b"&#xD800;", "\u202e\ufeff".encode(), b"\x00", b"\xff\xfe")
    return re.sub(
        rb">[^<>]+<", lambda match: b">" + dice.choice(odd) + b"<" if dice.random() < 0.05 else match[0], seed
    )


def _element(seed: bytes, dice: random.Random) -> tuple[int, bytes]:
    """The place after an opening tag, and the tag's name."""
    tags = list(re.finditer(rb"<([A-Za-z]\w*)[^<>/]*>", seed))
    if not tags:
        return len(seed), b"x"
    chosen = dice.choice(tags)
    return chosen.end(), chosen[1]


XML: dict[str, Change] = {change.__name__: change for change in (nested, repeated, entities, attributes, texts)}


# --- Office files ------------------------------------------------------------------------------------------------


def member(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """One member is changed as any file or XML may be."""
    changes = [*ANY.values(), *XML.values()]

    def change(name: str, content: bytes) -> tuple[str, bytes] | None:
        del name
        return "", dice.choice(changes)(content, dice, [content]) if content else content

    return _rezipped(seed, dice, change)


def dropped(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """A member is missing."""
    return _rezipped(seed, dice, lambda name, content: None)


def renamed(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """A member is called otherwise: outside the package, like another, without end."""
    names_ = ("../../evil", "/etc/passwd", "word/document.xml", "x" * 60_000, "a/" * 20_000, "\u202egpj.exe", "")
    return _rezipped(seed, dice, lambda name, content: (dice.choice(names_), content))


def swollen(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """A member unpacks to a thousand times its size."""
    return _rezipped(seed, dice, lambda name, content: ("", content + b" " * dice.choice((10**6, 10**8))))


def crowded(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """Thousands of members more."""
    packed = io.BytesIO(seed)
    with zipfile.ZipFile(packed, "a") as package:
        for number in range(5_000):
            package.writestr(_entry(f"word/media/{number}.xml"), b"<x/>")
    return packed.getvalue()


def lying(seed: bytes, dice: random.Random, others: Sequence[bytes]) -> bytes:
    """The directory of the package says what is not so: sizes, places, checks, methods."""
    changed = bytearray(seed)
    places = [match.start() for match in re.finditer(rb"PK\x01\x02|PK\x03\x04", seed)]
    for at in dice.sample(places, min(len(places), dice.choice((1, 3, 20)))):
        for _ in range(4):
            changed[min(at + dice.randrange(4, 46), len(changed) - 1)] = dice.choice((0, 1, 0x7F, 0xFF))
    return bytes(changed)


def _entry(name: str) -> zipfile.ZipInfo:
    """A member that is the same at whatever time it is written."""
    return zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))


def _rezipped(seed: bytes, dice: random.Random, change: Callable[[str, bytes], tuple[str, bytes] | None]) -> bytes:
    """The package with one member changed (its new name or "", its content), or without it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(seed)) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        chosen = dice.choice([name for name in old.namelist() if not name.endswith("/")])
        for name in old.namelist():
            content = old.read(name)
            made = change(name, content) if name == chosen else (name, content)
            if made is not None:
                new.writestr(_entry(made[0] or name), made[1], zipfile.ZIP_DEFLATED)
    return packed.getvalue()


ZIP: dict[str, Change] = {change.__name__: change for change in (member, dropped, renamed, swollen, crowded, lying)}


# --- seeds -------------------------------------------------------------------------------------------------------


def _pdfs(folder: Path) -> list[Path]:
    makers = (pdf_fixtures.two_columns, pdf_fixtures.table, pdf_fixtures.journal_table, pdf_fixtures.with_furniture,
              pdf_fixtures.chinese, pdf_fixtures.scan, pdf_fixtures.hidden)  # fmt: skip
    return [make(folder / f"{make.__name__}.pdf") for make in makers]


def _word(folder: Path) -> Path:
    document = docx.Document()
    document.add_heading("Sepsis", 1)
    document.add_paragraph("Give antibiotics within one hour.", style="List Bullet")
    table = document.add_table(3, 3)
    for row, cells in enumerate(
        (("Drug", "Dose", "Days"), ("Amoxicillin", "500 mg", "5"), ("Gentamicin", "5 mg", "3"))
    ):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    document.add_heading("剂量", 2)
    document.add_paragraph("每日一次，每次五毫克。")
    document.save(str(folder / "word.docx"))
    return folder / "word.docx"


def _slides(folder: Path) -> Path:
    slides = pptx.Presentation()
    for number in range(3):
        slide = slides.slides.add_slide(slides.slide_layouts[1])
        slide.shapes.title.text = f"Slide {number}"
        slide.placeholders[1].text = "Wash hands before and after each patient."
    slides.save(str(folder / "slides.pptx"))
    return folder / "slides.pptx"


def _sheet(folder: Path) -> Path:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (("Drug", "Dose", "Route"), ("Amoxicillin", "500 mg", "oral"), ("Gentamicin", "5 mg/kg", "iv")):
        sheet.append(row)
    book.save(str(folder / "sheet.xlsx"))
    return folder / "sheet.xlsx"
