"""The window's own parts: its frame, that there is one, and that a running server is found."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from localmed import desktop
from localmed.desktop import Frame
from localmed.domain.errors import Busy
from tests.cli.conftest import COMMAND, environment
from tests.words import phrase


def test_the_frame_is_remembered(tmp_path: Path) -> None:
    assert desktop.last_frame(tmp_path) == Frame()
    desktop.remember(tmp_path, Frame(900, 700, 10, 20))
    assert desktop.last_frame(tmp_path) == Frame(900, 700, 10, 20)


@pytest.mark.parametrize("content", ["", "{", '{"width": 1}', '{"width": "x"}', '{"height": 99999}', '{"z": 1}', "[]"])
def test_a_frame_that_makes_no_sense_is_not_taken(tmp_path: Path, content: str) -> None:
    (tmp_path / desktop.STATE).write_text(content)
    assert desktop.last_frame(tmp_path) == Frame()


def test_there_is_one_window(tmp_path: Path) -> None:
    with desktop.single_window(tmp_path), pytest.raises(Busy), desktop.single_window(tmp_path):
        pass
    with desktop.single_window(tmp_path):
        pass


def test_nothing_answers_where_nothing_listens() -> None:
    assert not desktop.is_running("http://127.0.0.1:9/")


@pytest.mark.slow
def test_without_a_window_of_its_own_the_systems_browser_is_led_to_a_server(tmp_path: Path) -> None:
    """The browser is a script that writes down where it was led; Ctrl-C ends the command and its server."""
    led, browser = tmp_path / "led", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {led}.part && mv {led}.part {led}\n')
    browser.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [*COMMAND, "--data", str(tmp_path / "data"), "desktop", "--browser", "--port", str(port)]
    opened = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**environment(), "BROWSER": f"{browser} %s"}
    )
    try:
        deadline = time.monotonic() + desktop.START_SECONDS
        while not led.exists() and opened.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        url = f"http://127.0.0.1:{port}/"
        assert led.read_text().strip() == url
        assert desktop.is_running(url)
        second = subprocess.run(command, capture_output=True, timeout=300, env=environment(), check=False)
        assert second.returncode == 4
        assert phrase("desktop.open") in second.stderr.decode()
    finally:
        os.kill(opened.pid, signal.SIGINT)
        opened.communicate(timeout=300)
    assert not desktop.is_running(url)
