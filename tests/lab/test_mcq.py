"""Multiple choice: reading the sets, orders and averages, rows that survive, and figures worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localmed.domain import Answer, AnswerStatus, Provenance
from localmed.domain.errors import InputError, ModelError, TooLong, UsageError
from localmed.domain.ports import UNWATCHED, Stance
from localmed.lab import mcq, multiple_choice
from localmed.lab.mcq import Bench, McqRow, Meter
from localmed.lab.multiple_choice import LETTERS, McqQuestion, McqSet
from localmed.lab.reporting import Rows
from tests.scripted import ScriptedChat
from tests.values import evidence

QUESTION = McqQuestion("1", "Which vitamin prevents scurvy?", ("A1", "B12", "C", "D3"), 2)

FILES = {
    "jsonl": '{"realidx": 7, "question": "Q?", "options": {"A": "x", "B": "y", "C": "z"}, "answer_idx": "C"}\n',
    "medqa": '{"question": "Q?", "answer": "z", "options": {"A": "x", "B": "y", "C": "z", "D": "", "E": "v"},'
    ' "answer_idx": "C"}\n',
    "medmcqa": "".join(
        json.dumps({"id": f"m{n}", "question": "Q?", "opa": "x", "opb": "y", "opc": "z", "opd": "v", "cop": n}) + "\n"
        for n in (3, 4)
    ),
    "pubmedqa": '{"123": {"QUESTION": "Q?", "CONTEXTS": ["secret"], "final_decision": "maybe"}}',
    "mmlu": '"Q?",x,y,z,v,C\n',
    "cmmlu": ",Question,A,B,C,D,Answer\n0,问？,x,y,z,v,C\n",
    "afrimedqa": 'sample_id,question,answer_options,correct_answer\na1,Q?,"{""option1"": ""x"", ""option2"": ""y"", '
    '""option3"": ""z""}",option3\na2,Q?,"{""option1"": ""x"", ""option2"": ""y""}","option1,option2"\n',
    "medbullets": "question,opa,opb,opc,opd,ope,answer_idx\nQ?,x,y,z,v,w,C\n",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(multiple_choice.formats()))
def test_every_public_format_is_read(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.txt"
    file.write_text(FILES[name], "utf-8")
    questions = multiple_choice.load(file, multiple_choice.format_named(name))
    first = questions.questions[0]
    assert first.answer == 2
    assert first.options[2] == ("maybe" if name == "pubmedqa" else "z")
    assert questions.left_out == (1 if name == "afrimedqa" else 0), "several right options are no single choice"
    assert "secret" not in str(first.text)
    assert "Q?" not in repr(first), "no log shows a question"


def loaded(folder: Path, rows: Sequence[Mapping[str, Any]], format_: str) -> McqSet:
    file = folder / "set.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    return multiple_choice.load(file, multiple_choice.format_named(format_))


def test_a_manifest_describes_another_layout(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        '[format]\nlayout = "lines"\nquestion = "stem"\noptions = "choices"\nanswer = "right"\ngives = "text"\n'
    )
    rows = [{"stem": "Q?", "choices": ["x", "y"], "right": "y"}, {"stem": "Q2?", "choices": ["x"], "right": "x"}]
    questions = loaded(tmp_path, rows, str(own))
    assert [question.answer for question in questions.questions] == [1]
    assert questions.left_out == 1


RECORD = {"question": "Q?", "opa": "x", "opb": "y", "opc": "z", "opd": "v"}


@pytest.mark.parametrize(
    ("cops", "first"),
    [((0, 1, 2, 3), 0), ((1, 2, 3, 4), 1), ((4, 1), 1), ((0, 3), 0), ((1, 2, 3), None), ((0, 4), None)],
)
def test_options_are_counted_as_the_file_shows_or_not_at_all(
    cops: tuple[int, ...], first: int | None, tmp_path: Path
) -> None:
    rows = [RECORD | {"id": str(cop), "cop": cop, "question": "Q?\ud800"} for cop in cops]
    if first is None:
        with pytest.raises(InputError) as refused:
            loaded(tmp_path, rows, "medmcqa")
        assert refused.value.message.code == "evaluation.mcq_numbers"
    else:
        questions = loaded(tmp_path, rows, "medmcqa").questions
        assert [question.answer for question in questions] == [cop - first for cop in cops]


@pytest.mark.parametrize("answer", ["²", "--1", "9" * 5000, "", None, [1], 9])
def test_an_answer_that_is_no_place_is_left_out(answer: Any, tmp_path: Path) -> None:
    rows = [RECORD | {"id": name, "cop": cop} for name, cop in (("a", 4), ("b", answer), ("c", 1.0))]
    questions = loaded(tmp_path, rows, "medmcqa")
    assert [(row.id, row.answer) for row in questions.questions] == [("a", 3), ("c", 0)]
    assert questions.left_out == 1


def test_what_is_no_set_and_what_has_more_options_than_letters(tmp_path: Path) -> None:
    rows = [{"id": name, "question": "Q?", "options": list(options), "answer_idx": "A"}
            for name, options in (("a", "xyz"), ("b", "abcdefghijkl"))]  # fmt: skip
    questions = loaded(tmp_path, rows, "medqa")
    assert ([row.id for row in questions.questions], questions.left_out) == (["a"], 1), "none is asked without some"
    for text in ("no json\n", '{"question": "Q?"}\n'):
        (tmp_path / "x.jsonl").write_text(text)
        with pytest.raises(InputError):
            multiple_choice.load(tmp_path / "x.jsonl", multiple_choice.format_named("jsonl"))
    (tmp_path / "own.toml").write_text('[format]\nlayout = "lines"\n')
    with pytest.raises(InputError):
        multiple_choice.format_named(str(tmp_path / "own.toml"))
    with pytest.raises(UsageError):
        multiple_choice.format_named("medqb")


# --- the choice -------------------------------------------------------------------------------------------------------


def test_each_option_stands_equally_often_in_each_place() -> None:
    orders = multiple_choice.orders(5, "1 set q")
    assert [sorted(column) for column in zip(*orders, strict=True)] == [sorted([*range(5)] * 2)] * 5
    assert orders == multiple_choice.orders(5, "1 set q")
    assert orders != multiple_choice.orders(5, "2 set q")


@pytest.mark.parametrize(("count", "every", "shown"), [(2, False, 2), (3, False, 6), (4, True, 24)])
def test_where_every_order_is_shown_no_seed_decides(count: int, every: bool, shown: int) -> None:
    """A model that likes what follows the option that it likes least: rotations of three alone would differ."""

    def answer(messages: Any) -> dict[str, float]:
        lines = [line[3:] for line in messages[-1].content.split("\n") if line[1:3] == ". "]
        after = dict(pairwise(lines))
        liked = LETTERS[lines.index(after.get("o1", "o0"))]
        return {letter: 0.1 + 0.5 * (letter == liked) for letter in LETTERS[:count]}

    options = [f"o{place}" for place in range(count)]
    seeds = [multiple_choice.orders(count, seed, every) for seed in "12345"]
    assert {len(set(orders)) for orders in seeds} == {shown}
    chosen = [multiple_choice.choose(ScriptedChat(answer), "Q?", options, orders) for orders in seeds]
    assert len({tuple(round(value, 9) for value in row.probabilities) for row in chosen}) == 1


def leaning(place: float) -> ScriptedChat:
    """A model that knows the answer a little and gives the letter A ``place`` besides."""

    def answer(messages: Any) -> dict[str, float]:
        lines = messages[-1].content.split("\n")
        right = next(line[0] for line in lines if line.endswith(". C"))
        return {letter: 0.1 + 0.2 * (letter == right) + place * (letter == "A") for letter in "ABCD"}

    return ScriptedChat(answer)


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_a_liking_for_a_place_cancels_out_and_is_reported(seed: str) -> None:
    chosen = multiple_choice.choose(leaning(0.6), QUESTION.text, QUESTION.options, multiple_choice.orders(4, seed))
    assert chosen.best == 2, "by single orders it would mostly be whatever stands first"
    assert chosen.flips == 0.75
    assert sum(chosen.probabilities) == pytest.approx(1)
    others = {round(value, 9) for place, value in enumerate(chosen.probabilities) if place != 2}
    assert len(others) == 1, "what the place got is spread evenly"
    assert chosen.places[0] > 0.5
    fair = multiple_choice.choose(leaning(0.0), QUESTION.text, QUESTION.options, multiple_choice.orders(4, seed))
    assert fair.places == pytest.approx((0.25,) * 4)
    assert fair.flips == 0


# --- rows -------------------------------------------------------------------------------------------------------------


def nothing_found(question: str, arm: str) -> Answer:
    provenance = Provenance("0001", "starter", (), (), "0")
    return Answer(AnswerStatus.ABSTAINED, question, "en", (), (), (), provenance)


def bench(chat: Any) -> Bench:
    return Bench(Meter(chat), nothing_found, lambda _text, _evidence: True, 1)


SET = McqSet("vitamins", tuple(replace(QUESTION, id=str(number)) for number in range(3)), 0)


def test_what_is_finished_is_not_asked_again(tmp_path: Path) -> None:
    file, arms = tmp_path / "rows.jsonl", ("chat", "retrieval")
    first = McqSet("vitamins", SET.questions[:1], 0)

    def rows_of(questions: McqSet, resume: bool) -> tuple[list[McqRow], int]:
        meter = bench(ScriptedChat({"": "A"}))
        kept = Rows(file, {}, resume, McqRow, "set", "id", "arm")
        return mcq.run(meter, [questions], arms, kept, lambda *_: None), meter.chat.calls

    one, _ = rows_of(first, False)
    every, _ = rows_of(SET, True)
    assert every[:2] == one, "to the second"
    assert rows_of(SET, True) == (every, 0)
    assert "scurvy" not in file.read_text()
    made = [mcq.made_with([SET], arms, 1), mcq.made_with([SET], arms, 2), mcq.made_with([first], arms, 1)]
    assert len({str(one) for one in made}) == 3, "whatever decides a batch decides what is gone on with"


def test_costs_are_counted_and_a_thought_goes_before_the_choice() -> None:
    seen: list[str] = []

    def answer(messages: Any) -> str:
        seen.append(messages[-1].content)
        return "Citrus fruit holds it." if "step by step" in messages[0].content else "A"

    row = bench(ScriptedChat(answer)).row("vitamins", QUESTION, "cot")
    assert row.calls == 2
    assert row.tokens_out == 4
    assert row.tokens_in > 30
    assert "Citrus fruit holds it." in seen[-1]
    assert row.abstained is False
    assert bench(ScriptedChat({"": "A"})).row("vitamins", QUESTION, "retrieval").abstained


def test_evidence_that_speaks_against_a_choice_is_told_and_it_is_taken_again() -> None:
    shown: list[str] = []
    found = replace(nothing_found("Q?", ""), status=AnswerStatus.ANSWERED, evidence=(evidence("1", "Ascorbic acid."),))

    def answer(messages: Any) -> str:
        shown.append(messages[-1].content)
        return "A"

    against = replace(bench(ScriptedChat(answer)), context=lambda *_: found, agrees=lambda *_: False)
    row = against.row("vitamins", QUESTION, "mairag")
    assert (row.regenerated, row.calls) == (True, 2)
    assert "speak against" in shown[-1]
    for arm in ("mairag-without-coherence", "retrieval"):
        assert not against.row("vitamins", QUESTION, arm).regenerated


# --- figures ----------------------------------------------------------------------------------------------------------


def row(set_name: str, name: str, arm: str, right: bool, sure: float = 0.7, abstained: bool = False) -> McqRow:
    rest = (1 - sure) / 3
    choice = 0 if right else 1
    return McqRow(set_name, name, arm, 0, choice, (sure, rest, rest, rest), (0.4, 0.2, 0.2, 0.2), 0.25, True, abstained,
                  False, 0, 1, 100, 0, 2.0, 1.5, 0.4, {}, {})  # fmt: skip


@pytest.mark.extra("eval")
def test_the_report_by_hand() -> None:
    rows = [row("one", str(n), "chat", n < 4, sure=0.4 if n >= 4 else 0.9) for n in range(10)]
    rows += [row("one", str(n), "mairag", n < 8, abstained=n >= 8) for n in range(10)]
    rows += [row("two", str(n), arm, n < 5) for n in range(10) for arm in ("chat", "mairag")]
    report = mcq.report(rows, {"one": 0, "two": 0}, {}, seed=1).values
    chat, mairag, *_ = (SimpleNamespace(**score) for score in report["scores"])
    assert (chat.accuracy, mairag.accuracy, mairag.abstained, mairag.answered) == (0.4, 0.8, 0.2, 1.0)
    assert chat.low is not None
    assert chat.low < 0.4 < (chat.high or 0)
    assert chat.p is None
    assert mairag.p is not None
    assert 0.05 < mairag.p < 0.2, "four of four differences one way: p = 0.125"
    assert chat.auroc == 1.0, "the wrong ones were all less sure"
    assert mairag.auroc == 0.5
    assert chat.bias == pytest.approx(0.15)
    assert chat.overhead == pytest.approx(0.05)
    assert report["ranks"] == {"chat": 1.75, "mairag": 1.25}, "second and a tie; first and a tie"
    assert report["agreement"][0][:3] == ("one", "chat", "mairag")
    assert report["agreement"][0][3] == pytest.approx(0.6)


def test_entropy_and_auroc() -> None:
    assert mcq.entropy((0.25,) * 4) == pytest.approx(1)
    assert mcq.entropy((1.0, 0.0)) == 0
    assert mcq.auroc([0.9, 0.1, 0.5], [True, False, True]) == 1.0
    assert mcq.auroc([0.5, 0.5], [True, False]) == 0.5
    assert mcq.auroc([0.5], [True]) is None


@pytest.mark.extra("eval")
def test_chains_of_thought_that_disagree_are_told_by_the_judge() -> None:
    """Two sentences against two samples; what a sample leaves open does not count."""
    temperatures: list[float] = []

    class Drawing(ScriptedChat):
        def complete(self, request: Any, watch: Any = UNWATCHED) -> Any:
            temperatures.append(request.temperature)
            return super().complete(request, watch)

    stances = [Stance(1.0, 0.0, 0.0), Stance(0.0, 1.0, 0.0), Stance(0.25, 0.5, 0.25), Stance(0.0, 0.0, 0.0)]
    read: list[tuple[str, str]] = []

    def judge(pairs: Any) -> list[Stance]:
        read.extend(pairs)
        return stances

    chat = Drawing(lambda messages: "Zinc helps. Iron does not." if "step by step" in messages[0].content else "A")
    row = replace(bench(chat), judge=judge, samples=2).row("vitamins", QUESTION, "cot")
    assert row.agreement == 0.75
    assert len(read) == 4
    assert temperatures == [0.0, 0.7, 0.7]
    assert bench(chat).row("vitamins", QUESTION, "cot").agreement is None
    rows = [replace(row, id=str(n), answer=n % 2, choice=0, agreement=0.9 if n % 2 == 0 else 0.2) for n in range(4)]
    (score,) = mcq.report(rows, {}, {}, 1).values["scores"]
    assert score["luq_auroc"] == 1.0


def test_a_question_that_does_not_fit_ends_no_batch_and_evidence_gives_way() -> None:
    class Short(ScriptedChat):
        def choose(self, prefix: Any, branches: Any, labels: Any, watch: Any = UNWATCHED) -> Any:
            if sum(self.count([message.content for message in prefix])) > self.identity.context:
                raise TooLong("chat.decision_too_long", context=1, needed=2)
            return super().choose(prefix, branches, labels, watch)

    assert bench(Short({"": "A"}, context=5)).row("vitamins", QUESTION, "chat").choice == -1
    long = replace(nothing_found("Q?", "retrieval"), evidence=(evidence("1", "Zinc. " * 400),))
    chat = Short({"": "A"}, context=150)
    row = replace(bench(chat), context=lambda _question, _arm: long).row("vitamins", QUESTION, "retrieval")
    assert row.choice >= 0, "the evidence was left out"
    assert not row.too_long
    failing = ScriptedChat([])  # says nothing: a model that fails ends the batch
    with pytest.raises(ModelError):
        bench(failing).row("vitamins", QUESTION, "chat")
