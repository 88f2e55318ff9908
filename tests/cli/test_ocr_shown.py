"""A passage that OCR read says so wherever it is shown, with the engine's confidence, in both languages and in JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from localmed.cli import ask, search
from localmed.domain import Answer, AnswerStatus, Evidence, Receipts, ShownLine, ShownSection
from localmed.library import lexical
from tests.values import PROVENANCE, evidence


@pytest.fixture
def scanned() -> Evidence:
    source = evidence("1", "Give amoxicillin for ten days.")
    return replace(source, passage=replace(source.passage, ocr=0.934))


def answer_of(source: Evidence, language: str) -> Answer:
    return Answer(AnswerStatus.ANSWERED, "Which antibiotic?", language, (), (source,), (), PROVENANCE)


@pytest.mark.parametrize(
    ("language", "says"), [("en", "read by OCR, confidence 0.93"), ("zh", "文字由 OCR 识别，置信度 0.93")]
)
def test_sources_and_hits_say_so(
    scanned: Evidence, language: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = answer_of(scanned, language)
    ask.print_text(answer)
    section = ShownSection("1", (ShownLine("1", 0, len(scanned.passage.text)),))
    search.show_finding(replace(answer, receipts=Receipts(sections=(section,))))
    assert "".join(capsys.readouterr().out.split()).count("".join(says.split())) == 2


def test_it_is_stored_with_the_passage_and_older_generations_open(scanned: Evidence) -> None:
    body = lexical.dump(scanned.passage)
    assert lexical.parse_passage(body) == scanned.passage
    assert json.loads(json.dumps(asdict(scanned)))["passage"]["ocr"] == 0.934
    before = {name: value for name, value in json.loads(body.partition(b" ")[2]).items() if name != "ocr"}
    assert lexical.parse_passage(json.dumps(before).encode()) == replace(scanned.passage, ocr=None)
