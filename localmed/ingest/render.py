"""Draws pictures of evidence: a page with highlighted boxes, or a passage laid out as a page.

Files are hostile, so callers run this as a child without network, which draws each picture in a fork with limited
memory and processor time (loading MuPDF takes five times as long as drawing a page); the parent bounds the elapsed
time. Pictures have at most ``MOST_PIXELS`` on a side and replace their files in one step. Boxes are points of the page
as displayed. Errors contain no page text::

    python -m localmed.ingest.render PARENT_PID   (JSON requests, a line each, one at a time; a line of JSON for each)
    {"file": ..., "page": 3, "boxes": [[3, x0, y0, x1, y1], ...], "output": ..., "dpi": 110,
     "cropped": false}
    {"text": ..., "title": ..., "start": 0, "end": 12, "output": ...}
    {"file": ..., "pages": [1, 2], "folder": ...}    (1.jpg, 2.jpg; a page that cannot be drawn is left out)
"""

from __future__ import annotations

import html
import json
import os
import select
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pymupdf

from localmed.domain import Box, errors
from localmed.domain.errors import InputError, LocalmedError, reason
from localmed.ingest.readers.pdf.opening import open_document, picture, pixels, silence
from localmed.process import confined

THUMBNAIL_DPI = 80  # text of 9 points can just be read, and a page of text takes ~60 KB
THUMBNAIL_PIXELS = 1200  # a side; a folded plan or a poster is shown smaller
THUMBNAIL_QUALITY = 55  # of JPEG; below 40 small print is lost
DPI = 110  # body text is comfortable to read on a ward screen at full width
MOST_PIXELS = 4000  # a side: 48 MB in memory; sharper than any screen, and a 144,000-point page must not cost gigabytes
MEMORY = 2 * 2**30  # bytes of address space of the child; the largest picture needs 0.2 GB
SECONDS = 60  # of processor time of the child; a page of dense vector graphics takes ~5
CROPPED, BESIDE = 300.0, 40.0  # points: the height of a cropped page at most, and what is left around its marks
SIDE = 6.0  # points left of the margins of a cropped page
PADDING = 1.0  # points around a line, so that its letters do not touch the border
SAME_LINE = 0.6  # of the height that two boxes share when they stand on one line
FILL = (255, 235, 110)  # yellow, multiplied into the page: black text stays black
BORDER = (214, 158, 0)
TEXT_WIDTH, TEXT_MARGIN = 595.0, 42.0  # points; A4 wide, so that a passage looks like a page
TEXT_HEIGHT = 842.0
TEXT_CHARACTERS = 20_000  # of one passage; ten times the longest that chunking makes
TEXT_STYLE = (
    "body {font-family: sans-serif; font-size: 11pt; line-height: 1.5;} h1 {font-size: 13pt; color: #333;}"
    " .mark {background-color: #ffeb6e;}"
)


def render_page(
    file: Path, page: int, boxes: Sequence[Box], output: Path, dpi: int = DPI, cropped: bool = False
) -> None:
    """Write a PNG of page ``page`` (1-based) of the PDF ``file`` to ``output`` with that page's ``boxes`` marked.

    ``cropped``: only the part of the page around the first marks.
    """
    with open_document(file) as document:
        if not 1 <= page <= document.page_count:
            raise InputError("pdf.no_such_page", name=file.name, page=page, count=document.page_count)
        try:
            drawn, scale = picture(document[page - 1], dpi, MOST_PIXELS)
        except Exception:  # MuPDF raises many classes, and its messages may quote the page
            raise InputError("pdf.page_undrawable", name=file.name, page=page) from None
    areas = [_area(box, scale, drawn) for box in _merge_lines([box for box in boxes if box.page == page])]
    marked = _highlight(drawn, areas)
    _save(_cropped(marked, areas, scale) if cropped and areas else marked, output)


def render_thumbnails(file: Path, pages: Sequence[int], folder: Path) -> None:
    """Write small JPEGs of ``pages`` (1-based) of the PDF ``file`` to ``folder``, named by page number."""
    with open_document(file) as document:
        for number in pages:
            if not 1 <= number <= document.page_count:
                continue
            try:
                drawn, _ = picture(document[number - 1], THUMBNAIL_DPI, THUMBNAIL_PIXELS)
                packed = drawn.tobytes("jpeg", jpg_quality=THUMBNAIL_QUALITY)
            except Exception:  # noqa: S112  MuPDF raises many classes; whoever asked sees which page is missing
                continue
            (folder / f"{number}.jpg").write_bytes(packed)


def render_text(title: str, text: str, start: int, end: int, output: Path) -> None:
    """Write a PNG of ``text`` laid out under ``title`` to ``output`` with characters ``start:end`` marked."""
    silence()
    shown = text if len(text) <= TEXT_CHARACTERS else f"{text[:TEXT_CHARACTERS]} …"
    start, end = max(0, min(start, len(shown))), max(0, min(end, len(shown)))
    parts = [html.escape(part) for part in (shown[:start], shown[start:end], shown[end:])]
    marked = f'{parts[0]}<span class="mark">{parts[1]}</span>{parts[2]}' if parts[1] else "".join(parts)
    body = f"<h1>{html.escape(title)}</h1><p>{marked.replace(chr(10), '<br/>')}</p>"
    height = _text_height(body)
    with pymupdf.open() as document:
        page = document.new_page(width=TEXT_WIDTH, height=height)
        page.insert_htmlbox(_frame(height), body, css=TEXT_STYLE)
        _save(picture(page, DPI, MOST_PIXELS)[0], output)


def _frame(height: float) -> Any:
    return pymupdf.Rect(TEXT_MARGIN, TEXT_MARGIN, TEXT_WIDTH - TEXT_MARGIN, height - TEXT_MARGIN)


def _text_height(body: str) -> float:
    story = pymupdf.Story(body, user_css=TEXT_STYLE)
    height = TEXT_HEIGHT / 4
    while height < 32 * TEXT_HEIGHT:
        more, filled = story.place(_frame(height))
        if not more:
            return float(max(filled[3] + 2 * TEXT_MARGIN, 3 * TEXT_MARGIN))
        story.reset()
        height *= 2
    return height


def _merge_lines(boxes: Sequence[Box]) -> list[Box]:
    lines: list[Box] = []
    for box in sorted(boxes, key=lambda one: (one.y0, one.x0)):
        last = lines[-1] if lines else None
        if last is not None and _one_line(last, box):
            lines[-1] = Box(
                box.page, min(last.x0, box.x0), min(last.y0, box.y0), max(last.x1, box.x1), max(last.y1, box.y1)
            )
        else:
            lines.append(box)
    return lines


def _one_line(first: Box, second: Box) -> bool:
    shared = min(first.y1, second.y1) - max(first.y0, second.y0)
    lower = min(first.y1 - first.y0, second.y1 - second.y0)
    apart = max(second.x0 - first.x1, first.x0 - second.x1)
    return shared > SAME_LINE * lower and apart < lower


def _area(box: Box, scale: float, drawn: Any) -> tuple[int, int, int, int]:
    """The pixels of ``box`` on the picture ``drawn``, with a margin."""
    (x0, x1), (y0, y1) = sorted((box.x0, box.x1)), sorted((box.y0, box.y1))

    def inside(side: float, most: int) -> int:
        return int(max(0.0, min(float(most), side * scale)))

    left, top = inside(x0 - PADDING, drawn.width), inside(y0 - PADDING, drawn.height)
    return left, top, inside(x1 + PADDING, drawn.width), inside(y1 + PADDING, drawn.height)


def _highlight(drawn: Any, areas: Sequence[tuple[int, int, int, int]]) -> Any:
    """``drawn`` with ``areas`` multiplied by yellow and framed; overlapping areas colour each pixel once."""
    if not areas:
        return drawn
    shown = pixels(drawn).copy()
    inside = np.zeros(shown.shape[:2], bool)
    for x0, y0, x1, y1 in areas:
        inside[y0:y1, x0:x1] = True
    shown[inside] = shown[inside].astype(np.uint16) * FILL // 255
    for x0, y0, x1, y1 in areas:
        if x0 < x1 and y0 < y1:
            shown[y0:y1, [x0, x1 - 1]] = shown[[y0, y1 - 1], x0:x1] = BORDER
    return pymupdf.Pixmap(pymupdf.csRGB, drawn.width, drawn.height, shown.tobytes(), False)


def _cropped(drawn: Any, areas: Sequence[tuple[int, int, int, int]], scale: float) -> Any:
    top = max(0, min(area[1] for area in areas) - int(BESIDE * scale))
    bottom = min(drawn.height, max(area[3] for area in areas) + int(BESIDE * scale), top + int(CROPPED * scale))
    first = min(area[3] for area in areas)
    even = np.ptp(pixels(drawn), axis=1).max(axis=1) == 0  # rows of one colour: between lines of text
    top = next((row for row in range(top, min(area[1] for area in areas)) if even[row]), top)
    bottom = next((row for row in range(bottom, first, -1) if even[row - 1]), bottom)
    kept = pixels(drawn)[top : max(bottom, top + 1)]
    written = np.flatnonzero(np.ptp(kept, axis=0).max(axis=1)) if len(kept) > 1 else np.arange(drawn.width)
    aside = int(SIDE * scale)  # the rest of the margins would make the text smaller on paper
    kept = kept[:, max(0, written[0] - aside) : written[-1] + aside + 1] if len(written) else kept
    return pymupdf.Pixmap(pymupdf.csRGB, kept.shape[1], len(kept), kept.tobytes(), False)


def _save(drawn: Any, output: Path) -> None:
    beside = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(drawn.tobytes("png"))
        os.replace(beside, output)  # noqa: PTH105  the atomic move is the point
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError("pdf.unwritable", name=output.name, reason=reason(error)) from None


def answer(request: dict[str, Any]) -> None:
    """Draw ``request`` (see the module's docstring)."""
    if "pages" in request:
        pages = [int(number) for number in request["pages"]]
        render_thumbnails(Path(str(request["file"])), pages, Path(str(request["folder"])))
        return
    output = Path(str(request["output"]))
    if "text" in request:
        start, end = int(request.get("start", 0)), int(request.get("end", 0))
        render_text(str(request.get("title", "")), str(request["text"]), start, end, output)
        return
    boxes = [Box(int(box[0]), *(float(value) for value in box[1:5])) for box in request.get("boxes", ())]
    page, dpi = int(request["page"]), int(request.get("dpi", DPI))
    render_page(Path(str(request["file"])), page, boxes, output, dpi, bool(request.get("cropped")))


def _reply_to(line: bytes) -> list[Any]:
    failure: LocalmedError | None = None
    try:
        answer(json.loads(line))
    except LocalmedError as error:
        failure = error
    except (KeyError, TypeError, ValueError, IndexError) as error:
        failure = InputError("pdf.no_request", reason=reason(error))
    except Exception as error:  # MuPDF raises many classes, and its messages may quote the page
        failure = InputError("pdf.drawing_failed", place=confined.place(error))
    return ["error", errors.as_json(failure)] if failure else ["done"]


def _reply_in_fork(line: bytes, requests: BinaryIO) -> list[Any] | None:
    """``_reply_to`` in a forked process, ``["ended", code]`` if it fails; None if the parent has ended."""
    source, target = os.pipe()
    parent, child = os.getpid(), os.fork()
    if not child:
        try:
            confined.die_with_parent(parent)
            confined.limit(MEMORY, SECONDS)
            with os.fdopen(target, "wb") as pipe:
                pipe.write(json.dumps(_reply_to(line)).encode())
            os._exit(0)
        finally:  # out of memory even for an error: this process never goes on as a second parent
            os._exit(1)
    os.close(target)
    ready, *_ = select.select([requests.fileno(), source], [], [])
    parent_ended = requests.fileno() in ready  # no request comes before the reply to the last one
    if parent_ended:
        os.kill(child, signal.SIGKILL)
    with os.fdopen(source, "rb") as pipe:
        reply = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if parent_ended:
        return None
    return ["ended", code] if code or not reply else list(json.loads(reply))


def main() -> None:
    """Answer the parent's requests."""
    requests, replies = confined.take_streams()
    confined.leave_network()
    confined.end_without_parent(int(sys.argv[1]))
    confined.no_core_dump()
    with suppress(BrokenPipeError):
        while (line := requests.readline()) and (reply := _reply_in_fork(line, requests)):
            replies.write(json.dumps(reply).encode() + b"\n")
            replies.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
