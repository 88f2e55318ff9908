"""The window's own parts: its frame, that there is one, and that a running server is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from localmed import desktop
from localmed.desktop import Frame
from localmed.errors import Busy


def test_the_frame_is_remembered(tmp_path: Path) -> None:
    assert desktop.remembered(tmp_path) == Frame()
    desktop.remember(tmp_path, Frame(900, 700, 10, 20))
    assert desktop.remembered(tmp_path) == Frame(900, 700, 10, 20)


@pytest.mark.parametrize("content", ["", "{", '{"width": 1}', '{"width": "x"}', '{"height": 99999}', '{"z": 1}', "[]"])
def test_a_frame_that_makes_no_sense_is_not_taken(tmp_path: Path, content: str) -> None:
    (tmp_path / desktop.STATE).write_text(content)
    assert desktop.remembered(tmp_path) == Frame()


def test_there_is_one_window(tmp_path: Path) -> None:
    with desktop.single(tmp_path), pytest.raises(Busy), desktop.single(tmp_path):
        pass
    with desktop.single(tmp_path):
        pass


def test_nothing_answers_where_nothing_listens() -> None:
    assert not desktop.answers("http://127.0.0.1:9/")
