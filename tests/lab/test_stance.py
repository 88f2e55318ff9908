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
    (tmp_path / "pairs.tsv").write_text(GOLDEN)
    return stance.load(tmp_path / "pairs.tsv")


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


def test_the_majority_class(golden: PairSet) -> None:
    scores = stance.score(golden, majority(golden.pairs), seed=1)
    assert (scores.accuracy, scores.confusion[0]) == (0.5, (2, 0, 0))


def test_healthver(tmp_path: Path) -> None:
    file = tmp_path / "dev.csv"
    file.write_text(
        "id,evidence,claim,label,topic_ip,question\n"
        '1,"Masks, worn well, help.\nOne line more.",Masks help,Supports,1,q\n2,e,c,Refutes,1,q\n3,e,c,Neutral,1,q\n'
    )
    pair_set = stance.load(file)
    assert [pair.label for pair in pair_set.pairs] == ["entailment", "contradiction", "neutral"]
    assert pair_set.pairs[0].premise == "Masks, worn well, help.\nOne line more."


def test_covid_fact_is_two_way(tmp_path: Path) -> None:
    file = tmp_path / "rte.tsv"
    file.write_text('index\tsentence1\tSentence2\tentailment\n0\tIt "helps.\tc\tentailment\n1\tp\tc\tnot_entailment\n')
    lines = tmp_path / "facts.jsonl"
    lines.write_text(
        '{"claim": "c", "evidence": ["p", "q"], "label": "REFUTED"}\n'
        '{"claim": "d", "evidence": ["p"], "label": "SUPPORTED"}\n'
    )
    pair_set, facts = stance.load(file), stance.load(lines)
    assert pair_set.labels == facts.labels == TWO
    assert [pair.label for pair in facts.pairs] == ["not entailment", "entailment"]
    assert facts.pairs[0].premise == "p q"
    neither = Says({pair.premise: "neutral" for pair in pair_set.pairs})
    against = Says({pair.premise: "contradiction" for pair in pair_set.pairs})
    scores = [stance.score(pair_set, judge, seed=1) for judge in (neither, against)]
    assert scores[0].confusion == scores[1].confusion == ((0, 1), (0, 1))
    said = stance.report(pair_set, scores, seed=1).facts
    assert "evaluation.facts.two_way" in [fact.code for fact in said]


@pytest.mark.parametrize(
    "text",
    ["", f"{SECRET}\tonly two\n", f"p\t{SECRET}\tperhaps\n", f"\t{SECRET}\tneutral\n", '{"claim": "' + SECRET + '"}\n'],
)
def test_what_is_no_labelled_pair_is_refused_without_its_text(tmp_path: Path, text: str) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        stance.load(file)
    assert SECRET not in str(error.value)
    assert file.name in str(error.value)


def test_a_quotation_mark_left_open_is_told(tmp_path: Path) -> None:
    file = tmp_path / "dev.csv"
    file.write_text(f'id,evidence,claim,label\n1,"{SECRET * 20_000},c,Supports\n')
    with pytest.raises(InputError, match="not a readable table") as error:
        stance.load(file)
    assert SECRET not in str(error.value)
