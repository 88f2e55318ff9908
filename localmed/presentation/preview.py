"""The report of an import's dry run: one HTML file that loads nothing, to read on a screen or print.

A table lists every file. Then each file's documents follow page by page beside the page's picture: tables as tables,
OCR text with its confidence, and what would be left out with the reason. Pictures are inside the file; text of
documents and file names is escaped and neutralised (``pages.py``). Every list is bounded and says what it leaves out.
"""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from localmed.domain import Document, Message, Parameter, Passage, message
from localmed.domain.previews import FilePreview
from localmed.messages import render
from localmed.presentation.pages import page
from localmed.presentation.tables import Grid, grids

# --- preview ----------------------------------------------------------------------------------------------------------

FILES = 2_000  # listed; a librarian reads no more, and --json has them all
DETAILED = 200  # files shown with their documents
DOCUMENTS = 10  # shown of a file; a file of records holds thousands
PAGES = 30  # shown of a document
PASSAGES = 60  # shown of a document without pages: about as much text
LINES = 30  # of notes and of refused parts
PICTURES = 48 * 2**20  # bytes of pictures; browsers open a page of 100 MB in seconds, and base64 adds a third
DRAWN = "pdf"  # the reader whose originals have pages to draw
BODY = "<!-- files -->"  # where the files stand in the page; text of a document never holds it, being escaped

Thumbnails = Callable[[Path, Sequence[int]], Mapping[int, bytes]]  # (original, pages) -> JPEG by page


@dataclass(frozen=True, slots=True)
class _Run:
    """Consecutive passages under one heading: ``path``, then a table or paragraphs."""

    path: str = ""
    ocr: tuple[str, ...] = ()  # how sure the engine was, as shares
    tables: tuple[Grid, ...] = ()
    paragraphs: tuple[str, ...] = ()
    table: bool = False


@dataclass(frozen=True, slots=True)
class _Shown:
    """A page with its picture, or (number 0) the shown text of a document without pages."""

    number: int = 0
    picture: str = ""
    runs: tuple[_Run, ...] = ()


@dataclass(frozen=True, slots=True)
class _Listed:
    """At most ``LINES`` lines, and the number of the others."""

    lines: tuple[str, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class _Described:
    """A document of a file."""

    title: str
    language: str
    outcome: str
    facts: tuple[tuple[str, str], ...]
    pages: tuple[_Shown, ...] = ()
    text: _Shown | None = None
    more: int = 0  # pages or passages


@dataclass(slots=True)
class _Counts:
    files: int = 0
    detailed: int = 0
    left: int = 0
    picture_bytes: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)


class PreviewPage:
    """Collects the page while files are read; a context manager, because its text waits in a temporary file."""

    def __init__(self, title: str, language: str, thumbnails: Thumbnails, day: str, version: str) -> None:
        """A page in ``language`` on an import into ``title``; ``thumbnails`` draws pages of an original."""
        self._title, self._language, self._thumbnails = title, language, thumbnails
        self._day, self._version, self._counts = day, version, _Counts()
        self._body = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115  closed by exit

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._body.close()

    def add(self, file: FilePreview) -> None:
        """Show one file."""
        counts = self._counts
        counts.files += 1
        if counts.files <= FILES:
            counts.rows.append(self._row(file))
        if file.documents or file.faults or file.notes:
            if counts.detailed >= DETAILED:
                counts.left += 1
            else:
                counts.detailed += 1
                self._body.write(self._section(file))

    def chunks(self) -> Iterator[str]:
        """The page, piece by piece."""
        counts = self._counts
        whole = page(
            "preview.html",
            language=self._language,
            say=self._say,
            title=self._title,
            day=self._day,
            version=self._version,
            rows=counts.rows,
            more_rows=counts.files - len(counts.rows),
            more_files=counts.left,
        )
        before, after = whole.split(BODY)
        yield before
        self._body.seek(0)
        yield from iter(lambda: self._body.read(2**16), "")
        yield after

    def _say(self, code: str, /, **parameters: Parameter) -> str:
        return render(message(code, **parameters), self._language)

    def _words(self, line: Message | None) -> str:
        return render(line, self._language) if line else ""

    def _row(self, file: FilePreview) -> dict[str, Any]:
        return {
            "name": Path(file.path).name,
            "outcome": file.outcome,
            "numbers": (len(file.documents), file.passages, len(file.faults)),
            "reason": self._words(file.reason),
            "going": file.going,
        }

    # --- a file ------------------------------------------------------------------------------------------------------

    def _section(self, file: FilePreview) -> str:
        shown = file.documents[:DOCUMENTS]
        return page(
            "preview_file.html",
            say=self._say,
            language=self._language,
            name=Path(file.path).name,
            path=file.path,
            outcome=file.outcome,
            faults=self._listed([fault.message for fault in file.faults]),
            notes=self._listed(file.notes),
            documents=[self._document(*cut, outcome, file.folder) for cut, outcome in shown],
            more=len(file.documents) - len(shown),
        )

    def _listed(self, lines: Sequence[Message]) -> _Listed:
        return _Listed(tuple(map(self._words, lines[:LINES])), max(0, len(lines) - LINES))

    def _document(self, document: Document, passages: Sequence[Passage], outcome: str, folder: Path) -> _Described:
        facts = tuple(_facts(document))
        if not document.pages or document.media_type != DRAWN:
            text = _Shown(runs=tuple(_runs((passage, passage.text) for passage in passages[:PASSAGES])))
            more = max(0, len(passages) - PASSAGES)
            return _Described(document.title, document.language, outcome, facts, text=text, more=more)
        pages, more = tuple(self._pages(document, passages, folder)), max(0, document.pages - PAGES)
        return _Described(document.title, document.language, outcome, facts, pages, more=more)

    def _pages(self, document: Document, passages: Sequence[Passage], folder: Path) -> Iterator[_Shown]:
        numbers = range(1, min(document.pages, PAGES) + 1)
        original = folder / document.file_sha256
        pictures = self._thumbnails(original, numbers) if self._counts.picture_bytes < PICTURES else {}
        texts: dict[int, list[tuple[Passage, str]]] = {}
        for passage in passages:
            for number, text in by_page(passage):
                texts.setdefault(number, []).append((passage, text))
        for number in numbers:
            picture = self._picture(pictures.get(number, b""))
            yield _Shown(number, picture, tuple(_runs(texts.get(number, ()))))

    def _picture(self, picture: bytes) -> str:
        """``picture`` as a data URL; "" if there is none or no room for it."""
        if not picture or self._counts.picture_bytes + len(picture) > PICTURES:
            return ""
        self._counts.picture_bytes += len(picture)
        return f"data:image/jpeg;base64,{base64.b64encode(picture).decode()}"


def _facts(document: Document) -> Iterator[tuple[str, str]]:
    """The known facts about a document, by the name of their label."""
    governance = document.governance
    facts = {
        "language": document.language,
        "edition": document.edition,
        "pages": str(document.pages or ""),
        "owner": governance.owner,
        "approver": governance.approver,
        "effective_from": governance.effective_from,
        "review_by": governance.review_by,
    }
    return ((name, text) for name, text in facts.items() if text)


def _runs(texts: Iterable[tuple[Passage, str]]) -> Iterator[_Run]:
    """Passages as the search finds them, under headings where these change; rows as tables."""
    path: tuple[str, ...] | None = None
    for (table, headings), together in groupby(texts, lambda pair: (pair[0].table, pair[0].headings)):
        if headings and headings != path:
            yield _Run(" › ".join(headings))
        path = headings
        if table:
            yield _table(list(together))
        else:
            yield from map(_paragraphs, together)


def _table(together: Sequence[tuple[Passage, str]]) -> _Run:
    sure = tuple(dict.fromkeys(share for passage, _ in together for share in _sure(passage)))
    rows = [row for _, text in together for row in text.split("\n") if row.strip()]
    return _Run(ocr=sure, tables=tuple(grids(rows)), table=True)


def _paragraphs(pair: tuple[Passage, str]) -> _Run:
    passage, text = pair
    return _Run(ocr=_sure(passage), paragraphs=tuple(part for part in text.split("\n") if part.strip()))


def _sure(passage: Passage) -> tuple[str, ...]:
    return () if passage.ocr is None else (f"{passage.ocr:.0%}",)


def by_page(passage: Passage) -> Iterator[tuple[int, str]]:
    """The pages of a passage, each with the part of its text that begins there."""
    starts = [(span.box.page, span.start) for span in sorted(passage.spans, key=lambda span: span.start)]
    firsts = [next(run) for _, run in groupby(starts, lambda start: start[0])] or [(passage.page, 0)]
    edges = [0, *(start for _, start in firsts[1:]), len(passage.text)]
    for (number, _), start, end in zip(firsts, edges, edges[1:], strict=False):
        yield number, passage.text[start:end]
