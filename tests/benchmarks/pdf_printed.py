"""Documents for ``pdf_peers``: the starter corpus's texts in layouts that our reader was not written on.

Chromium prints pages of HTML; the sentences in reading order and the headings are known of each.
"""

from __future__ import annotations

import html
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

from localmed.text.language import sentences
from tests.web.conftest import CHROMIUM

CORPUS = Path(__file__).parents[2] / "corpora"
ENGLISH = ("starter/guidelines/pneumonia.md", "starter/guidelines/vte-prophylaxis.md",
           "starter/guidelines/sepsis-first-hour.md", "starter/guidelines/hypertension-2024.md",
           "starter_sources/type2-diabetes.md", "starter/local/department-guide.md")  # fmt: skip
CHINESE = ("starter/guidelines/stroke-zh.md", "starter_sources/hypertension-zh.md", "starter_sources/child-fever-zh.md",
           "starter/local/department-guide-zh.md")  # fmt: skip
RUNNING = "<div class='head'>{head}</div><div class='foot'>{foot}</div>"
STYLE = """@page {{ size: {size}; margin: 22mm 18mm }}
body {{ font-family: 'Liberation Serif','Noto Serif CJK SC','Noto Sans CJK SC',serif; font-size: {points}pt;
 line-height: 1.35;
 hyphens: {hyphens}; text-align: {align} }}
h1 {{ font-size: 17pt }} h2 {{ font-size: 12.5pt }} h3 {{ font-size: 10.5pt; font-style: italic }}
.columns {{ column-count: {columns}; column-gap: 9mm }} .whole {{ column-span: all }}
.box {{ border: 1pt solid #357; background: #eef4fa; padding: 6pt; margin: 6pt 0; break-inside: avoid }}
.note {{ font-size: 7.5pt; border-top: .5pt solid #555 }} sup {{ font-size: 6pt }}
table {{ border-collapse: collapse; width: 100%; margin: 6pt 0 }} td, th {{ padding: 3pt 5pt; text-align: left;
 vertical-align: top }} .ruled td, .ruled th {{ border: .6pt solid #333 }} .lines {{ border-top: 1pt solid;
 border-bottom: 1pt solid }} .lines thead th {{ border-bottom: .6pt solid }} .bands tr:nth-child(even) {{ background:
 #ddd }}
.side {{ display: grid; grid-template-columns: 2fr 1fr; gap: 8mm }} .side aside {{ background: #f3efe2; padding: 5pt
 }}
.cards {{ display: grid; grid-template-columns: 1fr 1fr; gap: 6mm }} .cards > div {{ border: .6pt solid #888;
 padding: 6pt;
 break-inside: avoid }} .head {{ position: fixed; top: -14mm; font-size: 8pt }} .foot {{ position: fixed; bottom:
 -14mm;
 font-size: 8pt }}"""


@dataclass
class Page:
    """A document while it is written: its HTML, and the truth of what is printed."""

    body: list[str] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)

    def heading(self, text: str, level: int = 2, extra: str = "") -> None:
        """A heading of ``level``."""
        self.headings.append(text)
        self.body.append(f"<h{level} {extra}>{html.escape(text)}</h{level}>")

    def prose(self, parts: Sequence[str], tag: str = "p", extra: str = "", kept: bool = True) -> None:
        """Sentences as one paragraph; not ``kept`` ones may come anywhere (footnotes)."""
        self.sentences.extend(parts if kept else ())
        self.body.append(f"<{tag} {extra}>{html.escape(' '.join(parts))}</{tag}>")

    def listing(self, items: Sequence[str], tag: str = "ul") -> None:
        """Sentences as a list, one an item."""
        self.sentences.extend(items)
        self.body.append(f"<{tag}>" + "".join(f"<li>{html.escape(item)}</li>" for item in items) + f"</{tag}>")

    def table(self, rows: Sequence[Sequence[str]], style: str) -> None:
        """A table with a header row."""
        first, *rest = ("".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)
                        for tag, row in zip(["th", *["td"] * (len(rows) - 1)], rows, strict=True))  # fmt: skip
        lines = "".join(f"<tr>{row}</tr>" for row in rest)
        self.body.append(f"<table class='{style}'><thead><tr>{first}</tr></thead><tbody>{lines}</tbody></table>")

    def raw(self, text: str) -> None:
        """HTML that prints no text of its own."""
        self.body.append(text)


def texts(names: Sequence[str], language: str) -> list[str]:
    """Sentences of the corpus that are prose: 25 characters at least (12 in Chinese), each once."""
    least = 12 if language == "zh" else 25
    phrases: dict[str, None] = {}
    for name in names:
        for line in (CORPUS / name).read_text("utf-8").splitlines():
            if line.strip() and not line.lstrip().startswith(("#", "|", ">", "-", "*", "`")) and ":" not in line[:12]:
                plain = line.replace("*", "").replace("`", "")
                phrases |= dict.fromkeys(plain[start:end].strip() for start, end in sentences(plain))
    return [sentence for sentence in phrases if len(sentence) >= least]


def medicines(count: int) -> list[list[str]]:
    """The rows of a formulary, header first."""
    lines = (CORPUS / "starter_sources" / "formulary.md").read_text("utf-8").splitlines()
    rows = [line.strip("| ").split("|") for line in lines if line.startswith("|")]
    cells = [[cell.strip() for cell in row] for row in rows if set("".join(row)) - set("- |:")]
    return [cells[0], *islice(cycle(cells[1:]), count)]


def guideline(pool: list[str], names: Sequence[str], boxed: bool, page: Page) -> None:
    """Sections of paragraphs, lists and recommendation boxes."""
    for number, name in enumerate(names):
        page.heading(name, 2 if number % 3 else 1)
        page.prose(take(pool, 3))
        if boxed:
            page.raw("<div class='box'>")
            page.prose(take(pool, 2))
            page.raw("</div>")
        page.listing(take(pool, 3), "ol" if number % 2 else "ul")
        page.prose(take(pool, 4))


def take(pool: list[str], count: int) -> list[str]:
    """The next ``count`` sentences; the pool goes round."""
    chosen, pool[:] = pool[:count], pool[count:] + pool[:count]
    return chosen


HEADINGS = {"en": ("Scope of this guideline", "Assessment on arrival", "Who should be treated", "First-line treatment",
                   "Monitoring and follow-up", "When to call a specialist"),
            "zh": ("适用范围", "入院时的评估", "治疗对象", "首选治疗", "监测与随访", "何时请专科会诊")}  # fmt: skip
# name: (language, columns, size, points, hyphens, align, kind)
LAYOUTS = {
    "guideline-one-column": ("en", 1, "A4", 10, "none", "left", "boxed"),
    "guideline-two-columns": ("en", 2, "A4", 9, "none", "left", "boxed"),
    "journal-two-columns": ("en", 2, "A4", 8.5, "auto", "justify", "journal"),
    "journal-letter-narrow": ("en", 2, "Letter", 7.5, "auto", "justify", "journal"),
    "leaflet-three-columns": ("en", 3, "A4 landscape", 9, "none", "left", "plain"),
    "leaflet-cards": ("en", 1, "A4", 9.5, "none", "left", "cards"),
    "side-notes": ("en", 1, "A4", 9.5, "none", "left", "side"),
    "formulary-ruled": ("en", 1, "A4", 8.5, "none", "left", "ruled"),
    "formulary-lines": ("en", 1, "A4", 8.5, "none", "left", "lines"),
    "formulary-bands": ("en", 1, "A4", 8.5, "none", "left", "bands"),
    "zh-one-column": ("zh", 1, "A4", 10.5, "none", "justify", "boxed"),
    "zh-two-columns": ("zh", 2, "A4", 9, "none", "justify", "plain"),
    "zh-cards": ("zh", 1, "A4", 10, "none", "left", "cards"),
    "zh-three-columns": ("zh", 3, "A4 landscape", 8.5, "none", "justify", "plain"),
    "running-heads": ("en", 2, "A4", 9, "auto", "left", "running"),
}


def written(name: str) -> tuple[str, Page]:
    """The HTML of the layout ``name`` and its truth."""
    language, columns, size, points, hyphens, align, kind = LAYOUTS[name]
    pool, page = texts(ENGLISH if language == "en" else CHINESE, language), Page()
    take(pool, 7 * list(LAYOUTS).index(name) % len(pool))
    page.raw(RUNNING.format(head="Our hospital · Clinical guidelines", foot="Version 3 · for demonstration")
             if kind == "running" else "")  # fmt: skip
    page.heading(name.replace("-", " ").capitalize() if language == "en" else "临床参考资料", 1, "class='whole'")
    if kind in ("ruled", "lines", "bands"):
        page.prose(take(pool, 3))
        page.table(medicines(34), kind)
        page.prose(take(pool, 2))
    elif kind == "cards":
        page.raw("<div class='cards'>")
        for heading in HEADINGS[language]:
            page.raw("<div>")
            page.heading(heading, 3)
            page.prose(take(pool, 3))
            page.raw("</div>")
        page.raw("</div>")
    elif kind == "side":
        for heading in HEADINGS[language][:3]:
            page.raw("<div class='side'><div>")
            page.heading(heading)
            page.prose(take(pool, 5))
            page.listing(take(pool, 3))
            page.raw("</div><aside>")
            page.prose(take(pool, 2))
            page.raw("</aside></div>")
    else:
        page.prose(take(pool, 4), extra="class='whole box'") if kind == "journal" else None
        page.raw("<div class='columns'>")
        guideline(pool, HEADINGS[language], kind == "boxed", page)
        if kind == "journal":
            page.table([row[:3] for row in medicines(6)], "lines")
            page.prose(take(pool, 2), extra="class='note'", kept=False)
        page.raw("</div>")
    style = STYLE.format(size=size, points=points, hyphens=hyphens, align=align, columns=columns)
    return f"<!doctype html><html lang='{language}'><style>{style}</style>{''.join(page.body)}</html>", page


def printed(folder: Path) -> dict[Path, Page]:
    """Print every layout into ``folder``: the PDFs, each with what is printed on it."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for name in LAYOUTS:
        source, page = written(name)
        target, html_file = folder / f"{name}.pdf", folder / f"{name}.html"
        html_file.write_text(source, "utf-8")
        flags = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
                 "--no-pdf-header-footer", f"--user-data-dir={folder}/profile", f"--print-to-pdf={target}")  # fmt: skip
        subprocess.run([CHROMIUM, *flags, html_file.absolute().as_uri()], check=True, capture_output=True)
        made[target] = page
    return made
