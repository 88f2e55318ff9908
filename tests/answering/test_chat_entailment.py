"""Entailment by a chat model: labels, order, languages and the shared prefix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from localmed.answering.chat_entailment import ChatEntailment, YesNo
from localmed.answering.check import CHECK, TOGETHER
from localmed.domain.errors import Cancelled
from localmed.domain.ports import UNWATCHED, Choice, Message, Watch
from localmed.process.hooks import Hooks, following
from tests.scripted import ScriptedChat

ZINC = "Zinc shortened the cold by a day."
MASKS = "Masks were compared in two wards."


class Counted(ScriptedChat):
    """A scripted model that keeps what it was asked."""

    def __init__(self, script: Mapping[str, str | Mapping[str, float]]) -> None:
        super().__init__(script)
        self.asked: list[tuple[tuple[Message, ...], tuple[str, ...]]] = []

    def choose(
        self, prefix: Sequence[Message], branches: Sequence[str], labels: Sequence[str], watch: Watch = UNWATCHED
    ) -> list[Choice]:
        self.asked.append((tuple(prefix), tuple(branches)))
        return super().choose(prefix, branches, labels, watch)


def test_the_labels_become_probabilities_in_their_order() -> None:
    model = ScriptedChat([{"supported": 6, "not said": 3, "contradicted": 1}])
    (stance,) = ChatEntailment(model).judge([(ZINC, "Zinc helps against colds.")])
    assert (stance.entailment, stance.neutral, stance.contradiction) == (0.6, 0.3, 0.1)
    assert stance.label == "entailment"


def test_a_text_is_read_once_and_answers_keep_the_pairs_order() -> None:
    model = Counted({"helps": {"Yes": 1, "No": 0}, "": {"Yes": 0, "No": 1}})
    pairs = [(ZINC, "Zinc helps."), (MASKS, "Masks work."), (ZINC, "Zinc worsens colds."), (ZINC, "On hamsters.")]
    labels = [stance.label for stance in YesNo(model, ("en",)).judge(pairs)]
    assert labels == ["entailment", "neutral", "neutral", "neutral"]
    assert [len(branches) for _, branches in model.asked] == [3, 1]
    assert [ZINC in prefix[-1].content for prefix, _ in model.asked] == [True, False]
    assert not any(ZINC in branch for branch in model.asked[0][1])


def test_yes_or_no_never_says_contradicted() -> None:
    model = Counted({"helps": {"Yes": 3, "No": 1}, "说法": {"是": 1, "否": 3}})
    english, chinese = YesNo(model, ("en", "zh")).judge([(ZINC, "Zinc helps."), (ZINC, "锌有害。")])
    assert (english.entailment, english.neutral, english.contradiction) == (0.75, 0.25, 0.0)
    assert (chinese.entailment, chinese.neutral, chinese.contradiction) == (0.25, 0.75, 0.0)
    assert YesNo(model, ("en",)).languages == ("en",)
    assert ["Yes or No" in prefix[0].content for prefix, _ in model.asked] == [True, False]


def test_the_role_that_the_self_test_measured_judges_in_the_statements_language() -> None:
    model = Counted({"helps": "supported", "锌": "支持", "worsens": "contradicted"})
    pairs = [(ZINC, "Zinc helps."), (ZINC, "锌有助于缩短感冒病程。"), (ZINC, "Zinc worsens colds.")]
    stances = ChatEntailment(model).judge(pairs)
    assert [stance.label for stance in stances] == ["entailment", "entailment", "contradiction"]
    assert [prefix[0].content for prefix, _ in model.asked] == [CHECK.instructions["en"], CHECK.instructions["zh"]]
    model.asked.clear()
    assert len(ChatEntailment(model).judge([(ZINC, "Zinc helps.")] * (TOGETHER + 1))) == TOGETHER + 1
    assert [len(branches) for _, branches in model.asked] == [TOGETHER, 1], "as the self-test asks"


def test_nothing_asked_nothing_answered_and_a_cancelled_one_ends() -> None:
    assert ChatEntailment(ScriptedChat([])).judge([]) == []
    with pytest.raises(Cancelled), following(Hooks(models_until=0.0)):
        ChatEntailment(ScriptedChat(["supported"])).judge([(ZINC, "Zinc helps.")])
