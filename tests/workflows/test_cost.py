"""What a question costs on a server, with a stand-in for a competent model: requests and words of prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from localmed.agents.asking import CITED_ANSWER
from localmed.agents.roles import Writing
from localmed.config import LibrarySettings, Settings
from localmed.domain import AnswerStatus
from localmed.ports import UNWATCHED, ChatIdentity, Choice, Message, Reply, Request, Watch
from localmed.session import Session
from localmed.workflows.explain import ExplainInput
from tests import standin
from tests.fakes import ANY, HashedWords, opened
from tests.scripted import ScriptedChat
from tests.standin import CASE, DOSE

EIGHT_LINES = "\n".join(
    (
        "Warfarin 5 mg PO qhs",
        "Metformin 500 mg PO bid",
        "CBC in 3 days",
        "INR in 3 days",
        "Aspirin 75 mg PO od",
        "Paracetamol 1 g PO q6h prn",
        "NBM from midnight",
        "Chest X-ray tomorrow",
    )
)
FOUR_PARTS = "What is dobutamine? What is levodopa? What is morphine? Who invented the stethoscope?"


class Counted:
    """A chat model on a server: every request and every word of its prompts is counted."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.words = 0
        self.identity = ChatIdentity("counted", "", 100_000, remote=True)
        self._writes = ScriptedChat(standin.text)

    def complete(self, request: Request, watch: Watch = UNWATCHED) -> Reply:
        """See ``ChatModel``."""
        self._count(request.messages)
        labels = (request.schema or {}).get("properties", {}).get("labels")
        if labels:
            cases = standin.cases(request.messages)
            names = [standin.label(case, labels["items"]["enum"]) for case in cases]
            return ScriptedChat([{"labels": names}]).complete(request, watch)
        return self._writes.complete(request, watch)

    def choose(self, prefix: Any, branches: Any, labels: Any, watch: Watch = UNWATCHED) -> list[Choice]:
        """See ``ChatModel``."""
        choices = []
        for branch in branches:
            messages = (*prefix[:-1], Message("user", prefix[-1].content + branch))
            self._count(messages)
            choices += ScriptedChat([standin.label(messages, labels)]).choose(prefix, [branch], labels, watch)
        return choices

    def count(self, texts: Any) -> list[int]:
        """See ``TokenCounter``: words."""
        return [len(text.split()) for text in texts]

    def _count(self, messages: Any) -> None:
        self.requests.append(standin.role_of(messages))
        self.words += sum(len(message.content.split()) for message in messages)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("cost")
    settings = Settings(folder / "data", "workstation", library=LibrarySettings(writer_memory_bytes=15_000_000))
    settings = replace(settings, ask=replace(settings.ask, risk=1.0))
    return standin.imported(settings, folder / "texts")


@contextmanager
def counting(library: Settings, **roles: str) -> Iterator[tuple[Session, Counted]]:
    model = Counted()
    uses = {"entailment": "chat", "reranker": "none"}
    with opened(replace(library, roles=roles), HashedWords(), chat=model, uses=uses) as session:
        yield session, model


RUNS: dict[str, tuple[int, Callable[[Session], Any]]] = {
    "ask": (8, lambda session: session.ask(DOSE, ANY)),
    "ebm": (15, lambda session: session.ebm(CASE, ANY)),
    "explain of 8 lines": (25, lambda session: session.explain(ExplainInput(EIGHT_LINES), ANY)),
    "unanswerable of four parts": (40, lambda session: session.ask(FOUR_PARTS, ANY)),
}


@pytest.mark.parametrize("name", RUNS)
def test_requests_are_bounded(library: Settings, name: str) -> None:
    most, run = RUNS[name]
    with counting(library) as (session, model):
        answer = run(session)
    assert len(model.requests) <= most, model.requests
    assert (answer.status is AnswerStatus.ABSTAINED) is (name == "unanswerable of four parts")


def test_a_question_of_one_part_reads_little_more_than_plain_retrieval(library: Settings) -> None:
    """Plain retrieval is one request with every passage that was found."""
    with counting(library) as (session, model):
        session.ask(DOSE, ANY)
    with counting(library, relevance="off", badge="off", coherence="off", decomposition="off") as (session, plain):
        plain_answer = session.ask(DOSE, ANY)
    assert plain_answer.statements
    assert isinstance(CITED_ANSWER.form, Writing)
    own = {"entailment"}  # in both
    assert set(plain.requests) - own == {"cited_answer"}
    assert model.words <= 1.6 * plain.words
