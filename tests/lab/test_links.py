"""Link-Eval: answers worked by hand as in the paper's Fig. 5, what is undefined, the flow that asks, and batches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from localmed.answering.asking import FLUENCY, RELEVANCE
from localmed.answering.chat import ChatRoles
from localmed.answering.role_table import role_table
from localmed.answering.roles import Performer
from localmed.cli.common import plain
from localmed.domain import Answer, AnswerStatus, Message, SearchFilter
from localmed.domain.errors import InputError, Rejected
from localmed.domain.findings import Finding
from localmed.domain.ports import Stance
from localmed.lab import links, sets
from localmed.lab.links import (
    METRICS,
    MOST_COMPARED,
    LinkCounts,
    LinkInput,
    LinkRow,
    LinkSource,
    LinkStatement,
    evaluate,
    of_answer,
)
from localmed.lab.sets import Question
from localmed.messages import render
from localmed.process.hooks import Hooks
from localmed.retrieval.tiers import Tier
from localmed.text.language import words
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Driver, Judge, Perform
from tests.fakes import Steps, services
from tests.scripted import Said, ScriptedChat
from tests.values import PROVENANCE, evidence, finding, passage, quotation

ENGLISH = ("en",)
YES, NEUTRAL, NO = Stance(1.0, 0.0, 0.0), Stance(0.0, 1.0, 0.0), Stance(0.0, 0.0, 1.0)


def by_words(premise: str, hypothesis: str) -> Stance:
    """Entailed if every word is there; contradicted if what is left of one without its "not" is the other."""
    held, stated = set(words(premise)), set(words(hypothesis))
    if held ^ stated == {"not"}:
        return NO
    return YES if stated <= held else NEUTRAL


def counted(task: LinkInput, scores: Sequence[float | None] = ()) -> LinkCounts:
    """The counts by ``by_words``, as the flow takes them."""
    stances = {pair: by_words(*pair) for pair in links.pairs(task, ENGLISH)}
    right = links.entailed_sets(links.citation_sets(task, ENGLISH), stances)
    stances |= {pair: by_words(*pair) for pair in links.reduced_pairs(right)}
    return links.count_links(task, ENGLISH, stances, scores or (None,) * len(task.sources))


def source(marker: str, text: str) -> LinkSource:
    return LinkSource(marker, replace(passage(text, title=""), headings=()))


def says(text: str, *markers: str) -> LinkStatement:
    return LinkStatement(text, markers)


SOURCES = (
    source("1", "Zinc, if taken early, makes colds shorter."),
    source("2", "In trials honey eased cough at night."),
    source("3", "Cough at night, and colds, are common."),
    source("4", "Rest helps."),
    source("", "Fluids help in any cold."),
)
# By hand. Set 1 {1}: correct, 1 irreplaceable. Set 2 {2, 3}: correct by 2 alone, so 2 is irreplaceable and 3 is not.
# Set 3 {3, 4}: not correct. RC/NC = 2/3; N/M = 2/5. Valid: 1, 2, 5th (scores above 0.6); of these 1 and 2 are cited
# correctly: W/V = 2/3.
WORKED = LinkInput(
    "What helps in a cold?",
    (
        says("Zinc makes colds shorter.", "1"),
        says("Honey eased night cough.", "2", "3"),
        says("Garlic cures colds.", "3", "4"),
        says("See a doctor."),
    ),
    SOURCES,
)
SCORES = (0.9, 0.8, 0.3, 0.5, 0.7)
HONEY = says("Honey eased night cough.", "2")
FOREIGN = (*SOURCES[:4], source("5", "发热的儿童可以服用对乙酰氨基酚。"))
BY_HAND: dict[str, tuple[LinkInput, Sequence[float | None], dict[str, Any]]] = {
    "the worked example": (WORKED, SCORES, {
        "citation_set_precision": 2 / 3, "citation_precision": 2 / 5, "citation_recall": 2 / 3, "statements": 4,
        "uncited": 1, "sets": 3, "citations": 5, "references": 5, "valid": 3, "valid_cited": 2, "consistency": 1.0,
        "statement_correctness": None, "fluency": None}),
    "one source": (LinkInput("?", (HONEY,), SOURCES), SCORES, {"citation_precision": 1.0, "citation_recall": 1 / 3}),
    "with a second that says the same neither is irreplaceable": (
        LinkInput("?", (replace(HONEY, markers=("2", "6")),), (*SOURCES, source("6", "Honey eased night cough too."))),
        (*SCORES, 0.9), {"citation_set_precision": 1.0, "citation_precision": 0.0, "citation_recall": 0.0}),
    "nothing cited is not perfect": (
        replace(WORKED, statements=(says("Garlic cures colds."), says("See a doctor."))), SCORES,
        {"citation_set_precision": None, "citation_precision": None, "citation_recall": 0.0, "uncited": 2}),
    "markers without a source": (
        LinkInput("?", (says("Rest helps.", "4", "9"), says("Garlic cures.", "8")), SOURCES), SCORES,
        {"sets": 2, "correct_sets": 1, "citations": 3, "correct_citations": 1, "unresolved": 2}),
    "evidence in another language counts nowhere and is told": (
        replace(WORKED, statements=(*WORKED.statements, says("Paracetamol lowers fever.", "1", "5")), sources=FOREIGN),
        (*SCORES[:4], None),
        {"sets": 3, "unjudged_sets": 1, "citations": 5, "unjudged_references": 1, "citation_recall": 1.0}),
    "a valid reference cited only where nobody judged is no miss": (
        LinkInput("?", (says("锌可以缩短感冒。", "1"), HONEY), SOURCES), SCORES,
        {"valid": 2, "valid_cited": 1, "unjudged_references": 1, "unjudged_pairs": 1, "consistency": None}),
}  # fmt: skip


@pytest.mark.parametrize("case", BY_HAND)
def test_what_is_worked_out_by_hand(case: str) -> None:
    task, scores, expected = BY_HAND[case]
    counts = counted(task, scores)
    assert {name: getattr(counts, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("task", "verbatim"),
    [
        (LinkInput("?", (says("Rest helps.", "4"),), SOURCES), 1),
        (LinkInput("?", (says("Rest helps.", "1", "2"),), (source("1", ""), source("2", " . "))), 0),
    ],
)
def test_word_for_word_and_empty_evidence_need_no_judge(task: LinkInput, verbatim: int) -> None:
    assert links.pairs(task, ENGLISH) == ()
    counts = counted(task)
    assert (counts.correct_sets, counts.verbatim_sets, counts.correct_citations) == (verbatim,) * 3


@pytest.mark.parametrize(
    ("texts", "gold", "consistency", "correctness"),
    [
        (("Zinc helps.", "Zinc not helps.", "Honey cures."), "Honey cures.", 0.0, 0.0),
        (("Zinc helps.", "Honey helps."), "Honey helps.", 1.0, 1.0),
        (("Zinc helps.", "Honey helps."), "Rest helps.", 1.0, 0.0),
        (("Zinc helps.", "Honey helps."), "", 1.0, None),
        (("Zinc helps.", "Zinc not helps."), "", 0.0, None),
        (("Zinc helps.",), "zinc", None, 1.0),
        (("Zinc not helps.",), "zinc helps", None, 0.0),
        (("Zinc helps.", "蜂蜜有效。"), "Zinc helps.", None, None),
    ],
)
def test_correctness(texts: tuple[str, ...], gold: str, consistency: float | None, correctness: float | None) -> None:
    counts = counted(LinkInput("?", tuple(map(says, texts)), (), gold))
    assert (counts.consistency, counts.statement_correctness) == (consistency, correctness)


def test_a_contradiction_counts_in_whichever_order_the_judge_sees_it() -> None:
    task = LinkInput("?", (says("Zinc helps."), says("Zinc harms.")))
    stances = dict.fromkeys(links.pairs(task, ENGLISH), NEUTRAL) | {("Zinc harms.", "Zinc helps."): NO}
    assert links.count_links(task, ENGLISH, stances, ()).conflicts == 1


TEXTS = st.lists(st.sampled_from(("zinc", "honey", "rest", "helps", "not", "cough")), max_size=4).map(" ".join)
INPUTS = st.builds(
    lambda statements, texts, gold: LinkInput(
        "?", tuple(statements), tuple(source(str(n), text) for n, text in enumerate(texts, 1)), gold
    ),
    st.lists(st.builds(LinkStatement, TEXTS, st.lists(st.sampled_from("12345"), max_size=4).map(tuple)), max_size=5),
    st.lists(TEXTS, max_size=4),
    st.sampled_from(("", "zinc helps")),
)


@drawn(INPUTS, st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_bounds_hold_and_order_does_not_matter(task: LinkInput, random: Random) -> None:
    def scored(one: LinkInput) -> LinkCounts:
        return counted(one, [(None, 0.9, 0.3)[len(cited.passage.text) % 3] for cited in one.sources])

    counts = scored(task)
    assert all(value is None or 0 <= value <= 1 for value in counts.metrics().values())
    assert counts.verbatim_sets <= counts.correct_sets <= counts.sets
    assert counts.correct_citations <= counts.citations - counts.unresolved
    assert counts.valid_cited <= counts.valid <= counts.references
    assert counts.sets + counts.unjudged_sets + counts.uncited == counts.statements
    statements, sources = list(task.statements), list(task.sources)
    random.shuffle(statements)
    random.shuffle(sources)
    turned = tuple(replace(one, markers=one.markers[::-1] + one.markers[:1]) for one in statements)
    assert scored(replace(task, statements=turned, sources=tuple(sources))) == counts


def test_an_answer_of_the_library() -> None:
    one, other = evidence("1", "Give 5 mg by mouth. Store it."), evidence("2", "Keep dark.")
    shown, withheld = quotation(one, 0, 19), replace(quotation(other, 0, 10), withheld=True)
    answer = Answer(AnswerStatus.ANSWERED, "Dose?", "en", (shown, withheld), (one, other), (), PROVENANCE)
    task = of_answer(answer, "5 mg")
    assert task.statements == (says("Give 5 mg by mouth.", "1"),)
    assert [cited.marker for cited in task.sources] == ["1"]
    assert task.retrieved
    counts = counted(task, (0.9,))
    assert (counts.citation_precision, counts.citation_recall, counts.statement_correctness) == (1.0, 1.0, 1.0)


# --- the flow ---------------------------------------------------------------------------------------------------------

PLAN = Plan((Tier(("guidelines",), whole=True),), 8)
JUDGED = replace(PLAN, chat=frozenset({RELEVANCE.name, FLUENCY.name}))
HELPS = [{"relevant": score, "irrelevant": 1 - score} for score in SCORES]
READS: list[Said] = [{"fluent": 0.9, "awkward": 0.1}, {"fluent": 0.5, "awkward": 0.5}, "awkward", "fluent"]


def found(*texts: str) -> Finding:
    """A section for each text."""
    return finding(*(passage(text, "") for text in texts), question="?")


def run(
    task: LinkInput, again: Finding | None = None, chat: Performer | None = None, languages: Sequence[str] = ENGLISH
) -> tuple[LinkCounts, list[Any]]:
    """The counts, and what was asked for."""
    requests: list[Any] = []
    roles = {role.name: role for role in (RELEVANCE, FLUENCY)}
    served = role_table(roles, "chat" if chat else "rules", {}, {}, chat)
    answering = services(
        served, find=lambda *_: again or found(), judge=lambda pairs: [by_words(*pair) for pair in pairs]
    )
    driver = Driver(answering, Hooks(recorder=Steps(lambda request, _: requests.append(request))))
    return driver.part(evaluate(task, SearchFilter(), JUDGED if chat else PLAN, languages)), requests


def chat(*labels: Said) -> ChatRoles:
    """A chat model that judges references and statements so."""
    return ChatRoles(ScriptedChat(labels))


def test_the_worked_example_comes_through_the_flow() -> None:
    counts, requests = run(WORKED, chat=chat(*HELPS, *READS))
    assert counts == replace(counted(WORKED, SCORES), fluency=counts.fluency)
    assert counts.fluency == pytest.approx((0.9 + 0.5 + 0.0 + 1.0) / 4)
    assert [type(request) for request in requests] == [Perform, Judge, Judge, Perform]
    assert len(requests[1].pairs) == 3 + 4 * 3
    assert len(requests[2].pairs) == 2, "the set of two, without each of them; a set of one has nothing left"


class Rejecting:
    """A chat model whose replies cannot be used."""

    def perform(self, role: Any, task: Any) -> Any:
        raise Rejected("agents.nothing_said")


@pytest.mark.parametrize("judge", [None, Rejecting()])
def test_without_a_usable_chat_model_references_and_fluency_are_not_measured(judge: Any) -> None:
    counts, _ = run(WORKED, chat=judge)
    assert (counts.citation_set_precision, counts.citation_precision) == (2 / 3, 2 / 5)
    assert (counts.citation_recall, counts.references, counts.unjudged_references) == (None, 0, 5)
    assert counts.fluency is None


def test_without_a_judge_only_quotations_are_counted() -> None:
    quoted = replace(WORKED, statements=(*WORKED.statements, says("Rest helps.", "4")))
    counts, _ = run(quoted, languages=())
    assert (counts.sets, counts.correct_sets, counts.verbatim_sets, counts.unjudged_sets) == (1, 1, 1, 3)
    assert (counts.pairs, counts.conflicts, counts.gold) == (0, 0, None)


def test_what_was_retrieved_and_not_cited_is_looked_for_again() -> None:
    cited = replace(WORKED, sources=SOURCES[:4], retrieved=True)
    again = found("Zinc again: nobody cites it.", "Nor this.")
    counts, requests = run(cited, again, chat(*HELPS[:4], "relevant", "relevant", *READS))
    assert [request.name for request in requests][:2] == ["find", "relevance"]
    assert (counts.references, counts.valid, counts.valid_cited) == (6, 4, 2)
    given, _ = run(replace(cited, retrieved=False), again, chat(*HELPS[:4], *READS))
    assert given.references == 4


def test_no_statement_and_too_many() -> None:
    assert run(LinkInput("?", ()))[0].statements == 0
    many = LinkInput("?", tuple(says(f"Drug {number} helps.") for number in range(MOST_COMPARED + 1)))
    assert run(many)[0].uncited == MOST_COMPARED + 1


# --- batches ----------------------------------------------------------------------------------------------------------

SECRET = "Patientname Zyxwvut"
MADE = {"judge": "words 1", "valid_from": "0.55", "encoder": "e", "generation": "0001", "version": "0"}
HALF = LinkCounts(statements=3, uncited=1, sets=2, correct_sets=1, citations=4, correct_citations=1, valid=2)
FULL = LinkCounts(statements=1, sets=1, correct_sets=1, citations=1, correct_citations=1, pairs=1, gold=1)


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, "utf-8")
    return folder / name


def test_answers_written_elsewhere(tmp_path: Path) -> None:
    questions = sets.questions(write(tmp_path, "q.tsv", "1\tWhat dose?\t5 mg\n2\tHow long?\n3\t多少？\n"))
    text = "Give e.g. 5.5 mg to Dr. Lee's patient. [1, 3] Repeat it once.[2] Ask her. [1"
    sources = ["Adults: 5 mg.", {"title": "Leaflet", "text": "Once more.", "marker": "[2]"}]
    records = [{"question": "What dose?", "answer": text, "sources": sources},
               {"id": "3", "answer": "每日不超过4克。[1]肝病患者减半。【2】", "sources": []}]  # fmt: skip
    answers = links.answers(questions, write(tmp_path, "a.jsonl", "\n".join(map(json.dumps, records))))
    assert list(answers) == ["1", "3"]
    answer = answers["1"]
    assert [one.markers for one in answer.statements] == [("1", "3"), ("2",), ()]
    assert answer.statements[0].text == "Give e.g. 5.5 mg to Dr. Lee's patient."
    assert [(one.marker, one.passage.title) for one in answer.sources] == [("1", ""), ("2", "Leaflet")]
    assert (answer.gold, answer.retrieved, answer.malformed) == ("5 mg", False, 1)
    assert answers["3"].statements == (says("每日不超过4克。", "1"), says("肝病患者减半。", "2"))


@pytest.mark.parametrize(
    "record",
    [
        {"id": "7", "answer": SECRET},
        {"question": SECRET, "answer": "x"},
        {"id": "1"},
        {"id": "1", "answer": SECRET, "sources": [[SECRET]]},
        {"id": "1", "answer": SECRET, "sources": [SECRET] * 201},
        {"id": "1", "answer": 5},
    ],
)
def test_what_is_no_answer_is_refused_without_its_text(tmp_path: Path, record: dict[str, object]) -> None:
    with pytest.raises(InputError) as error:
        links.answers((Question("1", "One?"),), write(tmp_path, "a.jsonl", json.dumps(record)))
    assert "Zyxwvut" not in str(error.value)


@pytest.mark.extra("eval")
def test_means_leave_out_what_is_undefined() -> None:
    rows = [LinkRow("1", "en", "answered", HALF), LinkRow("2", "en", "answered", FULL), LinkRow("3", "en", "abstained")]
    report = links.report(rows, MADE, seed=1)
    by_name = {row["metric"]: row for row in report.values["metrics"]}
    assert tuple(by_name) == METRICS
    precision, recall = by_name["citation_precision"], by_name["citation_recall"]
    assert (precision["mean"], recall["mean"]) == ((0.25 + 1) / 2, 0.0)
    assert (recall["defined"], recall["undefined"], recall["low"]) == (1, 1, None)
    assert report.values["statuses"] == {"answered": 2, "abstained": 1}
    assert report.values["totals"]["citations"] == 5
    assert 0.25 <= precision["low"] <= precision["high"] <= 1
    assert report.values == links.report(rows, MADE, seed=1).values


def test_undefined_is_said_in_words() -> None:
    report = links.report([LinkRow("1", "en", "answered", LinkCounts(statements=1, uncited=1))], MADE, seed=1)
    means = [row[1] for row in report.tables[0].cells]
    assert means == [*[Message("column.undefined")] * 5, Message("column.not_measured")]
    assert report.csv.splitlines()[1].startswith("1,en,answered,,,,,,,1,1,")
    assert plain(report.values)["rows"][0]["metrics"]["citation_precision"] is None
    assert any("1 without a citation" in render(fact, "en") for fact in report.facts)
