"""Asks the OCR child (``child.py``) for one page after another, each in its time; a page that fails costs that page.

Rules: the child starts with the first page and is ended with ``close``; one that hangs, crashes or sends what is no
page is ended, and the next page gets a fresh one; a page whose child hung or crashed may be asked for again, ``TRIES``
times in all, because that may be for want of memory or time; after ``GIVE_UP`` pages in a row that failed the engine is
taken to be broken and the rest of the file is not tried. What the child sends is checked before it is believed.

Not covered: several pages at once; files are read side by side instead.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from localmed import children
from localmed.config import ReadBounds
from localmed.domain import Box, Message, message
from localmed.errors import received

COMMAND = children.command("localmed.ingest.ocr.child")
TRIES = 2  # of a page whose child hung or crashed
GIVE_UP = 3  # pages in a row; an engine that fails so often fails on every page, and a book has thousands
MOST_LINES = 5_000  # of one page; a page of 6-point type in four columns has ~500
MOST_BYTES = 8 * 2**20  # of one answer: 5,000 lines take ~1 MiB
NO_PAGE = message("ocr.no_page")

Frame = tuple[float, float, float, float]  # x0, y0, x1, y1 in points
Corners = tuple[tuple[float, float], ...]  # four, in points, the top left first, clockwise as read


@dataclass(frozen=True, slots=True)
class Seen:
    """A line as the engine read it; ``confidence`` is between 0 and 1."""

    text: str
    confidence: float
    corners: Corners


@dataclass(frozen=True, slots=True)
class Scan:
    """A page as the engine read it. Corners are points of the page turned counterclockwise by ``turn`` quarters.

    ``width`` and ``height`` are those of the page as displayed, in points.
    """

    width: float
    height: float
    turn: int
    lines: tuple[Seen, ...]
    rules: tuple[Frame, ...] = ()  # printed lines, from end to end


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a page was not read; ``again``: its child hung or crashed, and another may do better."""

    why: Message
    again: bool = False


@dataclass(frozen=True, slots=True)
class Scanned:
    """A line put in its place: on the straightened page (``frame``), and on the page as displayed (``box``).

    ``confidence`` is None for what the page's own text says.
    """

    text: str
    frame: Frame
    box: Box
    confidence: float | None


class Ocr:
    """Reads pages; a context manager that leaves no child behind."""

    def __init__(self, bounds: ReadBounds, command: Sequence[str] = COMMAND) -> None:
        self._bounds, self._command = bounds, tuple(command)
        self._child: children.Child | None = None
        self._failed = 0  # pages in a row
        self._tried = 0  # times, the page that failed last

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the child, if there is one."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()

    def read(self, path: Path, page: int) -> Scan | Failure:
        """What stands on ``page`` (1-based) of the PDF at ``path``, or why that is not known."""
        if self._failed >= GIVE_UP:
            return Failure(message("ocr.given_up", count=GIVE_UP))
        answer = self._request(path, page)
        if isinstance(answer, Scan):
            self._failed = self._tried = 0
            return answer
        self.close()
        self._tried += 1
        if answer.again and self._tried < TRIES:
            return answer
        self._failed, self._tried = self._failed + 1, 0
        return replace(answer, again=False)

    def _request(self, path: Path, page: int) -> Scan | Failure:
        request = {"path": str(path.absolute()), "page": page, "bounds": dataclasses.asdict(self._bounds)}
        try:
            line = self._answer(json.dumps(request).encode() + b"\n")
        except TimeoutError:
            return Failure(message("ocr.slow", seconds=self._bounds.ocr_page_seconds), again=True)
        except children.TooLong:
            return Failure(NO_PAGE)
        except OSError:
            return Failure(message("ocr.crashed", how=children.outcome(self._code())), again=True)
        try:
            answer = json.loads(line)
            return Failure(received(answer["failure"])) if "failure" in answer else _scan(answer)
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
            return Failure(NO_PAGE)

    def _answer(self, request: bytes) -> bytes:
        """The child's line for ``request``; raise ``OSError`` where it ended and ``TimeoutError`` where it is late."""
        self._child = self._child or children.Child(self._command, MOST_BYTES)
        self._child.forget()
        self._child.send(request, self._bounds.ocr_page_seconds)
        line = self._child.line(self._bounds.ocr_page_seconds)
        if line is None:
            raise TimeoutError
        return line

    def _code(self) -> int | None:
        return self._child.code() if self._child else None


def _scan(answer: dict[str, Any]) -> Scan:
    """The page in the child's message; raise ``ValueError``, ``TypeError`` or ``LookupError`` where it is none."""
    lines = tuple(_seen(*line) for line in answer["lines"])
    width, height, turn = float(answer["width"]), float(answer["height"]), int(answer["turn"])
    rules = tuple(_rule(*rule) for rule in answer.get("rules", ()))
    if max(len(lines), len(rules)) > MOST_LINES or turn not in range(4) or not math.isfinite(width + height):
        raise ValueError
    return Scan(width, height, turn, lines, rules)


def _rule(x0: Any, y0: Any, x1: Any, y1: Any) -> Frame:
    rule = (float(x0), float(y0), float(x1), float(y1))
    if not all(map(math.isfinite, rule)):
        raise ValueError
    return rule


def _seen(text: Any, confidence: Any, corners: Any) -> Seen:
    places = tuple((float(x), float(y)) for x, y in corners)
    sure = float(confidence)
    if not isinstance(text, str) or len(places) != 4 or not 0 <= sure <= 1:
        raise ValueError
    if not all(math.isfinite(value) for place in places for value in place):
        raise ValueError
    return Seen(text, sure, places)
