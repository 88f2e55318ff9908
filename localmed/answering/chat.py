"""Performs roles on a chat model and reads its replies strictly.

An unusable reply is requested once more with another seed and the reason (never the reply) at the end of the
conversation; then it is ``Rejected``. Whole passages that do not fit the context are left out, with a note in prompt
and answer; instructions never are. On a server, several choices of a role are one request. Nothing is kept between
requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from localmed.answering.check import ALONE, CHECK, SupportInput
from localmed.answering.check import TOGETHER as BATCH
from localmed.answering.evidence import between_marks, object_of
from localmed.answering.roles import Choosing, Fitted, Role, Writing, instructions
from localmed.domain import message
from localmed.domain.errors import Rejected, TooLong, UsageError
from localmed.domain.ports import (
    NOT_JUDGED,
    UNWATCHED,
    ChatModel,
    Choice,
    CountingChat,
    Message,
    Request,
    Stance,
    Watch,
)
from localmed.messages import render
from localmed.process import hooks
from localmed.text.language import detect

NOTE_TOKENS = 40  # the note in any tokenizer
TURN_TOKENS = 16  # markup of a message and joints between separately counted texts
TEMPERATURE = 0.7  # for several samples of one reply (Omni-RAG, A.3, with nine)
TRIES = 2
LABEL_TOKENS = 12  # of a label in quotes, in any tokenizer
TOGETHER = {
    "en": "These are {count} cases; judge each by itself. In place of one word reply with one JSON object: "
    '{{"labels": [...]}}, {count} labels in the order of the cases, each one of: {labels}',
    "zh": "以上共 {count} 项，请各自独立判断。不要只回复一个词，而是回复一个 JSON 对象："
    '{{"labels": [……]}}，按顺序给出 {count} 个标签，每个是以下之一：{labels}',
}
AGAIN = {
    "en": "Your last reply could not be used ({reason}). Reply once more, as instructed.",
    "zh": "上一次回复无法使用（{reason}）。请按要求重新回复。",
}


class ChatRoles:
    """``Performer`` on a chat model."""

    def __init__(self, model: CountingChat, watch: Watch = UNWATCHED) -> None:
        """``watch`` follows every request."""
        self._model, self._watch = model, watch

    def perform(self, role: Role, task: Any) -> Any:
        """See ``Performer.perform``. Raise ``ModelError`` if the model fails."""
        if isinstance(role.form, Choosing):
            return self._choose(role, role.form, task)
        if isinstance(role.form, Writing):
            return self._write(role, role.form, task)
        raise UsageError("agents.role_not_served", role=role.name)

    def _choose(self, role: Role, form: Choosing, task: Any) -> Any:
        branches = list(form.branches(task))
        prefix = (Message("system", role.instructions[task.language]), Message("user", form.prompt(task)))
        labels = form.labels[task.language]
        if self._model.identity.remote and len(branches) > 1:
            return form.read(task, self._choose_together(prefix, branches, labels, task.language))
        choices = self._model.choose(prefix, branches, labels, self._watch) if branches else []
        return form.read(task, choices)

    def _choose_together(
        self, prefix: Sequence[Message], branches: Sequence[str], labels: Sequence[str], language: str
    ) -> list[Choice]:
        """A label for each of ``branches`` from one reply, without probabilities: saves a request for each."""
        cases = (f"({number}) {branch}" for number, branch in enumerate(branches, 1))
        ending = TOGETHER[language].format(count=len(branches), labels=" / ".join(labels))
        messages = (prefix[0], Message("user", "\n".join((prefix[-1].content, *cases, "", ending))))
        item = {"enum": list(dict.fromkeys((*labels, *(label.capitalize() for label in labels))))}
        count = len(branches)
        schema = object_of({"labels": {"type": "array", "items": item, "minItems": count, "maxItems": count}})
        reply = self._model.complete(Request(messages, LABEL_TOKENS * (count + 1), schema), self._watch)
        names = [str(name).lower() for name in reply.value["labels"]]
        return [Choice(tuple(float(label == name) for label in labels), measured=False) for name in names]

    def _write(self, role: Role, form: Writing, task: Any) -> Any:
        task, messages, schema = self._fitted(role, form, task)
        sample: int = getattr(task, "sample", 0)  # one of several replies to the same input, else the only one
        for attempt in range(TRIES):
            request = Request(
                messages, form.max_tokens, schema, TEMPERATURE if sample else 0.0, sample * TRIES + attempt
            )
            try:
                reply = self._model.complete(request, self._watch)
                return form.read(task, reply.text if schema is None else reply.value)
            except Rejected as rejected:
                if attempt == TRIES - 1:
                    raise
                again = AGAIN[task.language].format(reason=render(rejected.messages[0], task.language))
                messages = (*messages[:-1], Message("user", f"{messages[-1].content}\n\n{again}"))
        raise AssertionError("unreachable")

    def _fitted(self, role: Role, form: Writing, task: Any) -> tuple[Any, tuple[Message, ...], Any]:
        """The input with the passages that fit, its messages and schema."""
        instructions, passages = role.instructions[task.language], list(form.passages(task))
        note: str = ""
        if passages:
            counts = self._model.count([instructions, form.prompt(task), AGAIN[task.language], *passages])
            fitted = fit(counts[:3], counts[3:], form.max_tokens, self._model.identity.context)
            note = render(fitted.note, task.language) if fitted.note else ""
            task = form.shortened(task, fitted)
            passages = [passages[place] for place in fitted.kept]
        text = "\n\n".join(part for part in (form.prompt(task), note, *passages) if part)
        messages = (Message("system", instructions), Message("user", text))
        return task, messages, form.schema(task)


def fit(instructions: Sequence[int], passages: Sequence[int], reply: int, context: int) -> Fitted:
    """Choose the passages that fit, most important first; all numbers are tokens.

    ``instructions`` counts everything that must stay. Passages are taken in order until one does not fit. Raise
    ``ModelError`` if not even one fits.
    """
    fixed = sum(instructions) + TURN_TOKENS * len(instructions) + reply
    needs = [count + TURN_TOKENS for count in passages]
    if fixed + sum(needs) <= context:
        return Fitted(tuple(range(len(needs))))
    left = context - fixed - NOTE_TOKENS
    kept = 0
    for need in needs:
        if need > left:
            break
        left -= need
        kept += 1
    if not kept:
        raise TooLong("agents.no_room", fixed=fixed, first=needs[0] if needs else 0, context=context)
    return Fitted(tuple(range(kept)), message("agents.left_out", left=len(needs) - kept, passages=len(needs)))


# --- entailment -------------------------------------------------------------------------------------------------------

# Judged by a chat model, read from its label probabilities; nothing is generated. A model is instructed in the
# statement's language; answers come back in the pairs' order. Text and statement are quoted material: no instruction in
# them counts. Raises what ``ChatModel.choose`` raises; a reply that names no label is no judgement. A server that names
# a label without probabilities gives that label all of it: the numbers are then no measure of doubt.

Pairs = Sequence[tuple[str, str]]  # (text, statement)
SUPPORTED = instructions("supported")
_YES_NO = {"en": ("Yes", "No"), "zh": ("是", "否")}
_NAMES = {"en": ("text", "statement", "Supported?"), "zh": ("材料", "说法", "是否支持？")}


class ChatEntailment:
    """``Entailment`` on a ``CountingChat``, in English and Chinese: the role ``check``, for pairs that stand alone.

    What the self-test measured is what judges.
    """

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
    """``Entailment`` on a separate GGUF model that answers Yes or No.

    The prompt is that of fact-checking models. It never reports a contradiction.
    """

    def __init__(self, model: ChatModel, languages: tuple[str, ...]) -> None:
        """``languages``: those that the model was measured on."""
        self._model, self.languages, self.name = model, languages, f"{model.identity.name}, Yes or No"

    def judge(self, pairs: Pairs) -> list[Stance]:
        """See ``Entailment``; a text shared by several statements is read once."""
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
        """End the model's process, which serves no other role."""
        close = getattr(self._model, "close", None)
        if close:
            close()


def _grouped(
    pairs: Pairs, shared: Callable[[tuple[str, str]], str], judge: Callable[[Pairs, str, Watch], Sequence[Stance]]
) -> list[Stance]:
    """Judge pairs of one language and the same ``shared`` part in one request."""
    caller = hooks.active()
    watch = Watch(cancelled=caller.models_over)
    groups: dict[tuple[str, str], list[int]] = {}
    for place, pair in enumerate(pairs):
        groups.setdefault((detect(pair[1]), shared(pair)), []).append(place)
    stances: dict[int, Stance] = {}
    for (language, _), places in groups.items():
        for batch in (places[at : at + BATCH] for at in range(0, len(places), BATCH)):
            try:
                judged = judge([pairs[place] for place in batch], language, watch)
            except Rejected:
                judged = [NOT_JUDGED] * len(batch)
            stances |= zip(batch, judged, strict=True)
            caller.progress(len(stances), len(pairs), "")
    return [stances[place] for place in range(len(pairs))]
