"""M-Eval over a file of answers: reading, counting, going on after an interruption; and stances inside M-Eval."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localmed.answering.answer_file import VerifyInput
from localmed.cli.common import plain
from localmed.domain import Answer, AnswerStatus
from localmed.domain.errors import InputError
from localmed.domain.parts import AlertPart, ClaimPart, Label, ResponsePart, Titled
from localmed.domain.ports import Stance
from localmed.lab import claims
from localmed.lab.claims import Inside, Item, by_claim
from localmed.lab.reporting import Report, Rows
from localmed.lab.stance import Labelled, PairSet
from localmed.messages import render
from tests.values import PROVENANCE

THREE = ("entailment", "neutral", "contradiction")
LINES = (
    '{"id": "a", "question": "Q?", "answer": "One secretword.", "label": "correct"}\n'
    '{"answer": "Two."}\n\n{"id": 3, "answer": "Three.", "label": "Mistaken"}\n'
)


def verified(verify_input: VerifyInput) -> Answer:
    """Correct if it says One, mistaken if Two, else neither."""
    labels = {"One": Label.CORRECT, "Two": Label.MISTAKEN}
    label = next((name for word, name in labels.items() if word in verify_input.text), Label.NOT_ENOUGH)
    claim = {Label.CORRECT: Label.SUPPORTED, Label.MISTAKEN: Label.CONTRADICTED}.get(label, label)
    alerts = (AlertPart((("retracted", Titled("A trial")),)),) if "Two" in verify_input.text else ()
    parts = (ResponsePart(label, ((claim, 1),)), ClaimPart("Claim", claim, (1, 0, 0), 1.0), *alerts)
    return Answer(
        AnswerStatus.ANSWERED, verify_input.question, "en", (), (), (), PROVENANCE, workflow="verify", parts=parts
    )


def items(folder: Path, text: str = LINES) -> tuple[Item, ...]:
    file = folder / "answers.jsonl"
    file.write_text(text, "utf-8")
    return claims.load(file)


def test_lines_and_a_list_are_read(tmp_path: Path) -> None:
    loaded = items(tmp_path)
    assert [(item.id, item.gold) for item in loaded] == [("a", "correct"), ("2", ""), ("3", "mistaken")]
    as_list = json.dumps([json.loads(line) for line in LINES.splitlines() if line])
    assert items(tmp_path, as_list) == loaded


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", "[1]", '{"answer": 1}', '{"answer": "x", "label": "perhaps"}', '{"id": 1, "answer": "x"}\n' * 2],
    ids=range(7),
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        items(tmp_path, text)


def report(results: Sequence[claims.Result]) -> Report:
    return claims.report("answers.jsonl", "judge", results)


def run(items: Sequence[Item], verify: Any = verified, out: Path | None = None, resume: bool = False) -> Any:
    file = out / claims.RESULTS if out else None
    return claims.run(items, verify, lambda *_: None, Rows(file, {}, resume, claims.Result, "id", "key"))


def test_the_counts_by_hand(tmp_path: Path) -> None:
    outcome = report(run(items(tmp_path)))
    values = outcome.values
    assert values["responses"] == {"correct": 1, "mistaken": 1, "not_enough": 1, "not_judged": 0}
    assert values["claims"] == {"supported": 1, "contradicted": 1, "not_enough": 1, "not_judged": 0}
    assert [values[name] for name in ("recall", "specificity", "accuracy")] == [1.0, 0.0, 0.5]
    assert values["alerts"] == 1
    assert outcome.csv.splitlines()[1].startswith("a,correct,correct,1,0,0,")
    assert "secretword" not in json.dumps(plain(values)) + outcome.csv + repr(outcome.facts)


def test_undefined_is_undefined(tmp_path: Path) -> None:
    outcome = report(run(items(tmp_path, '{"answer": "One."}')))
    assert {outcome.values[name] for name in ("recall", "specificity", "accuracy")} == {None}
    assert "accuracy undefined" in " ".join(render(fact, "en") for fact in outcome.facts)
    assert report(()).values["answers"] == 0


def test_going_on_verifies_what_is_new_or_was_changed(tmp_path: Path) -> None:
    texts: list[str] = []

    def noting(verify_input: VerifyInput) -> Answer:
        texts.append(verify_input.text)
        return verified(verify_input)

    run(items(tmp_path)[:2], noting, tmp_path)
    changed = items(tmp_path, LINES.replace("Two.", "Three two."))
    resumed = run(changed, noting, tmp_path, resume=True)
    assert texts == ["One secretword.", "Two.", "Three two.", "Three."]
    assert [replace(row, seconds=0) for row in resumed] == [replace(row, seconds=0) for row in run(changed)]
    assert "secretword" not in (tmp_path / claims.RESULTS).read_text()


class Words:
    """Judges by a word, and keeps what it was given."""

    name, languages = "words", ("en",)

    def __init__(self) -> None:
        self.premises: list[str] = []

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        self.premises += [premise for premise, _ in pairs]
        return [Stance(0.45, 0.3, 0.25) if "weak" in premise else Stance(0.1, 0.1, 0.8) for premise, _ in pairs]


def test_inside_m_eval_only_sure_stances_vote() -> None:
    words = Words()
    text = "Background stands here. Aspirin did not prevent stroke. Ships sail."
    pairs = [
        (text, "Aspirin prevents stroke."),
        ("A weak aspirin hint.", "Aspirin prevents stroke."),
        ("Dogs.", "Aspirin."),
    ]
    stances = Inside(words).judge(pairs)
    assert words.premises == ["Aspirin did not prevent stroke.", "A weak aspirin hint."]
    assert stances == [Stance(0, 0, 1), Stance(0, 1, 0), Stance(0, 1, 0)]


def test_claims_by_vote_by_hand() -> None:
    votes = [("a", "entailment", 1), ("a", "entailment", -1), ("a", "contradiction", -1), ("b", "neutral", 0),
            ("c", "contradiction", 1)]  # fmt: skip
    pair_set = PairSet("x", tuple(Labelled("p", claim, label) for claim, label, _ in votes), THREE)
    stances = [Stance(float(vote == 1), float(vote == 0), float(vote == -1)) for _, _, vote in votes]
    assert by_claim(pair_set, stances) == {
        (Label.SUPPORTED, Label.CONTRADICTED): 1,
        (Label.NOT_ENOUGH, Label.NOT_ENOUGH): 1,
        (Label.CONTRADICTED, Label.SUPPORTED): 1,
    }
