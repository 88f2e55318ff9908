"""``localmed eval retrieval`` from end to end: figures, files, what is refused, and that no question is kept."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from localmed.lab.measures import MEASURES
from tests.cli.conftest import Localmed

pytestmark = pytest.mark.extra("eval")

SECRET = "Zyxwvut Patientname"
QUESTIONS = {
    "q1": f"antibiotics septic shock {SECRET}",
    "q2": "maximum dose of paracetamol",
    "q3": "loading dose of vancomycin",
    "q4": "blood pressure target",
}
QRELS = "q1 0 sepsis 2\nq1 0 vancomycin 0\nq2 0 faq 1\nq3 0 vancomycin 1\nq4 0 hypertension-2024 1\nq4 0 elsewhere 1\n"
FILES = {"report.json", "table.csv", "plot.png", "plot.svg", "rows.jsonl"}


@pytest.fixture
def options(tmp_path: Path) -> tuple[str, ...]:
    """The options that name the set."""
    (tmp_path / "q.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in QUESTIONS.items()))
    (tmp_path / "r.txt").write_text(QRELS)
    return ("eval", "retrieval", "--queries", str(tmp_path / "q.tsv"), "--qrels", str(tmp_path / "r.txt"))


@pytest.mark.slow
@pytest.mark.usefixtures("reranked")
def test_the_whole_ablation_as_json_and_files(localmed: Localmed, options: tuple[str, ...], tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = localmed.ok(*options, "--out", str(out), "--json")
    names = [row["variant"] for row in ran.json["rows"]]
    assert names == ["dense", "lexical", "both", "dense+rerank", "lexical+rerank", "both+rerank"]
    for row in ran.json["rows"]:
        assert set(row["measures"]) == set(MEASURES)
        assert row["measures"]["recall@5"]["value"] == 1.0
        assert 0 < row["measures"]["MRR@10"]["low"] <= row["measures"]["MRR@10"]["value"] <= 1
    assert ran.json["reference"] == "both+rerank"
    assert ran.json["reranker"] == "lengths 1"
    assert "evaluation.note.lost" in [note["code"] for note in ran.json["notes"]]
    assert {file.name for file in out.iterdir()} == {*FILES, *(f"{name}.run" for name in names)}
    assert json.loads((out / "report.json").read_text()) == ran.json
    assert (out / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "plot.png").stat().st_size > 10_000


def test_no_question_is_printed_or_kept(copied: Localmed, options: tuple[str, ...], tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = copied.ok(*options, "--out", str(out))
    written = [file for folder in (out, copied.data) for file in folder.rglob("*") if file.is_file()]
    for word in ("Zyxwvut", "antibiotics septic"):
        assert word not in ran.out + ran.err
        assert not [file for file in written if word.encode() in file.read_bytes()]
    with sqlite3.connect(copied.data / "site.sqlite") as audit:
        assert "retrieval, 4 questions" in "\n".join(audit.iterdump())


@pytest.mark.slow
def test_the_same_call_gives_the_same_figures(localmed: Localmed, options: tuple[str, ...], tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    first = localmed.ok(*options, "--variants", "lexical,both", "--out", out, "--json")
    assert localmed.ok(*options, "--variants", "lexical,both", "--json").json["rows"] == first.json["rows"]
    resumed = localmed.ok(*options, "--variants", "lexical,both", "--out", out, "--resume", "--json")
    assert resumed.json["rows"] == first.json["rows"]


def test_without_a_reranker_half_of_the_ablation_is_left(localmed: Localmed, options: tuple[str, ...]) -> None:
    rows = localmed.ok(*options, "--reranker", "none", "--json").json["rows"]
    assert [row["variant"] for row in rows] == ["dense", "lexical", "both"]
    error = localmed(*options, "--reranker", "none", "--variants", "both+rerank").failed(2)
    assert "--reranker" in error


@pytest.mark.parametrize(
    ("further", "code", "problem"),
    [
        (("--queries", "none.tsv"), 3, "cannot be read"),
        (("--variants", "fused"), 2, "no variant 'fused'"),
        (("--resume",), 2, "--out"),
    ],
)
def test_what_is_refused(
    localmed: Localmed, options: tuple[str, ...], further: tuple[str, ...], code: int, problem: str
) -> None:
    assert problem in localmed(*options, *further).failed(code)


@pytest.mark.parametrize(
    ("queries", "qrels", "problem"),
    [
        (f"{SECRET}\n", "q1 0 sepsis 1\n", "question 1 has no text"),
        ("", "q1 0 sepsis 1\n", "contains 0 questions"),
    ],
)
def test_bad_files(localmed: Localmed, tmp_path: Path, queries: str, qrels: str, problem: str) -> None:
    (tmp_path / "q.tsv").write_text(queries)
    (tmp_path / "r.txt").write_text(qrels)
    ran = localmed("eval", "retrieval", "--queries", str(tmp_path / "q.tsv"), "--qrels", str(tmp_path / "r.txt"))
    assert problem in ran.failed(3)
    assert SECRET not in ran.err
