"""``localmed import --dry-run`` as a librarian runs it."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from localmed.cli.main import main
from localmed.domain.errors import UsageError
from tests.cli.conftest import COMMAND, environment
from tests.fakes import jsonl, write
from tests.ingest.readers.pdf.fixtures import two_columns


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = write(tmp_path / "folder", {"a.txt": "Sepsis\n\nGive antibiotics.\n", "b.txt": "", "c.doc": "x"})
    two_columns(made / "columns.pdf")
    return made


def dry(tmp_path: Path, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["--data", str(tmp_path / "data"), "import", "-c", "ward", *arguments])
    return done.exit_code, done.output


@pytest.mark.slow
def test_it_says_what_would_be_done_and_needs_no_library(tmp_path: Path, folder: Path) -> None:
    code, output = dry(tmp_path, "--dry-run", str(folder))
    assert code == 0
    assert "nothing was stored" in output
    assert "new: 2, refused: 1, skipped: 1" in output
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
def test_json_and_the_report_page(tmp_path: Path, folder: Path) -> None:
    target = tmp_path / "页.html"
    code, output = dry(tmp_path, "--dry-run", "--json", "--report", str(target), "--language", "zh", str(folder))
    assert code == 0
    rows = {Path(row["path"]).name: row for row in json.loads(output)["files"]}
    assert rows["columns.pdf"]["documents"][0]["pages"] == 1
    assert rows["columns.pdf"]["documents"][0]["outcome"] == "new"
    assert rows["b.txt"]["reason"]
    text = target.read_text("utf-8")
    assert "导入预览" in text
    assert "data:image/jpeg;base64," in text


def test_where_everything_is_refused_or_nothing_is_there(tmp_path: Path) -> None:
    bad = write(tmp_path / "bad", {"b.txt": ""})
    assert dry(tmp_path, "--dry-run", str(bad))[0] == 3
    (tmp_path / "empty").mkdir()
    code, output = dry(tmp_path, "--dry-run", str(tmp_path / "empty"))
    assert code == 0
    assert "nothing to" in output


@pytest.mark.slow
def test_ended_by_a_signal_it_leaves_no_copy_of_a_document(tmp_path: Path) -> None:
    """As a service that is stopped and a machine that is shut down do."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    records = [{"id": str(number), "text": "Give antibiotics."} for number in range(150_000)]
    large = write(tmp_path / "large", {"a.jsonl": jsonl(*records)})
    command = [*COMMAND, "--data", str(tmp_path / "data"), "import", "-c", "ward", "--dry-run", str(large)]
    environ = {**environment(), "TMPDIR": str(temporary)}
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as running:
        end = time.monotonic() + 60
        while not list(temporary.glob("*/files/*")) and running.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        running.terminate()
        _, errors = running.communicate(timeout=60)
    assert (running.returncode, errors.count("\n")) == (130, 1)
    assert errors.startswith("localmed: interrupted")
    assert list(temporary.iterdir()) == []


def test_a_name_that_a_terminal_would_obey_is_printed_without(tmp_path: Path) -> None:
    odd = "a\x1b]0;owned\x07\x1b[31m\u202eb\u2066.txt"
    named = write(tmp_path / "odd", {odd: f"{odd}\n\nGive antibiotics.\n", f"c{odd}": ""})
    target = tmp_path / "page.html"
    code, output = dry(tmp_path, "--dry-run", "--report", str(target), str(named))
    assert code == 0
    assert "ab.txt" in output
    for shown in (output, target.read_text("utf-8")):
        assert not set(shown) & set("\x1b\x07\u202e\u2066")
    assert "owned" not in output


def test_a_report_that_cannot_be_written_is_refused_at_once(tmp_path: Path, folder: Path) -> None:
    assert dry(tmp_path, "--dry-run", "--report", str(tmp_path), str(folder))[0] == 2
    arguments = ["import", "-c", "ward", "--dry-run", "--report", str(tmp_path / "no" / "page.html"), str(folder)]
    with pytest.raises(UsageError) as refused:
        CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert refused.value.message.code == "cli.report_place"


def test_a_report_goes_with_a_dry_run(tmp_path: Path, folder: Path) -> None:
    asked = ["import", "-c", "ward", "--report", str(tmp_path / "page.html"), str(folder)]
    with pytest.raises(UsageError, match="--report needs --dry-run"):
        CliRunner().invoke(main, asked, catch_exceptions=False)
    assert not (tmp_path / "page.html").exists()
