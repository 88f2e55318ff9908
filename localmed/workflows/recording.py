"""Records a flow's arguments, results and answer as JSON, and replays them.

A replay runs the flow on the recorded results without library and models. It must give the identical answer, so an
answer can be examined years later and a changed flow shows. A recording contains the question and any patient record:
it is written only on request. Reading creates values of the classes in ``MODULES`` only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any

from localmed import __version__
from localmed.domain import Answer, digest
from localmed.domain.answers import LARGEST, answer_json, answer_of
from localmed.domain.codec import Codec, reachable
from localmed.domain.errors import InputError, Rejected, as_json, from_json
from localmed.workflows.flow import FAILED, FLOWS, OUT_OF_TIME, Perform, Request, Shown, flow_named, traced

__all__ = ["LARGEST", "Recording", "recorded", "replay"]

FORMAT = "localmed recording 7"  # 7: no keywords; who judges stands in the plan alone
# Modules of the values that flows pass on.
MODULES = (
    "domain.sources", "domain.findings", "domain.patient", "domain.ports", "answering.write",
    "answering.check", "answering.reliability", "library.terms", "library.graph", "retrieval.concepts",
    "retrieval.tiers", "answering.asking", "answering.guidance",
    "safety.safety", "answering.planning", "answering.orders", "answering.practice", "workflows.finding",
    "workflows.strategies", "workflows.explain", "retrieval.studies", "workflows.m_eval",
    "answering.answer_file", "answering.judging",
)  # fmt: skip


class Recording:
    """Records one run: ``begin``, ``step`` for each request, ``finish``."""

    def __init__(self) -> None:
        self._kept: dict[str, Any] = {"format": FORMAT, "version": __version__, "steps": []}

    def begin(self, workflow: str, arguments: tuple[Any, ...]) -> None:
        """Record the start of ``workflow``."""
        self._kept |= {"workflow": workflow, "arguments": codec().encode(arguments), "steps": []}

    def step(self, request: Request, result: Any) -> None:
        """Record a request with its result."""
        refused = isinstance(result, Rejected)
        outcome = {"rejected": as_json(result)} if refused else {"result": codec().encode(result)}
        self._kept["steps"].append({"request": request.name, "digest": _digest(request), **outcome})

    def finish(self, answer: Answer) -> str:
        """The recording as JSON text."""
        return json.dumps(self._kept | {"answer": answer_json(answer)}, ensure_ascii=False)


def replay(text: str) -> tuple[Answer, bool]:
    """The answer of the recorded flow today with the recorded trace, and whether it is identical.

    Raise ``InputError`` for text that is no recording, and if the flow makes other requests.
    """
    kept = recorded(text)
    try:
        arguments, before = codec().decode(kept["arguments"]), _of_flow(answer_of(kept["answer"]))
    except (ValueError, TypeError, LookupError, AttributeError):
        raise InputError("recording.value") from None
    running = flow_named(kept["workflow"])(*arguments)
    waiting = iter(kept["steps"])
    result: Any = None
    while True:
        try:
            requests = running.throw(result) if isinstance(result, Rejected) else running.send(result)
        except StopIteration as end:
            answer = traced(end.value, before.trace)
            return answer, answer == traced(before, before.trace) and next(waiting, None) is None
        if isinstance(requests, Shown):
            result = None
            continue
        results = tuple(
            _next(waiting, request) for request in (requests if isinstance(requests, tuple) else (requests,))
        )
        failed = next((result for result in results if isinstance(result, Rejected)), None)
        result = failed or (results if isinstance(requests, tuple) else results[0])


def _of_flow(answer: Answer) -> Answer:
    """``answer`` without notes that were added after the flow: on failed models and the audit log."""
    own = (FAILED, OUT_OF_TIME)
    notes = tuple(note for note in answer.notes if note.code not in own and not note.code.startswith("audit."))
    return replace(answer, notes=notes)


def recorded(text: str) -> dict[str, Any]:
    """The fields of a recording as JSON; raise ``InputError`` for text that is none."""
    try:
        kept = json.loads(text)
        made_by = kept["format"]
        if made_by == FORMAT and kept["workflow"] in FLOWS and isinstance(kept["steps"], list):
            return {name: kept[name] for name in ("workflow", "arguments", "answer", "steps")}
    except (ValueError, TypeError, LookupError, RecursionError):
        made_by = ""
    if isinstance(made_by, str) and made_by.startswith("localmed recording ") and made_by != FORMAT:
        raise InputError("recording.other_format", format=made_by, readable=FORMAT)
    raise InputError("recording.none")


def _next(waiting: Iterator[Any], request: Request) -> Any:
    step = next(waiting, None)
    if not isinstance(step, dict) or step.get("digest") != _digest(request):
        raise InputError("recording.other_request", request=request.name)
    try:
        return from_json(step["rejected"], Rejected) if "rejected" in step else codec().decode(step["result"])
    except (ValueError, TypeError, LookupError, AttributeError):
        raise InputError("recording.value") from None


def _digest(request: Request) -> str:
    """The digest of a request; a role counts by name and version of its prompt."""
    named: dict[str, Any] = {field.name: getattr(request, field.name) for field in fields(request)}
    if isinstance(request, Perform):
        named |= {"role": (request.role.name, request.role.version)}
    written = {name: codec().encode(value) for name, value in named.items()}
    return digest(json.dumps([type(request).__name__, written], ensure_ascii=False, sort_keys=True))


@cache
def codec() -> Codec:
    """The codec of arguments, requests and results."""
    modules = [import_module(f"localmed.{name}") for name in MODULES]
    classes = (value for module in modules for value in vars(module).values() if isinstance(value, type))
    values = {value for value in classes if is_dataclass(value) or issubclass(value, Enum)}
    own = {value for value in values if value.__module__ in {module.__name__ for module in modules}}
    return Codec(own | reachable(Answer))
