"""The tables of Answered with Evidence: equal to the paper's own figures from its joint distribution (Table 2d)."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import pytest

from localmed.cli.common import plain
from localmed.domain import Badge
from localmed.lab import badges
from localmed.lab.badges import BadgeRow
from localmed.lab.reporting import Report
from localmed.messages import render

# The counts of Table 2d: Atropos, System, Perplexity.
JOINT = {
    "ggg": 110, "ggr": 218, "ggy": 53, "grg": 81, "grr": 180, "gry": 119, "gyg": 6, "gyr": 13, "rgg": 48, "rgr": 115,
    "rgy": 41, "rrg": 56, "rrr": 125, "rry": 132, "ryg": 3, "ryr": 5, "ryy": 2, "ygg": 35, "ygr": 121, "ygy": 33,
    "yrg": 30, "yrr": 101, "yry": 98, "yyg": 2, "yyr": 11, "yyy": 1,
}  # fmt: skip
NAMES = ("Atropos", "System", "Perplexity")
COLOURS = {"g": Badge.GREEN, "y": Badge.YELLOW, "r": Badge.RED}


def rows(badges_: Mapping[str, Mapping[str, Badge]]) -> list[BadgeRow]:
    return [BadgeRow(name, source, badge.value) for name, row in badges_.items() for source, badge in row.items()]


@pytest.fixture(scope="module")
def paper() -> Report:
    badges_ = {
        f"{colours}{number}": dict(zip(NAMES, (COLOURS[colour] for colour in colours), strict=True))
        for colours, count in JOINT.items()
        for number in range(count)
    }
    return badges.report(rows(badges_), {"judge": "the paper's"})


def test_the_papers_figures(paper: Report) -> None:
    values = paper.values
    assert values["questions"] == 1739
    perplexity = values["summaries"][2]
    assert (perplexity["green"], perplexity["yellow"], perplexity["red"]) == (371, 479, 889)
    agreed = {(row["first"], row["second"]): row for row in values["agreements"]}
    both = agreed["System", "Perplexity"]
    assert both["matrix"] == [[193, 127, 454], [11, 3, 29], [167, 349, 406]]
    assert [round(both[name], 3) for name in ("both", "neither", "overall")] == [0.111, 0.453, 0.564]
    assert agreed["Atropos", "Perplexity"]["matrix"] == [[197, 172, 411], [67, 132, 233], [107, 175, 245]]
    assert round(values["at_least_one_green"], 3) == 0.727
    assert {name: round(share, 3) for name, share in values["novelty"]} == {
        "Atropos": 0.179, "System": 0.178, "Perplexity": 0.052,
    }  # fmt: skip
    assert dict(values["combinations"])["green", "green", "green"] == 110
    assert sum(count for _, count in values["combinations"]) == 1739


def test_unanswered_counts_as_red_and_all_sources_stand_in_the_first_table_only() -> None:
    badges_ = {"1": {"a": Badge.NONE, "b": Badge.GREEN}, "2": {"a": Badge.RED, "b": Badge.NONE}}
    values = badges.report(rows(badges_), {}).values
    assert [tuple(row.values()) for row in values["summaries"]] == [("a", 0, 0, 2, 1), ("b", 1, 0, 1, 1)]
    assert values["at_least_one_green"] == 0.5
    one = badges.report(rows({"1": {"a": Badge.GREEN}}), {})
    assert (one.values["agreements"], len(one.tables)) == ([], 1), "one source has no agreement"
    row = {"a": Badge.RED, "b": Badge.RED, badges.COMBINED: Badge.GREEN}
    both = badges.report(rows({"1": row}), {}).values
    assert [summary["source"] for summary in both["summaries"]] == ["a", "b", badges.COMBINED]
    assert both["at_least_one_green"] == 0


@pytest.mark.extra("eval")
def test_csv_json_and_plot(paper: Report, tmp_path: Path) -> None:
    assert paper.draw
    lines = list(csv.DictReader(io.StringIO(paper.csv)))
    assert {"table": "summary", "row": "System", "column": "green", "value": "774"} in lines
    assert plain(paper.values)["questions"] == 1739
    png, svg = paper.draw(tmp_path, "en")
    assert png.stat().st_size > 1000
    assert "Perplexity" in svg.read_text()
    assert any("at least one source is green for 72.7%" in render(fact, "en") for fact in paper.facts)
