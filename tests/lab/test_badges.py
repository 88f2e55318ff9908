"""The tables of Answered with Evidence: equal to the paper's own figures from its joint distribution (Table 2d)."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from localmed.cli.common import plain
from localmed.domain import Badge
from localmed.domain.errors import InputError, UsageError
from localmed.lab import badges, plot, rows
from localmed.messages import render

# The counts of Table 2d: Atropos, System, Perplexity.
JOINT = {
    "ggg": 110, "ggr": 218, "ggy": 53, "grg": 81, "grr": 180, "gry": 119, "gyg": 6, "gyr": 13, "rgg": 48, "rgr": 115,
    "rgy": 41, "rrg": 56, "rrr": 125, "rry": 132, "ryg": 3, "ryr": 5, "ryy": 2, "ygg": 35, "ygr": 121, "ygy": 33,
    "yrg": 30, "yrr": 101, "yry": 98, "yyg": 2, "yyr": 11, "yyy": 1,
}  # fmt: skip
NAMES = ("Atropos", "System", "Perplexity")
COLOURS = {"g": Badge.GREEN, "y": Badge.YELLOW, "r": Badge.RED}


@pytest.fixture(scope="module")
def paper() -> badges.BadgeReport:
    badges_ = {
        f"{colours}{number}": dict(zip(NAMES, (COLOURS[colour] for colour in colours), strict=True))
        for colours, count in JOINT.items()
        for number in range(count)
    }
    return badges.report(badges_, NAMES, {"judge": "the paper's"})


def test_the_papers_figures(paper: badges.BadgeReport) -> None:
    assert paper.questions == 1739
    perplexity = paper.summaries[2]
    assert (perplexity.green, perplexity.yellow, perplexity.red) == (371, 479, 889)
    agreed = {(agreement.first, agreement.second): agreement for agreement in paper.agreements}
    both = agreed["System", "Perplexity"]
    assert both.matrix == ((193, 127, 454), (11, 3, 29), (167, 349, 406))
    assert [round(share, 3) for share in (both.both_green, both.neither_green, both.overall)] == [0.111, 0.453, 0.564]
    assert agreed["Atropos", "Perplexity"].matrix == ((197, 172, 411), (67, 132, 233), (107, 175, 245))
    assert round(paper.at_least_one_green, 3) == 0.727
    assert {name: round(share, 3) for name, share in paper.novelty} == {
        "Atropos": 0.179, "System": 0.178, "Perplexity": 0.052,
    }  # fmt: skip
    assert dict(paper.combinations)["green", "green", "green"] == 110
    assert sum(count for _, count in paper.combinations) == 1739


def test_unanswered_counts_as_red_and_is_told_apart() -> None:
    badges_ = {"1": {"a": Badge.NONE, "b": Badge.GREEN}, "2": {"a": Badge.RED, "b": Badge.NONE}}
    made = badges.report(badges_, ("a", "b"), {})
    assert made.summaries == (badges.Summary("a", 0, 0, 2, 1), badges.Summary("b", 1, 0, 1, 1))
    assert made.at_least_one_green == 0.5


def test_one_source_has_no_agreement_and_all_sources_stand_in_the_first_table_only() -> None:
    one = badges.report({"1": {"a": Badge.GREEN}}, ("a",), {})
    assert (one.agreements, len(badges.tables(one))) == ((), 1)
    row = {"a": Badge.RED, "b": Badge.RED, badges.COMBINED: Badge.GREEN}
    both = badges.report({"1": row}, ("a", "b"), {})
    assert [summary.source for summary in both.summaries] == ["a", "b", badges.COMBINED]
    assert both.at_least_one_green == 0


@pytest.mark.extra("eval")
def test_csv_json_and_plot(paper: badges.BadgeReport, tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(badges.as_csv(paper))))
    assert {"table": "summary", "row": "System", "column": "green", "value": "774"} in rows
    assert plain(paper)["questions"] == 1739
    png, svg = plot.draw_badges(paper, tmp_path)
    assert png.stat().st_size > 1000
    assert "Perplexity" in svg.read_text()
    assert render(badges.tables(paper)[0][0], "zh") == "各来源的标记"
    assert any("at least one source is green for 72.7%" in render(fact, "en") for fact in badges.facts(paper))


def test_rows_outlive_an_interruption(tmp_path: Path) -> None:
    file, made = tmp_path / "rows.jsonl", {"questions": "1"}
    assert rows.begin_badges(file, made, resume=False) == {}
    rows.keep_badge(file, ("1", "a"), Badge.GREEN)
    with file.open("a") as stream:
        stream.write('["2", "a", "gre')  # cut off
    assert rows.begin_badges(file, made, resume=True) == {("1", "a"): Badge.GREEN}
    with pytest.raises(UsageError, match="other questions"):
        rows.begin_badges(file, {"questions": "2"}, resume=True)
    with pytest.raises(InputError, match="cannot be written"):
        rows.begin_badges(tmp_path, made, resume=False)
