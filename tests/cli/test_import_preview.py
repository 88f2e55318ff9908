"""``localmed import --dry-run`` as a librarian runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from localmed.cli.main import main
from tests.fakes import write
from tests.ingest.pdf_fixtures import two_columns


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = write(tmp_path / "folder", {"a.txt": "Sepsis\n\nGive antibiotics.\n", "b.txt": "", "c.doc": "x"})
    two_columns(made / "columns.pdf")
    return made


def dry(tmp_path: Path, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["--data", str(tmp_path / "data"), "import", "-c", "ward", *arguments])
    return done.exit_code, done.output


def test_it_says_what_would_be_done_and_needs_no_library(tmp_path: Path, folder: Path) -> None:
    code, output = dry(tmp_path, "--dry-run", str(folder))
    assert code == 0
    assert "nothing was stored" in output
    assert "2 new, 1 refused, 1 skipped" in output
    assert not (tmp_path / "data").exists()


def test_json_and_the_report_page(tmp_path: Path, folder: Path) -> None:
    target = tmp_path / "页.html"
    code, output = dry(tmp_path, "--dry-run", "--json", "--report", str(target), "--language", "zh", str(folder))
    assert code == 0
    told = {Path(each["path"]).name: each for each in json.loads(output)["files"]}
    assert told["columns.pdf"]["documents"][0]["pages"] == 1
    assert told["columns.pdf"]["documents"][0]["outcome"] == "new"
    assert told["b.txt"]["reason"]
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


def test_a_report_goes_with_a_dry_run(tmp_path: Path, folder: Path) -> None:
    code, output = dry(tmp_path, "--report", str(tmp_path / "page.html"), str(folder))
    assert code == 2
    assert "--dry-run" in output
    assert not (tmp_path / "page.html").exists()
