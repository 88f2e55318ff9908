"""Exploring and judging queries, and the plans that are made of them: the paper's rules, and going on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from localmed.answering.planning import SourcePlan, read_plan
from localmed.domain import Hit
from localmed.lab import exploring
from localmed.lab.exploring import Drawn, Explorer, Judged, distinct
from localmed.lab.reporting import Rows, stored
from localmed.lab.sets import Question
from tests.scripted import ScriptedChat
from tests.values import evidence, hit

QUESTIONS = (Question("q1", "How is asthma treated?"), Question("q2", "What does metformin do?"))
SOURCES = ("book", "guideline")
MADE = {"seed": "1"}


class Counting:
    """A judge for whom the passages of ``good`` queries are right, counting how often each was judged."""

    name = "counting"

    def __init__(self, *good: str, base: float = 0.4) -> None:
        self.good, self.base = good, base
        self.asked: list[tuple[str, str]] = []

    def judge(self, question: str, hits: Sequence[Hit]) -> tuple[bool, float]:
        text = hits[0].passage.text if hits else ""
        self.asked.append((question, text))
        return (True, 0.9) if text in self.good else (True, self.base)


def explorer(judge: Any, replies: Any, candidates: int = 2) -> Explorer:
    search = lambda source, query: (hit(f"{source}: {query}", source),)  # noqa: E731
    return Explorer(ScriptedChat(replies), SOURCES, search, judge, lambda _: ("asthma",), candidates)


def explored_by(explorer: Explorer, questions: Any, file: Path | None, resume: bool = False) -> list[Drawn | Judged]:
    """Every row, in its order."""
    kept: exploring.Kept = Rows(file, MADE, resume, *exploring.KEPT)
    return [row for question in questions for row in explorer.units(question, kept)]


def two(*_: Any) -> dict[str, Any]:
    return {"queries": ["steroids", "inhalers"]}


def test_queries_are_drawn_judged_and_made_into_plans(tmp_path: Path) -> None:
    judge = Counting("book: steroids", "guideline: asthma")
    explored = explored_by(explorer(judge, two), QUESTIONS[:1], tmp_path / "rows.jsonl")
    assert [row.queries for row in explored if isinstance(row, Drawn)] == [("steroids", "inhalers")] * 2
    judged = [row.query for row in explored if isinstance(row, Judged) and row.source == "book"]
    assert judged == ["steroids", "inhalers", "How is asthma treated?", "asthma"], "the rules' queries stand beside"
    (pair,) = exploring.pairs(explored, QUESTIONS[:1], SOURCES, seed=1)
    assert read_plan(json.loads(pair.positive)) == SourcePlan(book=("steroids",), guideline=("asthma",))
    negative = read_plan(json.loads(pair.negative))
    assert set(negative.book) == {"inhalers", "How is asthma treated?", "asthma"}
    assert "steroids" in negative.guideline
    assert pair.messages[1].content.startswith("How is asthma treated?\n\nbook:")


def test_what_the_reader_knows_by_itself_and_ties_are_no_merit() -> None:
    """Every query is answered rightly, none more surely than without passages."""
    judge = Counting(base=0.9)
    explored = explored_by(explorer(judge, two), QUESTIONS[:1], None)
    assert not exploring.pairs(explored, QUESTIONS[:1], SOURCES, seed=1), "no positive query: left out"


def row(source: str, query: str, right: bool) -> Judged:
    return Judged("q1", source, query, (), right, float(right), 0.0)


def test_three_of_many_are_drawn_and_an_empty_source_stays_empty() -> None:
    many = [row("book", f"query {number}", True) for number in range(6)]
    drawn = [Drawn("q1", source, (), 0.0) for source in SOURCES]
    explored: list[Drawn | Judged] = [row("", "", False), *drawn, *many]
    (pair,) = exploring.pairs(explored, QUESTIONS[:1], SOURCES, seed=1)
    plan = read_plan(json.loads(pair.positive))
    assert len(plan.book) == 3
    assert not plan.guideline
    assert not pair.negative, "no pair to prefer by: everything was positive"
    (again,) = exploring.pairs(explored, QUESTIONS[:1], SOURCES, seed=1)
    assert again == pair
    assert len({exploring.pairs(explored, QUESTIONS[:1], SOURCES, seed)[0].positive for seed in range(8)}) > 1
    half = [explored[0], drawn[0], *many]
    assert not exploring.pairs(half, QUESTIONS[:1], SOURCES, seed=1), "not explored to the end"


def test_what_repeats_itself_counts_once_and_is_drawn_again() -> None:
    replies = [{"queries": ["Asthma  drugs", "asthma drugs"]}, {"queries": [" a ", "Inhalers"]}]
    chat = explorer(Counting(), replies)
    kept: exploring.Kept = Rows(None, MADE, False, *exploring.KEPT)
    units = chat.units(QUESTIONS[0], kept)
    drawn = next(row for row in units if isinstance(row, Drawn))
    assert drawn.queries == ("Asthma drugs", "Inhalers"), "what no plan can hold is left out"
    assert distinct(["A b", "a  B", "c"]) == ("A b", "c")


def test_a_known_document_and_a_reader_judge() -> None:
    passages = [hit("one", "One"), hit("two", "Two")]
    names = [one.passage.document_id for one in passages]
    judge = exploring.by_documents({"q1": {names[1]: 1}})
    assert judge.judge("q1", passages) == (True, 0.5)
    assert judge.judge("q1", passages[:1]) == (False, 0.0)
    shown: list[int] = []

    def read(_: str, pieces: tuple[Any, ...]) -> tuple[float, ...]:
        shown.append(len(pieces))
        return (0.2, 0.8) if pieces else (0.5, 0.5)

    reader = exploring.by_reader({"q1": 1}, read, lambda hits: tuple(evidence("1", "text") for _ in hits))
    assert reader.judge("q1", passages) == (True, 0.8)
    assert reader.judge("q1", ()) == (False, 0.5), "as sure of another option is not right"
    assert shown == [2, 0]


def test_nothing_is_drawn_or_judged_twice_and_nothing_is_lost(tmp_path: Path) -> None:
    """Cut off within every line that an interruption might leave: the rows are the same in the end."""
    file = tmp_path / "rows.jsonl"
    judge = Counting("book: steroids")
    whole = explored_by(explorer(judge, two), QUESTIONS, file)
    lines = file.read_text("utf-8").splitlines(keepends=True)
    for kept in range(1, len(lines)):
        file.write_text("".join(lines[:kept]) + lines[kept][:5])
        again = Counting("book: steroids")
        rows = explored_by(explorer(again, two), QUESTIONS, file, resume=True)
        assert [replace(row, seconds=0) for row in rows] == [replace(row, seconds=0) for row in whole]
        assert len(again.asked) == len(judge.asked) - sum("score" in json.loads(line) for line in lines[1:kept])
        assert len(file.read_text("utf-8").splitlines()) == len(lines)


def test_pairs_are_read_as_they_were_written(tmp_path: Path) -> None:
    pair = exploring.Pair("q1", "How is asthma treated?", SOURCES, '{"book": ["asthma"], "guideline": []}', "")
    (tmp_path / "explored.jsonl").write_bytes(b"")
    exploring.write(tmp_path / "pairs.jsonl", MADE, [pair], tmp_path / "explored.jsonl")
    made = {**MADE, "explored": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}  # of nothing
    assert stored(tmp_path / "pairs.jsonl", exploring.Pair)[0] == made
    assert exploring.read(tmp_path / "pairs.jsonl") == [pair]
