"""Nothing that a terminal obeys comes from names and titles of files, in whatever a command prints or draws."""

from __future__ import annotations

import os
import pty
import random
import re
import subprocess
from pathlib import Path

import pytest

from localmed.domain import message
from localmed.nightly.nights import is_timed, nights
from tests.cli.conftest import COMMAND, Localmed, Ran, environment
from tests.presentation.test_neutral import obeyed
from tests.words import said

FILES = 1_000  # each with a hostile name and a hostile title
SEED = 14
TARGETS = (
    "\x1b]0;owned\x07", "\x1b]52;c;c2VjcmV0\x1b\\", "\x9b38;5;199m", "\x1b[38;5;199m", "\x1bc", "\x9d0;x\x9c",
    "\x90q\x9c", "\u202e", "\u2066", "\u200f", "\u061c", "\x07", "\x08", "\r", "\t", "\x0b", "\x85", "\u2028",
    "\x7f", "\x1b", "\x9f", "\x00",
)  # fmt: skip
PLAIN = ("heparin", "dose", "5 mg", "肝素", "剂量", "é", "[red]", "[/b]", "{x}", "%s", "-", "=cmd|", "👩\u200d⚕️")
# What rich and click draw with on a terminal themselves: colours, and the lines of a progress bar.
OWN = re.compile(r"\x1b\[(?:[0-9]{1,2}(?:;[0-9]{1,2})?m|38;5;(?!199)[0-9]+m|38;2;[0-9;]+m|2K|1A|[?]25[lh])|\r")


def hostile(rng: random.Random, without: str = "") -> str:
    parts = [rng.choice(TARGETS if rng.random() < 0.5 else PLAIN) for _ in range(rng.randint(2, 8))]
    return "".join(character for character in "".join(parts) if character not in without)


def write(folder: Path, count: int) -> Path:
    """Files called and titled so; some are refused, some are not UTF-8 by name."""
    rng = random.Random(SEED)
    folder.mkdir()
    for number in range(count):
        name = hostile(rng, "/\0") + str(number) + (".xyz" if number % 11 == 0 else ".md")
        title = hostile(rng, "\n")
        (folder / name).write_text(f"# {title}\n\nHeparin {number} is given under the skin: {hostile(rng)}\n", "utf-8")
    (folder / os.fsdecode(b"\xff\x9b2J.txt")).write_text("Heparin\n\nHeparin is given under the skin.\n")
    return folder


def on_a_terminal(data: Path, *arguments: str) -> str:
    """What the command sends to a terminal of 80 columns."""
    terminal, of_command = pty.openpty()
    command = [*COMMAND, "--data", str(data), *arguments]
    with subprocess.Popen(
        command, stdin=of_command, stdout=of_command, stderr=of_command, env=environment() | {"TERM": "xterm-256color"}
    ) as process:
        os.close(of_command)
        pieces = []
        while piece := _read(terminal):
            pieces.append(piece)
        process.wait()
    os.close(terminal)
    return b"".join(pieces).decode("utf-8", "replace")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # the other end is closed
        return b""


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Localmed, Path, str]:
    """A library of such files, and what importing them drew on a terminal."""
    root = tmp_path_factory.mktemp("hostile")
    localmed, folder = Localmed(root / "data"), write(root / "files", FILES)
    localmed.ok("collections", "create", "ward", "--title", "\x1b]0;owned\x07\u202eward", "--licence", "\x9b38;5;199m")
    return localmed, folder, on_a_terminal(localmed.data, "import", str(folder), "-c", "ward")


def commands(localmed: Localmed, folder: Path) -> list[tuple[str, ...]]:
    """Every command that prints names, titles or passages, and errors with names in them."""
    sections = localmed.ok("search", "heparin", "--json", "-n", "100").json["sections"]
    documents = localmed.ok("documents", "list", "--json").json
    named = [str(path) for path in sorted(folder.iterdir())[:40]]
    reading: list[tuple[str, ...]] = [("show", found["passage"]) for found in sections[:40]]
    reading += [("documents", "show", document["id"]) for document in documents[:40]]
    errors: list[tuple[str, ...]] = [(*words, name) for name in named[:6] for words in
              (("verify",), ("replay",), ("explain",), ("show", "1", "--answer"), ("documents", "govern"))]  # fmt: skip
    errors += [("import", f"{name}.gone", "-c", "ward") for name in named[:6]]
    errors += [(hostile(random.Random(number), "\0"),) for number in range(20)]
    errors += [("ask", "x", "-c", hostile(random.Random(number), "\0")) for number in range(20)]
    errors += [("--debug", "import", f"{named[0]}.gone", "-c", "ward"), ("show", TARGETS[0]), ("concept", TARGETS[1])]
    return [
        ("documents", "list"), ("documents", "list", "--json"), ("documents", "quarantine"), ("documents", "due"),
        ("documents", "quarantine", "--json"), ("collections", "list"), ("collections", "list", "--json"),
        ("generations", "list"), ("generations", "verify"), ("doctor",), ("doctor", "--full"),
        ("ask", "How is heparin given?"), ("ask", "How is heparin given?", "--json", "--trace"), ("ask", TARGETS[0]),
        ("search", "heparin", "-n", "200"), ("search", "肝素"), ("plan", "How is heparin given?"),
        ("ebm", "Is heparin safe?", "--patient", named[1]), ("explain", named[1]), ("verify", named[1]),
        ("departments", "heparin \x1b]0;x\x07"), ("import", "--dry-run", str(folder), "-c", "ward"),
        ("import", "--dry-run", str(folder), "-c", "ward", "--json"), ("collections", "update", "ward", "--retry"),
        ("repair",), *reading, *errors,
    ]  # fmt: skip


@pytest.mark.slow
def test_names_and_titles_are_not_obeyed(
    attacked: tuple[Localmed, Path, str], capfd: pytest.CaptureFixture[str]
) -> None:
    localmed, folder, drawn = attacked
    assert "heparin" in drawn
    assert obeyed(OWN.sub("", drawn).replace("\r\n", "\n")) == []
    for arguments in commands(localmed, folder):
        ran = localmed(*arguments)
        for stream in (ran.out, ran.err):
            assert obeyed(stream) == [], (arguments, obeyed(stream), stream[:2000])
    shown = on_a_terminal(localmed.data, "documents", "list")
    assert obeyed(OWN.sub("", shown)) == []
    assert obeyed("".join(capfd.readouterr())) == []  # what went round the commands' streams


@pytest.mark.slow
def test_a_refresh_that_is_typed_is_no_sign_of_a_timer(tmp_path: Path) -> None:
    localmed, folder = Localmed(tmp_path / "data"), tmp_path / "files"
    folder.mkdir()
    (folder / "fever.txt").write_text("Fever\n\nParacetamol is given for fever.\n")
    localmed.ok("collections", "create", "ward")
    localmed.ok("import", str(folder), "-c", "ward")
    on_a_terminal(localmed.data, "refresh")
    assert len(nights(localmed.data)) == 1
    assert not is_timed(localmed.data)
    localmed.ok("refresh")
    assert is_timed(localmed.data)


def test_work_without_a_terminal_tells_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from localmed.cli import common

    monkeypatch.setattr(common, "FIRST_LINE", 0.0)
    with common.show_progress(True) as hooks:
        hooks.started(message("refresh.stage_backup"))
        for done in range(1, 6):
            hooks.progress(done, 5, "patient.txt")
    with common.show_progress(False) as hooks:
        hooks.progress(5, 5, "patient.txt")
    step = said("refresh.stage_backup")
    assert capsys.readouterr().err == said("cli.so_far", step=step, share=20) + "\n"


@pytest.mark.parametrize("span", ["abc", "5-3", "5-99999"])
@pytest.mark.slow
def test_a_span_that_is_none_of_the_passage_is_refused(imported: tuple[Localmed, Ran], span: str) -> None:
    localmed, _ = imported
    (passage, *_) = localmed.ok("search", "paracetamol", "--json").json["sections"]
    localmed("show", passage["passage"], "--span", span).failed(2)
    shown = localmed.ok("show", passage["passage"], "--span", "0-5").out
    assert shown.rstrip().endswith(passage["text"][:5])
