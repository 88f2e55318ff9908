"""``localmed calibrate``: limits from a site's own questions, and lists that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Localmed
from tests.words import phrase

ANSWERED = (
    "What is the maximum dose of paracetamol in adults?", "How soon after recognition are antibiotics given?",
    "When is lactate repeated in septic shock?", "What is the blood pressure target?", "普通病房的探视时间是几点？",
)  # fmt: skip
UNANSWERED = (
    "How is a chest drain removed?", "Which vaccine is given at birth?", "What is the staging of colon cancer?",
    "How is a stoma bag changed?", "怎样更换胃造瘘管？",
)  # fmt: skip


def listed(file: Path, times: int = 4) -> Path:
    rows = [f'"{one}",yes' for one in ANSWERED * times] + [f'"{one}",否' for one in UNANSWERED * times]
    file.write_text("\ufeffquestion,answered\n" + "\n".join(rows) + "\n", "utf-8")
    return file


@pytest.mark.slow
def test_limits_are_measured_printed_and_taken_from_the_settings(copied: Localmed, tmp_path: Path) -> None:
    file = listed(tmp_path / "questions.csv")
    values = copied.ok("calibrate", str(file), "--json").json
    assert 0 < values["near"] <= values["close"]
    assert values["area"] > 0.8, "the subjects are apart"
    told = copied.ok("calibrate", str(file)).out
    settings = told[told.index("[search]") :]
    (copied.data / "localmed.toml").write_text(settings, "utf-8")
    after = copied.ok("calibrate", str(file), "--json").json
    assert after["before"] == pytest.approx([values["close"], values["near"]], abs=0.001)
    (copied.data / "localmed.toml").write_text("[search]\nclose = 9.0\nnear = 8.0\n", "utf-8")
    assert copied.ok("search", ANSWERED[0], "--json").json["closeness"] == "nothing near"


def test_no_limits_are_proposed_where_the_score_is_chance(copied: Localmed, tmp_path: Path) -> None:
    file = tmp_path / "questions.csv"
    file.write_text("question,answered\n" + f"{ANSWERED[0]},yes\n{ANSWERED[0]},no\n" * 20, "utf-8")
    told = copied.ok("calibrate", str(file)).out
    assert phrase("calibrate.weak") in " ".join(told.split())
    assert "[search]" not in told


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a,b\n1,2\n", 3), ("question,answered\nWhat?,perhaps\n", 3),
        ("question,answered\nWhat is the dose of paracetamol?,yes\n", 2), ('question,answered\n"What?,yes\n', 3)
    ],
)  # fmt: skip
def test_other_lists_are_refused_without_a_question_in_the_line(
    copied: Localmed, tmp_path: Path, text: str, code: int
) -> None:
    file = tmp_path / "questions.csv"
    file.write_text(text, "utf-8")
    line = copied("calibrate", str(file)).failed(code)
    assert "What" not in line
