"""A model host in a thread of the test, on small models that are real implementations of their ports."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from localmed import __version__
from localmed.config import HostSettings
from localmed.domain import SearchFilter
from localmed.domain.ports import UNWATCHED, Reply, Request, Stance, Watch
from localmed.models.host import server
from localmed.models.host.client import Hosted, connect
from localmed.models.host.protocol import FOLDER, SOCKET, Call, Wire
from localmed.models.host.server import Host
from localmed.text.language import words
from tests.fakes import HashedWords, WeighedWords
from tests.scripted import ScriptedChat

CHOICES = {"encoder": "words 1", "reranker": "overlap 1", "entailment": "same 1", "chat": "scripted 1"}
WAIT = "wait"  # a text at which the encoder waits until the test lets it go on


class Encoder(WeighedWords):
    """``WeighedWords`` that can be held up, and that fails at "fail" with ``fault``."""

    def __init__(self) -> None:
        super().__init__()
        self.fault: BaseException = ValueError("jaundice")
        self.go_on, self.reached = threading.Event(), threading.Event()

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> npt.NDArray[np.float32]:
        if WAIT in texts:
            self.reached.set()
            self.go_on.wait(20)
        if "fail" in texts:
            raise self.fault
        return super().encode(texts, kind)


class Overlap:
    """A ``Reranker``: the words that both share, divided by three, which no short decimal is equal to."""

    name = "overlap 1"

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> list[float]:
        question_words = set(words(question))
        return [len(question_words & set(words(passage))) / 3 for passage in passages]


class Same:
    """An ``Entailment``: equal texts entail each other."""

    name, languages = "same 1", ("en", "zh")

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        marked = ((0, 1), (3, 5))
        return [Stance(2 / 3, 1 / 3, 0.0) if one == other else Stance(0.1, 0.7, 0.2, marked=marked)
                for one, other in pairs]  # fmt: skip


class Numbers:
    """A dense index that finds the number of passages asked for, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[float], SearchFilter]] = []
        self.warmed = False

    def warm(self) -> None:
        self.warmed = True

    def search(
        self, generation: str, vector: npt.NDArray[np.float32], limit: int, filters: SearchFilter
    ) -> list[tuple[str, str, float]]:
        self.asked.append((generation, vector.tolist(), filters))
        return [(str(number), "document", 1 / (3 + number)) for number in range(limit)]

    def similarities(
        self, generation: str, questions: npt.NDArray[np.float32], ids: Sequence[str]
    ) -> dict[str, list[float]]:
        return {one: questions.sum(axis=1).tolist() for one in ids}


class Speaker(ScriptedChat):
    """Says the same to the same: three words, a label where one is chosen, an object where there is a schema."""

    def __init__(self) -> None:
        super().__init__(lambda _: "yes", "speaker", 2000)

    def complete(self, request: Request, watch: Watch = UNWATCHED) -> Reply:
        answer = "one two three" if request.schema is None else '{ "label": "yes" }'
        return ScriptedChat([answer], context=2000).complete(request, watch)


Served = TypeVar("Served")


def there(model: Served | None) -> Served:
    """``model``, which the host serves."""
    assert model is not None
    return model


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@dataclass
class House:
    """A host for the data folder ``data``; ``start`` it, connect to it, ``stop`` it."""

    data: Path
    settings: HostSettings = field(default_factory=HostSettings)
    waiting: int = 256
    per_user: int = 32
    chat: ScriptedChat = field(default_factory=Speaker)
    encoder: Encoder = field(default_factory=Encoder)
    numbers: Numbers = field(default_factory=Numbers)
    choices: dict[str, str] = field(default_factory=lambda: CHOICES)
    running: bool = False

    def start(self) -> House:
        self._stop = os.eventfd(0)
        ready = threading.Event()
        models = {"encoder": self.encoder, "reranker": Overlap(), "entailment": Same(), "chat": self.chat}
        others = {"nearest": self.numbers, "fitted": HashedWords()}
        self.host = Host(models | others, self.choices, self.settings, (self.waiting, self.per_user))
        self._thread = threading.Thread(
            target=server.serve, args=(self.data, lambda: self.host, lambda *_: ready.set(), self._stop), daemon=True
        )
        self._thread.start()
        self.running = True
        assert ready.wait(10)
        return self

    def stop(self) -> None:
        if not self.running:
            return
        self.running = False
        self.encoder.go_on.set()
        os.eventfd_write(self._stop, 1)
        self._thread.join(20)
        assert not self._thread.is_alive()
        os.close(self._stop)

    def hosted(self, user: str = "") -> Hosted:
        return connect(self.data, self.settings, self.choices, user)

    def dialled(self) -> socket.socket:
        """A bare connection."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(10)
        connection.connect(str(self.data / FOLDER / SOCKET))
        return connection

    def asked(self, role: str, method: str, arguments: Mapping[str, Any]) -> Wire:
        """A connection over which something was asked."""
        wire = Wire(self.dialled(), self.settings.message_bytes, 10)
        wire.send(Call(__version__, "bare", role, method, arguments, self.choices))
        return wire
