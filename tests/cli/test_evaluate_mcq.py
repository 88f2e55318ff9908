"""``localmed eval mcq`` from end to end on a tiny random model: all arms, files, going on, and that no text is kept."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Localmed
from tests.models.tiny_gguf import write_gguf

SECRET = "Zyxwvut Patientname"
QUESTIONS = [
    {"id": "q1", "question": "What is the maximum dose of paracetamol in adults?",
     "options": {"A": "4 g in 24 hours", "B": "8 g", "C": "12 g"}, "answer_idx": "A"},
    {"id": "q2", "question": f"Does {SECRET} like music?", "options": {"A": "Yes", "B": "No"}, "answer_idx": "B"},
]  # fmt: skip
ARMS = "chat,retrieval,mairag,mairag-without-relevance,plan-original"


@pytest.fixture
def questions(tmp_path: Path) -> str:
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(question) + "\n" for question in QUESTIONS))
    return f"medqa:{tmp_path / 'own.jsonl'}"


@pytest.mark.extra("llama", "eval")
def test_every_arm_and_going_on(copied: Localmed, questions: str, tmp_path: Path) -> None:
    (copied.data / "localmed.toml").write_text("[chat]\nhang_seconds = 600.0\n")
    model = str(write_gguf(tmp_path / "tiny.gguf"))
    copied.ok("models", "add", model, "--role", "chat", "--as", "tiny", "--template", "chatml")
    copied.ok("models", "use", "chat", "tiny")
    out = tmp_path / "out"
    arguments = ("eval", "mcq", "--set", questions, "--arms", ARMS, "--out", str(out), "--json")
    report = copied.ok(*arguments).json
    assert {path.name for path in out.iterdir()} == {"report.json", "table.csv", "plot.png", "plot.svg", "rows.jsonl"}
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
    kept = "".join(path.read_text() for path in out.iterdir() if path.suffix != ".png")
    assert SECRET not in kept
    assert "paracetamol" not in kept
    lines = (out / "rows.jsonl").read_text().splitlines(keepends=True)
    (out / "rows.jsonl").write_text("".join(lines[:4]))
    again = copied.ok(*arguments, "--resume", "--show-questions").json
    assert [score["accuracy"] for score in again["scores"]] == [score["accuracy"] for score in report["scores"]]
    assert len((out / "rows.jsonl").read_text().splitlines()) == 11
    assert SECRET in (out / "questions.jsonl").read_text(), "texts only where they were asked for"
    other = copied("eval", "mcq", "--set", questions, "--arms", "chat", "--out", str(out), "--resume", "--json")
    assert "other questions" in other.failed(2)


@pytest.mark.extra("eval")
def test_without_a_chat_model_it_says_what_works(localmed: Localmed, questions: str, tmp_path: Path) -> None:
    ran = localmed("eval", "mcq", "--set", questions, "--out", str(tmp_path / "out"))
    assert "eval retrieval" in ran.failed(6)


@pytest.mark.extra("eval")
def test_what_is_refused(localmed: Localmed, questions: str, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "out"))
    file = questions.partition(":")[2]
    assert "medqa" in localmed("eval", "mcq", "--set", f"medqb:{file}", *out).failed(2)
    assert "medmcqa:dev.json" in localmed("eval", "mcq", "--set", file, *out).failed(2)
    assert "mairag" in localmed("eval", "mcq", "--set", questions, "--arms", "magic", *out).failed(2)
    assert "same name" in localmed("eval", "mcq", "--set", questions, "--set", questions, *out).failed(2)
    assert localmed("eval", "mcq", "--set", f"medqa:{tmp_path / 'none.jsonl'}", *out).code == 3


@pytest.mark.extra("eval")
def test_a_second_call_with_the_same_out_is_refused(localmed: Localmed, questions: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    handle = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)  # as the first call holds it
        ran = localmed("eval", "mcq", "--set", questions, "--out", str(out))
        assert "another --out" in ran.failed(4)
    finally:
        os.close(handle)
    assert "eval retrieval" in localmed("eval", "mcq", "--set", questions, "--out", str(out)).failed(6)
