"""Has the OCR child (``child.py``) read one page after another within a time limit; a failed page costs only itself.

Answers are kept in the document's folder if the caller names one, so a page is read once however often its file is
imported. A page whose child hung or crashed, perhaps for want of memory or time, may be requested again, ``TRIES``
times in all. After ``GIVE_UP`` failed pages in a row the rest of the file is not tried. Messages of the child are
checked before use.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from localmed.config import ReadBounds
from localmed.domain import Message, message
from localmed.domain.errors import received
from localmed.ingest.ocr.child import Frame, identity
from localmed.process import children, files

COMMAND = children.command("localmed.ingest.ocr.child")
TRIES = 2  # of a page whose child hung or crashed
GIVE_UP = 3  # pages in a row; an engine that fails so often fails on every page, and a book has thousands
MOST_LINES = 5_000  # of one page; a page of 6-point type in four columns has ~500
MOST_BYTES = 8 * 2**20  # of one answer: 5,000 lines take ~1 MiB

_NO_PAGE = (ValueError, TypeError, LookupError, OverflowError, RecursionError)  # raised by a malformed answer
KEPT = 1  # increase when the child answers the same request differently

Place = tuple[float, float, float, float, int]  # a line as displayed, in points, and its quarters to turn clockwise
Readings = tuple[tuple[str, float], ...]  # of lines: text and confidence
Corners = tuple[tuple[float, float], ...]  # four, in points, the top left first, clockwise as read


@dataclass(frozen=True, slots=True)
class Seen:
    """A line as read; ``confidence`` is between 0 and 1."""

    text: str
    confidence: float
    corners: Corners


@dataclass(frozen=True, slots=True)
class Scan:
    """A page as read; corners are points of the page turned counterclockwise by ``turn`` quarters, sizes as shown."""

    width: float
    height: float
    turn: int
    lines: tuple[Seen, ...]
    rules: tuple[Frame, ...] = ()  # printed lines, from end to end, in points


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a page was not read; ``again``: its child hung or crashed, and another may succeed."""

    why: Message
    again: bool = False


Answer = TypeVar("Answer", Scan, Readings)


class Ocr(AbstractContextManager["Ocr"]):
    """Reads pages; a context manager that leaves no child behind."""

    def __init__(self, bounds: ReadBounds, command: Sequence[str] = COMMAND, kept: Path | None = None) -> None:
        """``kept`` is the folder for the answers about one document."""
        self._bounds, self._command, self._kept = bounds, tuple(command), kept
        self._child: children.Child | None = None
        self._failed = 0  # pages in a row
        self._tried = 0  # times, the page that failed last

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """End the child, if there is one."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()

    def read(self, path: Path, page: int) -> Scan | Failure:
        """Read ``page`` (1-based) of the PDF at ``path``, or say why that failed."""
        return self._request({"path": str(path.absolute()), "page": page}, _scan)

    def lines(self, path: Path, page: int, places: Sequence[Place]) -> Readings | Failure:
        """Read ``places`` of ``page``, each one line, or say why that failed."""
        return self._request({"path": str(path.absolute()), "page": page, "lines": list(places)}, _readings)

    def _request(self, request: dict[str, Any], taken: Callable[[dict[str, Any]], Answer]) -> Answer | Failure:
        """The answer to ``request``, kept or fresh; a failure counts among those of the file."""
        if self._failed >= GIVE_UP:
            return Failure(message("ocr.given_up", count=GIVE_UP))
        answer = self._answered(request, taken)
        if not isinstance(answer, Failure):
            self._failed = self._tried = 0
            return answer
        self.close()
        self._tried += 1
        if answer.again and self._tried < TRIES:
            return answer
        self._failed, self._tried = self._failed + 1, 0
        return replace(answer, again=False)

    def _answered(self, request: dict[str, Any], taken: Callable[[dict[str, Any]], Answer]) -> Answer | Failure:
        kept = self._kept and self._kept / _name(request)
        with suppress(OSError, *_NO_PAGE):
            if kept:
                return taken(json.loads(_unaltered(kept.read_bytes())))
        bounds = {"bounds": dataclasses.asdict(self._bounds)}
        try:
            line = self._answer(json.dumps(request | bounds).encode() + b"\n")
            answer = json.loads(line)
            if "failure" in answer:
                return Failure(received(answer["failure"]))
            read = taken(answer)
        except TimeoutError:
            return Failure(message("ocr.slow", seconds=self._bounds.ocr_page_seconds), again=True)
        except OSError:
            how = children.outcome(self._child.code() if self._child else None)
            return Failure(message("ocr.crashed", how=how), again=True)
        except (children.TooLong, *_NO_PAGE):
            return Failure(message("ocr.no_page"))
        if kept:
            with suppress(OSError):  # a full disk costs the time to read the page again
                files.replace(kept, _with_digest(line))
        return read

    def _answer(self, request: bytes) -> bytes:
        """The child's line for ``request``; raise ``OSError`` if it ended and ``TimeoutError`` if it is late."""
        self._child = self._child or children.Child(self._command, MOST_BYTES)
        self._child.forget()
        self._child.send(request, self._bounds.ocr_page_seconds)
        line = self._child.line(self._bounds.ocr_page_seconds)
        if line is None:
            raise TimeoutError
        return line


def _name(request: dict[str, Any]) -> str:
    key = json.dumps([KEPT, identity(), request.get("lines")]).encode()
    return f"{request['page']}-{hashlib.sha256(key).hexdigest()[:16]}.json"


def _with_digest(line: bytes) -> bytes:
    return hashlib.sha256(line).hexdigest().encode() + b"\n" + line


def _unaltered(content: bytes) -> bytes:
    """The answer in a kept file; raise ``ValueError`` if it is damaged."""
    line = content.partition(b"\n")[2]
    if _with_digest(line) != content:
        raise ValueError
    return line


def _readings(answer: dict[str, Any]) -> Readings:
    readings = tuple((str(text), float(sure)) for text, sure in answer["texts"])
    if len(readings) > MOST_LINES or not all(0 <= sure <= 1 for _, sure in readings):
        raise ValueError
    return readings


def _scan(answer: dict[str, Any]) -> Scan:
    """The page in the child's message; raise one of ``_NO_PAGE`` if it is none."""
    lines = tuple(_seen(*line) for line in answer["lines"])
    (width, height), turn = _finite(answer["width"], answer["height"]), int(answer["turn"])
    rules = tuple(_finite(x0, y0, x1, y1) for x0, y0, x1, y1 in answer.get("rules", ()))
    if max(len(lines), len(rules)) > MOST_LINES or turn not in range(4):
        raise ValueError
    return Scan(width, height, turn, lines, rules)


def _seen(text: Any, confidence: Any, corners: Any) -> Seen:
    places = tuple(_finite(x, y) for x, y in corners)
    sure = float(confidence)
    if not isinstance(text, str) or len(places) != 4 or not 0 <= sure <= 1:
        raise ValueError
    return Seen(text, sure, places)


def _finite(*values: Any) -> Any:
    """``values`` as numbers; raise ``ValueError`` for an infinite one or none."""
    numbers = tuple(map(float, values))
    if not all(map(math.isfinite, numbers)):
        raise ValueError
    return numbers
