"""``localmed verify``, ``ask --check`` and ``eval claims`` on a small library with a literature collection."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Localmed
from tests.words import phrase

MANIFEST = """
name = "pubmed"
title = "PubMed"
licence = "test"
kind = "literature"
[fields]
id = "id"
title = "title"
text = "text"
edition = "edition"
status = "status"
identifiers = "identifiers"
publication_types = "publication_types"
"""
STUDIES = (
    {"id": "1", "title": "Warfarin in atrial fibrillation", "text": "Warfarin prevents stroke in atrial fibrillation.",
     "edition": "2024", "identifiers": ["pmid:11"], "publication_types": ["Meta-Analysis"]},
    {"id": "2", "title": "Warfarin, a retracted trial", "text": "Warfarin prevents stroke in atrial fibrillation.",
     "edition": "2020", "identifiers": ["pmid:12"], "publication_types": ["Retracted Publication"],
     "status": "withdrawn"},
)  # fmt: skip
ANSWER = "Warfarin prevents stroke in atrial fibrillation [1]. Zyxwvut takes it [PMID: 12]. So it is (PMID: 12)."


@pytest.fixture
def library(copied: Localmed, tmp_path: Path) -> Localmed:
    (tmp_path / "m.toml").write_text(MANIFEST, "utf-8")
    (tmp_path / "studies.jsonl").write_text("".join(json.dumps(study) + "\n" for study in STUDIES), "utf-8")
    copied.ok("import", str(tmp_path / "studies.jsonl"), "-c", "pubmed", "--manifest", str(tmp_path / "m.toml"))
    return copied


def part(answer: Any, name: str) -> Any:
    """The first part of the type called so."""
    return next(one for one in answer["parts"] if one["type"] == name)


def test_an_answer_from_a_file(library: Localmed, tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    submitted = {
        "question": "What prevents stroke in atrial fibrillation?",
        "answer": ANSWER,
        "sources": [{"pmid": 11}],
    }
    file.write_text(json.dumps(submitted), "utf-8")
    answer = library.ok("verify", str(file), "--json").json
    assert answer["workflow"] == "verify"
    assert part(answer, "CitationsPart")["references"][0]["study"]["title"] == "Warfarin in atrial fibrillation"
    assert "retracted trial" in str(part(answer, "AlertPart"))
    claim = part(answer, "ClaimPart")
    assert (claim["label"], bool(claim["statements"])) == ("not_judged", True), "without a model"
    support = [one["verdict"]["support"] for one in part(answer, "SupportPart")["statements"]]
    assert support == ["supported", "unsupported", "unsupported"], "a retracted study carries nothing"
    shown = " ".join(library.ok("verify", str(file)).out.split())
    assert phrase("verify.nearest") in shown
    assert "Response:" not in shown
    assert phrase("verify.no_judge") in shown
    assert "written by a language model" not in shown
    assert "decides nothing" in shown


def test_text_from_standard_input_and_a_recording(library: Localmed, tmp_path: Path) -> None:
    record = tmp_path / "r.json"
    ran = library.ok("verify", "-", "--question", "Stroke?", "--trace", "--record", str(record), stdin=ANSWER)
    assert "Claim: Warfarin prevents stroke in atrial fibrillation." in ran.out.replace("\n", " ")
    assert "find:" in ran.err
    assert "Zyxwvut" not in ran.err
    assert phrase("recording.same") in library.ok("replay", str(record)).out + library.ok("replay", str(record)).err


def test_an_own_answer_of_sections_claims_nothing(library: Localmed, tmp_path: Path) -> None:
    file = tmp_path / "own.json"
    file.write_text(library.ok("ask", "What does warfarin prevent in atrial fibrillation?", "--json").out, "utf-8")
    assert phrase("verify.nothing") in " ".join(library.ok("verify", str(file)).out.split())
    assert not library.ok("ask", "What does warfarin prevent?", "--check", "--json").json["parts"]


def test_neither_text_nor_question_is_in_an_error_or_the_audit(library: Localmed) -> None:
    error = library("verify", "-", stdin='{"answer": "Zyxwvut"').failed(3)
    assert "Zyxwvut" not in error
    library.ok("verify", "-", stdin=ANSWER)
    for file in library.data.glob("audit*"):
        assert b"Zyxwvut" not in file.read_bytes()


@pytest.mark.extra("eval")
def test_a_batch_of_answers(library: Localmed, tmp_path: Path) -> None:
    file, out = tmp_path / "answers.jsonl", tmp_path / "out"
    file.write_text(
        json.dumps({"id": "x", "question": "Stroke?", "answer": ANSWER, "label": "correct"}) + "\n", "utf-8"
    )
    report = library.ok("eval", "claims", "--questions", str(file), "--out", str(out), "--json").json
    assert report["answers"] == 1
    assert {file.name for file in out.iterdir()} == {
        "report.json", "table.csv", "results.jsonl", "plot.png", "plot.svg",
    }  # fmt: skip
    assert not any(b"Zyxwvut" in file.read_bytes() for file in out.iterdir())
    again = library.ok("eval", "claims", "--questions", str(file), "--out", str(out), "--resume").out
    assert "answers: 1, judged by none" in again


def test_stances_inside_m_eval(library: Localmed, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text(
        "Warfarin prevents stroke.\tWarfarin prevents stroke.\tentailment\nDogs bark.\tWarfarin is safe.\tneutral\n",
        "utf-8",
    )
    report = library.ok("eval", "claims", "--pairs", str(pairs), "--json").json
    assert report["judges"][0]["judge"].startswith("inside M-Eval")
    assert {(row["is"], row["judged"]) for row in report["claims"]} == {
        ("supported", "not_judged"), ("not_enough", "not_enough"),
    }  # fmt: skip
    assert "Claims by vote" in library.ok("eval", "claims", "--pairs", str(pairs)).out
