"""Opens a PDF file, or says in one line why it cannot be opened and what to do.

Rules: the first kilobyte must hold ``%PDF-``, since MuPDF opens HTML, images and zip archives under any name. A file
that needs a password is refused; one that only restricts printing or copying opens without a password and is read.

Not covered: whether the pages hold text (see ``reader.py``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pymupdf

from localmed.errors import InputError

MAGIC = b"%PDF-"
MAGIC_WITHIN = 1024  # bytes; what readers have always tolerated before the header

_LOOKS_LIKE = (
    (b"PK\x03\x04", "a zip archive or an Office file"),
    (b"\xd0\xcf\x11\xe0", "an old Office file"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"{\\rtf", "RTF"),
    (b"<?xml", "XML"),
    (b"<!doctype html", "HTML"),
    (b"<html", "HTML"),
    (b"%!ps", "PostScript"),
)


def silence() -> None:
    """Keep MuPDF and PyMuPDF from writing to the terminal; what is wrong is raised or noted."""
    pymupdf.TOOLS.mupdf_display_errors(False)
    pymupdf.TOOLS.mupdf_display_warnings(False)
    pymupdf.no_recommend_layout()


def opened(path: Path) -> Any:
    """The document in ``path`` with at least one page; raise ``InputError`` otherwise."""
    silence()
    _check_magic(path)
    try:
        document = pymupdf.open(str(path), filetype="pdf")
        if document.needs_pass:
            raise InputError(f"{path.name} needs a password", "Save a copy without a password and import that")
        pages = document.page_count
        if pages:
            document[0]
    except InputError:
        raise
    except Exception as error:  # MuPDF raises its own classes, RuntimeError, ValueError and IndexError alike
        raise _damaged(path, error) from None
    if not pages:
        raise InputError(f"{path.name} is damaged: it has no page that can be read", "Get a new copy of the file")
    return document


def _damaged(path: Path, error: Exception) -> InputError:
    reason = "its page tree runs in a circle" if "cycle" in str(error) else "its structure cannot be read"
    return InputError(f"{path.name} is damaged: {reason}", "Get a new copy of the file, or print it to a new PDF")


def _check_magic(path: Path) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(MAGIC_WITHIN)
    except OSError as error:
        raise InputError(f"{path.name} cannot be opened ({error.strerror})", "Check that it is there") from None
    if not head:
        raise InputError(f"{path.name} is empty (0 bytes)", "Copy the file again")
    if MAGIC not in head:
        kind = next((name for start, name in _LOOKS_LIKE if head.lstrip().lower().startswith(start.lower())), "")
        seems = f"it starts like {kind}" if kind else "it does not start like one"
        raise InputError(f"{path.name} is not a PDF: {seems}", "Give it its right ending, or get the PDF itself")


# --- a page as pixels, for OCR ----------------------------------------------------------------------------------------


def raster(path: Path, page: int, dpi: int, most: int) -> tuple[Any, float, float, float]:
    """Page ``page`` (1-based) at ``dpi``, or less so that no side has more than ``most`` pixels.

    Returns the pixels (H, W, 3) as BGR bytes, pixels per point, and the page's width and height in points as displayed.
    """
    with opened(path) as document:
        shown = document[page - 1]
        width, height = float(shown.rect.width), float(shown.rect.height)
        scale = min(dpi / 72, most / max(width, height, 1.0))
        picture = shown.get_pixmap(matrix=pymupdf.Matrix(scale, scale), colorspace=pymupdf.csRGB, alpha=False)
        pixels = np.frombuffer(picture.samples, np.uint8).reshape(picture.height, picture.stride)
    rows = pixels[:, : picture.width * 3].reshape(picture.height, picture.width, 3)
    return np.ascontiguousarray(rows[:, :, ::-1]), scale, width, height
