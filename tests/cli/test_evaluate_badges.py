"""``localmed eval badges`` from end to end: tables, files, resuming, what is refused, and that no question is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Localmed

pytestmark = pytest.mark.extra("eval")

SECRET = "Zyxwvut Patientname"
QUESTIONS = (
    "q1\tWhat is the maximum dose of paracetamol in adults?\n"
    f"q2\tDoes {SECRET} like music?\n"
    "q3\tWithin how many hours are antibiotics given in septic shock?\n"
)


@pytest.fixture
def questions(tmp_path: Path) -> str:
    (tmp_path / "questions.tsv").write_text(QUESTIONS)
    return str(tmp_path / "questions.tsv")


def test_json_files_and_resuming(localmed: Localmed, questions: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("eval", "badges", "--questions", questions, "-s", "ward", "--out", str(out), "--json")
    done = localmed(*arguments)
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert report == json.loads((out / "report.json").read_text())
    (summary,) = report["summaries"]
    assert summary["source"] == "ward"
    assert summary["green"] + summary["yellow"] + summary["red"] == report["questions"] == 3
    assert summary["unanswered"] >= 1, "nothing in the ward's documents is about music"
    assert {path.name for path in out.iterdir()} == {"report.json", "table.csv", "plot.png", "plot.svg", "rows.jsonl"}
    kept = "".join(path.read_text() for path in out.iterdir() if path.suffix != ".png")
    assert SECRET not in done.out + done.err + kept
    lines = (out / "rows.jsonl").read_text().splitlines()
    row = {"question": "q1", "source": "ward", "badge": "yellow"}
    (out / "rows.jsonl").write_text(f"{lines[0]}\n{json.dumps(row)}\n")
    again = localmed(*arguments, "--resume")
    assert json.loads(again.out)["summaries"][0]["yellow"] >= 1, "the finished question is not asked again"
    other = tmp_path / "other.tsv"
    other.write_text("q9\tWhat is sepsis?\n")
    refused = localmed("eval", "badges", "--questions", str(other), "-s", "ward", "--out", str(out), "--resume")
    assert (refused.code, "other questions" in refused.err) == (2, True)


def test_what_is_refused(localmed: Localmed, questions: str, tmp_path: Path) -> None:
    unknown = localmed("eval", "badges", "--questions", questions, "-s", "nowhere", "--out", str(tmp_path / "o"))
    assert unknown.code == 2
    assert "ward" in unknown.err
    empty = tmp_path / "empty.tsv"
    empty.write_text("\n")
    assert localmed("eval", "badges", "--questions", str(empty), "--out", str(tmp_path / "o")).code in (2, 3)
