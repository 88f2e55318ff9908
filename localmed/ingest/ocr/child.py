"""The OCR engine in a child process, which may crash, hang or run out of memory without harm to other processes.

RapidOCR runs the PP-OCRv6 models of its own wheel (Chinese and English, detection and recognition) on ONNX Runtime.
Started by ``pages.py`` as ``python -m localmed.ingest.ocr.child PARENT_PID``; one JSON message a line::

    {"path", "page", "bounds"}  ->  {"width", "height", "turn", "lines": [[text, confidence, [[x, y] * 4]], ...],
                                     "rules": [[x0, y0, x1, y1], ...]}
                                    or {"failure": why}
    {"path", "page", "bounds", "lines": [[x0, y0, x1, y1, quarters], ...]}  ->  {"texts": [[text, confidence], ...]}

Lines come in no particular order. Corners (top left first, clockwise as read) and printed rules (left to right or top
to bottom) are points of the page as displayed and then turned counterclockwise by ``turn`` quarters; ``width`` and
``height`` are those of the page as displayed. Requested ``lines`` are places on the page as displayed, to be turned
clockwise by ``quarters``; only their text is returned.

Rules: the process leaves the network before a library loads (ONNX Runtime from 1.29 on has a telemetry client). Models
are named by path and checked by hash, so the engine downloads none. A page that reads badly is tried in its other
directions. Lines of every confidence are sent. A line across a cell border or a column gutter is read again as two.
Memory, threads and processor time are bounded; a failure quotes no text of the page.

Not covered: handwriting, formulas, dotted rules, other scripts.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from localmed.config import ReadBounds
from localmed.domain import message
from localmed.messages import as_json
from localmed.process import confined
from localmed.process.environment import before_models

DPI = 200  # what scanners are set to; the models read a scan of 150 dpi no better at its own resolution
MOST_PIXELS = 4000  # a side: A3 at 240 dpi; a 144,000-point page must not cost gigabytes
DETECT_PIXELS = 1600  # a side, to find the lines: as many as at full size, in half to three quarters of the time
SURE = 0.8  # mean confidence of a page by its characters: sound scans have > 0.98, those upside down < 0.6
STANDING = 1.5  # times as tall as wide: such a line runs upwards or downwards
PAPER = (31, 15)  # pixels around, and how much darker than their mean ink is: shading is not ink
SHORTEST_RULE = 90  # pixels, 11 mm: longer than strokes of letters, as long as two rows of a table
GAP = 15  # pixels, 2 mm, by which a printed rule may be broken
MOST_THICK = 15  # pixels, with what is added to join broken runs: bars and borders of pictures are thicker
MOST_RULES = 2000  # of one direction
CLEAR = 3  # pixels beside the middle of a rule: its own ink
MARGIN = 6  # pixels left and right of a line read by itself
LETTERS = 3  # of such a line; shorter ones are labels, or one Chinese character above the other
PACKAGES = ("rapidocr", "onnxruntime", "cv2")
NAME = "RapidOCR, PP-OCRv6 small"
MODELS = {  # part of the engine -> (file in the wheel of rapidocr 3.10.0, its sha256)
    "Det": ("PP-OCRv6_det_small.onnx", "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f"),
    "Rec": ("PP-OCRv6_rec_small.onnx", "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884"),
}

# Gutters between columns; lengths in heights of a line
GUTTER_LINES = 5  # least number of lines that begin at its right
SAME_EDGE = 0.6  # by which the beginnings of those lines differ
GUTTER_REACH = 3.0  # by which a line extends beyond a gutter that it crosses, on both sides
GUTTER_WIDTH = 0.4  # least width
MOST_OVER = 0.6  # of the lines at its right: if more cross it, it is no gutter
INK = 60  # levels of grey darker than paper

Frame = tuple[float, float, float, float]  # x0, y0, x1, y1 in pixels
Line = tuple[str, float, list[list[float]]]


class Engine:
    """The loaded engine. Pictures are (H, W, 3) of bytes, BGR; places are pixels."""

    def __init__(self, loaded: Any) -> None:
        self._loaded = loaded

    def lines(self, picture: Any) -> list[Line]:
        """The lines on ``picture``."""
        output = self._loaded(picture, use_det=True)
        if output.txts is None or output.boxes is None:
            return []
        rows = zip(output.txts, output.scores, output.boxes.tolist(), strict=True)
        return [(text, float(score), corners) for text, score, corners in rows if text.strip()]

    def line(self, picture: Any) -> tuple[str, float]:
        """The text and confidence of ``picture``, which contains one line."""
        output = self._loaded(picture, use_det=False)
        return (output.txts[0], float(output.scores[0])) if output.txts else ("", 0.0)


def installed() -> bool:
    """Whether the extra ``ocr`` is installed; imports nothing."""
    return all(find_spec(name) is not None for name in PACKAGES)


def identity() -> str:
    """The engine and its version, "" if it is not installed."""
    return f"{NAME}, {metadata.version('rapidocr')}" if installed() else ""


def main() -> None:
    """Answer requests until the parent closes its end."""
    requests, replies = confined.take_streams()
    confined.leave_network()
    confined.die_with_parent(int(sys.argv[1]))  # afterwards: a process that takes other rights loses this one
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides what ends
    before_models()
    engine: Engine | None = None
    for line in requests:
        request = json.loads(line)
        bounds = ReadBounds(**request["bounds"])
        confined.limit(bounds.ocr_memory_bytes, round(bounds.ocr_page_seconds * bounds.ocr_threads) + 1)
        try:
            engine = engine or load(bounds.ocr_threads)
            path, page = Path(request["path"]), int(request["page"])
            places = request.get("lines")
            answer = read(engine, path, page) if places is None else read_lines(engine, path, page, places)
        except MemoryError:
            answer = {"failure": as_json(message("ocr.memory", most=bounds.ocr_memory_bytes // 2**20))}
        except Exception as error:  # of the engine or of MuPDF; a message may hold text of the page
            answer = {"failure": as_json(message("ocr.engine", place=confined.place(error)))}
        replies.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        replies.flush()
    os._exit(0)


def load(threads: int) -> Engine:
    """The engine on ``threads`` threads; raise ``RuntimeError`` for a model that is not the tested one."""
    import cv2
    import rapidocr

    cv2.setNumThreads(threads)
    logging.getLogger("RapidOCR").setLevel(logging.CRITICAL)
    folder = Path(rapidocr.__file__).parent / "models"
    parameters: dict[str, Any] = {
        "Global.log_level": "critical",
        "Global.use_cls": False,  # upside-down pages are turned as a whole, so that their lines come in order
        "Global.text_score": 0.0,
        "Global.max_side_len": MOST_PIXELS,  # its own 2,000 would shrink a page again
        "Det.limit_type": "max",
        "Det.limit_side_len": DETECT_PIXELS,
        "EngineConfig.onnxruntime.intra_op_num_threads": threads,
        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
    }
    for part, (file, sha256) in MODELS.items():
        if hashlib.sha256((folder / file).read_bytes()).hexdigest() != sha256:
            raise RuntimeError("a model is not the one of rapidocr 3.10.0")
        parameters[f"{part}.model_path"] = str(folder / file)
    return Engine(rapidocr.RapidOCR(params=parameters))


def read(engine: Engine, path: Path, page: int) -> dict[str, Any]:
    """Read ``page`` (1-based) of the PDF at ``path``."""
    import numpy as np

    from localmed.ingest.readers.pdf.opening import raster

    picture, scale, width, height = raster(path, page, DPI, MOST_PIXELS)
    turn, lines = 0, engine.lines(picture)
    if _reads_badly(lines):
        tried = [(0, lines)]
        for quarters in (1, 3, 2) if _is_mostly_upright(lines) else (2, 1, 3):
            tried.append((quarters, engine.lines(np.ascontiguousarray(np.rot90(picture, quarters)))))
            if not _reads_badly(tried[-1][1]):
                break
        turn, lines = max(tried, key=lambda attempt: _worth(attempt[1]))
    shown = np.ascontiguousarray(np.rot90(picture, turn))
    drawn = rules(shown) if lines else []
    lines = _split_lines(
        engine, shown, lines, [*_borders(drawn), *over_gutters(shown, [_frame(line) for line in lines])]
    )
    placed = [
        (text, round(confidence, 4), [[round(x / scale, 2), round(y / scale, 2)] for x, y in corners])
        for text, confidence, corners in lines
    ]
    return {
        "width": width,
        "height": height,
        "turn": turn,
        "lines": placed,
        "rules": [[round(value / scale, 2) for value in rule] for rule in drawn],
    }


def read_lines(engine: Engine, path: Path, page: int, places: list[list[float]]) -> dict[str, Any]:
    """Read ``page`` at ``places``, each of which contains one line."""
    import numpy as np

    from localmed.ingest.readers.pdf.opening import raster

    picture, scale, *_ = raster(path, page, DPI, MOST_PIXELS)
    texts = []
    for x0, y0, x1, y1, quarters in places:
        top, left = max(0, int(y0 * scale)), max(0, int(x0 * scale) - MARGIN)
        line = picture[top : int(y1 * scale) + 1, left : int(x1 * scale) + MARGIN]
        upright = np.ascontiguousarray(np.rot90(line, -int(quarters)))
        text, confidence = engine.line(upright) if upright.size else ("", 0.0)
        texts.append((text, round(confidence, 4)))
    return {"texts": texts}


def _split_lines(engine: Engine, picture: Any, lines: list[Line], upright: list[Frame]) -> list[Line]:
    """Read ``lines`` that cross an ``upright`` rule or gutter again as two."""
    waiting, done = lines[::-1], []
    while waiting:
        line = waiting.pop()
        left, top, right, bottom = _frame(line)
        at = next((rule for rule in upright if _crosses(rule, left, right, top, bottom)), None)
        parts = []
        for start, end in ((left, at[0] - CLEAR), (at[2] + CLEAR, right)) if at else ():
            text, confidence = engine.line(
                picture[max(0, int(top)) : int(bottom) + 1, max(0, int(start)) : int(end) + 1]
            )
            parts.append((text, confidence, [[start, top], [end, top], [end, bottom], [start, bottom]]))
        if parts and all(text.strip() for text, _, _ in parts):
            waiting += parts[::-1]  # the right one may run over another rule
        else:
            done.append(line)
    return done


def _frame(line: Line) -> Frame:
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = line[2]
    return min(ax, dx), min(ay, by), max(bx, cx), max(cy, dy)


def _borders(drawn: list[Frame]) -> list[Frame]:
    """The upright rules that meet two level ones; strokes of letters meet none."""
    level = [rule for rule in drawn if rule[2] - rule[0] > rule[3] - rule[1]]
    upright = [rule for rule in drawn if rule[2] - rule[0] <= rule[3] - rule[1]]
    return [rule for rule in upright if sum(_meet(rule, other) for other in level) > 1]


def _meet(upright: Frame, level: Frame) -> bool:
    x, y = (upright[0] + upright[2]) / 2, (level[1] + level[3]) / 2
    return level[0] - GAP < x < level[2] + GAP and upright[1] - GAP < y < upright[3] + GAP


def _crosses(rule: Frame, left: float, right: float, top: float, bottom: float) -> bool:
    """Whether the upright ``rule`` runs through a line of text, well inside it."""
    x, inset = (rule[0] + rule[2]) / 2, (bottom - top) / 2
    return left + inset < x < right - inset and rule[1] < (top + bottom) / 2 < rule[3]


def rules(picture: Any) -> list[Frame]:
    """The long thin lines of ``picture`` (H, W, 3), in pixels: long runs of ink, by morphological opening."""
    import cv2
    import numpy as np

    gray = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
    ink = cv2.adaptiveThreshold(gray, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY_INV, *PAPER)
    drawn: list[Frame] = []
    for axes in ((0, 1), (1, 0)):  # level rules, then upright ones

        def shape(long: int, thick: int, axes: tuple[int, int] = axes) -> Any:
            return np.ones((thick, long) if axes[0] == 0 else (long, thick), np.uint8)

        runs = cv2.morphologyEx(cv2.dilate(ink, shape(1, 3)), cv2.MORPH_OPEN, shape(SHORTEST_RULE, 1))
        drawn += _lines_of(cv2.dilate(runs, shape(GAP, 3)), axes)
    return drawn


def _lines_of(image: Any, axes: tuple[int, int]) -> list[Frame]:
    """The connected stretches of ``image`` as lines through the middles of their ends."""
    import cv2
    import numpy as np

    count, labels, stats, _ = cv2.connectedComponentsWithStats(image)
    drawn: list[Frame] = []
    for part in range(1, min(count, MOST_RULES)):
        left, top, wide, tall, area = (int(value) for value in stats[part])
        length = (wide, tall)[axes[0]]
        if area > MOST_THICK * length:
            continue
        inside = np.argwhere(labels[top : top + tall, left : left + wide] == part)[:, ::-1] + (left, top)
        along, across = inside[:, axes[0]], inside[:, axes[1]]
        start, end = int(along.min()) + GAP // 2, int(along.max()) - GAP // 2
        first = float(across[along <= along.min() + GAP].mean())
        last = float(across[along >= along.max() - GAP].mean())
        drawn.append((start, first, end, last) if axes[0] == 0 else (first, start, last, end))
    return drawn


# --- gutters between columns ------------------------------------------------------------------------------------------


def over_gutters(picture: Any, lines: Sequence[Frame]) -> Iterator[Frame]:
    """The white of a gutter inside each of ``lines`` that crosses one; ``picture`` is (H, W, 3) of bytes.

    A gutter is where several lines begin below each other and those to its left end. A heading over both columns has
    ink there and stays whole.
    """
    tall = median([y1 - y0 for _, y0, _, y1 in lines] or [0.0])
    for left, right, top, bottom in gutters(lines, tall):
        for line in lines:
            over = line[0] < left - GUTTER_REACH * tall and line[2] > right + GUTTER_REACH * tall
            if over and top < (line[1] + line[3]) / 2 < bottom and _white(picture, left, right, line):
                yield left, line[1], right, line[3]


def gutters(lines: Sequence[Frame], tall: float) -> Iterator[Frame]:
    """Left and right edge, top and bottom of each gutter."""
    begun: list[float] = []
    for edge in sorted(line[0] for line in lines):
        starts = [line for line in lines if abs(line[0] - edge) < SAME_EDGE * tall]
        if len(starts) < GUTTER_LINES or any(abs(edge - other) < tall for other in begun):
            continue
        begun.append(edge)
        right = median(line[0] for line in starts)
        top, bottom = min(line[1] for line in starts) - 2 * tall, max(line[3] for line in starts) + 2 * tall
        beside = [
            line for line in lines if line[1] > top and line[3] < bottom and line[0] < right - GUTTER_REACH * tall
        ]
        ends = [line[2] for line in beside if line[2] < right]
        over = len(beside) - len(ends)
        if len(ends) >= GUTTER_LINES and over <= MOST_OVER * len(starts) and right - max(ends) > GUTTER_WIDTH * tall:
            yield max(ends), right, top, bottom


def _white(picture: Any, left: float, right: float, line: Frame) -> bool:
    margin = (right - left) / 5
    part = picture[int(line[1]) : int(line[3]) + 1, int(left + margin) : int(right - margin) + 1]
    return bool(part.size) and int(part.max()) - int(part.min()) < INK


# --- direction --------------------------------------------------------------------------------------------------------


def _reads_badly(lines: list[Line]) -> bool:
    sure = sum(confidence * len(text) for text, confidence, _ in lines)
    return bool(lines) and (_is_mostly_upright(lines) or sure < SURE * sum(len(text) for text, _, _ in lines))


def _is_mostly_upright(lines: list[Line]) -> bool:
    letters = sum(len(text) for text, _, _ in lines)
    return sum(len(text) for text, _, corners in lines if len(text) >= LETTERS and _is_upright(corners)) > letters / 2


def _is_upright(corners: list[list[float]]) -> bool:
    wide, tall = (max(corner[axis] for corner in corners) - min(corner[axis] for corner in corners) for axis in (0, 1))
    return tall > STANDING * wide


def _worth(lines: list[Line]) -> float:
    """Characters by their confidence, without upright lines, which are read in no order."""
    lying = [line for line in lines if len(line[0]) < LETTERS or not _is_upright(line[2])]
    return sum(confidence**2 * len(text) for text, confidence, _ in lying)


if __name__ == "__main__":
    main()
