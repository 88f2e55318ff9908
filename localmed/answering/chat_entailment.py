"""Entailment judged by a chat model, read from its label probabilities; nothing is generated.

``ChatEntailment`` is the chat model in the role ``check``, for pairs that stand for themselves: what the self-test
measured is what judges. ``YesNo`` asks whether the text supports the statement, as models that were trained to check
facts are asked, and never says that something is contradicted.

A model is instructed in the statement's language; answers come back in the pairs' order. Text and statement are quoted
material: no instruction in them counts. Raises what ``ChatModel.choose`` raises; a reply that names no label is no
judgement. A server that names a label without probabilities gives that label all of it: the numbers are then no measure
of doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from localmed.answering.chat import ChatRoles
from localmed.answering.check import ALONE, CHECK, TOGETHER, SupportInput
from localmed.answering.evidence import between_marks
from localmed.answering.prompts import instructions
from localmed.domain.errors import Rejected
from localmed.domain.ports import NOT_JUDGED, ChatModel, CountingChat, Message, Stance, Watch
from localmed.process import hooks
from localmed.text.language import detect

Pairs = Sequence[tuple[str, str]]  # (text, statement)
SUPPORTED = instructions("supported")
_YES_NO = {"en": ("Yes", "No"), "zh": ("是", "否")}
_NAMES = {"en": ("text", "statement", "Supported?"), "zh": ("材料", "说法", "是否支持？")}


class ChatEntailment:
    """``Entailment`` on a ``CountingChat``, in English and Chinese."""

    languages: tuple[str, ...] = ("en", "zh")

    def __init__(self, model: CountingChat) -> None:
        self._model, self.name = model, f"{model.identity.name}, label choice"

    def judge(self, pairs: Pairs) -> list[Stance]:
        """See ``Entailment``."""
        return _grouped(pairs, lambda _: "", self._stances)

    def _stances(self, pairs: Pairs, language: str, watch: Watch) -> Sequence[Stance]:
        task = SupportInput(ALONE[language], tuple(pairs))
        stances: Sequence[Stance] = ChatRoles(self._model, watch).perform(CHECK, task)
        return stances


class YesNo:
    """``Entailment`` on a language model that answers Yes or No: a registered GGUF of its own."""

    def __init__(self, model: ChatModel, languages: tuple[str, ...]) -> None:
        """``languages`` are those that the model was shown to judge."""
        self._model, self.languages, self.name = model, languages, f"{model.identity.name}, Yes or No"

    def judge(self, pairs: Pairs) -> list[Stance]:
        """See ``Entailment``; a text with many statements is read once."""
        return _grouped(pairs, lambda pair: pair[0], self._stances)

    def _stances(self, pairs: Pairs, language: str, watch: Watch) -> Sequence[Stance]:
        text, statement, closing = _NAMES[language]
        prefix = (
            Message("system", SUPPORTED[language]),
            Message("user", f"{between_marks(text, pairs[0][0])}\n\n"),
        )
        branches = [f"{between_marks(statement, said)}\n\n{closing}" for _, said in pairs]
        choices = self._model.choose(prefix, branches, _YES_NO[language], watch)
        return [Stance(one.probabilities[0], one.probabilities[1], 0.0) for one in choices]  # not supported: not said

    def close(self) -> None:
        """End the model's child: it is no other role's."""
        close = getattr(self._model, "close", None)
        if close:
            close()


def _grouped(
    pairs: Pairs, shared: Callable[[tuple[str, str]], str], judge: Callable[[Pairs, str, Watch], Sequence[Stance]]
) -> list[Stance]:
    """What ``judge`` says of each pair: those of one language, with the same ``shared`` part, in one request."""
    caller = hooks.active()
    watch = Watch(cancelled=caller.models_over)
    groups: dict[tuple[str, str], list[int]] = {}
    for place, pair in enumerate(pairs):
        groups.setdefault((detect(pair[1]), shared(pair)), []).append(place)
    stances: dict[int, Stance] = {}
    for (language, _), places in groups.items():
        for batch in (places[at : at + TOGETHER] for at in range(0, len(places), TOGETHER)):
            try:
                judged = judge([pairs[place] for place in batch], language, watch)
            except Rejected:
                judged = [NOT_JUDGED] * len(batch)
            stances |= zip(batch, judged, strict=True)
            caller.progress(len(stances), len(pairs), "")
    return [stances[place] for place in range(len(pairs))]
