"""Opens a PDF file and draws its pages.

Rules: the first kilobyte must contain ``%PDF-``, because MuPDF opens HTML, images and zip archives under any name. A
file that needs a password is refused; a file that only restricts printing or copying is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pymupdf

from localmed.domain import message
from localmed.domain.errors import InputError, reason

MAGIC = b"%PDF-"
END, END_WITHIN = b"%%EOF", 1024  # bytes; some programs write more behind it
MAGIC_WITHIN = 1024  # bytes; PDF readers tolerate as much before the header

_LOOKS_LIKE = (
    (b"PK\x03\x04", "pdf.like_zip"),
    (b"\xd0\xcf\x11\xe0", "pdf.like_old_office"),
    (b"\x89PNG", "pdf.like_png"),
    (b"\xff\xd8\xff", "pdf.like_jpeg"),
    (b"II*\x00", "pdf.like_tiff"),
    (b"MM\x00*", "pdf.like_tiff"),
    (b"{\\rtf", "pdf.like_rtf"),
    (b"<?xml", "pdf.like_xml"),
    (b"<!doctype html", "pdf.like_html"),
    (b"<html", "pdf.like_html"),
    (b"%!ps", "pdf.like_postscript"),
)


def silence() -> None:
    """Keep MuPDF and PyMuPDF from writing to the terminal."""
    pymupdf.TOOLS.mupdf_display_errors(False)
    pymupdf.TOOLS.mupdf_display_warnings(False)
    pymupdf.no_recommend_layout()


def open_document(path: Path) -> Any:
    """Open the document in ``path``, which has at least one page; raise ``InputError`` otherwise."""
    silence()
    try:
        with path.open("rb") as file:
            head = file.read(MAGIC_WITHIN)
    except OSError as error:
        raise InputError("reader.cannot_read", name=path.name, reason=reason(error)) from None
    if not head:
        raise InputError("reader.empty", name=path.name)
    if MAGIC not in head:
        start = head.lstrip().lower()
        looks = next((code for mark, code in _LOOKS_LIKE if start.startswith(mark.lower())), "pdf.like_none")
        raise InputError("pdf.no_pdf", name=path.name, looks=message(looks))
    try:
        document = pymupdf.open(str(path), filetype="pdf")
        if document.needs_pass:
            raise InputError("reader.password", name=path.name)
        pages = document.page_count
        if pages:
            document[0]
    except InputError:
        raise
    except Exception:  # MuPDF raises its own classes, RuntimeError, ValueError and IndexError alike
        raise InputError("pdf.damaged", name=path.name) from None
    if not pages:
        raise InputError("pdf.damaged", name=path.name)
    return document


def is_cut_off(document: Any, path: Path) -> bool:
    """Whether the file ends before its end mark, so that MuPDF had to repair it and its end is lost."""
    if not document.is_repaired:
        return False
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - END_WITHIN))
        return END not in file.read()


def picture(page: Any, dpi: float, most: int, colours: Any = pymupdf.csRGB) -> tuple[Any, float]:
    """Draw ``page`` at ``dpi``, or less for at most ``most`` pixels a side; return it and its pixels per point."""
    width, height = max(page.rect.width, 1.0), max(page.rect.height, 1.0)
    scale = max(min(dpi / 72, most / max(width, height)), 1 / min(width, height))
    return page.get_pixmap(matrix=pymupdf.Matrix(scale, scale), colorspace=colours, alpha=False), scale


def pixels(drawn: Any) -> Any:
    """A colour picture as an array (H, W, 3) of bytes, RGB."""
    rows = np.frombuffer(drawn.samples, np.uint8).reshape(drawn.height, drawn.stride)
    return rows[:, : 3 * drawn.width].reshape(drawn.height, drawn.width, 3)


def raster(path: Path, page: int, dpi: int, most: int) -> tuple[Any, float, float, float]:
    """Draw page ``page`` (1-based) for OCR at ``dpi``, or less for at most ``most`` pixels a side.

    Returns the pixels (H, W, 3) as BGR bytes, pixels per point, and the displayed width and height in points.
    """
    with open_document(path) as document:
        shown = document[page - 1]
        drawn, scale = picture(shown, dpi, most)
        return np.ascontiguousarray(pixels(drawn)[:, :, ::-1]), scale, shown.rect.width, shown.rect.height
