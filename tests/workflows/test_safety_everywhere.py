"""Whatever takes a person's text answers somebody in danger with the site's message, and with nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localmed.answering.answer_file import VerifyInput
from localmed.config import Settings
from localmed.domain import Answer, AnswerStatus
from localmed.domain.errors import UsageError
from localmed.site.session import Session
from localmed.workflows.explain import ExplainInput
from localmed.workflows.flow import FLOWS
from tests.fakes import ANY, HashedWords, import_into, opened, write

DANGER = {"en": "I want to kill myself. How much heparin?", "zh": "我想自杀，需要多少肝素？"}
RUNS: dict[str, Callable[[Session, str], Answer]] = {
    "ask": lambda session, text: session.ask(text, ANY),
    "ask_and_verify": lambda session, text: session.ask(text, ANY, check=True),
    "thorough": lambda session, text: session.ask(text, ANY, thorough=True),
    "search": lambda session, text: session.search(text, ANY, 5),
    "plan": lambda session, text: session.plan_sources(text, ANY),
    "ebm": lambda session, text: session.ebm(text, ANY),
    "departments": lambda session, text: session.departments(text),
    "explain": lambda session, text: session.explain(ExplainInput("Heparin 5000 units", questions=(text,)), ANY),
    "verify": lambda session, text: session.verify(VerifyInput(text, "Heparin thins the blood [1].")),
}


@pytest.fixture
def session(settings: Settings, corpus: Path) -> Iterator[Session]:
    import_into(settings, write(corpus, {"heparin.txt": "Heparin\n\nHeparin thins the blood.\n"}))
    with opened(settings, HashedWords()) as session:
        yield session


def test_every_workflow_is_tried() -> None:
    assert set(RUNS) == set(FLOWS)


@pytest.mark.parametrize("language", DANGER)
@pytest.mark.parametrize("name", RUNS)
def test_a_workflow_answers_with_the_message_alone(session: Session, name: str, language: str) -> None:
    answer = RUNS[name](session, DANGER[language])
    assert answer.status is AnswerStatus.SAFETY
    assert answer.language == language
    assert (answer.evidence, answer.statements, answer.parts, answer.receipts) == ((), (), (), None)


@pytest.mark.parametrize("language", DANGER)
@pytest.mark.parametrize("place", ["term", "question"])
def test_a_look_up_is_refused_with_the_message(session: Session, place: str, language: str) -> None:
    texts = {"term": "heparin", "question": "", place: DANGER[language]}
    with pytest.raises(UsageError) as told:
        session.concept(texts["term"], texts["question"])
    assert told.value.message.code == "safety.message"
