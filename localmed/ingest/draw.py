"""Has a child draw pages as images (``render.py``): originals are as hostile when shown as when read.

A child is kept for the next page: starting one takes a third of a second of processor time, drawing a page a tenth of
that. A passage of a source without pages is drawn among its neighbours, nearest first, up to ``AROUND`` characters on
a side.
"""

from __future__ import annotations

import atexit
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

from localmed.domain import Box, Evidence, Message, Passage, errors, message
from localmed.domain.errors import InputError, LimitExceeded, UsageError
from localmed.library import originals
from localmed.process import children

SECONDS = 60.0  # a page of dense vector graphics takes ~5
COMMAND = children.command("localmed.ingest.render")
ANSWER_BYTES = 2**16  # of a child's reply
MOST_IDLE = 2  # children kept, as many as cores of a small server; one has some 40 MB, most of it shared files
AROUND = 1_500  # characters on each side: with a passage of 1,000 about one printed page

_GAP = "\n\n"


def draw_evidence(
    data: Path,
    evidence: Evidence,
    image: Path,
    page_number: int | None = None,
    span: tuple[int, int] | None = None,
    document: Callable[[], Sequence[Passage]] = tuple,
) -> None:
    """Write a page of ``evidence`` (its first, or ``page_number``) as PNG, with the passage (or ``span``) marked.

    For a source without pages, draw the passage among its neighbours in ``document`` (called only then).
    """
    passage = evidence.passage
    start, end = span or (0, len(passage.text))
    if not passage.spans:
        if page_number:
            raise UsageError("pdf.without_pages")
        body, first = with_neighbours(passage, document())
        return draw_text(passage.title, body, first + start, first + min(end, len(passage.text)), image)
    marked = passage.boxes(start, end) or (passage.boxes() if end <= passage.lead else ())  # its lead has no box
    chosen = page_number or (marked[0].page if marked else passage.page)
    boxes = [box for box in marked if box.page == chosen]
    if not boxes:
        raise UsageError("search.page_not_its", page=page_number or 0, pages=passage.pages_of())
    return draw_page(originals.whole(data, evidence.file_sha256), boxes[0].page, boxes, image)


def draw_page(original: Path, number: int, boxes: Sequence[Box], image: Path, cropped: bool = False) -> None:
    """Write page ``number`` (1-based) of a PDF as PNG with ``boxes`` marked; raise ``InputError`` if that fails.

    ``cropped``: only the part around the first marks.
    """
    corners = [[box.page, box.x0, box.y0, box.x1, box.y1] for box in boxes]
    _draw({"file": str(original.absolute()), "page": number, "boxes": corners, "cropped": cropped}, image)


def draw_text(title: str, body: str, start: int, end: int, image: Path) -> None:
    """Write ``body`` laid out as a page with characters ``start:end`` marked, for sources without pages."""
    _draw({"title": title, "text": body, "start": start, "end": end}, image)


def draw_thumbnails(original: Path, pages: Sequence[int]) -> dict[int, bytes]:
    """Small JPEGs of ``pages`` (1-based) of a PDF; pages that cannot be drawn are left out."""
    with tempfile.TemporaryDirectory(prefix="localmed-pages-") as folder:
        with suppress(InputError):  # those that were drawn before it failed are there
            _run({"file": str(original.absolute()), "pages": list(pages), "folder": folder})
        drawn = {number: Path(folder, f"{number}.jpg") for number in pages}
        return {number: path.read_bytes() for number, path in drawn.items() if path.is_file()}


def _draw(request: dict[str, Any], image: Path) -> None:
    if not image.absolute().parent.is_dir():
        raise UsageError("pdf.no_folder", image=str(image))
    _run(request | {"output": str(image.absolute())})


def _run(request: dict[str, Any]) -> None:
    with CHILDREN.take() as child:
        failure = _failure(child, json.dumps(request).encode() + b"\n")
    if failure:
        raise InputError("pdf.not_drawn", reason=failure)


def _failure(child: children.Child, request: bytes) -> Message | None:
    """Why ``child`` could not draw ``request``; raise ``InputError`` if the child itself failed."""
    try:
        child.send(request, SECONDS)
        line = child.line(SECONDS)
    except TimeoutError:
        line = None
    except (OSError, children.TooLong):
        raise InputError("pdf.not_drawn", reason=children.outcome(child.code())) from None
    if line is None:
        raise LimitExceeded("pdf.drawing_slow", seconds=SECONDS)
    try:
        kind, *values = json.loads(line)
        if kind == "ended":
            return children.outcome(int(values[0]))
        return None if kind == "done" else errors.from_json(values[0], InputError).messages[0]
    except (ValueError, TypeError, LookupError, RecursionError):
        raise InputError("pdf.not_drawn", reason=message("process.nonsense")) from None


class Children:
    """Idle children; each draws for one thread at a time, and several threads have several."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._command, self._lock = command, Lock()
        self._idle: list[children.Child] = []

    @contextmanager
    def take(self) -> Iterator[children.Child]:
        """A child for the length of the block, kept for the next unless the block fails."""
        with self._lock:
            child = self._idle.pop() if self._idle else None
        child = child or children.Child(self._command, ANSWER_BYTES)
        kept = False
        try:
            yield child
            with self._lock:
                kept = len(self._idle) < MOST_IDLE
                self._idle += [child] if kept else []
        finally:
            if not kept:
                child.kill()

    def close(self) -> None:
        """End the idle children."""
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.kill()


CHILDREN = Children()
atexit.register(CHILDREN.close)


# --- a passage in its context -----------------------------------------------------------------------------------------


def with_neighbours(passage: Passage, document: Sequence[Passage]) -> tuple[str, int]:
    """``passage`` with its neighbours in ``document`` (alone if it is not in it), and where it starts in that text."""
    place = next((at for at, candidate in enumerate(document) if candidate.id == passage.id), None)
    if place is None:
        return passage.text, 0
    before = _fitting(document[:place][::-1])[::-1]
    after = _fitting(document[place + 1 :])
    text, start = "", 0
    headings: tuple[str, ...] = ()
    for neighbour in (*before, passage, *after):
        text += _GAP if text else ""
        if neighbour.headings != headings:
            headings = neighbour.headings
            text += f"{' › '.join(headings)}\n" if headings else ""
        if neighbour is passage:
            start = len(text)
        text += neighbour.text
    return text, start


def _fitting(passages: Sequence[Passage]) -> list[Passage]:
    kept: list[Passage] = []
    room = AROUND
    for passage in passages:
        room -= len(passage.text)
        if room < 0:
            break
        kept.append(passage)
    return kept
