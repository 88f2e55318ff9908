"""``localmed eval stance`` from end to end: table, JSON, files, what is refused, and that no pair is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from localmed.lab.stance import THREE
from tests.cli.conftest import Localmed

pytestmark = pytest.mark.extra("eval")

SECRET = "Zyxwvut Patientname"
PAIRS = (
    f"Zinc shortened the common cold of {SECRET}.\tZinc shortens the common cold.\tentailment\n"
    "Zinc did not shorten the common cold.\tZinc shortens the common cold.\tcontradiction\n"
    "Bread prices rose in spring.\tZinc shortens the common cold.\tneutral\n"
)


@pytest.fixture
def pairs(tmp_path: Path) -> str:
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    return str(tmp_path / "pairs.tsv")


def test_json_and_files(localmed: Localmed, pairs: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = localmed("eval", "stance", "--pairs", pairs, "--out", str(out), "--json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert report == json.loads((out / "report.json").read_text())
    names = [judge["judge"] for judge in report["judges"]]
    assert names == ["majority class", "word for word"]
    assert [judge["unjudged"] for judge in report["judges"]] == [0, 3]
    assert {path.name for path in out.iterdir()} == {"report.json", "confusion.png", "confusion.svg"}
    assert SECRET not in done.out + (out / "confusion.svg").read_text()


def test_the_table(localmed: Localmed, pairs: str) -> None:
    done = localmed("eval", "stance", "--pairs", pairs)
    assert done.code == 0, done.err
    assert "majority class" in done.out
    assert all(label in done.out for label in THREE)
    assert "3 pairs of 1 hypotheses" in done.out


def test_what_is_refused(localmed: Localmed, pairs: str, tmp_path: Path) -> None:
    (tmp_path / "bad.tsv").write_text(f"{SECRET}\n")
    done = localmed("eval", "stance", "--pairs", str(tmp_path / "bad.tsv"))
    assert done.code == 3
    assert SECRET not in done.err + done.out
    (tmp_path / "file").write_text("")
    assert localmed("eval", "stance", "--pairs", pairs, "--out", str(tmp_path / "file" / "sub")).code == 3
