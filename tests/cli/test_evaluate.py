"""``localmed eval`` from end to end: figures, files, resuming, what is refused, and that no text is kept."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Set
from pathlib import Path
from typing import Any

import pytest

from localmed.lab.measures import MEASURES
from localmed.lab.stance import THREE
from tests.cli.conftest import Localmed
from tests.models.tiny_gguf import write_gguf

pytestmark = pytest.mark.extra("eval")

SECRET = "Zyxwvut Patientname"
FILES = {"report.json", "table.csv", "plot.png", "plot.svg", "rows.jsonl"}


def written(out: Path) -> str:
    """All text that an evaluation wrote."""
    return "".join(path.read_text("utf-8") for path in out.iterdir() if path.suffix != ".png")


def evaluate(localmed: Localmed, out: Path, *arguments: str, files: Set[str] = FILES) -> Any:
    """The report of an evaluation as JSON; its folder has the same, these ``files`` and no text of a question."""
    ran = localmed.ok("eval", *arguments, "--out", str(out), "--json")
    assert json.loads((out / "report.json").read_text()) == ran.json
    assert {path.name for path in out.iterdir()} == files
    assert SECRET not in ran.out + ran.err + written(out)
    return ran.json


def stored(tmp_path: Path, text: str) -> str:
    """A file of questions or pairs."""
    (tmp_path / "set.tsv").write_text(text)
    return str(tmp_path / "set.tsv")


# --- retrieval --------------------------------------------------------------------------------------------------------

QUESTIONS = {
    "q1": f"antibiotics septic shock {SECRET}",
    "q2": "maximum dose of paracetamol",
    "q3": "loading dose of vancomycin",
    "q4": "blood pressure target",
}
QRELS = "q1 0 sepsis 2\nq1 0 vancomycin 0\nq2 0 faq 1\nq3 0 vancomycin 1\nq4 0 hypertension-2024 1\nq4 0 elsewhere 1\n"


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
    names = ["dense", "lexical", "both", "dense+rerank", "lexical+rerank", "both+rerank"]
    report = evaluate(localmed, out, *options[1:], files={*FILES, *(f"{name}.run" for name in names)})
    assert [row["variant"] for row in report["rows"]] == names
    for row in report["rows"]:
        assert set(row["measures"]) == set(MEASURES)
        assert row["measures"]["recall@5"]["value"] == 1.0
        assert 0 < row["measures"]["MRR@10"]["low"] <= row["measures"]["MRR@10"]["value"] <= 1
    assert report["reference"] == "both+rerank"
    assert report["reranker"] == "lengths 1"
    assert "evaluation.note.lost" in [note["code"] for note in report["notes"]]
    resumed = localmed.ok(*options, "--out", str(out), "--resume", "--json")
    assert resumed.json["rows"] == report["rows"]


def test_no_question_is_printed_or_kept(copied: Localmed, options: tuple[str, ...], tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = copied.ok(*options, "--out", str(out))
    written = [file for folder in (out, copied.data) for file in folder.rglob("*") if file.is_file()]
    for word in ("Zyxwvut", "antibiotics septic"):
        assert word not in ran.out + ran.err
        assert not [file for file in written if word.encode() in file.read_bytes()]
    with sqlite3.connect(copied.data / "site.sqlite") as audit:
        assert "retrieval, 4 questions" in "\n".join(audit.iterdump())


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
def test_bad_retrieval_options_are_refused(
    localmed: Localmed, options: tuple[str, ...], further: tuple[str, ...], code: int, problem: str
) -> None:
    assert problem in localmed(*options, *further).failed(code)
    Path(options[3]).write_text(f"{SECRET}\n")
    ran = localmed(*options)
    assert "question 1 has no text" in ran.failed(3)
    assert SECRET not in ran.err


# --- badges -----------------------------------------------------------------------------------------------------------

BADGE_QUESTIONS = (
    "q1\tWhat is the maximum dose of paracetamol in adults?\n"
    f"q2\tDoes {SECRET} like music?\n"
    "q3\tWithin how many hours are antibiotics given in septic shock?\n"
)


@pytest.fixture
def badge_questions(tmp_path: Path) -> str:
    return stored(tmp_path, BADGE_QUESTIONS)


def test_badges_as_json_and_resumed(localmed: Localmed, badge_questions: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("badges", "--questions", badge_questions, "-s", "ward")
    report = evaluate(localmed, out, *arguments)
    (summary,) = report["summaries"]
    assert summary["source"] == "ward"
    assert summary["green"] + summary["yellow"] + summary["red"] == report["questions"] == 3
    assert summary["unanswered"] >= 1, "nothing in the ward's documents is about music"
    lines = (out / "rows.jsonl").read_text().splitlines()
    row = {"question": "q1", "source": "ward", "badge": "yellow"}
    (out / "rows.jsonl").write_text(f"{lines[0]}\n{json.dumps(row)}\n")
    assert evaluate(localmed, out, *arguments, "--resume")["summaries"][0]["yellow"] >= 1, (
        "the finished question is not asked again"
    )
    other = tmp_path / "other.tsv"
    other.write_text("q9\tWhat is sepsis?\n")
    refused = localmed("eval", "badges", "--questions", str(other), "-s", "ward", "--out", str(out), "--resume")
    assert (refused.code, "other questions" in refused.err) == (2, True)


def test_bad_badge_options_are_refused(localmed: Localmed, badge_questions: str, tmp_path: Path) -> None:
    unknown = localmed("eval", "badges", "--questions", badge_questions, "-s", "nowhere", "--out", str(tmp_path / "o"))
    assert "ward" in unknown.failed(2)
    empty = tmp_path / "empty.tsv"
    empty.write_text("\n")
    assert localmed("eval", "badges", "--questions", str(empty), "--out", str(tmp_path / "o")).code in (2, 3)


# --- links ------------------------------------------------------------------------------------------------------------

LINK_QUESTIONS = (
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
def link_questions(tmp_path: Path) -> str:
    (tmp_path / "q.tsv").write_text(LINK_QUESTIONS)
    return str(tmp_path / "q.tsv")


def test_links_of_the_librarys_answers(localmed: Localmed, link_questions: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = localmed.ok("eval", "links", "--questions", link_questions, "--out", str(out))
    assert "citation set precision" in done.out
    assert "not measured" in done.out
    report = json.loads((out / "report.json").read_text())
    rows = {row["id"]: row for row in report["rows"]}
    assert {row["status"] for row in rows.values()} == {"sections"}
    assert set(rows["dose"]["metrics"].values()) == {None}, "without a model nothing is claimed"
    assert {path.name for path in out.iterdir()} == FILES
    assert SECRET not in done.out + written(out)
    assert "paracetamol" not in written(out)
    other = tmp_path / "other.tsv"
    other.write_text(LINK_QUESTIONS + "more\tMore?\n")
    failed = localmed("eval", "links", "--questions", str(other), "--out", str(out), "--resume")
    assert "--resume" in failed.failed(2)


def test_links_of_given_answers(localmed: Localmed, link_questions: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(ANSWER))
    out = tmp_path / "out"
    call = ("eval", "links", "--questions", link_questions, "--answers", str(tmp_path / "a.jsonl"), "--out", str(out))
    report = localmed.ok(*call, "--json").json
    assert report["statuses"] == {"answered": 1, "no answer given": 2}
    (row, *_) = report["rows"]
    counts = row["counts"]
    assert (counts["statements"], counts["uncited"], counts["sets"], counts["unresolved"]) == (3, 1, 1, 1)
    assert counts["unjudged_sets"] == 1
    assert row["metrics"]["citation_set_precision"] == 0.0
    assert SECRET not in json.dumps(report) + written(out)


def test_bad_link_files_are_refused(localmed: Localmed, link_questions: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text(json.dumps({"id": SECRET, "answer": SECRET}))
    done = localmed("eval", "links", "--questions", link_questions, "--answers", str(bad), "--out", str(tmp_path / "o"))
    assert SECRET not in done.failed(3)
    (tmp_path / "file").write_text("")
    assert localmed("eval", "links", "--questions", link_questions, "--out", str(tmp_path / "file" / "x")).code == 3


# --- mcq --------------------------------------------------------------------------------------------------------------

CHOICES = [
    {"id": "q1", "question": "What is the maximum dose of paracetamol in adults?",
     "options": {"A": "4 g in 24 hours", "B": "8 g", "C": "12 g"}, "answer_idx": "A"},
    {"id": "q2", "question": f"Does {SECRET} like music?", "options": {"A": "Yes", "B": "No"}, "answer_idx": "B"},
]  # fmt: skip
ARMS = "chat,retrieval,mairag,mairag-without-relevance,plan-original"


@pytest.fixture
def choices(tmp_path: Path) -> str:
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(question) + "\n" for question in CHOICES))
    return f"medqa:{tmp_path / 'own.jsonl'}"


@pytest.mark.extra("llama")
def test_every_arm_and_going_on(copied: Localmed, choices: str, tmp_path: Path) -> None:
    (copied.data / "localmed.toml").write_text("[chat]\nhang_seconds = 600.0\n")
    model = str(write_gguf(tmp_path / "tiny.gguf"))
    copied.ok("models", "add", model, "--role", "chat", "--as", "tiny", "--template", "chatml")
    copied.ok("models", "use", "chat", "tiny")
    out = tmp_path / "out"
    arguments = ("eval", "mcq", "--set", choices, "--arms", ARMS, "--out", str(out), "--json")
    report = copied.ok(*arguments).json
    assert {path.name for path in out.iterdir()} == FILES
    assert report["sets"] == {"own": 2}
    assert [score["arm"] for score in report["scores"]] == ARMS.split(",")
    by_arm = {score["arm"]: score for score in report["scores"]}
    assert by_arm["retrieval"]["passages"] > 0
    assert by_arm["chat"]["passages"] == 0
    assert by_arm["chat"]["calls"] == 1
    assert by_arm["retrieval"]["tokens_in"] > by_arm["chat"]["tokens_in"]
    assert not report["measured"], "random weights put hardly anything on the letters"
    rows = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()[1:]]
    assert all(sum(row["probabilities"]) == pytest.approx(1, abs=1e-4) for row in rows)
    assert SECRET not in written(out)
    assert "paracetamol" not in written(out)
    lines = (out / "rows.jsonl").read_text().splitlines(keepends=True)
    (out / "rows.jsonl").write_text("".join(lines[:4]))
    again = copied.ok(*arguments, "--resume", "--show-questions").json
    assert [score["accuracy"] for score in again["scores"]] == [score["accuracy"] for score in report["scores"]]
    assert len((out / "rows.jsonl").read_text().splitlines()) == 11
    assert SECRET in (out / "questions.jsonl").read_text(), "texts only where they were asked for"
    other = copied("eval", "mcq", "--set", choices, "--arms", "chat", "--out", str(out), "--resume", "--json")
    assert "other questions" in other.failed(2)


def test_without_a_chat_model_it_says_what_works(localmed: Localmed, choices: str, tmp_path: Path) -> None:
    ran = localmed("eval", "mcq", "--set", choices, "--out", str(tmp_path / "out"))
    assert "eval retrieval" in ran.failed(6)


def test_bad_mcq_options_are_refused(localmed: Localmed, choices: str, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "out"))
    file = choices.partition(":")[2]
    assert "medqa" in localmed("eval", "mcq", "--set", f"medqb:{file}", *out).failed(2)
    assert "medmcqa:dev.json" in localmed("eval", "mcq", "--set", file, *out).failed(2)
    assert "mairag" in localmed("eval", "mcq", "--set", choices, "--arms", "magic", *out).failed(2)
    assert "same name" in localmed("eval", "mcq", "--set", choices, "--set", choices, *out).failed(2)
    assert localmed("eval", "mcq", "--set", f"medqa:{tmp_path / 'none.jsonl'}", *out).code == 3


def test_a_second_call_with_the_same_out_is_refused(localmed: Localmed, choices: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    handle = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)  # as the first call holds it
        ran = localmed("eval", "mcq", "--set", choices, "--out", str(out))
        assert "another --out" in ran.failed(4)
    finally:
        os.close(handle)
    assert "eval retrieval" in localmed("eval", "mcq", "--set", choices, "--out", str(out)).failed(6)


# --- stance -----------------------------------------------------------------------------------------------------------

PAIRS = (
    f"Zinc shortened the common cold of {SECRET}.\tZinc shortens the common cold.\tentailment\n"
    "Zinc did not shorten the common cold.\tZinc shortens the common cold.\tcontradiction\n"
    "Bread prices rose in spring.\tZinc shortens the common cold.\tneutral\n"
)


@pytest.fixture
def pairs(tmp_path: Path) -> str:
    return stored(tmp_path, PAIRS)


def test_stances_as_json_files_and_table(localmed: Localmed, pairs: str, tmp_path: Path) -> None:
    files = {"report.json", "confusion.png", "confusion.svg"}
    report = evaluate(localmed, tmp_path / "out", "stance", "--pairs", pairs, files=files)
    names = [judge["judge"] for judge in report["judges"]]
    assert names == ["majority class", "word for word"]
    assert [judge["unjudged"] for judge in report["judges"]] == [0, 3]
    table = localmed.ok("eval", "stance", "--pairs", pairs).out
    assert all(words in table for words in (*THREE, "majority class", "3 pairs of 1 hypotheses"))


def test_bad_pairs_are_refused(localmed: Localmed, pairs: str, tmp_path: Path) -> None:
    (tmp_path / "bad.tsv").write_text(f"{SECRET}\n")
    assert SECRET not in localmed("eval", "stance", "--pairs", str(tmp_path / "bad.tsv")).failed(3)
    (tmp_path / "file").write_text("")
    assert localmed("eval", "stance", "--pairs", pairs, "--out", str(tmp_path / "file" / "sub")).code == 3
