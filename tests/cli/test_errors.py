"""What goes wrong: one line on stderr that says what to do, the exit code of its kind, nobody's question in it."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pymupdf
import pytest

from localmed.cli import failures, main
from localmed.library import generations
from localmed.text import language
from tests.cli.conftest import COMMAND, Localmed, environment
from tests.words import phrase

QUESTION_OF_SOMEBODY = "Zyxwvut Patientname MRN-00417"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("ask", "x", "-c", "nowhere"), 2),
        (("documents", "show", "ffffffffffff"), 2),
        (("documents", "withdraw", "ffffffffffff"), 2),
        (("show", "ffffffffffff"), 2),
        (("generations", "verify", "77"), 2),
        (("search", "x", "--from", "2024-13"), 2),
        (("search", "x", "-n", "0"), 2),
        (("search", "x", "--language", "fr"), 2),
        (("--data", __file__, "documents"), 2),
    ],
)
def test_one_line_and_the_code_of_its_kind(localmed: Localmed, arguments: tuple[str, ...], code: int) -> None:
    localmed(*arguments).failed(code)


@pytest.mark.parametrize(
    ("arguments", "called"),
    [(("documents", "set", "--title"), "localmed documents set --help"), (("--as-group",), "localmed --help")],
)
def test_the_help_that_is_named_is_that_commands(localmed: Localmed, arguments: tuple[str, ...], called: str) -> None:
    assert localmed(*arguments).failed(2).endswith(f"See: {called}\n")


def test_a_mistyped_command_is_told_the_one_it_is_spelt_like(localmed: Localmed) -> None:
    assert "Did you mean ask?" in localmed("askk").failed(2)
    assert "Did you mean mcq?" in localmed("eval", "mqc").failed(2)


@pytest.mark.parametrize("arguments", [("ask", "x"), ("documents",), ("documents", "remove", "abcdef", "--yes")])
def test_no_library(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    data = tmp_path / "data"
    assert phrase("library.none.command") in Localmed(data)(*arguments).failed(5)
    assert not (data / "generations").exists()


def test_another_writer(copied: Localmed, folder: Path) -> None:
    script = (
        "import sys, pathlib\n"
        "from localmed.library.generations import lock_writer\n"
        "lock = lock_writer(pathlib.Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(copied.data)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert str(holder.pid) in copied("import", str(folder), "-c", "ward").failed(4)
        copied("collections", "create", "new").failed(4)
        copied("generations", "prune", "--yes").failed(4)
        assert copied.titles("paracetamol")  # reading goes on
        holder.communicate(b"")
    copied.ok("import", str(folder), "-c", "ward")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"a = 1\nb c\n", "line 2, column 3"), (b"a = 1\nb = '\xff'\n", "line 2 is not UTF-8"),
        (b"a = [1,", phrase("settings.end")), (b"[search]\nrrf = 3", "search.rrf"),
        (b"[search]\ntitle_boost = nan", "localmed.toml"), (b'[reader]\nlanguage = "fr"', "reader.language"),
        (b"[read]\nfile_seconds = 1" + b"0" * 400, "localmed.toml"),
    ],
)  # fmt: skip
def test_bad_settings(copied: Localmed, text: bytes, place: str) -> None:
    (copied.data / "localmed.toml").write_bytes(text)
    assert place in copied("documents").failed(2)


def test_settings_from_the_environment(copied: Localmed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site.toml").write_bytes(b"\xff")
    for name in ("missing.toml", "", "site.toml"):
        monkeypatch.setenv("LOCALMED_CONFIG", str(tmp_path / name))
        assert str(tmp_path / name) in copied("documents").failed(2).replace("\n", "")


def test_a_damaged_library(copied: Localmed) -> None:
    (copied.data / "generations" / "0001" / "library.sqlite").write_bytes(b"gone")
    assert "localmed repair" in copied("search", "x").failed(5)


def test_the_originals_are_gone(copied: Localmed, tmp_path: Path) -> None:
    (found, *_) = copied.ok("search", "vancomycin loading dose", "--json").json["sections"]
    for original in (copied.data / "files").iterdir():
        original.unlink()
    copied("show", found["passage"], "--image", str(tmp_path / "page.png")).failed(5)
    assert not (tmp_path / "page.png").exists()
    copied.ok("show", found["passage"])


def test_an_original_that_was_replaced_is_not_drawn(copied: Localmed, tmp_path: Path) -> None:
    (found, *_) = copied.ok("search", "vancomycin loading dose", "--json").json["sections"]
    (original,) = (path for path in (copied.data / "files").iterdir() if path.read_bytes().startswith(b"%PDF-1.7\n%"))
    with pymupdf.open(original) as pdf:
        pdf[0].insert_text((72, 200), "The loading dose is 50 mg/kg.")
        changed = pdf.tobytes()
    original.write_bytes(changed)
    refused = copied("show", found["passage"], "--image", str(tmp_path / "page.png")).failed(5)
    assert original.name in refused
    assert "Import the document again" in refused
    assert not (tmp_path / "page.png").exists()
    for command in (("generations", "verify"), ("doctor", "--full")):
        ran = copied(*command)
        assert ran.code == 5, command
        assert original.name in ran.out.replace("\n", "") + ran.err, command


def test_traceback_only_with_debug(tmp_path: Path) -> None:
    fresh = Localmed(tmp_path)
    ran = fresh("--debug", "documents")
    assert ran.code == 5
    assert ran.err.startswith("Traceback")
    assert ran.err.splitlines()[-1].startswith("localmed: there is no library")


def test_a_database_that_cannot_be_opened(copied: Localmed) -> None:
    (copied.data / "site.sqlite").unlink(missing_ok=True)
    (copied.data / "site.sqlite").mkdir()
    assert phrase("library.unwritable") in copied("documents", "quarantine").failed(5)


def test_an_unexpected_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="1"):
        failures.end(ValueError("what a document says"), debug=False)
    shown = capsys.readouterr().err
    assert "--debug" in shown
    assert "document" not in shown


def test_a_clean_up_that_fails_after_ctrl_c_is_no_error_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    unexpected = "localmed: unexpected RuntimeError"
    for first, code, told in (
        (KeyboardInterrupt(), "130", "localmed: interrupted"),
        (KeyError("text"), "1", unexpected),
    ):
        failed = RuntimeError("cannot join thread before it is started")
        failed.__context__ = first
        with pytest.raises(SystemExit, match=code):
            failures.end(failed, debug=False)
        assert capsys.readouterr().err.startswith(told)


def test_a_file_in_the_place_of_a_folder_is_damage(copied: Localmed, tmp_path: Path) -> None:
    (tmp_path / "ward.toml").write_text('name = "ward"')
    (tmp_path / "a.txt").write_text("Rest and drink.")
    shutil.rmtree(copied.data / "corpora", ignore_errors=True)
    (copied.data / "corpora").write_text("a file where a folder belongs")
    arguments = ("import", str(tmp_path / "a.txt"), "-c", "ward", "--manifest", str(tmp_path / "ward.toml"))
    assert str(copied.data / "corpora") in copied(*arguments).failed(5)


def test_nothing_given_shows_the_help(localmed: Localmed, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main.run([])
    assert "Commands:" in capsys.readouterr().out
    localmed().failed(2)
    assert localmed.ok("--version").out.startswith("localmed, version ")


# --- questions of any kind -----------------------------------------------------------------------------------

STRANGE = {
    "empty": "",
    "blank": " \n\t ",
    "long": "paracetamol dose " * 1200,
    "long Chinese": "普通病房的探视时间" * 2300,
    "operators": 'paracetamol AND OR NOT "unclosed ( ) : ^ ~ * [ TO } \\ / +dose -x title:dose dose~2 dose^9',
    "NUL": "paracetamol\x00dose",
    "lone surrogate": "paracetamol \udcff dose \ud800",
    "emoji": "💊 paracetamol dose 👩‍⚕️",
    "right to left": "\u202eparacetamol dose\u202c",
    "markup": "[bold]paracetamol[/red] <b>dose</b>",
}


@pytest.mark.parametrize("question", STRANGE.values(), ids=STRANGE.keys())
@pytest.mark.slow
def test_any_text_with_a_word_is_a_question(localmed: Localmed, question: str) -> None:
    if not language.words(question):
        localmed("ask", "--", question).failed(2)
        return
    result = localmed.ok("search", "--json", "--", question).json
    answer = localmed.ok("ask", "--json", "--", question).json
    assert answer["status"] in ("sections", "abstained")
    if "paracetamol" in question:
        assert result["sections"][0]["title"] == "Paracetamol"
    assert localmed.ok("ask", "--", question).out


@pytest.mark.slow
def test_bytes_that_are_no_text(localmed: Localmed) -> None:
    done = localmed.process("search", "--json", "--", b"paracetamol \xff\xfe dose")
    assert done.returncode == 0, done.stderr
    assert b'"title": "Paracetamol"' in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        (QUESTION_OF_SOMEBODY,),
        ("--" + QUESTION_OF_SOMEBODY,),
        ("ask", QUESTION_OF_SOMEBODY, "--colection", "ward"),
        ("ask", QUESTION_OF_SOMEBODY, "-c", "nowhere"),
        ("search", QUESTION_OF_SOMEBODY, "--from", "x"),
        ("documents", QUESTION_OF_SOMEBODY),
        ("documents", "list", QUESTION_OF_SOMEBODY),
    ],
)
def test_no_error_repeats_a_question(localmed: Localmed, arguments: tuple[str, ...]) -> None:
    error = localmed(*arguments).failed(2)
    for word in QUESTION_OF_SOMEBODY.split():
        assert word not in error


# --- pipes and interruptions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", ["documents list --json", "search dose --json"])
@pytest.mark.slow
def test_a_reader_that_leaves_early(localmed: Localmed, arguments: str) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [*COMMAND, "--data", str(localmed.data), *arguments.split()]
    try:
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=60, check=False, env=environment())
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_terminal_without_chinese(localmed: Localmed) -> None:
    command = [*COMMAND, "--data", str(localmed.data), "documents"]
    western = environment() | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command, capture_output=True, timeout=60, check=False, env=western)
    assert done.returncode == 0, done.stderr
    assert b"ward" in done.stdout
    assert b"????" in done.stdout


@pytest.mark.slow
def test_an_interrupted_import_changes_nothing(copied: Localmed, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(2000):
        (folder / f"{number}.txt").write_text(f"Drug {number} is given by mouth, {number} mg each morning.\n")
    command = [*COMMAND, "--data", str(copied.data), "import", str(folder), "-c", "ward"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), start_new_session=True
    ) as running:
        originals = copied.data / "files"
        before = len(list(originals.iterdir()))
        deadline = time.monotonic() + 60
        while len(list(originals.iterdir())) < before + 20 and time.monotonic() < deadline:
            time.sleep(0.02)
        os.killpg(running.pid, signal.SIGINT)  # as Ctrl-C does: the children too
        out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert err.decode().count("\n") == 1, err
    assert err.startswith(b"localmed: interrupted")
    assert not out
    assert generations.numbers(copied.data) == [1]
    assert not (copied.data / "generations" / "building").exists()
    with (copied.data / "writer.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert "Paracetamol" in copied.titles("paracetamol")
    for file in list(folder.iterdir())[40:]:
        file.unlink()
    assert copied.ok("import", str(folder), "-c", "ward", "--json").json["counts"]["read"] == 40


def test_what_is_missing_or_no_file_is_said(copied: Localmed, tmp_path: Path) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / "a.txt").write_text("Heparin\n\nHeparin is given under the skin.\n")
    (folder / "gone.txt").symlink_to(tmp_path / "nowhere.txt")
    os.mkfifo(folder / "pipe.txt")
    ran = copied.ok("import", "--dry-run", "-c", "bad", str(folder))
    assert "The collection bad" in ran.err
    assert phrase("preview.unknown") not in copied.ok("import", "--dry-run", "-c", "ward", str(folder)).err
    assert "a link to a file that does not exist" in ran.out
    assert "is not a regular file" in ran.out
    passage = copied.ok("search", "探视", "--json").json["sections"][0]["passage"]
    image = tmp_path / "page.png"
    assert "no pages" in copied("show", passage, "--page", "9", "--image", str(image)).failed(2)
    assert not image.exists()


def test_a_question_without_words_is_a_usage_error(copied: Localmed) -> None:
    for command in ("ask", "search", "plan", "ebm", "departments"):
        assert phrase("workflow.no_words") in copied(command, "").failed(2)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("ask", "q", "--nosuch"), "没有选项 --nosuch"),
        (("serve", "--prot", "80"), "没有选项 --prot。是否想用 --port"),
        (("ask", "--collection"), "--collection 缺少值"),
        (("askk",), "没有命令 askk。是否想用 ask？"),
        (("import", "x"), "缺少"),
        (("documents", "due", "--within", "-4"), "0 至 36500"),
    ],
)
def test_usage_is_said_in_chinese(
    copied: Localmed, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], expected: str
) -> None:
    monkeypatch.setenv("LOCALMED_LANGUAGE", "zh")
    line = copied(*arguments).failed(2)
    assert expected in line
    assert "请参阅：localmed" in line
