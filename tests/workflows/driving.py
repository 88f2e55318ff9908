"""Flows that are driven on scripted results; what a driver drives is replayed from its recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from localmed.answering.role_table import RoleTable
from localmed.answering.roles import Role
from localmed.domain import Answer
from localmed.domain.errors import Rejected
from localmed.process.hooks import Hooks
from localmed.workflows.flow import Driver, Request, Shown, flow_named
from localmed.workflows.recording import Recording, replay
from tests.fakes import Steps, services

Says = Mapping[str, Callable[[Any], Any]]  # what a model says in each role


class Model:
    """A chat model of the roles that it is given; a ``Rejected`` that it says is raised."""

    def __init__(self, says: Says) -> None:
        self._says = says

    def perform(self, role: Role, task: Any) -> Any:
        said = self._says[role.name](task)
        if isinstance(said, Rejected):
            raise said
        return said


def driven(workflow: str, arguments: tuple[Any, ...], served: RoleTable, **others: Any) -> tuple[Answer, list[Request]]:
    """The answer of a flow, and what it asked for; ``others`` are services beside the roles."""
    recording, requests = Recording(), list[Request]()
    recording.begin(workflow, arguments)

    def step(request: Request, result: Any) -> None:
        requests.append(request)
        recording.step(request, result)

    answer = Driver(services(served, **others), Hooks(recorder=Steps(step))).run(flow_named(workflow)(*arguments))
    assert replay(recording.finish(answer)) == (answer, True), "every flow replays"
    return answer, requests


def fed(flow: Any, results: list[Any] | Callable[[Any], Any]) -> tuple[Any, list[Any]]:
    """What a flow, or a part of one, comes to when its requests get ``results``, all of them; and the requests."""
    requests: list[Any] = []
    result: Any = None
    while True:
        try:
            requests.append(flow.throw(result) if isinstance(result, Rejected) else flow.send(result))
        except StopIteration as end:
            assert callable(results) or not results, "the flow ended before its results were used up"
            return end.value, requests
        if isinstance(requests[-1], Shown):
            result = None
        else:
            result = results(requests[-1]) if callable(results) else results.pop(0)


def texts(answer: Answer) -> list[str]:
    """The sentences that are shown."""
    return [one.text for one in answer.statements if not one.withheld]


def titles(answer: Answer) -> list[str]:
    """The documents of its sections in the question's language."""
    return [answer.by_marker[one.best].document_title for one in answer.receipts.sections] if answer.receipts else []
