"""The ablation on a small real library in which it is known what each part is worth."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from localmed.cli.common import plain
from localmed.config import SearchSettings
from localmed.domain import SearchFilter, message
from localmed.domain.errors import BadSettings, UsageError
from localmed.lab import retrieval
from localmed.lab.measures import MEASURES, Run
from localmed.lab.reporting import Rows
from localmed.lab.retrieval import VARIANTS, Assessed, Bench, Ranked
from localmed.lab.sets import Question, QuestionSet
from tests.fakes import HashedWords
from tests.lab.conftest import SUBJECTS

pytestmark = pytest.mark.extra("eval")


@dataclass(frozen=True)
class AvoidsItsSubject:
    """A ``Reranker`` that is always wrong."""

    name: str = "avoids-its-subject 1"

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> list[float]:
        subject = question.split()[-1].lower()
        return [float(subject not in passage.lower().split()) for passage in passages]


def run_all(bench: Bench, questions: QuestionSet, file: Path | None = None, resume: bool = False) -> Mapping[str, Run]:
    kept = Rows(file, bench.made_with(questions), resume, Ranked, "variant", "question")
    return retrieval.run_all(bench, bench.variants(), questions, lambda *_: None, kept)


def assessed(bench: Bench, questions: QuestionSet) -> dict[str, Assessed]:
    return {row.variant: row for row in retrieval.assess(questions, run_all(bench, questions), 1)}


def test_each_part_is_worth_what_is_known(bench: Bench, questions: QuestionSet) -> None:
    by_name = assessed(bench, questions)
    assert list(by_name) == list(VARIANTS)
    mrr = {name: row.measures["MRR@10"].value for name, row in by_name.items()}
    assert mrr["lexical"] == 1.0  # every subject is a word of one note only
    assert mrr["dense"] < mrr["both"] < 1.0  # words share their 32 dimensions
    assert mrr["dense+rerank"] == mrr["both+rerank"] == 1.0  # the reranker reads the subject


def test_a_harmful_part_is_told_from_chance(bench: Bench, questions: QuestionSet) -> None:
    by_name = assessed(replace(bench, reranker=AvoidsItsSubject()), questions)
    full, lexical = by_name["both+rerank"].measures["MRR@10"], by_name["lexical"].measures["MRR@10"]
    assert full.value < 0.5 < lexical.value
    assert full.p is None
    assert lexical.p == pytest.approx(2 / 2**9)  # every question is worse: exact with nine of them
    assert 0 < (lexical.p or 0) < (lexical.p_holm or 0) < 0.05
    assert (full.high or 1) < (lexical.low or 0)


def test_without_a_reranker_three_variants_are_left(bench: Bench) -> None:
    plain = replace(bench, reranker=None)
    assert list(plain.variants()) == ["dense", "lexical", "both"]
    with pytest.raises(BadSettings, match="no reranker"):
        plain.variants(["both", "both+rerank"])
    with pytest.raises(UsageError, match="no variant 'fused'"):
        bench.variants(["fused"])


def test_a_variant_asks_only_the_indexes_it_has_and_keeps_to_what_is_wanted(
    bench: Bench, questions: QuestionSet, ids: dict[str, str]
) -> None:
    runs = {name: bench.searcher(name, questions)(Question("q", "asthma gloves")) for name in bench.variants()}
    assert len(runs["lexical"]) == 2  # two documents hold one of the words
    assert len(runs["dense"]) == len(SUBJECTS) + 1  # everything is near to some degree
    assert set(runs["both"]) == set(runs["dense"])
    only = replace(questions, search_filter=SearchFilter(documents=(ids["n0"],)))
    assert all(set(run["q3"]) <= {ids["n0"]} for run in run_all(bench, only).values())


# --- what is kept ------------------------------------------------------------------------------------------------


def test_what_is_finished_is_not_asked_again(bench: Bench, questions: QuestionSet, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    first = run_all(bench, questions, file)
    encoder = HashedWords()
    assert run_all(replace(bench, encoder=encoder), questions, file, True) == first
    assert not encoder.encoded
    assert retrieval.trec("dense", {"q1": ("a", "b")}) == "q1 Q0 a 1 2 dense\nq1 Q0 b 2 1 dense\n"


def test_whatever_decides_a_run_decides_what_is_gone_on_with(bench: Bench, questions: QuestionSet) -> None:
    other_question = (Question("q0", "another text"), *questions.questions[1:])
    made = [
        bench.made_with(questions),
        bench.made_with(replace(questions, questions=other_question)),
        bench.made_with(replace(questions, search_filter=SearchFilter(language="en"))),
        replace(bench, depth=30).made_with(questions),
        replace(bench, settings=SearchSettings(rrf_k=10)).made_with(questions),
        replace(bench, encoder=HashedWords("2")).made_with(questions),
        replace(bench, reranker=AvoidsItsSubject()).made_with(questions),
    ]
    assert len({tuple(one.items()) for one in made}) == len(made)


# --- the report ----------------------------------------------------------------------------------------------------


def test_the_report_is_the_same_each_time_and_holds_no_question(
    bench: Bench, questions: QuestionSet, tmp_path: Path
) -> None:
    runs = run_all(bench, questions)
    made, again, other = (retrieval.report(bench, questions, runs, seed) for seed in (1, 1, 2))
    assert again.values == made.values
    assert other.values["rows"] != made.values["rows"]
    values, table = plain(made.values), made.csv
    assert len(table.splitlines()) == 1 + len(VARIANTS) * (len(MEASURES) + 1)
    for row in values["rows"]:
        value = row["measures"]["nDCG@10"]["value"]
        assert f"subjects,9,{row['variant']},nDCG@10,{value}," in table
    assert made.tables[0].cells[-1][-2:] == ["-", "-"]
    for text in (table, json.dumps(values)):
        assert not [word for word in ("treatment", *SUBJECTS) if word in text.lower()]
    (tmp_path / "again").mkdir()
    assert made.draw
    files, others = made.draw(tmp_path, "en"), made.draw(tmp_path / "again", "en")
    assert [file.read_bytes() for file in files] == [file.read_bytes() for file in others]
    png, svg = files[0].read_bytes(), files[1].read_text("utf-8")
    assert png.startswith(b"\x89PNG")
    assert (int.from_bytes(png[16:20]), int.from_bytes(png[20:24])) == (1650, 510)
    mrr = made.values["rows"][0].measures["MRR@10"].value
    for name in (*MEASURES, *VARIANTS, "95 %", f"MRR@10, dense: {mrr:.3f} ["):
        assert name in svg, name


def test_questions_in_a_language_that_the_encoder_does_not_know(bench: Bench, questions: QuestionSet) -> None:
    chinese = replace(questions, questions=(Question("q0", "哮喘怎么治疗"), *questions.questions[1:]))
    runs = run_all(bench, chinese)
    assert runs["dense"]["q0"] == ()
    assert message("evaluation.note.unknown_language", count=1) in retrieval.report(bench, chinese, runs, 1).facts
