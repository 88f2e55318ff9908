"""The report page of a preview: one HTML file that needs nothing else, to be read on a screen or printed.

Every file in a table first; then, file by file, its documents page by page beside the page's picture, tables as tables,
with what OCR read and how sure it was, and what would be left out and why. No script, nothing from anywhere else (a
policy in the page forbids both), every text escaped, pictures inside the file. It is bounded, and says what it leaves
out. It is written beside its place and moved there.
"""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from html import escape
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Self

from localmed import __version__
from localmed.domain import Collection, Document, Passage
from localmed.errors import UsageError
from localmed.ingest import draw
from localmed.ingest.preview.preview import Looked, Outcome
from localmed.ingest.preview.tables import as_tables
from localmed.ingest.preview.texts import TEXTS
from localmed.language import clean
from localmed.messages import render

FILES = 2_000  # listed; a librarian reads no more, and --json has them all
DETAILED = 200  # files shown with their documents
DOCUMENTS = 10  # shown of a file; a file of records holds thousands
PAGES = 30  # shown of a document
PASSAGES = 60  # shown of a document without pages: about as much text
LINES = 30  # of notes and of refused parts
PICTURES = 48 * 2**20  # bytes of pictures; browsers open a page of 100 MB in seconds, and base64 adds a third
DRAWN = "pdf"  # the reader whose originals have pages to draw

STYLE = """
:root { color-scheme: light; } body { font: 16px/1.5 sans-serif; color: #1a1a1a; background: #fff; margin: 2rem auto;
max-width: 75rem; padding: 0 1rem; } h1, h2, h3, h4 { line-height: 1.25; } h2 { margin-top: 2.5rem; border-bottom: 2px
solid #1a1a1a; } table { border-collapse: collapse; width: 100%; margin: .5rem 0; } th, td { border: 1px solid #767676;
padding: .25rem .5rem; text-align: left; vertical-align: top; overflow-wrap: anywhere; } thead th { background: #eee; }
caption { text-align: left; font-weight: bold; } .page { display: grid; grid-template-columns: 2fr 3fr; gap: 1rem;
border-top: 1px solid #767676; margin-top: 1rem; } .page h4 { grid-column: 1 / -1; margin: .5rem 0 0; }
.page figure { margin: 0; } .page img { width: 100%; border: 1px solid #767676; } .passage { border-left: 4px solid
#005a9c; padding-left: .75rem; margin-bottom: 1rem; overflow-wrap: anywhere; } .passage p { margin: .25rem 0; }
.path, .ocr, .small { color: #444; font-size: .875rem; } .ocr { font-weight: bold; } .bad { font-weight: bold; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; } dd { margin: 0; }
@media (max-width: 45rem) { .page { grid-template-columns: 1fr; } }
@media print { body { font-size: 10pt; max-width: none; margin: 0; } .passage, tr, figure { break-inside: avoid; }
.file { break-before: page; } h2, h3, h4 { break-after: avoid; } }
"""
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


class Page:
    """The page being written; a context manager: what is not finished leaves nothing."""

    def __init__(self, target: Path, collection: Collection, language: str) -> None:
        """Write to ``target``, in ``language`` ("en" or "zh"); raise ``UsageError`` where that cannot be."""
        if target.is_dir() or not target.absolute().parent.is_dir():
            raise UsageError(f"{target} cannot be written", "Name a file in a folder that exists, such as preview.html")
        self._target, self._collection, self._language, self._say = target, collection, language, TEXTS[language]
        self._rows: list[str] = []
        self._files = self._detailed = self._left = 0
        self._pictures = PICTURES
        self._body = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115  closed by exit

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._body.close()

    def add(self, looked: Looked) -> None:
        """Show one file."""
        self._files += 1
        if self._files <= FILES:
            self._rows.append(self._row(looked))
        if looked.documents or looked.faults or looked.notes:
            if self._detailed >= DETAILED:
                self._left += 1
            else:
                self._body.writelines(self._section(looked))

    def finish(self) -> None:
        """Write the page."""
        beside = self._target.with_name(f".{self._target.name}.{os.getpid()}.part")
        try:
            with beside.open("w", encoding="utf-8", errors="replace") as page:
                page.writelines(self._head())
                self._body.seek(0)
                page.writelines(iter(lambda: self._body.read(2**16), ""))
                page.write(self._more("more files", self._left))
                page.write("</main></body></html>\n")
            beside.replace(self._target)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise UsageError(f"{self._target} cannot be written ({error.strerror})", "Name another file") from None

    # --- the head ----------------------------------------------------------------------------------------------------

    def _head(self) -> Iterator[str]:
        say, title = self._say, self._said("title", name=self._collection.title)
        yield f'<!DOCTYPE html>\n<html lang="{self._language}"><head><meta charset="utf-8">'
        yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
        yield f"<title>{title}</title><style>{STYLE}</style></head><body><main><h1>{title}</h1>"
        yield f"<p>{self._said('nothing', day=date.today().isoformat(), version=__version__)}</p>"
        columns = ("file", "outcome", "documents", "passages", "left out", "why")
        heads = "".join(f'<th scope="col">{say[name]}</th>' for name in columns)
        yield f"<table><caption>{say['summary']}</caption><thead><tr>{heads}</tr></thead><tbody>"
        yield from self._rows
        yield f"</tbody></table>{self._more('more files', self._files - len(self._rows))}"

    def _row(self, looked: Looked) -> str:
        cells = (self._outcome(looked.outcome), str(len(looked.documents)), str(looked.passages))
        reason = render(looked.reason, self._language) if looked.reason else ""
        why = (reason, self._said("going", count=looked.going) if looked.going else "")
        plain = "".join(f"<td>{each}</td>" for each in (*cells, len(looked.faults)))
        said = " ".join((escape(clean(why[0])), why[1])).strip()
        return f'<tr><th scope="row">{_shown(Path(looked.path).name)}</th>{plain}<td>{said}</td></tr>'

    def _outcome(self, outcome: Outcome) -> str:
        weight = ' class="bad"' if outcome in ("refused", "removed") else ""
        return f"<span{weight}>{self._say[outcome]}</span>"

    # --- a file ------------------------------------------------------------------------------------------------------

    def _section(self, looked: Looked) -> Iterator[str]:
        self._detailed += 1
        yield f'<section class="file"><h2>{_shown(Path(looked.path).name)}</h2>'
        yield f'<p class="small">{_shown(looked.path)}</p><p>{self._outcome(looked.outcome)}</p>'
        yield self._list("faults", [render(each.told, self._language) for each in looked.faults])
        yield self._list("notes", [render(note, self._language) for note in looked.notes])
        for (document, passages), outcome in looked.documents[:DOCUMENTS]:
            yield from self._document(document, passages, outcome, looked.folder)
        yield self._more("more documents", len(looked.documents) - DOCUMENTS) + "</section>"

    def _list(self, name: str, lines: Sequence[str]) -> str:
        if not lines:
            return ""
        items = "".join(f"<li>{escape(clean(each))}</li>" for each in lines[:LINES])
        return f"<h3>{self._say[name]}</h3><ul>{items}</ul>{self._more('more lines', len(lines) - LINES)}"

    def _document(
        self, document: Document, passages: Sequence[Passage], outcome: Outcome, folder: Path
    ) -> Iterator[str]:
        yield f"<article><h3{_lang(document.language)}>{_shown(document.title)}</h3>"
        yield f"<p>{self._outcome(outcome)}</p>{self._facts(document)}"
        if document.pages and document.media_type == DRAWN:
            yield from self._pages(document, passages, folder)
        else:
            yield f"<h4>{self._say['text']}</h4><div{_lang(document.language)}>"
            yield from self._texts((each, each.text) for each in passages[:PASSAGES])
            yield "</div>" + self._more("more passages", len(passages) - PASSAGES)
        yield "</article>"

    def _facts(self, document: Document) -> str:
        governance = document.governance
        facts = {
            "language": document.language,
            "edition": document.edition,
            "pages": str(document.pages or ""),
            "owner": governance.owner,
            "approver": governance.approver,
            "effective": governance.effective_from,
            "review": governance.review_by,
        }
        shown = "".join(f"<dt>{self._say[name]}</dt><dd>{_shown(text)}</dd>" for name, text in facts.items() if text)
        return f"<dl>{shown}</dl>" if shown else ""

    # --- its pages ---------------------------------------------------------------------------------------------------

    def _pages(self, document: Document, passages: Sequence[Passage], folder: Path) -> Iterator[str]:
        numbers = range(1, min(document.pages, PAGES) + 1)
        pictures = draw.thumbnails(folder / document.file_sha256, numbers) if self._pictures > 0 else {}
        found: dict[int, list[tuple[Passage, str]]] = {}
        for passage in passages:
            for page, text in by_page(passage):
                found.setdefault(page, []).append((passage, text))
        for number in numbers:
            yield f'<section class="page"><h4>{self._said("page", page=number)}</h4>'
            yield self._picture(document, number, pictures.get(number, b""))
            yield f"<div{_lang(document.language)}>"
            yield from self._texts(found.get(number, ()))
            yield f"{'' if number in found else self._nothing('no text')}</div></section>"
        yield self._more("more pages", document.pages - PAGES)

    def _picture(self, document: Document, number: int, picture: bytes) -> str:
        if not picture or len(picture) > self._pictures:
            return self._nothing("no picture")
        self._pictures -= len(picture)
        told = self._said("picture", page=number, title=document.title)
        return f'<figure><img alt="{told}" src="data:image/jpeg;base64,{base64.b64encode(picture).decode()}"></figure>'

    def _texts(self, texts: Iterable[tuple[Passage, str]]) -> Iterator[str]:
        """Passages as they would be found, under their headings where these change; rows set out as tables."""
        path: tuple[str, ...] | None = None
        for (table, headings), together in groupby(texts, lambda each: (each[0].table, each[0].headings)):
            if headings and headings != path:
                yield f'<p class="path">{" › ".join(map(_shown, headings))}</p>'
            path = headings
            run = list(together)
            yield from self._tables(run) if table else map(self._passage, run)

    def _tables(self, together: Sequence[tuple[Passage, str]]) -> Iterator[str]:
        yield "".join(dict.fromkeys(self._ocr(passage) for passage, _ in together))
        yield as_tables([clean(row) for _, text in together for row in text.split("\n") if row.strip()])

    def _passage(self, given: tuple[Passage, str]) -> str:
        passage, text = given
        paragraphs = "".join(f"<p>{_shown(each)}</p>" for each in text.split("\n") if each.strip())
        return f'<div class="passage">{self._ocr(passage)}{paragraphs}</div>'

    def _ocr(self, passage: Passage) -> str:
        if passage.ocr is None:
            return ""
        return f'<p class="ocr" lang="{self._language}">{self._said("ocr", share=f"{passage.ocr:.0%}")}</p>'

    # --- words -------------------------------------------------------------------------------------------------------

    def _said(self, text: str, **values: object) -> str:
        return escape(self._say[text].format_map({key: clean(str(value)) for key, value in values.items()}))

    def _nothing(self, name: str) -> str:
        return f'<p class="small" lang="{self._language}">{self._say[name]}</p>'

    def _more(self, name: str, count: int) -> str:
        return f'<p class="small">{self._said(name, count=count)}</p>' if count > 0 else ""


def by_page(passage: Passage) -> Iterator[tuple[int, str]]:
    """The pages of a passage, each with the part of its text that begins there."""
    starts = [(span.box.page, span.start) for span in sorted(passage.spans, key=lambda span: span.start)]
    firsts = [next(run) for _, run in groupby(starts, lambda each: each[0])] or [(passage.page, 0)]
    edges = [0, *(start for _, start in firsts[1:]), len(passage.text)]
    for (page, _), start, end in zip(firsts, edges, edges[1:], strict=False):
        yield page, passage.text[start:end]


def _shown(text: str) -> str:
    return escape(clean(text))


def _lang(language: str) -> str:
    return f' lang="{escape(language)}"' if language else ""
