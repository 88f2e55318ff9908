"""A ``ChatModel`` on a GGUF file. See the package for what runs where."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localmed.config import ChatSettings
from localmed.domain.errors import ModelError, UsageError
from localmed.domain.ports import UNWATCHED, ChatIdentity, Choice, Message, Reply, Request, Watch
from localmed.models import structured
from localmed.models.llama.process import COMMAND, Owner
from localmed.models.templates import named, render

SPLIT = re.compile(r"(?P<name>.+)-00001-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ChatFile:
    """A registered model file. ``context`` is the most that the model was trained for, in tokens."""

    name: str
    path: Path
    sha256: str
    template: str
    context: int


class LlamaChat:
    """A ``ChatModel`` and ``TokenCounter``. Requests wait for each other; put a queue in front for fairness.

    ``admit`` is called before the file is loaded, each time, and raises where it may not be (hash changed).
    """

    def __init__(
        self,
        file: ChatFile,
        settings: ChatSettings,
        admit: Callable[[], None] = lambda: None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._file, self._settings = file, settings
        self._template = named(file.template)
        self.identity = ChatIdentity(file.name, file.sha256, min(settings.context, file.context))
        self.owner = Owner(self._setup, settings, admit, command)

    def close(self) -> None:
        """End the child process."""
        self.owner.close()

    def complete(self, request: Request, watch: Watch = UNWATCHED) -> Reply:
        """See ``ChatModel``."""
        values = {
            "parts": render(self._template, request.messages),
            "max_tokens": _positive(request.max_tokens),
            "schema": json.dumps(request.schema) if request.schema is not None else "",
            "temperature": request.temperature,
            "seed": request.seed,
            "heard": watch.token is not UNWATCHED.token,  # each token sent would wake this process on the child's core
        }
        return structured.finished(_reply(self.owner.ask("complete", values, watch)), request.schema)

    def choose(
        self, prefix: Sequence[Message], branches: Sequence[str], labels: Sequence[str], watch: Watch = UNWATCHED
    ) -> list[Choice]:
        """See ``ChatModel``. Probabilities are read from the logits (``decisions``); measured where the labels have
        half of the probability together.
        """
        structured.check_labels(labels)
        prompts = [render(self._template, structured.continued(prefix, branch)) for branch in branches]
        if not prompts:
            return []
        answer = self.owner.ask("choose", {"prompts": prompts, "labels": list(labels)}, watch)
        rows = answer.get("probabilities")
        if not isinstance(rows, list) or [len(row) for row in rows] != [len(labels)] * len(prompts):
            raise ModelError("chat.answered_else")
        measured = [float(mass) >= structured.LEAST_MASS for mass in answer["masses"]]
        return [Choice(tuple(map(float, row)), known) for row, known in zip(rows, measured, strict=True)]

    def count(self, texts: Sequence[str]) -> list[int]:
        """See ``TokenCounter``."""
        if not texts:
            return []
        return [int(number) for number in self.owner.ask("count", {"texts": list(texts)})["counts"]]

    def tokens(self, messages: Sequence[Message], reply: str) -> tuple[list[int], list[int]]:
        """The tokens of a prompt as this model is asked it, and of a reply to it with the one that ends a turn."""
        answer = self.owner.ask("tokens", {"parts": render(self._template, messages), "reply": reply})
        return list(map(int, answer["prompt"])), list(map(int, answer["reply"]))

    def _setup(self) -> Mapping[str, Any]:
        settings, file = self._settings, self._file
        try:
            size = sum(part.stat().st_size for part in parts(file.path))
        except OSError:
            raise ModelError("chat.no_file", name=file.name) from None
        return {
            "path": str(file.path),
            "context": self.identity.context,
            "micro_batch": min(settings.micro_batch, self.identity.context),
            "sequences": settings.sequences,
            "threads": settings.threads or len(os.sched_getaffinity(0)),
            "gpu_layers": settings.gpu_layers,
            "marks": self._template.marks,
            "end": self._template.end,
            "nice": settings.nice,
            "memory_bytes": 2 * size + settings.child_memory_bytes,
        }


def parts(path: Path) -> list[Path]:
    """The files of the model whose first one is ``path``: a large model comes in several, ``NAME-00001-of-00003.gguf``.

    llama.cpp finds the others by their names.
    """
    split = SPLIT.fullmatch(path.name)
    if not split:
        return [path]
    name, count = split["name"], split["count"]
    return [path.with_name(f"{name}-{number:05d}-of-{count}.gguf") for number in range(1, int(count) + 1)]


def _reply(answer: Mapping[str, Any]) -> Reply:
    try:
        return Reply(str(answer["text"]), int(answer["prompt_tokens"]), int(answer["reply_tokens"]), answer["finish"])
    except (KeyError, TypeError, ValueError):
        raise ModelError("chat.answered_else") from None


def _positive(most: int) -> int:
    if most < 1:
        raise UsageError("chat.no_tokens")
    return most
