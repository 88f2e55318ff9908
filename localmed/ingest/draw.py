"""Pages as images, drawn in a child process: the originals are as hostile when they are shown as when they are read."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from localmed.domain import Box
from localmed.errors import InputError, LimitExceeded, UsageError

SECONDS = 60.0  # a page of dense vector graphics takes ~5


def page(original: Path, number: int, boxes: Sequence[Box], image: Path) -> None:
    """Write page ``number`` (1-based) of a PDF as PNG with ``boxes`` marked; raise ``InputError`` if that fails."""
    corners = [[box.page, box.x0, box.y0, box.x1, box.y1] for box in boxes]
    _draw({"file": str(original.absolute()), "page": number, "boxes": corners}, image)


def text(title: str, body: str, start: int, end: int, image: Path) -> None:
    """Write ``body`` laid out on a page, characters ``start:end`` marked: the view of sources that have no pages."""
    _draw({"title": title, "text": body, "start": start, "end": end}, image)


def _draw(request: dict[str, Any], image: Path) -> None:
    if not image.absolute().parent.is_dir():
        raise UsageError(f"the folder of {image} does not exist", "Create it first")
    command = [sys.executable, "-P", "-m", "localmed.ingest.render"]
    text = json.dumps(request | {"output": str(image.absolute())})
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise LimitExceeded(
            f"drawing the page took longer than {SECONDS:g} seconds", "Open the original instead"
        ) from None
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise InputError(f"the page could not be drawn: {reason[0]}", "Open the original instead")
