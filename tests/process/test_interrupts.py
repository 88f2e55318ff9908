"""Ctrl-C ends what a command does, whatever its exception turns into on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.library import generations
from localmed.process import files, hooks, interrupts
from tests.cli.conftest import environment
from tests.fakes import HashedWords, import_into, write

INTERRUPTED_TEXT = """
import signal
import sys
from localmed.process import interrupts

try:
    with interrupts.note_interrupts():
        exec("signal.raise_signal(signal.SIGINT)")
except KeyboardInterrupt:
    sys.exit(130)
"""

INTERRUPTED_TORCH = """
import signal
import sys
import threading
import time
from localmed.process import interrupts
from localmed.models import network

def torch_is_loading():
    while "torch" not in sys.modules:
        pass
    while "torch.nn" not in sys.modules:  # long before the end
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.005)

threading.Thread(target=torch_is_loading, daemon=True).start()
try:
    with interrupts.note_interrupts():
        network.load_torch()
except KeyboardInterrupt:
    assert sys.modules["torch"].ones(2).sum() == 2
    sys.exit(130)
"""


@pytest.fixture(autouse=True)
def from_a_terminal() -> Iterator[None]:
    """Whoever runs the tests may have them ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def listening() -> Iterator[None]:
    with interrupts.note_interrupts():
        yield


def ctrl_c(*_: object) -> None:
    """Ctrl-C, and a library that goes on all the same."""
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("listening")
def test_what_is_swallowed_is_raised_at_the_next_look() -> None:
    hooks.check()
    ctrl_c()
    with pytest.raises(KeyboardInterrupt):
        hooks.check()


@pytest.mark.usefixtures("listening")
def test_what_would_not_survive_it_ends_first() -> None:
    steps = []
    with suppress(KeyboardInterrupt), interrupts.delayed():
        signal.raise_signal(signal.SIGINT)
        steps.append("held")
    assert steps == ["held"]
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("script", [INTERRUPTED_TEXT, pytest.param(INTERRUPTED_TORCH, marks=pytest.mark.slow)])
def test_ctrl_c_within_a_text_that_runs_and_while_torch_loads_is_130(tmp_path: Path, script: str) -> None:
    """Within torch's C++ it aborted the process."""
    (tmp_path / "command.py").write_text(script)
    ended = subprocess.run([sys.executable, "-m", "command"], cwd=tmp_path, env=environment(), timeout=120, check=False)
    assert ended.returncode == 130


@pytest.mark.usefixtures("listening")
def test_who_deals_with_it_is_left_alone() -> None:
    kept = []

    def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            hooks.check()  # no second one: what keeps the finished part looks too
            kept.append("what was finished")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert kept


def test_the_next_command_of_the_process_knows_nothing_of_it() -> None:
    with interrupts.note_interrupts():
        ctrl_c()
    hooks.check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_a_script_put_into_the_background_goes_on_ignoring_it() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interrupts.note_interrupts():
        signal.raise_signal(signal.SIGINT)
        hooks.check()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


class Swallowing(HashedWords):
    """An encoder in whose code Ctrl-C is lost."""

    def encode(self, *arguments: object) -> object:  # type: ignore[override]
        ctrl_c()
        return super().encode(*arguments)  # type: ignore[arg-type]


@pytest.mark.usefixtures("listening")
def test_an_import_ends_although_its_encoder_went_on(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": "Aspirin thins the blood.\n"})
    import_into(settings, corpus)
    write(corpus, {f"{number}.txt": f"Drug {number} is given by mouth.\n" for number in range(200)})
    with pytest.raises(KeyboardInterrupt):
        import_into(settings, corpus, encoder=Swallowing())
    assert generations.numbers(settings.data) == [1]


def test_a_file_that_fails_to_open_is_closed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when Ctrl-C comes within ``fdopen``, which closes what it was given: closing again raised another error."""

    def fails(handle: int, _mode: str) -> None:
        os.close(handle)
        raise KeyboardInterrupt

    (tmp_path / "a.txt").write_text("text")
    monkeypatch.setattr(os, "fdopen", fails)
    with pytest.raises(KeyboardInterrupt):
        files.open_regular(tmp_path / "a.txt")
