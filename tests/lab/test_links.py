"""Link-Eval batches: files read, rows kept, means with what is undefined left out, and no text in what is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from localmed.cli.common import plain
from localmed.domain import Message
from localmed.domain.errors import InputError
from localmed.lab import links, sets
from localmed.lab.link_counts import METRICS, LinkCounts
from localmed.lab.links import LinkRow
from localmed.lab.rows import Rows
from localmed.lab.sets import Question
from localmed.messages import render

SECRET = "Patientname Zyxwvut"
MADE = {
    "judge": "words 1",
    "valid_from": "0.55",
    "encoder": "e",
    "generation": "0001",
    "version": "0",
}
HALF = LinkCounts(statements=3, uncited=1, sets=2, correct_sets=1, citations=4, correct_citations=1, valid=2)
FULL = LinkCounts(statements=1, sets=1, correct_sets=1, citations=1, correct_citations=1, pairs=1, gold=1)


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, "utf-8")
    return folder / name


def test_an_answer_written_elsewhere(tmp_path: Path) -> None:
    questions = sets.questions(write(tmp_path, "q.tsv", "1\tWhat dose?\t5 mg\n2\tHow long?\n"))
    text = "Give e.g. 5.5 mg to Dr. Lee's patient. [1, 3] Repeat it once.[2] Ask her. [1"
    record = {"question": "What dose?", "answer": text, "sources": [
        "Adults: 5 mg.", {"title": "Leaflet", "text": "Once more.", "marker": "[2]"}]}  # fmt: skip
    answers = links.answers(questions, write(tmp_path, "a.jsonl", json.dumps(record)))
    assert list(answers) == ["1"]
    answer = answers["1"]
    assert [statement.markers for statement in answer.statements] == [("1", "3"), ("2",), ()]
    assert answer.statements[0].text == "Give e.g. 5.5 mg to Dr. Lee's patient."
    assert [(source.marker, source.passage.title) for source in answer.sources] == [("1", ""), ("2", "Leaflet")]
    assert (answer.gold, answer.retrieved, answer.malformed) == ("5 mg", False, 1)


def test_chinese_answers_are_cut_into_sentences(tmp_path: Path) -> None:
    questions = sets.questions(write(tmp_path, "q.tsv", "1\t多少？\n"))
    record = {"id": "1", "answer": "每日不超过4克。[1]肝病患者减半。【2】", "sources": []}
    text = json.dumps(record, ensure_ascii=False)
    answers = links.answers(questions, write(tmp_path, "a.jsonl", text))
    assert [(statement.text, statement.markers) for statement in answers["1"].statements] == [
        ("每日不超过4克。", ("1",)),
        ("肝病患者减半。", ("2",)),
    ]


@pytest.mark.parametrize(
    "record",
    [
        {"id": "7", "answer": SECRET},
        {"question": SECRET, "answer": "x"},
        {"id": "1"},
        {"id": "1", "answer": SECRET, "sources": [[SECRET]]},
        {"id": "1", "answer": SECRET, "sources": [SECRET] * 201},
        {"id": "1", "answer": 5},
    ],
)
def test_what_is_no_answer_is_refused_without_its_text(tmp_path: Path, record: dict[str, object]) -> None:
    questions = (Question("1", "One?"),)
    with pytest.raises(InputError) as error:
        links.answers(questions, write(tmp_path, "a.jsonl", json.dumps(record)))
    assert "Zyxwvut" not in str(error.value)


@pytest.mark.extra("eval")
def test_means_leave_out_what_is_undefined(tmp_path: Path) -> None:
    rows = [LinkRow("1", "en", "answered", HALF), LinkRow("2", "en", "answered", FULL), LinkRow("3", "en", "abstained")]
    report = links.report(rows, MADE, seed=1)
    by_name = {row["metric"]: row for row in report.values["metrics"]}
    assert tuple(by_name) == METRICS
    precision, recall = by_name["citation_precision"], by_name["citation_recall"]
    assert (precision["mean"], recall["mean"]) == ((0.25 + 1) / 2, 0.0)
    assert (recall["defined"], recall["undefined"], recall["low"]) == (1, 1, None)
    assert by_name["fluency"]["mean"] is None
    assert report.values["statuses"] == {"answered": 2, "abstained": 1}
    assert report.values["totals"]["citations"] == 5
    assert 0.25 <= precision["low"] <= precision["high"] <= 1
    assert report.values == links.report(rows, MADE, seed=1).values
    Rows(tmp_path / "rows.jsonl", MADE, False, LinkRow, "id").get(("1",), lambda: rows[0])
    assert Rows(tmp_path / "rows.jsonl", MADE, True, LinkRow, "id").done == {("1",): rows[0]}


def test_undefined_is_said_in_words() -> None:
    report = links.report([LinkRow("1", "en", "answered", LinkCounts(statements=1, uncited=1))], MADE, seed=1)
    means = [row[1] for row in report.tables[0].cells]
    assert means == [*[Message("column.undefined")] * 5, Message("column.not_measured")]
    assert report.csv.splitlines()[1].startswith("1,en,answered,,,,,,,1,1,")
    assert plain(report.values)["rows"][0]["metrics"]["citation_precision"] is None
    assert any("1 without a citation" in render(fact, "en") for fact in report.facts)
