"""While a question is answered, its current step is shown on a terminal, and Ctrl-C ends it cleanly."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, Localmed, environment

QUESTION = "What is the maximum dose of paracetamol in adults?"
SECONDS = 120


def on_terminal(data: Path, *arguments: str, until: bytes = b"") -> tuple[int, bytes, bytes]:
    """The exit code, the output and what the terminal of standard error got; Ctrl-C once that holds ``until``."""
    ours, theirs = pty.openpty()
    command = [*COMMAND, "--data", str(data), "ask", QUESTION, *arguments]
    named = {**environment(), "TERM": "xterm", "LANG": "C.UTF-8"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=named) as process:
        os.close(theirs)
        seen, ends = b"", time.monotonic() + SECONDS
        while time.monotonic() < ends:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    chunk = os.read(ours, 4096)
                except OSError:  # the command has closed its side
                    break
                seen += chunk
            if until and until in seen:
                process.send_signal(signal.SIGINT)
                until = b""
        out = process.stdout.read() if process.stdout else b""
    os.close(ours)
    return process.returncode, out, seen


@pytest.mark.slow
def test_the_current_step_is_shown_on_a_terminal(localmed: Localmed) -> None:
    code, out, seen = on_terminal(localmed.data)
    assert code == 0
    assert b"4 g in 24" in out
    assert b"searching" in seen, "steps of a few milliseconds are not drawn"


@pytest.mark.slow
def test_nothing_is_shown_where_json_goes_to_another_program(localmed: Localmed) -> None:
    code, out, seen = on_terminal(localmed.data, "--json")
    assert (code, seen) == (0, b"")
    assert out.startswith(b"{")


def test_nothing_is_shown_without_a_terminal(localmed: Localmed) -> None:
    assert localmed.ok("ask", QUESTION).err == ""


@pytest.mark.slow
def test_ctrl_c_ends_a_question_with_one_line(localmed: Localmed) -> None:
    code, out, seen = on_terminal(localmed.data, until=b"searching")
    assert (code, out) == (130, b"")
    assert b"Traceback" not in seen
    assert seen.rstrip().splitlines()[-1].startswith(b"localmed: ")
