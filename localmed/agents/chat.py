"""The roles on a chat model: the role's form is filled in, sent, and what comes back is read strictly.

A reply that cannot be used is asked for once more, with another seed and our reason (never the reply) at the end of the
conversation; then it is ``Rejected``. Evidence that does not fit the context is left out by whole passages, with a note
in the prompt; instructions never are. The model is handed what one request needs and remembers nothing.
"""

from __future__ import annotations

from typing import Any

from localmed.agents.budget import fit
from localmed.agents.roles import Choosing, Role, Writing
from localmed.errors import Rejected, UsageError
from localmed.messages import render
from localmed.ports import UNWATCHED, CountingChat, Message, Request, Watch

TRIES = 2  # a reply that cannot be used is asked for once more
AGAIN = {
    "en": "Your last reply could not be used ({reason}). Reply once more, as instructed.",
    "zh": "上一次回复无法使用（{reason}）。请按要求重新回复。",
}


class ChatRoles:
    """``Performer`` on a chat model."""

    def __init__(self, model: CountingChat, watch: Watch = UNWATCHED) -> None:
        """``watch`` follows every request."""
        self._model, self._watch = model, watch

    def perform(self, role: Role, given: Any) -> Any:
        """See ``Performer.perform``. Raise ``ModelError`` where the model itself fails."""
        if isinstance(role.form, Choosing):
            return self._choose(role.form, given)
        if isinstance(role.form, Writing):
            return self._write(role.form, given)
        raise UsageError("agents.role_not_served", role=role.name)

    def _choose(self, form: Choosing, given: Any) -> Any:
        branches = list(form.branches(given))
        prefix = (Message("system", form.instructions[given.language]), Message("user", form.task(given)))
        labels = form.labels[given.language]
        choices = self._model.choose(prefix, branches, labels, self._watch) if branches else []
        return form.read(given, choices)

    def _write(self, form: Writing, given: Any) -> Any:
        given, messages, schema = self._fitted(form, given)
        for attempt in range(TRIES):
            request = Request(messages, form.max_tokens, schema, seed=attempt)
            try:
                reply = self._model.complete(request, self._watch)
                return form.read(given, reply.text if schema is None else reply.value)
            except Rejected as rejected:
                if attempt == TRIES - 1:
                    raise
                again = AGAIN[given.language].format(reason=render(rejected.messages[0], given.language))
                messages = (*messages[:-1], Message("user", f"{messages[-1].content}\n\n{again}"))
        raise AssertionError("unreachable")

    def _fitted(self, form: Writing, given: Any) -> tuple[Any, tuple[Message, ...], Any]:
        """The input with the passages that fit, the messages and the schema of them."""
        instructions, passages = form.instructions[given.language], list(form.passages(given))
        note: str = ""
        if passages:
            counts = self._model.count([instructions, form.task(given), AGAIN[given.language], *passages])
            fitted = fit(counts[:3], counts[3:], form.max_tokens, self._model.identity.context)
            note = render(fitted.note, given.language) if fitted.note else ""
            given = form.shortened(given, fitted)
            passages = [passages[place] for place in fitted.kept]
        text = "\n\n".join(each for each in (form.task(given), note, *passages) if each)
        messages = (Message("system", instructions), Message("user", text))
        return given, messages, form.schema(given)
