"""Pictures of pages and passages: where the marks are, bounds, and the child's protocol."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from localmed.domain import Box, Passage, errors
from localmed.domain.errors import InputError
from localmed.ingest import draw
from localmed.ingest.render import BESIDE, CROPPED, DPI, MOST_PIXELS, SIDE, render_page, render_text
from localmed.process import children
from tests.ingest.readers.pdf import fixtures as make
from tests.ingest.test_child import ended
from tests.process.test_confined import interfaces, namespace, permitted


def yellow(picture: Any, x: float, y: float) -> bool:
    """Whether the pixel at ``x, y`` points is paper multiplied by the mark's colour."""
    red, _, blue = picture.pixel(int(x * DPI / 72), int(y * DPI / 72))
    return bool(red > 200 and blue < 150)


@pytest.mark.parametrize("rotation", [0, 90])
def test_the_mark_lies_on_the_word_and_nowhere_else(tmp_path: Path, rotation: int) -> None:
    path = make.rotated(tmp_path / "page.pdf", rotation)
    with pymupdf.open(path) as document:
        area = document[0].search_for("perforation")[0] * document[0].rotation_matrix
    render_page(path, 1, [Box(1, *area), Box(2, 0, 0, 400, 400)], tmp_path / "page.png")
    picture = pymupdf.Pixmap(str(tmp_path / "page.png"))
    assert yellow(picture, area.x0 - 0.3, area.y1 - 1)
    assert not yellow(picture, area.x0 + 5, area.y1 + 20)
    assert not yellow(picture, area.x0 - 20, area.y0)
    middle = int((area.y0 + area.y1) / 2 * DPI / 72)
    inks = [picture.pixel(x, middle) for x in range(int(area.x0 * DPI / 72), int(area.x1 * DPI / 72))]
    assert min(sum(ink) for ink in inks) < 150  # the letters under the mark stay dark


def test_boxes_that_overlap_are_not_darker_and_those_beyond_the_page_are_harmless(tmp_path: Path) -> None:
    path = make.two_columns(tmp_path / "page.pdf")
    render_page(path, 1, [Box(1, 100, 700, 200, 720), Box(1, 150, 690, 250, 715)], tmp_path / "two.png")
    picture = pymupdf.Pixmap(str(tmp_path / "two.png"))
    twice, once = (picture.pixel(int(x * DPI / 72), int(y * DPI / 72)) for x, y in ((175, 708), (120, 716)))
    assert twice == once
    render_page(path, 1, [Box(1, -500, -500, 9000, 9000), Box(1, 50, 50, 40, 40)], tmp_path / "out.png")
    assert yellow(pymupdf.Pixmap(str(tmp_path / "out.png")), 300, 700)


def test_a_cropped_page_holds_its_first_marks_without_the_margins(tmp_path: Path) -> None:
    path = make.two_columns(tmp_path / "page.pdf")
    marks = [Box(1, 100, 300, 200, 320), Box(1, 100, 330, 200, 350)]
    render_page(path, 1, marks, tmp_path / "whole.png")
    render_page(path, 1, marks, tmp_path / "part.png", cropped=True)
    whole, part = (pymupdf.Pixmap(str(tmp_path / name)) for name in ("whole.png", "part.png"))
    assert whole.width - part.width > SIDE * DPI / 72, "the margins are cut"
    assert part.height == pytest.approx((50 + 2 * BESIDE) * DPI / 72, abs=4)
    assert any(yellow(part, 100, BESIDE + more) for more in range(15))
    render_page(path, 1, [*marks, Box(1, 100, 700, 200, 720)], tmp_path / "long.png", cropped=True)
    assert pymupdf.Pixmap(str(tmp_path / "long.png")).height <= CROPPED * DPI / 72
    render_page(path, 1, [], tmp_path / "bare.png", cropped=True)
    assert pymupdf.Pixmap(str(tmp_path / "bare.png")).height == whole.height, "without marks the whole page"


def test_a_cropped_page_is_cut_between_its_lines(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page()
    for number in range(50):
        page.insert_text((60, 53 + 14 * number), "Give warfarin 3 mg at six in the evening, by mouth", fontsize=11)
    document.save(tmp_path / "page.pdf")
    render_page(tmp_path / "page.pdf", 1, [Box(1, 100, 300, 200, 312)], tmp_path / "part.png", cropped=True)
    part = pymupdf.Pixmap(str(tmp_path / "part.png"))
    for row in (0, part.height - 1):
        assert len({part.pixel(column, row) for column in range(part.width)}) == 1, "no letter is cut through"


def test_the_picture_is_bounded_and_a_page_that_is_not_there_refused(tmp_path: Path) -> None:
    document = pymupdf.open()
    document.new_page(width=14000, height=700).insert_text((50, 60), "wide")
    path = make.save(document, tmp_path / "wide.pdf")
    render_page(path, 1, [], tmp_path / "wide.png", dpi=600)
    picture = pymupdf.Pixmap(str(tmp_path / "wide.png"))
    assert max(picture.width, picture.height) <= MOST_PIXELS
    with pytest.raises(InputError, match="no page 7"):
        render_page(path, 7, [], tmp_path / "out.png")
    assert not (tmp_path / "out.png").exists()


def test_text_is_laid_out_with_its_characters_marked_and_its_markup_shown(tmp_path: Path) -> None:
    text = "高血压患者 <span class='mark'>take</span> care & rest. " * 30
    marked, plain = (tmp_path / "text.png", tmp_path / "plain.png")
    render_text("标题 <i>title</i>", text, 0, 5, marked)
    render_text("标题 <i>title</i>", text, 0, 0, plain)
    pictures = [pymupdf.Pixmap(str(path)) for path in (marked, plain)]
    assert pictures[0].irect == pictures[1].irect
    assert _yellow_pixels(pictures[0]) > 500
    assert _yellow_pixels(pictures[1]) == 0


def _yellow_pixels(picture: Any) -> int:
    samples = picture.samples
    pairs = zip(samples[0 :: picture.n], samples[2 :: picture.n], strict=True)
    return sum(red > 200 and blue < 150 for red, blue in pairs)


def _child(request: object, command: Sequence[str] = draw.COMMAND) -> str:
    """What the child answers: "done", or the words of its refusal."""
    kind, *values = json.loads(children.answer(command, json.dumps(request).encode() + b"\n", 60, draw.ANSWER_BYTES))
    return str(kind) if kind == "done" else str(errors.from_json(values[0], InputError))


def test_the_child_draws_pages_and_texts(tmp_path: Path) -> None:
    path = make.two_columns(tmp_path / "page.pdf")
    request = {"file": str(path), "page": 1, "boxes": [[1, 60, 100, 200, 130]], "output": str(tmp_path / "a.png")}
    assert _child(request) == "done"
    assert yellow(pymupdf.Pixmap(str(tmp_path / "a.png")), 100, 110)
    text = {"text": "some words", "title": "t", "start": 0, "end": 4, "output": str(tmp_path / "b.png")}
    assert _child(text) == "done"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.png", "b.png", "page.pdf"]  # nothing half-written


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        ({"page": 1}, "the request is not valid (its content is damaged"),
        ([], "the request is not valid (its content is damaged"),
        ({"file": "no-such.pdf", "page": 1, "output": "x.png"}, "no-such.pdf cannot be read"),
        ({"text": "t", "output": "no/such/x.png"}, "x.png cannot be written"),
    ],
)
def test_the_child_says_why_it_fails(request_: object, problem: str) -> None:
    assert _child(request_).startswith(problem)


def test_what_a_library_says_of_a_failure_stays_in_the_child(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = (
        "import sys; from localmed.ingest import render\n"
        "def fails(request): raise RuntimeError('patient Zyx')\n"
        "render.answer = fails; render.main()"
    )
    output = _child({}, (sys.executable, "-c", code))
    assert "RuntimeError at render.py" in output
    assert "Zyx" not in output
    crashing = tmp_path / "crashing"
    crashing.write_text("#!/bin/sh\necho patient Zyx >&2\nkill -SEGV $$\n")
    crashing.chmod(0o700)
    monkeypatch.setattr(draw, "CHILDREN", draw.Children((str(crashing),)))
    with pytest.raises(InputError, match="could not be drawn: signal SIGSEGV") as caught:
        draw.draw_text("t", "text", 0, 1, tmp_path / "a.png")
    assert "Zyx" not in str(caught.value)


BREAKING = """
import os
from localmed.ingest import render
draws = render.answer
def breaks(request):
    if request["text"] == "break":
        os.abort()
    draws(request)
render.answer = breaks
render.main()
"""


def test_one_child_draws_page_after_page_and_survives_one_that_breaks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "breaking.py").write_text(BREAKING)
    starts = tmp_path / "starts"
    script = f'echo $$ >> {starts}; exec {sys.executable} {tmp_path / "breaking.py"} "$0"'
    waiting = draw.Children(("/bin/sh", "-c", script))
    monkeypatch.setattr(draw, "CHILDREN", waiting)
    draw.draw_text("t", "a text", 0, 1, tmp_path / "a.png")
    with pytest.raises(InputError, match="could not be drawn: signal SIGABRT"):
        draw.draw_text("t", "break", 0, 1, tmp_path / "b.png")
    draw.draw_text("t", "a text", 0, 1, tmp_path / "c.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "c.png").read_bytes()
    (child,) = map(int, starts.read_text().split())
    waiting.close()
    assert ended(child)


DRAWING = """
import sys
from pathlib import Path
from localmed.ingest import draw
draw.draw_page(Path(sys.argv[1]), 1, [], Path(sys.argv[1] + ".png"))
"""


def _child_of(pid: int) -> int:
    """The process that ``pid`` has started."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            if children := (thread / "children").read_text().split():
                return int(children[0])
        time.sleep(0.02)
    raise AssertionError("it started none")


def test_the_child_has_no_network_and_ends_with_its_parent(tmp_path: Path) -> None:
    """A pipe stands for a page that takes long: nobody ever writes to it."""
    os.mkfifo(tmp_path / "endless.pdf")
    with subprocess.Popen([sys.executable, "-c", DRAWING, str(tmp_path / "endless.pdf")]) as parent:
        child = _child_of(parent.pid)
        end = time.monotonic() + 30
        while permitted and namespace(child) == namespace(os.getpid()) and time.monotonic() < end:
            time.sleep(0.05)
        assert interfaces(child) == {"lo"} or not permitted
        assert not ended(child, 0.5)
        parent.kill()
    assert ended(child)


# --- the text around a passage of a source without pages -------------------------------------------------------------


def passage(number: int, text: str, *headings: str) -> Passage:
    return Passage(f"p{number}", "d", "c", "en", "", "Title", headings, text, f"{number}-{number + 1}")


DOCUMENT = [
    passage(0, "First.", "A"),
    passage(1, "Second.", "A"),
    passage(2, "第三段。", "A", "B"),
    passage(3, "Last.", "A"),
]


def test_a_passage_stands_among_its_neighbours() -> None:
    for one in DOCUMENT:
        text, start = draw.with_neighbours(one, DOCUMENT)
        assert text == "A\nFirst.\n\nSecond.\n\nA › B\n第三段。\n\nA\nLast."
        assert text[start:].startswith(one.text)
    assert draw.with_neighbours(passage(9, "Kept.", "A"), DOCUMENT) == ("Kept.", 0), "its document has it no more"


def test_the_nearest_are_taken_whole_until_the_page_is_full() -> None:
    long = [passage(number, str(number) * (draw.AROUND // 2 - 10)) for number in range(9)]
    assert [part[0] for part in draw.with_neighbours(long[4], long)[0].split("\n\n")] == ["2", "3", "4", "5", "6"]
    wide = [passage(0, "x" * (draw.AROUND + 1)), passage(1, "here"), passage(2, "y" * (draw.AROUND + 1))]
    assert draw.with_neighbours(wide[1], wide)[0] == "here"
