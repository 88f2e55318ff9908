"""Link-Eval batches: files read, rows kept, means with what is undefined left out, and no text in what is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from localmed.cli.common import plain
from localmed.domain import Message
from localmed.domain.errors import InputError, UsageError
from localmed.domain.link_counts import METRICS, LinkCounts
from localmed.lab import link_files, links
from localmed.lab.link_files import LinkQuestion, LinkRow
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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.toml", '[[question]]\nid = "a b"\ntext = "One?"\nevidence = "gold"\n[[question]]\nquestion = "二？"\n'),
        ("q.jsonl", '{"id": "a b", "text": "One?", "gold": "gold"}\n\n{"question": "二？"}\n'),
        ("q.tsv", "a b\tOne?\tgold\n2\t二？\n"),
    ],
)
def test_questions_in_every_form(tmp_path: Path, name: str, text: str) -> None:
    one, two = link_files.questions(write(tmp_path, name, text))
    assert (one, two) == (LinkQuestion("a_b", "One?", "gold"), LinkQuestion("2", "二？"))
    assert "One" not in repr(one)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.toml", f"{SECRET} ="),
        ("q.toml", "x = 1"),
        ("q.jsonl", f'["{SECRET}"]'),
        ("q.jsonl", f'{{"id": "{SECRET}"}}'),
        ("q.tsv", SECRET),
        ("q.tsv", ""),
        ("q.tsv", f"1\t{SECRET}\n1\t{SECRET}\n"),
    ],
)
def test_what_is_no_list_of_questions_is_refused_without_its_text(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(InputError) as error:
        link_files.questions(write(tmp_path, name, text))
    assert "Zyxwvut" not in str(error.value)
    assert name in str(error.value)


def test_an_answer_written_elsewhere(tmp_path: Path) -> None:
    questions = link_files.questions(write(tmp_path, "q.tsv", "1\tWhat dose?\t5 mg\n2\tHow long?\n"))
    text = "Give e.g. 5.5 mg to Dr. Lee's patient. [1, 3] Repeat it once.[2] Ask her. [1"
    record = {"question": "What dose?", "answer": text, "sources": [
        "Adults: 5 mg.", {"title": "Leaflet", "text": "Once more.", "marker": "[2]"}]}  # fmt: skip
    one, two = link_files.with_answers(questions, write(tmp_path, "a.jsonl", json.dumps(record)))
    assert two.answer is None
    answer = one.answer
    assert answer is not None
    assert [statement.markers for statement in answer.statements] == [("1", "3"), ("2",), ()]
    assert answer.statements[0].text == "Give e.g. 5.5 mg to Dr. Lee's patient."
    assert [(source.marker, source.passage.title) for source in answer.sources] == [("1", ""), ("2", "Leaflet")]
    assert (answer.gold, answer.retrieved, answer.malformed) == ("5 mg", False, 1)


def test_chinese_answers_are_cut_into_sentences(tmp_path: Path) -> None:
    questions = link_files.questions(write(tmp_path, "q.tsv", "1\t多少？\n"))
    record = {"id": "1", "answer": "每日不超过4克。[1]肝病患者减半。【2】", "sources": []}
    text = json.dumps(record, ensure_ascii=False)
    (one,) = link_files.with_answers(questions, write(tmp_path, "a.jsonl", text))
    assert one.answer is not None
    assert [(statement.text, statement.markers) for statement in one.answer.statements] == [
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
    questions = (LinkQuestion("1", "One?"),)
    with pytest.raises(InputError) as error:
        link_files.with_answers(questions, write(tmp_path, "a.jsonl", json.dumps(record)))
    assert "Zyxwvut" not in str(error.value)


def test_rows_outlive_an_interruption(tmp_path: Path) -> None:
    file, row = tmp_path / "rows.jsonl", LinkRow("1", "en", "answered", HALF)
    assert link_files.begin(file, MADE, resume=False) == {}
    link_files.keep(file, row)
    with file.open("a") as opened:
        opened.write('{"id": "2", "lang')
    assert link_files.begin(file, MADE, resume=True) == {"1": row}
    link_files.keep(file, LinkRow("2", "zh", "abstained"))
    assert list(link_files.begin(file, MADE, resume=True)) == ["1", "2"]
    with pytest.raises(UsageError, match="other questions"):
        link_files.begin(file, MADE | {"judge": "another"}, resume=True)
    assert link_files.begin(file, MADE, resume=False) == {}


@pytest.mark.extra("eval")
def test_means_leave_out_what_is_undefined() -> None:
    rows = [LinkRow("1", "en", "answered", HALF), LinkRow("2", "en", "answered", FULL), LinkRow("3", "en", "abstained")]
    report = links.report(rows, MADE, seed=1)
    by_name = {metric.name: metric for metric in report.metrics}
    assert tuple(by_name) == METRICS
    assert by_name["citation_precision"].mean == (0.25 + 1) / 2
    assert by_name["citation_recall"].mean == 0.0
    assert (by_name["citation_recall"].defined, by_name["citation_recall"].undefined) == (1, 1)
    assert by_name["citation_recall"].interval is None
    assert by_name["fluency"].mean is None
    assert report.statuses == {"answered": 2, "abstained": 1}
    assert report.totals["citations"] == 5
    low, high = by_name["citation_precision"].interval or (9, 9)
    assert 0.25 <= low <= high <= 1
    assert report == links.report(rows, MADE, seed=1)


def test_undefined_is_said_in_words() -> None:
    report = links.report([LinkRow("1", "en", "answered", LinkCounts(statements=1, uncited=1))], MADE, seed=1)
    _, rows = links.table(report)
    assert [row[1] for row in rows] == [*[Message("column.undefined")] * 5, Message("column.not_measured")]
    line = links.as_csv(report).splitlines()[1]
    assert line.startswith("1,en,answered,,,,,,,1,1,")
    record = plain(report.as_dict())
    assert record["rows"][0]["metrics"]["citation_precision"] is None
    assert "undefined" in render(links.alternative(report), "en")
    assert any("1 without a citation" in render(fact, "en") for fact in links.facts(report))
