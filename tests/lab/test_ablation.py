"""The ablation on a small real library in which it is known what each part is worth."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from localmed.cli.common import plain
from localmed.config import SearchSettings
from localmed.domain import SearchFilter, message
from localmed.domain.errors import BadSettings, UsageError
from localmed.lab import ablation, plot, report
from localmed.lab.ablation import VARIANTS, Bench
from localmed.lab.measures import MEASURES, Run
from localmed.lab.report import Report, Row
from localmed.lab.sets import Question, QuestionSet
from localmed.messages import render
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


def silent(done: float, doing: str) -> None:
    del done, doing


def rows(bench: Bench, questions: QuestionSet, names: Sequence[str] = ()) -> dict[str, Row]:
    runs = ablation.run_all(bench, bench.variants(names), questions, silent)
    return {row.variant: row for row in report.assess(questions, runs, 1)}


def test_each_part_is_worth_what_is_known(bench: Bench, questions: QuestionSet) -> None:
    by_name = rows(bench, questions)
    assert list(by_name) == [variant.name for variant in VARIANTS]
    mrr = {name: row.measures["MRR@10"].value for name, row in by_name.items()}
    assert mrr["lexical"] == 1.0  # every subject is a word of one note only
    assert mrr["dense"] < mrr["both"] < 1.0  # words share their 32 dimensions
    assert mrr["dense+rerank"] == mrr["both+rerank"] == 1.0  # the reranker reads the subject


def test_a_harmful_part_is_told_from_chance(bench: Bench, questions: QuestionSet) -> None:
    by_name = rows(replace(bench, reranker=AvoidsItsSubject()), questions)
    full, lexical = by_name["both+rerank"].measures["MRR@10"], by_name["lexical"].measures["MRR@10"]
    assert full.value < 0.5 < lexical.value
    assert full.p is None
    assert lexical.p == pytest.approx(2 / 2**9)  # every question is worse: exact with nine of them
    assert lexical.p is not None
    assert lexical.p_holm is not None
    assert lexical.p < lexical.p_holm < 0.05
    assert full.high < lexical.low


def test_without_a_reranker_three_variants_are_left(bench: Bench) -> None:
    plain = replace(bench, reranker=None)
    assert [variant.name for variant in plain.variants()] == ["dense", "lexical", "both"]
    with pytest.raises(BadSettings, match="no reranker"):
        plain.variants(["both", "both+rerank"])
    with pytest.raises(UsageError, match="no variant 'fused'"):
        bench.variants(["fused"])


def test_a_variant_asks_only_the_indexes_it_has(bench: Bench, questions: QuestionSet) -> None:
    runs = {
        variant.name: bench.searcher(variant, questions)(Question("q", "asthma gloves")) for variant in bench.variants()
    }
    assert len(runs["lexical"]) == 2  # two documents hold one of the words
    assert len(runs["dense"]) == len(SUBJECTS) + 1  # everything is near to some degree
    assert set(runs["both"]) == set(runs["dense"])


def test_the_search_keeps_to_what_is_wanted(bench: Bench, questions: QuestionSet, ids: dict[str, str]) -> None:
    only = replace(questions, search_filter=SearchFilter(documents=(ids["n0"],)))
    for variant in bench.variants():
        assert set(ablation.run(bench, variant, only, silent)["q3"]) <= {ids["n0"]}


# --- runs that are kept ------------------------------------------------------------------------------------------


def test_a_finished_run_is_reused_and_an_unfinished_one_made(
    bench: Bench, questions: QuestionSet, tmp_path: Path
) -> None:
    first = ablation.run_all(bench, bench.variants(), questions, silent, tmp_path)
    kept = sorted(tmp_path.iterdir())
    assert {path.suffix for path in kept} == {".run"}
    lost = next(path for path in kept if path.name.startswith("dense-"))
    lost.unlink()
    encoder = HashedWords()
    done: list[float] = []
    again = ablation.run_all(
        replace(bench, encoder=encoder),
        bench.variants(),
        questions,
        lambda n, _: done.append(n),
        tmp_path,
        resume=True,
    )
    assert again == first
    assert len(encoder.encoded) == len(questions.questions)  # the lost one only
    assert sum(done) == len(VARIANTS) * len(questions.questions)
    assert sorted(tmp_path.iterdir()) == kept


@pytest.mark.parametrize("damage", ["q0 Q0\n", "nobody Q0 d 1 1 t\n", "\xff"])
def test_a_run_that_cannot_be_read_is_made_again(
    bench: Bench, questions: QuestionSet, tmp_path: Path, damage: str
) -> None:
    variants = bench.variants(["dense"])
    first = ablation.run_all(bench, variants, questions, silent, tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_text(damage, "latin-1")
    assert ablation.run_all(bench, variants, questions, silent, tmp_path, resume=True) == first


def test_an_interrupted_run_leaves_no_file(bench: Bench, questions: QuestionSet, tmp_path: Path) -> None:
    def interrupt(done: float, doing: str) -> None:
        if doing == "lexical":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ablation.run_all(bench, bench.variants(), questions, interrupt, tmp_path)
    assert [path.name.partition("-")[0] for path in tmp_path.iterdir()] == ["dense"]


def test_whatever_decides_a_run_decides_its_fingerprint(bench: Bench, questions: QuestionSet) -> None:
    dense, reranked = VARIANTS[0], VARIANTS[-1]
    other_question = (Question("q0", "another text"), *questions.questions[1:])
    marks = [
        bench.fingerprint(questions, dense),
        bench.fingerprint(questions, reranked),
        bench.fingerprint(replace(questions, questions=other_question), dense),
        bench.fingerprint(replace(questions, search_filter=SearchFilter(language="en")), dense),
        replace(bench, depth=30).fingerprint(questions, dense),
        replace(bench, settings=SearchSettings(rrf_k=10)).fingerprint(questions, dense),
        replace(bench, encoder=HashedWords("2")).fingerprint(questions, dense),
        replace(bench, reranker=AvoidsItsSubject()).fingerprint(questions, reranked),
    ]
    assert len(set(marks)) == len(marks)
    assert replace(bench, reranker=None).fingerprint(questions, dense) == marks[0]  # no reranker took part


# --- the report ----------------------------------------------------------------------------------------------------


@pytest.fixture
def runs(bench: Bench, questions: QuestionSet) -> dict[str, Run]:
    return ablation.run_all(bench, bench.variants(), questions, silent)


@pytest.fixture
def made(bench: Bench, questions: QuestionSet, runs: dict[str, Run]) -> Report:
    return report.report(bench, questions, runs, 1)


def test_the_same_seed_gives_the_same_report(
    bench: Bench, questions: QuestionSet, runs: dict[str, Run], made: Report
) -> None:
    again = ablation.run_all(bench, bench.variants(), questions, silent)
    assert report.report(bench, questions, again, 1).rows == made.rows
    assert report.report(bench, questions, runs, 2).rows != made.rows


def test_no_question_in_anything_written(made: Report) -> None:
    for text in (
        report.as_markdown(made, "en"),
        report.as_csv(made),
        json.dumps(plain(made)),
        render(report.alternative(made), "en"),
    ):
        assert "treatment" not in text.lower()
        assert not [subject for subject in SUBJECTS if subject in text.lower()]


def test_the_formats_agree(made: Report) -> None:
    rows = plain(made)["rows"]
    lines = report.as_csv(made).splitlines()
    assert len(lines) == 1 + len(VARIANTS) * (len(MEASURES) + 1)
    for row in rows:
        value = row["measures"]["nDCG@10"]["value"]
        assert any(line.startswith(f"subjects,9,{row['variant']},nDCG@10,{value:.6f},") for line in lines)
        assert f"{value:.3f} [" in report.as_markdown(made, "en")
    names, shown = report.overview(made)
    assert [len(row) for row in shown] == [len(names)] * len(VARIANTS)
    assert shown[-1][-2:] == ("-", "-")


def test_questions_in_a_language_that_the_encoder_does_not_know(bench: Bench, questions: QuestionSet) -> None:
    chinese = replace(questions, questions=(Question("q0", "哮喘怎么治疗"), *questions.questions[1:]))
    runs = ablation.run_all(bench, bench.variants(), chinese, silent)
    assert runs["dense"]["q0"] == []
    assert message("evaluation.note.unknown_language", count=1) in report.report(bench, chinese, runs, 1).notes


def test_the_plot_shows_every_variant_and_is_the_same_each_time(made: Report, tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    files, again = plot.draw(made, tmp_path), plot.draw(made, tmp_path / "again")
    for one, other in zip(files, again, strict=True):
        assert one.read_bytes() == other.read_bytes()
    png, svg = files[0].read_bytes(), files[1].read_text("utf-8")
    assert png.startswith(b"\x89PNG")
    assert (int.from_bytes(png[16:20]), int.from_bytes(png[20:24])) == (1650, 510)
    for name in (*MEASURES, *(variant.name for variant in VARIANTS), "95 %"):
        assert name in svg, name
    assert render(report.alternative(made), "en") in svg.replace("&gt;", ">")
    changed = replace(made, rows=made.rows[:3])
    plot.draw(changed, tmp_path)
    assert files[0].read_bytes() != png
