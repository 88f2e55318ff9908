"""``localmed eval links`` from end to end: asked and given answers, files, going on, and that no text is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Localmed

pytestmark = pytest.mark.extra("eval")

SECRET = "Zyxwvut Patientname"
QUESTIONS = (
    "dose\tWhat is the maximum dose of paracetamol in adults?\n"
    "lactate\tWhen are antibiotics given in septic shock?\twithin one hour of recognition\n"
    f"none\tWhich planet is {SECRET} on?\n"
)
ANSWER = {
    "id": "dose",
    "answer": f"Adults take at most 4 g of paracetamol in 24 hours. [1] {SECRET} agrees [2]. Nothing more.",
    "sources": ["The maximum dose of paracetamol: adults take at most 4 g of paracetamol in 24 hours."],
}


@pytest.fixture
def questions(tmp_path: Path) -> str:
    (tmp_path / "q.tsv").write_text(QUESTIONS)
    return str(tmp_path / "q.tsv")


def written(out: Path) -> str:
    return "".join(path.read_text("utf-8") for path in out.iterdir() if path.suffix != ".png")


def test_questions_asked_to_the_library(localmed: Localmed, questions: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = localmed.ok("eval", "links", "--questions", questions, "--out", str(out))
    assert "citation set precision" in done.out
    assert "not measured" in done.out
    report = json.loads((out / "report.json").read_text())
    rows = {row["id"]: row for row in report["rows"]}
    assert {row["status"] for row in rows.values()} == {"sections"}
    assert set(rows["dose"]["metrics"].values()) == {None}, "without a model nothing is claimed"
    assert {path.name for path in out.iterdir()} == {
        "report.json", "table.csv", "plot.png", "plot.svg", "rows.jsonl"
    }  # fmt: skip
    assert SECRET not in done.out + written(out)
    assert "paracetamol" not in written(out)
    other = tmp_path / "other.tsv"
    other.write_text(QUESTIONS + "more\tMore?\n")
    failed = localmed("eval", "links", "--questions", str(other), "--out", str(out), "--resume")
    assert "--resume" in failed.failed(2)


def test_given_answers(localmed: Localmed, questions: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(ANSWER))
    out = tmp_path / "out"
    call = ("eval", "links", "--questions", questions, "--answers", str(tmp_path / "a.jsonl"), "--out", str(out))
    report = localmed.ok(*call, "--json").json
    assert report["statuses"] == {"answered": 1, "no answer given": 2}
    (row, *_) = report["rows"]
    counts = row["counts"]
    assert (counts["statements"], counts["uncited"], counts["sets"], counts["unresolved"]) == (3, 1, 1, 1)
    assert counts["unjudged_sets"] == 1
    assert row["metrics"]["citation_set_precision"] == 0.0
    assert SECRET not in json.dumps(report) + written(out)


def test_what_is_refused(localmed: Localmed, questions: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text(json.dumps({"id": SECRET, "answer": SECRET}))
    done = localmed("eval", "links", "--questions", questions, "--answers", str(bad), "--out", str(tmp_path / "o"))
    assert SECRET not in done.failed(3)
    (tmp_path / "file").write_text("")
    assert localmed("eval", "links", "--questions", questions, "--out", str(tmp_path / "file" / "x")).code == 3
