"""Stance evaluation: files read, scores by hand, baselines, intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from localmed.domain.errors import InputError
from localmed.domain.ports import Stance
from localmed.lab import stance
from localmed.lab.stance import THREE, TWO, PairSet, majority

SECRET = "Zyxwvut"
GOLDEN = """Zinc shortens colds.\tZinc helps against colds.\tentailment
Zinc did nothing.\tZinc helps against colds.\tcontradiction
Gold was mined there.\tZinc helps against colds.\tneutral
Honey eases cough.\tHoney eases cough.\tentailment
"""


@dataclass(frozen=True)
class Says:
    """An ``Entailment`` that says ``labels`` one after the other, by the premise's place in ``premises``."""

    labels: dict[str, str]
    name: str = "says"
    languages: tuple[str, ...] = ("en",)

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        probabilities = [[float(label == self.labels[premise]) for label in THREE] for premise, _ in pairs]
        return [Stance(shares[0], shares[1], shares[2]) for shares in probabilities]


@pytest.fixture
def golden(tmp_path: Path) -> PairSet:
    return load(tmp_path, "pairs.tsv", GOLDEN)


def test_a_golden_file_scored_by_hand(golden: PairSet) -> None:
    labels = dict(zip([pair.premise for pair in golden.pairs],
                    ("entailment", "neutral", "neutral", "contradiction"), strict=True))  # fmt: skip
    scores = stance.score(golden, Says(labels), seed=1)
    values = stance.report(golden, [scores], seed=1).values
    assert (values["pairs"], values["hypotheses"], values["labels"]) == (4, 2, THREE)
    assert scores.confusion == ((1, 0, 1), (0, 1, 0), (0, 1, 0))
    assert scores.accuracy == 0.5
    assert scores.classes["entailment"]["precision"] == 1.0
    assert scores.classes["entailment"]["recall"] == 0.5
    assert scores.classes["neutral"]["f1"] == pytest.approx(2 / 3)
    assert scores.classes["contradiction"]["f1"] == 0.0
    assert scores.macro_f1 == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)
    assert 0 <= scores.accuracy_interval[0] <= 0.5 <= scores.accuracy_interval[1] <= 1


def test_the_majority_class_and_what_is_said_word_for_word(golden: PairSet) -> None:
    scores = stance.score(golden, majority(golden.pairs), seed=1)
    assert (scores.accuracy, scores.confusion[0]) == (0.5, (2, 0, 0))
    assert stance.score(golden, stance.VERBATIM, seed=1).unjudged == 3


def load(folder: Path, name: str, text: str) -> PairSet:
    (folder / name).write_text(text)
    return stance.load(folder / name)


def test_public_sets_are_read(tmp_path: Path) -> None:
    healthver = load(
        tmp_path, "dev.csv",
        "id,evidence,claim,label,topic_ip,question\n"
        '1,"Masks, worn well, help.\nOne line more.",Masks help,Supports,1,q\n2,e,c,Refutes,1,q\n3,e,c,Neutral,1,q\n',
    )  # fmt: skip
    assert [pair.label for pair in healthver.pairs] == ["entailment", "contradiction", "neutral"]
    assert healthver.pairs[0].premise == "Masks, worn well, help.\nOne line more."
    facts = load(
        tmp_path, "facts.jsonl",
        '{"claim": "c", "evidence": ["p", "q"], "label": "REFUTED"}\n'
        '{"claim": "d", "evidence": ["p"], "label": "SUPPORTED"}\n',
    )  # fmt: skip
    assert [pair.label for pair in facts.pairs] == ["not entailment", "entailment"]
    assert facts.pairs[0].premise == "p q"
    head = "index\tsentence1\tSentence2\tentailment\n"
    pair_set = load(tmp_path, "rte.tsv", f'{head}0\tIt "helps.\tc\tentailment\n1\tp\tc\tnot_entailment\n')
    assert pair_set.labels == facts.labels == TWO
    scores = [
        stance.score(pair_set, Says({pair.premise: label for pair in pair_set.pairs}), seed=1)
        for label in ("neutral", "contradiction")
    ]
    assert scores[0].confusion == scores[1].confusion == ((0, 1), (0, 1))
    said = stance.report(pair_set, scores, seed=1).facts
    assert "evaluation.facts.two_way" in [fact.code for fact in said]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.tsv", ""),
        ("p.tsv", f"{SECRET}\tonly two\n"),
        ("p.tsv", f"p\t{SECRET}\tperhaps\n"),
        ("p.tsv", f"\t{SECRET}\tneutral\n"),
        ("p.tsv", f'{{"claim": "{SECRET}"}}\n'),
        ("p.csv", f'id,evidence,claim,label\n1,"{SECRET * 20_000},c,Supports\n'),  # a quotation mark left open
    ],
)
def test_what_is_no_labelled_pair_is_refused_without_its_text(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(InputError) as error:
        load(tmp_path, name, text)
    assert SECRET not in str(error.value)
    assert name in str(error.value)
