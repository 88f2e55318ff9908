"""One page of a PDF as pixels for OCR."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pymupdf

from localmed.ingest.readers.pdf.opening import opened


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
