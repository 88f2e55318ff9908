"""Recordings: what a flow was given, every request's result and the answer, as one JSON file; and their replay.

A replay runs the flow again on the recorded results, without library and models, and must come to the identical answer:
so that an answer can be examined years later, and a changed flow shows. A recording holds the question, and a patient's
record where there was one: it is written only where a caller asks for it. What is read from a file is made into values
of the classes listed here and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any

from localmed import __version__
from localmed.agents.roles import Role
from localmed.domain import Answer, digest
from localmed.errors import InputError, Rejected
from localmed.workflows.flow import Request, traced
from localmed.workflows.flows import FLOWS, flow

FORMAT = "localmed recording 1"
LARGEST = 64 * 2**20  # bytes; a question over three tiers has about 0.2 MiB
# Where the values that flows pass around are defined.
MODULES = (
    "domain", "domain.answers", "domain.link_counts", "domain.parts", "domain.statements", "domain.sources",
    "domain.messages", "domain.patient",
    "ports", "library.terms", "library.graph", "retrieval.concepts", "retrieval.keywords",
    "retrieval.search", "retrieval.tiers", "agents.asking", "agents.decomposing", "agents.guidance",
    "agents.safety", "agents.planning", "agents.source_plan", "agents.orders", "agents.practice", "agents.linking",
    "verification.link_eval", "workflows.finding", "workflows.gathering", "workflows.explain", "retrieval.studies",
    "workflows.m_eval", "verification.answer_file",
    "verification.badge", "agents.judging",
)  # fmt: skip


class Recording:
    """Takes a run down: ``begin``, then ``step`` for each request, then ``finish``."""

    def __init__(self) -> None:
        self._kept: dict[str, Any] = {"format": FORMAT, "version": __version__, "steps": []}

    def begin(self, workflow: str, arguments: tuple[Any, ...]) -> None:
        """A flow of ``workflow`` starts with ``arguments``."""
        self._kept |= {"workflow": workflow, "arguments": encoded(arguments)}

    def step(self, request: Request, result: Any) -> None:
        """``request`` was answered with ``result``."""
        self._kept["steps"].append({"request": request.name, "digest": _digest(request), "result": encoded(result)})

    def finish(self, answer: Answer) -> str:
        """The recording as JSON text."""
        return json.dumps(self._kept | {"answer": encoded(answer)}, ensure_ascii=False)


def replay(text: str) -> tuple[Answer, bool]:
    """The answer that the recorded flow comes to now, with the recorded trace, and whether it is the recorded one.

    Raise ``InputError`` for what is no recording, and where the flow asks for something else than it did.
    """
    kept = _read(text)
    running = flow(kept["workflow"])(*decoded(kept["arguments"]))
    recorded: Answer = decoded(kept["answer"])
    waiting = iter(kept["steps"])
    result: Any = None
    while True:
        try:
            asked = running.throw(result) if isinstance(result, Rejected) else running.send(result)
        except StopIteration as end:
            answer = traced(end.value, recorded.trace)
            return answer, answer == traced(recorded, recorded.trace) and next(waiting, None) is None
        results = tuple(_next(waiting, each) for each in (asked if isinstance(asked, tuple) else (asked,)))
        failed = next((each for each in results if isinstance(each, Rejected)), None)
        result = failed or (results if isinstance(asked, tuple) else results[0])


def _read(text: str) -> dict[str, Any]:
    try:
        kept = json.loads(text)
        if kept["format"] == FORMAT and kept["workflow"] in FLOWS and isinstance(kept["steps"], list):
            return {name: kept[name] for name in ("workflow", "arguments", "answer", "steps")}
    except (ValueError, TypeError, LookupError, RecursionError):
        pass
    raise InputError("the file is no recording of this version of localmed", "Give a file that --record wrote")


def _next(waiting: Iterator[Any], request: Request) -> Any:
    step = next(waiting, None)
    if step is None or step.get("digest") != _digest(request):
        raise InputError(
            f"the flow now asks for something else ({request.name})",
            "The recording was made by another version; its answer is in the file",
        )
    return decoded(step["result"])


def _digest(request: Request) -> str:
    return digest(json.dumps(encoded(request), ensure_ascii=False, sort_keys=True))


# --- values as JSON and back ------------------------------------------------------------------------------------------


def encoded(value: Any) -> Any:
    """``value`` as JSON: a role by its name, other values by class and fields; raise ``TypeError`` for what is none."""
    if isinstance(value, Enum):
        return {"enum": type(value).__name__, "value": value.value}
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Role):
        return {"role": value.name, "version": value.version}
    if isinstance(value, Rejected):
        return {"rejected": value.what, "remedy": value.remedy}
    if is_dataclass(value) and not isinstance(value, type):
        return {
            "class": type(value).__name__,
            "fields": {f.name: encoded(getattr(value, f.name)) for f in fields(value)},
        }
    if isinstance(value, (tuple, frozenset)):
        items = sorted(value) if isinstance(value, frozenset) else value
        return {"frozenset" if isinstance(value, frozenset) else "tuple": [encoded(each) for each in items]}
    if isinstance(value, Mapping):
        return {"mapping": [[encoded(key), encoded(each)] for key, each in value.items()]}
    raise TypeError(f"a recording holds no {type(value).__name__}")


def decoded(value: Any) -> Any:
    """The value that ``encoded`` was given; raise ``InputError`` for anything else."""
    try:
        return _decoded(value)
    except (LookupError, TypeError, ValueError, AttributeError):
        raise InputError("the recording holds a value that there is not", "It was made by another version") from None


def _decoded(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "enum" in value:
        return _classes()[value["enum"]](value["value"])
    if "rejected" in value:
        return Rejected(value["rejected"], value["remedy"])
    if "class" in value:
        return _classes()[value["class"]](**{name: _decoded(each) for name, each in value["fields"].items()})
    if "tuple" in value:
        return tuple(_decoded(each) for each in value["tuple"])
    if "frozenset" in value:
        return frozenset(_decoded(each) for each in value["frozenset"])
    return {_decoded(key): _decoded(each) for key, each in value["mapping"]}


@cache
def _classes() -> dict[str, Any]:
    """The values' classes by name."""
    found = [each for name in MODULES for each in vars(import_module(f"localmed.{name}")).values()]
    values = [each for each in found if isinstance(each, type) and (is_dataclass(each) or issubclass(each, Enum))]
    return {each.__name__: each for each in values if each is not Role}
