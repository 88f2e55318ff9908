"""Entailment by a chat model: labels, order, languages, the shared prefix and quoted material."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from localmed.answering.chat_entailment import INSTRUCTIONS, LABELS, ChatEntailment, YesNo
from localmed.domain.errors import Cancelled
from localmed.domain.ports import UNWATCHED, Choice, Message, Watch
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
    model = ScriptedChat([{"supports": 6, "neither": 3, "contradicts": 1}])
    (stance,) = ChatEntailment(model).judge([(ZINC, "Zinc helps against colds.")])
    assert (stance.entailment, stance.neutral, stance.contradiction) == (0.6, 0.3, 0.1)
    assert stance.label == "entailment"


def test_a_premise_is_read_once_and_answers_keep_the_pairs_order() -> None:
    model = Counted({"helps": "supports", "worsens": "contradicts", "hamsters": "neither", "Masks": "neither"})
    pairs = [(ZINC, "Zinc helps."), (MASKS, "Masks work."), (ZINC, "Zinc worsens colds."), (ZINC, "On hamsters.")]
    labels = [stance.label for stance in ChatEntailment(model).judge(pairs)]
    assert labels == ["entailment", "neutral", "contradiction", "neutral"]
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


def test_an_english_premise_with_hypotheses_in_both_languages_is_asked_twice() -> None:
    model = Counted({"statement": "supports", "说法": "支持"})
    stances = ChatEntailment(model).judge([(ZINC, "Zinc helps."), (ZINC, "锌有助于缩短感冒病程。")])
    assert [stance.label for stance in stances] == ["entailment"] * 2
    assert [prefix[0].content for prefix, _ in model.asked] == [INSTRUCTIONS["en"], INSTRUCTIONS["zh"]]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_instruction_names_every_label(language: str) -> None:
    assert all(label in INSTRUCTIONS[language] for label in LABELS[language])


def test_nothing_asked_nothing_answered_and_a_cancelled_one_ends() -> None:
    assert ChatEntailment(ScriptedChat([])).judge([]) == []
    with pytest.raises(Cancelled):
        ChatEntailment(ScriptedChat(["supports"]), Watch(cancelled=lambda: True)).judge([(ZINC, "Zinc helps.")])
