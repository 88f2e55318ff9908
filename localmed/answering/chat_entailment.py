"""Entailment judged by a chat model: a choice among labels, read from its logits; nothing is generated.

``ChatEntailment`` chooses among three labels; ``YesNo`` asks whether the text supports the statement, as models that
were trained to check facts are asked, and never says that something is contradicted.

The instruction and the premise are the prefix, so that a premise with many hypotheses is read once; the hypotheses are
the branches. Pairs are grouped by premise and by the hypothesis's language, which is the one the model is instructed
in; answers come back in the pairs' order. Premise and hypothesis are quoted material: no instruction in them counts.

Raises what ``ChatModel.choose`` raises, such as ``ModelError`` where a premise does not fit the context; a reply
that names no label is no judgement. A server that names a label without probabilities gives that label all of it: the
numbers are then no measure of doubt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from localmed.answering.evidence import between_marks
from localmed.answering.prompts import instructions
from localmed.domain.errors import Rejected
from localmed.domain.ports import NOT_JUDGED, UNWATCHED, ChatModel, Choice, Message, Stance, Watch
from localmed.process import hooks
from localmed.text.language import detect

INSTRUCTIONS = instructions("entailment")
LABELS = {"en": ("supports", "neither", "contradicts"), "zh": ("支持", "无关", "矛盾")}  # in the order of ``Stance``
_TEXT = {"en": "text", "zh": "材料"}
_STATEMENT = {"en": "statement", "zh": "说法"}


class ChatEntailment:
    """``Entailment`` on a ``ChatModel``, in English and Chinese."""

    languages: tuple[str, ...] = ("en", "zh")
    instructions: ClassVar[Mapping[str, str]] = INSTRUCTIONS
    labels: ClassVar[Mapping[str, tuple[str, ...]]] = LABELS
    closing: ClassVar[Mapping[str, str]] = {"en": "Which of the three?", "zh": "三者中是哪一个？"}
    way = "label choice"

    def __init__(self, model: ChatModel, watch: Watch = UNWATCHED) -> None:
        """``watch`` follows every choice; else the hooks of whoever the judging is for may cancel it."""
        self._model, self._watch = model, watch

    @property
    def name(self) -> str:
        """The chat model's name, and how it chooses."""
        return f"{self._model.identity.name}, {self.way}"

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        """See ``Entailment``."""
        groups: dict[tuple[str, str], list[int]] = {}
        for place, (premise, hypothesis) in enumerate(pairs):
            groups.setdefault((premise, detect(hypothesis)), []).append(place)
        caller = hooks.active()
        stances: dict[int, Stance] = {}
        watch = self._watch if self._watch is not UNWATCHED else Watch(cancelled=caller.models_over)
        for (premise, language), places in groups.items():
            judged = self._stances(premise, [pairs[place][1] for place in places], language, watch)
            stances.update(zip(places, judged, strict=True))
            caller.progress(len(stances), len(pairs), "")
        return [stances[place] for place in range(len(pairs))]

    def _stances(self, premise: str, hypotheses: Sequence[str], language: str, watch: Watch) -> list[Stance]:
        prefix = (
            Message("system", self.instructions[language]),
            Message("user", f"{between_marks(_TEXT[language], premise)}\n\n"),
        )
        branches = [
            f"{between_marks(_STATEMENT[language], hypothesis)}\n\n{self.closing[language]}"
            for hypothesis in hypotheses
        ]
        try:
            choices = self._model.choose(prefix, branches, self.labels[language], watch)
        except Rejected:
            return [NOT_JUDGED] * len(hypotheses)
        return [self.stance(choice) for choice in choices]

    def stance(self, choice: Choice) -> Stance:
        """What ``choice`` among the labels says."""
        supported, neither, contradicted = choice.probabilities
        return Stance(supported, neither, contradicted)


class YesNo(ChatEntailment):
    """``Entailment`` on a language model that answers Yes or No: a registered GGUF of its own."""

    instructions = instructions("supported")
    labels: ClassVar[Mapping[str, tuple[str, ...]]] = {"en": ("Yes", "No"), "zh": ("是", "否")}
    closing: ClassVar[Mapping[str, str]] = {"en": "Supported?", "zh": "是否支持？"}
    way = "Yes or No"

    def __init__(self, model: ChatModel, languages: tuple[str, ...]) -> None:
        """``languages`` are those that the model was shown to judge."""
        super().__init__(model)
        self.languages = languages

    def stance(self, choice: Choice) -> Stance:
        """See ``ChatEntailment``; what is not supported is not said."""
        supported, not_supported = choice.probabilities
        return Stance(supported, not_supported, 0.0)

    def close(self) -> None:
        """End the model's child: it is no other role's."""
        close = getattr(self._model, "close", None)
        if close:
            close()
