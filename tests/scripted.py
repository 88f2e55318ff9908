"""A ``ChatModel`` that says what it was given to say.

It is held to the port's rules like the others: a conversation that is too long, a reply that does not fit its schema or
a label that is not offered is a ``ModelError``; a cancelled request raises ``Cancelled``. A token is a word here.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator

from localmed.domain import digest
from localmed.domain.errors import Cancelled, ModelError
from localmed.domain.ports import UNWATCHED, ChatIdentity, Choice, Message, Reply, Request, Watch
from localmed.models import structured

Said = str | Mapping[str, Any]  # a text, or an object that is written as JSON; for a choice the label or its weights
Script = Sequence[Said] | Mapping[str, Said] | Callable[[Sequence[Message]], Said]

# What llama.cpp's grammars hold a model to; any other keyword they ignore.
EXPRESSIBLE = frozenset({
    "type", "properties", "required", "additionalProperties", "items", "minItems", "maxItems", "enum", "const",
    "anyOf", "oneOf", "minLength", "maxLength", "pattern",
})  # fmt: skip


def check_expressible(schema: Mapping[str, Any]) -> None:
    """Fail for a schema that is wrong or says what a grammar cannot."""
    Draft202012Validator.check_schema(schema)
    assert EXPRESSIBLE.issuperset(schema), f"no grammar expresses {set(schema) - EXPRESSIBLE}"
    assert {"minLength", "maxLength"}.isdisjoint(schema) or (schema["type"] == "string" and "pattern" not in schema)
    assert set(schema.get("required", ())) <= set(schema.get("properties", ()))
    assert schema.get("pattern", "^$").startswith("^")
    assert schema.get("pattern", "^$").endswith("$")
    items = (schema["items"],) if "items" in schema else ()
    for part in (*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *schema.get("oneOf", ()), *items):
        check_expressible(part)


class ScriptedChat:
    """Answers from ``script``.

    A sequence is said in order, once; of a mapping the first key that occurs in the conversation's last message chooses
    the answer; a function is given the conversation. A choice takes one answer a branch.
    """

    def __init__(self, script: Script, name: str = "scripted", context: int = 100_000) -> None:
        self._script, self._said = script, 0
        self._lock = threading.Lock()
        self.identity = ChatIdentity(name, digest(name), context)

    def complete(self, request: Request, watch: Watch = UNWATCHED) -> Reply:
        """See ``ChatModel``."""
        if request.schema is not None:
            check_expressible(request.schema)
        prompt = sum(self.count([message.content for message in request.messages]))
        if prompt + request.max_tokens > self.identity.context:
            raise ModelError(
                "chat.prompt_too_long", prompt=prompt, context=self.identity.context, reply=request.max_tokens
            )
        answer = self._next(request.messages)
        words = (answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)).split(" ")
        text = " ".join(words[: request.max_tokens])
        for number, word in enumerate(text.split(" ")):
            _go_on(watch)
            watch.token(f" {word}" if number else word)
        cut = len(words) > request.max_tokens
        reply = Reply(text, prompt, min(len(words), request.max_tokens), "length" if cut else "stop")
        return structured.validate_reply(reply, request.schema)

    def choose(
        self, prefix: Sequence[Message], branches: Sequence[str], labels: Sequence[str], watch: Watch = UNWATCHED
    ) -> list[Choice]:
        """See ``ChatModel``. A label that the script names gets a one, or it gives each label's weight."""
        structured.check_labels(labels)
        choices = []
        for branch in branches:
            _go_on(watch)
            choices.append(_choice(self._next(structured.append_branch(prefix, branch)), labels))
            watch.progress(len(choices), len(branches))
        return choices

    def count(self, texts: Sequence[str]) -> list[int]:
        """See ``CountingChat``: words."""
        return [len(text.split()) for text in texts]

    def _next(self, messages: Sequence[Message]) -> Said:
        if callable(self._script):
            return self._script(messages)
        if isinstance(self._script, Mapping):
            last = messages[-1].content if messages else ""
            for key, answer in self._script.items():
                if key in last:
                    return answer
            raise ModelError("the script has nothing to say to this")
        with self._lock:
            if self._said >= len(self._script):
                raise ModelError(f"the script is over after {self._said} answers")
            self._said += 1
            return self._script[self._said - 1]


def _choice(answer: Said, labels: Sequence[str]) -> Choice:
    weights = {answer: 1.0} if isinstance(answer, str) else dict(answer)
    if set(weights) - set(labels):
        raise ModelError("the script names a label that is not offered")
    total = sum(weights.values())
    if not total > 0:
        raise ModelError("the script weighs no label")
    return Choice(tuple(weights.get(label, 0.0) / total for label in labels), measured=not isinstance(answer, str))


def _go_on(watch: Watch) -> None:
    if watch.cancelled():
        raise Cancelled("model.cancelled")
