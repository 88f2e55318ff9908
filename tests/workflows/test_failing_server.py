"""No run is lost to a chat server that fails: whenever it does, sections and structure stay, and that is said."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from localmed.answering.answer_file import VerifyInput
from localmed.config import ChatSettings, LibrarySettings, Settings
from localmed.domain import Answer, Origin, Support
from localmed.domain.parts import LinePart, SourcePlanPart, SupportPart
from localmed.domain.ports import Message
from localmed.models import openai_server
from localmed.models.openai_server import OpenAIServer
from localmed.site.session import Session
from localmed.workflows.explain import ExplainInput
from localmed.workflows.flow import FAILED, FLOWS
from tests import standin
from tests.fakes import ANY, HashedWords, opened
from tests.models.chat_server import Handle, Handler, serving, silent, with_text
from tests.standin import CASE, DOSE, ORDER

STRUCTURE = (LinePart, SourcePlanPart, SupportPart)  # never a model's
EVERY = 12  # requests: of a run with more a part is tried
UNANSWERABLE = "What is dobutamine made of, and who invented the stethoscope?"

RUNS: dict[str, Callable[[Session], Answer]] = {
    "ask": lambda session: session.ask(DOSE, ANY),
    "ask, follow-up": lambda session: session.ask("And the dose in adults?", ANY, earlier=["What is adrenaline?"]),
    "ask, nothing found": lambda session: session.ask(UNANSWERABLE, ANY),
    "thorough": lambda session: session.ask(DOSE, ANY, thorough=True),
    "thorough, follow-up": lambda session: session.ask(
        "And the dose in adults?", ANY, earlier=["What is adrenaline?"], thorough=True
    ),
    "thorough, nothing helps": lambda session: session.ask(UNANSWERABLE, ANY, thorough=True),
    "ask_and_verify": lambda session: session.ask(DOSE, ANY, check=True),
    "departments": lambda session: session.departments("My pulse is irregular and I have palpitations"),
    "ebm": lambda session: session.ebm(CASE, ANY),
    "explain": lambda session: session.explain(ExplainInput(ORDER, questions=("What is warfarin for?",)), ANY),
    "plan": lambda session: session.plan_sources(DOSE, ANY),
    "plan, reflexion": lambda session: session.plan_sources(DOSE, ANY, "reflexion"),
    "verify": lambda session: session.verify(VerifyInput(DOSE, "The dose is 500 micrograms [1].\n\n1. Anaphylaxis")),
}
FAULTS: dict[str, Handle] = {
    "HTTP 500": lambda handler, _: handler.answer({"error": "x"}, 500),
    "broken off": lambda handler, _: handler.connection.shutdown(2),
    "HTTP 401": lambda handler, _: handler.answer({}, 401),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("standin")
    settings = Settings(folder / "data", "workstation", library=LibrarySettings(writer_memory_bytes=15_000_000))
    return standin.imported(settings, folder / "texts")


def failing(at: int, fault: Handle) -> tuple[Handle, list[int]]:
    """A server that answers well until request ``at`` (from 0) and from there on as ``fault`` says."""
    served: list[int] = []

    def handle(handler: Handler, body: dict[str, Any]) -> None:
        if handler.path == "/tokenize":
            return handler.answer({"tokens": body["prompt"].split()})
        served.append(len(served))
        if served[-1] >= at:
            return fault(handler, body)
        messages = [Message(turn["role"], turn["content"]) for turn in body["messages"]]
        text = standin.served(messages, body.get("response_format", {}))
        return handler.answer({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})

    return handle, served


def run(library: Settings, name: str, at: int, fault: Handle, seconds: float = 20.0) -> tuple[Answer, int]:
    """The answer of the run called ``name``, and how many requests the server got."""
    handle, served = failing(at, fault)
    with serving(handle) as (address, _):
        chat = OpenAIServer(address, "m", 8000, ChatSettings(servers=(address,), server_seconds=seconds))
        with opened(library, HashedWords(), chat=chat, uses={"entailment": "chat", "reranker": "none"}) as session:
            return RUNS[name](session), len(served)


# Calls of a model at most: ``ebm`` asks for the elements of the question too, ``thorough`` is what is asked for more.
CALLS = {"ask": 2, "ask, follow-up": 2, "ask, nothing found": 4, "ebm": 3, "explain": 4, "departments": 3, "verify": 2}


@pytest.mark.parametrize("name", CALLS)
def test_no_workflow_costs_more_than_four_calls(library: Settings, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    served = standin.served

    def noted(messages: Sequence[Message], response_format: Mapping[str, Any]) -> str:
        asked.append(standin.role_of(messages))
        return served(messages, response_format)

    monkeypatch.setattr(standin, "served", noted)
    run(library, name, 10_000, FAULTS["HTTP 500"])
    calls = [role for role in asked if role != "safety"]  # of a patient's own words: whether an answer is due at all
    assert 1 <= len(calls) <= CALLS[name] <= 4, asked


ALWAYS: dict[str, tuple[Handle, str]] = {
    "silent": (silent, FAILED),
    "null content": (with_text(None), "agents.rejected"),
    "other content": (with_text("I cannot help with that."), "agents.rejected"),
}


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_server, "PAUSE", 0.0)


def test_every_workflow_is_run() -> None:
    assert {name.partition(",")[0] for name in RUNS} == set(FLOWS) - {"search"}, "which no model takes part in"


def shown_without_model(answer: Answer) -> set[str]:
    """What a reader has in any case: sections, and the workflow's own structure."""
    sections = {"sections"} if answer.receipts and answer.receipts.sections else set()
    return sections | {type(part).__name__ for part in answer.parts if type(part) in STRUCTURE}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.slow
def test_no_run_is_lost_at_whichever_request_the_server_fails(library: Settings, name: str) -> None:
    whole, served = run(library, name, 10_000, FAULTS["HTTP 500"])
    assert served, "the model takes part"
    assert FAILED not in [note.code for note in whole.notes]
    for at in range(served) if served <= EVERY else sorted({*range(0, served, 1 + served // EVERY), served - 1}):
        answer, requests = run(library, name, at, list(FAULTS.values())[at % len(FAULTS)])
        assert answer.notes[-1].code == FAILED, (name, at)
        assert requests <= at + 4, "a server that failed is asked once more by the chat model and by the judge"
        assert shown_without_model(answer) >= shown_without_model(whole), (name, at)
        for one in answer.statements:
            checked = one.verdict is not None and one.verdict.support is Support.SUPPORTED
            assert one.withheld or checked or one.origin is Origin.EXTRACTIVE, (name, at)


@pytest.mark.parametrize("fault", ALWAYS)
@pytest.mark.parametrize("name", ["ask", "ebm", "explain", "departments", "verify", "plan"])
def test_a_server_that_says_nothing_of_use_leaves_every_workflow_to_the_rules(
    library: Settings, name: str, fault: str
) -> None:
    handle, code = ALWAYS[fault]
    answer, served = run(library, name, 0, handle, seconds=0.2)
    assert served, "it was asked"
    if fault == "silent":
        assert answer.notes[-1].code == code
        assert served == 2, "what may pass is tried once more, and the model never again in that run"
    else:
        assert FAILED not in [note.code for note in answer.notes]
