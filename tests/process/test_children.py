"""The parent's side of a child process: bounded waits, whole lines, no child left."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from localmed.messages import render
from localmed.process.children import Child, Failed, Lines, TooLong, answer, outcome

MOST = 1000  # bytes of a line


@contextmanager
def child(script: str) -> Iterator[Child]:
    process = Child([sys.executable, "-c", script], MOST)
    try:
        yield process
    finally:
        process.kill()
        assert not process.alive()


def ended(process: Child) -> bool:
    with pytest.raises(BrokenPipeError):
        process.line(20)
    return True


def test_what_it_is_sent_and_says() -> None:
    script = (
        "import sys; print(sys.stdin.readline().strip()[::-1], sys.argv[-1].isdigit()); print('x', file=sys.stderr)"
    )
    with child(script) as process:
        process.send(b"abc\n", 5)
        assert process.line(20) == b"cba True"
        assert ended(process)
        assert process.code() == 0


def test_no_wait_is_longer_than_told() -> None:
    with child("import time; time.sleep(60)") as process:
        began = time.monotonic()
        assert process.line(0.1) is None
        assert process.line(-1.0) is None
        with pytest.raises(TimeoutError):
            process.send(b"x" * 10**6, 0.1)
        assert time.monotonic() - began < 5
        assert process.alive()


def test_one_that_ended_and_one_that_only_closed_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with child("import os; os.kill(os.getpid(), 11)") as process:
        assert ended(process)
        assert process.code() == -signal.SIGSEGV
        with pytest.raises(BrokenPipeError):
            process.send(b"x", 1)
    monkeypatch.setattr("localmed.process.children.GRACE", 0.1)
    with child("import os, time; os.close(1); time.sleep(60)") as process:
        assert ended(process)
        assert process.code() is None


def test_several_lines_at_once_come_one_by_one() -> None:
    with child("import os; os.write(1, b'one\\ntwo\\nthree\\n'); input(); os.write(1, b'four\\n')") as process:
        assert (process.line(20), process.line(20)) == (b"one", b"two")
        process.forget()
        process.send(b"\n", 5)
        assert process.line(20) == b"four"


def test_one_answer() -> None:
    echo = (sys.executable, "-c", "print(input()[::-1], flush=True)")
    assert answer(echo, b"abc\n", 20, 100) == b"cba"
    with pytest.raises(TimeoutError):
        answer((sys.executable, "-c", "import time; time.sleep(60)"), b"", 0.2, 100)
    with pytest.raises(Failed, match=r"process\.exit"):
        answer((sys.executable, "-c", "import os; os._exit(4)"), b"", 20, 100)
    with pytest.raises(Failed, match=r"process\.too_long"):
        answer((sys.executable, "-c", "print('x' * 200, end='', flush=True); input()"), b"", 20, 100)


def test_lines_from_pieces_and_one_that_never_ends() -> None:
    text = b"one\n\nthree\nfour"
    for size in (1, 2, 3, 100):
        lines = Lines(5)
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        assert [line for piece in pieces for line in lines.take(piece)] == [b"one", b"", b"three"]
        assert lines.take(b"\n") == [b"four"]
    assert lines.take(b"12345") == []
    with pytest.raises(TooLong):
        lines.take(b"6")


def test_codes_in_words() -> None:
    shown = [render(outcome(code), "en") for code in (3, -11, -35, None)]
    assert shown == ["exit code 3", "signal SIGSEGV", "signal 35", "it did not end"]
